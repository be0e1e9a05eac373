/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_options.c - options and their defaults, in force and over a region that
 * exists.
 *
 * test_border.c has the calls that are refused; this file has the effects of
 * accepted ones.
 */
#include "options.h"

#include "check.h"

#include "inner.h"
#include "kvroute_replica.h"
#include "sys.h"

#include <errno.h>

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
	ck_assert_uint_eq(got->affinity_entries, want->affinity_entries);
	ck_assert_uint_eq(got->event_blocks, want->event_blocks);
	ck_assert_uint_eq(got->tenants, want->tenants);
	ck_assert_mem_eq(got->secret, want->secret, sizeof(got->secret));
}

START_TEST(default_options)
{
	struct kvr_options o = defaults(), got = in_force(NULL);
	static const unsigned char zeros[KVR_SECRET_MAX];

	ck_assert_uint_eq(o.region_bytes, 64 << 20);
	ck_assert_int_eq(o.ttl_ns, INT64_C(120000000000));
	ck_assert_int_eq(o.lease_limit_ns, INT64_C(604800000000000));
	ck_assert_uint_eq(o.unit, KVR_UNIT_TOKENS);
	ck_assert_uint_eq(o.block_size, KVR_AUTO);
	ck_assert_uint_eq(o.hash, KVR_HASH_KEYED);
	ck_assert_uint_eq(o.eagle, 0);
	ck_assert_uint_eq(o.max_workers, 256);
	ck_assert_uint_eq(o.max_prompt_blocks, KVR_AUTO);
	ck_assert_uint_eq(o.secret_bytes, 0);
	ck_assert_uint_eq(o.affinity_entries, 0);
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
	REFUSED((o.event_blocks = 1, o.unit = KVR_UNIT_BYTES));
	REFUSED((o.event_blocks = 1, o.eagle = 1));
	REFUSED((o.tenants = 1, o.hash = KVR_HASH_DYNAMO));
	REFUSED(o.secret_bytes = KVR_SECRET_MIN); /* all zeros */
	REFUSED((o.secret_bytes = KVR_SECRET_MIN - 1, o.secret[0] = 1));
	REFUSED((o.secret_bytes = KVR_SECRET_MAX + 1, o.secret[0] = 1));
	REFUSED((o.secret_bytes = KVR_SECRET_MIN,
	    o.secret[KVR_SECRET_MIN] = 1)); /* beyond the key */
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
	(void)reserve(1, "cd", INT64_C(2000000000000000));
	ck_assert_uint_eq(expire(INT64_C(4000000000000000), 100), 0);
	ck_tree("ab:0 cd:1!");
	say("ab");
	ck_assert_uint_eq(overlap(0, INT64_C(6000000000000000)), 2);
	region_end();
}
END_TEST

/* A file's mode must let its creator read and write it, and sets no more. */
START_TEST(file_options)
{
	static const struct {
		uint32_t mode, group;
		int error;
	} cases[] = {
		{ 0600, KVR_AUTO, KVR_OK }, { 0666, 0, KVR_OK },
		{ 0640, UINT32_MAX - 1, KVR_OK }, { 0400, 0, KVR_EINVAL },
		{ 0200, 0, KVR_EINVAL }, { 0066, 0, KVR_EINVAL },
		{ 0700, 0, KVR_EINVAL }, { 01600, 0, KVR_EINVAL },
		{ 0600, UINT32_MAX, KVR_EINVAL }
	};
	struct kvr_options o = defaults(), got;
	size_t i;

	ck_assert_uint_eq(o.file_mode, 0600);
	ck_assert_uint_eq(o.file_group, KVR_AUTO);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		o.file_mode = cases[i].mode;
		o.file_group = cases[i].group;
		ck_assert_msg(options_get(&o, &got) == cases[i].error,
		    "mode %o, group %u", o.file_mode, o.file_group);
	}
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
	ck_assert_mem_eq(got.secret, zeros, sizeof(zeros)); /* never returned */
	ck_assert_uint_eq(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN]++; /* beyond the key */
	ck_assert_uint_eq(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN - 1]++;
	ck_assert_uint_ne(hash_under(&o), hash);
	o.secret[KVR_SECRET_MIN - 1]--;
	o.secret[KVR_SECRET_MIN] = 0; /* one more zero is another key */
	o.secret_bytes = KVR_SECRET_MIN + 1;
	ck_assert_uint_ne(hash_under(&o), hash);
	o.secret_bytes = 0; /* then the field is ignored */
	ck_assert_uint_ne(hash_under(&o), hash_under(&o));
}
END_TEST

