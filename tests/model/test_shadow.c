/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_shadow.c - the same calls on a region and on a plain model of caches.
 *
 * All short sequences of some calls, and long random ones of all calls. One
 * region has workers by TTL, by capacity and by feedback, whose prompts share
 * prefixes. After each call the overlaps of prompts and the blocks held, in use
 * and ahead of each worker must be equal.
 */
#include "id.h"
#include "inner.h"
#include "shadow.h"

#include <stdarg.h>
#include <stdio.h>

static struct shadow shadow;
static uint64_t lease[SHADOW_LEASES];
static uint64_t calls; /* so far, of this test */
static char history[8192];
static size_t told;
/* The reports about workers with a capacity that they may contradict. */
static enum { SILENT, DENIED, AGREED, SAYINGS } saying;
static uint64_t contradicted; /* finishes at a disbelieved capacity */

static void
begin(uint32_t block_size, int64_t ttl, int64_t idle_limit)
{
	struct kvr_options o = small_options();

	o.region_bytes = 384 << 10; /* nothing is evicted for room */
	o.block_size = block_size;
	o.ttl_ns = ttl;
	o.idle_limit_ns = idle_limit;
	o.lease_limit_ns = INT64_MAX / 4;
	region_of(&o);
	shadow_begin(&shadow, block_size, ttl, idle_limit);
	memset(lease, 0, sizeof(lease));
	told = 0;
	saying = SILENT;
}

/* Records a step, to be printed on a failure. */
static void __attribute__((format(printf, 1, 2)))
tell(const char *format, ...)
{
	va_list args;
	int n;

	calls++;
	if (told > sizeof(history) / 2) {
		memmove(history, history + told / 2, told - told / 2);
		told -= told / 2;
	}
	va_start(args, format);
	n = vsnprintf(history + told, sizeof(history) - told, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < sizeof(history) - told)
		told += (size_t)n;
}

#define equal(what, worker, is, must_be) do { \
	uint64_t is_ = (is), must_be_ = (must_be); \
	if (is_ != must_be_) \
		ck_abort_msg("%s of worker %u: %" PRIu64 ", must be %" \
		    PRIu64 " (KVR_SEED=%" PRIu64 ") after%.*s", what, worker, \
		    is_, must_be_, seed, (int)told, history); \
} while (0)

/* The current prompt, for which no drawing is to be made. */
static void
speak(const char *text)
{
	uint32_t token[SHADOW_TEXT], i;

	for (i = 0; text[i] != '\0'; i++)
		token[i] = (unsigned char)text[i];
	must(kvr_prompt_set_tokens(p, NULL, token, i) == KVR_OK);
}

/* ------------------------------------------------------------- compare --- */

static uint32_t
overlap_of(uint32_t worker, const char *text)
{
	speak(text);
	return overlap(worker, shadow.now);
}

/* Compares the blocks evicted as whole leaves with the order of last use. */
static void
compare_leaves(uint32_t worker)
{
	const struct shadow_worker *w = &shadow.worker[worker];
	bool left[SHADOW_BLOCKS];
	char text[SHADOW_TEXT];
	uint32_t i;

	for (i = 0; i < w->blocks; i++) {
		const struct shadow_block *b = &w->block[i];

		memcpy(text, b->text, b->length);
		text[b->length] = '\0';
		left[i] = overlap_of(worker, text) <
		    b->length / shadow.block_size;
	}
	equal("order by last use", worker, shadow_leaves(&shadow, worker,
	    left), true);
}

/* The number is the same and all of them match: the sets are equal. */
static void
compare_blocks(uint32_t worker)
{
	const struct shadow_worker *w = &shadow.worker[worker];
	char text[SHADOW_TEXT];
	uint32_t i;

	for (i = 0; i < w->blocks; i++) {
		const struct shadow_block *b = &w->block[i];

		memcpy(text, b->text, b->length);
		text[b->length] = '\0';
		equal("overlap", worker, overlap_of(worker, text),
		    b->length / shadow.block_size);
	}
}

