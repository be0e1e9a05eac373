/* SPDX-License-Identifier: BSD-2-Clause */
/* conf.c - see conf.h. */
#include "conf.h"

#include "bus_url.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <kvroute.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 16 << 20, SENTENCE_MAX = 1024, INTERVAL = 100 };

static const char *const engines[] = { "vllm", "sglang", "mooncake", "trtllm",
    "dynamo" };

struct parse {
	struct conf *conf;
	const char *path;
	conf_say *say;
	void *context;
	size_t wrong;
	uint32_t entry;
	const char *worker;  /* of the entry; NULL: none yet */
	uint32_t ranks;
};

const char *
conf_engine_name(uint32_t engine)
{
	return engine < sizeof(engines) / sizeof(engines[0]) ?
	    engines[engine] : "";
}

const char *
conf_hint(const struct conf_stream *stream)
{
	return stream->engine != CONF_VLLM ||
	    strncmp(stream->events, "tcp://", 6) != 0 ? NULL :
	    "vLLM connects instead of listening unless the endpoint in its "
	    "--kv-events-config has a *, as tcp://*:5557";
}

static void
wrong(struct parse *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
wrong(struct parse *p, const char *format, ...)
{
	char text[SENTENCE_MAX];
	size_t n;
	va_list args;

	n = (size_t)snprintf(text, sizeof(text), "%.500s: ", p->path);
	if (p->worker != NULL)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "worker %.100s: ", p->worker);
	else if (p->entry != UINT32_MAX)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
		    "entry %" PRIu32 ": ", p->entry + 1);
	va_start(args, format);
	(void)vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	p->say(p->context, text);
	p->wrong++;
}

/* ------------------------------------------------------------ endpoints --- */

/* Where the port begins, or NULL. */
static char *
port_at(char *endpoint)
{
	char *colon = strrchr(endpoint, ':');

	return strncmp(endpoint, "tcp://", 6) == 0 && colon > endpoint + 5 &&
	    colon[1] != '\0' && strspn(colon + 1, "0123456789") ==
	    strlen(colon + 1) ? colon + 1 : NULL;
}

bool
conf_port(char *endpoint, size_t size, uint32_t more)
{
	char *at = port_at(endpoint);
	const unsigned long long port = at == NULL ? 0 :
	    strtoull(at, NULL, 10) + more;
	size_t room;

	if (more == 0 || endpoint[0] == '\0')
		return true;
	if (at == NULL || port == 0 || port > UINT16_MAX)
		return false;
	room = size - (size_t)(at - endpoint);
	return snprintf(at, room, "%llu", port) < (int)room;
}

/* Engines bind to such addresses. */
static bool
wildcard(const char *url)
{
	return strstr(url, "://*") != NULL || strstr(url, "://0.0.0.0") != NULL
	    || strstr(url, "://[::]") != NULL;
}

static bool
begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static void
check_zmq(struct parse *p, const char *key, char *url)
{
	if (url[0] == '\0')
		return;
	if (!begins(url, "tcp://") && !begins(url, "ipc://"))
		wrong(p, "\"%s\" is tcp://HOST:PORT or ipc://PATH, not %s", key,
		    url);
	else if (wildcard(url))
		wrong(p, "\"%s\" is %s, to which the engine binds: give the "
		    "address at which this machine reaches it", key, url);
	else if (begins(url, "tcp://") && port_at(url) == NULL)
		wrong(p, "\"%s\" has no port: tcp://HOST:PORT", key);
}

/* -------------------------------------------------------------- fields --- */

static void
text(struct parse *p, const char *key, json_object *value, char *out,
    size_t size)
{
	if (!json_object_is_type(value, json_type_string)) {
		wrong(p, "\"%s\" is a text", key);
		return;
	}
	if ((size_t)json_object_get_string_len(value) >= size ||
	    strlen(json_object_get_string(value)) !=
	    (size_t)json_object_get_string_len(value)) {
		wrong(p, "\"%s\" has at most %zu bytes, none of them 0", key,
		    size - 1);
		return;
	}
	memcpy(out, json_object_get_string(value),
	    (size_t)json_object_get_string_len(value));
}

