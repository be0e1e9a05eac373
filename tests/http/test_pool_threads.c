/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pool_threads.c - eight threads use a pool, while another one adds and
 * removes servers, and reads its status; four pass requests that wait.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool_bed.h"

enum { THREADS = 8, REQUESTS = 400 };

static const char body[] = "{\"model\":\"m\",\"messages\":[{\"role\":\"user\","
    "\"content\":\"%0*u\"}],\"stream\":%s}";
static const char *const ends[] = { "true", "false" };

struct crew {
	struct kvh *h;
	unsigned number, requests;
	unsigned errors, refused;
	pthread_t thread;
};

static atomic_bool over;

static void
answer_pass(struct crew *t, struct kvh_call *c, unsigned i, int64_t now)
{
	static _Thread_local char out[2 * KVH_WRITE_MORE];
	const char *type = i % 2 == 0 ? "text/event-stream" :
	    "application/json";
	const char *text = i % 2 == 0 ? bed_stream : bed_json;
	uint32_t rewrites;
	size_t n = 0;

	t->errors += kvh_response(c, i % 11 == 0 ? 503 : 200, type,
	    strlen(type), "", 0, "", 0, now, &rewrites) != 0;
	t->errors += kvh_response_data(c, text, strlen(text), now, out,
	    sizeof(out), &n) != 0;
	t->errors += kvh_end(c, i % 5, now + 1, out, sizeof(out), &n) != 0;
}

static void
request_pass(struct crew *t, unsigned i)
{
	const int64_t now = BED_SECOND * 100 + (int64_t)i * 1000000;
	struct kvh_call *c = NULL;
	char text[3000];
	const char *name;
	uint32_t targets, edit;
	uint64_t cut;
	int64_t offset;
	size_t n = (size_t)snprintf(text, sizeof(text), body, 2000,
	    i % 37, ends[i % 2]);

	if (kvh_begin(t->h, "POST", 4, "/v1/chat/completions", 20, now, &c) !=
	    0) {
		t->errors++;
		return;
	}
	t->errors += kvh_header(c, "session-id", 10, text, 9) != 0;
	t->errors += kvh_body(c, text, n) != 0;
	t->errors += kvh_body_end(c, 1) != 0;
	if (kvh_pick(c, now, &targets) == 0) {
		t->errors += kvh_target(c, 0, &name, &n, NULL) != 0 || n != 2;
		for (edit = 0; kvh_edit(c, edit, &offset, &cut, &name, &n) ==
		    0; edit++)
			continue;
		if (i % 13 == 0)
			t->errors += kvh_failed(c, 1 + i % 4, 503, now) != 0;
		else
			answer_pass(t, c, i, now);
	} else {
		t->refused++;
	}
	kvh_call_free(c);
}

static void *
requests_run(void *context)
{
	struct crew *t = context;
	unsigned i;

	for (i = 0; i < t->requests; i++)
		request_pass(t, i * THREADS + t->number);
	return NULL;
}

static void *
servers_run(void *context)
{
	static const char *const facts[] = { "", "state=drain", "state=gone",
	    "max_conns=2", "ranks=2", "weight=2" };
	struct crew *t = context;
	static char text[1 << 16];
	static const char load[] = "vllm:num_requests_running 6\n";
	char server[KVH_NAME_MAX], name[3] = "s0";
	const char *path;
	uint64_t token;
	unsigned i;
	size_t n, m;

	for (i = 0; !atomic_load(&over); i++) {
		if (kvh_poll_next(t->h, BED_SECOND * (100 + i / 8), server,
		    sizeof(server), &n, &path, &m, &token) == 0)
			(void)kvh_poll_done(t->h, token, 200, load,
			    sizeof(load) - 1, BED_SECOND * (100 + i / 8));
		name[1] = (char)('0' + i % 6);
		(void)bed_server(t->h, name, facts[i / 6 % 6]);
		(void)kvh_tick(t->h, BED_SECOND * 100, NULL);
		if (i % 16 == 0)
			(void)kvh_status(t->h, i % 32 == 0, BED_SECOND * 100,
			    text, sizeof(text), &n);
		if (i % 64 == 0)
			(void)kvh_server_reset(t->h, name, 2,
			    BED_SECOND * 100);
	}
	return NULL;
}

START_TEST(crew)
{
	struct crew all[THREADS + 1] = { { 0 } };
	struct kvh *h = bed_pool("size=8m gray=4 slow_start=1s trace=on "
	    "affinity_key=auto max_fails=off queue=16 poll=1s", 0);
	unsigned i;

	ck_assert_int_eq(bed_server(h, "t0", ""), 0);
	ck_assert_int_eq(bed_server(h, "t1", ""), 0);
	atomic_store(&over, false);
	for (i = 0; i <= THREADS; i++) {
		all[i].h = h;
		all[i].number = i;
		all[i].requests = (unsigned)test_amount(REQUESTS);
		ck_assert_int_eq(pthread_create(&all[i].thread, NULL,
		    i < THREADS ? requests_run : servers_run, &all[i]), 0);
	}
	for (i = 0; i <= THREADS; i++) {
		if (i == THREADS)
			atomic_store(&over, true);
		ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
		ck_assert_uint_eq(all[i].errors, 0);
		ck_assert_uint_eq(all[i].refused, 0);
	}
	for (i = 0; i < 100; i++)
		ck_assert_int_eq(kvh_tick(h, BED_SECOND * 200, NULL), 0);
	ck_assert_int_eq(bed_count(h, "leases"), 0);
	ck_assert_int_eq(bed_count(h, "lost_leases"), 0);
	kvh_free(h);
}
END_TEST

