/* SPDX-License-Identifier: BSD-2-Clause */
/* server.c - see server.h. */
#include "server.h"

#include <arpa/inet.h>
#include <err.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <utlist.h>

enum {
	BODY_MAX = 40 << 20, /* bytes of a request */
	BACKLOG = 1024        /* connections not accepted yet */
};

/* ----------------------------------------------------------------- time --- */

static int64_t
real_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t
server_now(const struct server *s)
{
	return s->clock.own + (int64_t)((double)(real_now() - s->clock.real) *
	    s->clock.rate);
}

void
server_set_rate(struct server *s, double rate)
{
	s->clock.own = server_now(s);
	s->clock.real = real_now();
	s->clock.rate = rate;
}

static int64_t
due_of(const struct server *s)
{
	int64_t due = INT64_MAX, of_rank;
	uint32_t i;

	for (i = 0; i < s->facts->ranks; i++) {
		of_rank = serving_due(s->ranks[i]);
		due = of_rank < due ? of_rank : due;
	}
	return due;
}

static void
wait_for_due(struct server *s)
{
	int64_t due = due_of(s), now = server_now(s);
	struct timeval t = { 0, 0 };
	double us;

	if (due == INT64_MAX || s->clock.rate <= 0) {
		event_del(s->due);
		return;
	}
	us = due <= now ? 0 : (double)(due - now) / s->clock.rate / 1e3 + 1;
	us = us < 3.6e9 ? us : 3.6e9;
	t.tv_sec = (time_t)(us / 1e6);
	t.tv_usec = (suseconds_t)(us - (double)t.tv_sec * 1e6);
	event_add(s->due, &t);
}

void
server_run(struct server *s)
{
	struct sequence_state state;
	struct sequence *q;
	uint32_t i;

	for (i = 0; i < s->facts->ranks; i++) {
		if (!serving_run(s->ranks[i], server_now(s)) ||
		    (s->events != NULL && !events_take(s->events, i,
		    s->ranks[i], s->fault == FAULT_LOSE)))
			errx(1, "no memory");
		while ((q = serving_news(s->ranks[i], &state)) != NULL)
			call_progress(q, &state);
	}
	wait_for_due(s);
}

static void
on_due(evutil_socket_t fd, short what, void *server)
{
	(void)fd;
	(void)what;
	server_run(server);
}

/* ------------------------------------------------------------ responses --- */

void
server_answer(struct link *l, int status, struct evbuffer *body)
{
	struct evhttp_request *request = l->request;
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

	if (evhttp_find_header(headers, "Content-Type") == NULL)
		evhttp_add_header(headers, "Content-Type", "application/json");
	l->request = NULL;
	evhttp_send_reply(request, status, NULL, body);
}

void
server_error(struct link *l, int kind, int status, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body == NULL) {
		link_shut(l);
		return;
	}
	reply_error(body, kind, status, text);
	server_answer(l, status, body);
	evbuffer_free(body);
}

static void
get_health(struct link *l, struct evbuffer *body)
{
	server_answer(l, 200, body);
}

static void
get_models(struct link *l, struct evbuffer *body)
{
	const struct ask_rules *rules = &l->server->facts->rules;
	size_t i;

	evbuffer_add_printf(body, "{\"object\":\"list\",\"data\":[");
	for (i = 0; i < rules->n_models; i++) {
		evbuffer_add_printf(body, "%s{\"object\":\"model\","
		    "\"created\":0,\"owned_by\":\"%s\",\"id\":",
		    i == 0 ? "" : ",", publish_owner(l->server));
		(void)reply_quote_to(body, rules->models[i]);
		evbuffer_add_printf(body, "}");
	}
	evbuffer_add_printf(body, "]}");
	server_answer(l, 200, body);
}

/* A value of one rank, by its counts. */
struct metric {
	const char *name, *help;
	double (*value)(const struct serving_counts *n);
};

#define VALUE(of, what) \
	static double of(const struct serving_counts *n) { return what; }
VALUE(running_of, (double)n->running)
VALUE(waiting_of, (double)n->waiting)
VALUE(usage_of, (double)n->held / (double)n->blocks)
VALUE(queried_of, (double)n->queried)
VALUE(hit_of, (double)n->hit)
VALUE(prompt_of, (double)n->prompt_tokens)
VALUE(generated_of, (double)n->generated)
VALUE(preempted_of, (double)n->preempted)
VALUE(finished_of, (double)n->finished)
#undef VALUE

