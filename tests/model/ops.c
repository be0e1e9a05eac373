/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.c - sequences of operations: generated, printed, and shrunk when they
 * fail. world.c performs them.
 *
 * One decoder serves the random tests and the fuzzer: it asks a source for
 * small numbers, which the source makes from a seed or from bytes.
 */
#include "ops.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------ source --- */

void
ops_from_seed(struct ops_source *s, uint64_t seed)
{
	memset(s, 0, sizeof(*s));
	s->state = seed;
}

void
ops_from_bytes(struct ops_source *s, const uint8_t *data, size_t size)
{
	static const uint8_t nothing;

	memset(s, 0, sizeof(*s));
	s->data = data != NULL ? data : &nothing;
	s->size = size;
}

static bool
used_up(const struct ops_source *s)
{
	return s->data != NULL && s->at >= s->size;
}

uint32_t
ops_pick(struct ops_source *s, uint32_t n)
{
	uint64_t z;

	if (s->data != NULL)
		return used_up(s) ? 0 : s->data[s->at++] % n;
	z = s->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (uint32_t)(((z >> 32) * n) >> 32);
}

/* -------------------------------------------------------------- draw --- */

/* Weights out of 256. OP_OBSERVE has the rest. */
static const uint8_t weight[OP_KINDS] = {
	[OP_MATCH] = 24, [OP_ROUTE] = 20, [OP_CANDIDATES] = 8,
	[OP_RESERVE] = 28, [OP_RESERVE_ON] = 18, [OP_COMMIT] = 20,
	[OP_FIRST_TOKEN] = 8, [OP_EXTEND] = 14, [OP_OUTPUT] = 5,
	[OP_FINISH] = 20, [OP_ABORT] = 14, [OP_REAP] = 2,
	[OP_EXPIRE] = 10, [OP_ADD] = 3, [OP_REMOVE] = 1, [OP_RESET] = 1,
	[OP_SET] = 3, [OP_LOAD] = 3, [OP_CLEAR] = 0, [OP_BAD_CLOCK] = 2,
	[OP_CHECK] = 1,
};

/* One half of all operations, where there are events. */
static uint8_t
draw_events(struct ops_source *s)
{
	uint32_t r = ops_pick(s, 32);

	return r == 0 ? OP_EVENTS_LOST : r < 3 ? OP_EVENTS_ANEW : OP_EVENTS;
}

static uint8_t
draw_kind(struct ops_source *s, bool events)
{
	uint32_t r = ops_pick(s, 256);
	uint8_t i;

	if (events && r >= 128)
		return draw_events(s);
	r = events ? 2 * r : r;
	for (i = 0; i < OP_KINDS; i++) {
		if (r < weight[i])
			return i;
		r -= weight[i];
	}
	if (r == 0)
		return ops_pick(s, 16) == 0 ? OP_CLEAR : OP_RESET;
	return OP_OBSERVE;
}

/* Where time is calm, a prefix lives for hundreds of operations. */
static uint8_t
draw_time(struct ops_source *s, bool calm)
{
	static const uint8_t often[16] = {
		TIME_STANDS, TIME_STANDS, TIME_STANDS, TIME_STANDS,
		TIME_STANDS, TIME_STANDS, TIME_TICK, TIME_TICK,
		TIME_TICK, TIME_TICK, TIME_QUARTER, TIME_QUARTER,
		TIME_QUARTER, TIME_JUST_BEFORE, TIME_KINDS, TIME_KINDS
	};
	uint8_t t = often[ops_pick(s, 16)];

	if (t == TIME_KINDS)
		t = (uint8_t)ops_pick(s, TIME_KINDS);
	if (calm && t >= TIME_QUARTER && ops_pick(s, 40) != 0)
		t = TIME_TICK;
	return t;
}

/*
 * Lengths cluster around the sizes at which a run changes its shape: a piece
 * holds 16 blocks, a tree of them 16 times as many on each level.
 */
