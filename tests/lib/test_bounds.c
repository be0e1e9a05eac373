/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bounds.c - no call does more than kvroute(7) allows.
 *
 * Every writing call here is made by a function that first determines its
 * sizes, sets the three counters of kvr_stats to 0, makes the call, and checks
 * the counters against the formulas of the page:
 *
 *   cells     <= (b + c) / 15 + 6n + 14d + 3m + v + 384z + 64
 *   reclaimed <= 8 + the room needed: twice the cells, 3 x 256 pinned ones
 *   steps     <= 16 (n + a) + 3 (d + s + x + v) + 48m + c / 8 + b / 4 + w / 6
 *                + 4y + 8r + 8192z + 512
 *
 *   n  nodes on the path of the prompt or the lease, before the call
 *   b  blocks that are new, and those of the shorter part of a split
 *   d  those of the n that the path leaves by another child than their heir, or
 *      at its end; s: nodes down their lines, at most 1024 for each
 *   z  1 if the prompt parts from a full line of heirs; else 0
 *   w  entries on all these nodes (kvr_lease_open)
 *   y  n + s, once for each worker whose survival is read, and for the chosen;
 *      at most 320
 *   x  nodes that leave; if room suffices, at most 128 for each of the 8
 *      entries that expire, 256 for each worker whose cache loses some, and
 *      1024 for the last of each
 *   v  nodes where an entry loses the end, as its worker's cache is full: at
 *      most 1024 for the worker of the call, and 0 if it goes by TTL
 *   a  nodes on the paths of the leases over age that the call ends, at most 2
 *   m  nodes merged; c: blocks copied by that, at most 16384 for each path
 *   r  entries reclaimed or passed over
 *
 * The formulas leave room for the chains of the hash tables, whose length is
 * random. They leave no room for dependence on another size, so each scene
 * makes one size very large that must not matter. A region's key can be unlucky
 * (see test_flood.c); here it is always the same.
 */
#include "alias.h"
#include "fit.h"
#include "lease.h"
#include "retain.h"

#include "inner.h"

#include <stdio.h>

struct sizes {
	uint64_t nodes, blocks, pairs, aged, budget, room;
	uint64_t departures, lines, full; /* d, s, z */
	uint64_t risen; /* v */
	uint64_t asked; /* y */
	uint64_t paths; /* that are stamped */
	struct kvr_stats before;
};

enum { EXPIRE = 8, REAP = 2, PASSED = 3 * 256, LEASES_MAX = 64,
	ASKED_MOST = 320 };

static const uint64_t no_lease;
static int64_t lease_limit;
static uint64_t most_steps; /* of any call */
static bool by_capacity;    /* the worker of the calls */
static uint32_t doubtful;   /* workers by feedback */

/* --------------------------------------------------------------- sizes --- */

static uint64_t
nodes_above(uint32_t node)
{
	uint64_t nodes = 0;

	for (; node != 0; node = node_at(k, node)->parent)
		nodes++;
	return nodes;
}

/*
 * The two oldest leases are ended if they are over age; the third is ended if
 * the call itself ends one of the two.
 */
static void
size_aged(struct sizes *s, int64_t now)
{
	uint32_t i = k->region->lease_first, left = REAP + 1;

	if (now < k->region->clock)
		now = k->region->clock;
	for (; i != 0 && left > 0; i = lease_at(k, i)->age_next, left--) {
		if (lease_at(k, i)->opened > now - lease_limit)
			return;
		s->aged += nodes_above(lease_at(k, i)->node);
		s->paths++;
	}
}

/* The lines that the path to a node leaves, and all entries there. */
static void
size_lines(struct sizes *s, uint32_t node)
{
	uint32_t below = 0, at;

	for (; node != 0; node = node_at(k, node)->parent) {
		s->pairs += node_at(k, node)->holders;
		at = node_at(k, node)->heir;
		s->departures += at != below;
		for (; at != 0 && at != below; at = node_at(k, at)->heir) {
			s->pairs += node_at(k, at)->holders;
			s->lines++;
		}
		below = node;
	}
}

static void
size_lease(struct sizes *s, uint64_t lease)
{
	uint32_t i = lease_find(k, lease);

	if (i == 0)
		return;
	s->nodes += nodes_above(lease_at(k, i)->node);
	size_lines(s, lease_at(k, i)->node);
}

static uint64_t
bound_cells(const struct sizes *s, uint64_t merges, uint64_t copied)
{
	return (s->blocks + copied) / 15 + 6 * s->nodes + 14 * s->departures +
	    3 * merges + s->risen + 384 * s->full + 64;
}

/* If room is lacking, the path itself may be evicted and all be new. */
static void
size_room(struct sizes *s)
{
	if (k->region->free_cells >= bound_cells(s, 0, 0) + fit_spare(k))
		return;
	s->blocks = p->blocks;
	s->room = 2 * bound_cells(s, 0, 0) + PASSED;
}

static void
size_prompt(struct sizes *s)
{
	struct path path;
	const struct node *n;
	uint32_t want = lease_blocks(k, p), rest;

	index_walk(k, p, want, &plainly, &path);
	n = node_at(k, path.node);
	rest = n->length - path.inside;
	s->nodes += path.nodes;
	s->blocks += want - path.depth;
	if (path.node != 0 && rest > 0)
		s->blocks += rest < path.inside ? rest : path.inside;
	s->full = index_line_full(k, &path);
	size_lines(s, path.node);
	size_room(s);
}

/* ------------------------------------------------- before and after it --- */

static struct sizes
sizes_at(int64_t now)
{
	struct sizes s;

	memset(&s, 0, sizeof(s));
	s.budget = EXPIRE;
	s.paths = 1;
	s.risen = by_capacity ? LINE_MAX : 0;
	size_aged(&s, now);
	s.before = stats();
	return s;
}

static void
counters_reset(void)
{
	struct counts *c = &k->region->counts;

	c->max_steps = c->max_cells = c->max_reclaimed = 0;
}

static void
at_most(const char *what, uint64_t did, uint64_t bound)
{
	if (did > bound)
		ck_abort_msg("%s: %" PRIu64 ", not at most %" PRIu64
		    " (KVR_SEED=%" PRIu64 ")", what, did, bound, seed);
}

