/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_event_piece.c - a long batch leads to the same state as short ones, and
 * a death between two pieces changes nothing in that.
 */
#include "event_piece.h"

#include "alias.h"
#include "alloc.h"
#include "hold.h"
#include "holds.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 1500, EVENTS = 40, REGION = 4 << 20 };

static uint64_t names[2 * BLOCKS];
static uint32_t tokens[8 * BLOCKS];
static struct kvr_event events[EVENTS];
static size_t n;
static bool bare; /* batches have no digest */

static void
setup(void)
{
	size_t i;

	k = NULL;
	holds_with(8 * BLOCKS, REGION, 4);
	for (i = 0; i < 2 * BLOCKS; i++)
		names[i] = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
	for (i = 0; i < 8 * BLOCKS; i++)
		tokens[i] = (uint32_t)(i * i % 100003);
	n = 0;
	bare = false;
}

/* The engine's blocks [from, from + blocks) of one long prompt. */
static struct kvr_event *
add(uint32_t kind, uint64_t from, uint64_t blocks)
{
	struct kvr_event *e = &events[n++];

	ck_assert_uint_le(n, EVENTS);
	(void)kvr_event_init(e, sizeof(*e));
	e->kind = kind;
	e->hashes_at = from;
	e->hashes = blocks;
	if (kind != KVR_EVENT_STORED)
		return e;
	e->block_tokens = each;
	e->tokens_at = from * each;
	e->tokens = blocks * each;
	e->flags = from > 0 ? KVR_EVENT_PARENT : 0;
	e->parent = from > 0 ? names[from - 1] : 0;
	return e;
}

static void
give(void)
{
	ck_assert_int_eq(apply_to(0, events, n, names, 2 * BLOCKS, tokens,
	    8 * BLOCKS, 1), KVR_OK);
	region_sound();
	n = 0;
}

/* Blocks of the index that worker 0 has of the prompt. */
static uint32_t
held(void)
{
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 8 * BLOCKS),
	    KVR_OK);
	return overlap(0, 1);
}

static void
ck_held(uint32_t blocks)
{
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(held(), blocks);
	ck_assert_uint_eq(worker_stats(0).events_orphans, 0);
}

/* The engine has nothing, and blocks of this size. */
static void
begin_with(uint32_t size)
{
	each = size;
	add(KVR_EVENT_CLEARED, 0, 0);
	give();
}

/* --------------------------------------------- the pieces of a batch --- */

static struct event_batch
batch_of(void)
{
	struct event_batch b = { .events = events, .element =
		sizeof(events[0]), .n = n, .hashes = names,
		.n_hashes = 2 * BLOCKS, .tokens = tokens,
		.n_tokens = 8 * BLOCKS };

	b.head.seq = seq;
	b.head.digest = bare ? 0 : seq + 1;
	return b;
}

/* The same as it is, or without a digest. */
static int
apply(void)
{
	struct kvr_event_batch b = { .size = sizeof(b), .seq = seq,
		.digest = bare ? 0 : seq + 1 };
	int error;

	got = (struct kvr_event_result){ .size = sizeof(got) };
	error = kvr_events_apply(k, id[0], &b, events, sizeof(events[0]), n,
	    names, 2 * BLOCKS, tokens, 8 * BLOCKS, 1, 0, &got);
	if (error != KVR_OK)
		return error;
	region_sound();
	id[0] = got.worker;
	seq = got.next;
	n = 0;
	return KVR_OK;
}

static struct kvr_event
event_at(const struct event_batch *b, uint64_t piece, size_t i)
{
	struct event_batch of = event_piece(b, piece);
	struct kvr_event e;

	ck_assert_uint_lt(i, of.n);
	ck_assert_int_eq(event_get(&of, i, &e), KVR_OK);
	return e;
}

START_TEST(a_short_one_is_not_cut)
{
	struct event_batch b, piece;

	add(KVR_EVENT_STORED, 0, PIECE_BLOCKS - 2);
	add(KVR_EVENT_CLEARED, 0, 0);
	add(KVR_EVENT_STORED, 0, PIECE_BLOCKS - 1);
	b = batch_of();
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_pieces, 0); /* the first is void */
	piece = event_piece(&b, 0);
	ck_assert(piece.events == events && piece.n == 3);
	event_cut_free(&b);
}
END_TEST