static uint64_t
number(struct parse *p, const char *key, json_object *value, uint64_t least,
    uint64_t most)
{
	const uint64_t n = json_object_get_uint64(value);

	if (json_object_is_type(value, json_type_int) &&
	    (json_object_get_int64(value) >= 0) && n >= least && n <= most)
		return n;
	wrong(p, "\"%s\" is a number from %" PRIu64 " to %" PRIu64, key, least,
	    most);
	return least;
}

static void
engine(struct parse *p, json_object *value, struct conf_stream *s)
{
	const char *name = json_object_get_string(value);
	uint32_t i;

	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (name != NULL && strcmp(engines[i], name) == 0) {
			s->engine = i;
			return;
		}
	wrong(p, "\"engine\" is one of vllm, sglang, mooncake, trtllm, dynamo");
}

static void
mode(struct parse *p, json_object *value, struct conf_stream *s)
{
	const char *name = json_object_get_string(value);

	s->full = name != NULL && strcmp(name, "full") == 0;
	if (!s->full && (name == NULL || strcmp(name, "copies") != 0))
		wrong(p, "\"mode\" is copies or full: what the engine's "
		    "kv_cache_report_mode is");
}

static void
sliding(struct parse *p, json_object *value, struct conf_stream *s)
{
	static const char *const names[] = { [KVR_WINDOW_FULL] = "full",
		[KVR_WINDOW_BOUNDARY] = "boundary",
		[KVR_WINDOW_DENSE] = "dense", [KVR_WINDOW_DUAL] = "dual" };
	const char *name = json_object_get_string(value);
	uint32_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (name != NULL && strcmp(name, names[i]) == 0) {
			s->sliding = i;
			return;
		}
	wrong(p, "\"sliding\" is full, boundary, dense or dual: what the "
	    "engine keeps of the windows that it tells of");
}

static bool
text_field(struct parse *p, const char *key, json_object *value,
    struct conf_stream *s)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} texts[] = {
		{ "worker", s->worker, KVR_NAME_MAX + 1 },
		{ "region", s->region, sizeof(s->region) },
		{ "events", s->events, sizeof(s->events) },
		{ "replay", s->replay, sizeof(s->replay) },
		{ "server", s->server, sizeof(s->server) },
		{ "topic", s->topic, sizeof(s->topic) },
		{ "login", s->login, sizeof(s->login) },
		{ "model", s->model, sizeof(s->model) }
	};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(key, texts[i].key) == 0) {
			text(p, key, value, texts[i].to, texts[i].size);
			return true;
		}
	return false;
}

static void
field(struct parse *p, const char *key, json_object *value,
    struct conf_stream *s)
{
	if (text_field(p, key, value, s))
		return;
	if (strcmp(key, "engine") == 0)
		engine(p, value, s);
	else if (strcmp(key, "mode") == 0)
		mode(p, value, s);
	else if (strcmp(key, "sliding") == 0)
		sliding(p, value, s);
	else if (strcmp(key, "rank") == 0)
		s->rank = (uint32_t)number(p, key, value, 0, INT32_MAX);
	else if (strcmp(key, "ranks") == 0)
		p->ranks = (uint32_t)number(p, key, value, 1, CONF_RANKS_MAX);
	else if (strcmp(key, "block_size") == 0)
		s->block_size = (uint32_t)number(p, key, value, 1, 65536);
	else if (strcmp(key, "window") == 0)
		s->window = number(p, key, value, 1, INT64_MAX);
	else if (strcmp(key, "interval_ms") == 0)
		s->interval = (uint32_t)number(p, key, value, 10, 60000);
	else if (strcmp(key, "pages_mb") == 0)
		s->pages_mb = (uint32_t)number(p, key, value, 1, 1 << 20);
	else if (strcmp(key, "lease_s") == 0)
		s->lease = (uint32_t)number(p, key, value, 1, 86400);
	else if (strcmp(key, "id") == 0)
		s->id = number(p, key, value, 0, UINT64_MAX);
	else
		wrong(p, "there is no \"%s\"", key);
}