/* Returns the counters, for scenes that know more than the formulas. */
static struct kvr_stats
within(const struct sizes *s)
{
	struct kvr_stats did = stats();
	uint64_t merges = did.merges - s->before.merges;
	uint64_t copied = 1024 * merges, gone;

	if (most_steps < did.max_steps)
		most_steps = did.max_steps;
	if (copied > 16384 * s->paths)
		copied = 16384 * s->paths;
	/* a split and a new leaf may have come */
	gone = s->before.nodes + 2 > did.nodes + merges
	    ? s->before.nodes + 2 - did.nodes - merges : 0;
	if (s->room == 0)
		at_most("nodes that leave", gone, 128 * s->budget + LINE_MAX +
		    (256 + LINE_MAX) * (1 + REAP) + s->nodes + s->aged);
	at_most("merges", merges, s->nodes + s->aged + 2);
	at_most("splits", did.splits - s->before.splits, 1);
	at_most("reaped", did.lease_reaps - s->before.lease_reaps, REAP);
	at_most("cells", did.max_cells, bound_cells(s, merges, copied));
	at_most("reclaimed", did.max_reclaimed, s->budget + s->room);
	at_most("steps", did.max_steps, 16 * (s->nodes + s->aged) +
	    3 * (s->departures + s->lines + gone + s->risen) + 48 * merges +
	    copied / 8 + s->blocks / 4 + s->pairs / 6 + 4 * s->asked +
	    8 * did.max_reclaimed + 8192 * s->full + 512);
	return did;
}

/* --------------------------------------------------------------- calls --- */

static struct kvr_stats
do_observe(uint64_t worker, int64_t now)
{
	struct sizes s = sizes_at(now);

	size_prompt(&s);
	counters_reset();
	ck_assert_int_eq(kvr_observe(k, p, worker, now, 0, NULL), KVR_OK);
	return within(&s);
}

/* Reserves on this worker; 0: on one that is chosen. */
static uint64_t
do_reserve(uint64_t worker, uint64_t owner, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct sizes s = sizes_at(now);
	struct kvr_request r;

	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.owner = owner;
	size_prompt(&s);
	s.asked = (doubtful + (doubtful > 0)) * (s.nodes + s.lines);
	if (s.asked > ASKED_MOST)
		s.asked = ASKED_MOST;
	counters_reset();
	ck_assert_int_eq(worker != 0
	    ? kvr_lease_open_on(k, p, &r, worker, now, &d)
	    : kvr_lease_open(k, p, &r, now, &d), KVR_OK);
	(void)within(&s);
	return d.lease;
}

enum on_lease { COMMIT, FIRST_TOKEN, EXTEND, OUTPUT, FINISH, ABORT, ON_LEASE };

static int
call_on_lease(enum on_lease what, uint64_t lease, int64_t now)
{
	switch (what) {
	case COMMIT:      return kvr_lease_commit(k, lease, now, 0);
	case FIRST_TOKEN: return kvr_lease_first_token(k, lease, now, 0);
	case EXTEND:      return kvr_lease_extend(k, lease, p, now, 0);
	case OUTPUT:      return kvr_lease_output(k, lease, 3, now, 0);
	case FINISH:      return kvr_lease_finish(k, lease, NULL, now, 0);
	default:          return kvr_lease_abort(k, lease, now, 0);
	}
}

static int
do_on_lease(enum on_lease what, uint64_t lease, int64_t now)
{
	struct sizes s = sizes_at(now);
	int error;

	size_lease(&s, lease);
	if (what == EXTEND)
		size_prompt(&s);
	counters_reset();
	error = call_on_lease(what, lease, now);
	(void)within(&s);
	return error;
}

static struct kvr_stats
do_expire(uint32_t budget, int64_t now)
{
	struct sizes s = sizes_at(now);

	s.budget = budget;
	counters_reset();
	(void)expire(now, budget);
	return within(&s);
}

/* The work of one piece of a walk over the leases beside the last it ends. */
enum { WALK_LEASES = 256, WALK_STEPS = 4096 };

/* Ends some leases, examines all, in pieces. Returns how many it ended. */
static uint32_t
do_reap_owner(uint64_t owner, int64_t now)
{
	uint32_t i = k->region->lease_first, ended, all = 0, pieces = 0;
	uint64_t cursor = 0, longest = 0, leases = stats().leases, nodes;
	struct sizes s = sizes_at(now);
	struct kvr_stats did;

	for (; i != 0; i = lease_at(k, i)->age_next) {
		nodes = nodes_above(lease_at(k, i)->node);
		if (lease_at(k, i)->owner == owner && nodes > longest)
			longest = nodes;
	}
	do {
		s = sizes_at(now);
		counters_reset();
		ck_assert_int_eq(kvr_owner_reap(k, owner, now, &cursor,
		    &ended), KVR_OK);
		did = stats();
		at_most("leases of a piece", ended, WALK_LEASES);
		at_most("steps of a piece", did.max_steps, WALK_STEPS +
		    64 * (longest + s.aged) + 3 * 16384 / 8 +
		    8 * did.max_reclaimed + 512);
		at_most("cells of a piece", did.max_cells,
		    WALK_STEPS + 3 * 16384 / 15 + 64);
		all += ended;
		at_most("pieces", ++pieces, leases + 1);
	} while (cursor != 0);
	return all;
}

/* No link is followed, however much the worker holds. */
static void
ck_nothing_done(void)
{
	struct kvr_stats did = stats();

	ck_assert_uint_eq(did.max_steps, 0);
	ck_assert_uint_eq(did.max_cells, 0);
	ck_assert_uint_eq(did.max_reclaimed, 0);
}

static void
do_remove(uint64_t worker)
{
	counters_reset();
	ck_assert_int_eq(kvr_worker_remove(k, worker), KVR_OK);
	ck_nothing_done();
}

/* ------------------------------------------------------------- regions --- */

static uint64_t worker[KVR_WORKERS_MAX];