/* ---------------------------------------------------------------- line --- */

enum { LINE_THREADS = 4, LINE_REQUESTS = 2000 };

struct waiter {
	struct kvh *h;
	struct kvh_call *runs;       /* the latest that has a server */
	unsigned requests, errors;
	pthread_t thread;
};

static atomic_uint line_done;
static pthread_barrier_t line_full; /* all threads have a request in line */

static void
line_leave(struct kvh_call *c)
{
	if (c == NULL)
		return;
	kvh_call_free(c);
	atomic_fetch_add(&line_done, 1);
}

/* A request picks; it waits where it may not go yet. False: it waits. */
static bool
line_pick(struct waiter *w, struct kvh_call *c)
{
	int error = kvh_pick(c, KVH_NOW, NULL);

	if (error == 0) {
		line_leave(w->runs);
		w->runs = c;
		return true;
	}
	w->errors += error != KVH_EFULL;
	error = kvh_wait(c, KVH_NOW);
	if (error == 0)
		return false;
	w->errors += error != KVH_EFULL;
	line_leave(c);
	return true;
}

static void
line_turn(struct waiter *w)
{
	struct kvh_call *c;

	while (kvh_turn(w->h, KVH_NOW, &c) == 0 && line_pick(w, c))
		continue;
}

static void
line_ask(struct waiter *w)
{
	static const char text[] = "{\"model\":\"m\",\"messages\":[{\"role\":"
	    "\"user\",\"content\":\"Hello\"}]}";
	struct kvh_call *c = NULL;

	w->errors += kvh_begin(w->h, "POST", 4, "/v1/chat/completions", 20,
	    KVH_NOW, &c) != 0;
	w->errors += kvh_body(c, text, sizeof(text) - 1) != 0;
	w->errors += kvh_body_end(c, 1) != 0;
	(void)line_pick(w, c);
}

static void *
line_run(void *context)
{
	struct waiter *w = context;
	unsigned i;

	for (i = 0; i < w->requests; i++) {
		line_ask(w);
		if (i == 0)
			(void)pthread_barrier_wait(&line_full);
		if (i % 3 > 0) {
			line_leave(w->runs);
			w->runs = NULL;
		}
		line_turn(w);
	}
	line_leave(w->runs);
	w->runs = NULL;
	return NULL;
}

/* Each request that waits is given to one thread at a time, and to the end. */
START_TEST(line)
{
	struct waiter all[LINE_THREADS] = { { 0 } }, first[2] = { { 0 } };
	struct kvh *h = bed_pool("size=8m queue=16 queue_timeout=60s", 0);
	unsigned i, requests = (unsigned)test_amount(LINE_REQUESTS);

	ck_assert_int_eq(bed_server(h, "a", "max_conns=1"), 0);
	ck_assert_int_eq(bed_server(h, "b", "max_conns=1"), 0);
	atomic_store(&line_done, 0);
	for (i = 0; i < 2; i++) {
		first[i].h = h;
		line_ask(&first[i]);
		ck_assert_ptr_nonnull(first[i].runs);
	}
	ck_assert_int_eq(pthread_barrier_init(&line_full, NULL,
	    LINE_THREADS + 1), 0);
	for (i = 0; i < LINE_THREADS; i++) {
		all[i].h = h;
		all[i].requests = requests;
		ck_assert_int_eq(pthread_create(&all[i].thread, NULL, line_run,
		    &all[i]), 0);
	}
	(void)pthread_barrier_wait(&line_full);
	for (i = 0; i < 2; i++)
		line_leave(first[i].runs);
	for (i = 0; i < LINE_THREADS; i++)
		ck_assert_int_eq(pthread_join(all[i].thread, NULL), 0);
	while (atomic_load(&line_done) < LINE_THREADS * requests + 2) {
		/* Leases that could not end while the region was locked. */
		ck_assert_int_eq(kvh_tick(h, KVH_NOW, NULL), 0);
		line_turn(&all[0]);
		line_leave(all[0].runs);
		all[0].runs = NULL;
	}
	for (i = 0; i < LINE_THREADS; i++)
		ck_assert_uint_eq(all[i].errors, 0);
	ck_assert_uint_eq(atomic_load(&line_done), LINE_THREADS * requests + 2);
	ck_assert_int_ge(bed_count(h, "queued"), LINE_THREADS);
	ck_assert_int_eq(pthread_barrier_destroy(&line_full), 0);
	kvh_free(h);
}
END_TEST

Suite *suite_pool_threads(void);

Suite *
suite_pool_threads(void)
{
	Suite *s = suite_create("pool_threads");
	TCase *t = tcase_create("pool_threads");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, crew);
	tcase_add_test(t, line);
	suite_add_tcase(s, t);
	return s;
}
