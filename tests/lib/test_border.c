/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_border.c - bad input at the public border: options, regions, workers,
 * scopes, prompts. Requests and leases: test_misuse.c.
 *
 * Every call gets the values it must refuse: NULL, zero, huge, absurd,
 * removed, damaged. The result is a defined error, and afterwards everything
 * is as it was: `unharmed` compares all counts and the overlap of a recorded
 * prompt, and calls kvr_check.
 */
#include <math.h>

#include "region.h"

#include "border.h"

/* ------------------------------------------------------ options, region --- */

static int
try_options(const struct kvr_options *o)
{
	struct kvr *made = (struct kvr *)(void *)&before;
	int rc = kvr_new(o, &made);

	if (rc == KVR_OK)
		kvr_free(made);
	else
		ck_assert_ptr_eq(made, (struct kvr *)(void *)&before);
	return rc;
}

#define BAD_OPTION(field, value) do {                                \
	struct kvr_options bad_;                                     \
	kvr_options_init(&bad_, sizeof(bad_));                       \
	bad_.field = (value);                                        \
	ck_assert_msg(try_options(&bad_) == KVR_EINVAL,              \
	    #field " = " #value " gave %s",                          \
	    kvr_errname(try_options(&bad_)));                        \
} while (0)

START_TEST(absurd_options)
{
	ck_assert_int_eq(kvr_options_init(NULL, sizeof(struct kvr_options)),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_new(NULL, NULL), KVR_EINVAL);
	BAD_OPTION(size, 0);
	BAD_OPTION(size, sizeof(size_t) - 1);
	BAD_OPTION(ttl_ns, -2);
	BAD_OPTION(ttl_ns, INT64_MIN);
	BAD_OPTION(lease_limit_ns, -1);
	BAD_OPTION(unit, 2);
	BAD_OPTION(unit, UINT32_MAX);
	BAD_OPTION(block_size, 0);
	BAD_OPTION(block_size, UINT32_C(1) << 31);
	BAD_OPTION(block_size, UINT32_MAX);
	BAD_OPTION(hash, 2);
	BAD_OPTION(eagle, 2);
	BAD_OPTION(max_workers, 0);
	BAD_OPTION(max_workers, KVR_WORKERS_MAX + 1);
	BAD_OPTION(max_workers, UINT32_MAX);
	BAD_OPTION(max_prompt_blocks, 0);
	BAD_OPTION(secret_bytes, 1);
	BAD_OPTION(secret_bytes, KVR_SECRET_MIN); /* zeros */
	BAD_OPTION(affinity_entries, KVR_AFFINITY_ENTRIES_MAX + 1);
	BAD_OPTION(event_blocks, KVR_EVENT_BLOCKS_MAX + 1);
	BAD_OPTION(event_blocks, UINT64_MAX);
	BAD_OPTION(tenants, KVR_TENANTS_MAX + 1);
	BAD_OPTION(tenants, UINT32_MAX);
	BAD_OPTION(reserved, 1);
	BAD_OPTION(idle_limit_ns, 0);
}
END_TEST

START_TEST(region_sizes)
{
	struct kvr_options o;
	uint64_t bytes;
	int rc;

	kvr_options_init(&o, sizeof(o));
	for (bytes = 0; bytes < 4096; bytes = bytes * 3 + 1) {
		o.region_bytes = bytes;
		ck_assert_int_eq(try_options(&o), KVR_ETOOSMALL);
	}
	for (bytes = UINT64_C(1) << 50; bytes != 0; bytes <<= 1) {
		o.region_bytes = bytes;
		rc = try_options(&o);
		ck_assert(rc == KVR_ENOMEM || rc == KVR_EINVAL);
	}
	o.region_bytes = UINT64_MAX;
	rc = try_options(&o);
	ck_assert(rc == KVR_ENOMEM || rc == KVR_EINVAL);
}
END_TEST