static void
compare(uint32_t workers, const char *text)
{
	const struct slot *s;
	uint32_t i;

	for (i = 0; i < workers; i++) {
		if (shadow.worker[i].eviction == KVR_EVICT_LEAF)
			compare_leaves(i);
		s = slot_at(k, id_slot(id[i]));
		equal("blocks held", i, s->held, shadow_held(&shadow, i));
		equal("blocks in use", i, s->active, shadow_active(&shadow,
		    i));
		equal("anonymous", i, s->anonymous, shadow_nameless(&shadow,
		    i));
		equal("ahead", i, s->ahead, shadow.worker[i].ahead);
		equal("output", i, s->output, shadow.worker[i].output);
		equal("overlap", i, overlap_of(i, text), shadow_overlap(
		    &shadow, i, text));
	}
}

/* ---------------------------------------------------------------- both --- */

static void
at(int64_t now)
{
	must(expire(now, UINT32_MAX) == 0);
	shadow_expire(&shadow, now);
}

static void
do_facts(uint32_t worker, uint32_t retain, uint64_t capacity,
    uint32_t eviction)
{
	struct kvr_worker f;

	tell(" facts(%u, %u, %u, %u)", worker, retain, (unsigned)capacity,
	    eviction);
	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.retain = retain;
	f.capacity_tokens = capacity;
	f.eviction = eviction;
	must(kvr_worker_set(k, id[worker], &f) == KVR_OK);
	shadow_believe(&shadow, worker,
	    worker_stats(worker).retain != KVR_RETAIN_FEEDBACK);
	shadow_facts(&shadow, worker, retain, capacity, eviction);
	at(shadow.now); /* with another TTL */
}

static void
do_observe(uint32_t worker, const char *text)
{
	tell(" observe(%u, %s)", worker, text);
	speak(text);
	must(observed(worker, shadow.now) == p->blocks);
	shadow_observe(&shadow, worker, text);
}

static void
do_reserve(uint32_t i, uint32_t worker, const char *text, uint64_t owner)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	tell(" reserve(%u, %u, %s)", i, worker, text);
	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.owner = owner;
	speak(text);
	must(kvr_lease_open_on(k, p, &r, id[worker], shadow.now, &d) == KVR_OK);
	must(d.recorded_blocks == p->blocks && d.lease != 0);
	lease[i] = d.lease;
	shadow_reserve(&shadow, i, worker, text, owner);
}

static void
do_commit(uint32_t i)
{
	tell(" commit(%u)", i);
	must(kvr_lease_commit(k, lease[i], shadow.now, 0) == KVR_OK);
	shadow_commit(&shadow, i);
}

static void
do_extend(uint32_t i, const char *more)
{
	char text[SHADOW_TEXT];

	snprintf(text, sizeof(text), "%.*s%s", (int)shadow.lease[i].length,
	    shadow.lease[i].text, more);
	tell(" extend(%u, %s)", i, text);
	speak(text);
	must(kvr_lease_extend(k, lease[i], p, shadow.now, 0) == KVR_OK);
	if (!shadow.lease[i].committed)
		shadow_commit(&shadow, i);
	shadow_extend(&shadow, i, text);
}

static void
do_output(uint32_t i, uint32_t blocks)
{
	tell(" output(%u, %u)", i, blocks);
	must(kvr_lease_output(k, lease[i], blocks, shadow.now, 0) == KVR_OK);
	shadow_output(&shadow, i, blocks);
}

/*
 * Returns whether a report may contradict the worker of a lease. trust.c
 * decides whether a capacity is believed; the evictions that follow, and their
 * times, are compared.
 */
static bool
may_contradict(uint32_t i)
{
	const struct shadow_lease *l = &shadow.lease[i];
	const struct shadow_worker *w = &shadow.worker[l->worker];

	return w->retain == KVR_RETAIN_AUTO && w->capacity > 0 &&
	    l->life_of == w->life_of;
}