static const struct metric metrics[] = {
	{ "num_requests_running", "Sequences in prefill or decode.",
	    running_of },
	{ "num_requests_waiting", "Sequences that wait for room.",
	    waiting_of },
	{ "kv_cache_usage_perc", "Blocks in use, 1 is all.", usage_of },
	{ "prefix_cache_queries_total", "Tokens looked for in the cache.",
	    queried_of },
	{ "prefix_cache_hits_total", "Tokens found in the cache.", hit_of },
	{ "prompt_tokens_total", "Tokens of prompts after prefill.",
	    prompt_of },
	{ "generation_tokens_total", "Tokens made.", generated_of },
	{ "num_preemptions_total",
	    "Sequences that had to give their blocks back.", preempted_of },
	{ "request_success_total", "Sequences that came to their end.",
	    finished_of }
};

/* Writes it as the value of a label. */
static void
put_label(struct evbuffer *body, const char *text)
{
	for (; *text != '\0'; text++)
		if (*text == '\n')
			evbuffer_add_printf(body, "\\n");
		else if (*text == '"' || *text == '\\')
			evbuffer_add_printf(body, "\\%c", *text);
		else
			evbuffer_add(body, text, 1);
}

/* One line for each rank; vLLM calls it engine. */
static void
put_metric(struct server *s, struct evbuffer *body, const struct metric *m)
{
	bool counter = strstr(m->name, "_total") != NULL;
	struct serving_counts n;
	uint32_t i;

	evbuffer_add_printf(body, "# HELP vllm:%s %s\n# TYPE vllm:%s %s\n",
	    m->name, m->help, m->name, counter ? "counter" : "gauge");
	for (i = 0; i < s->facts->ranks; i++) {
		serving_counts(s->ranks[i], &n);
		evbuffer_add_printf(body, "vllm:%s{engine=\"%" PRIu32
		    "\",model_name=\"", m->name, i);
		put_label(body, s->facts->rules.models[0]);
		evbuffer_add_printf(body, "\"} %.17g\n", m->value(&n));
	}
}

static void
get_metrics(struct link *l, struct evbuffer *body)
{
	struct server *s = l->server;
	size_t i;

	if (!publish_has_metrics(s)) {
		server_error(l, ASK_CHAT, 404, "Not Found");
		return;
	}
	if (publish_has_iterations(s)) {
		publish_iterations(l, body);
		return;
	}
	for (i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
		put_metric(s, body, &metrics[i]);
	publish_config(s, body);
	evhttp_add_header(evhttp_request_get_output_headers(l->request),
	    "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	server_answer(l, 200, body);
}

/* -------------------------------------------------------------- routing --- */

static const struct {
	const char *path;
	int kind;         /* of a call; 0: get or post */
	void (*get)(struct link *l, struct evbuffer *body);
	void (*post)(struct link *l, struct evbuffer *body);
} paths[] = {
	{ "/v1/chat/completions", ASK_CHAT, NULL, NULL },
	{ "/v1/completions", ASK_COMPLETIONS, NULL, NULL },
	{ "/v1/responses", ASK_RESPONSES, NULL, NULL },
	{ "/v1/messages", ASK_MESSAGES, NULL, NULL },
	{ "/v1/embeddings", ASK_EMBEDDINGS, NULL, NULL },
	{ "/v1/models", 0, get_models, NULL },
	{ "/metrics", 0, get_metrics, NULL },
	{ "/server_info", 0, publish_info, NULL },
	{ "/get_server_info", 0, publish_old_info, NULL },
	{ "/health", 0, get_health, NULL },
	{ "/version", 0, publish_version, NULL },
	{ "/cached", 0, NULL, inspect_cached },
	{ "/tokenize", 0, NULL, inspect_tokenize },
	{ "/v1/chat/completions/render", 0, NULL, inspect_render },
	{ "/reset_prefix_cache", 0, NULL, inspect_clear },
	{ "/flush_cache", 0, NULL, inspect_clear }
};

static void
answer_now(struct link *l, void (*get)(struct link *, struct evbuffer *))
{
	struct evbuffer *body = evbuffer_new();

	if (body == NULL) {
		link_shut(l);
		return;
	}
	get(l, body);
	evbuffer_free(body);
}

static void
route_path(struct link *l, const char *path)
{
	bool post = evhttp_request_get_command(l->request) == EVHTTP_REQ_POST;
	size_t i;

	if (stored_route(l, path))
		return;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(path, paths[i].path) != 0)
			continue;
		if (post != (paths[i].get == NULL))
			server_error(l, ASK_CHAT, 405, "Method Not Allowed");
		else if (paths[i].get != NULL)
			answer_now(l, paths[i].get);
		else if (paths[i].post != NULL)
			answer_now(l, paths[i].post);
		else
			call_begin(l, paths[i].kind);
		return;
	}
	server_error(l, ASK_CHAT, 404, "Not Found");
}

