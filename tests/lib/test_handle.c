/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_handle.c - structs of any size, and several handles.
 *
 * test_border.c has the calls that are refused; this file has the effects of
 * accepted ones.
 */
#include "inner.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------- sizes of structs --- */

enum { LARGEST = 1024 };

/* Each size gets that much of the struct; all else is untouched. */
static void
ck_written(int (*get)(void *), const void *want, size_t known)
{
	_Alignas(8) unsigned char out[LARGEST];
	size_t size, i, n;

	for (size = sizeof(size_t); size <= known + 64; size += 4) {
		memset(out, 0x5a, sizeof(out));
		memcpy(out, &size, sizeof(size));
		must(get(out) == KVR_OK);
		n = size < known ? size : known;
		must(memcmp(out, &size, sizeof(size)) == 0);
		must(memcmp(out + sizeof(size), (const char *)want +
		    sizeof(size), n - sizeof(size)) == 0);
		for (i = n; i < sizeof(out); i++)
			must(out[i] == 0x5a);
	}
	for (size = 0; size < sizeof(size_t); size++) {
		memcpy(out, &size, sizeof(size));
		must(get(out) == KVR_EINVAL);
	}
}

static int
get_options(void *out)
{
	return kvr_options_get(k, out);
}

static int
get_policy(void *out)
{
	return kvr_policy_get(k, out);
}

static int
get_worker(void *out)
{
	return kvr_worker_get(k, id[0], out);
}

static int
get_stats(void *out)
{
	return kvr_stats_get(k, out);
}

static int
get_worker_stats(void *out)
{
	return kvr_worker_stats_get(k, id[0], out);
}

static int
get_info(void *out)
{
	return kvr_prompt_info_get(p, out);
}

static int
get_decision(void *out)
{
	return kvr_route(k, p, NULL, 5, out);
}

#define WRITTEN(get, type) do { \
	struct type want_ = { .size = sizeof(want_) }; \
	ck_assert_int_eq(get(&want_), KVR_OK); \
	ck_written(get, &want_, sizeof(want_)); \
} while (0)

START_TEST(structs_written)
{
	observe(0, "abcd", 5);
	WRITTEN(get_options, kvr_options);
	WRITTEN(get_policy, kvr_policy);
	WRITTEN(get_worker, kvr_worker);
	WRITTEN(get_stats, kvr_stats);
	WRITTEN(get_worker_stats, kvr_worker_stats);
	WRITTEN(get_info, kvr_prompt_info);
	WRITTEN(get_decision, kvr_decision);
}
END_TEST

/*
 * In a shorter struct the rest takes its defaults; junk behind the caller's
 * size is not read. A longer one is refused if its unknown part is not zero.
 */
static void
ck_read(int (*set)(const void *), int (*get)(void *), const void *given,
    const void *unset, size_t known)
{
	_Alignas(8) unsigned char in[LARGEST], out[LARGEST], want[LARGEST];
	size_t size, n;

	for (size = sizeof(size_t); size <= known + 64; size += 4) {
		memset(in, 0xff, sizeof(in));
		n = size < known ? size : known;
		memcpy(in, given, n);
		memset(in + n, 0, size - n);
		memcpy(in, &size, sizeof(size));
		must(set(in) == KVR_OK);
		memcpy(want, unset, known);
		memcpy(want + sizeof(size), in + sizeof(size),
		    n - sizeof(size));
		memcpy(out, &known, sizeof(known));
		must(get(out) == KVR_OK);
		must(memcmp(out + sizeof(size), want + sizeof(size),
		    known - sizeof(size)) == 0);
		if (size <= known)
			continue;
		for (n = known; n < size; n++) {
			in[n] = 1;
			must(set(in) == KVR_ENEWER);
			in[n] = 0;
		}
	}
	size = 4097; /* no struct is as long as that */
	memcpy(in, &size, sizeof(size));
	must(set(in) == KVR_EINVAL);
}