/* A system without random bytes gives neither a secret nor keys of tables. */
START_TEST(no_random_bytes)
{
	struct kvr_options o = small_options();
	struct kvr *made = NULL;
	uint32_t i;

	for (i = 0; i < 2; i++) {
		sys_fail_at(SYS_GETENTROPY, 1, EIO);
		ck_assert_int_eq(kvr_new(&o, &made), KVR_ESYSTEM);
		ck_assert_uint_eq(sys_reset(), 1);
		o.secret_bytes = 0;
	}
	ck_assert_ptr_null(made);
}
END_TEST

/* ---------------------------------------------------- sizes of structs --- */

enum { LARGEST = 1024 };

/* The same for options: the region is made with those that were given. */
START_TEST(options_read)
{
	struct kvr_options given = small_options(), got, want;
	_Alignas(8) unsigned char in[LARGEST];
	struct kvr *none;
	size_t size;

	given.region_bytes = 1 << 20;
	given.lease_limit_ns = 77;
	given.unit = KVR_UNIT_BYTES;
	for (size = 16; size <= sizeof(given) + 64; size += 8) {
		struct kvr_options o = defaults();
		size_t n = size < sizeof(given) ? size : sizeof(given);

		memset(in, 0, sizeof(in));
		memcpy(in, &given, n);
		memcpy(in, &size, sizeof(size));
		/* a key that the struct has no room for */
		if (size > offsetof(struct kvr_options, secret_bytes) &&
		    size < offsetof(struct kvr_options, secret) +
		    given.secret_bytes) {
			ck_assert_int_eq(kvr_new((const struct kvr_options *)
			    (void *)in, &none), KVR_EINVAL);
			continue;
		}
		got = in_force((const struct kvr_options *)(void *)in);
		memcpy(&o, &given, n);
		o.size = sizeof(o);
		want = in_force(&o);
		ck_same_options(&got, &want);
	}
}
END_TEST

/* ----------------------------------------------------------- attaching --- */

enum { SMALL = 256 << 10 };

static int
try_attach(const struct kvr_options *o, void *memory, size_t bytes)
{
	struct kvr *untouched = (struct kvr *)memory, *made = untouched;
	int rc = kvr_attach_at(o, memory, bytes, &made);

	if (rc == KVR_OK)
		kvr_free(made);
	else
		ck_assert_ptr_eq(made, untouched);
	return rc;
}

static void *
formatted(const struct kvr_options *o, size_t bytes)
{
	void *memory = aligned_alloc(CELL, bytes);
	struct kvr *made;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(o, memory, bytes, &made), KVR_OK);
	kvr_free(made);
	return memory;
}

/* The name is that of the option, but for a secret. */
static void
ck_named(const struct kvr_options *o, void *memory, const char *field)
{
	const char *name;
	struct kvr *made;

	ck_assert_int_eq(kvr_attach_at(NULL, memory, SMALL, &made), KVR_OK);
	name = kvr_options_fault(made, o);
	ck_assert_msg(name != NULL && strncmp(name, field, strlen(name)) == 0,
	    "%s: %s", field, name);
	kvr_free(made);
}

#define MISMATCH(field, value) do {                                  \
	struct kvr_options other_ = o;                               \
	other_.field = (value);                                      \
	ck_assert_msg(try_attach(&other_, memory, SMALL) ==          \
	    KVR_EMISMATCH, "another " #field);                       \
	ck_named(&other_, memory, #field);                           \
} while (0)

START_TEST(attach_with_other_options)
{
	struct kvr_options o;
	void *memory;

	kvr_options_init(&o, sizeof(o));
	o.max_workers = 4;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 2, sizeof(o.secret));
	memory = formatted(&o, SMALL);
	ck_assert_int_eq(try_attach(&o, memory, SMALL), KVR_OK);
	MISMATCH(unit, KVR_UNIT_BYTES);
	o.block_size = 16; /* as it is by default, but not of bytes */
	MISMATCH(unit, KVR_UNIT_BYTES);
	MISMATCH(block_size, 32);
	MISMATCH(hash, KVR_HASH_DYNAMO);
	MISMATCH(eagle, 1);
	MISMATCH(max_workers, 5);
	MISMATCH(secret[0], 1);
	MISMATCH(secret[KVR_SECRET_MIN - 1], 1);
	MISMATCH(secret_bytes, KVR_SECRET_MIN + 1);
	MISMATCH(affinity_entries, 8);
	MISMATCH(journal_bytes, KVR_JOURNAL_MIN);
	MISMATCH(user_bytes, 64);
	MISMATCH(event_blocks, 1);
	MISMATCH(tenants, 1);
	/* the memory has the size that it has */
	o.region_bytes = 1;
	ck_assert_int_eq(try_attach(&o, memory, SMALL), KVR_OK);
	o.block_size = 0;
	ck_assert_int_eq(try_attach(&o, memory, SMALL), KVR_EINVAL);
	free(memory);
}
END_TEST