/* The response, as faults allow. */
void
server_route(struct link *l)
{
	struct server *s = l->server;
	const char *path = evhttp_uri_get_path(
	    evhttp_request_get_evhttp_uri(l->request));

	l->held = false;
	if (path != NULL && strcmp(path, "/fault") == 0)
		fault_request(l);
	else if (s->bound == NULL)
		link_shut(l);
	else if (s->fault == FAULT_STALL)
		l->held = true;
	else if (fault_hits(s))
		server_error(l, ASK_CHAT, s->fault_status, "injected fault");
	else
		route_path(l, path == NULL ? "" : path);
}

/* ---------------------------------------------------------- connections --- */

void
link_shut(struct link *l)
{
	evutil_socket_t fd = bufferevent_getfd(
	    evhttp_connection_get_bufferevent(l->connection));

	if (l->call != NULL)
		call_drop(l->call);
	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
}

/*
 * If libevent has detached the unanswered request from its connection, we must
 * free it; otherwise libevent is about to do so.
 */
static void
link_closed(struct evhttp_connection *connection, void *link)
{
	struct link *l = link;
	struct evhttp_request *request = l->request;

	(void)connection;
	if (l->call != NULL)
		call_drop(l->call);
	if (request != NULL &&
	    evhttp_request_get_connection(request) == NULL)
		evhttp_request_free(request);
	DL_DELETE(l->server->links, l);
	event_free(l->idle);
	free(l);
}

static void
on_idle(evutil_socket_t fd, short what, void *link)
{
	(void)fd;
	(void)what;
	link_shut(link);
}

static void
on_answered(struct evhttp_request *request, void *link)
{
	struct link *l = link;
	int64_t ns = l->server->facts->keepalive_ns;
	struct timeval t = { (time_t)(ns / 1000000000),
	    (suseconds_t)(ns % 1000000000 / 1000) };

	(void)request;
	if (ns < INT64_MAX)
		event_add(l->idle, &t);
}

/* Disables Nagle's algorithm: tokens are sent one by one. */
static void
no_delay(struct evhttp_connection *connection)
{
	int on = 1;

	setsockopt(bufferevent_getfd(evhttp_connection_get_bufferevent(
	    connection)), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static struct link *
link_of(struct server *s, struct evhttp_connection *connection)
{
	struct link *l;

	DL_FOREACH(s->links, l)
		if (l->connection == connection)
			return l;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return NULL;
	l->idle = evtimer_new(s->base, on_idle, l);
	if (l->idle == NULL) {
		free(l);
		return NULL;
	}
	l->server = s;
	l->connection = connection;
	DL_APPEND(s->links, l);
	evhttp_connection_set_closecb(connection, link_closed, l);
	no_delay(connection);
	return l;
}

/*
 * While a request is unanswered, libevent does not read and would not notice
 * that the client has closed.
 */
static void
watch_end(struct evhttp_connection *connection)
{
	struct bufferevent *b = evhttp_connection_get_bufferevent(connection);
	bufferevent_data_cb write;
	bufferevent_event_cb event;
	void *arg;

	bufferevent_getcb(b, NULL, &write, &event, &arg);
	bufferevent_setcb(b, NULL, write, event, arg);
	bufferevent_enable(b, EV_READ);
}

static void
on_request(struct evhttp_request *request, void *server)
{
	struct server *s = server;
	struct evhttp_connection *connection =
	    evhttp_request_get_connection(request);
	struct link *l = link_of(s, connection);

	if (l == NULL) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
		return;
	}
	s->requests++;
	l->request = request;
	event_del(l->idle);
	evhttp_request_set_on_complete_cb(request, on_answered, l);
	watch_end(connection);
	server_route(l);
}

/* -------------------------------------------------------------- servers --- */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* IPv4 or IPv6; 0: it is neither. */
static int
address_read(const struct server *s, union address *a)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, s->facts->address, &a->in.sin_addr) == 1) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(s->port);
		return sizeof(a->in);
	}
	if (inet_pton(AF_INET6, s->facts->address, &a->in6.sin6_addr) != 1)
		return 0;
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons(s->port);
	return sizeof(a->in6);
}