/* An init writes at most the caller's struct, and refuses size 0. */
START_TEST(sizes_of_inits)
{
	struct kvr_options o;
	struct kvr_worker facts;
	struct kvr_request r;
	struct kvr_policy policy;
	struct kvr_scope scope;

	ck_assert_int_eq(kvr_options_init(&o, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_init(&facts, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_request_init(&r, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_policy_init(&policy, 0), KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_init(&scope, 0), KVR_EINVAL);
	memset(&o, 0x5a, sizeof(o));
	ck_assert_int_eq(kvr_options_init(&o, offsetof(struct kvr_options,
	    ttl_ns)), KVR_OK);
	ck_assert_uint_eq(o.size, offsetof(struct kvr_options, ttl_ns));
	ck_assert_uint_eq(o.region_bytes, UINT64_C(64) << 20);
	ck_assert_int_eq(o.ttl_ns, INT64_C(0x5a5a5a5a5a5a5a5a));
}
END_TEST

/* A caller compiled against a smaller struct gets defaults for the rest. */
START_TEST(struct_sizes)
{
	struct kvr_options o;
	struct kvr_stats s;
	struct kvr *small;

	memset(&o, 0xff, sizeof(o));
	o.size = offsetof(struct kvr_options, ttl_ns);
	o.region_bytes = 1 << 20;
	ck_assert_int_eq(kvr_new(&o, &small), KVR_OK);
	o.size = sizeof(o);
	ck_assert_int_eq(kvr_options_get(small, &o), KVR_OK);
	ck_assert_int_eq(o.ttl_ns, INT64_C(120000000000));
	ck_assert_uint_eq(o.block_size, 16);
	kvr_free(small);
	memset(&s, 0x5a, sizeof(s));
	s.size = offsetof(struct kvr_stats, cells);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_OK);
	ck_assert_uint_eq(s.region_bytes, before.region_bytes);
	ck_assert_uint_eq(s.cells, UINT64_C(0x5a5a5a5a5a5a5a5a));
	s.size = 0;
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_EINVAL);
}
END_TEST

static void *
formatted(const struct kvr_options *o, size_t bytes)
{
	void *memory = aligned_alloc(64, bytes);
	struct kvr *made;

	ck_assert_ptr_nonnull(memory);
	ck_assert_int_eq(kvr_new_at(o, memory, bytes, &made), KVR_OK);
	kvr_free(made);
	return memory;
}

enum { SMALL = 256 << 10 };

static int
try_attach(const struct kvr_options *o, void *memory, size_t bytes)
{
	struct kvr *made = (struct kvr *)(void *)&before;
	int rc = kvr_attach_at(o, memory, bytes, &made);

	if (rc == KVR_OK)
		kvr_free(made);
	else
		ck_assert_ptr_eq(made, (struct kvr *)(void *)&before);
	return rc;
}

START_TEST(memory_of_yours)
{
	struct kvr_options o;
	struct kvr *made;
	char *memory;

	kvr_options_init(&o, sizeof(o));
	o.max_workers = 4;
	memory = formatted(&o, SMALL);
	ck_assert_int_eq(kvr_new_at(&o, NULL, SMALL, &made), KVR_EINVAL);
	ck_assert_int_eq(kvr_new_at(&o, memory, SMALL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_new_at(&o, memory + 1, SMALL - 64, &made),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_new_at(&o, memory, 0, &made), KVR_ETOOSMALL);
	ck_assert_int_eq(kvr_new_at(&o, memory, 4000, &made), KVR_ETOOSMALL);
	ck_assert_int_eq(try_attach(NULL, NULL, SMALL), KVR_EINVAL);
	ck_assert_int_eq(try_attach(NULL, memory + 8, SMALL - 64), KVR_EINVAL);
	ck_assert_int_eq(try_attach(NULL, memory, 0), KVR_EFORMAT);
	ck_assert_int_eq(try_attach(NULL, memory, 7), KVR_EFORMAT);
	ck_assert_int_eq(try_attach(NULL, memory, SMALL - 64), KVR_EFORMAT);
	ck_assert_int_eq(kvr_attach_at(NULL, memory, SMALL, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(try_attach(NULL, memory, SMALL), KVR_OK);
	memset(memory, 0, SMALL);
	ck_assert_int_eq(try_attach(NULL, memory, SMALL), KVR_EFORMAT);
	memset(memory, 0xff, SMALL);
	ck_assert_int_eq(try_attach(NULL, memory, SMALL), KVR_EFORMAT);
	free(memory);
}
END_TEST

/* Every bit of the sealed header, one at a time. */
START_TEST(damaged_header)
{
	struct kvr_options o;
	size_t sealed = offsetof(struct region, gate), i;
	unsigned char *memory;
	unsigned bit;
	int rc;

	kvr_options_init(&o, sizeof(o));
	o.max_workers = 4;
	memory = formatted(&o, SMALL);
	for (i = 0; i < sealed; i++) {
		for (bit = 0; bit < 8; bit++) {
			memory[i] ^= (unsigned char)(1U << bit);
			rc = try_attach(NULL, memory, SMALL);
			ck_assert_msg(rc == KVR_EFORMAT || rc == KVR_EVERSION,
			    "byte %zu bit %u: %s", i, bit, kvr_errname(rc));
			memory[i] ^= (unsigned char)(1U << bit);
		}
	}
	ck_assert_int_eq(try_attach(NULL, memory, SMALL), KVR_OK);
	free(memory);
}
END_TEST

/* -------------------------------------------------------------- workers --- */

#define BAD_FACT(field, value) do {                                  \
	struct kvr_worker bad_;                                      \
	uint64_t id_ = 99;                                           \
	kvr_worker_init(&bad_, sizeof(bad_));                        \
	bad_.field = (value);                                        \
	ck_assert_msg(kvr_worker_add(k, "x", 1, &bad_, &id_) ==      \
	    KVR_EINVAL && id_ == 99, "add: " #field " = " #value);   \
	ck_assert_msg(kvr_worker_set(k, w, &bad_) == KVR_EINVAL,     \
	    "set: " #field " = " #value);                            \
} while (0)

START_TEST(absurd_facts)
{
	BAD_FACT(size, 0);
	BAD_FACT(role, 3);
	BAD_FACT(state, 3);
	BAD_FACT(state, UINT32_MAX);
	BAD_FACT(retain, KVR_RETAIN_EVENTS + 1);
	BAD_FACT(retain, KVR_RETAIN_CAPACITY); /* the capacity is unknown */
	BAD_FACT(eviction, 2);
	BAD_FACT(prefill_rate, -1);
	BAD_FACT(prefill_rate, (double)NAN);
	BAD_FACT(prefill_rate, (double)INFINITY);
	BAD_FACT(weight, 0);
	BAD_FACT(weight, -1);
	BAD_FACT(weight, (double)NAN);
	BAD_FACT(weight, (double)INFINITY);
}
END_TEST

START_TEST(names_of_workers)
{
	char name[KVR_NAME_MAX + 1];
	struct kvr_worker facts;
	uint64_t id = 99;

	kvr_worker_init(&facts, sizeof(facts));
	memset(name, 'n', sizeof(name));
	ck_assert_int_eq(kvr_worker_init(NULL, sizeof(struct kvr_worker)),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(NULL, "x", 1, &facts, &id),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, NULL, 1, &facts, &id), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, "x", 0, &facts, &id), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, name, KVR_NAME_MAX + 1, &facts,
	    &id), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, name, SIZE_MAX, &facts, &id),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, "x", 1, &facts, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_add(k, "w", 1, &facts, &id), KVR_EEXIST);
	ck_assert_int_eq(kvr_worker_find(k, "x", 1, 0, &id), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_find(k, "w", 1, 1, &id), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_find(k, "gone", 4, 0, &id), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_find(k, NULL, 1, 0, &id), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_find(k, "w", 1, 0, NULL), KVR_EINVAL);
	ck_assert_uint_eq(id, 99);
	ck_assert_int_eq(kvr_worker_find(k, "w", 1, 0, &id), KVR_OK);
	ck_assert_uint_eq(id, w);
}
END_TEST

/* Every call that takes a worker id, with an id that names none. */
static void
refuses_worker(uint64_t id)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_event_result result = { .size = sizeof(result) };
	uint64_t other = 99;
	size_t n = 99;
	char c;

	ck_assert_int_eq(kvr_worker_get(k, id, &facts), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_name(k, id, &c, 1, &n), KVR_EWORKER);
	kvr_worker_init(&facts, sizeof(facts));
	ck_assert_int_eq(kvr_worker_set(k, id, &facts), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_set_load(k, id, 0, &load), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_apply(k, id, &batch, NULL, sizeof(struct
	    kvr_event), 0, NULL, 0, NULL, 0, 200, 0, &result), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_lost(k, id, 1), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_off(k, id), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_remove(k, id), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_reset(k, id, &other), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_stats_get(k, id, &s), KVR_EWORKER);
	ck_assert_int_eq(kvr_observe(k, p, id, 200, 0, NULL), KVR_EWORKER);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id, 200, &d),
	    KVR_EWORKER);
	ck_assert_uint_eq(other, 99);
	ck_assert_uint_eq(n, 99);
	unharmed();
}