/* Times and the length of prompts are those of the last handle with options. */
START_TEST(limits_are_applied)
{
	struct kvr_options o = small_options(), got = { .size = sizeof(got) };
	struct kvr *other;
	void *memory;

	o.ttl_ns = 100;
	o.max_prompt_blocks = 3;
	memory = formatted(&o, SMALL);
	ck_assert_int_eq(kvr_attach_at(&o, memory, SMALL, &k), KVR_OK);
	people(2);
	say("abcdef");
	ck_assert_uint_eq(observed(0, 1), 3);
	ck_assert_uint_eq(overlap(0, 100), 3);
	ck_assert_uint_eq(overlap(0, 101), 0);
	o.ttl_ns = 200;
	o.lease_limit_ns = 77;
	o.idle_limit_ns = 78;
	o.max_prompt_blocks = KVR_AUTO;
	ck_assert_str_eq(kvr_options_fault(k, &o), "ttl_ns");
	/* without options nothing changes */
	ck_assert_int_eq(kvr_attach_at(NULL, memory, SMALL, &other), KVR_OK);
	kvr_free(other);
	ck_assert_uint_eq(overlap(0, 101), 0);
	ck_assert_int_eq(kvr_attach_at(&o, memory, SMALL, &other), KVR_OK);
	ck_assert_ptr_null(kvr_options_fault(k, &o));
	kvr_free(other);
	ck_assert_uint_eq(overlap(0, 101), 3);
	ck_assert_uint_eq(overlap(0, 201), 0);
	observe(0, "abcdef", 2);
	ck_assert_uint_eq(overlap(0, 201), 6);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	ck_assert_int_eq(got.ttl_ns, 200);
	ck_assert_int_eq(got.lease_limit_ns, 77);
	ck_assert_int_eq(got.idle_limit_ns, 78);
	ck_assert_uint_gt(got.max_prompt_blocks, 3);
	/* one after the other */
	o.lease_limit_ns = 79;
	ck_assert_str_eq(kvr_options_fault(k, &o), "lease_limit_ns");
	o.lease_limit_ns = 77;
	o.idle_limit_ns = 79;
	ck_assert_str_eq(kvr_options_fault(k, &o), "idle_limit_ns");
	o.idle_limit_ns = 78;
	o.max_prompt_blocks = 5;
	ck_assert_str_eq(kvr_options_fault(k, &o), "max_prompt_blocks");
	region_sound();
	kvr_prompt_free(p);
	kvr_free(k);
	free(memory);
}
END_TEST

/* Limits that no call can have set. */
START_TEST(limits_are_mended)
{
	struct kvr_options o = small_options(), got = { .size = sizeof(got) };
	int64_t bad[] = { INT64_MIN, -2, 0 };
	size_t i;

	region_of(&o);
	for (i = 0; i < 3; i++) {
		int64_t *at = i < 2 ? &k->region->limits.ttl
		    : &k->region->limits.idle;

		*at = bad[i];
		ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
		ck_assert_int_eq(check_mend(k), KVR_OK);
		ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
		ck_assert_int_eq(got.ttl_ns, defaults().ttl_ns);
		ck_assert_int_eq(got.idle_limit_ns, defaults().idle_limit_ns);
		region_sound();
	}
	k->region->limits.prompt_blocks = UINT64_MAX; /* and is not read */
	observe(0, "abc", 1);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	region_end();
}
END_TEST

/* An idle limit that no call can have set never ends. */
START_TEST(idle_limits_are_bounded)
{
	struct kvr_options o = small_options();
	int64_t bad[] = { INT64_MIN, -1, INT64_MAX };
	struct kvr_worker facts;
	size_t i;

	region_of(&o);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.capacity_tokens = 100;
	for (i = 0; i < 3; i++) {
		k->region->limits.idle = bad[i];
		ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
		ck_assert_int_eq(slot_at(k, 0)->ttl, TTL_NEVER);
		observe(0, "abc", 1);
		ck_assert_uint_eq(overlap(0, 2 * TTL), 3);
		ck_assert_int_eq(check_mend(k), KVR_OK);
	}
	region_end();
}
END_TEST