START_TEST(removed_from_the_end)
{
	struct event_batch b;
	struct kvr_event e;

	add(KVR_EVENT_STORED, 7, 600);
	add(KVR_EVENT_REMOVED, 0, 300);
	add(77, 0, 0);
	b = batch_of();
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_pieces, 5);
	e = event_at(&b, 1, 0);
	ck_assert_uint_eq(e.hashes_at, 7 + PIECE_BLOCKS);
	ck_assert_uint_eq(e.hashes, PIECE_BLOCKS);
	ck_assert_uint_eq(e.tokens, 4 * PIECE_BLOCKS);
	ck_assert_uint_eq(e.tokens_at, 4 * (7 + PIECE_BLOCKS));
	ck_assert_uint_eq(e.parent, names[7 + PIECE_BLOCKS - 1]);
	ck_assert_uint_eq(event_at(&b, 0, 0).parent, names[6]);
	ck_assert_uint_eq(event_at(&b, 3, 0).hashes_at, 300 - PIECE_BLOCKS);
	ck_assert_uint_eq(event_at(&b, 4, 0).hashes, 300 - PIECE_BLOCKS);
	ck_assert_uint_eq(event_at(&b, 4, 1).kind, 77);
	event_cut_free(&b);
}
END_TEST

/* Blocks of the engine of 300 of the index: one at a time. */
START_TEST(large_blocks_are_whole)
{
	struct event_batch b;

	each = 4 * (PIECE_BLOCKS + 44);
	add(KVR_EVENT_STORED, 0, 3);
	b = batch_of();
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_pieces, 3);
	ck_assert_uint_eq(event_at(&b, 2, 0).tokens, each);
	event_cut_free(&b);
}
END_TEST

/* Larger than any block: they are refused, and only looked at. */
START_TEST(absurd_blocks_weigh_little)
{
	struct event_batch b;
	struct kvr_event *e;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		e = add(KVR_EVENT_STORED, 0, BLOCKS);
		e->block_tokens = UINT32_MAX - 3; /* whole ones of the index */
		e->tokens = 0;
	}
	b = batch_of();
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_pieces, 2 * BLOCKS / PIECE_BLOCKS + 1);
	ck_assert_uint_eq(event_at(&b, 1, 0).hashes, PIECE_BLOCKS);
	event_cut_free(&b);
	give();
	ck_assert_uint_eq(got.refused, 2);
	ck_assert_uint_eq(got.orphans, 2 * BLOCKS);
}
END_TEST

/* Local hashes are cut as names are; one that does not fit counts for none. */
START_TEST(other_contents)
{
	struct kvr_options o = small_options();
	struct event_batch b;
	struct kvr_event *e;

	region_end();
	o.event_blocks = 100;
	o.block_size = 4;
	o.hash = KVR_HASH_DYNAMO;
	region_of(&o);
	e = add(KVR_EVENT_STORED, 9, 300);
	e->flags |= KVR_EVENT_LOCALS;
	e->tokens_at = 1000;
	e->tokens = 300;
	e = add(KVR_EVENT_STORED, 0, 300);
	e->tokens--;
	e = add(KVR_EVENT_STORED, 0, 300);
	e->flags |= KVR_EVENT_LOCALS;
	e->tokens = 2;
	b = batch_of();
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_uint_eq(b.n_pieces, 6);
	ck_assert_uint_eq(event_at(&b, 1, 0).tokens, 300 - PIECE_BLOCKS);
	ck_assert_uint_eq(event_at(&b, 1, 0).tokens_at, 1000 + PIECE_BLOCKS);
	ck_assert_uint_eq(event_at(&b, 2, 0).tokens, 0);
	ck_assert_uint_eq(event_at(&b, 4, 0).tokens, 0);
	event_cut_free(&b);
}
END_TEST

START_TEST(no_memory)
{
	uint32_t i;

	for (i = 1; i <= 2; i++) {
		struct event_batch b;

		n = 0;
		add(KVR_EVENT_STORED, 0, BLOCKS);
		b = batch_of();
		alloc_fail_at(i);
		ck_assert_int_eq(event_cut(k, &b), KVR_ENOMEM);
		ck_assert_ptr_null(b.cut);
		alloc_reset();
	}
	alloc_fail_at(3);
	ck_assert_int_eq(apply_to(0, events, n, names, 2 * BLOCKS, tokens,
	    8 * BLOCKS, 1), KVR_ENOMEM);
	alloc_reset();
	give();
	ck_held(BLOCKS);
}
END_TEST

