/* SPDX-License-Identifier: BSD-2-Clause */
/* discover.c - see discover.h. */
#include "discover.h"

#include "say.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define EACH (30 * SECOND)

enum { ANSWER_MAX = 4 << 20 };

struct discover {
	struct conf_stream entry;
	struct http *http;
	struct http_request *request; /* NULL: none runs */
	struct conf streams;
	int64_t due, pause;
	char logged[HTTP_WHY_MAX];
};

struct discover *
discover_new(const struct conf_stream *entry, struct http *http)
{
	struct discover *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->entry = *entry;
	d->http = http;
	d->pause = SECOND;
	return d;
}

void
discover_free(struct discover *d)
{
	if (d == NULL)
		return;
	http_end(d->request);
	conf_free(&d->streams);
	free(d);
}

bool
discover_change(struct discover *d, const struct conf_stream *entry)
{
	size_t i;

	if (!conf_same(&d->entry, entry))
		return false;
	conf_change(&d->entry, entry);
	for (i = 0; i < d->streams.n; i++)
		conf_change(&d->streams.streams[i], entry);
	return true;
}

const struct conf *
discover_streams(const struct discover *d)
{
	return &d->streams;
}

/* -------------------------------------------------------------- answers --- */

static json_object *
get(json_object *o, const char *key)
{
	json_object *value;

	return json_object_is_type(o, json_type_object) &&
	    json_object_object_get_ex(o, key, &value) ? value : NULL;
}

static const char *
text(json_object *o, const char *key)
{
	json_object *value = get(o, key);

	return json_object_is_type(value, json_type_string) ?
	    json_object_get_string(value) : "";
}

/* A number of 1 to `most`; else the argument. */
static uint32_t
number(json_object *o, const char *key, int64_t most, uint32_t otherwise)
{
	json_object *value = get(o, key);

	return json_object_is_type(value, json_type_int) &&
	    json_object_get_int64(value) >= 1 &&
	    json_object_get_int64(value) <= most ?
	    (uint32_t)json_object_get_int64(value) : otherwise;
}

/* The server's own host, if it publishes on all addresses. */
static void
host_of(const char *server, char *out, size_t size)
{
	const char *at = strstr(server, "://");
	size_t n;

	at = at == NULL ? server : at + 3;
	n = at[0] == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":/");
	snprintf(out, size, "%.*s", (int)n, at);
}

static bool
any_host(const char *host)
{
	return host[0] == '\0' || strcmp(host, "*") == 0 ||
	    strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
	    strcmp(host, "[::]") == 0;
}

static bool
plain(const char *host)
{
	return host[strspn(host, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]_")] == '\0';
}

/* false: there is no room. */
static bool
endpoint(const char *host, uint32_t port, char *out, size_t size)
{
	return (size_t)snprintf(out, size, "tcp://%s:%" PRIu32, host, port) <
	    size;
}

static bool
fill(const struct conf_stream *entry, json_object *events, struct conf *out,
    const char **why)
{
	const uint32_t port = number(events, "endpoint_port_base", 65535, 0);
	const uint32_t replay = number(events, "replay_endpoint_port_base",
	    65535, 0);
	const uint32_t ranks = number(events, "dp_size", CONF_RANKS_MAX, 1);
	const char *host = text(events, "endpoint_host");
	struct conf_stream first = *entry, s;
	char own[CONF_URL_MAX];
	uint32_t r;

	host_of(entry->server, own, sizeof(own));
	if (any_host(host))
		host = own;
	if (strcmp(text(events, "publisher"), "zmq") != 0 || port == 0 ||
	    !plain(host) || !endpoint(host, port, first.events,
	    sizeof(first.events))) {
		*why = "it names no ZeroMQ endpoint for its events";
		return false;
	}
	if (first.replay[0] == '\0' && replay > 0 &&
	    !endpoint(host, replay, first.replay, sizeof(first.replay)))
		first.replay[0] = '\0';
	if (first.block_size == 0)
		first.block_size = number(events, "block_size", 65536, 0);
	if (first.topic[0] == '\0')
		snprintf(first.topic, sizeof(first.topic), "%s",
		    text(events, "topic"));
	for (r = 0; r < ranks; r++) {
		s = first;
		s.rank += r;
		if (!conf_port(s.events, sizeof(s.events), r) ||
		    !conf_port(s.replay, sizeof(s.replay), r) ||
		    !conf_add(out, &s)) {
			*why = "its ranks have no ports";
			return false;
		}
	}
	return true;
}

bool
discover_read(const struct conf_stream *entry, const char *json, size_t n,
    struct conf *out, const char **why)
{
	json_tokener *t = json_tokener_new();
	json_object *o = NULL;
	bool good = false;

	*out = (struct conf){ 0 };
	*why = "its /server_info is no JSON";
	if (t != NULL && n <= ANSWER_MAX)
		o = json_tokener_parse_ex(t, json, (int)n);
	if (json_object_is_type(o, json_type_object)) {
		*why = "it publishes no events: it wants --kv-events-config";
		if (json_object_is_type(get(o, "kv_events"), json_type_object))
			good = fill(entry, get(o, "kv_events"), out, why);
	}
	json_object_put(o);
	if (t != NULL)
		json_tokener_free(t);
	if (!good)
		conf_free(out);
	return good;
}

/* ----------------------------------------------------------------- work --- */

static bool
same(const struct conf *a, const struct conf *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->streams, b->streams,
	    a->n * sizeof(*a->streams)) == 0);
}

static void
log_problem(struct discover *d, const char *why)
{
	if (why != NULL && strncmp(d->logged, why,
	    sizeof(d->logged) - 1) != 0)
		say(d->entry.server, NULL, "%s; it is asked again", why);
	snprintf(d->logged, sizeof(d->logged), "%s", why == NULL ? "" : why);
}

/* A server that does not answer is still where it was. */
static bool
answered(struct discover *d, const struct http_answer *answer)
{
	const char *why = answer->why;
	struct conf found;

	d->pause = d->pause * 2 < EACH ? d->pause * 2 : EACH;
	if (why != NULL || !discover_read(&d->entry, answer->bytes, answer->n,
	    &found, &why)) {
		log_problem(d, why);
		return false;
	}
	log_problem(d, NULL);
	d->pause = EACH;
	if (same(&d->streams, &found)) {
		conf_free(&found);
		return false;
	}
	conf_free(&d->streams);
	d->streams = found;
	say(d->entry.server, NULL, "publishes at %s, ranks: %zu",
	    found.streams[0].events, found.n);
	return true;
}

bool
discover_work(struct discover *d, int64_t now)
{
	struct http_answer answer;
	char url[CONF_URL_MAX + 32];
	size_t n = strlen(d->entry.server);
	bool changed;

	if (d->request != NULL) {
		if (!http_ended(d->request, &answer))
			return false;
		changed = answered(d, &answer);
		http_end(d->request);
		d->request = NULL;
		d->due = now + d->pause;
		return changed;
	}
	if (now < d->due)
		return false;
	while (n > 0 && d->entry.server[n - 1] == '/')
		n--;
	snprintf(url, sizeof(url), "%.*s/server_info", (int)n,
	    d->entry.server);
	d->request = http_ask(d->http, url, false, ANSWER_MAX);
	d->due = now + SECOND;
	return false;
}