/* The counters when it succeeds; each call before is a piece of the work. */
static struct kvr_stats
do_reset(uint32_t i)
{
	struct kvr_stats did;
	uint64_t most = stats().cells;
	int error;

	do {
		counters_reset();
		error = kvr_worker_reset(k, worker[i], &worker[i]);
		did = stats();
		at_most("reclaimed for a slot", did.max_reclaimed, 256);
		at_most("steps for a slot", did.max_steps,
		    8 * did.max_reclaimed + 2 * WALK_STEPS);
		at_most("calls for a slot", 1, most--);
	} while (error == KVR_EBUSY);
	ck_assert_int_eq(error, KVR_OK);
	return did;
}

/* While the tables are empty; the last word is the names'. */
static void
fix_key(void)
{
	uint64_t random = 1;
	size_t i;

	for (i = 0; i < 11; i++)
		k->table_key[i] = plain_random(&random);
}

static void
big_region(uint64_t bytes, uint32_t workers, int64_t ttl)
{
	struct kvr_options o = small_options();
	char name[16];
	uint32_t i;

	o.region_bytes = bytes;
	o.max_workers = workers;
	o.max_prompt_blocks = 1 << 20;
	o.ttl_ns = ttl;
	lease_limit = o.lease_limit_ns;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	fix_key();
	people(0);
	for (i = 0; i < workers; i++) {
		snprintf(name, sizeof(name), "%u", (unsigned)i);
		ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), NULL,
		    &worker[i]), KVR_OK);
	}
}

/* One prompt of one block for each number. */
static void
say_one(uint32_t n)
{
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, &n, 1), KVR_OK);
}

/* -------------------------------------------------------------- scenes --- */

/* Each prompt forks inside a run that all workers hold: it does not matter. */
START_TEST(split_of_what_all_hold)
{
	uint32_t fleet = (uint32_t)test_amount(KVR_WORKERS_MAX), i;
	struct kvr_stats s;
	uint64_t lease;

	big_region(64 << 20, fleet, TTL);
	say_long(100, 100, 0);
	for (i = 0; i < fleet; i++)
		(void)do_observe(worker[i], 1);
	for (i = 99; i < 100; i -= 7) { /* until it wraps */
		say_long(100, i, 1);
		s = do_observe(worker[i % fleet], 1);
		at_most("cells", s.max_cells, 32);
		at_most("steps", s.max_steps, 128);
		say_long(100, i, 2);
		lease = do_reserve(i % 2 != 0 ? worker[0] : 0, 0, 1);
		ck_assert_int_eq(do_on_lease(COMMIT, lease, 1), KVR_OK);
		ck_assert_int_eq(do_on_lease(i % 3 != 0 ? FINISH : ABORT,
		    lease, 1), KVR_OK);
	}
	ck_assert_uint_eq(s.splits, 15);
	region_end();
}
END_TEST

/* A request for all of the prefix, as a worker is chosen for it. */
static uint64_t
hot_request(uint32_t blocks, int64_t now)
{
	uint64_t lease, steps;

	say_long(blocks, blocks, 0);
	lease = do_reserve(0, 0, now);
	steps = stats().max_steps;
	ck_assert_int_eq(do_on_lease(COMMIT, lease, now), KVR_OK);
	steps += stats().max_steps;
	ck_assert_int_eq(do_on_lease(FINISH, lease, now), KVR_OK);
	return steps + stats().max_steps;
}

/* Each worker of the fleet uses the prefix. */
static void
hot_prefix(uint32_t fleet, uint32_t blocks, int64_t now)
{
	uint32_t i;

	say_long(blocks, blocks, 0);
	for (i = 0; i < fleet; i++)
		(void)do_observe(worker[i], now);
}

/* Short requests part at each of its blocks. */
static void
hot_prefix_parted(uint32_t blocks, int64_t now)
{
	uint64_t lease;
	uint32_t i;

	for (i = 1; i < blocks; i++) {
		say_long(i + 1, i, 1);
		lease = do_reserve(0, 0, now);
		ck_assert_int_eq(do_on_lease(COMMIT, lease, now), KVR_OK);
		ck_assert_int_eq(do_on_lease(FINISH, lease, now), KVR_OK);
	}
}

/*
 * 249 short requests part from a prefix that 1,024 workers hold. A route also
 * reads of each worker a pair and its load, which steps do not count, or count
 * by the group: that is added here.
 */
START_TEST(prefix_that_is_parted)
{
	enum { BLOCKS = 250 };
	uint32_t fleet = 1024;
	uint64_t before, after, later;

	big_region(64 << 20, fleet, TTL);
	hot_prefix(fleet, BLOCKS, 1);
	before = hot_request(BLOCKS, 1);
	hot_prefix_parted(BLOCKS, 2);
	after = hot_request(BLOCKS, 2);
	at_most("reads", after + 2 * fleet, 2 * (before + 2 * fleet));
	at_most("entries", stats().entries, 4 * (uint64_t)fleet);
	ck_assert_uint_eq(stats().splits, BLOCKS - 1);
	hot_prefix(fleet, BLOCKS, 2 + TTL / 2);
	(void)do_expire(UINT32_MAX, 2 + TTL);
	hot_prefix(fleet, BLOCKS, 2 + TTL);
	later = hot_request(BLOCKS, 2 + TTL);
	at_most("steps when it is whole again", later, before);
	ck_assert_uint_eq(stats().entries, fleet);
	ck_assert_uint_eq(stats().nodes, 1);
	region_end();
}
END_TEST

/* Prompts part from a line that can take no further node: it is cut, or not. */
START_TEST(line_that_is_full)
{
	enum { BLOCKS = LINE_MAX + 200 };
	uint32_t fleet = _i == 0 ? 64 : (uint32_t)test_amount(1024);

	big_region(64 << 20, fleet, TTL);
	hot_prefix(fleet, BLOCKS, 1);
	hot_prefix_parted(BLOCKS, 2);
	ck_assert_uint_gt(stats().splits, LINE_MAX - 2);
	if (_i == 0)
		ck_assert_uint_eq(stats().truncated, 0);
	(void)hot_request(BLOCKS, 2);
	region_end();
}
END_TEST

/* The first `common` blocks of a prefix, and one that is not of it. */
static void
say_of_line(uint32_t common, uint32_t prefix)
{
	uint32_t token[LINE_MAX + 1], i;

	for (i = 0; i < common; i++)
		token[i] = prefix * LINE_MAX + i;
	token[i] = UINT32_MAX;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, common + 1),
	    KVR_OK);
}