static void
do_finish(uint32_t i, uint64_t completion)
{
	struct kvr_report r = { .size = sizeof(r) };
	uint32_t worker = shadow.lease[i].worker;

	tell(" finish(%u, %u, %u)", i, (unsigned)completion, saying);
	r.completion_tokens = completion;
	if (saying != SILENT && may_contradict(i))
		r.kind = KVR_REPORT_VALUE;
	if (saying == AGREED)
		r.cached_tokens = shadow.lease[i].asked;
	must(kvr_lease_finish(k, lease[i], &r, shadow.now, 0) == KVR_OK);
	if (r.kind == KVR_REPORT_VALUE) {
		shadow_believe(&shadow, worker,
		    worker_stats(worker).retain == KVR_RETAIN_CAPACITY);
		contradicted += shadow.worker[worker].contradicted;
	}
	shadow_finish(&shadow, i, completion);
}

static void
do_abort(uint32_t i)
{
	tell(" abort(%u)", i);
	must(kvr_lease_abort(k, lease[i], shadow.now, 0) == KVR_OK);
	shadow_abort(&shadow, i);
}

static void
do_reset(uint32_t worker)
{
	uint64_t fresh;

	tell(" reset(%u)", worker);
	must(kvr_worker_reset(k, id[worker], &fresh) == KVR_OK);
	id[worker] = fresh;
	shadow_reset(&shadow, worker);
}

static void
do_reap(uint64_t owner)
{
	uint64_t at = 0;
	uint32_t ended;

	tell(" reap(%u)", (unsigned)owner);
	must(kvr_owner_reap(k, owner, shadow.now, &at, &ended) == KVR_OK);
	must(at == 0);
	equal("reaped", 0, ended, shadow_reap(&shadow, owner));
}

static bool
is_open(uint32_t i)
{
	return shadow.lease[i].open;
}

/* -------------------------------------------------- all short sequences --- */

/* Each call is valid in any state, or does nothing; one worker, room 3. */
static void
short_call(uint32_t which)
{
	static const char *const text[] = { "a", "abc", "abd", "bc", "abcde" };
	uint32_t i = which % 2;

	switch (which) {
	case 0: case 1: case 2: case 3: case 4:
		do_observe(0, text[which]);
		break;
	case 5: case 6:
		if (!is_open(i))
			do_reserve(i, 0, i == 0 ? "abcd" : "abd", 1 + i);
		break;
	case 7: case 8:
		if (is_open(i))
			do_commit(i);
		break;
	case 9: case 10:
		if (is_open(i))
			do_finish(i, i * 2);
		break;
	case 11: case 12:
		if (is_open(i))
			do_abort(i);
		break;
	case 13:
		if (is_open(0))
			do_extend(0, "e");
		break;
	case 14:
		if (is_open(1))
			do_output(1, 2);
		break;
	case 15:
		do_facts(0, KVR_RETAIN_AUTO, 2, KVR_EVICT_RELEASED);
		break;
	default:
		do_observe(1, text[1]);
	}
}

enum { SHORT_CALLS = 17 };

static void
all_of_length(uint32_t length)
{
	uint64_t sequences = 1, n, rest;
	uint32_t i;

	for (i = 0; i < length; i++)
		sequences *= SHORT_CALLS;
	for (n = 0; n < sequences; n++) {
		must(kvr_clear(k) == KVR_OK);
		shadow_begin(&shadow, 1, 1000, 1000);
		memset(lease, 0, sizeof(lease));
		told = 0;
		do_facts(0, KVR_RETAIN_AUTO, 4, KVR_EVICT_RELEASED);
		rest = n;
		for (i = 0; i < length; i++) {
			at(1 + i);
			short_call((uint32_t)(rest % SHORT_CALLS));
			rest /= SHORT_CALLS;
			compare(1, "abcde");
		}
		compare(2, "abd");
		compare(1, "bc");
		if (n % 64 == 0)
			must(kvr_check(k) == KVR_OK);
	}
}

START_TEST(all_of_four)
{
	uint32_t length;

	begin(1, 1000, 1000);
	for (length = 1; length <= (test_amount(100) == 100 ? 4 : 2);
	    length++)
		all_of_length(length);
	region_end();
}
END_TEST

/* -------------------------------------------------------------- random --- */

static const char *
some_text(uint32_t most)
{
	static char text[SHADOW_TEXT];
	uint32_t n = 1 + pick(most), i, odd = 2 + pick(12);

	for (i = 0; i < n; i++)
		text[i] = pick(odd) == 0 ? 'b' : 'a';
	text[n] = '\0';
	return text;
}

