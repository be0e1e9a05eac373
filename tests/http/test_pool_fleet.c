/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pool_fleet.c - servers of a pool that fail, fill, come and go. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "area.h"
#include "busy.h"
#include "kvroute.h"
#include "pool_bed.h"

#define CHAT "/v1/chat/completions"
#define NOW (100 * BED_SECOND)
#define MS (BED_SECOND / 1000)

/* A request of another text each time; NULL: no server. */
static struct kvh_call *
send_one(struct kvh *h, unsigned number, int64_t now, int *error)
{
	char text[32];
	struct kvh_call *c;

	(void)snprintf(text, sizeof(text), "text %u ", number);
	c = bed_request(h, CHAT, NULL, bed_chat(text, 600, ""), now);
	*error = kvh_pick(c, now, NULL);
	return c;
}

static void
answer_one(struct kvh_call *c, int64_t now)
{
	ck_assert_ptr_nonnull(bed_answer(c, 200, "application/json", bed_json,
	    0, now));
	kvh_call_free(c);
}

/* ---------------------------------------------------------------- gray --- */

/* So many milliseconds of each server; 0: it fails. */
static void
fleet_pass(struct kvh *h, const int64_t ms[4], unsigned from, unsigned to,
    unsigned seen[4])
{
	struct kvh_call *c;
	int64_t now;
	unsigned i, at;
	int error;

	for (i = from; i < to; i++) {
		now = NOW + i * 20 * MS;
		c = send_one(h, i, now, &error);
		ck_assert_int_eq(error, 0);
		at = (unsigned)(bed_target(c)[0] - 'a');
		seen[at]++;
		if (ms[at] > 0) {
			answer_one(c, now + ms[at] * MS);
			continue;
		}
		ck_assert_int_eq(kvh_tell(c, 0, "", 0), KVH_EORDER);
		ck_assert_int_eq(kvh_failed(c, KVH_STATUS, 503, now + MS), 0);
		ck_assert_int_eq(kvh_pick(c, now + MS, NULL), 0);
		answer_one(c, now + 2 * MS);
	}
}

static const struct {
	int64_t ms;            /* of the sick one */
	const char *word;
} sicks[] = { { 3000, "slow" }, { 0, "failing" } };

/* It is left alone but for probes, by which it heals. */
START_TEST(gray_heals)
{
	static const int64_t well[4] = { 20, 20, 20, 20 };
	const int64_t sick[4] = { sicks[_i].ms, 20, 20, 20 };
	struct kvh *h = bed_pool("gray=4", 4);
	unsigned before[4] = { 0 }, ill[4] = { 0 }, late[4] = { 0 },
	    after[4] = { 0 };

	fleet_pass(h, well, 0, 400, before);
	ck_assert_uint_gt(before[0], 60);
	fleet_pass(h, sick, 400, 1200, ill);
	ck_assert_int_eq(bed_count(h, "grayed"), 1);
	fleet_pass(h, sick, 1200, 1600, late);
	ck_assert_uint_lt(late[0], 12);
	ck_assert_uint_gt(late[0], 0);
	ck_assert_int_eq(bed_count(h, "healed"), 0);
	fleet_pass(h, well, 1600, 3600, after);
	ck_assert_int_eq(bed_count(h, "healed"), 1);
	ck_assert_int_gt(bed_count(h, "probe"), 3);
	memset(after, 0, sizeof(after));
	fleet_pass(h, well, 3600, 4000, after);
	ck_assert_uint_gt(after[0], 60);
	kvh_free(h);
}
END_TEST

/* One that joins has a part of the others' load at first. */
START_TEST(slow_start)
{
	struct kvh *h = bed_pool("slow_start=60s", 2);
	struct kvh_call *c[64];
	unsigned i, n;
	int error;

	for (i = 0; i < 20; i++)
		c[i] = send_one(h, i, NOW, &error);
	ck_assert_int_eq(bed_server(h, "c", ""), 0);
	for (n = 0; i < 40; i++) {
		c[i] = send_one(h, i, NOW + BED_SECOND, &error);
		n += bed_target(c[i])[0] == 'c';
	}
	ck_assert_uint_eq(n, 1);
	for (i = 0; i < 40; i++)
		answer_one(c[i], NOW + 2 * BED_SECOND);
	/* It has answered, and is warm a minute later. */
	for (i = 0, n = 0; i < 30; i++) {
		c[i] = send_one(h, 100 + i, NOW + 70 * BED_SECOND, &error);
		n += bed_target(c[i])[0] == 'c';
	}
	ck_assert_uint_ge(n, 8);
	for (i = 0; i < 30; i++)
		answer_one(c[i], NOW + 71 * BED_SECOND);
	kvh_free(h);
}
END_TEST