static uint16_t
draw_length(struct ops_source *s, uint32_t longest)
{
	uint32_t r = ops_pick(s, 64);

	if (r < 54 || longest == 0)
		return (uint16_t)(1 + r % 4);
	if (r < 58)
		return (uint16_t)(1 + ops_pick(s, 40));
	if (r < 61 || longest == 1)
		return (uint16_t)(13 + ops_pick(s, 7));
	if (longest == 2 || ops_pick(s, 8) != 0)
		return (uint16_t)(252 + ops_pick(s, 8));
	return (uint16_t)(4092 + ops_pick(s, 8));
}

static void
draw_prompt(struct ops_source *s, const struct ops_config *c, struct op *o)
{
	uint32_t i;

	o->scope = (uint8_t)ops_pick(s, 2 * c->scopes);
	if (o->scope >= c->scopes)
		o->scope = 0;
	o->segments = (uint8_t)ops_pick(s, OPS_SEGMENTS + 1);
	for (i = 0; i < o->segments; i++) {
		o->segment[i].symbol = (uint8_t)ops_pick(s, c->alphabet);
		o->segment[i].blocks = draw_length(s, c->longest);
	}
	o->tail = (uint8_t)ops_pick(s, 4);
}

static bool
takes_prompt(const struct op *o)
{
	switch (o->kind) {
	case OP_OBSERVE: case OP_MATCH: case OP_ROUTE: case OP_CANDIDATES:
	case OP_RESERVE: case OP_RESERVE_ON: case OP_EXTEND:
	case OP_BAD_CLOCK: case OP_EVENTS: case OP_EVENTS_ANEW:
		return true;
	default:
		return false;
	}
}

static bool
takes_request(const struct op *o)
{
	return o->kind == OP_ROUTE || o->kind == OP_CANDIDATES ||
	    o->kind == OP_RESERVE || o->kind == OP_RESERVE_ON;
}

static void
draw_one(struct ops_source *s, const struct ops_config *c, bool failing,
    struct op *o)
{
	memset(o, 0, sizeof(*o));
	o->kind = draw_kind(s, c->events > 0);
	if (c->no_removal && (o->kind == OP_REMOVE || o->kind == OP_RESET ||
	    o->kind == OP_CLEAR))
		o->kind = OP_OBSERVE;
	o->time = draw_time(s, c->calm);
	o->worker = (uint8_t)ops_pick(s, c->workers);
	o->slot = (uint8_t)ops_pick(s, OPS_SLOTS);
	o->arg = (uint8_t)ops_pick(s, 256);
	if (takes_prompt(o))
		draw_prompt(s, c, o);
	if (o->kind >= OP_EVENTS || (takes_request(o) && ops_pick(s, 2) == 0))
		o->variant = (uint8_t)ops_pick(s, 256);
	if (failing)
		o->fail = (uint8_t)ops_pick(s, 4);
}

size_t
ops_draw(struct ops_source *s, const struct ops_config *c, bool failing,
    struct op *ops, size_t max)
{
	size_t n;

	for (n = 0; n < max && !used_up(s); n++)
		draw_one(s, c, failing, &ops[n]);
	return n;
}