/* `leaves` allows no outputs, no other order, and one lease end at a time. */
static void
any_facts(uint32_t worker, bool leaves)
{
	static const uint32_t modes[] = { KVR_RETAIN_CAPACITY,
		KVR_RETAIN_AUTO, KVR_RETAIN_AUTO, KVR_RETAIN_FEEDBACK,
		KVR_RETAIN_TTL };

	do_facts(worker, modes[pick(5)], (5 + pick(60)) * shadow.block_size -
	    pick(shadow.block_size), leaves ? KVR_EVICT_LEAF
	    : KVR_EVICT_RELEASED);
}

static void
any_of_lease(uint32_t i, bool leaves)
{
	switch (pick(9)) {
	case 0: case 1:
		do_commit(i);
		break;
	case 2:
		if (shadow.lease[i].length < 50)
			do_extend(i, some_text(9));
		break;
	case 3:
		if (!leaves)
			do_output(i, pick(5));
		break;
	case 4:
		do_abort(i);
		break;
	default:
		do_finish(i, leaves ? 0 : pick(2) * pick(60));
	}
}

static void
any_call(bool leaves)
{
	uint32_t i = pick(SHADOW_LEASES), worker = pick(WORKERS);
	/* whole blocks: an engine's incomplete last one is anonymous */
	uint32_t most = leaves ? 20 : 40;

	/* a capacity that is set anew is believed again: seldom then */
	if (pick(500) == 0)
		saying = pick(SAYINGS);
	if (pick(saying == SILENT ? 60 : 1000) == 0) {
		any_facts(worker, leaves);
	} else if (pick(saying == SILENT ? 200 : 1000) == 0) {
		do_reset(worker);
	} else if (pick(100) == 0 && !leaves) {
		do_reap(1 + pick(3));
	} else if (pick(3) == 0) {
		do_observe(worker, some_text(most));
	} else if (!is_open(i)) {
		do_reserve(i, worker, some_text(most), 1 + pick(3));
	} else {
		any_of_lease(i, leaves);
	}
}

static void
by_chance_with(uint32_t block_size, int64_t ttl, int64_t idle_limit,
    bool leaves, uint64_t n)
{
	uint32_t i;

	begin(block_size, ttl, idle_limit);
	for (i = 0; i < WORKERS; i++)
		any_facts(i, leaves);
	for (; n > 0; n--) {
		at(shadow.now + (pick(2) == 0 ? 0 : pick(20)));
		any_call(leaves);
		compare(WORKERS, some_text(40));
		compare_blocks(pick(WORKERS));
		if (n % 32 == 0)
			must(kvr_check(k) == KVR_OK);
	}
	ck_assert(stats().evicted_region == 0);
	region_end();
}

START_TEST(released_by_chance)
{
	uint64_t n = test_amount(4000);
	uint32_t block;

	by_chance();
	for (block = 1; block <= 4; block++)
		by_chance_with(block, 700, 1500, false, n);
	by_chance_with(3, 100, 30, false, n);
	by_chance_with(1, 1500, 300, false, n);
	/*
	 * Goes on until workers with a disbelieved capacity had some blocks.
	 * This takes a long round, so these are whole in a short run too.
	 */
	for (block = 0; contradicted <= 10 && block < 40; block++)
		by_chance_with(1 + block % 4, 700, 1500, false, 4000);
	ck_assert_uint_gt(contradicted, 10);
}
END_TEST

START_TEST(leaves_by_chance)
{
	uint64_t n = test_amount(4000);

	by_chance();
	by_chance_with(1, 700, 1500, true, n);
	by_chance_with(1, 100, 1500, true, n);
}
END_TEST

Suite *suite_shadow(void);

Suite *
suite_shadow(void)
{
	Suite *s = suite_create("shadow");
	TCase *t = tcase_create("shadow");

	suite_add_tcase(s, t);
	tcase_add_test(t, all_of_four);
	tcase_add_test(t, released_by_chance);
	tcase_add_test(t, leaves_by_chance);
	return s;
}