/* --------------------------------------------------------------- limits --- */

START_TEST(max_conns)
{
	struct kvh *h = bed_pool("", 0);
	struct kvh_call *c[5];
	int error, i;

	ck_assert_int_eq(bed_server(h, "a", "max_conns=2"), 0);
	ck_assert_int_eq(bed_server(h, "b", "max_conns=1"), 0);
	for (i = 0; i < 3; i++) {
		c[i] = send_one(h, (unsigned)i, NOW, &error);
		ck_assert_int_eq(error, 0);
	}
	c[3] = send_one(h, 3, NOW, &error);
	ck_assert_int_eq(error, KVH_EFULL);
	ck_assert_str_eq(bed_word(c[3], KVH_REASON_WORD), "no_worker");
	ck_assert_int_gt(bed_fact(c[3], KVH_RETRY_MS), 0);
	ck_assert_int_eq(kvh_wait(c[3], NOW), KVH_EFULL);
	answer_one(c[0], NOW + 1);
	ck_assert_int_eq(kvh_pick(c[3], NOW + 1, NULL), 0);
	ck_assert_int_eq(bed_fact(c[3], KVH_TRIES), 1);
	for (i = 1; i < 4; i++)
		answer_one(c[i], NOW + 2);
	kvh_free(h);
}
END_TEST

/* A weight is a share of the load. */
START_TEST(weights)
{
	struct kvh *h = bed_pool("", 0);
	struct kvh_call *c[40];
	unsigned i, n = 0;

	ck_assert_int_eq(bed_server(h, "a", "weight=3"), 0);
	ck_assert_int_eq(bed_server(h, "b", ""), 0);
	for (i = 0; i < 40; i++) {
		c[i] = bed_request(h, "/v1/embeddings", NULL, "{}", NOW);
		ck_assert_int_eq(kvh_pick(c[i], NOW, NULL), 0);
		n += bed_target(c[i])[0] == 'a';
	}
	ck_assert_uint_eq(n, 30);
	for (i = 0; i < 40; i++)
		kvh_call_free(c[i]);
	kvh_free(h);
}
END_TEST

static const struct {
	const char *a, *b, *allow; /* facts; servers that are named */
	int error;
	char to;               /* 0: either */
} states[] = {
	{ "", "", "", 0, 0 }, { "state=drain", "", "", 0, 'b' },
	{ "state=down", "", "", 0, 'b' }, { "state=gone", "", "", 0, 'b' },
	{ "state=drain", "state=drain", "", 0, 0 },
	{ "state=drain", "state=down", "", 0, 'a' },
	{ "state=down", "state=down", "", KVH_ENOSERVER, 0 },
	{ "", "", "b", 0, 'b' }, { "", "", "ab", 0, 0 },
	{ "", "state=down", "b", KVH_ENOSERVER, 0 },
	{ "", "", "z", KVH_ENOSERVER, 0 }, { "", "", "zb", 0, 'b' }
};

START_TEST(each_state)
{
	static const char *const bodies[] = { "{}",
	    "{\"prompt\":\"some text\"}" };
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c;
	const char *allow;
	int i, error;

	ck_assert_int_eq(bed_server(h, "a", states[_i].a), 0);
	ck_assert_int_eq(bed_server(h, "b", states[_i].b), 0);
	for (i = 0; i < 2; i++) {
		c = bed_request(h, "/v1/completions", NULL, bodies[i], NOW);
		for (allow = states[_i].allow; *allow != '\0'; allow++) {
			error = kvh_allow(c, allow, 1);
			ck_assert_int_eq(error, *allow == 'z' ? KVH_ENAME : 0);
		}
		ck_assert_int_eq(kvh_pick(c, NOW, NULL), states[_i].error);
		if (states[_i].to != 0)
			ck_assert_int_eq(bed_target(c)[0], states[_i].to);
		kvh_call_free(c);
	}
	kvh_free(h);
}
END_TEST

