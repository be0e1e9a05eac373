/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gateway.c - a gateway of token ids in front of engines whose KV events
 * kvroute-events gives to the same region.
 *
 *   gateway PORT REGION HOST:PORT ...
 *
 * POST /v1/completions with a list of token ids as `prompt` goes to the engine
 * that the region chooses. Headers of the response say which one, and what each
 * of them was believed to hold. Responses are sent when they are complete.
 *
 * Gateways of one region are told the same engines: what others are there, from
 * earlier, is removed at the start. SIGTERM ends it at once: requests that
 * engines have are cut off, and do not count as theirs any more.
 */
#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <json-c/json.h>

enum { BLOCK_TOKENS = 16, BODY_MAX = 16 << 20, WORKERS_MAX = 64 };
enum { ANSWER_MAX = 3600 }; /* seconds */

LIST_HEAD(forwards, forward);

struct gateway {
	struct event_base *base;
	struct kvr *k;
	struct kvr_prompt *prompt;
	struct forwards forwards;
};

/* A request that an engine has. */
struct forward {
	LIST_ENTRY(forward) others;
	struct gateway *g;
	struct evhttp_request *client;
	struct evhttp_connection *engine;
	uint64_t lease;
};

static void
name_of(const struct gateway *g, uint64_t worker, char name[KVR_NAME_MAX + 1])
{
	size_t n = 0;

	if (kvr_worker_name(g->k, worker, name, KVR_NAME_MAX, &n) != KVR_OK)
		n = 0;
	name[n] = '\0';
}

/* --------------------------------------------------------------- prompt --- */

/* NULL: it is not JSON. */
static struct json_object *
parse(struct evbuffer *body)
{
	const size_t n = evbuffer_get_length(body);
	const char *text = (const char *)evbuffer_pullup(body, -1);
	struct json_tokener *t = json_tokener_new();
	struct json_object *o = NULL;

	if (text != NULL && t != NULL)
		o = json_tokener_parse_ex(t, text, (int)n);
	if (t != NULL)
		json_tokener_free(t);
	return o;
}

static int
add_token(struct kvr_prompt *p, struct json_object *id)
{
	const int64_t value = json_object_get_int64(id);
	const uint32_t token = (uint32_t)value;

	if (!json_object_is_type(id, json_type_int) || value < 0 ||
	    value > UINT32_MAX)
		return KVR_EINVAL;
	return kvr_prompt_tokens(p, &token, 1);
}

static int
read_prompt(struct kvr_prompt *p, struct json_object *body)
{
	struct json_object *ids = NULL;
	size_t n, i;
	int error;

	if (!json_object_object_get_ex(body, "prompt", &ids) ||
	    !json_object_is_type(ids, json_type_array))
		return KVR_EINVAL;
	n = json_object_array_length(ids);
	error = kvr_prompt_begin(p, NULL);
	for (i = 0; i < n && error == KVR_OK; i++)
		error = add_token(p, json_object_array_get_idx(ids, i));
	return error != KVR_OK ? error : kvr_prompt_end(p, NULL);
}

/* ------------------------------------------------------------- response --- */

/* What the engine found in its cache, if it says so. */
static void
read_usage(struct evbuffer *body, struct kvr_report *report)
{
	struct json_object *o = parse(body), *usage, *value;

	if (!json_object_object_get_ex(o, "usage", &usage)) {
		json_object_put(o);
		return;
	}
	report->kind = KVR_REPORT_ABSENT;
	if (json_object_object_get_ex(usage, "prompt_tokens", &value))
		report->prompt_tokens = json_object_get_uint64(value);
	if (json_object_object_get_ex(usage, "completion_tokens", &value))
		report->completion_tokens = json_object_get_uint64(value);
	if (json_object_object_get_ex(usage, "prompt_tokens_details", &value) &&
	    json_object_object_get_ex(value, "cached_tokens", &value) &&
	    json_object_is_type(value, json_type_int)) {
		report->kind = KVR_REPORT_VALUE;
		report->cached_tokens = json_object_get_uint64(value);
	}
	json_object_put(o);
}

/* Its caller still uses it, so the connection ends after that. */
static void
drop(evutil_socket_t fd, short what, void *engine)
{
	(void)fd;
	(void)what;
	evhttp_connection_free(engine);
}