/* Prefixes that were parted come due: with an entry its whole line goes. */
START_TEST(lines_that_are_due)
{
	enum { LINES = 20, NODES = 1000 };
	uint32_t i, n;

	big_region(64 << 20, 2, TTL);
	for (n = 0; n < LINES; n++)
		for (i = NODES; i > 0; i--) {
			say_of_line(i, n);
			(void)do_observe(worker[0], 1);
		}
	for (n = 0; n < LINES; n++) {
		say_of_line(NODES, n);
		(void)do_observe(worker[0], 2);
	}
	(void)do_expire(UINT32_MAX, 1 + TTL);
	ck_assert_uint_eq(stats().nodes, LINES * NODES);
	ck_assert_uint_eq(stats().entries, LINES);
	for (i = 0; stats().entries > 1; i++) {
		say_one(UINT32_MAX);
		(void)do_observe(worker[1], 2 + TTL);
	}
	ck_assert_uint_gt(i, LINES / EXPIRE + 1); /* not 8 a call */
	region_end();
}
END_TEST

/* A cache is full: it loses the end of a prefix that others have parted. */
START_TEST(end_of_what_others_parted)
{
	enum { BLOCKS = 1000 };
	struct kvr_worker facts;
	uint32_t i;

	big_region(64 << 20, 4, TTL);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.retain = KVR_RETAIN_CAPACITY;
	facts.capacity_tokens = BLOCKS;
	facts.eviction = _i == 0 ? KVR_EVICT_RELEASED : KVR_EVICT_LEAF;
	ck_assert_int_eq(kvr_worker_set(k, worker[0], &facts), KVR_OK);
	say_long(BLOCKS, BLOCKS, 0);
	(void)do_observe(worker[0], 1);
	for (i = BLOCKS; i > 0; i--) {
		say_long(i, i, 0);
		(void)do_observe(worker[1], 2);
	}
	for (i = 1; i <= BLOCKS; i++) {
		say_long(i < BLOCKS ? i + 1 : i, i, 1);
		(void)do_observe(worker[2], 3);
	}
	ck_assert_uint_ge(stats().nodes, BLOCKS);
	say_long(BLOCKS - 1, 0, 2);
	by_capacity = true;
	/* all of it at once, or 256 leaves */
	ck_assert_uint_gt(do_observe(worker[0], 4).max_steps, _i == 0
	    ? BLOCKS : 2 * 256);
	by_capacity = false;
	region_end();
}
END_TEST

/* Blocks already recorded cost nothing; a split costs the shorter part. */
START_TEST(huge_prompts)
{
	uint32_t n = (uint32_t)test_amount(100000), i;
	struct kvr_stats s;
	uint64_t lease;

	big_region(64 << 20, 2, TTL);
	say_long(n, n, 0);
	(void)do_observe(worker[0], 1);
	s = do_observe(worker[0], 1);
	ck_assert_uint_eq(s.max_cells, 0);
	for (i = 1; i < n; i += 1 + i / 2) {
		say_long(n, i, 1);
		(void)do_observe(worker[1], 2);
		say_long(n + 50, n - i, 2);
		lease = do_reserve(worker[0], 0, 2);
		ck_assert_int_eq(do_on_lease(COMMIT, lease, 2), KVR_OK);
		say_long(n + 90, n - i, 2);
		ck_assert_int_eq(do_on_lease(EXTEND, lease, 2), KVR_OK);
		ck_assert_int_eq(do_on_lease(FINISH, lease, 2), KVR_OK);
	}
	say_long(2 * n, n, 3);
	(void)do_observe(worker[1], 3);
	region_end();
}
END_TEST

/* A full region: long prompts evict short ones, and the other way round. */
START_TEST(room_made)
{
	uint32_t n, i, round;

	big_region(1 << 20, 2, KVR_TTL_ENDLESS);
	for (round = 0; round < 3; round++) {
		for (n = 0; n < 6000; n++) {
			say_one(n + round * 10000);
			(void)do_observe(worker[n % 2], 1);
		}
		for (i = 0; i < 20; i++) {
			say_long(20000 + i, i * 100, i);
			(void)do_observe(worker[i % 2], 1);
			give_up(do_reserve(worker[i % 2], 0, 1), 1);
		}
	}
	ck_assert_uint_gt(stats().evicted_region, 10000);
	region_end();
}
END_TEST

/* All of the oldest is pinned: making room passes over some of it. */
START_TEST(room_behind_the_pinned)
{
	uint32_t n = 0, i, most = 0;
	struct kvr_stats s;

	big_region(4 << 20, 1, KVR_TTL_ENDLESS);
	while (k->region->free_cells > k->layout.cells / 4) {
		say_one(n++);
		ck_assert_int_eq(do_on_lease(COMMIT,
		    do_reserve(worker[0], 0, 1), 1), KVR_OK);
	}
	ck_assert_uint_gt(n, 2 * PASSED);
	for (i = 0; i < 2 * n; i++) {
		say_one(1000000 + i);
		s = do_observe(worker[0], 2);
		if (s.max_reclaimed > most)
			most = (uint32_t)s.max_reclaimed;
	}
	/* it has passed over many, and then found one to evict */
	ck_assert_uint_ge(most, 256);
	ck_assert_uint_gt(s.evicted_region, n / 2);
	ck_assert_uint_lt(s.truncated, n / 500);
	ck_assert_uint_eq(s.leases, n);
	region_end();
}
END_TEST

static uint32_t
fill(uint32_t n, uint64_t who)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		say_one(i);
		ck_assert_int_eq(kvr_observe(k, p, who, 1, 0, NULL), KVR_OK);
	}
	return n;
}