bool
server_listen(struct server *s)
{
	union address a;
	struct evconnlistener *listener;
	socklen_t n = sizeof(a);
	int length = address_read(s, &a);
	char why[512];

	if (s->bound != NULL)
		return true;
	if (s->events != NULL && !events_open(s->events, why, sizeof(why))) {
		warnx("%s", why);
		return false;
	}
	if (length == 0)
		return false;
	listener = evconnlistener_new_bind(s->base, NULL, NULL,
	    LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE,
	    BACKLOG, &a.any, length);
	if (listener == NULL)
		return false;
	if (getsockname(evconnlistener_get_fd(listener), &a.any, &n) == 0)
		s->port = ntohs(a.any.sa_family == AF_INET ? a.in.sin_port :
		    a.in6.sin6_port);
	s->bound = evhttp_bind_listener(s->http, listener);
	if (s->bound == NULL)
		evconnlistener_free(listener);
	return s->bound != NULL;
}

/* A response is not flushed yet. */
static bool
sending(const struct link *l)
{
	return evbuffer_get_length(bufferevent_get_output(
	    evhttp_connection_get_bufferevent(l->connection))) > 0;
}

/* Idle connections are closed, too. */
void
server_refuse(struct server *s)
{
	struct link *l, *next;

	if (s->bound != NULL)
		evhttp_del_accept_socket(s->http, s->bound);
	s->bound = NULL;
	DL_FOREACH_SAFE(s->links, l, next)
		if (l->call == NULL && l->request == NULL && !sending(l))
			link_shut(l);
}

bool
server_empty(struct server *s)
{
	struct serving_facts facts = s->facts->serving;
	struct serving *fresh;
	uint32_t i;

	kept_empty(s->kept);
	if (s->events != NULL)
		events_close(s->events);
	facts.seed = s->seed;
	for (i = 0; i < s->facts->ranks; i++) {
		fresh = serving_new(&facts);
		if (fresh == NULL)
			return false;
		serving_free(s->ranks[i]);
		s->ranks[i] = fresh;
	}
	return true;
}

/* False: no memory. */
static bool
make_events(struct server *s)
{
	struct events_place place = {
		.base = s->base, .sockets = s->facts->sockets,
		.number = s->number, .ranks = s->facts->ranks,
		.block_tokens = s->facts->serving.block_tokens,
		.seed = s->seed
	};

	if (s->facts->sockets == NULL)
		return true;
	s->events = events_new(&s->facts->events, &place);
	return s->events != NULL;
}

static bool
make_parts(struct server *s)
{
	s->http = evhttp_new(s->base);
	s->due = evtimer_new(s->base, on_due, s);
	s->kept = kept_new(s->facts->responses, s->facts->ids + s->seed);
	if (s->http == NULL || s->due == NULL || s->kept == NULL ||
	    !make_events(s) || !server_empty(s)) {
		warnx("no memory");
		return false;
	}
	evhttp_set_gencb(s->http, on_request, s);
	evhttp_set_max_body_size(s->http, BODY_MAX);
	if (!server_listen(s)) {
		warn("%s:%u", s->facts->address, (unsigned)s->port);
		return false;
	}
	return true;
}

struct server *
server_new(struct event_base *base, const struct server_facts *facts,
    const struct server_place *place)
{
	struct server *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->base = base;
	s->facts = facts;
	s->port = place->port;
	s->number = place->number;
	s->seed = place->seed;
	s->clock.real = real_now();
	s->clock.rate = 1 / facts->scale;
	if (!make_parts(s)) {
		server_free(s);
		return NULL;
	}
	return s;
}

void
server_free(struct server *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	fault_stop(s);
	if (s->http != NULL)
		evhttp_free(s->http);
	if (s->due != NULL)
		event_free(s->due);
	for (i = 0; i < s->facts->ranks; i++)
		serving_free(s->ranks[i]);
	events_free(s->events);
	kept_free(s->kept);
	free(s);
}