/* The engine has answered: `from` has no status if it has failed. */
static void
answered(struct evhttp_request *from, void *arg)
{
	struct forward *f = arg;
	const int status = from == NULL ? 0 :
	    evhttp_request_get_response_code(from);
	struct kvr_report report = { .size = sizeof(report) };
	struct evbuffer *body;

	LIST_REMOVE(f, others);
	(void)event_base_once(f->g->base, -1, EV_TIMEOUT, drop, f->engine,
	    NULL);
	if (status == 0) {
		(void)kvr_lease_abort(f->g->k, f->lease, KVR_NOW, 0);
		evhttp_send_error(f->client, 502, NULL);
		free(f);
		return;
	}
	body = evhttp_request_get_input_buffer(from);
	read_usage(body, &report);
	if (status != 200)
		report.flags |= KVR_REPORT_NO_EVIDENCE;
	(void)kvr_lease_finish(f->g->k, f->lease, &report, KVR_NOW, 0);
	evhttp_add_header(evhttp_request_get_output_headers(f->client),
	    "Content-Type", "application/json");
	evhttp_send_reply(f->client, status, NULL, body);
	free(f);
}

/* -------------------------------------------------------------- request --- */

/* NAME=TOKENS of each worker that holds any of the prompt. */
static void
tell_overlaps(struct gateway *g, struct evkeyvalq *headers)
{
	struct kvr_overlap overlaps[WORKERS_MAX];
	char name[KVR_NAME_MAX + 1], text[KVR_NAME_MAX + 32];
	size_t n = 0, i;

	if (kvr_match(g->k, g->prompt, KVR_NOW, overlaps, sizeof(overlaps[0]),
	    WORKERS_MAX, &n) != KVR_OK)
		return;
	for (i = 0; i < n; i++) {
		name_of(g, overlaps[i].worker, name);
		snprintf(text, sizeof(text), "%s=%" PRIu32, name,
		    overlaps[i].tokens);
		evhttp_add_header(headers, "X-Overlap", text);
	}
}

static void
tell_decision(struct evkeyvalq *headers, const char *name,
    const struct kvr_decision *d)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, d->overlap_tokens);
	evhttp_add_header(headers, "X-Worker", name);
	evhttp_add_header(headers, "X-Predicted", text);
}

/* Sends the body on; false: it cannot, and f is still the caller's. */
static bool
send_on(struct forward *f, const char *name)
{
	const char *colon = strrchr(name, ':');
	struct evhttp_connection *engine;
	struct evhttp_request *to;
	struct evkeyvalq *headers;
	char host[KVR_NAME_MAX + 1];

	if (colon == NULL)
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - name), name);
	engine = evhttp_connection_base_new(f->g->base, NULL, host,
	    (uint16_t)strtoul(colon + 1, NULL, 10));
	to = evhttp_request_new(answered, f);
	if (engine == NULL || to == NULL) {
		if (engine != NULL)
			evhttp_connection_free(engine);
		if (to != NULL)
			evhttp_request_free(to);
		return false;
	}
	evhttp_connection_set_timeout(engine, ANSWER_MAX);
	f->engine = engine;
	headers = evhttp_request_get_output_headers(to);
	evhttp_add_header(headers, "Host", name);
	/* Engines refuse bodies of other types. */
	evhttp_add_header(headers, "Content-Type", "application/json");
	evhttp_add_header(headers, "Connection", "close");
	evbuffer_add_buffer(evhttp_request_get_output_buffer(to),
	    evhttp_request_get_input_buffer(f->client));
	/* It frees the request if it fails. */
	if (evhttp_make_request(engine, to, EVHTTP_REQ_POST,
	    "/v1/completions") == 0)
		return true;
	evhttp_connection_free(engine);
	return false;
}

static void
route(struct gateway *g, struct evhttp_request *client)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(client);
	struct kvr_decision d = { .size = sizeof(d) };
	struct forward *f = calloc(1, sizeof(*f));
	char name[KVR_NAME_MAX + 1];

	tell_overlaps(g, headers);
	if (f == NULL || kvr_lease_open(g->k, g->prompt, NULL, KVR_NOW, &d) !=
	    KVR_OK) {
		free(f);
		evhttp_send_error(client, 503, NULL);
		return;
	}
	*f = (struct forward){ .g = g, .client = client, .lease = d.lease };
	name_of(g, d.worker, name);
	tell_decision(headers, name, &d);
	if (send_on(f, name)) {
		LIST_INSERT_HEAD(&g->forwards, f, others);
		(void)kvr_lease_commit(g->k, d.lease, KVR_NOW, 0);
		return;
	}
	(void)kvr_lease_abort(g->k, d.lease, KVR_NOW, 0);
	evhttp_send_error(client, 502, NULL);
	free(f);
}

