/* SPDX-License-Identifier: BSD-2-Clause */
/* serve.c - see serve.h. */
#include "serve.h"

#include "attach.h"
#include "discover.h"
#include "follow.h"
#include "say.h"
#include "sources.h"
#include "status_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FAILED = 1, HTTP_WAIT = 5 };
/*
 * Bounds of all streams together: replays at a time, bytes that wait for them.
 */
enum { REPLAYS_MAX = 8 };
#define WAITING_MAX ((size_t)256 << 20)

struct place {
	struct attach attach;
	struct follow **follows; /* by the plan; NULL: not of this region */
	size_t n;
	char logged[ATTACH_WHY_MAX];
};

struct daemon {
	const struct serve_options *o;
	struct conf conf;        /* the file */
	struct conf plan;        /* all streams that are known of it */
	struct discover **found; /* of servers that list their streams */
	size_t n_found;
	struct sources sources;
	struct place places[SERVE_REGIONS_MAX];
	struct follow_all all;
	struct status_socket status;
	zmq_pollitem_t *items;
	size_t items_room;
	uint64_t reloads, reloads_failed;
};

static void
log_sentence(void *context, const char *sentence)
{
	(void)context;
	say(NULL, NULL, "%s", sentence);
}

/* -------------------------------------------------------------- follows --- */

static void
close_follows(struct place *p)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		follow_close(p->follows[i]);
	free(p->follows);
	p->follows = NULL;
	p->n = 0;
}

static bool
wanted(const struct place *p, const struct conf_stream *s)
{
	return !sources_has(s) && (s->region[0] == '\0' ||
	    strcmp(s->region, p->attach.path) == 0);
}

/* One that is followed already; NULL: none. */
static struct follow *
keep(struct place *old, const struct conf_stream *s)
{
	struct follow *f;
	size_t i;

	for (i = 0; i < old->n; i++) {
		f = old->follows[i];
		if (f == NULL || !conf_same(&f->conf, s))
			continue;
		old->follows[i] = NULL;
		follow_change(f, s);
		return f;
	}
	return NULL;
}

/* Follows the streams of the plan, and no others. */
static void
follow_plan(struct daemon *d, struct place *p)
{
	struct place old = { .follows = p->follows, .n = p->n };
	struct conf_stream *s;
	size_t i;

	p->n = 0;
	p->follows = p->attach.k == NULL ? NULL :
	    calloc(d->plan.n + 1, sizeof(struct follow *));
	if (p->follows != NULL) {
		p->n = d->plan.n;
		for (i = 0; i < p->n; i++)
			if (wanted(p, &d->plan.streams[i]))
				p->follows[i] = keep(&old,
				    &d->plan.streams[i]);
	}
	/*
	 * Streams that are no longer wanted end before others of their names
	 * begin.
	 */
	close_follows(&old);
	for (i = 0; i < p->n; i++) {
		s = &d->plan.streams[i];
		if (p->follows[i] == NULL && wanted(p, s))
			p->follows[i] = follow_open(p->attach.path, p->attach.k,
			    s, &d->all);
	}
	if (p->attach.k != NULL)
		sources_plan(&d->sources, p->attach.path, p->attach.k,
		    &d->plan);
}

/* Before its region ends. */
static void
leave(struct daemon *d, struct place *p)
{
	static const struct conf nothing;

	close_follows(p);
	sources_plan(&d->sources, p->attach.path, NULL, &nothing);
}

/* A stream that a server lists may be an entry, too. */
static void
plan_found(struct daemon *d, const struct conf *found)
{
	size_t i;

	for (i = 0; i < found->n; i++)
		if (conf_has(&d->plan, &found->streams[i]))
			say(found->streams[i].server, &found->streams[i],
			    "it is there twice; this one is left out");
		else
			(void)conf_add(&d->plan, &found->streams[i]);
}

