/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_handle.c - options and their defaults, structs of any size, handles.
 *
 * What is refused is test_border.c's; here is what is accepted, and its effect.
 */
#include "inner.h"

/* ------------------------------------------------------------- options --- */

static struct kvr_options
defaults(void)
{
	struct kvr_options o;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	return o;
}

/* The options in force in a region made with these. */
static struct kvr_options
in_force(const struct kvr_options *o)
{
	struct kvr_options got;
	struct kvr *made;

	memset(&got, 0x5a, sizeof(got));
	got.size = sizeof(got);
	ck_assert_int_eq(kvr_new(o, &made), KVR_OK);
	ck_assert_int_eq(kvr_options_get(made, &got), KVR_OK);
	kvr_free(made);
	return got;
}

static void
ck_same_options(const struct kvr_options *got, const struct kvr_options *want)
{
	ck_assert_uint_eq(got->size, want->size);
	ck_assert_uint_eq(got->region_bytes, want->region_bytes);
	ck_assert_int_eq(got->ttl_ns, want->ttl_ns);
	ck_assert_int_eq(got->lease_limit_ns, want->lease_limit_ns);
	ck_assert_int_eq(got->idle_limit_ns, want->idle_limit_ns);
	ck_assert_uint_eq(got->unit, want->unit);
	ck_assert_uint_eq(got->block_size, want->block_size);
	ck_assert_uint_eq(got->hash, want->hash);
	ck_assert_uint_eq(got->eagle, want->eagle);
	ck_assert_uint_eq(got->max_workers, want->max_workers);
	ck_assert_uint_eq(got->max_prompt_blocks, want->max_prompt_blocks);
	ck_assert_uint_eq(got->secret_bytes, want->secret_bytes);
	ck_assert_uint_eq(got->reserved, want->reserved);
	ck_assert_mem_eq(got->secret, want->secret, sizeof(got->secret));
}

START_TEST(default_options)
{
	struct kvr_options o = defaults(), got = in_force(NULL);
	static const unsigned char zeros[KVR_SECRET_MAX];

	ck_assert_uint_eq(o.region_bytes, 64 << 20);
	ck_assert_int_eq(o.ttl_ns, INT64_C(120000000000));
	ck_assert_int_eq(o.lease_limit_ns, INT64_C(3600000000000));
	ck_assert_uint_eq(o.unit, KVR_UNIT_TOKENS);
	ck_assert_uint_eq(o.block_size, KVR_AUTO);
	ck_assert_uint_eq(o.hash, KVR_HASH_KEYED);
	ck_assert_uint_eq(o.eagle, 0);
	ck_assert_uint_eq(o.max_workers, 256);
	ck_assert_uint_eq(o.max_prompt_blocks, KVR_AUTO);
	ck_assert_uint_eq(o.secret_bytes, 0);
	ck_assert_uint_eq(o.reserved, 0);
	ck_assert_mem_eq(o.secret, zeros, sizeof(zeros));
	/* every auto is resolved, and these are the defaults of no options */
	o.block_size = 16;
	ck_assert_uint_ne(got.max_prompt_blocks, KVR_AUTO);
	o.max_prompt_blocks = got.max_prompt_blocks;
	ck_same_options(&got, &o);
}
END_TEST

/* An eighth of the region: 16 blocks a cell. */
START_TEST(auto_prompt_blocks)
{
	struct kvr_options o = defaults();
	uint64_t bytes, most;

	for (bytes = 4 << 20; bytes <= 64 << 20; bytes *= 2) {
		o.region_bytes = bytes;
		most = in_force(&o).max_prompt_blocks;
		ck_assert_uint_gt(most * 4, bytes / 8 * 7 / 10);
		ck_assert_uint_le(most * 4, bytes / 8);
	}
}
END_TEST

START_TEST(auto_block_size)
{
	struct kvr_options o = defaults();

	o.region_bytes = 2 << 20;
	ck_assert_uint_eq(in_force(&o).block_size, 16);
	o.hash = KVR_HASH_DYNAMO;
	ck_assert_uint_eq(in_force(&o).block_size, 16);
	o.unit = KVR_UNIT_BYTES;
	ck_assert_uint_eq(in_force(&o).block_size, 256);
}
END_TEST