/* All is due at once; each call reclaims its share. */
START_TEST(all_due_at_once)
{
	uint32_t n, left;
	uint64_t lease;

	big_region(64 << 20, 2, TTL);
	left = n = fill((uint32_t)test_amount(100000), worker[0]);
	say_one(UINT32_MAX);
	ck_assert_uint_eq(do_observe(worker[1], 1 + TTL).max_reclaimed,
	    left < EXPIRE ? left : EXPIRE);
	for (left -= EXPIRE; left > n / 2; left -= 4 * EXPIRE) {
		(void)do_observe(worker[1], 1 + TTL);
		lease = do_reserve(0, 0, 1 + TTL);
		ck_assert_int_eq(do_on_lease(COMMIT, lease, 1 + TTL), KVR_OK);
		ck_assert_int_eq(do_on_lease(FINISH, lease, 1 + TTL), KVR_OK);
	}
	ck_assert_uint_eq(stats().expired, n - left);
	ck_assert_uint_eq(do_expire(500, 1 + TTL).max_reclaimed, 500);
	(void)do_expire(n, 1 + TTL);
	ck_assert_uint_eq(stats().entries, 1);
	region_end();
}
END_TEST

/* A worker is removed at once, its entries a few at a time. */
START_TEST(worker_that_held_much)
{
	uint32_t n, i;
	uint64_t fresh;

	big_region(64 << 20, 3, KVR_TTL_ENDLESS);
	n = fill((uint32_t)test_amount(100000), worker[0]);
	(void)fill(n, worker[1]);
	do_remove(worker[0]);
	counters_reset();
	ck_assert_int_eq(kvr_worker_reset(k, worker[1], &fresh), KVR_OK);
	ck_nothing_done();
	ck_assert_uint_eq(stats().entries, 0);
	for (i = 0; i < 2 * n; i += EXPIRE) {
		say_one(UINT32_MAX);
		ck_assert_uint_eq(do_observe(worker[2], 2).max_reclaimed,
		    EXPIRE);
	}
	ck_assert_uint_eq(stats().orphaned, 2 * n);
	region_end();
}
END_TEST

/* Events show that the cache is much smaller than its entries on record. */
START_TEST(events_that_make_much_leave)
{
	enum { EVENTS = 200, EVICTIONS = 256 };
	static const uint64_t hashes[16];
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_event e[EVENTS];
	struct sizes s;
	uint32_t i;

	big_region(16 << 20, 3, KVR_TTL_ENDLESS);
	(void)fill(3 * EVICTIONS, worker[0]);
	for (i = 0; i < EVENTS; i++) {
		ck_assert_int_eq(kvr_event_init(&e[i], sizeof(e[i])), KVR_OK);
		e[i].kind = i % 2 == 0 ? KVR_EVENT_STORED : KVR_EVENT_REMOVED;
		e[i].block_tokens = 1;
		e[i].hashes = 16;
	}
	for (; b.seq < 5; b.seq++) {
		s = sizes_at(2);
		s.room = EVICTIONS;
		counters_reset();
		ck_assert_int_eq(kvr_events_apply(k, worker[0], &b, e,
		    sizeof(e[0]), EVENTS, hashes, 16, NULL, 0, 2, 0, NULL),
		    KVR_OK);
		(void)within(&s);
	}
	ck_assert_uint_le(stats().held_blocks, 16);
	region_end();
}
END_TEST

/* Blocks by name: the lock is held for a piece of a batch, however long. */
START_TEST(events_of_many_blocks)
{
	enum { MOST = 20000, AT_ONCE = 256 };
	static uint64_t hashes[MOST];
	static uint32_t tokens[MOST];
	struct kvr_options o = small_options();
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_worker facts;
	struct kvr_event e;
	uint32_t i;

	o.region_bytes = 8 << 20;
	o.event_blocks = 2 * MOST;
	region_of(&o);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	for (i = 0; i < MOST; i++) {
		hashes[i] = i + 1;
		tokens[i] = i;
	}
	(void)kvr_event_init(&e, sizeof(e));
	for (i = 0; i < 3; i++, b.seq++) {
		e.kind = i == 1 ? KVR_EVENT_REMOVED : KVR_EVENT_STORED;
		e.hashes = e.tokens = i == 2 ? MOST / 10 : MOST;
		e.block_tokens = i == 1 ? 0 : 1;
		counters_reset();
		ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e),
		    1, hashes, MOST, tokens, MOST, 1, 0, &r), KVR_OK);
		ck_assert_uint_eq(r.state, KVR_EVENTS_COMPLETE);
		ck_assert_uint_eq(r.next, b.seq + 1);
		/* each is looked up, stored or removed, and on one path */
		at_most("steps", stats().max_steps, 4 * AT_ONCE + 512);
		at_most("cells", stats().max_cells, AT_ONCE + 64);
	}
	region_end();
}
END_TEST

/*
 * A table of aliases that is full: of ended lives, or of one that goes on and,
 * at its end, of an ended one. A call looks at a part of it.
 */
START_TEST(a_full_table_of_aliases)
{
	enum { MANY = 100000, FEW = 20, PART = 16384, DEAD = 64 };
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_options o = small_options();
	uint32_t tokens[FEW], i, calls = 0;
	uint64_t hashes[FEW];
	struct kvr_worker facts;
	struct kvr_event e;
	int error;

	o.event_blocks = MANY;
	o.region_bytes = 8 << 20;
	region_of(&o);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = FEW;
	for (i = 0; i < FEW; i++)
		hashes[i] = tokens[i] = i;
	k->region->alias_life = 2;
	for (i = 1; i <= MANY; i++) {
		struct alias a = { .name = i, .worker = 2,
			.life = i > MANY - DEAD ? 1 : 2 };

		ck_assert_uint_gt(alias_add(k, &a), 0);
	}
	stream_at(k, 2)->life = _i == 0 ? 0 : 2;
	stream_at(k, 2)->aliases = _i == 0 ? 0 : MANY - DEAD;
	k->region->alias_dead = _i == 0 ? MANY : DEAD;
	do {
		counters_reset();
		error = kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
		    hashes, FEW, tokens, FEW, 1, 0, NULL);
		at_most("steps for a batch", stats().max_steps, PART / 16 +
		    16 * FEW);
		calls++;
	} while (error == KVR_EBUSY);
	ck_assert_int_eq(error, KVR_OK);
	ck_assert_uint_eq(calls, _i == 0 ? 1 : MANY / PART + 1);
	alias_end(k, stream_at(k, 2));
	region_end();
}
END_TEST