static int
set_policy(const void *in)
{
	return kvr_policy_set(k, in);
}

static int
set_worker(const void *in)
{
	return kvr_worker_set(k, id[0], in);
}

static int
set_load(const void *in)
{
	return kvr_worker_set_load(k, id[0], 0, in);
}

static int
get_load(void *out)
{
	return kvr_worker_get_load(k, id[0], 0, out);
}

START_TEST(structs_read)
{
	struct kvr_policy policy, usual;
	struct kvr_worker facts, none;
	const struct kvr_load load = { sizeof(load), 1, 2, 3, 4 };
	const struct kvr_load idle = { .size = sizeof(idle) };

	ck_assert_int_eq(kvr_policy_init(&usual, sizeof(usual)), KVR_OK);
	policy = usual;
	policy.cost = KVR_COST_DYNAMO;
	policy.overlap_credit = 3;
	policy.temperature = 0.5;
	policy.observed_seconds = 7;
	ck_read(set_policy, get_policy, &policy, &usual, sizeof(policy));
	ck_assert_int_eq(kvr_worker_init(&none, sizeof(none)), KVR_OK);
	facts = none;
	facts.role = KVR_ROLE_DECODE;
	facts.state = KVR_STATE_DOWN;
	facts.capacity_tokens = 7;
	facts.taints = UINT64_MAX;
	facts.prefill_rate = 8;
	facts.weight = 9;
	ck_read(set_worker, get_worker, &facts, &none, sizeof(facts));
	ck_read(set_load, get_load, &load, &idle, sizeof(load));
}
END_TEST

/* ------------------------------------------------------------- handles --- */

/* Wherever the system's memory is, cells are whole cache lines. */
START_TEST(private_memory_is_aligned)
{
	struct kvr_options o = small_options();
	struct kvr *made[20];
	void *odd[20];
	uint32_t i;

	for (i = 0; i < 20; i++) {
		odd[i] = malloc(1 + i * 24);
		o.region_bytes = (512 << 10) + i * 8 + 1;
		ck_assert_int_eq(kvr_new(&o, &made[i]), KVR_OK);
		ck_assert_uint_eq((uintptr_t)made[i]->region % CELL, 0);
		ck_assert_uint_eq((uintptr_t)made[i]->cells % CELL, 0);
		ck_assert_uint_eq((uintptr_t)made[i]->slots % CELL, 0);
		ck_assert_int_eq(kvr_check(made[i]), KVR_OK);
	}
	for (i = 0; i < 20; i++) {
		kvr_free(made[i]);
		free(odd[i]);
	}
}
END_TEST

/* No byte behind the given memory is touched. */
START_TEST(memory_is_kept_to)
{
	const size_t bytes = 40000, room = 40960;
	struct kvr_options o = small_options();
	unsigned char *memory = aligned_alloc(CELL, room);
	size_t i;

	ck_assert_ptr_nonnull(memory);
	memset(memory, 0x5a, room);
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(WORKERS);
	for (i = 0; i < 50; i++) {
		say_long(400, (uint32_t)i * 5, (uint32_t)i);
		(void)observed((uint32_t)i % WORKERS, (int64_t)i);
	}
	ck_assert_uint_gt(stats().evicted_region, 0);
	region_end();
	for (i = bytes; i < room; i++)
		must(memory[i] == 0x5a);
	free(memory);
}
END_TEST

/* Several handles share a region: each reads the others' writes. */
START_TEST(handles_share)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	void *memory = aligned_alloc(CELL, 64 << 10);
	struct kvr_options o = small_options();
	struct kvr *first, *second;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, 64 << 10, &first), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(&o, memory, 64 << 10, &second),
	    KVR_OK);
	k = first;
	people(2);
	observe(0, "abcd", 1);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.temperature = 2;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	k = second;
	ck_assert_uint_eq(overlap(0, TTL), 4);
	policy.temperature = 0;
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	ck_assert_double_eq(policy.temperature, 2);
	kvr_free(first); /* the memory is the caller's, and stays */
	ck_assert_uint_eq(overlap(0, TTL), 4);
	region_end();
	free(memory);
}
END_TEST

