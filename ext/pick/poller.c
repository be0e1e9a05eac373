/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poller.c - see poller.h. A connection cannot be freed within a callback of
 * its own, which may be called before the request is even made: those that are
 * done are freed when the timer looks for the next ones, at once.
 */
#include "poller.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "kvroute_http.h"
#include "pick_conf.h"

enum {
	ANSWER_BYTES_MAX = 4 << 20, ANSWER_SECONDS = 10, OFTEN_US = 125000,
	PATH_BYTES = 512
};

struct poll {
	struct poller *poller;
	struct poll *prev, *next;
	struct evhttp_connection *connection;
	uint64_t token;
	bool done;
};

struct poller {
	struct event_base *base;
	struct kvh *pool;
	struct event *timer;
	struct poll *polls;
};

static void
free_poll(struct poll *poll)
{
	DL_DELETE(poll->poller->polls, poll);
	evhttp_connection_free(poll->connection);
	free(poll);
}

/* Without a response the request is NULL, or its code 0. */
static void
on_answer(struct evhttp_request *request, void *context)
{
	struct poll *poll = context;
	struct evbuffer *body = NULL;
	const void *bytes = NULL;
	uint32_t status = 0;

	if (request != NULL) {
		status = (uint32_t)evhttp_request_get_response_code(request);
		body = evhttp_request_get_input_buffer(request);
		bytes = evbuffer_pullup(body, -1);
	}
	(void)kvh_poll_done(poll->poller->pool, poll->token, status, bytes,
	    bytes == NULL ? 0 : evbuffer_get_length(body), KVH_NOW);
	poll->done = true;
	/* Not EV_TIMEOUT, which would put the next tick off by a period. */
	event_active(poll->poller->timer, 0, 0);
}

/* NULL: no memory. */
static struct poll *
new_poll(struct poller *p, const char *host, unsigned port, uint64_t token)
{
	struct poll *poll = calloc(1, sizeof(*poll));

	if (poll == NULL)
		return NULL;
	poll->poller = p;
	poll->token = token;
	poll->connection = evhttp_connection_base_new(p->base, NULL, host,
	    (uint16_t)port);
	if (poll->connection == NULL) {
		free(poll);
		return NULL;
	}
	evhttp_connection_set_timeout(poll->connection, ANSWER_SECONDS);
	evhttp_connection_set_max_body_size(poll->connection,
	    ANSWER_BYTES_MAX);
	DL_APPEND(p->polls, poll);
	return poll;
}

/* false: the poll has failed before it began. */
static bool
ask_engine(struct poller *p, const char *name, const char *path,
    uint64_t token)
{
	struct evhttp_request *request;
	char host[CONF_NAME_MAX];
	struct evkeyvalq *headers;
	struct poll *poll;
	unsigned port;

	if (!pick_conf_split(name, host, &port) ||
	    (poll = new_poll(p, host, port, token)) == NULL)
		return false;
	request = evhttp_request_new(on_answer, poll);
	if (request == NULL) {
		free_poll(poll);
		return false;
	}
	headers = evhttp_request_get_output_headers(request);
	(void)evhttp_add_header(headers, "Host", name);
	(void)evhttp_add_header(headers, "Connection", "close");
	if (evhttp_make_request(poll->connection, request, EVHTTP_REQ_GET,
	    path) == 0)
		return true;
	poll->done = true;
	return false;
}

static void
on_timer(evutil_socket_t fd, short events, void *poller)
{
	char name[KVH_NAME_MAX + 1], path[PATH_BYTES];
	struct poller *p = poller;
	struct poll *poll, *next;
	size_t n, path_len;
	const char *at;
	uint64_t token;

	(void)fd;
	(void)events;
	DL_FOREACH_SAFE(p->polls, poll, next)
		if (poll->done)
			free_poll(poll);
	while (kvh_poll_next(p->pool, KVH_NOW, name, KVH_NAME_MAX, &n, &at,
	    &path_len, &token) == 0) {
		name[n] = '\0';
		(void)snprintf(path, sizeof(path), "%.*s", (int)path_len, at);
		if (path_len >= sizeof(path) ||
		    !ask_engine(p, name, path, token))
			(void)kvh_poll_done(p->pool, token, 0, NULL, 0,
			    KVH_NOW);
	}
}

struct poller *
poller_new(struct event_base *base, struct kvh *pool, bool often)
{
	const struct timeval time = { .tv_sec = often ? 0 : 1,
		.tv_usec = often ? OFTEN_US : 0 };
	struct poller *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->base = base;
	p->pool = pool;
	p->timer = event_new(base, -1, EV_PERSIST, on_timer, p);
	if (p->timer != NULL && event_add(p->timer, &time) == 0)
		return p;
	poller_free(p);
	return NULL;
}

void
poller_free(struct poller *p)
{
	if (p == NULL)
		return;
	while (p->polls != NULL)
		free_poll(p->polls);
	if (p->timer != NULL)
		event_free(p->timer);
	free(p);
}
