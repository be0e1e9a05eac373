/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_door.c - see json_door.h.
 *
 * A call of this door lives between its select and its end, over any number of
 * connections. Bodies that come are those of the client's request, and of the
 * server's response: they go into the library as they are.
 */
#include "json_door.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "door_calls.h"
#include "door_text.h"
#include "kvroute.h"
#include "loop.h"
#include "pick_conf.h"
#include "pick_fleet.h"
#include "pick_status.h"
#include "status_socket.h"

enum {
	BACKLOG = 512, SEGMENTS = 16, HEADERS_BYTES_MAX = 1 << 16,
	VIEW_BYTES_MAX = 4096 /* of a body that is not looked at */
};

struct json_door {
	struct event_base *base;
	struct door_options options;
	struct door_calls calls;
	struct door_counts counts;
	struct evhttp *http, *metrics;
	struct evconnlistener *listeners[2]; /* one each, or NULL */
	bool draining;
	char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct hold text;        /* of the answer at hand */
	struct hold scratch;     /* bytes that the library writes */
};

/* ------------------------------------------------------------- answers --- */

static void
answer_text(struct evhttp_request *request, int status, const char *type,
    const void *text, size_t n)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request);
	struct evbuffer *out = evbuffer_new();

	(void)evhttp_add_header(headers, "Content-Type", type);
	if (out != NULL)
		(void)evbuffer_add(out, text, n);
	evhttp_send_reply(request, status, NULL, out);
	if (out != NULL)
		evbuffer_free(out);
}

static void
answer_json(struct evhttp_request *request, int status, const char *text)
{
	answer_text(request, status, "application/json", text, strlen(text));
}

static void
answer_error(struct evhttp_request *request, int status, const char *message)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"error\":{\"message\":\"%s\"}}\n",
	    message);
	answer_json(request, status, text);
}

static void
answer_hold(struct json_door *d, struct evhttp_request *request, bool whole)
{
	if (whole)
		answer_text(request, 200, "application/json", d->text.data,
		    d->text.length);
	else
		answer_error(request, 503, "no memory");
	hold_trim(&d->text);
}

/* --------------------------------------------------------------- calls --- */

static void
end_call(struct json_door *d, struct door_call *c, uint32_t how)
{
	pick_end(d->options.pool, c->call, how, NULL, 0, NULL);
}

static void
leave_line(struct json_door *d, struct door_call *c)
{
	pick_leave(d->options.pool, &c->waiter);
	if (c->closed != NULL)
		event_free(c->closed);
	c->closed = NULL;
	c->request = NULL;
}

static void
free_call(struct json_door *d, struct door_call *c)
{
	leave_line(d, c);
	kvh_call_free(c->call);
	calls_remove(&d->calls, c);
	d->counts.open = d->calls.n;
}

static void
refuse_call(struct json_door *d, struct door_call *c,
    struct evhttp_request *request, int error)
{
	const struct pick_refusal why = pick_refuse(d->options.pool,
	    c->call, error);
	char seconds[16];

	end_call(d, c, KVH_GIVEN_UP);
	free_call(d, c);
	snprintf(seconds, sizeof(seconds), "%u", why.retry_seconds);
	(void)evhttp_add_header(evhttp_request_get_output_headers(request),
	    "Retry-After", seconds);
	answer_json(request, (int)why.status, why.body);
}

static void
answer_choice(struct json_door *d, struct door_call *c,
    struct evhttp_request *request, uint32_t targets)
{
	char id[CALL_ID_LENGTH + 1];

	calls_id(c, id);
	d->text.length = 0;
	answer_hold(d, request, door_write_choice(&d->text, c->call, id,
	    targets));
}

static void choose_server(struct json_door *d, struct door_call *c,
    struct evhttp_request *request);

static void
take_turn(void *call)
{
	struct door_call *c = call;
	struct evhttp_request *request = c->request;

	leave_line(c->owner, c);
	choose_server(c->owner, c, request);
}