/* A writer that stopped in the middle left limits that no caller has set. */
START_TEST(limits_of_two_writers)
{
	struct kvr_options o = small_options();

	region_of(&o);
	ck_assert_int_eq(options_match_limits(&o, k), KVR_OK);
	k->region->limits.lease = o.lease_limit_ns = 77;
	ck_assert_int_eq(options_match_limits(&o, k), KVR_EMISMATCH);
	ck_assert_int_eq(check_mend(k), KVR_OK);
	region_end();
}
END_TEST

/* A handle on memory does not wait for the lock to apply its limits. */
START_TEST(limits_do_not_wait)
{
	struct kvr_options o = small_options();
	void *memory = formatted(&o, SMALL);
	int64_t since = lock_clock();
	struct kvr *other;

	ck_assert_int_eq(kvr_attach_at(&o, memory, SMALL, &k), KVR_OK);
	ck_assert_int_eq(region_lock(k, true), KVR_OK);
	o.ttl_ns++;
	ck_assert_int_eq(kvr_attach_at(&o, memory, SMALL, &other), KVR_EBUSY);
	region_unlock(k);
	ck_assert_int_lt(lock_clock() - since, LOCK_WAIT_NS / 2);
	ck_assert_int_eq(kvr_attach_at(&o, memory, SMALL, &other), KVR_OK);
	kvr_free(other);
	kvr_free(k);
	free(memory);
}
END_TEST

/* The first field that is wrong has its name told. */
START_TEST(faults_are_named)
{
	struct kvr_options o;

#define FAULT(change, name) do { \
	o = defaults(); \
	change; \
	ck_assert_str_eq(kvr_options_fault(NULL, &o), name); \
} while (0)
	o = defaults();
	ck_assert_ptr_null(kvr_options_fault(NULL, &o));
	ck_assert_ptr_null(kvr_options_fault(NULL, NULL));
	FAULT(memset(&o, 0, sizeof(o)), "size");
	FAULT((memset(&o, 0, sizeof(o)), o.size = sizeof(o)), "block_size");
	FAULT(o.region_bytes = 1000, "region_bytes");
	FAULT(o.region_bytes = UINT64_MAX, "region_bytes");
	FAULT(o.ttl_ns = -2, "ttl_ns");
	FAULT(o.lease_limit_ns = 0, "lease_limit_ns");
	FAULT(o.idle_limit_ns = 0, "idle_limit_ns");
	FAULT(o.unit = 2, "unit");
	FAULT(o.hash = 2, "hash");
	FAULT(o.eagle = 2, "eagle");
	FAULT(o.max_workers = 0, "max_workers");
	FAULT(o.max_prompt_blocks = 0, "max_prompt_blocks");
	FAULT(o.secret_bytes = 1, "secret_bytes");
	FAULT(o.secret_bytes = KVR_SECRET_MIN, "secret");
	FAULT((o.secret_bytes = KVR_SECRET_MIN, o.secret[0] = 1,
	    o.size = offsetof(struct kvr_options, secret)), "secret_bytes");
	FAULT(o.affinity_entries = UINT32_MAX, "affinity_entries");
	FAULT(o.file_mode = 0, "file_mode");
	FAULT(o.file_group = UINT32_MAX, "file_group");
	FAULT(o.journal_bytes = 1, "journal_bytes");
	FAULT(o.event_blocks = UINT64_MAX, "event_blocks");
	FAULT(o.tenants = UINT32_MAX, "tenants");
	FAULT(o.reserved = 1, "reserved");
	FAULT(o.user_bytes = KVR_USER_BYTES_MAX + 1, "user_bytes");
	FAULT(o.user_bytes = KVR_USER_BYTES_MAX, "region_bytes");
#undef FAULT
}
END_TEST

Suite *suite_options(void);

Suite *
suite_options(void)
{
	Suite *s = suite_create("options");
	TCase *t = tcase_create("options");

	tcase_add_test(t, default_options);
	tcase_add_test(t, auto_prompt_blocks);
	tcase_add_test(t, auto_block_size);
	tcase_add_test(t, extreme_options);
	tcase_add_test(t, too_extreme_options);
	tcase_add_test(t, extreme_times);
	tcase_add_test(t, file_options);
	tcase_add_test(t, secrets);
	tcase_add_test(t, no_random_bytes);
	tcase_add_test(t, options_read);
	tcase_add_test(t, attach_with_other_options);
	tcase_add_test(t, limits_are_applied);
	tcase_add_test(t, limits_are_mended);
	tcase_add_test(t, idle_limits_are_bounded);
	tcase_add_test(t, limits_of_two_writers);
	tcase_add_test(t, limits_do_not_wait);
	tcase_add_test(t, faults_are_named);
	suite_add_tcase(s, t);
	return s;
}