void
ops_config_draw(struct ops_source *s, struct ops_config *c)
{
	static const int64_t ttl[8] = { 100, 1000, 8, 1, 0, -1, 120, 100 };
	uint32_t r;

	memset(c, 0, sizeof(*c));
	c->name = "drawn";
	c->block_size = 1 + ops_pick(s, 4);
	r = ops_pick(s, 8);
	c->unit = r == 1 ? KVR_UNIT_BYTES : KVR_UNIT_TOKENS;
	c->hash = r == 2 ? KVR_HASH_DYNAMO : KVR_HASH_KEYED;
	c->eagle = r == 3;
	c->events = r == 4;
	c->ttl = ttl[ops_pick(s, 8)];
	c->region_bytes = UINT64_C(1) << 18;
	r = ops_pick(s, 8);
	c->max_prompt_blocks = r == 0 ? 5 : r == 1 ? 40 : KVR_AUTO;
	r = ops_pick(s, 8);
	c->workers = r == 7 ? OPS_NAMES : 1 + r;
	c->alphabet = 1 + ops_pick(s, 3);
	c->scopes = 1 + ops_pick(s, OPS_SCOPES);
	c->longest = ops_pick(s, 3);
	c->policy = ops_pick(s, 3);
	c->full = ops_pick(s, 8) == 7;
	c->calm = ops_pick(s, 2) == 1;
	c->lease_limit = ops_pick(s, 8) == 7 ? 150 : 0;
	if (c->events > 0) {
		r = ops_pick(s, 32);
		c->events = 1 + r % 4 % 3;
		c->tiers = r / 4 % 2 == 1;
		c->hash = r / 8 == 3 ? KVR_HASH_DYNAMO : KVR_HASH_KEYED;
		c->aliases = r / 8 == 2 ? 24 : 0;
	}
	if (c->full)
		c->region_bytes = c->workers * 1952 + 64 +
		    (c->workers > 8 ? 33 << 10 : 13 << 10);
}

/* ------------------------------------------------------------- print --- */

static const char *const kind_name[OP_KINDS] = {
	"observe", "match", "route", "candidates", "reserve", "reserve_on",
	"commit", "first_token", "extend", "output", "finish", "abort",
	"reap_owner", "expire", "worker_add", "worker_remove",
	"worker_reset", "worker_set", "worker_set_load", "clear",
	"bad_clock", "check", "events", "events_anew", "events_lost"
};

static const char *const time_name[TIME_KINDS] = {
	"", "now+1", "now+ttl/4", "now+ttl-1", "now+ttl", "now+ttl+1",
	"now+3*ttl", "now+10^14", "(at now-ttl/2)", "(at 0)", "now-ttl/2"
};

static void
print_prompt(FILE *to, const struct op *o)
{
	uint32_t i;

	fprintf(to, " [");
	if (o->scope > 0)
		fprintf(to, "scope%u ", o->scope);
	for (i = 0; i < o->segments; i++) {
		fprintf(to, "%s%c", i > 0 ? " " : "",
		    'A' + o->segment[i].symbol % 26);
		if (o->segment[i].blocks != 1)
			fprintf(to, "x%u", o->segment[i].blocks);
	}
	fprintf(to, o->tail > 0 ? " +%u]" : "]", o->tail);
}

void
ops_print(FILE *to, const struct op *o)
{
	fprintf(to, "%-15s w%u slot%u", kind_name[o->kind % OP_KINDS],
	    o->worker, o->slot);
	if (takes_prompt(o))
		print_prompt(to, o);
	if (o->variant > 0)
		fprintf(to, " variant=0x%02x", o->variant);
	if (o->arg > 0)
		fprintf(to, " arg=%u", o->arg);
	if (o->fail > 0)
		fprintf(to, " allocation %u fails", o->fail);
	fprintf(to, " %s\n", time_name[o->time % TIME_KINDS]);
}

void
ops_config_print(FILE *to, const struct ops_config *c)
{
	fprintf(to, "%s: block_size %u unit %u hash %u eagle %u ttl %" PRId64
	    " region %" PRIu64 " max_prompt_blocks %u workers %u alphabet %u"
	    " scopes %u longest %u policy %u full %d lease_limit %" PRId64
	    " events %u aliases %u tiers %d\n",
	    c->name, c->block_size, c->unit, c->hash, c->eagle, c->ttl,
	    c->region_bytes, c->max_prompt_blocks, c->workers, c->alphabet,
	    c->scopes, c->longest, c->policy, c->full, c->lease_limit,
	    c->events, c->aliases, c->tiers);
}

/* ------------------------------------------------------------ shrink --- */

/* Runs left; a sequence may be long and each attempt builds a world. */
struct attempts {
	const struct ops_config *c;
	struct ops_failure *failure;
	long left;
	clock_t end; /* a limit in processor time, too */
};