static void
on_closed(evutil_socket_t fd, short events, void *call)
{
	struct door_call *c = call;
	struct evhttp_request *request = c->request;
	struct json_door *d = c->owner;

	(void)fd;
	(void)events;
	end_call(d, c, KVH_GIVEN_UP);
	free_call(d, c);
	answer_error(request, 503, "the client has left");
}

/*
 * evhttp does not read while an answer is due, so an event of the socket's own
 * is for a client that leaves. Without memory for it the call is refused.
 */
static bool
wait_in_line(struct json_door *d, struct door_call *c,
    struct evhttp_request *request, int error)
{
	struct bufferevent *socket = evhttp_connection_get_bufferevent(
	    evhttp_request_get_connection(request));

	c->waiter = (struct pick_waiter){ .call = c->call, .turn = take_turn,
		.owner = c };
	if (!pick_wait(d->options.pool, &c->waiter, error))
		return false;
	c->closed = event_new(d->base, bufferevent_getfd(socket), EV_CLOSED,
	    on_closed, c);
	if (c->closed == NULL || event_add(c->closed, NULL) != 0) {
		leave_line(d, c);
		return false;
	}
	c->request = request;
	return true;
}

static void
choose_server(struct json_door *d, struct door_call *c,
    struct evhttp_request *request)
{
	uint32_t targets;
	const int error = pick_choose(d->options.pool, c->call, &targets);

	if (error == 0)
		answer_choice(d, c, request, targets);
	else if (!wait_in_line(d, c, request, error))
		refuse_call(d, c, request, error);
}

void
door_fade(struct json_door *d)
{
	const int64_t before = loop_seconds() - d->options.limit;
	struct door_call *c;
	size_t i;

	for (i = 0; i < 2; i++)
		if (d->listeners[i] != NULL)
			(void)evconnlistener_enable(d->listeners[i]);
	while ((c = calls_oldest(&d->calls)) != NULL && c->heard < before) {
		d->counts.faded++;
		if (c->request != NULL) {
			refuse_call(d, c, c->request, KVH_EFULL);
			continue;
		}
		end_call(d, c, c->responded ? KVH_CLIENT_LEFT : KVH_NOT_SEEN);
		free_call(d, c);
	}
}

/* ------------------------------------------------------------- selects --- */

static const char *
header_of(struct evhttp_request *request, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(request),
	    name);
}

static const char *
header_or(struct evhttp_request *request, const char *name,
    const char *otherwise)
{
	const char *value = header_of(request, name);

	return value == NULL ? otherwise : value;
}

/* Headers that x-kvroute- begins are for this door; others the client's. */
static void
give_headers(struct kvh_call *call, struct evhttp_request *request)
{
	static const char *const told[] = {
		[KVH_TOLD_SESSION] = "session", [KVH_TOLD_TENANT] = "tenant",
		[KVH_TOLD_MODEL] = "model", [KVH_TOLD_SALT] = "salt",
		[KVH_TOLD_SHARE] = "share", [KVH_TOLD_BYPASS] = "bypass",
		[KVH_TOLD_ENDPOINT] = "endpoint"
	};
	const struct evkeyvalq *headers =
	    evhttp_request_get_input_headers(request);
	const struct evkeyval *h;
	uint32_t i;

	TAILQ_FOREACH(h, headers, next) {
		if (strncasecmp(h->key, "x-kvroute-", 10) != 0) {
			(void)kvh_header(call, h->key, strlen(h->key),
			    h->value, strlen(h->value));
			continue;
		}
		for (i = 0; i < sizeof(told) / sizeof(told[0]); i++)
			if (strcasecmp(h->key + 10, told[i]) == 0)
				(void)kvh_tell(call, i, h->value,
				    strlen(h->value));
		if (strcasecmp(h->key + 10, "allow") == 0)
			pick_allow(call, h->value, strlen(h->value));
	}
}