/*
 * If every spare slot still has entries to reclaim, a call that needs a slot
 * reclaims some entries of the worker removed first, and returns that it has
 * to be called again.
 */
START_TEST(no_slot_is_spare)
{
	uint32_t n = 0, i, calls = 0;
	uint64_t fresh;

	big_region(8 << 20, 3, KVR_TTL_ENDLESS);
	for (i = 0; i < 3; i++)
		n = fill((uint32_t)test_amount(5000), worker[i]);
	for (i = 0; i < 3; i++) {
		counters_reset();
		ck_assert_int_eq(kvr_worker_reset(k, worker[i], &worker[i]),
		    KVR_OK);
		ck_nothing_done();
	}
	while (kvr_worker_reset(k, worker[0], &fresh) == KVR_EBUSY)
		calls++;
	worker[0] = fresh;
	ck_assert_uint_eq(calls, (n - 1) / 256);
	ck_assert_uint_eq(stats().orphaned, n);
	at_most("reclaimed", stats().max_reclaimed, 256);
	/* the slot it left held nothing, and is spare */
	ck_assert_uint_eq(do_reset(0).max_reclaimed, 0);
	region_sound();
	region_end();
}
END_TEST

/*
 * If leases keep all spare slots, they are detached a few at a time, among any
 * number of other leases.
 */
START_TEST(no_slot_is_spare_for_leases)
{
	uint32_t n = (uint32_t)test_amount(5000), i, calls = 0;
	uint64_t lease, fresh;

	big_region(64 << 20, 2, TTL);
	for (i = 0; i < n; i++) {
		say_long(30, i % 20, i);
		lease = do_reserve(worker[0], 0, 1);
		if (i % 2 != 0)
			ck_assert_int_eq(do_on_lease(COMMIT, lease, 1),
			    KVR_OK);
	}
	for (i = 0; i < 2; i++) {
		say_long(30, 2, i);
		(void)do_reserve(worker[1], 0, 1);
		ck_assert_int_eq(kvr_worker_reset(k, worker[1], &worker[1]),
		    KVR_OK);
	}
	say_one(1);
	(void)do_reserve(worker[1], 0, 1);
	counters_reset();
	while (kvr_worker_reset(k, worker[1], &fresh) == KVR_EBUSY)
		calls++;
	worker[1] = fresh;
	ck_assert_uint_eq(calls, n / WALK_LEASES);
	at_most("steps", stats().max_steps, 2 * WALK_STEPS);
	/* now those of the other worker */
	ck_assert_int_eq(kvr_worker_reset(k, worker[0], &worker[0]), KVR_OK);
	for (i = 0; i < 4; i++)
		(void)do_reset(i % 2);
	ck_assert_uint_eq(stats().leases, n + 3);
	region_sound();
	region_end();
}
END_TEST

/* A night's requests are never ended; each call ends two. */
START_TEST(leases_over_age)
{
	uint32_t n = (uint32_t)test_amount(10000), i;
	uint64_t lease, reaped;

	big_region(64 << 20, 2, TTL);
	for (i = 0; i < n; i++) {
		say_long(2 + i % 30, i % 20, i);
		lease = do_reserve(worker[i % 2], i % 3, 1);
		if (i % 4 != 0)
			ck_assert_int_eq(do_on_lease(COMMIT, lease, 1),
			    KVR_OK);
	}
	say_one(UINT32_MAX);
	for (i = 0; i < n / 4; i++) {
		reaped = stats().lease_reaps;
		ck_assert_uint_eq(do_observe(worker[0],
		    1 + lease_limit).lease_reaps, reaped + REAP);
	}
	ck_assert_uint_gt(do_reap_owner(1, 1 + lease_limit), n / 10);
	ck_assert_uint_gt(stats().leases, n / 5);
	region_end();
}
END_TEST

/*
 * A prompt from which others forked at each of its blocks. They are evicted;
 * its nodes are merged again, from the end, over several calls.
 */
START_TEST(chain_to_be_merged)
{
	uint32_t n = (uint32_t)test_amount(3000), i;
	uint64_t most = 0;
	struct kvr_stats s;

	big_region(64 << 20, 2, TTL);
	for (i = 1; i < n; i++) {
		say_long(i + 1, i, 1);
		ck_assert_int_eq(kvr_observe(k, p, worker[0], 1, 0, NULL),
		    KVR_OK);
	}
	say_long(n, n, 0);
	(void)do_observe(worker[0], 2);
	(void)do_expire(UINT32_MAX, 1 + TTL);
	ck_assert_uint_eq(stats().nodes, n);
	/* requests that come and go on that path, here and elsewhere */
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(do_on_lease(ABORT,
		    do_reserve(worker[i], 0, 1 + TTL), 1 + TTL), KVR_OK);
	for (i = 0; i < n; i++) {
		s = do_observe(worker[0], 1 + TTL);
		if (s.max_cells > most)
			most = s.max_cells;
	}
	at_most("cells", most, (16384 / 15) * 2);
	/* few nodes are left, and calls cost little now */
	ck_assert_uint_lt(stats().nodes, 3 + n / 500);
	ck_assert_uint_lt(s.max_steps, 64);
	region_end();
}
END_TEST

/* -------------------------------------------------------------- random --- */

static uint64_t lease_of[LEASES_MAX];

static void
any_lease_call(int64_t now)
{
	uint32_t i = pick(LEASES_MAX);
	enum on_lease what = (enum on_lease)pick(ON_LEASE);

	if (lease_of[i] == no_lease) {
		lease_of[i] = do_reserve(pick(2) != 0 ? worker[pick(4)] : 0,
		    pick(5), now);
		return;
	}
	(void)do_on_lease(what, lease_of[i], now);
	if (what == FINISH || what == ABORT)
		lease_of[i] = no_lease;
}

static void
any_call(int64_t now)
{
	uint32_t what = pick(100);

	say_by_chance();
	if (what < 50)
		(void)do_observe(worker[pick(4)], now);
	else if (what < 95)
		any_lease_call(now);
	else if (what < 97)
		(void)do_expire(pick(50), now);
	else if (what < 98)
		(void)do_reap_owner(pick(5), now);
	else
		(void)do_reset(pick(4));
}

