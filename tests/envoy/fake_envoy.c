/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_envoy.c - see fake_envoy.h. */
#include "fake_envoy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char fake_log[8192];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

/* --------------------------------------------------------------- bytes --- */

static void
bytes_set(struct fake_bytes *b, const char *at, size_t n, const char *more,
    size_t m)
{
	char *text = malloc(n + m + 1);

	if (text == NULL)
		abort();
	if (n > 0)
		memcpy(text, at, n);
	if (m > 0)
		memcpy(text + n, more, m);
	text[n + m] = '\0';
	free(b->at);
	b->at = text;
	b->n = n + m;
}

static void
bytes_move(struct fake_bytes *to, struct fake_bytes *from)
{
	bytes_set(to, to->at, to->n, from->at, from->n);
	bytes_set(from, NULL, 0, NULL, 0);
}

static char *
copy_text(const char *at, size_t n)
{
	struct fake_bytes b = { NULL, 0 };

	bytes_set(&b, at, n, NULL, 0);
	return b.at;
}

static void
list_drop(struct fake_list *l, struct envoy_text name)
{
	size_t i;

	for (i = 0; i < l->n; i++) {
		if (strlen(l->name[i]) != name.n ||
		    memcmp(l->name[i], name.at, name.n) != 0)
			continue;
		free(l->name[i]);
		free(l->value[i]);
		l->n--;
		l->name[i] = l->name[l->n];
		l->value[i--] = l->value[l->n];
	}
}

static void
list_put(struct fake_list *l, struct envoy_text name, struct envoy_text value)
{
	list_drop(l, name);
	if (value.at == NULL)
		return;
	if (l->n == FAKE_HEADERS)
		abort();
	l->name[l->n] = copy_text(name.at, name.n);
	l->value[l->n++] = copy_text(value.at, value.n);
}

static void
list_free(struct fake_list *l)
{
	while (l->n > 0) {
		l->n--;
		free(l->name[l->n]);
		free(l->value[l->n]);
	}
}

static struct envoy_text
text_of(const char *text)
{
	return (struct envoy_text){ text, text == NULL ? 0 : strlen(text) };
}

void
fake_set(struct fake_list *l, const char *const *pairs)
{
	for (; pairs[0] != NULL; pairs += 2)
		list_put(l, text_of(pairs[0]), text_of(pairs[1]));
}

const char *
fake_get(const struct fake_list *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->name[i], name) == 0)
			return l->value[i];
	return NULL;
}

/* ----------------------------------------------------------- callbacks --- */

void
envoy_dynamic_module_callback_log(int level, struct envoy_text text)
{
	size_t n;

	(void)pthread_mutex_lock(&log_lock);
	n = strlen(fake_log);
	(void)snprintf(fake_log + n, sizeof(fake_log) - n, "%d %.*s\n", level,
	    (int)text.n, text.at);
	(void)pthread_mutex_unlock(&log_lock);
}

bool
fake_logged(const char *text)
{
	bool found;

	(void)pthread_mutex_lock(&log_lock);
	found = strstr(fake_log, text) != NULL;
	(void)pthread_mutex_unlock(&log_lock);
	return found;
}

static struct fake_list *
list_of(void *envoy, int headers)
{
	struct fake_envoy *e = envoy;

	return headers == ENVOY_REQUEST ? &e->request : &e->response;
}

size_t
envoy_dynamic_module_callback_http_get_headers_size(void *envoy, int headers)
{
	return list_of(envoy, headers)->n;
}

bool
envoy_dynamic_module_callback_http_get_headers(void *envoy, int headers,
    struct envoy_header *list)
{
	const struct fake_list *l = list_of(envoy, headers);
	size_t i;

	for (i = 0; i < l->n; i++) {
		list[i].name = text_of(l->name[i]);
		list[i].value = text_of(l->value[i]);
	}
	return true;
}

bool
envoy_dynamic_module_callback_http_get_header(void *envoy, int headers,
    struct envoy_text name, struct envoy_text *value, size_t place,
    size_t *values)
{
	char *key = copy_text(name.at, name.n);
	const char *found = fake_get(list_of(envoy, headers), key);

	free(key);
	if (values != NULL)
		*values = found != NULL;
	*value = text_of(place == 0 ? found : NULL);
	return value->at != NULL;
}

bool
envoy_dynamic_module_callback_http_set_header(void *envoy, int headers,
    struct envoy_text name, struct envoy_text value)
{
	list_put(list_of(envoy, headers), name, value);
	return true;
}

size_t
envoy_dynamic_module_callback_http_get_body_size(void *envoy, int body)
{
	return ((struct fake_envoy *)envoy)->body[body].n;
}