/* Calls `take` for each segment of a body. */
static void
give_segments(struct evhttp_request *request, struct door_call *c,
    void (*take)(struct door_call *c, const void *bytes, size_t n))
{
	struct evbuffer *body = evhttp_request_get_input_buffer(request);
	struct evbuffer_iovec segments[SEGMENTS];
	size_t length;
	int i, n;

	while ((length = evbuffer_get_length(body)) > 0) {
		n = evbuffer_peek(body, -1, NULL, segments, SEGMENTS);
		if (n > SEGMENTS)
			n = SEGMENTS;
		for (i = 0, length = 0; i < n; i++) {
			take(c, segments[i].iov_base, segments[i].iov_len);
			length += segments[i].iov_len;
		}
		(void)evbuffer_drain(body, length);
	}
}

static void
take_body(struct door_call *c, const void *bytes, size_t n)
{
	(void)kvh_body(c->call, bytes, n);
}

/* The library cuts the usage event; the caller of this door has the bytes. */
static void
take_data(struct door_call *c, const void *bytes, size_t n)
{
	struct json_door *d = c->owner;
	size_t written;

	d->scratch.length = 0;
	if (hold_reserve(&d->scratch, n + KVH_WRITE_MORE))
		(void)kvh_response_data(c->call, bytes, n, KVH_NOW,
		    (char *)d->scratch.data, d->scratch.capacity, &written);
	hold_trim(&d->scratch);
}

/* false: it is no list of token ids. */
static bool
give_tokens(struct kvh_call *call, struct evhttp_request *request)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(request);
	const size_t n = evbuffer_get_length(body);
	uint32_t *tokens = NULL;
	size_t n_tokens;
	const bool read = door_read_tokens(evbuffer_pullup(body, -1), n,
	    &tokens, &n_tokens) &&
	    kvh_tokens(call, tokens, n_tokens) == 0;

	free(tokens);
	return read;
}

static struct door_call *
begin_call(struct json_door *d, struct evhttp_request *request)
{
	const char *method = header_or(request, "x-kvroute-method", "POST");
	const char *path = header_or(request, "x-kvroute-path",
	    "/v1/chat/completions");
	struct door_call *c = calls_add(&d->calls, loop_seconds());

	if (c == NULL)
		return NULL;
	d->counts.open = d->calls.n;
	c->owner = d;
	if (kvh_begin(d->options.pool->kvh, method, strlen(method), path,
	    strcspn(path, "?"), KVH_NOW, &c->call) == 0)
		return c;
	c->call = NULL;
	free_call(d, c);
	return NULL;
}

static void
select_server(struct json_door *d, struct evhttp_request *request)
{
	const bool tokens = header_of(request, "x-kvroute-tokens") != NULL;
	struct door_call *c;

	if (d->draining) {
		(void)evhttp_add_header(
		    evhttp_request_get_output_headers(request), "Retry-After",
		    "1");
		answer_error(request, 503, "kvroute-pick ends");
		return;
	}
	c = begin_call(d, request);
	if (c == NULL) {
		answer_error(request, 503, "there are too many calls");
		return;
	}
	d->counts.selects++;
	give_headers(c->call, request);
	if (!tokens) {
		give_segments(request, c, take_body);
	} else if (!give_tokens(c->call, request)) {
		end_call(d, c, KVH_GIVEN_UP);
		free_call(d, c);
		answer_error(request, 400, "a list of token ids is expected");
		return;
	}
	if (kvh_body_end(c->call, 1) != 0) {
		end_call(d, c, KVH_GIVEN_UP);
		free_call(d, c);
		answer_error(request, 400, "the body cannot have the salt");
		return;
	}
	choose_server(d, c, request);
}

/* ----------------------------------------------------------- responses --- */

static uint32_t
number_of(struct evhttp_request *request, const char *name,
    uint32_t otherwise)
{
	const char *text = header_of(request, name);

	return text == NULL ? otherwise : (uint32_t)strtoul(text, NULL, 10);
}