/* A drained server is no further target, also if there is no other. */
START_TEST(further_targets)
{
	struct kvh *h = bed_pool("fallbacks=7", 4);
	struct kvh_call *c;
	uint32_t targets = 0;

	ck_assert_int_eq(bed_server(h, "b", "state=drain"), 0);
	ck_assert_int_eq(bed_server(h, "c", "state=down"), 0);
	c = bed_request(h, CHAT, NULL, bed_chat("w ", 900, ""), NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 2);
	kvh_call_free(c);
	c = bed_request(h, "/v1/embeddings", NULL, "{}", NOW);
	ck_assert_int_eq(kvh_pick(c, NOW, &targets), 0);
	ck_assert_uint_eq(targets, 2);
	kvh_call_free(c);
	kvh_free(h);
}
END_TEST

/* One that is gone ends with its last request; its name may come back. */
START_TEST(gone)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c;
	int64_t next = 0;
	int error;

	c = send_one(h, 1, NOW, &error);
	ck_assert_int_eq(bed_server(h, "a", "state=gone"), 0);
	ck_assert_int_eq(bed_server(h, "b", "state=gone"), 0);
	ck_assert_int_eq(kvh_tick(h, NOW, &next), 0);
	ck_assert_int_gt(next, NOW);
	ck_assert_int_eq(bed_target(c)[0] == 'a' || bed_target(c)[0] == 'b',
	    1);
	answer_one(c, NOW + 1);
	ck_assert_int_eq(kvh_tick(h, NOW + 1, NULL), 0);
	c = send_one(h, 2, NOW + 2, &error);
	ck_assert_int_eq(error, KVH_ENOSERVER);
	kvh_call_free(c);
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	c = send_one(h, 2, NOW + 3, &error);
	ck_assert_int_eq(error, 0);
	answer_one(c, NOW + 4);
	ck_assert_int_eq(bed_server(h, "never", "state=gone"), 0);
	kvh_free(h);
}
END_TEST

/* ------------------------------------------------------------ processes --- */

/* Another pool on the file resets, removes and drains workers. */
START_TEST(two_pools)
{
	char path[BED_PATH];
	struct kvh *h[2] = { NULL };
	struct kvh_call *c;
	int error, i;

	bed_file(path);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvh_open(path, strlen(path), "size=8m", 7,
		    NULL, &h[i]), 0);
		ck_assert_int_eq(bed_server(h[i], "a", "max_conns=1"), 0);
	}
	c = send_one(h[0], 1, NOW, &error);
	ck_assert_int_eq(error, 0);
	/* The other one sees this load. */
	ck_assert_ptr_nonnull(c);
	{
		struct kvh_call *d = send_one(h[1], 2, NOW + 1, &error);

		ck_assert_int_eq(error, KVH_EFULL);
		kvh_call_free(d);
	}
	answer_one(c, NOW + 2);
	ck_assert_int_eq(kvh_server_reset(h[1], "a", 1, NOW + 3), 0);
	c = send_one(h[0], 1, NOW + BED_SECOND, &error);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(bed_fact(c, KVH_OVERLAP_TOKENS), 0);
	ck_assert_int_ne(bed_fact(c, KVH_LEASE), 0);
	answer_one(c, NOW + BED_SECOND);
	ck_assert_int_eq(bed_server(h[1], "a", "state=gone"), 0);
	ck_assert_int_eq(kvh_tick(h[1], NOW + 2 * BED_SECOND, NULL), 0);
	c = send_one(h[0], 1, NOW + 3 * BED_SECOND, &error);
	ck_assert_int_eq(error, 0);
	ck_assert_int_ne(bed_fact(c, KVH_LEASE), 0);
	answer_one(c, NOW + 3 * BED_SECOND);
	kvh_free(h[0]);
	kvh_free(h[1]);
	bed_file_end(path);
}
END_TEST

static const char doors_options[] = "size=8m gray=4 slow_start=60s";

/* Doors on one file, each with the servers a to d. */
static void
doors_open(const char *path, struct kvh *h[2])
{
	char name[2] = "a";
	int i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvh_open(path, strlen(path), doors_options,
		    strlen(doors_options), NULL, &h[i]), 0);
		for (name[0] = 'a'; name[0] <= 'd'; name[0]++)
			ck_assert_int_eq(bed_server(h[i], name, ""), 0);
	}
}