static void
completions(struct evhttp_request *client, void *arg)
{
	struct gateway *g = arg;
	struct json_object *body;
	int error;

	if (evhttp_request_get_command(client) != EVHTTP_REQ_POST) {
		evhttp_send_error(client, 405, NULL);
		return;
	}
	body = parse(evhttp_request_get_input_buffer(client));
	error = read_prompt(g->prompt, body);
	json_object_put(body);
	if (error == KVR_OK)
		route(g, client);
	else
		evhttp_send_error(client, 400, kvr_errname(error));
}

/* ---------------------------------------------------------------- start --- */

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

/* What its events say is all that an engine holds: nothing by TTL. */
static void
add_worker(struct gateway *g, const char *name)
{
	struct kvr_worker facts;
	uint64_t id;
	int error;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	if (kvr_worker_find(g->k, name, strlen(name), 0, &id) == KVR_OK)
		return;
	error = kvr_worker_add(g->k, name, strlen(name), &facts, &id);
	/* Another gateway may have been faster. */
	if (error != KVR_EEXIST)
		must(error, name);
}

static bool
is_told(const char *name, char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* Another gateway may remove them, too. */
static void
remove_others(struct gateway *g, char *const *names)
{
	char name[KVR_NAME_MAX + 1];
	uint64_t id;

	for (id = 0; kvr_worker_next(g->k, &id) == KVR_OK && id != 0;) {
		name_of(g, id, name);
		if (!is_told(name, names))
			(void)kvr_worker_remove(g->k, id);
	}
}

static void
open_region(struct gateway *g, const char *path)
{
	struct kvr_options o;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = 32 << 20;
	o.block_size = BLOCK_TOKENS;
	o.max_workers = WORKERS_MAX;
	o.event_blocks = 1 << 16;
	must(kvr_open(path, strlen(path), KVR_OPEN_CREATE | KVR_OPEN_ATTACH, &o,
	    &g->k), path);
	must(kvr_prompt_new(g->k, &g->prompt), "prompt");
}

static void
end(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	event_base_loopbreak(arg);
}

/* What runs on engines ends with us. */
static void
end_forwards(struct gateway *g)
{
	struct forward *f;

	while ((f = LIST_FIRST(&g->forwards)) != NULL) {
		LIST_REMOVE(f, others);
		evhttp_connection_free(f->engine);
		(void)kvr_lease_abort(g->k, f->lease, KVR_NOW, 0);
		free(f);
	}
}

static void
serve(struct gateway *g, const char *port)
{
	struct evhttp *http;
	struct event *term;

	g->base = event_base_new();
	http = g->base == NULL ? NULL : evhttp_new(g->base);
	if (http == NULL)
		errx(1, "no memory");
	evhttp_set_max_body_size(http, BODY_MAX);
	evhttp_set_cb(http, "/v1/completions", completions, g);
	if (evhttp_bind_socket(http, "127.0.0.1", (uint16_t)strtoul(port, NULL,
	    10)) != 0)
		err(1, "port %s", port);
	term = evsignal_new(g->base, SIGTERM, end, g->base);
	if (term == NULL || event_add(term, NULL) != 0)
		errx(1, "no memory");
	event_base_dispatch(g->base);
	end_forwards(g);
	event_free(term);
	evhttp_free(http);
	event_base_free(g->base);
}

int
main(int argc, char **argv)
{
	struct gateway g = { 0 };
	int i;

	if (argc < 4)
		errx(2, "usage: gateway PORT REGION HOST:PORT ...");
	signal(SIGPIPE, SIG_IGN);
	open_region(&g, argv[2]);
	remove_others(&g, argv + 3);
	for (i = 3; i < argc; i++)
		add_worker(&g, argv[i]);
	serve(&g, argv[1]);
	kvr_prompt_free(g.prompt);
	kvr_free(g.k);
	return 0;
}