/* false: the header has another word. */
static bool
word_of(struct evhttp_request *request, const char *name,
    const char *const *words, uint32_t n, uint32_t *value)
{
	const char *text = header_of(request, name);
	uint32_t i;

	for (i = 0; text != NULL && i < n; i++)
		if (words[i] != NULL && strcmp(text, words[i]) == 0) {
			*value = i;
			return true;
		}
	return text == NULL;
}

static bool
is_target(struct kvh_call *call, const char *server)
{
	const char *name;
	size_t n;
	uint32_t i;

	for (i = 0; kvh_target(call, i, &name, &n, NULL) == 0; i++)
		if (strlen(server) == n && memcmp(server, name, n) == 0)
			return true;
	return false;
}

/* false: it was answered, because another server than ours has served. */
static bool
check_served(struct json_door *d, struct door_call *c,
    struct evhttp_request *request)
{
	const char *served = header_or(request, "x-kvroute-served", "");

	if (c->responded || *served == '\0' ||
	    is_target(c->call, served) ||
	    fleet_has(d->options.fleet, served))
		return true;
	answer_error(request, 400, "x-kvroute-served is not a server");
	return false;
}

/* The head of the response comes with its first part. */
static void
give_response(struct door_call *c, struct evhttp_request *request)
{
	const char *type = header_or(request, "Content-Type", "");
	const char *coding = header_or(request, "x-kvroute-encoding", "");
	const char *served = header_or(request, "x-kvroute-served", "");
	uint32_t rewrites;

	if (!c->responded && kvh_response(c->call,
	    number_of(request, "x-kvroute-status", 200), type, strlen(type),
	    coding, strlen(coding), served, strlen(served), KVH_NOW,
	    &rewrites) != 0)
		return;
	c->responded = true;
	give_segments(request, c, take_data);
}

static void
take_response(struct json_door *d, struct door_call *c,
    struct evhttp_request *request)
{
	if (!check_served(d, c, request))
		return;
	give_response(c, request);
	answer_json(request, 200, "{}\n");
}

static void
take_end(struct json_door *d, struct door_call *c,
    struct evhttp_request *request)
{
	static const char *const hows[] = { "whole", "client_left",
		"engine_broke", "given_up", "not_seen" };
	const bool has_body = evbuffer_get_length(
	    evhttp_request_get_input_buffer(request)) > 0;
	uint32_t how = KVH_WHOLE;

	if (!word_of(request, "x-kvroute-how", hows, PICK_HOWS, &how)) {
		answer_error(request, 400, "x-kvroute-how has no such word");
		return;
	}
	if (!check_served(d, c, request))
		return;
	if (how == KVH_WHOLE || has_body)
		give_response(c, request);
	end_call(d, c, how);
	d->text.length = 0;
	answer_hold(d, request, door_write_report(&d->text, c->call));
	free_call(d, c);
}

static void
take_failed(struct json_door *d, struct door_call *c,
    struct evhttp_request *request)
{
	static const char *const failures[] = { NULL, "refused", "broke",
		"status", "not_sent" };
	uint32_t failure = KVH_BROKE;

	if (!word_of(request, "x-kvroute-failure", failures, 5, &failure)) {
		answer_error(request, 400,
		    "x-kvroute-failure has no such word");
		return;
	}
	if (c->responded || kvh_failed(c->call, failure,
	    number_of(request, "x-kvroute-status", 0), KVH_NOW) != 0) {
		answer_error(request, 409, "the call is not to be tried");
		return;
	}
	choose_server(d, c, request);
}