/* The region is large enough, or is not. */
START_TEST(any_calls)
{
	uint64_t calls = test_amount(40000);
	struct kvr_options o = small_options();
	int64_t now = 1;
	uint32_t i;

	by_chance();
	o.region_bytes = _i != 0 ? 4 << 20 : 96 << 10;
	o.lease_limit_ns = lease_limit = 20 * TTL;
	o.max_prompt_blocks = 3000;
	region_of(&o);
	fix_key();
	memcpy(worker, id, WORKERS * sizeof(id[0]));
	memset(lease_of, 0, sizeof(lease_of));
	for (; calls > 0; calls--) {
		any_call(now);
		now += pick(1000) == 0 ? 30 * TTL : pick(20);
	}
	for (i = 0; i < 4; i++)
		do_remove(worker[i]);
	region_end();
}
END_TEST

/* A choice that needs all survivals reads each once; these are counted. */
START_TEST(survival_of_all)
{
	enum { FLEET = 64, PARTS = 200 };
	struct kvr_policy y;
	struct kvr_worker f;
	uint64_t lease;
	uint32_t i;

	big_region(16 << 20, FLEET, TTL);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = _i == 0 ? KVR_COST_BALANCED : KVR_COST_DYNAMO;
	y.temperature = _i;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = KVR_RETAIN_FEEDBACK;
	say_long(PARTS + 1, PARTS + 1, 0);
	for (i = 0; i < FLEET; i++) {
		ck_assert_int_eq(kvr_worker_set(k, worker[i], &f), KVR_OK);
		(void)do_observe(worker[i], 1);
	}
	for (i = 1; i <= PARTS; i++) {
		say_long(i + 1, i, i);
		(void)do_observe(worker[i % FLEET], 1);
	}
	/* entries end far down the line */
	say_long(2, 1, PARTS + 1);
	doubtful = FLEET;
	counters_reset();
	lease = do_reserve(0, 0, 1);
	doubtful = 0;
	ck_assert_uint_gt(stats().max_steps, 2 * FLEET);
	/* and no line is followed for each worker: the match has */
	ck_assert_uint_lt(stats().max_steps, 8 * FLEET + 2 * PARTS);
	ck_assert_int_eq(do_on_lease(ABORT, lease, 1), KVR_OK);
	region_end();
}
END_TEST

/* ---------------------------------------------------- workers * nodes --- */

enum { TURNS = 500, TURN_BLOCKS = 3, COMMON = 250 };

/* The limits of a match and of a choice: kvroute-cost(7). */
enum { CHOICE_MOST = 4096 + 1280 };

static void
set_all(uint32_t fleet, uint32_t retain, uint32_t window)
{
	struct kvr_worker f;
	uint32_t i;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	f.window_mode = window;
	f.window_tokens = window != KVR_WINDOW_FULL ? 8 : 0;
	for (i = 0; i < fleet; i++)
		ck_assert_int_eq(kvr_worker_set(k, worker[i], &f), KVR_OK);
}

/* The life of a request, of which each call is measured. */
static void
live_once(uint64_t on, uint32_t length, int64_t now)
{
	uint64_t lease;

	say_long(length, COMMON, 1);
	lease = do_reserve(on, 1, now);
	ck_assert_int_eq(do_on_lease(COMMIT, lease, now), KVR_OK);
	ck_assert_int_eq(do_on_lease(FIRST_TOKEN, lease, now), KVR_OK);
	ck_assert_int_eq(do_on_lease(OUTPUT, lease, now), KVR_OK);
	say_long(length + 2, COMMON, 1);
	ck_assert_int_eq(do_on_lease(EXTEND, lease, now), KVR_OK);
	ck_assert_int_eq(do_on_lease(FINISH, lease, now), KVR_OK);
	lease = do_reserve(on, 1, now);
	ck_assert_int_eq(do_on_lease(ABORT, lease, now), KVR_OK);
}

/*
 * A chat of many turns on one worker, each of which may have an entry, while
 * all workers hold its system prompt: no call takes a step for each worker and
 * each turn.
 */
START_TEST(long_chat_in_a_fleet)
{
	static const struct {
		uint32_t fleet, retain, window;
	} scenes[] = {
		{ 1000, KVR_RETAIN_TTL, KVR_WINDOW_BOUNDARY },
		{ 1000, KVR_RETAIN_FEEDBACK, KVR_WINDOW_DUAL },
		{ 1000, KVR_RETAIN_FEEDBACK, KVR_WINDOW_DENSE },
		{ KVR_WORKERS_MAX, KVR_RETAIN_TTL, KVR_WINDOW_BOUNDARY },
		{ KVR_WORKERS_MAX, KVR_RETAIN_FEEDBACK, KVR_WINDOW_BOUNDARY },
		{ KVR_WORKERS_MAX, KVR_RETAIN_FEEDBACK, KVR_WINDOW_FULL }
	};
	const uint32_t fleet = scenes[_i].fleet;
	uint32_t i, length;

	big_region(64 << 20, fleet, KVR_TTL_ENDLESS);
	set_all(fleet, scenes[_i].retain, scenes[_i].window);
	say_long(COMMON, COMMON, 0);
	for (i = 0; i < fleet; i++)
		(void)do_observe(worker[i], 1);
	doubtful = fleet;
	most_steps = 0;
	for (i = 0, length = COMMON; i < TURNS; i++) {
		length += TURN_BLOCKS;
		if (i + 1 == TURNS || i % 50 == 0)
			live_once(0, length, 2);
		live_once(worker[7], length, 2);
	}
	doubtful = 0;
	at_most("steps", most_steps, 8 * TURNS + CHOICE_MOST);
	if (scenes[_i].window == KVR_WINDOW_BOUNDARY)
		ck_assert_uint_gt(stats().nodes, TURNS);
	if (getenv("KVR_TELL") != NULL)
		printf("%u workers: %" PRIu64 " steps\n", (unsigned)fleet,
		    most_steps);
	region_end();
}
END_TEST

/*
 * Many workers, each with many entries on one path: a match stops, and so does
 * the survival of each. The deepest are found all the same.
 */