START_TEST(unknown_workers)
{
	uint64_t id, fresh, other = 99;
	struct kvr_worker facts;
	struct kvr_load load = { .size = 0 };
	int i;

	for (id = 1; id != 0; id <<= 1)
		if (id != w)
			refuses_worker(id);
	refuses_worker(0);
	refuses_worker(UINT64_MAX);
	refuses_worker(gone);
	refuses_worker(w ^ 1);
	refuses_worker(w ^ UINT64_C(1) << 16);
	/* A slot that is used again must not honour its older ids. */
	kvr_worker_init(&facts, sizeof(facts));
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(kvr_worker_add(k, "gone", 4, &facts, &id),
		    KVR_OK);
		ck_assert_int_eq(kvr_worker_reset(k, id, &fresh), KVR_OK);
		ck_assert_uint_ne(fresh, id);
		ck_assert_int_eq(kvr_worker_remove(k, fresh), KVR_OK);
		take_stock();
		refuses_worker(id);
		refuses_worker(fresh);
		refuses_worker(gone);
	}
	ck_assert_int_eq(kvr_worker_reset(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_set_load(k, w, 0, &load), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_get(k, w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_next(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_next(NULL, &other), KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_remove(NULL, w), KVR_EINVAL);
}
END_TEST

/* An id of the other kind is refused, with any other bits. */
START_TEST(ids_of_another_kind)
{
	struct kvr_decision d = { .size = sizeof(d) }, none = d;
	struct kvr_overlap o = { .blocks = 1 };
	struct kvr_request r;
	uint64_t next;
	uint32_t slot;

	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, w, 200, &d), KVR_OK);
	take_stock();
	refuses_worker(d.lease);
	ck_assert_int_eq(kvr_lease_commit(k, w, 200, 0), KVR_ELEASE);
	ck_assert_int_eq(kvr_lease_finish(k, w, NULL, 200, 0), KVR_ELEASE);
	for (slot = 0; slot < 4; slot++) {
		refuses_worker((w & ~UINT64_C(3)) | (slot == (w & 3) ? 0
		    : slot));
		ck_assert_int_eq(kvr_lease_abort(k, (d.lease &
		    ~UINT64_C(3)) | (slot == (d.lease & 3) ? 0 : slot), 200,
		    0), KVR_ELEASE);
	}
	/* also where ids that are merely no longer valid are skipped */
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.n_excluded = 2;
	r.excluded[0] = w;
	r.excluded[1] = d.lease;
	ck_assert_int_eq(kvr_route(k, p, &r, 200, &none), KVR_EWORKER);
	o.worker = d.lease;
	ck_assert_int_eq(kvr_choose(k, p, NULL, &o, sizeof(o), 1, 200, &none),
	    KVR_EWORKER);
	ck_assert_int_eq(kvr_prompt_allow(p, r.excluded, 2), KVR_EWORKER);
	next = d.lease;
	ck_assert_int_eq(kvr_worker_next(k, &next), KVR_EWORKER);
	ck_assert_uint_eq(next, d.lease);
	ck_assert_int_eq(kvr_lease_abort(k, d.lease, 200, 0), KVR_OK);
	take_stock();
}
END_TEST

