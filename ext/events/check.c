/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c - see check.h.
 *
 * Nothing is applied to a region. A replay is asked for behind the last batch
 * that there can be, so that it is answered by its end alone. A server that is
 * polled is not asked: its events would be lost for the daemon.
 */
#include "check.h"

#include "attach.h"
#include "discover.h"
#include "feed.h"
#include "plane.h"
#include "say.h"
#include "sources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define WAIT (5 * SECOND)

enum { FAILED = 1 };

/* A stream that is tried. */
struct trial {
	struct conf_stream conf;
	struct feed *feed;         /* one of three, by its kind */
	struct plane *plane;
	struct discover *discover;
	bool replay;               /* it has one, that was not asked yet */
	bool replayed;             /* or that has answered */
	const char *error;         /* it could not be made */
};

struct check {
	struct conf conf;
	struct trial *trials;
	void *context;
	struct http *http;
	size_t failures;
};

static void
print_sentence(void *context, const char *sentence)
{
	(void)context;
	say(NULL, NULL, "%s", sentence);
}

/* --------------------------------------------------------------- trials --- */

static bool
on_step(void *context, const struct record_step *s)
{
	struct trial *t = context;

	if (s->kind == RECORD_ASKED)
		t->replay = false;
	if (s->kind == RECORD_END)
		t->replayed = s->seq != 0;
	return true;
}

static bool
on_wants(void *context, uint64_t *from)
{
	const struct trial *t = context;

	*from = UINT64_MAX - 1;
	return t->replay;
}

static void
begin_trial(struct check *c, struct trial *t, const struct conf_stream *s)
{
	const struct feed_options o = { .endpoint = t->conf.events,
	    .replay = s->replay[0] != '\0' ? t->conf.replay : NULL,
	    .topic = t->conf.topic, .context = c->context };

	t->conf = *s;
	t->replay = s->replay[0] != '\0';
	if (s->engine == CONF_DYNAMO)
		t->plane = plane_open(&t->conf, c->context);
	else if (s->server[0] != '\0' && !sources_has(s))
		t->discover = discover_new(&t->conf, c->http);
	else if (s->server[0] == '\0')
		t->feed = feed_open(&o, &(struct feed_sink){ t, on_step,
		    on_wants });
	if (t->plane == NULL && t->discover == NULL && t->feed == NULL)
		t->error = zmq_strerror(errno);
}

static void
end_trial(struct trial *t)
{
	feed_close(t->feed);
	plane_close(t->plane);
	discover_free(t->discover);
}

/* Is nothing more to be learnt? */
static bool
is_over(const struct trial *t)
{
	if (t->feed != NULL)
		return feed_connected(t->feed) &&
		    (t->conf.replay[0] == '\0' || t->replayed);
	if (t->plane != NULL)
		return plane_connected(t->plane);
	return t->discover == NULL || discover_streams(t->discover)->n > 0;
}

static bool
work_trials(struct check *c)
{
	bool over = true;
	size_t i;

	(void)http_work(c->http);
	for (i = 0; i < c->conf.n; i++) {
		struct trial *t = &c->trials[i];

		if (t->feed != NULL)
			(void)feed_read(t->feed);
		if (t->plane != NULL)
			plane_work(t->plane, kvr_clock_now());
		if (t->discover != NULL)
			(void)discover_work(t->discover, kvr_clock_now());
		over &= is_over(t);
	}
	return over;
}

/* -------------------------------------------------------------- results --- */

/* The findings on a stream; *good: it can be used. */
static const char *
result_of(const struct trial *t, bool *good)
{
	const char *why;

	*good = true;
	if (sources_has(&t->conf) && t->plane == NULL &&
	    t->conf.engine != CONF_DYNAMO)
		return "not asked, as it tells each event once";
	*good = is_over(t) && t->error == NULL;
	if (t->error != NULL)
		return t->error;
	if (t->discover != NULL)
		return *good ? "says where it publishes" :
		    "does not say where it publishes";
	if (t->plane != NULL)
		return *good ? "connected" : "cannot be connected";
	if (feed_connected(t->feed))
		return *good ? t->replayed ? "connected, replays" :
		    "connected" : "connected, but its replay does not answer";
	why = feed_why(t->feed);
	return why != NULL ? why : FEED_SILENT;
}

static void
print_trial(struct check *c, const struct trial *t)
{
	const char *result, *hint = NULL;
	bool good;

	result = result_of(t, &good);
	if (strcmp(result, FEED_SILENT) == 0)
		hint = conf_hint(&t->conf);
	printf("%s rank %" PRIu32 ": %s: %s%s%s\n", t->conf.worker,
	    t->conf.rank,
	    t->conf.events[0] != '\0' ? t->conf.events : t->conf.server,
	    result, hint == NULL ? "" : "; ", hint == NULL ? "" : hint);
	c->failures += !good;
}

static void
check_streams(struct check *c)
{
	const int64_t end = kvr_clock_now() + WAIT;
	size_t i;

	for (i = 0; i < c->conf.n; i++)
		begin_trial(c, &c->trials[i], &c->conf.streams[i]);
	while (!work_trials(c) && kvr_clock_now() < end)
		(void)zmq_poll(NULL, 0, FEED_WAIT);
	for (i = 0; i < c->conf.n; i++) {
		print_trial(c, &c->trials[i]);
		end_trial(&c->trials[i]);
	}
}

/* Which workers of the configuration does the region not have? */
static void
check_workers(struct check *c, const struct attach *a)
{
	const struct conf_stream *s;
	uint64_t id;
	size_t i;

	for (i = 0; i < c->conf.n; i++) {
		s = &c->conf.streams[i];
		if (s->region[0] != '\0' && strcmp(s->region, a->path) != 0)
			continue;
		if (kvr_worker_find(a->k, s->worker, strlen(s->worker),
		    s->rank, &id) != KVR_OK)
			printf("%s: there is no worker %s rank %" PRIu32
			    " yet\n", a->path, s->worker, s->rank);
	}
}

static void
check_region(struct check *c, const char *path)
{
	struct attach a;

	attach_init(&a, path);
	if (attach_now(&a)) {
		printf("%s: attached\n", path);
		check_workers(c, &a);
	} else {
		printf("%s: %s\n", path, a.why);
		c->failures++;
	}
	attach_end(&a);
}

int
check_all(const char *path, char *const *regions, size_t n)
{
	struct check c = { .failures = 0 };
	size_t i;

	if (!conf_read(&c.conf, path, print_sentence, NULL))
		return FAILED;
	printf("%s: %zu streams\n", path, c.conf.n);
	for (i = 0; i < n; i++)
		check_region(&c, regions[i]);
	c.trials = calloc(c.conf.n + 1, sizeof(*c.trials));
	c.context = feed_context(c.conf.n);
	c.http = http_new();
	if (c.trials != NULL && c.context != NULL && c.http != NULL)
		check_streams(&c);
	else
		c.failures++;
	free(c.trials);
	http_free(c.http);
	if (c.context != NULL)
		zmq_ctx_term(c.context);
	conf_free(&c.conf);
	return c.failures == 0 ? 0 : FAILED;
}