/* ------------------------------------------------------------- entries --- */

bool
conf_nats(const struct conf_stream *stream)
{
	return begins(stream->events, "nats://") ||
	    begins(stream->events, "nats+tls://");
}

/* The status shows endpoints, so no password may be in one. */
static void
check_nats(struct parse *p, struct conf_stream *s)
{
	struct bus_url url;
	char error[SENTENCE_MAX / 2] = "";

	if (!bus_url_parse(s->events, &url, error, sizeof(error)))
		wrong(p, "\"events\": %s", error);
	else if (url.hosts[0].name[0] == '\0' || url.path[0] != '\0')
		wrong(p, "\"events\" is nats://HOST:PORT, not %s", s->events);
	else if (url.user[0] != '\0' || url.password[0] != '\0')
		wrong(p, "\"events\" has a password, which others would see: "
		    "name a file with it as \"login\"");
	if (s->topic[0] == '\0')
		wrong(p, "\"topic\" is missing: over NATS it is the subject, "
		    "as namespace.NS.component.C.kv-events");
	else if (!bus_subject(s->topic))
		wrong(p, "\"topic\" is no subject of NATS: words with dots "
		    "between them, at most 127 bytes");
}

static void
check_dynamo(struct parse *p, struct conf_stream *s, json_object *o)
{
	if (conf_nats(s))
		check_nats(p, s);
	else
		check_zmq(p, "events", s->events);
	if (s->login[0] != '\0' && !conf_nats(s))
		wrong(p, "only a server of NATS has a \"login\"");
	if (!json_object_object_get_ex(o, "id", NULL))
		wrong(p, "Dynamo's plane tells of many workers: give the "
		    "worker's \"id\" there");
	if (s->replay[0] != '\0')
		wrong(p, "Dynamo's plane has no \"replay\"");
	if (p->ranks > 1)
		wrong(p, "of Dynamo's workers, each rank is an entry");
}

/* Do its streams come from a server's answer? */
static bool
tells(const struct conf_stream *s)
{
	return s->server[0] != '\0' && s->engine != CONF_TRTLLM;
}

static void
check_http(struct parse *p, struct conf_stream *s)
{
	size_t n = strlen(s->server);

	/* So that two entries of a server can be compared. */
	while (n > 0 && s->server[n - 1] == '/')
		s->server[--n] = '\0';
	if (s->server[0] != '\0' && !begins(s->server, "http://") &&
	    !begins(s->server, "https://"))
		wrong(p, "\"server\" is http://HOST:PORT, not %s", s->server);
	if (s->engine == CONF_TRTLLM && s->server[0] != '\0') {
		if (s->events[0] != '\0')
			wrong(p, "it is polled at its \"server\", or publishes "
			    "to \"events\"; not both");
		if (s->replay[0] != '\0')
			wrong(p, "what is polled has no \"replay\"");
		if (s->topic[0] != '\0')
			wrong(p, "what is polled has no \"topic\"");
		if (s->interval == 0)
			s->interval = INTERVAL;
	} else if (s->server[0] != '\0' && s->events[0] != '\0') {
		wrong(p, "its \"server\" tells where its events are, or "
		    "\"events\" does; not both");
	} else if (s->server[0] != '\0' && s->engine != CONF_SGLANG) {
		wrong(p, "only SGLang's \"server\" tells where its events are, "
		    "and only TensorRT-LLM's has them: give \"events\"");
	}
	if (tells(s) && p->ranks > 1)
		wrong(p, "its \"server\" tells how many ranks it has: leave "
		    "\"ranks\" out");
	if (s->interval != 0 && s->engine != CONF_TRTLLM)
		wrong(p, "nothing is polled: \"interval_ms\" is for trtllm");
}