static void
doors_close(const char *path, struct kvh *h[2])
{
	kvh_free(h[0]);
	kvh_free(h[1]);
	bed_file_end(path);
}

/* One door has seen that a server is sick, and the other one spares it. */
START_TEST(doors_share_verdicts)
{
	static const int64_t sick[4] = { 3000, 20, 20, 20 };
	char path[BED_PATH];
	unsigned seen[2][4] = { { 0 } };
	struct kvh *h[2] = { NULL };

	bed_file(path);
	doors_open(path, h);
	fleet_pass(h[0], sick, 0, 1200, seen[0]);
	ck_assert_int_eq(bed_count(h[0], "grayed"), 1);
	ck_assert_int_eq(bed_count(h[1], "grayed"), 1);
	fleet_pass(h[1], sick, 1200, 1300, seen[1]);
	ck_assert_uint_lt(seen[1][0], 5);
	/* Each counts the work of both. */
	ck_assert_int_eq(bed_count(h[0], "responses"),
	    bed_count(h[1], "responses"));
	doors_close(path, h);
}
END_TEST

/* As doors_open, but by the library, with an area of so many bytes. */
static struct kvr *
region_open(const char *path, uint64_t user_bytes)
{
	struct kvr_options o;
	struct kvr *k = NULL;

	kvr_options_init(&o, sizeof(o));
	o.unit = KVR_UNIT_BYTES;
	o.region_bytes = 8 << 20;
	o.block_size = 256;
	o.max_workers = 256;
	o.ttl_ns = 120 * BED_SECOND;
	o.affinity_entries = 16384;
	o.user_bytes = user_bytes;
	ck_assert_int_eq(kvr_open(path, strlen(path), KVR_OPEN_CREATE |
	    KVR_OPEN_ATTACH, &o, &k), 0);
	return k;
}

/* A region that has no area, or is too small for one, does without. */
START_TEST(doors_without_an_area)
{
	char path[BED_PATH];
	struct kvh *h[2] = { NULL };
	struct kvr *k;

	bed_file(path);
	k = region_open(path, 0);
	doors_open(path, h);
	kvr_free(k);
	doors_close(path, h);
	h[0] = bed_pool("size=64k workers=4 affinity=0 block=16", 1);
	ck_assert_ptr_nonnull(h[0]);
	kvh_free(h[0]);
}
END_TEST

/* Regions of another release, in a file or in memory of the caller's. */
START_TEST(doors_of_another_layout)
{
	char path[BED_PATH];
	struct kvh *h[2] = { NULL };
	struct kvr *k;
	void *area;
	size_t i, n;

	bed_file(path);
	k = region_open(path, 64);
	ck_assert_int_eq(kvh_open(path, strlen(path), doors_options,
	    strlen(doors_options), NULL, &h[0]), KVH_EAREA);
	ck_assert_ptr_nonnull(strstr(kvh_strerror(KVH_EAREA), "layout"));
	/* An area of the caller's own is left to it. */
	ck_assert_int_eq(kvh_new(k, "", 0, NULL, &h[0]), 0);
	ck_assert_int_eq(bed_server(h[0], "a", ""), 0);
	kvh_free(h[0]);
	h[0] = NULL;
	ck_assert_int_eq(kvr_user_area(k, &area, &n), 0);
	for (i = 0; i < n; i++)
		ck_assert_int_eq(((char *)area)[i], 0);
	ck_assert_int_eq(kvh_open(path, strlen(path), "size=8m workers=4", 17,
	    NULL, &h[0]), KVR_EMISMATCH);
	kvr_free(k);
	doors_close(path, h);
}
END_TEST

