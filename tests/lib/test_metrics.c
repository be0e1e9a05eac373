/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_metrics.c - the text of kvr_metrics: compared with kvr_stats and
 * kvr_worker_stats; truncated at every length; while workers come and go; with
 * names that are any bytes.
 */
#define _GNU_SOURCE
#include "busy.h"
#include "files.h"
#include "prometheus.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* ----------------------------------------------------------- the text --- */

START_TEST(says_what_the_structs_say)
{
	struct kvr_worker facts;
	uint64_t lease;

	no_gap(region_fields, REGION_FIELDS, sizeof(struct kvr_stats));
	no_gap(worker_fields, WORKER_FIELDS, sizeof(struct kvr_worker_stats));
	taken(k);
	ck_all(k, WORKERS);
	ck_whole(value_of("kvroute_clock_seconds", "", 0, ""), 0);
	observe(0, "abcdef", 1);
	observe(1, "abcdxy", 1234567890123);
	lease = reserve(0, "abcdefghi", 1234567890124);
	commit(lease, 1234567890125);
	finish(reserve(2, "mnop", 1234567890126), 1234567890127);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 1000;
	ck_assert_int_eq(kvr_worker_set(k, id[3], &facts), KVR_OK);
	facts.retain = KVR_RETAIN_FEEDBACK;
	ck_assert_int_eq(kvr_worker_set(k, id[1], &facts), KVR_OK);
	ck_assert_int_eq(kvr_events_lost(k, id[1], 3), KVR_OK);
	taken(k);
	ck_all(k, WORKERS);
	ck_assert(is(value_of("kvroute_clock_seconds", "", 0, ""),
	    "1234.567890127"));
	ck_whole(value_of("kvroute_observes_total", "", 0, ""), 2);
	ck_whole(value_of("kvroute_leases", "", 0, ""), 1);
	ck_whole(value_of("kvroute_worker_held_blocks", "0", 0, ""), 9);
	ck_way("kvroute_worker_retain", "0", 0, KVR_RETAIN_TTL);
	ck_way("kvroute_worker_retain", "1", 0, KVR_RETAIN_FEEDBACK);
	ck_way("kvroute_worker_retain", "3", 0, KVR_RETAIN_CAPACITY);
	ck_state("kvroute_worker_events_state", "0", 0, KVR_EVENTS_OFF);
	ck_state("kvroute_worker_events_state", "1", 0, KVR_EVENTS_DEGRADED);
	ck_whole(value_of("kvroute_worker_events_next", "1", 0, ""), 3);
}
END_TEST

/* Numbers of any size, all different. */
static void
poke(struct slot *s)
{
	s->entries = pick(UINT32_MAX);
	s->held = plain_random(&chance);
	s->requests = pick(UINT32_MAX);
	s->prefill = plain_random(&chance);
	s->active = plain_random(&chance) >> 1;
	s->load_blocks = plain_random(&chance) >> 1;
	s->output = plain_random(&chance);
	s->lease_opens = plain_random(&chance) >> pick(60);
	s->prompt_tokens = plain_random(&chance) >> pick(60);
	s->predicted_tokens = plain_random(&chance);
	s->best_tokens = plain_random(&chance);
	s->over_prefill = (uint8_t)pick(2);
	s->mode = (uint8_t)(KVR_RETAIN_TTL + pick(3));
	s->learnt_block = pick(UINT32_MAX);
	s->seen = (struct calibration){ plain_random(&chance),
		plain_random(&chance), plain_random(&chance), UINT64_MAX,
		plain_random(&chance), pick(9), plain_random(&chance),
		plain_random(&chance) };
}

static double
any_double(int32_t most)
{
	double x = (double)(plain_random(&chance) >> 11);

	return ldexp(x, -53 + (int32_t)pick((uint32_t)most * 2) - most);
}

START_TEST(any_numbers)
{
	struct counts counts = k->region->counts;
	struct slot slot[WORKERS];
	double pace[WORKERS];
	uint32_t i;

	by_chance();
	for (i = 0; i < sizeof(counts) / sizeof(uint64_t); i++)
		((any_word *)(void *)&k->region->counts)[i] =
		    plain_random(&chance) >> pick(64);
	for (i = 0; i < WORKERS; i++) {
		slot[i] = k->slots[i];
		pace[i] = k->loads.pace[i];
		poke(&k->slots[i]);
		k->loads.pace[i] = any_double(40) + 1e-12;
	}
	taken(k);
	ck_all(k, WORKERS);
	for (i = 0; i < WORKERS; i++) {
		k->slots[i] = slot[i];
		k->loads.pace[i] = pace[i];
	}
	k->region->counts = counts;
}
END_TEST