/* --------------------------------------------------------------- clock --- */

#define DAY (INT64_C(86400) * 1000000000)

/* A `now` far ahead is refused; kvr_clock_set sets it, and sets it back. */
START_TEST(clock_far_ahead)
{
	uint64_t lease;

	observe(0, "abcd", 10);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 10 + 30 * DAY + 1, 0, NULL),
	    KVR_ECLOCK);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 365 * DAY, 0, NULL),
	    KVR_ECLOCK);
	ck_assert_int_eq(stats().clock, 10);
	ck_assert_uint_eq(overlap(0, 11), 4);
	ck_assert_int_eq(kvr_clock_set(k, 365 * DAY), KVR_OK);
	ck_assert_int_eq(stats().clock, 365 * DAY);
	ck_assert_uint_eq(overlap(0, 11), 0); /* due */
	ck_assert_uint_eq(stats().workers, WORKERS);
	observe(1, "abxy", 365 * DAY + 5);
	lease = reserve(1, "abxy", 365 * DAY + 6);
	/* that was a mistake */
	ck_assert_int_eq(kvr_clock_set(k, 20), KVR_OK);
	ck_assert_int_eq(stats().clock, 20);
	region_sound();
	ck_tree("");
	ck_assert_int_eq(kvr_lease_abort(k, lease, 20, 0), KVR_ELEASE);
	observe(0, "abcd", 30);
	ck_assert_uint_eq(overlap(0, 30 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 30 + TTL), 0);
	/* and to the present, or a little ahead */
	ck_assert_int_eq(kvr_clock_set(k, 30), KVR_OK);
	ck_assert_int_eq(kvr_clock_set(k, 40), KVR_OK);
	ck_tree("abcd:0");
	ck_assert_int_eq(kvr_clock_set(k, -2), KVR_ECLOCK);
	ck_assert_int_eq(kvr_clock_set(k, INT64_MAX), KVR_ECLOCK);
	ck_assert_int_eq(kvr_clock_set(NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(stats().clock, 40);
}
END_TEST

/* Private memory is a copy in the child, which can only be freed. */
START_TEST(private_in_a_child)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_options o = small_options();
	int status;
	pid_t child;

	region_of(&o);
	observe(0, "abcd", 1);
	child = fork();
	if (child == 0) {
		if (kvr_observe(k, p, id[0], 1, 0, NULL) != KVR_ESTATE ||
		    kvr_route(k, p, NULL, 1, &d) != KVR_ESTATE ||
		    kvr_check(k) != KVR_ESTATE)
			test_exit(1);
		kvr_free(k);
		test_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_tree("abcd:0");
	region_end();
}
END_TEST

/* ----------------------------------------------------------- user area --- */

static unsigned char *
area_of(const struct kvr *of, size_t want)
{
	void *area = NULL;
	size_t bytes = 0;

	ck_assert_int_eq(kvr_user_area(of, &area, &bytes), KVR_OK);
	ck_assert_uint_eq(bytes, want);
	ck_assert_uint_eq((uintptr_t)area % 64, 0);
	return area;
}

static void
ck_filled(const unsigned char *area, size_t bytes, unsigned char with)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		must(area[i] == with);
}