/* Whatever another process writes there, no memory is harmed. */
START_TEST(hostile_area)
{
	static const char options[] = "gray=4 slow_start=60s max_fails=off "
	    "poll=1s queue=4";
	static const int64_t well[4] = { 20, 20, 0, 20 };
	static char text[1 << 18];
	char server[KVH_NAME_MAX];
	const char *where;
	uint64_t token;
	size_t length;
	struct kvr_options o;
	struct kvh *h = NULL;
	struct kvr *k = NULL;
	uint64_t *words, seed = 1 + (uint64_t)_i;
	unsigned seen[4] = { 0 };
	size_t bytes, i, n;
	char name[2] = "a";
	void *area;
	int round;

	kvr_options_init(&o, sizeof(o));
	o.unit = KVR_UNIT_BYTES;
	o.region_bytes = 4 << 20;
	o.max_workers = 16;
	o.affinity_entries = 64;
	o.user_bytes = area_bytes(o.max_workers);
	ck_assert_int_eq(kvr_new(&o, &k), 0);
	ck_assert_int_eq(kvh_new(k, options, strlen(options), NULL, &h), 0);
	ck_assert_int_eq(kvr_user_area(k, &area, &bytes), 0);
	words = area;
	for (name[0] = 'a'; name[0] <= 'd'; name[0]++)
		ck_assert_int_eq(bed_server(h, name, ""), 0);
	for (round = 0; round < 40; round++) {
		for (i = 2; i < bytes / sizeof(*words); i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			words[i] = _i == 0 ? UINT64_MAX : _i == 1 ? seed :
			    _i == 2 ? seed & 7 : _i == 3 ? INT64_MAX :
			    (uint64_t)INT64_MIN;
		}
		if (kvh_poll_next(h, NOW, server, sizeof(server), &n, &where,
		    &length, &token) == 0)
			(void)kvh_poll_done(h, token, 200, "x", 1, NOW);
		fleet_pass(h, well, (unsigned)round * 10,
		    (unsigned)round * 10 + 10, seen);
		ck_assert_int_eq(kvh_tick(h, NOW, NULL), 0);
		ck_assert_int_eq(kvh_status(h, KVH_JSON, NOW, text,
		    sizeof(text), &n), 0);
	}
	kvh_free(h);
	kvr_free(k);
}
END_TEST