/* "/v1/calls/ID/VERB" */
static void
serve_call(struct json_door *d, struct evhttp_request *request,
    const char *rest)
{
	static const struct {
		const char *verb;
		void (*take)(struct json_door *d, struct door_call *c,
		    struct evhttp_request *request);
	} verbs[] = { { "/failed", take_failed },
		{ "/response", take_response }, { "/end", take_end } };
	const size_t n = strcspn(rest, "/");
	struct door_call *c = calls_find(&d->calls, rest, n, loop_seconds());
	size_t i;

	if (c == NULL) {
		d->counts.unknown++;
		answer_error(request, 404, "there is no such call");
		return;
	}
	if (c->request != NULL) {
		answer_error(request, 409, "the call waits for a server");
		return;
	}
	for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(rest + n, verbs[i].verb) == 0) {
			verbs[i].take(d, c, request);
			return;
		}
	answer_error(request, 404, "there is no such path");
}

/* ------------------------------------------------------------- servers --- */

static void
put_server(struct json_door *d, struct evhttp_request *request,
    const char *name)
{
	struct evbuffer *body = evhttp_request_get_input_buffer(request);
	const size_t n = evbuffer_get_length(body);
	char facts[CONF_FACTS_MAX];
	int error;

	if (n >= sizeof(facts) || !pick_conf_is_address(name)) {
		answer_error(request, 400, "a server is ADDRESS:PORT");
		return;
	}
	(void)evbuffer_remove(body, facts, n);
	facts[n] = '\0';
	error = strlen(facts) != n ? KVH_EVALUE :
	    fleet_put(d->options.fleet, name, facts, NULL);
	if (error != 0)
		answer_error(request, 400, kvh_strerror(error));
	else
		answer_json(request, 200, "{}\n");
}

/* An address in brackets comes encoded. */
static void
serve_server(struct json_door *d, struct evhttp_request *request,
    const char *encoded)
{
	size_t n = 0;
	char *name = evhttp_uridecode(encoded, 0, &n);
	const enum evhttp_cmd_type method =
	    evhttp_request_get_command(request);

	if (name == NULL)
		answer_error(request, 503, "no memory");
	else if (strlen(name) != n)
		answer_error(request, 400, "a server is ADDRESS:PORT");
	else if (method == EVHTTP_REQ_PUT)
		put_server(d, request, name);
	else if (method != EVHTTP_REQ_DELETE)
		answer_error(request, 405, "PUT and DELETE are served here");
	else if (fleet_delete(d->options.fleet, name))
		answer_json(request, 200, "{}\n");
	else
		answer_error(request, 404, "there is no such server");
	free(name);
}

/* --------------------------------------------------------------- paths --- */

static void
serve_status(struct json_door *d, struct evhttp_request *request,
    uint32_t form)
{
	d->text.length = 0;
	if (!d->options.status(d->options.context, form, &d->text))
		answer_error(request, 503, "no memory");
	else
		answer_text(request, 200, form == KVH_JSON ?
		    "application/json" : "text/plain; version=0.0.4",
		    d->text.data, d->text.length);
	hold_trim(&d->text);
}

/* false: it is another path. */
static bool
serve_views(struct json_door *d, struct evhttp_request *request,
    const char *path)
{
	if (strcmp(path, "/metrics") == 0)
		serve_status(d, request, KVH_PROMETHEUS);
	else if (strcmp(path, "/v1/status") == 0)
		serve_status(d, request, KVH_JSON);
	else if (strcmp(path, "/healthz") != 0)
		return false;
	else if (d->options.ready(d->options.context))
		answer_json(request, 200, "{\"ready\":true}\n");
	else
		answer_json(request, 503, "{\"ready\":false}\n");
	return true;
}

static void
on_view(struct evhttp_request *request, void *door)
{
	const char *path = evhttp_uri_get_path(
	    evhttp_request_get_evhttp_uri(request));

	if (path == NULL || !serve_views(door, request, path))
		answer_error(request, 404, "there is no such path");
}