/* All that is known of the configuration, into all regions. */
static void
make_plan(struct daemon *d)
{
	size_t i;

	conf_free(&d->plan);
	for (i = 0; i < d->conf.n; i++)
		if (d->conf.streams[i].server[0] == '\0' ||
		    sources_has(&d->conf.streams[i]))
			(void)conf_add(&d->plan, &d->conf.streams[i]);
	for (i = 0; i < d->n_found; i++)
		plan_found(d, discover_streams(d->found[i]));
	for (i = 0; i < d->o->n; i++)
		follow_plan(d, &d->places[i]);
}

/* -------------------------------------------------------- configuration --- */

static void
free_found(struct discover **found, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		discover_free(found[i]);
	free(found);
}

/* Servers that were asked before are known already. */
static void
make_found(struct daemon *d)
{
	struct discover **old = d->found;
	const size_t n_old = d->n_found;
	const struct conf_stream *s;
	size_t i, j;

	d->n_found = 0;
	d->found = calloc(d->conf.n + 1, sizeof(struct discover *));
	for (i = 0; d->found != NULL && i < d->conf.n; i++) {
		s = &d->conf.streams[i];
		if (s->server[0] == '\0' || sources_has(s))
			continue;
		for (j = 0; j < n_old; j++)
			if (old[j] != NULL &&
			    discover_change(old[j], s))
				break;
		d->found[d->n_found] = j < n_old ? old[j] :
		    discover_new(s, d->sources.http);
		if (j < n_old)
			old[j] = NULL;
		d->n_found += d->found[d->n_found] != NULL;
	}
	free_found(old, n_old);
}

/* -------------------------------------------------------------- regions --- */

static void
work_place(struct daemon *d, struct place *p, int64_t now)
{
	const uint64_t before = p->attach.times;
	size_t i;

	if (attach_due(&p->attach, now)) {
		leave(d, p);
		if (attach_now(&p->attach)) {
			say(p->attach.path, NULL, before == 0 ? "attached" :
			    "it was replaced: attached to the new one");
			follow_plan(d, p);
		}
	}
	if (strcmp(p->logged, p->attach.why) != 0) {
		strcpy(p->logged, p->attach.why);
		if (p->logged[0] != '\0')
			say(p->attach.path, NULL, "%s", p->logged);
	}
	for (i = 0; i < p->n; i++)
		if (p->follows[i] != NULL)
			follow_work(p->follows[i], now);
}

/* --------------------------------------------------------------- status --- */

static size_t
rows_of(const struct daemon *d, const struct place *p, struct tell_row *rows)
{
	size_t i, n = 0;

	for (i = 0; i < p->n; i++)
		if (p->follows[i] != NULL)
			follow_row(p->follows[i], &rows[n++]);
	return n + sources_rows(&d->sources, p->attach.path, rows + n);
}

static void
tell(FILE *out, bool metrics, void *context)
{
	struct tell_region regions[SERVE_REGIONS_MAX];
	struct daemon *d = context;
	struct tell_daemon all = { .regions = regions, .n = d->o->n,
	    .reloads = d->reloads, .reloads_failed = d->reloads_failed };
	struct tell_row *rows = calloc(d->o->n * d->plan.n + 1, sizeof(*rows));
	size_t i, n = 0;

	if (rows == NULL)
		return;
	for (i = 0; i < d->o->n; i++) {
		regions[i] = (struct tell_region){
		    .path = d->places[i].attach.path,
		    .why = d->places[i].attach.why,
		    .attached = d->places[i].attach.times, .rows = rows + n };
		regions[i].n = rows_of(d, &d->places[i], rows + n);
		n += regions[i].n;
	}
	if (metrics)
		tell_prometheus(out, &all);
	else
		tell_json(out, &all);
	free(rows);
}

/* ----------------------------------------------------------------- loop --- */

