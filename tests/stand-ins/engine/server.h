/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - an engine behind a port of its own; several share one thread.
 *
 *   connection -> request -> path -> /v1/...   call.c    runs through serving
 *                                              and may be kept (kept.h)
 *                                    .../ID    stored.c  kept answers
 *                                    /fault    fault.c
 *                                    others    server.c  response at once,
 *                                              publish.c load and cache,
 *                                              inspect.c
 *
 * Changes of caches are published by events.h.
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
 *
 * An engine may have data-parallel ranks: each has a serving of its own, with a
 * cache of its own. A request names its rank in a header, as with vLLM and
 * SGLang; without, the rank with the fewest requests gets it.
 */
#ifndef KVROUTE_SERVER_H
#define KVROUTE_SERVER_H

#include "ask.h"
#include "events.h"
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
	FAULT_SLOW, FAULT_ERROR, FAULT_LOSE, FAULT_KINDS
};

enum publish {
	PUBLISH_VLLM, PUBLISH_SGLANG, PUBLISH_SGLANG_OLD, PUBLISH_TRTLLM,
	PUBLISH_NONE
};

enum { RANKS_MAX = 64 };

struct server_facts {
	const char *address;
	uint32_t ranks;
	struct serving_facts serving;
	struct ask_rules rules;
	enum reply_usage usage;
	enum publish publish;
	uint64_t window;      /* that it publishes; 0: none */
	uint32_t tools;       /* one answer in so many is a call; 0: none */
	bool reasoning;       /* answers begin with it */
	bool headers_early;
	int64_t keepalive_ns; /* of an idle connection, in real time */
	size_t responses;     /* kept; also conversations */
	uint64_t ids;         /* seed of their ids, with that of the server */
	double scale;
	struct events_facts events;
	void *sockets;        /* of events_begin, or NULL */
};

struct call;

struct link {
	struct server *server;
	struct evhttp_connection *connection;
	struct evhttp_request *request; /* unanswered, or NULL */
	struct call *call;              /* of it, or NULL */
	bool held;                      /* the request arrived during a stall */
	struct event *idle;             /* since its latest response */
	struct link *prev, *next;
};

/* The latest iteration that was published. */
struct iteration {
	uint64_t number;
	uint64_t running, waiting;
	uint64_t held, blocks;
	uint64_t work;           /* grows with each */
};

struct server {
	const struct server_facts *facts;
	struct event_base *base;
	struct evhttp *http;
	struct evhttp_bound_socket *bound; /* NULL: refuses */
	uint16_t port;
	struct serving *ranks[RANKS_MAX]; /* [facts->ranks] */
	struct engine_clock clock;
	struct event *due;       /* the next event in serving */
	struct event *fault_end;
	enum fault_kind fault;
	int fault_status;
	int fault_percent, fault_due;
	struct kept *kept;
	struct events *events;   /* NULL: none */
	struct iteration told;
	uint32_t number;         /* of the engine in this process */
	uint64_t requests;
	uint64_t seed;
	struct link *links;
};

struct server_place {
	uint16_t port;   /* 0: any free one */
	uint32_t number; /* of the engine in this process, from 0 */
	uint64_t seed;
};
/* NULL: it failed and printed the reason. */
struct server *server_new(struct event_base *base,
    const struct server_facts *facts, const struct server_place *place);
void server_free(struct server *s);
/* Empties caches and kept answers. False: no memory. */
bool server_empty(struct server *s);
bool server_listen(struct server *s);
void server_refuse(struct server *s);
/* Sets its rate relative to real time. */
void server_set_rate(struct server *s, double rate);
int64_t server_now(const struct server *s);
/* Runs all due steps, sends new tokens, sets the timer. */
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
bool publish_has_iterations(const struct server *s);
void publish_iterations(struct link *l, struct evbuffer *body);
void publish_config(const struct server *s, struct evbuffer *body);
void publish_info(struct link *l, struct evbuffer *body);
void publish_old_info(struct link *l, struct evbuffer *body);
const char *publish_owner(const struct server *s);
void publish_version(struct link *l, struct evbuffer *body);

/* inspect.c: requests of tests, and clearing of caches. */
void inspect_cached(struct link *l, struct evbuffer *body);
void inspect_tokenize(struct link *l, struct evbuffer *body);
void inspect_render(struct link *l, struct evbuffer *body);
void inspect_clear(struct link *l, struct evbuffer *body);

/* stored.c: keeps a response that is complete, as it was asked to. */
void stored_keep(struct server *s, struct reply *r);
/* Answers a request about kept answers; false: it is about something else. */
bool stored_route(struct link *l, const char *path);

/* fault.c */
void fault_request(struct link *l);
void fault_stop(struct server *s);
/* Is this response to be an error? */
bool fault_hits(struct server *s);

#endif
