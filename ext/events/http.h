/* SPDX-License-Identifier: BSD-2-Clause */
/* http.h - requests with answers that come later, by libcurl. */
#ifndef KVROUTE_HTTP_H
#define KVROUTE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

enum { HTTP_WHY_MAX = 160, HTTP_TIMEOUT = 10000 /* ms */ };

struct http;

/* NULL: no memory. */
struct http *http_new(void);
/* All requests must have ended. */
void http_free(struct http *h);
/* Goes on with all requests; true if some have not ended. */
bool http_work(struct http *h);

struct http_request;

struct http_answer {
	const char *bytes;
	size_t n;
	const char *why;   /* of a failure; NULL: an answer of status 200 */
};

/*
 * POST without a body, or GET. An answer of more than `most` bytes is a
 * failure. NULL: no memory.
 */
struct http_request *http_ask(struct http *h, const char *url, bool post,
    size_t most);
/* Has it ended? The answer is valid until http_end. */
bool http_ended(const struct http_request *r, struct http_answer *out);
void http_end(struct http_request *r);

#endif