/* The minimum and maximum of every option, kept as given. */
START_TEST(extreme_options)
{
	struct kvr_options low = defaults(), high = defaults(), got;

	low.region_bytes = 2 << 20;
	low.ttl_ns = KVR_TTL_ENDLESS;
	low.lease_limit_ns = 1;
	low.block_size = 1;
	low.max_workers = 1;
	low.max_prompt_blocks = 1;
	got = in_force(&low);
	ck_same_options(&got, &low);
	high.region_bytes = (32 << 20) + 1;
	high.ttl_ns = INT64_MAX;
	high.lease_limit_ns = INT64_MAX;
	high.block_size = 65536;
	high.eagle = 1;
	high.max_workers = KVR_WORKERS_MAX;
	high.max_prompt_blocks = 1 << 27;
	got = in_force(&high);
	ck_same_options(&got, &high);
	high.eagle = 0;
	high.unit = KVR_UNIT_BYTES;
	high.block_size = 262144;
	high.hash = KVR_HASH_DYNAMO;
	high.ttl_ns = 0;
	got = in_force(&high);
	ck_same_options(&got, &high);
}
END_TEST

/* One beyond the range, and options that contradict each other. */
START_TEST(too_extreme_options)
{
	static const uint32_t most[] = { 65536, 262144 };
	struct kvr_options o, good = defaults();
	struct kvr *made;
	uint32_t unit;

#define REFUSED(change) do { \
	o = good; \
	change; \
	ck_assert_msg(kvr_new(&o, &made) == KVR_EINVAL, #change); \
} while (0)
	good.region_bytes = 2 << 20;
	for (unit = 0; unit < 2; unit++)
		REFUSED((o.unit = unit, o.block_size = most[unit] + 1));
	REFUSED(o.lease_limit_ns = 0);
	REFUSED(o.max_prompt_blocks = (uint32_t)KVR_AUTO + 1);
	REFUSED((o.eagle = 1, o.unit = KVR_UNIT_BYTES));
	REFUSED(o.secret_bytes = KVR_SECRET_MIN); /* of zeros */
	REFUSED((o.secret_bytes = KVR_SECRET_MIN - 1, o.secret[0] = 1));
	REFUSED((o.secret_bytes = KVR_SECRET_MAX + 1, o.secret[0] = 1));
	REFUSED((o.secret_bytes = KVR_SECRET_MIN,
	    o.secret[KVR_SECRET_MIN] = 1)); /* behind the key */
#undef REFUSED
}
END_TEST

START_TEST(extreme_times)
{
	struct kvr_options o = small_options();

	o.ttl_ns = INT64_MAX;
	o.lease_limit_ns = INT64_MAX;
	region_of(&o);
	observe(0, "ab", 0);
	(void)reserve(1, "cd", INT64_C(100000000000000000));
	ck_assert_uint_eq(expire(INT64_C(200000000000000000), 100), 0);
	ck_tree("ab:0 cd:1!");
	say("ab");
	ck_assert_uint_eq(overlap(0, INT64_C(300000000000000000)), 2);
	region_end();
}
END_TEST

/* ------------------------------------------------------------- secrets --- */

static uint64_t
hash_under(const struct kvr_options *o)
{
	uint64_t sequence, local;
	struct kvr_prompt *q;
	struct kvr *made;
	const uint32_t token[1] = { 5 };

	ck_assert_int_eq(kvr_new(o, &made), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(made, &q), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(q, NULL, token, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_hash(q, 0, &local, &sequence), KVR_OK);
	kvr_prompt_free(q);
	kvr_free(made);
	return sequence;
}

START_TEST(secrets)
{
	struct kvr_options o = small_options();
	struct kvr_options got = in_force(&o);
	static const unsigned char zeros[KVR_SECRET_MAX];
	uint64_t hash = hash_under(&o);

	ck_assert_uint_eq(got.secret_bytes, 0);
	ck_assert_mem_eq(got.secret, zeros, sizeof(zeros)); /* not told */
	ck_assert_uint_eq(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN]++; /* behind the key */
	ck_assert_uint_eq(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN - 1]++;
	ck_assert_uint_ne(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN - 1]--;
	o.secret[KVR_SECRET_MIN] = 0; /* a zero more is another key */
	o.secret_bytes = KVR_SECRET_MIN + 1;
	ck_assert_uint_ne(hash_under(&o), hash);
	o.secret_bytes = 0; /* then the field says nothing */
	ck_assert_uint_ne(hash_under(&o), hash_under(&o));
}
END_TEST

/* ---------------------------------------------------- sizes of structs --- */

enum { LARGEST = 1024 };

/* A struct as large as `size` says; all else is untouched. */
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
	return kvr_stats(k, out);
}