/* A damaged region may have values that are not numbers. */
START_TEST(no_numbers)
{
	static const double odd[] = { (double)NAN, 0x1p-1060, -0x1p-1060 };
	static const char *const want[] = { "NaN", "+Inf", "-Inf" };
	const char *rate = "kvroute_worker_prefill_tokens_per_second";
	double pace = k->loads.pace[0];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		k->loads.pace[0] = odd[i];
		taken(k);
		ck_assert(is(value_of(rate, "0", 0, ""), want[i]));
	}
	k->loads.pace[0] = pace;
}
END_TEST

/* The names in the samples of a metric of workers, in order. */
static void
names_in_order(char *to, size_t room)
{
	size_t i, n = 0;

	taken(k);
	for (i = 0; i < samples; i++) {
		const struct sample *s = &sample[i];

		if (!is(s->metric, "kvroute_worker_entries"))
			continue;
		ck_assert_uint_lt(n + s->worker.length + 1, room);
		memcpy(to + n, s->worker.at, s->worker.length);
		n += s->worker.length;
		to[n++] = ' ';
	}
	ck_assert_uint_gt(n, 0);
	to[n] = '\0';
}

/* Each gets another slot and keeps its place. */
START_TEST(order_after_a_reset)
{
	char before[WORKERS * 300], after[sizeof(before)];
	size_t i;

	names_in_order(before, sizeof(before));
	for (i = 0; i < WORKERS; i += 2) {
		ck_assert_int_eq(kvr_worker_reset(k, id[i], &id[i]), KVR_OK);
		names_in_order(after, sizeof(after));
		ck_assert_str_eq(before, after);
	}
}
END_TEST

/* ---------------------------------------------------------------- names --- */

static void
ck_label(const char *name, size_t n, const char *label)
{
	uint64_t worker;
	size_t i, met = 0;

	ck_assert_int_eq(kvr_worker_remove(k, id[3]), KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, name, n, NULL, &worker), KVR_OK);
	id[3] = worker;
	taken(k);
	for (i = 0; i < samples; i++)
		met += is(sample[i].worker, label);
	ck_assert_msg(met == WORKER_SAMPLES, "%zu of %s", met, label);
}

#define LABEL(name, label) ck_label(name, sizeof(name) - 1, label)