/* ---------------------------------------------- as if it were not cut --- */

START_TEST(no_piece_takes_long)
{
	k->region->counts.max_steps = 0;
	add(KVR_EVENT_STORED, 0, BLOCKS);
	give();
	ck_held(BLOCKS);
	ck_assert_uint_eq(worker_stats(0).events_blocks, BLOCKS + 1);
	ck_assert_uint_le(stats().max_steps, 4 * PIECE_BLOCKS);
	add(KVR_EVENT_REMOVED, 100, BLOCKS - 100);
	give();
	ck_held(100);
	ck_assert_uint_le(stats().max_steps, 4 * PIECE_BLOCKS);
	add(KVR_EVENT_REMOVED, 0, 100);
	give();
	ck_held(0);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 0);
}
END_TEST

START_TEST(time_goes_back_once)
{
	begin_with(4);
	ck_assert_int_eq(kvr_observe(k, say("abcd"), id[1], 7, 0, NULL),
	    KVR_OK);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	give();
	ck_assert_uint_eq(stats().clock_back, 1);
}
END_TEST

/* The first piece resets the worker, and no other one does. */
START_TEST(a_restart_in_pieces)
{
	uint64_t before = id[0];

	add(KVR_EVENT_STORED, 0, 5);
	give();
	seq = 0;
	add(KVR_EVENT_RESTARTED, 0, 0);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	give();
	ck_assert_uint_ne(id[0], before);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_RESTARTED);
	ck_assert_uint_eq(got.stored, BLOCKS);
	ck_assert_uint_eq(worker_stats(0).events_restarts, 1);
	ck_held(BLOCKS);
}
END_TEST

/* Blocks of the engine: a prompt becomes longer and shorter at its end. */
static uint64_t
grow_and_shrink(uint64_t at, size_t most)
{
	uint64_t more;

	while (n < most) {
		more = 1 + pick(pick(4) == 0 ? 700 : 30);
		if (pick(3) > 0 && at + more <= BLOCKS) {
			add(KVR_EVENT_STORED, at, more);
			at += more;
		} else if (more <= at) {
			at -= more;
			add(KVR_EVENT_REMOVED, at, more);
		} else {
			add(77, 0, 0);
		}
	}
	return at;
}