size_t
envoy_dynamic_module_callback_http_get_body_chunks_size(void *envoy, int body)
{
	const struct fake_envoy *e = envoy;
	const size_t n = e->body[body].n;

	return e->slice == 0 ? n > 0 : (n + e->slice - 1) / e->slice;
}

bool
envoy_dynamic_module_callback_http_get_body_chunks(void *envoy, int body,
    struct envoy_text *pieces)
{
	const struct fake_envoy *e = envoy;
	const struct fake_bytes *b = &e->body[body];
	size_t at, n;

	for (at = 0; at < b->n; at += n) {
		n = e->slice == 0 || b->n - at < e->slice ? b->n - at :
		    e->slice;
		*pieces++ = (struct envoy_text){ b->at + at, n };
	}
	return true;
}

bool
envoy_dynamic_module_callback_http_append_body(void *envoy, int body,
    struct envoy_text bytes)
{
	struct fake_bytes *b = &((struct fake_envoy *)envoy)->body[body];

	bytes_set(b, b->at, b->n, bytes.at, bytes.n);
	return true;
}

bool
envoy_dynamic_module_callback_http_drain_body(void *envoy, int body, size_t n)
{
	struct fake_bytes *b = &((struct fake_envoy *)envoy)->body[body];

	if (n > b->n)
		n = b->n;
	bytes_set(b, b->at + n, b->n - n, NULL, 0);
	return true;
}

bool
envoy_dynamic_module_callback_http_received_buffered_request_body(void *envoy)
{
	return ((struct fake_envoy *)envoy)->held_before;
}

uint64_t
envoy_dynamic_module_callback_http_get_buffer_limit(void *envoy)
{
	return ((struct fake_envoy *)envoy)->limit;
}

void
envoy_dynamic_module_callback_http_send_response(void *envoy, uint32_t status,
    struct envoy_header *headers, size_t n, struct envoy_text body,
    struct envoy_text details)
{
	struct fake_envoy *e = envoy;
	size_t i;

	if (e->status != 0 || details.n == 0)
		abort();
	e->status = status;
	for (i = 0; i < n; i++)
		list_put(&e->answer, headers[i].name, headers[i].value);
	bytes_set(&e->answer_body, body.at, body.n, NULL, 0);
	(void)envoy_dynamic_module_on_http_filter_local_reply(e, e->filter,
	    status, details, false);
}

void
envoy_dynamic_module_callback_http_set_dynamic_metadata_string(void *envoy,
    struct envoy_text space, struct envoy_text key, struct envoy_text value)
{
	struct fake_envoy *e = envoy;

	if (space.n != 8 || memcmp(space.at, "envoy.lb", 8) != 0 ||
	    key.n != 30)
		abort();
	bytes_set(&e->targets, value.at, value.n, NULL, 0);
}

static bool
has_subset(const struct fake_envoy *e, int source, struct envoy_text space,
    struct envoy_text key)
{
	if (source != ENVOY_OF_STREAM || space.n != 20 ||
	    memcmp(space.at, "envoy.lb.subset_hint", 20) != 0 || key.n != 37)
		abort();
	return e->subset != NULL;
}

bool
envoy_dynamic_module_callback_http_get_metadata_list_size(void *envoy,
    int source, struct envoy_text space, struct envoy_text key, size_t *n)
{
	const struct fake_envoy *e = envoy;

	if (!has_subset(e, source, space, key) || !e->listed)
		return false;
	for (*n = 0; e->subset[*n] != NULL; (*n)++)
		continue;
	return true;
}

bool
envoy_dynamic_module_callback_http_get_metadata_list_string(void *envoy,
    int source, struct envoy_text space, struct envoy_text key, size_t place,
    struct envoy_text *value)
{
	const struct fake_envoy *e = envoy;

	if (!has_subset(e, source, space, key) || !e->listed)
		return false;
	*value = text_of(e->subset[place]);
	return true;
}

bool
envoy_dynamic_module_callback_http_get_metadata_string(void *envoy,
    int source, struct envoy_text space, struct envoy_text key,
    struct envoy_text *value)
{
	const struct fake_envoy *e = envoy;

	if (!has_subset(e, source, space, key) || e->listed)
		return false;
	*value = text_of(e->subset[0]);
	return true;
}

bool
envoy_dynamic_module_callback_http_filter_get_attribute_string(void *envoy,
    int attribute, struct envoy_text *value)
{
	const struct fake_envoy *e = envoy;

	*value = text_of(attribute == ENVOY_CLIENT_ADDRESS ? e->client :
	    attribute == ENVOY_SERVER_ADDRESS ? e->server : e->details);
	return value->at != NULL;
}