static void
reload(struct daemon *d)
{
	struct conf conf;

	*d->o->reload = 0;
	if (!conf_read(&conf, d->o->conf, log_sentence, NULL)) {
		d->reloads_failed++;
		say(NULL, NULL, "the configuration stays as it was");
		return;
	}
	d->reloads++;
	conf_free(&d->conf);
	d->conf = conf;
	make_found(d);
	make_plan(d);
	say(NULL, NULL, "read %s again: %zu streams", d->o->conf, conf.n);
}

static bool
poll_room(struct daemon *d)
{
	const size_t want = (d->o->n * d->plan.n + d->sources.n) *
	    FEED_ITEMS + STATUS_FDS;
	void *more;

	if (want <= d->items_room)
		return true;
	more = realloc(d->items, want * sizeof(*d->items));
	if (more == NULL)
		return false;
	d->items = more;
	d->items_room = want;
	return true;
}

static void
wait_for_some(struct daemon *d, long wait)
{
	struct pollfd fds[STATUS_FDS];
	size_t i, j, n = 0, n_fds = status_fds(&d->status, fds);

	if (!poll_room(d)) {
		(void)zmq_poll(NULL, 0, wait);
		return;
	}
	for (i = 0; i < n_fds; i++)
		d->items[n++] = (zmq_pollitem_t){ .fd = fds[i].fd, .events =
		    fds[i].events == POLLIN ? ZMQ_POLLIN : ZMQ_POLLOUT };
	for (i = 0; i < d->o->n; i++)
		for (j = 0; j < d->places[i].n; j++)
			if (d->places[i].follows[j] != NULL)
				n += follow_items(d->places[i].follows[j],
				    d->items + n);
	n += sources_items(&d->sources, d->items + n);
	(void)zmq_poll(d->items, (int)n, wait);
}

static void
ask_servers(struct daemon *d)
{
	bool changed = false;
	size_t i;

	for (i = 0; i < d->n_found; i++)
		changed |= discover_work(d->found[i], kvr_clock_now());
	if (changed)
		make_plan(d);
}

/* Sockets of libcurl are not polled: while it waits, turns are short. */
static void
loop(struct daemon *d)
{
	size_t i;
	bool busy;

	while (!*d->o->stop) {
		busy = http_work(d->sources.http);
		ask_servers(d);
		if (*d->o->reload)
			reload(d);
		for (i = 0; i < d->o->n; i++)
			work_place(d, &d->places[i], kvr_clock_now());
		sources_work(&d->sources, kvr_clock_now());
		status_work(&d->status, tell, d);
		wait_for_some(d, busy ? HTTP_WAIT : FEED_WAIT);
	}
}

static void
end(struct daemon *d)
{
	sources_free(&d->sources);
	free_found(d->found, d->n_found);
	http_free(d->sources.http);
	status_close(&d->status);
	zmq_ctx_term(d->all.context);
	conf_free(&d->plan);
	conf_free(&d->conf);
	free(d->items);
}

static struct daemon all;

int
serve(const struct serve_options *options)
{
	struct daemon *d = &all;
	size_t i;

	d->o = options;
	if (!conf_read(&d->conf, options->conf, log_sentence, NULL))
		return FAILED;
	d->all = (struct follow_all){ feed_context(d->conf.n * options->n),
	    { 0, REPLAYS_MAX }, { 0, WAITING_MAX } };
	d->sources.context = d->all.context;
	d->sources.http = http_new();
	if (d->all.context == NULL || d->sources.http == NULL ||
	    !status_listen(&d->status, options->socket)) {
		say(NULL, NULL, "%s: %s", d->all.context == NULL ? "libzmq" :
		    d->sources.http == NULL ? "libcurl" : options->socket,
		    strerror(errno));
		return FAILED;
	}
	for (i = 0; i < options->n; i++)
		attach_init(&d->places[i].attach, options->regions[i]);
	make_found(d);
	make_plan(d);
	say(NULL, NULL, "%zu streams, %zu regions", d->conf.n, options->n);
	loop(d);
	for (i = 0; i < options->n; i++) {
		leave(d, &d->places[i]);
		attach_end(&d->places[i].attach);
	}
	end(d);
	return 0;
}