/* Engine's blocks that are equal, or several of the index. */
static const uint32_t sizes[] = { 4, 8 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void
ck_all(uint64_t blocks)
{
	uint64_t parts = each / 4;

	ck_held((uint32_t)(blocks * each / 4));
	ck_assert_uint_eq(worker_stats(0).events_blocks,
	    blocks > 0 ? blocks * parts + 1 : 0);
}

START_TEST(equal_to_short_ones)
{
	uint64_t at = 0, turns = test_amount(60);

	by_chance();
	begin_with(sizes[_i]);
	for (; turns > 0; turns--) {
		at = grow_and_shrink(at, 1 + pick(EVENTS));
		give();
		ck_all(at);
	}
}
END_TEST

/* ------------------------------------------------ between two pieces --- */

/* Applies a batch until death after so many pieces; returns the total. */
static uint64_t
die_after(uint64_t pieces)
{
	struct event_batch b = batch_of();
	struct stream *s = stream_at(k, 1), before;
	struct event_sum sum;
	uint32_t slot;
	struct txn c;
	uint64_t i;

	ck_assert(worker_slot(k, id[0], &slot));
	ck_assert_int_eq(event_sum(&b, &sum), KVR_OK);
	ck_assert_int_eq(event_cut(k, &b), KVR_OK);
	ck_assert_int_eq(event_hash(k, &b), KVR_OK);
	for (i = 0; i < pieces; i++) {
		ck_assert_int_eq(txn_write_begin(k, &c, 1, 0), KVR_OK);
		before = *s;
		if (i == 0 && event_empties(k, slot, &b, &sum,
		    event_outcome(s, &b, &sum)))
			ck_assert(hold_nothing(k, slot));
		if (event_begun(s, &b, i > 0))
			event_go_on(k, slot, &b, 1);
		else
			(void)event_take(k, slot, &before, &b, &sum,
			    event_outcome(s, &b, &sum), 1);
		ck_assert_int_eq(txn_write_end(k, &c, KVR_OK), KVR_OK);
	}
	event_hash_free(&b);
	event_cut_free(&b);
	return b.n_pieces;
}

START_TEST(a_death_applies_nothing_twice)
{
	uint64_t at = 0, turns = test_amount(60), pieces;

	by_chance();
	begin_with(sizes[_i]);
	for (; turns > 0; turns--) {
		at = grow_and_shrink(at, 1 + pick(EVENTS));
		pieces = die_after(0);
		if (pieces > 1)
			(void)die_after(1 + pick((uint32_t)pieces - 1));
		region_sound();
		ck_assert_uint_eq(worker_stats(0).events_next, seq);
		ck_assert_uint_eq(stream_at(k, 1)->pieces > 0, pieces > 1);
		give();
		ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
		ck_all(at);
	}
	/* copies that were counted twice would stay */
	add(KVR_EVENT_REMOVED, 0, at);
	give();
	ck_all(0);
}
END_TEST

/* The same by a process that is killed, in memory that outlives it. */
START_TEST(another_process_goes_on)
{
	struct kvr_options o = small_options();
	struct kvr_worker facts;
	int status;
	void *at;
	pid_t pid;

	region_end();
	o.event_blocks = 8 * BLOCKS;
	o.region_bytes = REGION;
	o.block_size = 4;
	at = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	ck_assert_int_eq(kvr_new_at(&o, at, REGION, &k), KVR_OK);
	people(o.max_workers);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	pid = fork();
	ck_assert_int_ne(pid, -1);
	if (pid == 0) {
		ck_assert_int_eq(kvr_attach_at(&o, at, REGION, &k), KVR_OK);
		(void)die_after(3);
		(void)kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	ck_assert_uint_eq(held(), 3 * PIECE_BLOCKS);
	give();
	ck_all(BLOCKS);
	add(KVR_EVENT_REMOVED, 0, BLOCKS);
	give();
	ck_all(0);
}
END_TEST

/* Batch 1 is begun, and another batch 1 comes. */
START_TEST(an_engine_restarts_meanwhile)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	(void)die_after(2);
	stream_at(k, 1)->begun++;
	ck_assert_int_eq(apply_to(0, events, n, names, 2 * BLOCKS, tokens,
	    8 * BLOCKS, 1), KVR_OK);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_RESTARTED);
	ck_assert_uint_eq(got.next, 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(held(), 0);
	region_sound();
}
END_TEST

/*
 * The caller makes other events of the same bytes: the digest is the same, and
 * pieces of the one batch would be followed by pieces of the other.
 */
START_TEST(other_events_of_the_same_bytes)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	(void)die_after(2);
	ck_assert_uint_eq(stream_at(k, 1)->pieces, 2);
	n = 0;
	if (_i == 0)
		add(KVR_EVENT_STORED, 300, BLOCKS - 300);
	else if (_i == 1)
		add(KVR_EVENT_STORED, 0, 5);
	ck_assert_int_eq(apply(), KVR_OK);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(got.next, 2);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(stream_at(k, 1)->pieces, 0);
	ck_assert_uint_eq(stream_at(k, 1)->cut, 0);
}
END_TEST

/* Adds as many blocks of another prompt. */
static void
add_other(uint64_t blocks)
{
	struct kvr_event *e = add(KVR_EVENT_STORED, 0, blocks);

	e->hashes_at = BLOCKS;
	e->tokens_at = BLOCKS * each;
}

/* The stream has no digest, or the batch, or both: the same, and another. */
START_TEST(without_a_digest)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	bare = _i % 3 != 1;
	(void)die_after(2);
	bare = _i % 3 != 0;
	if (_i >= 3) {
		n = 0;
		add_other(BLOCKS);
	}
	ck_assert_int_eq(apply(), KVR_OK);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(got.next, 2);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(stream_at(k, 1)->pieces, 0);
	ck_assert_uint_eq(worker_stats(0).events_held, 0); /* not known */
	add(KVR_EVENT_CLEARED, 0, 0);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	ck_assert_int_eq(apply(), KVR_OK);
	ck_all(BLOCKS);
}
END_TEST

/* Batch 0 is a restart then, and known again. */
START_TEST(batch_0_without_a_digest)
{
	add(KVR_EVENT_STORED, 0, BLOCKS);
	bare = true;
	(void)die_after(2);
	region_sound(); /* it is complete, and nothing has been passed */
	ck_assert_int_eq(apply(), KVR_OK);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_RESTARTED);
	ck_all(BLOCKS);
}
END_TEST

