/* SPDX-License-Identifier: BSD-2-Clause */
/* source.c - see source.h. */
#include "source.h"

#include "status.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 256 << 20, ROOM_MIN = 65536 };

__attribute__((format(printf, 2, 3))) static void
failed(struct source *s, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(s->why, sizeof(s->why), format, arguments);
	va_end(arguments);
	s->state = SOURCE_FAILED;
}

/* ---------------------------------------------------------------- text --- */

static bool
text_take(struct source *s, const void *bytes, size_t n)
{
	size_t room = s->room > 0 ? s->room : ROOM_MIN;
	char *more;

	if (n > BYTES_MAX - s->n)
		return false;
	while (room < s->n + n)
		room *= 2;
	if (room > s->room) {
		more = realloc(s->text, room);
		if (more == NULL)
			return false;
		s->text = more;
		s->room = room;
	}
	memcpy(s->text + s->n, bytes, n);
	s->n += n;
	return true;
}

/* ---------------------------------------------------------------- file --- */

static bool
on_write(void *context, const void *bytes, size_t n)
{
	return text_take(context, bytes, n);
}

static void *
on_alloc(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
on_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

static const char *
last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static void
region_write(struct source *s, struct kvr *k, uint32_t cost)
{
	static const struct writer_calls calls = { on_write, on_alloc,
		on_free };
	struct writer to = { &calls, s, false, 0 };
	const char *name = last_part(s->where);
	const struct status_upstream up = { .name = name,
	    .name_length = strlen(name), .kvr = k, .cost = cost };
	const struct status status = { .proxy = "", .upstream = &up,
	    .upstreams = 1 };

	status_json(&status, &to);
	if (to.failed)
		failed(s, "%s: its lock is held, or there is no memory",
		    s->where);
	else
		s->state = SOURCE_HERE;
}

/* Anew each time: a file may have been replaced. */
static void
file_read(struct source *s)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr *k;
	int error = kvr_open(s->where, strlen(s->where),
	    KVR_OPEN_READONLY | KVR_OPEN_TRUST, NULL, &k);

	if (error != KVR_OK) {
		failed(s, "%s: %s", s->where, error == KVR_ESYSTEM ?
		    strerror(errno) : kvr_strerror(error));
		return;
	}
	(void)kvr_nowait_set(k, 1);
	error = kvr_policy_get(k, &policy);
	if (error == KVR_OK)
		region_write(s, k, policy.cost);
	else
		failed(s, "%s: %s", s->where, kvr_strerror(error));
	kvr_free(k);
}

/* ----------------------------------------------------------------- URL --- */

static size_t
on_body(char *bytes, size_t size, size_t n, void *source)
{
	return text_take(source, bytes, n * size) ? n * size : 0;
}

static bool
is_url(const char *where)
{
	return strncmp(where, "http://", 7) == 0 ||
	    strncmp(where, "https://", 8) == 0;
}

static char *
url_make(const char *where)
{
	const char *more = strchr(where, '?') == NULL ? "?format=json" :
	    "&format=json";
	size_t n = strlen(where), added = strlen(more);
	char *url = malloc(n + added + 1);

	if (url != NULL) {
		memcpy(url, where, n);
		memcpy(url + n, more, added + 1);
	}
	return url;
}

static bool
headers_make(struct source *s, const char *const *header, size_t n)
{
	struct curl_slist *more;
	size_t i;

	for (i = 0; i < n; i++) {
		more = curl_slist_append(s->headers, header[i]);
		if (more == NULL)
			return false;
		s->headers = more;
	}
	return true;
}

static bool
curl_make(struct source *s, long timeout_ms)
{
	s->curl = curl_easy_init();
	s->curls = curl_multi_init();
	if (s->curl == NULL || s->curls == NULL)
		return false;
	curl_easy_setopt(s->curl, CURLOPT_URL, s->url);
	curl_easy_setopt(s->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, s);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, s->why);
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, timeout_ms);
	curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(s->curl, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(s->curl, CURLOPT_USERAGENT, "kvroute-top");
	return true;
}

static void
url_done(struct source *s, CURLcode code)
{
	long status = 0;

	curl_multi_remove_handle(s->curls, s->curl);
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK && s->why[0] != '\0')
		s->state = SOURCE_FAILED; /* curl has written why */
	else if (code != CURLE_OK)
		failed(s, "%s", curl_easy_strerror(code));
	else if (status == 403)
		failed(s, "status 403: the proxy allows it from elsewhere "
		    "only");
	else if (status == 404)
		failed(s, "status 404: is kvroute_status there?");
	else if (status != 200)
		failed(s, "status %ld", status);
	else
		s->state = SOURCE_HERE;
}

static void
url_wait(struct source *s, int fd, int ms)
{
	struct curl_waitfd key = { .fd = fd, .events = CURL_WAIT_POLLIN };
	int running = 0, left;
	CURLMsg *message;

	if (curl_multi_perform(s->curls, &running) == CURLM_OK && running > 0)
		(void)curl_multi_poll(s->curls, &key, fd < 0 ? 0 : 1, ms,
		    NULL);
	(void)curl_multi_perform(s->curls, &running);
	while ((message = curl_multi_info_read(s->curls, &left)) != NULL) {
		if (message->msg == CURLMSG_DONE) {
			url_done(s, message->data.result);
			return;
		}
	}
}

/* -------------------------------------------------------------- source --- */

bool
source_open(struct source *s, const char *where, const char *const *header,
    size_t headers, long timeout_ms)
{
	memset(s, 0, sizeof(*s));
	s->where = where;
	if (!is_url(where))
		return true;
	s->url = url_make(where);
	if (s->url != NULL && headers_make(s, header, headers) &&
	    curl_make(s, timeout_ms))
		return true;
	source_close(s);
	return false;
}

void
source_close(struct source *s)
{
	if (s->state == SOURCE_ASKED)
		curl_multi_remove_handle(s->curls, s->curl);
	if (s->curl != NULL)
		curl_easy_cleanup(s->curl);
	if (s->curls != NULL)
		curl_multi_cleanup(s->curls);
	curl_slist_free_all(s->headers);
	free(s->url);
	free(s->text);
	memset(s, 0, sizeof(*s));
}

void
source_ask(struct source *s)
{
	if (s->state == SOURCE_ASKED)
		return;
	s->n = 0;
	s->why[0] = '\0';
	if (s->url == NULL)
		file_read(s);
	else if (curl_multi_add_handle(s->curls, s->curl) == CURLM_OK)
		s->state = SOURCE_ASKED;
	else
		failed(s, "no memory");
}

void
source_wait(struct source *s, int fd, int ms)
{
	struct pollfd key = { .fd = fd, .events = POLLIN };

	if (s->state == SOURCE_ASKED)
		url_wait(s, fd, ms);
	else
		(void)poll(&key, fd < 0 ? 0 : 1, ms);
}
