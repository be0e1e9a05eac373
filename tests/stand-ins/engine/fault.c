/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fault.c - injected faults: POST /fault?kind=KIND&seconds=N.
 *
 *   refuse    the listening socket and idle connections are closed; responses
 *             in flight continue
 *   stall     connections are accepted, but nothing is sent
 *   die       all responses in flight are cut off
 *   restart   refuse and die; the cache is empty afterwards
 *   slow      everything takes `factor` times as long
 *   error     `percent` of the responses have this `status`
 *   lose      batches of events are not published, but can be replayed
 *   none      ends the fault
 */
#include "server.h"

#include <bsd/stdlib.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include <event2/keyvalq_struct.h>
#include <utlist.h>

enum { SECONDS_MAX = 3600, SLOWER = 10 };

static const char *const kinds[FAULT_KINDS] = {
	"none", "refuse", "stall", "die", "restart", "slow", "error",
	"lose"
};

static void
break_answers(struct server *s)
{
	struct link *l, *next;

	DL_FOREACH_SAFE(s->links, l, next)
		if (l->call != NULL || l->held)
			link_shut(l);
}

/* Serves the requests that arrived in the meantime. */
static void
take_held(struct server *s)
{
	struct link *l, *next;

	DL_FOREACH_SAFE(s->links, l, next)
		if (l->held && l->request != NULL)
			server_route(l);
}

static void
healthy(struct server *s)
{
	bool stalled = s->fault == FAULT_STALL;
	struct timeval soon = { 0, 100000 };

	event_del(s->fault_end);
	if (!server_listen(s)) {
		event_add(s->fault_end, &soon);
		return;
	}
	s->fault = FAULT_NONE;
	server_set_rate(s, 1 / s->facts->scale);
	if (stalled)
		take_held(s);
	server_run(s);
}

static void
on_end(evutil_socket_t fd, short what, void *server)
{
	(void)fd;
	(void)what;
	healthy(server);
}

void
fault_stop(struct server *s)
{
	if (s->fault_end != NULL)
		event_free(s->fault_end);
	s->fault_end = NULL;
}

struct fault {
	enum fault_kind kind;
	struct timeval length;
	long long factor;
	long long status;
	long long percent;
};

static void
begin(struct server *s, const struct fault *f)
{
	s->fault = f->kind;
	s->fault_status = (int)f->status;
	s->fault_percent = (int)f->percent;
	s->fault_due = 0;
	if (f->kind == FAULT_DIE || f->kind == FAULT_RESTART)
		break_answers(s);
	if (f->kind == FAULT_REFUSE || f->kind == FAULT_RESTART)
		server_refuse(s);
	if (f->kind == FAULT_RESTART && !server_empty(s))
		warnx("no memory: the cache is not empty");
	if (f->kind == FAULT_STALL)
		server_set_rate(s, 0);
	if (f->kind == FAULT_SLOW)
		server_set_rate(s, 1 / s->facts->scale / (double)f->factor);
	if (f->kind == FAULT_DIE)
		s->fault = FAULT_NONE;
	else
		event_add(s->fault_end, &f->length);
	server_run(s);
}

/* A number in the query, or `otherwise`. */
static bool
number(struct evkeyvalq *query, const char *name, long long otherwise,
    long long least, long long most, long long *out)
{
	const char *text = evhttp_find_header(query, name), *problem = NULL;

	*out = otherwise;
	if (text != NULL)
		*out = strtonum(text, least, most, &problem);
	return problem == NULL;
}

/* Seconds, with an optional fraction. */
static bool
length(struct evkeyvalq *query, struct timeval *out)
{
	const char *text = evhttp_find_header(query, "seconds");
	char *end = NULL;
	double s = text == NULL ? 1 : strtod(text, &end);

	if ((end != NULL && (*end != '\0' || end == text)) ||
	    !(s >= 0 && s <= SECONDS_MAX))
		return false;
	out->tv_sec = (time_t)s;
	out->tv_usec = (suseconds_t)((s - (double)out->tv_sec) * 1e6);
	return true;
}

static bool
read_fault(struct evkeyvalq *query, struct fault *f)
{
	const char *kind = evhttp_find_header(query, "kind");
	int i;

	for (i = 0; i < FAULT_KINDS; i++)
		if (kind != NULL && strcmp(kind, kinds[i]) == 0)
			break;
	f->kind = (enum fault_kind)i;
	return i < FAULT_KINDS &&
	    length(query, &f->length) &&
	    number(query, "factor", SLOWER, 1, 1000000, &f->factor) &&
	    number(query, "status", 500, 400, 599, &f->status) &&
	    number(query, "percent", 100, 1, 100, &f->percent);
}

/* Spread evenly, and the last of each round: of half, every second one. */
bool
fault_hits(struct server *s)
{
	if (s->fault != FAULT_ERROR)
		return false;
	s->fault_due += s->fault_percent;
	if (s->fault_due < 100)
		return false;
	s->fault_due -= 100;
	return true;
}

static bool
from_here(struct link *l)
{
	char *address = NULL;
	uint16_t port;

	evhttp_connection_get_peer(l->connection, &address, &port);
	return address != NULL && strncmp(address, "127.", 4) == 0;
}

void
fault_request(struct link *l)
{
	struct server *s = l->server;
	struct evkeyvalq query = { NULL, NULL };
	const char *text = evhttp_uri_get_query(
	    evhttp_request_get_evhttp_uri(l->request));
	struct fault f;
	bool right;

	if (!from_here(l) ||
	    evhttp_request_get_command(l->request) != EVHTTP_REQ_POST) {
		server_error(l, ASK_CHAT, 405, "POST, from loopback");
		return;
	}
	if (s->fault_end == NULL)
		s->fault_end = evtimer_new(s->base, on_end, s);
	right = s->fault_end != NULL &&
	    evhttp_parse_query_str(text == NULL ? "" : text, &query) == 0 &&
	    read_fault(&query, &f);
	evhttp_clear_headers(&query);
	if (!right) {
		server_error(l, ASK_CHAT, 400,
		    "unknown fault or invalid value");
		return;
	}
	evhttp_add_header(evhttp_request_get_output_headers(l->request),
	    "Connection", "close");
	server_answer(l, 200, NULL);
	healthy(s);
	if (f.kind != FAULT_NONE)
		begin(s, &f);
}