/* A caller goes on with a batch that it began itself, if it is still there. */
START_TEST(another_feeder_between_two_pieces)
{
	struct stream *s = stream_at(k, 1);
	struct event_batch b;

	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	bare = true;
	(void)die_after(2);
	b = batch_of();
	b.n_pieces = 6;
	b.contents = s->cut;
	ck_assert(event_begun(s, &b, true));
	ck_assert(!event_begun(s, &b, false));
	b.head.digest = 7;
	ck_assert(!event_begun(s, &b, true));
	s->begun = 8;
	ck_assert(!event_begun(s, &b, true));
	b.head.digest = 8;
	ck_assert(event_begun(s, &b, true) && event_begun(s, &b, false));
	b.head.seq++;
	ck_assert(!event_begun(s, &b, true));
	b.head.seq--;
	b.contents++;
	ck_assert(!event_begun(s, &b, true));
	b.contents--;
	b.n_pieces = 2;
	ck_assert(!event_begun(s, &b, true));
}
END_TEST

/* A batch is given up after a loss, a reset, or in a full region. */
START_TEST(it_is_not_gone_on_with)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	(void)die_after(2);
	if (_i == 0)
		ck_assert_int_eq(kvr_events_lost(k, id[0], 7), KVR_OK);
	else if (_i == 1)
		ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	else
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
	region_sound();
	seq = _i == 0 ? 7 : 1;
	give();
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(got.next, _i == 0 ? 8 : 2);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(stream_at(k, 1)->pieces, 0);
	add(KVR_EVENT_CLEARED, 0, 0);
	add(KVR_EVENT_STORED, 0, 700);
	give();
	ck_all(700);
}
END_TEST

/* A gap begins at the batch that was broken off, which can be given again. */
START_TEST(a_gap_after_a_death)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	(void)die_after(2);
	seq = 3;
	ck_assert_int_eq(apply_to(0, events, n, names, 2 * BLOCKS, tokens,
	    8 * BLOCKS, 1), KVR_OK);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_GAP);
	ck_assert_uint_eq(got.next, 1);
	ck_assert_uint_eq(held(), 2 * PIECE_BLOCKS);
	give();
	ck_all(BLOCKS);
}
END_TEST

/*
 * Damage can claim more pieces than the batch has. The batch is taken anew,
 * and copies that were counted twice are dropped.
 */
START_TEST(damage_ends)
{
	begin_with(4);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	(void)die_after(2);
	stream_at(k, 1)->pieces = UINT64_MAX;
	give();
	ck_assert_uint_eq(stream_at(k, 1)->pieces, 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	add(KVR_EVENT_CLEARED, 0, 0);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	give();
	ck_all(BLOCKS);
	add(KVR_EVENT_REMOVED, 0, BLOCKS);
	give();
	ck_all(0);
}
END_TEST

/* ------------------------------------------------- a table that is full --- */

enum { MANY = 40000, DEAD = 4 * BLOCKS, SPARE = 300 };

/*
 * Two workers have five blocks each. All aliases but these and SPARE are roots
 * of the second, and the last of them, which are of a life that has ended, are
 * the last that a search comes to.
 */
static void
fill_table(void)
{
	struct alias a = { .worker = 2 };
	uint32_t i, others, ended;
	struct stream *s;

	holds_with(MANY, REGION, 4);
	s = stream_at(k, 2);
	add(KVR_EVENT_STORED, 0, 5);
	ck_assert_int_eq(apply_to(1, events, n, names, 2 * BLOCKS, tokens,
	    8 * BLOCKS, 1), KVR_OK);
	seq = 0;
	give();
	ended = alias_life(k);
	others = MANY - SPARE - (k->region->alias_fresh - 1);
	for (i = 0; i < others; i++) {
		a.name = i;
		a.life = i < others - DEAD ? s->life : ended;
		ck_assert_uint_gt(alias_add(k, &a), 0);
	}
	s->aliases -= DEAD;
	k->region->alias_dead = DEAD;
	region_sound();
}

/*
 * A repeated batch, one too early, one of a stream that is degraded, and the
 * rest of one that was begun before that.
 */
START_TEST(what_adds_nothing_waits_for_nothing)
{
	static const uint32_t outcomes[] = { KVR_EVENTS_DUPLICATE,
		KVR_EVENTS_GAP, KVR_EVENTS_APPLIED, KVR_EVENTS_APPLIED };

	fill_table();
	add(KVR_EVENT_STORED, 5, 250);
	add(KVR_EVENT_STORED, 255, 1000);
	if (_i == 0)
		seq = 0;
	else if (_i == 1)
		seq = 7;
	if (_i == 3)
		(void)die_after(1);
	if (_i >= 2)
		ck_assert_int_eq(kvr_events_lost(k, id[0], seq), KVR_OK);
	give();
	ck_assert_uint_eq(got.outcome, outcomes[_i]);
	ck_assert_uint_eq(k->region->alias_sweep, 0);
	ck_assert_uint_ge(k->region->alias_dead, _i < 2 ? DEAD : DEAD + 6);
}
END_TEST

/*
 * A restart resets the worker with its first piece, for which there is room; a
 * later one waits for aliases that are dead, and they are far away.
 */
START_TEST(a_later_piece_waits)
{
	uint64_t before;

	fill_table();
	before = id[0];
	seq = 0;
	add(KVR_EVENT_RESTARTED, 0, 0);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	give();
	ck_assert_uint_ne(id[0], before);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_RESTARTED);
	ck_assert_uint_eq(got.next, 1);
	ck_assert_uint_eq(got.stored, BLOCKS);
	ck_assert_uint_eq(worker_stats(0).events_restarts, 1);
	ck_held(BLOCKS);
}
END_TEST