START_TEST(labels)
{
	LABEL("gpu-7:8000", "gpu-7:8000");
	LABEL("a\"b\\c\nd", "a\\\"b\\\\c\\nd");
	LABEL("\"", "\\\"");
	LABEL("\\", "\\\\");
	LABEL("\\\\", "\\\\\\\\");
	LABEL("\\n", "\\\\n");
	LABEL("\\x41", "\\\\x5cx41");
	LABEL("\\\\x", "\\\\\\\\x5cx");
	LABEL("\0\t\x1f ~\x7f", "\\\\x00\\\\x09\\\\x1f ~\\\\x7f");
	LABEL("\xff", "\\\\xff");
	LABEL("\\\xff", "\\\\\\\\xff");
	/* two, three and four bytes of one character, and too few of each */
	LABEL("caf\xc3\xa9", "caf\xc3\xa9");
	LABEL("\xe2\x82\xac", "\xe2\x82\xac");
	LABEL("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
	LABEL("\xc3", "\\\\xc3");
	LABEL("\xe2\x82", "\\\\xe2\\\\x82");
	LABEL("\xf0\x9f\x98", "\\\\xf0\\\\x9f\\\\x98");
	LABEL("\xc3\xc3\xa9", "\\\\xc3\xc3\xa9");
	/* overlong, surrogates, beyond the last */
	LABEL("\xc0\xaf", "\\\\xc0\\\\xaf");
	LABEL("\xe0\x9f\xbf", "\\\\xe0\\\\x9f\\\\xbf");
	LABEL("\xe0\xa0\x80", "\xe0\xa0\x80");
	LABEL("\xed\xa0\x80", "\\\\xed\\\\xa0\\\\x80");
	LABEL("\xed\x9f\xbf", "\xed\x9f\xbf");
	LABEL("\xf0\x8f\xbf\xbf", "\\\\xf0\\\\x8f\\\\xbf\\\\xbf");
	LABEL("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
	LABEL("\xf4\x90\x80\x80", "\\\\xf4\\\\x90\\\\x80\\\\x80");
	LABEL("\xf5\x80\x80\x80", "\\\\xf5\\\\x80\\\\x80\\\\x80");
}
END_TEST

/* Mostly difficult bytes, or any. */
static size_t
strange_name(char name[KVR_NAME_MAX])
{
	static const char hard[] = "\\\\\\xxx\"\n\xc3\xa9\xe2\x82\xac"
	    "\xf0\x9f\x98\x80\xed\xa0\xff" "4af{}=, ";
	size_t n = pick(9) == 0 ? KVR_NAME_MAX : 1 + pick(8), i;
	bool any = pick(4) == 0;

	for (i = 0; i < n; i++)
		name[i] = any ? (char)pick(256)
		    : hard[pick(sizeof(hard) - 1)];
	return n;
}

/* Each label is an existing name: all are shown, no two look alike. */
START_TEST(any_names)
{
	uint64_t rounds = test_amount(3000), worker, found;
	char name[KVR_NAME_MAX + 1];
	size_t i, n;

	by_chance();
	while (rounds-- > 0) {
		n = strange_name(name);
		i = pick(WORKERS);
		ck_assert_int_eq(kvr_worker_remove(k, id[i]), KVR_OK);
		while (kvr_worker_add(k, name, n, NULL, &worker) == KVR_EEXIST)
			n = strange_name(name);
		id[i] = worker;
		taken(k);
		must(samples == REGION_SAMPLES + WORKERS * WORKER_SAMPLES);
		for (i = REGION_SAMPLES; i < REGION_SAMPLES + WORKERS; i++) {
			n = name_shown(sample[i].worker, name);
			must(kvr_worker_find(k, name, n, 0, &found) == KVR_OK);
		}
	}
}
END_TEST

/* -------------------------------------------------------------- lengths --- */

/* Bytes of the lines that fit completely. */
static size_t
lines_within(const char *of, size_t capacity)
{
	while (capacity > 0 && of[capacity - 1] != '\n')
		capacity--;
	return capacity;
}

START_TEST(every_capacity)
{
	static char whole[1 << 16], out[1 << 16];
	size_t capacity, fit, full, n, i, step;

	taken(k);
	full = length;
	ck_assert_uint_lt(full, sizeof(whole) - 16);
	memcpy(whole, text, full);
	step = full / test_amount(full);
	for (capacity = 0; capacity <= full + 1; capacity += step) {
		memset(out, 0x5a, sizeof(out));
		n = 99;
		must(kvr_metrics(k, out, capacity, &n) == KVR_OK);
		must(n == full);
		fit = capacity < full ? lines_within(whole, capacity) : full;
		must(memcmp(out, whole, fit) == 0);
		for (i = fit; i < capacity && capacity < full; i++)
			must(out[i] == '\n');
		for (; i < capacity + 16; i++)
			must(out[i] == 0x5a);
	}
	n = 99;
	ck_assert_int_eq(kvr_metrics(k, NULL, 0, &n), KVR_OK);
	ck_assert_uint_eq(n, full);
	/* no capacity is too large */
	n = 99;
	ck_assert_int_eq(kvr_metrics(k, out, SIZE_MAX, &n), KVR_OK);
	ck_assert_uint_eq(n, full);
	ck_assert_mem_eq(out, whole, full);
}
END_TEST

START_TEST(misuse)
{
	char c = 'c';
	size_t n = 99;

	ck_assert_int_eq(kvr_metrics(NULL, &c, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(NULL, NULL, 0, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(k, NULL, 1, &n), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(k, &c, 1, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_metrics(k, NULL, 0, NULL), KVR_EINVAL);
	ck_assert_uint_eq(n, 99);
	ck_assert_int_eq(c, 'c');
}
END_TEST

/* ----------------------------------------------------------- workers shown */

/* A long name, many ranks: each worker in each metric, in order. */
START_TEST(most_workers)
{
	struct kvr_options o = small_options();
	uint32_t workers = (uint32_t)test_amount(KVR_WORKERS_MAX), i;
	struct kvr_worker facts;
	char name[KVR_NAME_MAX];
	struct kvr *many;
	uint64_t worker;
	size_t j;

	o.max_workers = KVR_WORKERS_MAX;
	o.region_bytes = 16 << 20;
	ck_assert_int_eq(kvr_new(&o, &many), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	memset(name, 0xff, sizeof(name));
	for (i = 0; i < workers; i++) {
		facts.rank = UINT32_MAX - i;
		ck_assert_int_eq(kvr_worker_add(many, name, i == 0 ?
		    KVR_NAME_MAX : 1, &facts, &worker), KVR_OK);
	}
	taken(many);
	ck_assert_uint_eq(metrics, REGION_METRICS + WORKER_METRICS);
	ck_assert_uint_eq(samples, REGION_SAMPLES +
	    (size_t)workers * WORKER_SAMPLES);
	for (i = 0, j = REGION_SAMPLES; j < samples; j++) {
		must(strtoul(sample[j].rank.at, NULL, 10) == UINT32_MAX - i);
		must(sample[j].worker.length == (i == 0 ? KVR_NAME_MAX : 1) *
		    strlen("\\\\xff"));
		if (sample[j].way.length == 0 ||
		    is(sample[j].way, "events") ||
		    is(sample[j].way, "degraded") ||
		    is(sample[j].way, "dual"))
			i = i + 1 < workers ? i + 1 : 0;
	}
	ck_assert_uint_eq(i, 0);
	/* the bound of kvr_metrics(3); these ranks have ten digits */
	ck_assert_uint_le(length, 10000 + (size_t)workers * (3150 + 52 * 10) +
	    52 * strlen("\\\\xff") * (workers - 1 + KVR_NAME_MAX));
	kvr_free(many);
}
END_TEST

static atomic_int stop;

/* All but worker 0 restart, leave and return, and so get other slots. */
static void *
come_and_go(void *unused)
{
	uint64_t now[WORKERS];
	uint32_t i, turn = 0;

	(void)unused;
	memcpy(now, id, sizeof(now));
	while (atomic_load(&stop) == 0) {
		char name = (char)('0' + (i = 1 + turn++ % (WORKERS - 1)));

		if (turn % 7 < 4) {
			(void)kvr_worker_reset(k, now[i], &now[i]);
			continue;
		}
		(void)kvr_worker_remove(k, now[i]);
		(void)kvr_worker_add(k, &name, 1, NULL, &now[i]);
	}
	return NULL;
}

/* No worker is shown twice, and one that stays is always shown. */
START_TEST(while_workers_come_and_go)
{
	uint64_t rounds = test_amount(1000);
	pthread_t thread;
	size_t i, met;

	ck_assert_int_eq(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	while (rounds-- > 0) {
		taken(k);
		must(metrics == REGION_METRICS + WORKER_METRICS);
		for (i = met = 0; i < samples; i++)
			met += is(sample[i].worker, "0");
		must(met == WORKER_SAMPLES);
	}
	atomic_store(&stop, 1);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

static void
worker_leaves(void)
{
	ck_assert_int_eq(kvr_worker_remove(k, id[2]), KVR_OK);
}

/* A worker that leaves after the list was made, before it is asked. */
START_TEST(a_worker_leaves_meanwhile)
{
	uint32_t n, shown = 0, times;
	size_t i, of_it, rest;

	busy_begin(0);
	taken(k);
	times = busy_end();
	/* before each time that the lock is taken */
	for (n = 1; n <= times; n++) {
		busy_call(n, worker_leaves);
		taken(k);
		busy_call(0, NULL);
		for (i = of_it = rest = 0; i < samples; i++)
			*(is(sample[i].worker, "2") ? &of_it : &rest) +=
			    sample[i].worker.length > 0;
		ck_assert(of_it == 0 || of_it == WORKER_SAMPLES);
		ck_assert_uint_eq(rest, (WORKERS - 1) * WORKER_SAMPLES);
		shown += of_it > 0;
		id[2] = worker_of('2');
	}
	ck_assert_uint_gt(shown, 0);
	ck_assert_uint_lt(shown, times);
}
END_TEST

/* ------------------------------------------------------ reading, damage --- */

START_TEST(read_only)
{
	struct kvr *writing;
	size_t n = 99;

	made();
	again();
	writing = k;
	ck_assert_int_eq(open_as(READONLY, &k), KVR_OK);
	taken(k);
	ck_all(writing, 2);
	ck_whole(value_of("kvroute_worker_held_blocks", "0", 0, ""), 4);
	/* in the middle of a change there is nothing to read */
	atomic_fetch_add(&writing->region->seq, 1);
	ck_assert_int_eq(kvr_metrics(k, text, BYTES_MAX, &n), KVR_EBUSY);
	ck_assert_uint_eq(n, 99);
	atomic_fetch_add(&writing->region->seq, 1);
	ck_assert_int_eq(kvr_metrics(k, text, BYTES_MAX, &n), KVR_OK);
	ck_assert_uint_ne(n, 99);
	kvr_free(k);
	k = writing;
	closed();
}
END_TEST

/* Another process, which writes all the time. */
static pid_t
writer(const atomic_int *stopped)
{
	pid_t child = fork();
	int64_t now = 100;

	ck_assert_int_ge(child, 0);
	if (child > 0)
		return child;
	again();
	while (atomic_load(stopped) == 0)
		if (kvr_observe(k, p, id[now % 2], now, 0, NULL) != KVR_OK ||
		    now++ == INT64_MAX)
			_exit(1);
	kvr_free(k);
	_exit(0);
}

/* Readers without the lock get through, at least sometimes. */
START_TEST(read_only_beside_a_writer)
{
	uint64_t rounds = test_amount(300), read = 0, i;
	atomic_int *stopped = mmap(NULL, sizeof(*stopped), PROT_READ |
	    PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, error;
	pid_t child;

	ck_assert_ptr_ne(stopped, MAP_FAILED);
	made();
	say("abcd");
	child = writer(stopped);
	ck_assert_int_eq(open_as(READONLY, &k), KVR_OK);
	for (i = 0; i < rounds || read == 0; i++) {
		error = take(k);
		must(error == KVR_OK || error == KVR_EBUSY);
		if (error != KVR_OK)
			continue;
		read++;
		no_sample_twice();
		must(samples == REGION_SAMPLES + 2 * WORKER_SAMPLES);
	}
	atomic_store(stopped, 1);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	kvr_free(k);
	again();
	closed();
	ck_assert_int_eq(munmap(stopped, sizeof(*stopped)), 0);
}
END_TEST

/* Whatever bytes replace names and numbers, the text stays valid. */
START_TEST(damaged)
{
	uint64_t rounds = test_amount(2000);
	struct kvr_options o = small_options();
	struct kvr *torn;
	uint64_t worker, word;
	uint32_t i, j;

	by_chance();
	ck_assert_int_eq(kvr_new(&o, &torn), KVR_OK);
	for (i = 0; i < WORKERS; i++)
		ck_assert_int_eq(kvr_worker_add(torn, "ab", 1 + i % 2,
		    &(struct kvr_worker){ .size = offsetof(struct kvr_worker,
		    role), .rank = i }, &worker), KVR_OK);
	while (rounds-- > 0) {
		for (i = 0; i < torn->layout.names; i++)
			for (j = 0; j < sizeof(struct name); j++)
				((unsigned char *)&torn->names[i])[j] =
				    (unsigned char)pick(256);
		for (i = 0; i < WORKERS; i++) {
			word = plain_random(&chance) | (pick(3) == 0 ?
			    UINT64_C(0x7ff) << 52 : 0);
			memcpy(&torn->loads.pace[i], &word, sizeof(word));
			torn->slots[i].mode = (uint8_t)pick(256);
			torn->slots[i].name = pick(9);
		}
		must(take(torn) == KVR_OK);
		must(samples == REGION_SAMPLES + WORKERS * WORKER_SAMPLES);
	}
	kvr_free(torn);
}
END_TEST

Suite *suite_metrics(void);

Suite *
suite_metrics(void)
{
	Suite *s = suite_create("metrics");
	TCase *t = small_case(s, "metrics");

	tcase_add_test(t, says_what_the_structs_say);
	tcase_add_test(t, any_numbers);
	tcase_add_test(t, no_numbers);
	tcase_add_test(t, order_after_a_reset);
	tcase_add_test(t, labels);
	tcase_add_test(t, any_names);
	tcase_add_test(t, every_capacity);
	tcase_add_test(t, misuse);
	tcase_add_test(t, most_workers);
	tcase_add_test(t, while_workers_come_and_go);
	tcase_add_test(t, a_worker_leaves_meanwhile);
	tcase_add_test(t, damaged);
	t = files_case(s, "files");
	tcase_add_test(t, read_only);
	tcase_add_test(t, read_only_beside_a_writer);
	return s;
}
