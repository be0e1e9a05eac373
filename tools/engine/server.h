/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - an engine behind a port of its own; several share one thread.
 *
 *   connection -> request -> path -> /v1/...   call.c    runs through serving
 *                                    /fault    fault.c
 *                                    others    server.c  response at once,
 *                                              publish.c that of its cache
 *
 * A link is a connection from its first request to its end. It has one request
 * at a time; a call of that request ends with the link:
 *
 *   link ---- call ---- sequences in serving
 *      `----- request (until its response)
 *
 * Connections are only ended by shutting down their socket: libevent then reads
 * the end, as if the client had closed, and link_closed cleans up. So nothing
 * is freed while it is in use.
 *
 * The engine has its own time (struct engine_clock): it runs at a configured
 * multiple of real time, slower during the fault slow, and stops during stall.
 */
#ifndef KVROUTE_SERVER_H
#define KVROUTE_SERVER_H

#include "ask.h"
#include "reply.h"
#include "serving.h"

#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

struct engine_clock {
	int64_t real;  /* ns, at the last change of rate */
	int64_t own;   /* the engine's time then */
	double rate;
};

enum fault_kind {
	FAULT_NONE, FAULT_REFUSE, FAULT_STALL, FAULT_DIE, FAULT_RESTART,
	FAULT_SLOW, FAULT_ERROR, FAULT_KINDS
};

enum publish {
	PUBLISH_VLLM, PUBLISH_SGLANG, PUBLISH_SGLANG_OLD, PUBLISH_NONE
};

struct server_facts {
	const char *address;
	struct serving_facts serving;
	struct ask_rules rules;
	enum reply_usage usage;
	enum publish publish;
	bool headers_early;
	bool verbose;
	double scale;
};

struct call;

struct link {
	struct server *server;
	struct evhttp_connection *connection;
	struct evhttp_request *request; /* unanswered, or NULL */
	struct call *call;              /* of it, or NULL */
	bool held;                      /* the request arrived during a stall */
	struct link *prev, *next;
};

struct server {
	const struct server_facts *facts;
	struct event_base *base;
	struct evhttp *http;
	struct evhttp_bound_socket *bound; /* NULL: refuses */
	uint16_t port;
	struct serving *serving;
	struct engine_clock clock;
	struct event *due;       /* the next event in serving */
	struct event *fault_end;
	enum fault_kind fault;
	int fault_status;
	uint64_t requests;
	uint64_t seed;
	struct link *links;
};

/* Port 0: any free one. NULL: it failed and printed the reason. */
struct server *server_new(struct event_base *base,
    const struct server_facts *facts, uint16_t port, uint64_t seed);
void server_free(struct server *s);
/* False: no memory. */
bool server_empty(struct server *s);
bool server_listen(struct server *s);
void server_refuse(struct server *s);
/* Sets its rate relative to real time. */
void server_set_rate(struct server *s, double rate);
int64_t server_now(const struct server *s);
/* Runs what is due, sends new tokens, sets the timer. */
void server_run(struct server *s);
void server_route(struct link *l);

/* JSON. */
void server_answer(struct link *l, int status, struct evbuffer *body);
void server_error(struct link *l, int kind, int status, const char *text);
/* Ends the connection. */
void link_shut(struct link *l);

/* call.c: a request to /v1/... of that kind. */
void call_begin(struct link *l, int kind);
/* A sequence of a call has made progress. */
void call_progress(struct sequence *q, const struct sequence_state *state);
void call_drop(struct call *c);

/* publish.c: the cache, as its engine publishes it. */
bool publish_has_metrics(const struct server *s);
void publish_config(const struct server *s, struct evbuffer *body);
void publish_info(struct link *l, struct evbuffer *body);
void publish_old_info(struct link *l, struct evbuffer *body);

/* fault.c */
void fault_request(struct link *l);
void fault_stop(struct server *s);

#endif
