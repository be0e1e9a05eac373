/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_poll.c - engines are asked for their capacity and load. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "area.h"
#include "kvroute.h"
#include "pool_bed.h"

#define NOW (100 * BED_SECOND)
#define MS (BED_SECOND / 1000)

static const char capacity[] =
    "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n"
    "vllm:num_requests_running 0\n";
static const char busy[] = "vllm:num_requests_running 6\n"
    "vllm:num_requests_waiting 2\n";

static struct kvr *region;
static struct kvh *pool;

static struct kvh *
door(const char *options)
{
	struct kvh *h = NULL;

	ck_assert_int_eq(kvh_new(region, options, strlen(options), NULL, &h),
	    0);
	return h;
}

static void
begin(const char *options)
{
	struct kvr_options o;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.max_workers = 16;
	o.user_bytes = area_bytes(o.max_workers);
	ck_assert_int_eq(kvr_new(&o, &region), 0);
	pool = door(options);
}

static void
end(void)
{
	kvh_free(pool);
	kvr_free(region);
}

static char asked[64], path[256];

/* 0: none is due. */
static uint64_t
poll_next(struct kvh *h, int64_t now)
{
	char server[KVH_NAME_MAX];
	const char *where;
	size_t n, length;
	uint64_t token = 0;
	int error = kvh_poll_next(h, now, server, sizeof(server), &n, &where,
	    &length, &token);

	ck_assert_int_eq(error, token == 0 ? KVH_EEND : 0);
	if (token == 0)
		return 0;
	(void)snprintf(asked, sizeof(asked), "%.*s", (int)n, server);
	(void)snprintf(path, sizeof(path), "%.*s", (int)length, where);
	return token;
}

static int
poll_done(uint64_t token, unsigned status, const char *body, int64_t now)
{
	return kvh_poll_done(pool, token, status, body, strlen(body), now);
}

static uint64_t
capacity_of(const char *name)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id;

	ck_assert_int_eq(kvr_worker_find(region, name, 1, 0, &id), 0);
	ck_assert_int_eq(kvr_worker_get(region, id, &facts), 0);
	return facts.capacity_tokens;
}

static uint64_t
load_of(const char *name)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint64_t id;

	ck_assert_int_eq(kvr_worker_find(region, name, 1, 0, &id), 0);
	ck_assert_int_eq(kvr_worker_get_load(region, id, 0, &load), 0);
	return load.requests;
}

/* Path by path, until one has it. */
START_TEST(capacity_is_read)
{
	uint64_t token, again;
	char first[256];

	begin("");
	ck_assert_int_eq(bed_server(pool, "a", "capacity=auto"), 0);
	ck_assert_int_eq(bed_server(pool, "b", "capacity=7000"), 0);
	token = poll_next(pool, NOW);
	ck_assert_str_eq(asked, "a");
	ck_assert_uint_eq(poll_next(pool, NOW), 0);
	(void)snprintf(first, sizeof(first), "%s", path);
	ck_assert_int_eq(poll_done(token, 404, "", NOW), 0);
	again = poll_next(pool, NOW);
	ck_assert_str_eq(asked, "a");
	ck_assert_str_ne(path, first);
	ck_assert_int_eq(poll_done(token, 404, "", NOW), KVH_EEND);
	for (; again != 0; again = poll_next(pool, NOW))
		ck_assert_int_eq(poll_done(again, 404, "", NOW), 0);
	ck_assert_uint_eq(capacity_of("a"), 0);
	token = poll_next(pool, NOW + 2 * BED_SECOND);
	ck_assert_str_eq(path, first);
	ck_assert_int_eq(poll_done(token, 200, capacity, NOW + 2 *
	    BED_SECOND), 0);
	ck_assert_uint_eq(poll_next(pool, NOW + 2 * BED_SECOND), 0);
	ck_assert_uint_eq(capacity_of("a"), 16000);
	ck_assert_uint_eq(capacity_of("b"), 7000);
	/* The same facts again: it is not asked again. */
	ck_assert_int_eq(bed_server(pool, "a", "capacity=auto"), 0);
	ck_assert_uint_eq(capacity_of("a"), 16000);
	ck_assert_uint_eq(poll_next(pool, NOW + 2 * BED_SECOND), 0);
	/* With other facts it is; until then the old capacity stays. */
	ck_assert_int_eq(bed_server(pool, "a", "capacity=auto weight=2"), 0);
	ck_assert_uint_eq(capacity_of("a"), 16000);
	ck_assert_uint_ne(poll_next(pool, NOW + 2 * BED_SECOND), 0);
	ck_assert_int_eq(bed_server(pool, "a", "capacity=9000"), 0);
	ck_assert_uint_eq(capacity_of("a"), 9000);
	end();
}
END_TEST