static void
check(struct parse *p, struct conf_stream *s, json_object *o)
{
	if (s->worker[0] == '\0')
		wrong(p, "\"worker\" is missing: its name in the region");
	if (s->events[0] == '\0' && s->server[0] == '\0')
		wrong(p, "\"events\" is missing: where the engine publishes, "
		    "as tcp://10.0.0.5:5557");
	if (s->engine == CONF_DYNAMO) {
		check_dynamo(p, s, o);
	} else {
		if (conf_nats(s))
			wrong(p, "only Dynamo's plane is read over NATS");
		else
			check_zmq(p, "events", s->events);
		if (json_object_object_get_ex(o, "id", NULL))
			wrong(p, "\"id\" is for dynamo");
	}
	check_zmq(p, "replay", s->replay);
	check_http(p, s);
	if (s->replay[0] != '\0' && strcmp(s->replay, s->events) == 0)
		wrong(p, "\"replay\" is the same as \"events\": engines have "
		    "a socket for each");
}

static bool
same_worker(const struct conf_stream *a, const struct conf_stream *b)
{
	return a->rank == b->rank && strcmp(a->worker, b->worker) == 0 &&
	    (a->region[0] == '\0' || b->region[0] == '\0' ||
	        strcmp(a->region, b->region) == 0);
}

bool
conf_has(const struct conf *conf, const struct conf_stream *stream)
{
	size_t i;

	for (i = 0; i < conf->n; i++)
		if (same_worker(&conf->streams[i], stream))
			return true;
	return false;
}

/* A server gives each event once: two that poll it would halve them. */
static bool
polled_twice(const struct conf_stream *a, const struct conf_stream *b)
{
	return a->engine == CONF_TRTLLM && b->engine == CONF_TRTLLM &&
	    a->server[0] != '\0' && strcmp(a->server, b->server) == 0 &&
	    (a->interval != b->interval || a->window != b->window ||
	        a->block_size != b->block_size);
}

static bool
check_polls(struct parse *p, const struct conf_stream *s)
{
	size_t i;

	for (i = 0; i < p->conf->n; i++)
		if (polled_twice(&p->conf->streams[i], s)) {
			wrong(p, "its \"server\" is polled once for all its "
			    "workers: give each the same \"interval_ms\", "
			    "\"block_size\" and \"window\"");
			return false;
		}
	return true;
}

/* The numbers do not separate batches of ranks that publish at one endpoint. */
static bool
shares_endpoint(const struct conf *conf, const struct conf_stream *s)
{
	const struct conf_stream *other;
	size_t i;

	for (i = 0; i < conf->n && s->events[0] != '\0' &&
	    s->engine != CONF_DYNAMO; i++) {
		other = &conf->streams[i];
		if (other->rank != s->rank &&
		    strcmp(other->worker, s->worker) == 0 &&
		    strcmp(other->events, s->events) == 0 &&
		    strcmp(other->topic, s->topic) == 0)
			return true;
	}
	return false;
}

/* One for each rank. */
static void
add(struct parse *p, const struct conf_stream *first)
{
	struct conf_stream s;
	uint32_t r;

	if (!check_polls(p, first))
		return;
	for (r = 0; r < p->ranks; r++) {
		s = *first;
		s.rank += r;
		if (!conf_port(s.events, sizeof(s.events), r) ||
		    !conf_port(s.replay, sizeof(s.replay), r)) {
			wrong(p, "\"ranks\" wants endpoints with ports, of "
			    "which each rank has the next");
			return;
		}
		if (conf_has(p->conf, &s)) {
			wrong(p, "rank %" PRIu32 " is there twice", s.rank);
			return;
		}
		if (shares_endpoint(p->conf, &s)) {
			wrong(p, "rank %" PRIu32 " is at the endpoint of "
			    "another one: each has its own", s.rank);
			return;
		}
		if (!conf_add(p->conf, &s)) {
			wrong(p, "more than %d streams, or no memory",
			    CONF_STREAMS_MAX);
			return;
		}
	}
}

static void
entry(struct parse *p, json_object *o)
{
	struct conf_stream s;
	const size_t before = p->wrong;

	memset(&s, 0, sizeof(s));
	s.entry = p->entry;
	p->ranks = 1;
	p->worker = NULL;
	if (!json_object_is_type(o, json_type_object)) {
		wrong(p, "it is no object");
		return;
	}
	json_object_object_foreach(o, key, value) {
		field(p, key, value, &s);
		p->worker = s.worker[0] != '\0' ? s.worker : NULL;
	}
	if (p->wrong == before)
		check(p, &s, o);
	if (p->wrong == before)
		add(p, &s);
	p->worker = NULL;
}