static void
on_request(struct evhttp_request *request, void *door)
{
	const char *path = evhttp_uri_get_path(
	    evhttp_request_get_evhttp_uri(request));
	const bool posts =
	    evhttp_request_get_command(request) == EVHTTP_REQ_POST;
	struct json_door *d = door;

	if (path == NULL)
		answer_error(request, 404, "there is no such path");
	else if (posts && strcmp(path, "/v1/select") == 0)
		select_server(d, request);
	else if (posts && strncmp(path, "/v1/calls/", 10) == 0)
		serve_call(d, request, path + 10);
	else if (strncmp(path, "/v1/servers/", 12) == 0)
		serve_server(d, request, path + 12);
	else if (!serve_views(d, request, path))
		answer_error(request, 404, "there is no such path");
}

/* ------------------------------------------------------------- sockets --- */

static struct evhttp *
make_http(struct json_door *d, size_t body_most,
    void (*serve)(struct evhttp_request *request, void *door))
{
	struct evhttp *http = evhttp_new(d->base);

	if (http == NULL)
		return NULL;
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST |
	    EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE);
	evhttp_set_max_body_size(http, (ev_ssize_t)body_most);
	evhttp_set_max_headers_size(http, HEADERS_BYTES_MAX);
	evhttp_set_timeout(http, (int)d->options.idle);
	evhttp_set_gencb(http, serve, d);
	return http;
}

struct json_door *
door_new(struct event_base *base, const struct door_options *options)
{
	struct json_door *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->base = base;
	d->options = *options;
	d->http = make_http(d, options->body_most, on_request);
	d->metrics = make_http(d, VIEW_BYTES_MAX, on_view);
	if (d->http != NULL && d->metrics != NULL)
		return d;
	door_free(d);
	return NULL;
}

static bool
keep_listener(struct evconnlistener **to, struct evhttp_bound_socket *bound)
{
	if (bound == NULL)
		return false;
	*to = evhttp_bound_socket_get_listener(bound);
	loop_rest(*to);
	return true;
}

static bool
listen_unix(struct json_door *d, const char *path)
{
	struct evconnlistener *listener;
	struct sockaddr_un at;
	mode_t mask;

	if (!status_make_room(path, &at))
		return false;
	mask = umask(0117);
	listener = evconnlistener_new_bind(d->base, NULL, NULL,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, BACKLOG,
	    (const struct sockaddr *)(const void *)&at, sizeof(at));
	umask(mask);
	if (listener == NULL)
		return false;
	strcpy(d->socket, path);
	return keep_listener(&d->listeners[0],
	    evhttp_bind_listener(d->http, listener));
}

bool
door_listen(struct json_door *d, const char *where)
{
	char host[CONF_NAME_MAX];
	unsigned port;

	if (strncmp(where, "unix:", 5) == 0)
		return listen_unix(d, where + 5);
	errno = EINVAL;
	return pick_conf_split(where, host, &port) &&
	    keep_listener(&d->listeners[0], evhttp_bind_socket_with_handle(
	        d->http, host, (uint16_t)port));
}

bool
door_listen_metrics(struct json_door *d, uint16_t port)
{
	return keep_listener(&d->listeners[1],
	    evhttp_bind_socket_with_handle(d->metrics, "::", port)) ||
	    keep_listener(&d->listeners[1],
	    evhttp_bind_socket_with_handle(d->metrics, "0.0.0.0", port));
}

void
door_drain(struct json_door *d)
{
	d->draining = true;
}

const struct door_counts *
door_counts(const struct json_door *d)
{
	return &d->counts;
}

void
door_free(struct json_door *d)
{
	struct door_call *c;

	if (d == NULL)
		return;
	while ((c = calls_oldest(&d->calls)) != NULL)
		free_call(d, c);
	if (d->socket[0] != '\0')
		(void)unlink(d->socket);
	if (d->http != NULL)
		evhttp_free(d->http);
	if (d->metrics != NULL)
		evhttp_free(d->metrics);
	calls_free(&d->calls);
	hold_free(&d->text);
	hold_free(&d->scratch);
	free(d);
}