/* One that was asked and is gone, or does not answer. */
START_TEST(no_answer)
{
	char server[KVH_NAME_MAX];
	const char *where;
	uint64_t token;
	size_t n, length;

	begin("");
	ck_assert_int_eq(bed_server(pool, "a", "capacity=auto"), 0);
	ck_assert_int_eq(kvh_poll_next(pool, NOW, server, sizeof(server) - 1,
	    &n, &where, &length, &token), KVR_EINVAL);
	token = poll_next(pool, NOW);
	ck_assert_uint_ne(token, 0);
	ck_assert_int_eq(poll_done(token, 0, "", NOW), 0);
	ck_assert_uint_eq(poll_next(pool, NOW), 0);
	token = poll_next(pool, NOW + 2 * BED_SECOND);
	ck_assert_uint_ne(token, 0);
	ck_assert_uint_eq(poll_next(pool, NOW + 11 * BED_SECOND), 0);
	ck_assert_uint_eq(poll_next(pool, NOW + 13 * BED_SECOND), 0);
	ck_assert_int_eq(poll_done(token, 200, capacity, NOW + 13 *
	    BED_SECOND), KVH_EEND);
	token = poll_next(pool, NOW + 40 * BED_SECOND);
	ck_assert_uint_ne(token, 0);
	ck_assert_int_eq(bed_server(pool, "a", "state=gone"), 0);
	ck_assert_int_eq(poll_done(token, 200, capacity, NOW + 41 *
	    BED_SECOND), KVH_EEND);
	ck_assert_int_eq(kvh_poll_done(pool, 0, 200, "", 0, NOW), KVH_EEND);
	end();
}
END_TEST

/* Two polls show a load that the pool has not booked; one door asks. */
START_TEST(load_is_read)
{
	struct kvh *other;
	uint64_t token;
	int64_t now;
	int i, n;

	begin("poll=1s poll_path=/load");
	other = door("poll=1s poll_path=/load");
	ck_assert_int_eq(bed_server(pool, "a", ""), 0);
	ck_assert_int_eq(bed_server(pool, "b", ""), 0);
	ck_assert_int_eq(bed_server(other, "a", ""), 0);
	for (i = n = 0; i < 32; i++) {
		now = NOW + i * 130 * MS;
		while ((token = poll_next(pool, now)) != 0) {
			ck_assert_str_eq(path, "/load");
			n += asked[0] == 'a';
			ck_assert_int_eq(poll_done(token, 200, asked[0] == 'a' ?
			    busy : "vllm:num_requests_running 0\n", now), 0);
		}
		ck_assert_uint_eq(poll_next(other, now), 0);
	}
	ck_assert_int_ge(n, 3);
	ck_assert_int_le(n, 5);
	ck_assert_uint_eq(load_of("a"), 8);
	ck_assert_uint_eq(load_of("b"), 0);
	/* Another door leads once this one has left, or is silent. */
	kvh_free(pool);
	pool = other;
	ck_assert_uint_eq(poll_next(pool, now), 0);
	for (i = 0; i < 32 && load_of("a") > 0; i++)
		while ((token = poll_next(pool, now + i * 130 * MS)) != 0)
			ck_assert_int_eq(poll_done(token, 200,
			    "vllm:num_requests_running 0\n",
			    now + i * 130 * MS), 0);
	ck_assert_uint_eq(load_of("a"), 0);
	end();
}
END_TEST

START_TEST(loads_are_shown)
{
	static char text[1 << 16];
	uint64_t token;
	size_t n;

	begin("poll=1s");
	ck_assert_int_eq(bed_server(pool, "a", "ranks=1"), 0);
	while ((token = poll_next(pool, NOW)) != 0)
		ck_assert_int_eq(poll_done(token, 200, busy, NOW), 0);
	ck_assert_int_eq(kvh_status(pool, KVH_PROMETHEUS, NOW, text,
	    sizeof(text) - 1, &n), 0);
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "polled_running{"));
	end();
}
END_TEST

/* A poll that has no memory is made later. */
START_TEST(no_memory)
{
	unsigned long n;
	uint64_t token;

	for (n = 1; n < 12; n++) {
		begin("poll=1s");
		ck_assert_int_eq(bed_server(pool, "a", "capacity=auto"), 0);
		alloc_fail_at(n);
		token = poll_next(pool, NOW);
		if (token != 0)
			(void)poll_done(token, 200, capacity, NOW);
		alloc_reset();
		while ((token = poll_next(pool, NOW + 2 * BED_SECOND)) != 0)
			(void)poll_done(token, 200, capacity, NOW + 2 *
			    BED_SECOND);
		ck_assert_uint_eq(capacity_of("a"), 16000);
		end();
	}
}
END_TEST

Suite *suite_pool_poll(void);

Suite *
suite_pool_poll(void)
{
	Suite *s = suite_create("pool_poll");
	TCase *t = tcase_create("pool_poll");

	tcase_add_test(t, capacity_is_read);
	tcase_add_test(t, no_answer);
	tcase_add_test(t, load_is_read);
	tcase_add_test(t, loads_are_shown);
	tcase_add_test(t, no_memory);
	suite_add_tcase(s, t);
	return s;
}