/* Moves aliases of worker 1 from the one life to the other. */
static void
bury(uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 1; i < k->region->alias_fresh; i++)
		if (alias_at(k, i)->worker == 2 && alias_at(k, i)->life == from)
			write_once(alias_at(k, i)->life, to);
}

/* If they are never found, as only damage does, the call returns its place. */
START_TEST(a_later_piece_fails)
{
	uint64_t before, i;
	uint32_t ended;

	fill_table();
	before = id[0];
	ended = k->region->alias_life;
	bury(ended, 0);
	seq = 0;
	add(KVR_EVENT_RESTARTED, 0, 0);
	add(KVR_EVENT_STORED, 0, BLOCKS);
	ck_assert_int_eq(apply(), KVR_EBUSY);
	ck_assert_uint_ne(got.worker, 0);
	ck_assert_uint_ne(got.worker, before);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_RESTARTED);
	ck_assert_uint_eq(got.next, 0);
	id[0] = got.worker;
	ck_assert_uint_eq(held(), PIECE_BLOCKS);
	ck_assert_int_eq(apply(), KVR_EBUSY);
	ck_assert_uint_eq(got.worker, 0); /* nothing more was applied */
	bury(0, ended);
	for (i = 0; apply() == KVR_EBUSY; i++) /* the same, where it was */
		ck_assert_uint_lt(i, alias_rounds(k));
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(got.worker, id[0]);
	ck_assert_uint_eq(worker_stats(0).events_restarts, 1);
	ck_held(BLOCKS);
}
END_TEST

Suite *suite_event_piece(void);

Suite *
suite_event_piece(void)
{
	Suite *s = suite_create("event_piece");
	TCase *t = tcase_create("event_piece");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, a_short_one_is_not_cut);
	tcase_add_test(t, removed_from_the_end);
	tcase_add_test(t, large_blocks_are_whole);
	tcase_add_test(t, absurd_blocks_weigh_little);
	tcase_add_test(t, other_contents);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, no_piece_takes_long);
	tcase_add_test(t, time_goes_back_once);
	tcase_add_test(t, a_restart_in_pieces);
	tcase_add_loop_test(t, equal_to_short_ones, 0, SIZES);
	tcase_add_loop_test(t, a_death_applies_nothing_twice, 0, SIZES);
	tcase_add_test(t, another_process_goes_on);
	tcase_add_test(t, an_engine_restarts_meanwhile);
	tcase_add_loop_test(t, other_events_of_the_same_bytes, 0, 3);
	tcase_add_loop_test(t, without_a_digest, 0, 6);
	tcase_add_test(t, batch_0_without_a_digest);
	tcase_add_test(t, another_feeder_between_two_pieces);
	tcase_add_loop_test(t, it_is_not_gone_on_with, 0, 3);
	tcase_add_test(t, a_gap_after_a_death);
	tcase_add_test(t, damage_ends);
	tcase_add_loop_test(t, what_adds_nothing_waits_for_nothing, 0, 4);
	tcase_add_test(t, a_later_piece_waits);
	tcase_add_test(t, a_later_piece_fails);
	suite_add_tcase(s, t);
	return s;
}