/* -------------------------------------------------------------- stream --- */

void
fake_begin(struct fake_envoy *e, const void *config)
{
	memset(e, 0, sizeof(*e));
	e->limit = 1 << 20;
	e->client = "192.0.2.7:4711";
	e->filter = envoy_dynamic_module_on_http_filter_new(config, e);
}

void
fake_end(struct fake_envoy *e, const char *details)
{
	size_t i;

	e->details = details;
	if (details != NULL)
		envoy_dynamic_module_on_http_filter_stream_complete(e,
		    e->filter);
	envoy_dynamic_module_on_http_filter_destroy(e->filter);
	list_free(&e->request);
	list_free(&e->response);
	list_free(&e->answer);
	for (i = 0; i < FAKE_BODIES; i++)
		free(e->body[i].at);
	free(e->sent.at);
	free(e->got.at);
	free(e->targets.at);
	free(e->answer_body.at);
	memset(e, 0, sizeof(*e));
}

bool
fake_ask_head(struct fake_envoy *e, const char *path, bool end)
{
	const char *const pairs[] = { ":method", end ? "GET" : "POST",
		":path", path, ":authority", "llm", NULL };

	fake_set(&e->request, pairs);
	e->went = envoy_dynamic_module_on_http_filter_request_headers(e,
	    e->filter, end);
	return e->went == ENVOY_GO_ON;
}

bool
fake_piece(struct fake_envoy *e, const char *bytes, size_t n, bool end)
{
	struct fake_bytes *held = &e->body[ENVOY_REQUEST_BUFFERED];
	struct fake_bytes *piece = &e->body[ENVOY_REQUEST_RECEIVED];

	bytes_set(piece, bytes, n, NULL, 0);
	e->went = envoy_dynamic_module_on_http_filter_request_body(e,
	    e->filter, end);
	if (e->went == ENVOY_DATA_DROP) {
		bytes_set(piece, NULL, 0, NULL, 0);
		return false;
	}
	bytes_move(held, piece);
	if (e->went == ENVOY_DATA_GO_ON)
		bytes_move(&e->sent, held);
	return e->went == ENVOY_DATA_GO_ON;
}

bool
fake_trailers(struct fake_envoy *e)
{
	e->went = envoy_dynamic_module_on_http_filter_request_trailers(e,
	    e->filter);
	if (e->went == ENVOY_GO_ON)
		bytes_move(&e->sent, &e->body[ENVOY_REQUEST_BUFFERED]);
	return e->went == ENVOY_GO_ON;
}

bool
fake_ask(struct fake_envoy *e, const char *path, const char *body,
    size_t piece)
{
	size_t left = strlen(body), n;
	char length[24];
	const char *const pairs[] = { "content-type", "application/json",
		"content-length", length, NULL };

	(void)snprintf(length, sizeof(length), "%zu", left);
	fake_set(&e->request, pairs);
	(void)fake_ask_head(e, path, false);
	for (; left > 0 && e->status == 0; body += n, left -= n) {
		n = piece == 0 || left < piece ? left : piece;
		(void)fake_piece(e, body, n, n == left);
	}
	return e->went == ENVOY_GO_ON;
}

void
fake_head(struct fake_envoy *e, const char *status, const char *type,
    bool end)
{
	const char *const pairs[] = { ":status", status, "content-type", type,
		NULL };

	fake_set(&e->response, pairs);
	(void)envoy_dynamic_module_on_http_filter_response_headers(e,
	    e->filter, end);
}

void
fake_data(struct fake_envoy *e, const char *bytes, size_t n, bool end)
{
	struct fake_bytes *piece = &e->body[ENVOY_RESPONSE_RECEIVED];

	bytes_set(piece, bytes, n, NULL, 0);
	(void)envoy_dynamic_module_on_http_filter_response_body(e, e->filter,
	    end);
	bytes_move(&e->got, piece);
}

void
fake_answer(struct fake_envoy *e, const char *status, const char *type,
    const char *body, size_t piece)
{
	size_t left = strlen(body), n;

	fake_head(e, status, type, false);
	for (; left > 0; body += n, left -= n) {
		n = piece == 0 || left < piece ? left : piece;
		fake_data(e, body, n, n == left);
	}
}

void
fake_local(struct fake_envoy *e, uint32_t status, const char *details)
{
	const char *const pairs[] = { ":status", status == 503 ? "503" : "504",
		NULL };

	(void)envoy_dynamic_module_on_http_filter_local_reply(e, e->filter,
	    status, text_of(details), false);
	fake_set(&e->response, pairs);
	(void)envoy_dynamic_module_on_http_filter_response_headers(e,
	    e->filter, true);
}