START_TEST(many_entries_in_a_fleet)
{
	enum { FLEET = 1000, EACH_HAS = 50 };
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i, length;

	big_region(64 << 20, FLEET, KVR_TTL_ENDLESS);
	set_all(FLEET, _i == 0 ? KVR_RETAIN_TTL : KVR_RETAIN_FEEDBACK,
	    KVR_WINDOW_FULL);
	for (length = EACH_HAS; length > 0; length--) {
		say_long(length * 5, COMMON, 0);
		for (i = 0; i < FLEET; i++)
			ck_assert_int_eq(kvr_observe(k, p, worker[i],
			    1 + EACH_HAS - length, 0, NULL), KVR_OK);
	}
	ck_assert_uint_gt(stats().entries, FLEET * EACH_HAS / 2);
	say_long(COMMON + 3, COMMON, 0);
	counters_reset();
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, EACH_HAS, &d), KVR_OK);
	ck_assert_uint_eq(d.overlap_blocks, COMMON);
	at_most("steps", stats().max_steps, CHOICE_MOST + FLEET / 2 +
	    16 * EACH_HAS);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, EACH_HAS, 0), KVR_OK);
	region_end();
}
END_TEST

/* ----------------------------------------------------------- histories --- */

enum { SYSTEMS = 8, SYSTEM_BLOCKS = 250, CHATS = 256, CHAT_MAX = 400 };

/*
 * No call of the histories below follows more links, with so many workers:
 * kvroute-cost(7).
 */
static uint64_t
hold_most(uint32_t fleet)
{
	return 8192 + 16 * (uint64_t)fleet;
}

/* A system prompt, whole or in part, is followed by the chat's own tokens. */
struct chat {
	uint32_t system, common, length, number;
};

static void
say_chat(const struct chat *c)
{
	uint32_t token[SYSTEM_BLOCKS + CHAT_MAX], i;

	for (i = 0; i < c->length; i++)
		token[i] = i < c->common ? c->system * SYSTEM_BLOCKS + i
		    : UINT32_C(0x80000000) + c->number;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, c->length),
	    KVR_OK);
}

static void
chat_on(struct chat *c, uint32_t number)
{
	c->length += 1 + pick(20);
	if (c->length <= SYSTEM_BLOCKS + CHAT_MAX && pick(6) != 0)
		return;
	c->number = number;
	c->system = pick(SYSTEMS);
	c->common = pick(8) == 0 ? 1 + pick(SYSTEM_BLOCKS) : SYSTEM_BLOCKS;
	c->length = c->common + pick(40);
}

static void
lease_on(uint32_t i, int64_t now)
{
	ck_assert_int_eq(do_on_lease(COMMIT, lease_of[i], now), KVR_OK);
	ck_assert_int_eq(do_on_lease(FIRST_TOKEN, lease_of[i], now), KVR_OK);
	ck_assert_int_eq(do_on_lease(pick(20) == 0 ? ABORT : FINISH,
	    lease_of[i], now), KVR_OK);
	lease_of[i] = no_lease;
}

/*
 * Requests have system prompts, some with a fork in the middle. Chats go on,
 * on many workers, and some workers restart. KVR_TEST_PERCENT=10000 makes a
 * million, with CK_RUN_CASE=histories for this test alone; KVR_TELL=1 prints
 * the maxima.
 */
START_TEST(histories)
{
	static const uint32_t fleets[] = { 64, 512, KVR_WORKERS_MAX };
	uint64_t requests = test_amount(10000), n;
	struct chat chat[CHATS];
	int64_t now = 1;
	uint32_t i;

	by_chance();
	big_region(64 << 20, fleets[_i], 20 * TTL);
	most_steps = 0;
	memset(chat, 0, sizeof(chat));
	memset(lease_of, 0, sizeof(lease_of));
	for (n = 0; n < requests; n++, now += pick(5) == 0) {
		struct chat *c = &chat[pick(CHATS)];

		chat_on(c, (uint32_t)n);
		say_chat(c);
		i = pick(LEASES_MAX);
		if (lease_of[i] != no_lease)
			lease_on(i, now);
		lease_of[i] = do_reserve(0, 0, now);
		if (n % 1000 == 0) {
			(void)do_reset(pick(fleets[_i]));
			(void)do_expire(100, now);
		}
	}
	at_most("steps of any call", most_steps, hold_most(fleets[_i]));
	ck_assert_uint_eq(stats().recoveries, 0);
	if (getenv("KVR_TELL") != NULL)
		printf("%u workers: %" PRIu64 " steps\n",
		    (unsigned)fleets[_i], most_steps);
	region_end();
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *suite_bounds(void);

Suite *
suite_bounds(void)
{
	Suite *s = suite_create("bounds");
	TCase *t = tcase_create("bounds");

	tcase_add_test(t, split_of_what_all_hold);
	tcase_add_test(t, prefix_that_is_parted);
	tcase_add_loop_test(t, line_that_is_full, 0, 2);
	tcase_add_test(t, lines_that_are_due);
	tcase_add_loop_test(t, end_of_what_others_parted, 0, 2);
	tcase_add_test(t, huge_prompts);
	tcase_add_test(t, room_made);
	tcase_add_test(t, room_behind_the_pinned);
	tcase_add_test(t, all_due_at_once);
	tcase_add_test(t, worker_that_held_much);
	tcase_add_test(t, events_that_make_much_leave);
	tcase_add_loop_test(t, a_full_table_of_aliases, 0, 2);
	tcase_add_test(t, events_of_many_blocks);
	tcase_add_test(t, no_slot_is_spare);
	tcase_add_test(t, no_slot_is_spare_for_leases);
	tcase_add_test(t, leases_over_age);
	tcase_add_test(t, chain_to_be_merged);
	tcase_add_loop_test(t, survival_of_all, 0, 2);
	tcase_add_loop_test(t, long_chat_in_a_fleet, 0, 6);
	tcase_add_loop_test(t, many_entries_in_a_fleet, 0, 2);
	tcase_add_loop_test(t, any_calls, 0, 2);
	suite_add_tcase(s, t);
	t = tcase_create("histories");
	tcase_add_loop_test(t, histories, 0, 3);
	suite_add_tcase(s, t);
	return s;
}