static bool
still_fails(struct attempts *a, const struct op *ops, size_t n)
{
	struct ops_failure f;

	if (a->left-- <= 0 || clock() > a->end ||
	    ops_run(a->c, ops, n, n > 100 ? 50 : 1, &f) == 0)
		return false;
	*a->failure = f;
	return true;
}

/* Removes pieces of `size` operations wherever the rest still fails. */
static size_t
take_out(struct attempts *a, struct op *ops, size_t n, size_t size)
{
	static struct op rest[1 << 14];
	size_t at = 0;

	while (at + size <= n && n <= sizeof(rest) / sizeof(rest[0])) {
		memcpy(rest, ops, at * sizeof(*ops));
		memcpy(rest + at, ops + at + size,
		    (n - at - size) * sizeof(*ops));
		if (still_fails(a, rest, n - size)) {
			n -= size;
			memcpy(ops, rest, n * sizeof(*ops));
		} else {
			at += size;
		}
	}
	return n;
}

/* The ways to simplify one operation; false when there are no more. */
static bool
simpler(struct op *o, unsigned way)
{
	unsigned i;

	switch (way) {
	case 0: o->time = TIME_STANDS; return true;
	case 1: o->variant = 0; return true;
	case 2: o->fail = 0; return true;
	case 3: o->scope = 0; return true;
	case 4: o->tail = 0; return true;
	case 5: o->arg = 0; return true;
	case 6: o->worker = 0; return true;
	case 7: o->slot = 0; return true;
	default: break;
	}
	i = (way - 8) / 4;
	if (i >= o->segments)
		return false;
	if (way % 4 == 0) {
		memmove(o->segment + i, o->segment + i + 1,
		    (o->segments - i - 1U) * sizeof(o->segment[0]));
		o->segments--;
	} else if (way % 4 == 1) {
		o->segment[i].blocks = 1;
	} else if (way % 4 == 2) {
		o->segment[i].blocks -= o->segment[i].blocks / 2;
	} else if (o->segment[i].blocks > 1) {
		o->segment[i].blocks--;
	}
	return true;
}

static bool
simplify(struct attempts *a, struct op *ops, size_t n)
{
	bool any = false;
	struct op before;
	unsigned way;
	size_t i;

	for (i = 0; i < n; i++) {
		for (way = 0; before = ops[i], simpler(&ops[i], way); way++) {
			if (memcmp(&before, &ops[i], sizeof(before)) == 0)
				continue;
			if (still_fails(a, ops, n))
				any = true;
			else
				ops[i] = before;
		}
	}
	return any;
}

size_t
ops_shrink(const struct ops_config *c, struct op *ops, size_t n,
    struct ops_failure *failure)
{
	struct attempts a = { c, failure, 20000,
	    clock() + 30 * CLOCKS_PER_SEC };
	size_t size, before;

	if (failure->at + 1 < n && still_fails(&a, ops, failure->at + 1))
		n = failure->at + 1;
	do {
		before = n;
		for (size = n / 2; size > 0; size /= 2)
			n = take_out(&a, ops, n, size);
	} while ((simplify(&a, ops, n) || n < before) && a.left > 0 &&
	    clock() < a.end);
	return n;
}

void
ops_report(const struct ops_config *c, struct op *ops, size_t n,
    struct ops_failure *failure)
{
	size_t i;

	fprintf(stderr, "operation %zu of %zu: %s\nshrinking ...\n",
	    failure->at, n, failure->text);
	n = ops_shrink(c, ops, n, failure);
	fprintf(stderr, "shortest found, in ");
	ops_config_print(stderr, c);
	for (i = 0; i < n; i++) {
		fprintf(stderr, "  %2zu %s ", i, i == failure->at ? ">" : " ");
		ops_print(stderr, &ops[i]);
	}
	fprintf(stderr, "operation %zu: %s\n", failure->at, failure->text);
}
