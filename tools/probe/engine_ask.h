/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_ask.h - asks an engine for its capacity, over HTTP or HTTPS. */
#ifndef KVROUTE_ENGINE_ASK_H
#define KVROUTE_ENGINE_ASK_H

#include "capacity.h"

#include <curl/curl.h>

enum { ENGINE_URL_MAX = 1024, ENGINE_ERROR_MAX = CURL_ERROR_SIZE + 64 };

struct engine_rules {
	uint32_t rank;
	long timeout_ms;
	struct curl_slist *headers; /* or NULL */
};

struct engine_facts {
	const char *url;        /* as given */
	char address[ENGINE_URL_MAX]; /* host:port; empty: not a URL */
	struct capacity capacity;
	char error[ENGINE_ERROR_MAX]; /* why it is missing; else empty */
};

/* False: no memory. */
bool engine_ask(CURL *curl, const struct engine_rules *rules, const char *url,
    struct engine_facts *out);

#endif