/* It is zero at first, and the caller's own from then on. */
START_TEST(user_area)
{
	static const size_t sizes[] = { 1, 40, 64, 65, 5000 };
	const size_t bytes = 64 << 10, size = sizes[_i];
	struct kvr_options o = small_options(), got = { .size = sizeof(got) };
	unsigned char *area, *memory = aligned_alloc(CELL, bytes);
	struct kvr *other;

	ck_assert_ptr_nonnull(memory);
	memset(memory, 0x5a, bytes);
	o.user_bytes = size;
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	ck_assert_uint_eq(got.user_bytes, size);
	people(WORKERS);
	area = area_of(k, size);
	ck_assert(area > memory && area + size < memory + bytes);
	ck_filled(area, size, 0);
	memset(area, 0xa5, size);
	observe(0, "abcd", 100);
	region_sound();
	ck_assert_int_eq(kvr_clock_set(k, 50), KVR_OK);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(&o, memory, bytes, &other), KVR_OK);
	ck_assert_ptr_eq(area_of(other, size), area);
	kvr_free(other);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	got.user_bytes++;
	ck_assert_int_eq(kvr_attach_at(&got, memory, bytes, &other),
	    KVR_EMISMATCH);
	/* One that needs no area joins all the same. */
	got.user_bytes = 0;
	ck_assert_int_eq(kvr_attach_at(&got, memory, bytes, &other), KVR_OK);
	ck_assert_ptr_eq(area_of(other, size), area);
	kvr_free(other);
	ck_filled(area, size, 0xa5);
	region_end();
	free(memory);
}
END_TEST

/* A child attaches a handle of its own, and both see one area. */
START_TEST(user_area_of_processes)
{
	const size_t bytes = 64 << 10;
	struct kvr_options o = small_options();
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned char *area;
	struct kvr *mine;
	size_t size;
	void *there;
	int status;
	pid_t child;

	ck_assert(memory != MAP_FAILED);
	o.user_bytes = 100;
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(WORKERS);
	area = area_of(k, 100);
	area[99] = 7;
	child = fork();
	if (child == 0) {
		if (kvr_user_area(k, &there, &size) != KVR_ESTATE ||
		    kvr_attach_at(NULL, memory, bytes, &mine) != KVR_OK ||
		    kvr_user_area(mine, &there, &size) != KVR_OK ||
		    size != 100 || ((unsigned char *)there)[99] != 7)
			test_exit(1);
		((unsigned char *)there)[98] = 8;
		kvr_free(mine);
		test_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(area[98], 8);
	region_end();
	munmap(memory, bytes);
}
END_TEST

/* Without room for it there is no region. */
START_TEST(user_area_refused)
{
	struct kvr_options o = small_options();
	void *area = &o;
	size_t bytes = 5;

	region_of(&o);
	ck_assert_int_eq(kvr_user_area(k, &area, &bytes), KVR_ESTATE);
	ck_assert_int_eq(kvr_user_area(NULL, &area, &bytes), KVR_EINVAL);
	ck_assert_int_eq(kvr_user_area(k, NULL, &bytes), KVR_EINVAL);
	ck_assert_int_eq(kvr_user_area(k, &area, NULL), KVR_EINVAL);
	ck_assert_ptr_eq(area, &o);
	ck_assert_uint_eq(bytes, 5);
	region_end();
	o.user_bytes = o.region_bytes;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_ETOOSMALL);
	ck_assert_str_eq(kvr_options_fault(NULL, &o), "region_bytes");
	o.user_bytes = KVR_USER_BYTES_MAX + UINT64_C(1);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_EINVAL);
}
END_TEST

Suite *suite_handle(void);

Suite *
suite_handle(void)
{
	Suite *s = suite_create("handle");
	TCase *t = tcase_create("handles");

	tcase_add_test(t, private_memory_is_aligned);
	tcase_add_test(t, private_in_a_child);
	tcase_add_test(t, memory_is_kept_to);
	tcase_add_test(t, handles_share);
	tcase_add_loop_test(t, user_area, 0, 5);
	tcase_add_test(t, user_area_of_processes);
	tcase_add_test(t, user_area_refused);
	suite_add_tcase(s, t);
	t = small_case(s, "clock");
	tcase_add_test(t, clock_far_ahead);
	t = small_case(s, "structs");
	tcase_add_test(t, structs_written);
	tcase_add_test(t, structs_read);
	return s;
}
