/* SPDX-License-Identifier: BSD-2-Clause */
/* http.c - see http.h. */
#include "http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http {
	CURLM *multi;
};

struct http_request {
	struct http *http;
	CURL *easy;
	char *bytes;
	size_t n, room, most;
	bool ended;
	char why[CURL_ERROR_SIZE];
	bool failed;
};

struct http *
http_new(void)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		h->multi = curl_multi_init();
	if (h->multi != NULL)
		return h;
	free(h);
	return NULL;
}

void
http_free(struct http *h)
{
	if (h == NULL)
		return;
	(void)curl_multi_cleanup(h->multi);
	curl_global_cleanup();
	free(h);
}

static size_t
on_body(char *bytes, size_t size, size_t n, void *context)
{
	struct http_request *r = context;
	size_t room = r->room == 0 ? 4096 : r->room;
	char *more;

	n *= size;
	if (n > r->most - r->n)
		return 0;
	while (room < r->n + n)
		room *= 2;
	if (room > r->room) {
		more = realloc(r->bytes, room);
		if (more == NULL)
			return 0;
		r->bytes = more;
		r->room = room;
	}
	if (n > 0)
		memcpy(r->bytes + r->n, bytes, n);
	r->n += n;
	return n;
}

/* An engine's answers come from where it was asked, and from nowhere else. */
struct http_request *
http_ask(struct http *h, const char *url, bool post, size_t most)
{
	struct http_request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->http = h;
	r->most = most;
	r->easy = curl_easy_init();
	if (r->easy == NULL ||
	    curl_easy_setopt(r->easy, CURLOPT_URL, url) != CURLE_OK) {
		http_end(r);
		return NULL;
	}
	curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
	curl_easy_setopt(r->easy, CURLOPT_ERRORBUFFER, r->why);
	curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(r->easy, CURLOPT_WRITEDATA, r);
	curl_easy_setopt(r->easy, CURLOPT_TIMEOUT_MS, (long)HTTP_TIMEOUT);
	curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(r->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (post)
		curl_easy_setopt(r->easy, CURLOPT_COPYPOSTFIELDS, "");
	if (curl_multi_add_handle(h->multi, r->easy) == CURLM_OK)
		return r;
	curl_easy_cleanup(r->easy);
	r->easy = NULL;
	http_end(r);
	return NULL;
}

static void
ended(struct http_request *r, CURLcode code)
{
	long status = 0;

	r->ended = true;
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
	r->failed = code != CURLE_OK || status != 200;
	if (code == CURLE_OK && r->failed)
		snprintf(r->why, sizeof(r->why), "status %ld", status);
	else if (r->failed && r->why[0] == '\0')
		snprintf(r->why, sizeof(r->why), "%s",
		    curl_easy_strerror(code));
}

bool
http_work(struct http *h)
{
	int running = 0, left;
	const CURLMsg *message;
	void *context;

	(void)curl_multi_perform(h->multi, &running);
	while ((message = curl_multi_info_read(h->multi, &left)) != NULL)
		if (message->msg == CURLMSG_DONE &&
		    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
		        &context) == CURLE_OK)
			ended(context, message->data.result);
	return running > 0;
}

bool
http_ended(const struct http_request *r, struct http_answer *out)
{
	*out = (struct http_answer){ r->bytes, r->n,
	    r->failed ? r->why : NULL };
	return r->ended;
}

void
http_end(struct http_request *r)
{
	if (r == NULL)
		return;
	if (r->easy != NULL) {
		(void)curl_multi_remove_handle(r->http->multi, r->easy);
		curl_easy_cleanup(r->easy);
	}
	free(r->bytes);
	free(r);
}