static int
get_worker_stats(void *out)
{
	return kvr_worker_stats(k, id[0], out);
}

static int
get_info(void *out)
{
	return kvr_prompt_info(p, out);
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
 * size is not read. A longer one is refused if it says more than this library
 * knows.
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

/* Loads have no call that returns them: read from the slot. */
static int
get_load(void *out)
{
	const struct slot *s = slot_at(k, 0);
	struct kvr_load load = { sizeof(load), s->load_prefill,
	    s->load_blocks, s->load_requests, s->load_used };

	memcpy(out, &load, sizeof(load));
	return KVR_OK;
}

START_TEST(structs_read)
{
	struct kvr_policy policy, usual;
	struct kvr_worker facts, none;
	const struct kvr_load load = { sizeof(load), 1, 2, 3, 4 };
	const struct kvr_load idle = { .size = sizeof(idle) };

	ck_assert_int_eq(kvr_policy_init(&usual, sizeof(usual)), KVR_OK);
	policy = usual;
	policy.cost = KVR_COST_TWO_TIER;
	policy.overlap_credit = 3;
	policy.temperature = 0.5;
	policy.two_tier_load_ratio = 7;
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

/* The same for options: the region is made with those that were given. */
START_TEST(options_read)
{
	struct kvr_options given = small_options(), got, want;
	_Alignas(8) unsigned char in[LARGEST];
	size_t size;

	given.region_bytes = 1 << 20;
	given.lease_limit_ns = 77;
	given.unit = KVR_UNIT_BYTES;
	for (size = 16; size <= sizeof(given) + 64; size += 8) {
		struct kvr_options o = defaults();
		size_t n = size < sizeof(given) ? size : sizeof(given);

		/* a secret is whole, or not given */
		if (size > offsetof(struct kvr_options, secret_bytes) &&
		    size < offsetof(struct kvr_options, boot_id))
			continue;
		memset(in, 0, sizeof(in));
		memcpy(in, &given, n);
		memcpy(in, &size, sizeof(size));
		got = in_force((const struct kvr_options *)(void *)in);
		memcpy(&o, &given, n);
		o.size = sizeof(o);
		want = in_force(&o);
		ck_same_options(&got, &want);
	}
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

/* Several handles, one region: what one writes the others read. */
START_TEST(handles_share)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	void *memory = aligned_alloc(CELL, 64 << 10);
	struct kvr_options o = small_options();
	struct kvr *first, *second;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(&o, memory, 64 << 10, &first), KVR_OK);
	o.ttl_ns = 5; /* the region's value holds */
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

Suite *suite_handle(void);

Suite *
suite_handle(void)
{
	Suite *s = suite_create("handle");
	TCase *t = tcase_create("options");

	tcase_add_test(t, default_options);
	tcase_add_test(t, auto_prompt_blocks);
	tcase_add_test(t, auto_block_size);
	tcase_add_test(t, extreme_options);
	tcase_add_test(t, too_extreme_options);
	tcase_add_test(t, extreme_times);
	tcase_add_test(t, secrets);
	tcase_add_test(t, options_read);
	tcase_add_test(t, private_memory_is_aligned);
	tcase_add_test(t, memory_is_kept_to);
	tcase_add_test(t, handles_share);
	suite_add_tcase(s, t);
	t = small_case(s, "structs");
	tcase_add_test(t, structs_written);
	tcase_add_test(t, structs_read);
	return s;
}