/* Leases of a process that died are no load. */
START_TEST(dead_process)
{
	char path[BED_PATH];
	struct kvh *h = NULL;
	int error, i;
	pid_t child;

	bed_file(path);
	child = fork();
	ck_assert_int_ne(child, -1);
	if (child == 0) {
		if (kvh_open(path, strlen(path), "size=8m", 7, NULL, &h) != 0 ||
		    bed_server(h, "a", "") != 0)
			test_exit(1);
		for (i = 0; i < 5; i++)
			(void)send_one(h, (unsigned)i, NOW, &error);
		test_exit(error != 0);
	}
	ck_assert_int_eq(waitpid(child, &error, 0), child);
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(kvh_open(path, strlen(path), "size=8m", 7, NULL, &h),
	    0);
	ck_assert_int_eq(bed_count(h, "leases"), 5);
	for (i = 0; i < 8 && bed_count(h, "leases") > 0; i++)
		ck_assert_int_eq(kvh_tick(h, NOW + i, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	kvh_free(h);
	bed_file_end(path);
}
END_TEST

static struct kvh *
file_pool(const char *path)
{
	struct kvh *h = NULL;

	ck_assert_int_eq(kvh_open(path, strlen(path), "size=8m", 7, NULL, &h),
	    0);
	ck_assert_int_eq(bed_server(h, "a", ""), 0);
	return h;
}

/* Each pool ends its own leases, and no process those of another. */
START_TEST(pools_of_a_process)
{
	char path[BED_PATH];
	struct kvh *h[2];
	struct kvh_call *c[2];
	int error, i;
	pid_t child;

	bed_file(path);
	for (i = 0; i < 2; i++) {
		h[i] = file_pool(path);
		c[i] = send_one(h[i], (unsigned)i, NOW, &error);
	}
	ck_assert_int_eq(bed_count(h[0], "leases"), 2);
	child = fork();
	ck_assert_int_ne(child, -1);
	if (child == 0) {
		kvh_free(h[0]);
		test_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &error, 0), child);
	ck_assert_int_eq(bed_count(h[0], "leases"), 2);
	/* The end waits as long as the pool does. */
	busy_begin(150);
	kvh_call_free(c[0]);
	kvh_free(h[0]);
	busy_end();
	ck_assert_int_eq(bed_count(h[1], "leases"), 1);
	kvh_call_free(c[1]);
	kvh_free(h[1]);
	bed_file_end(path);
}
END_TEST

/* ----------------------------------------------------------------- late --- */

/* A region that is locked keeps no request, and nothing of it is lost. */
START_TEST(locked)
{
	struct kvh *h = bed_pool("", 2);
	struct kvh_call *c[4];
	int error, i;

	for (i = 0; i < 2; i++)
		c[i] = send_one(h, (unsigned)i, NOW, &error);
	busy_begin(1000000);
	for (i = 2; i < 4; i++) {
		c[i] = send_one(h, (unsigned)i, NOW, &error);
		ck_assert_int_eq(error, 0);
		ck_assert_str_eq(bed_word(c[i], KVH_REASON_WORD), "busy");
		ck_assert_int_eq(bed_fact(c[i], KVH_LEASE), 0);
	}
	for (i = 0; i < 4; i++)
		answer_one(c[i], NOW + 1);
	ck_assert_int_eq(kvh_tick(h, NOW + 1, NULL), 0);
	busy_end();
	ck_assert_int_gt(bed_count(h, "delayed_writes"), 2);
	ck_assert_int_eq(bed_count(h, "leases"), 2);
	ck_assert_int_eq(kvh_tick(h, NOW + 2, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(bed_count(h, "late_records"), 2);
	/* Prompts that could not be booked are on record all the same. */
	c[0] = send_one(h, 3, NOW + 3, &error);
	ck_assert_int_gt(bed_fact(c[0], KVH_OVERLAP_TOKENS), 0);
	kvh_call_free(c[0]);
	kvh_free(h);
}
END_TEST

/* Now and then: each call is done at once or later. */
START_TEST(locked_often)
{
	struct kvh *h = bed_pool("gray=4 affinity_key=auto", 3);
	struct kvh_call *c;
	int error, i;

	for (i = 0; i < 200; i++) {
		busy_begin((unsigned)(i % 7));
		c = send_one(h, (unsigned)i, NOW + i, &error);
		ck_assert_int_eq(error, 0);
		if (i % 3 == 0)
			(void)kvh_failed(c, KVH_REFUSED, 0, NOW + i);
		kvh_call_free(c);
		(void)kvh_tick(h, NOW + i, NULL);
	}
	busy_end();
	ck_assert_int_eq(kvh_tick(h, NOW + i, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(bed_count(h, "lost_leases"), 0);
	kvh_free(h);
}
END_TEST

/* A report that the lock delays for long fails, and no other call. */
START_TEST(locked_status)
{
	static char text[1 << 16];
	struct kvh *h = bed_pool("", 2);
	size_t n;

	busy_begin(1000000);
	ck_assert_int_eq(kvh_status(h, KVH_JSON, NOW, text, sizeof(text), &n),
	    KVR_EBUSY);
	busy_end();
	ck_assert_int_eq(kvh_status(h, KVH_PROMETHEUS, NOW, text, sizeof(text),
	    &n), 0);
	ck_assert_uint_lt(n, sizeof(text));
	text[n] = '\0';
	ck_assert_ptr_nonnull(strstr(text, "kvroute_http_requests_total{"));
	/* A part of it is as long as it may be. */
	memset(text, '#', sizeof(text));
	ck_assert_int_eq(kvh_status(h, KVH_PROMETHEUS, NOW, text, 100, &n), 0);
	ck_assert_uint_gt(n, 1000);
	ck_assert_int_eq(text[100], '#');
	kvh_free(h);
}
END_TEST

Suite *suite_pool_fleet(void);

Suite *
suite_pool_fleet(void)
{
	Suite *s = suite_create("pool_fleet");
	TCase *t = tcase_create("pool_fleet");

	tcase_add_loop_test(t, gray_heals, 0, 2);
	tcase_add_test(t, slow_start);
	tcase_add_test(t, max_conns);
	tcase_add_test(t, weights);
	tcase_add_loop_test(t, each_state, 0,
	    sizeof(states) / sizeof(states[0]));
	tcase_add_test(t, further_targets);
	tcase_add_test(t, gone);
	tcase_add_test(t, two_pools);
	tcase_add_test(t, doors_share_verdicts);
	tcase_add_test(t, doors_without_an_area);
	tcase_add_test(t, doors_of_another_layout);
	tcase_add_loop_test(t, hostile_area, 0, 5);
	tcase_add_test(t, dead_process);
	tcase_add_test(t, pools_of_a_process);
	tcase_add_test(t, locked);
	tcase_add_test(t, locked_often);
	tcase_add_test(t, locked_status);
	suite_add_tcase(s, t);
	return s;
}