static void
whole(struct parse *p, json_object *o)
{
	json_object *workers;
	size_t i;

	if (!json_object_object_get_ex(o, "workers", &workers) ||
	    !json_object_is_type(workers, json_type_array)) {
		wrong(p, "it has no array \"workers\"");
		return;
	}
	json_object_object_foreach(o, key, value) {
		(void)value;
		if (strcmp(key, "workers") != 0)
			wrong(p, "there is no \"%s\"", key);
	}
	for (i = 0; i < json_object_array_length(workers); i++) {
		p->entry = (uint32_t)i;
		entry(p, json_object_array_get_idx(workers, i));
	}
	p->entry = UINT32_MAX;
}

/* ---------------------------------------------------------------- file --- */

static char *
read_file(struct parse *p, size_t *n)
{
	FILE *in = fopen(p->path, "rb");
	char *bytes = in == NULL ? NULL : malloc(FILE_MAX);

	if (bytes == NULL) {
		wrong(p, "%s", strerror(errno));
	} else {
		*n = fread(bytes, 1, FILE_MAX, in);
		if (ferror(in) || *n == FILE_MAX) {
			wrong(p, "%s", ferror(in) ? strerror(errno) :
			    "it has more than 16 MiB");
			free(bytes);
			bytes = NULL;
		}
	}
	if (in != NULL)
		fclose(in);
	return bytes;
}

static size_t
line_of(const char *bytes, size_t at)
{
	size_t i, line = 1;

	for (i = 0; i < at; i++)
		line += bytes[i] == '\n';
	return line;
}

static void
parse(struct parse *p, const char *bytes, size_t n)
{
	struct json_tokener *t = json_tokener_new();
	enum json_tokener_error error;
	json_object *o;

	if (t == NULL) {
		wrong(p, "no memory");
		return;
	}
	o = json_tokener_parse_ex(t, bytes, (int)n);
	error = json_tokener_get_error(t);
	if (o == NULL)
		wrong(p, "line %zu: %s", line_of(bytes,
		    json_tokener_get_parse_end(t)),
		    error == json_tokener_continue ? "it is cut" :
		    json_tokener_error_desc(error));
	else
		whole(p, o);
	json_object_put(o);
	json_tokener_free(t);
}

bool
conf_read(struct conf *conf, const char *path, conf_say *say, void *context)
{
	struct parse p = { .conf = conf, .path = path, .say = say,
	    .context = context, .entry = UINT32_MAX };
	size_t n = 0;
	char *bytes;

	*conf = (struct conf){ 0 };
	bytes = read_file(&p, &n);
	if (bytes != NULL)
		parse(&p, bytes, n);
	free(bytes);
	if (p.wrong > 0)
		conf_free(conf);
	return p.wrong == 0;
}

bool
conf_add(struct conf *conf, const struct conf_stream *stream)
{
	const size_t room = conf->room == 0 ? 16 : conf->room * 2;
	struct conf_stream *more;

	if (conf->n == CONF_STREAMS_MAX)
		return false;
	if (conf->n == conf->room) {
		more = realloc(conf->streams, room * sizeof(*more));
		if (more == NULL)
			return false;
		conf->streams = more;
		conf->room = room;
	}
	conf->streams[conf->n++] = *stream;
	return true;
}

void
conf_change(struct conf_stream *stream, const struct conf_stream *now)
{
	stream->entry = now->entry;
	stream->full = now->full;
	stream->sliding = now->sliding;
	stream->lease = now->lease;
	memcpy(stream->model, now->model, sizeof(stream->model));
}

bool
conf_same(const struct conf_stream *a, const struct conf_stream *b)
{
	struct conf_stream c = *a;

	conf_change(&c, b);
	return memcmp(&c, b, sizeof(c)) == 0;
}

void
conf_free(struct conf *conf)
{
	free(conf->streams);
	*conf = (struct conf){ 0 };
}