/* A caller's overlaps have any length if their unknown part is zero. */
START_TEST(overlaps_of_any_length)
{
	struct {
		struct kvr_overlap o;
		uint64_t more;
	} longer[2] = { { { .worker = w, .blocks = 1 }, 0 },
		{ { .worker = w, .blocks = 1 }, 0 } };
	struct kvr_decision d = { .size = sizeof(d) };

#define CHOOSE(element, n) kvr_choose(k, p, NULL, &longer[0].o, element, n, \
    200, &d)
	ck_assert_int_eq(CHOOSE(sizeof(longer[0]), 2), KVR_OK);
	ck_assert_int_eq(CHOOSE(sizeof(uint64_t), 1), KVR_OK);
	longer[1].more = 1;
	ck_assert_int_eq(CHOOSE(sizeof(longer[0]), 2), KVR_ENEWER);
	ck_assert_int_eq(CHOOSE(sizeof(longer[0]), 1), KVR_OK);
	longer[0].o.reserved = 1;
	ck_assert_int_eq(CHOOSE(sizeof(longer[0].o), 1), KVR_EINVAL);
	ck_assert_int_eq(CHOOSE(sizeof(uint64_t) - 1, 1), KVR_EINVAL);
	ck_assert_int_eq(CHOOSE(4097, 1), KVR_EINVAL);
#undef CHOOSE
}
END_TEST

START_TEST(too_many_workers)
{
	struct kvr_worker facts;
	uint64_t id = 99, ids[3];
	char name = 'a';
	int i;

	kvr_worker_init(&facts, sizeof(facts));
	for (i = 0; i < 3; i++, name++)
		ck_assert_int_eq(kvr_worker_add(k, &name, 1, &facts, &ids[i]),
		    KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "more", 4, &facts, &id),
	    KVR_EFULL);
	ck_assert_uint_eq(id, 99);
	/* One out, one in, repeatedly: a slot does not wear out. */
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(kvr_worker_remove(k, ids[1]), KVR_OK);
		ck_assert_int_eq(kvr_worker_add(k, "b", 1, &facts, &ids[1]),
		    KVR_OK);
	}
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(kvr_worker_remove(k, ids[i]), KVR_OK);
	take_stock();
}
END_TEST

/* -------------------------------------------------------------- prompts --- */

START_TEST(absurd_prompts)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	struct kvr_prompt *q, *none = NULL;
	uint64_t a, b;

	ck_assert_int_eq(kvr_prompt_new(NULL, &none), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_new(k, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_new(k, &q), KVR_OK);
	ck_assert_int_eq(kvr_prompt_begin(NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_begin(q, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_tokens(NULL, tokens, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_tokens(q, NULL, 1), KVR_EINVAL);
	ck_assert_int_lt(kvr_prompt_tokens(q, tokens, SIZE_MAX), 0);
	ck_assert_int_lt(kvr_prompt_tokens(q, tokens, SIZE_MAX / 4), 0);
	ck_assert_int_lt(kvr_prompt_locals(q, &a, SIZE_MAX), 0);
	ck_assert_int_lt(kvr_prompt_locals(q, &a, SIZE_MAX / 8), 0);
	ck_assert_int_lt(kvr_prompt_media(q, SIZE_MAX, &a, 1), 0);
	ck_assert_int_lt(kvr_prompt_media(q, 0, &a, SIZE_MAX / 8), 0);
	ck_assert_int_lt(kvr_prompt_bytes(q, tokens, 4), 0);
	ck_assert_int_lt(kvr_prompt_allow(q, &a, SIZE_MAX / 8), 0);
	ck_assert_int_eq(kvr_prompt_allow(q, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(q, 0, &a, &b), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_tokens(q, tokens, 16), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_end(q, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_hash(q, 1, &a, &b), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(q, SIZE_MAX, &a, &b), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(NULL, 0, &a, &b), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_info_get(q, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_info_get(NULL, &info), KVR_EINVAL);
	info.size = 0;
	ck_assert_int_eq(kvr_prompt_info_get(q, &info), KVR_EINVAL);
	kvr_prompt_free(q);
	kvr_prompt_free(NULL);
	kvr_free(NULL);
}
END_TEST

START_TEST(absurd_scopes)
{
	struct kvr_scope s;

	ck_assert_int_eq(kvr_scope_init(NULL, sizeof(struct kvr_scope)),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_init(&s, sizeof(s)), KVR_OK);
	ck_assert_int_eq(kvr_scope_set(NULL, &s, KVR_SCOPE_SALT, "x", 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_set(k, NULL, KVR_SCOPE_SALT, "x", 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_set(k, &s, (enum kvr_scope_part)4, "x", 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_set(k, &s, KVR_SCOPE_SALT, NULL, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_scope_set(k, &s, KVR_SCOPE_SALT, NULL, 0),
	    KVR_OK);
	s.size = 0;
	ck_assert_int_eq(kvr_prompt_begin(p, &s), KVR_EINVAL);
}
END_TEST

/* Every call that takes a prompt, with one that it must refuse. */
static void
refuses_prompt(struct kvr_prompt *q, int error)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c;
	struct kvr_overlap v;
	size_t n = 99;

	ck_assert_int_eq(kvr_match(k, q, 200, &v, sizeof(v), 1, &n), error);
	ck_assert_int_eq(kvr_route(k, q, NULL, 200, &d), error);
	ck_assert_int_eq(kvr_choose(k, q, NULL, NULL, 0, 0, 200, &d), error);
	ck_assert_int_eq(kvr_candidates(k, q, NULL, 200, &c, sizeof(c), 1,
	    &n), error);
	ck_assert_int_eq(kvr_observe(k, q, w, 200, 0, NULL), error);
	ck_assert_int_eq(kvr_lease_open(k, q, NULL, 200, &d), error);
	ck_assert_int_eq(kvr_lease_open_on(k, q, NULL, w, 200, &d), error);
	ck_assert_uint_eq(n, 99);
	unharmed();
}

/* A prompt without tokens overlaps with nothing and needs no worker. */
static void
refuses_nothing(struct kvr_prompt *q)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c;
	uint32_t recorded = 99;
	size_t n = 99;

	ck_assert_int_eq(kvr_route(k, q, NULL, 200, &d), KVR_EEMPTY);
	ck_assert_int_eq(kvr_choose(k, q, NULL, NULL, 0, 0, 200, &d),
	    KVR_EEMPTY);
	ck_assert_int_eq(kvr_candidates(k, q, NULL, 200, &c, sizeof(c), 1,
	    &n), KVR_EEMPTY);
	ck_assert_int_eq(kvr_lease_open(k, q, NULL, 200, &d), KVR_EEMPTY);
	ck_assert_int_eq(kvr_lease_open_on(k, q, NULL, w, 200, &d), KVR_EEMPTY);
	ck_assert_uint_eq(n, 99);
	unharmed();
	ck_assert_int_eq(kvr_match(k, q, 100, NULL, sizeof(struct
	    kvr_overlap), 0, &n), KVR_OK);
	ck_assert_uint_eq(n, 0);
	ck_assert_int_eq(kvr_observe(k, q, w, 100, 0, &recorded), KVR_OK);
	ck_assert_uint_eq(recorded, 0);
	take_stock();
}

START_TEST(prompts_in_a_wrong_state)
{
	struct kvr_options o;
	struct kvr *other;
	struct kvr_prompt *q;

	refuses_prompt(NULL, KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_new(k, &q), KVR_OK);
	refuses_prompt(q, KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_begin(q, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_tokens(q, tokens, 20), KVR_OK);
	refuses_prompt(q, KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_end(q, NULL), KVR_OK);
	ck_assert_int_eq(kvr_prompt_tokens(q, tokens, 20), KVR_OK);
	refuses_prompt(q, KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_set_tokens(q, NULL, NULL, 0), KVR_OK);
	refuses_nothing(q);
	kvr_prompt_free(q);
	/* Another region's secret makes other hashes, useless here. */
	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 1 << 20;
	ck_assert_int_eq(kvr_new(&o, &other), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(other, &q), KVR_OK);
	kvr_free(other);
	ck_assert_int_eq(kvr_prompt_set_tokens(q, NULL, tokens, 80), KVR_OK);
	refuses_prompt(q, KVR_EMISMATCH);
	kvr_prompt_free(q);
}
END_TEST

Suite *suite_border(void);

Suite *
suite_border(void)
{
	Suite *s = suite_create("border");
	TCase *t = tcase_create("border");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, absurd_options);
	tcase_add_test(t, region_sizes);
	tcase_add_test(t, sizes_of_inits);
	tcase_add_test(t, struct_sizes);
	tcase_add_test(t, memory_of_yours);
	tcase_add_test(t, damaged_header);
	tcase_add_test(t, absurd_facts);
	tcase_add_test(t, names_of_workers);
	tcase_add_test(t, unknown_workers);
	tcase_add_test(t, ids_of_another_kind);
	tcase_add_test(t, overlaps_of_any_length);
	tcase_add_test(t, too_many_workers);
	tcase_add_test(t, absurd_prompts);
	tcase_add_test(t, absurd_scopes);
	tcase_add_test(t, prompts_in_a_wrong_state);
	suite_add_tcase(s, t);
	return s;
}
