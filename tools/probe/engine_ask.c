/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_ask.c - see engine_ask.h. */
#include "engine_ask.h"

#include "probe.h"

#include <stdio.h>
#include <string.h>

struct fetch {
	CURL *curl;
	struct capacity_reader *reader;
	uint64_t bytes;
};

/* A refusal, by another number of bytes, ends the transfer. */
static size_t
on_body(char *bytes, size_t size, size_t n, void *fetch)
{
	struct fetch *f = fetch;

	capacity_data(f->reader, bytes, n * size);
	f->bytes += n * size;
	return f->bytes > PROBE_BYTES_MAX ? 0 : n * size;
}

/* Without the path of the API that users know: http://host:8000/v1. */
static size_t
base_length(const char *url)
{
	size_t n = strlen(url);

	while (n > 0 && url[n - 1] == '/')
		n--;
	if (n > 3 && memcmp(&url[n - 3], "/v1", 3) == 0)
		n -= 3;
	return n;
}

/* Writes host:port; false: it is not a URL. */
static bool
address_make(const char *url, char *out)
{
	CURLU *parts = curl_url();
	char *host = NULL, *port = NULL;
	bool good;

	good = parts != NULL &&
	    curl_url_set(parts, CURLUPART_URL, url, CURLU_DEFAULT_SCHEME) ==
	    CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ==
	    CURLUE_OK;
	if (good)
		snprintf(out, ENGINE_URL_MAX, "%s:%s", host, port);
	curl_free(host);
	curl_free(port);
	curl_url_cleanup(parts);
	return good;
}

/* CURLE_OK: *status is that of the response. */
static CURLcode
get_text(struct fetch *f, const char *url, long *status)
{
	CURLcode code;

	f->bytes = 0;
	curl_easy_setopt(f->curl, CURLOPT_URL, url);
	code = curl_easy_perform(f->curl);
	/* It was longer than is read: the rest is ignored. */
	if (code == CURLE_WRITE_ERROR)
		code = CURLE_OK;
	if (code == CURLE_OK)
		code = curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE,
		    status);
	return code;
}

/* Each path until there is a capacity; *refused: the status, if one refused. */
static CURLcode
ask_paths(struct fetch *f, const struct engine_rules *rules,
    struct engine_facts *out, long *refused)
{
	char url[ENGINE_URL_MAX + 32];
	struct capacity c;
	CURLcode code;
	long status = 0;
	size_t i;

	for (i = 0; i < PROBE_PATHS && out->capacity.tokens == 0; i++) {
		snprintf(url, sizeof(url), "%.*s%s",
		    (int)base_length(out->url), out->url, probe_paths[i].path);
		capacity_begin(f->reader, probe_paths[i].form, rules->rank);
		code = get_text(f, url, &status);
		if (code != CURLE_OK)
			return code;
		if (status != 200 && status != 404)
			*refused = status;
		capacity_end(f->reader, &c);
		if (status == 200)
			capacity_add(&out->capacity, &c);
	}
	return CURLE_OK;
}

static void
explain_failure(struct engine_facts *out, CURLcode code, const char *why,
    long refused)
{
	const enum capacity_kind kind = out->capacity.kind;

	if (code != CURLE_OK)
		snprintf(out->error, sizeof(out->error), "%s",
		    why[0] != '\0' ? why : curl_easy_strerror(code));
	else if (capacity_whole(&out->capacity) != 0)
		out->error[0] = '\0';
	else if (kind != CAPACITY_OTHER)
		snprintf(out->error, sizeof(out->error),
		    "%s, which publishes no capacity",
		    capacity_kind_name(kind));
	else if (refused != 0)
		snprintf(out->error, sizeof(out->error),
		    "its capacity is not readable: status %ld", refused);
	else
		snprintf(out->error, sizeof(out->error),
		    "it publishes no capacity");
}

bool
engine_ask(CURL *curl, const struct engine_rules *rules, const char *url,
    struct engine_facts *out)
{
	struct fetch f = { .curl = curl, .reader = capacity_new() };
	char why[CURL_ERROR_SIZE] = "";
	CURLcode code = CURLE_URL_MALFORMAT;
	long refused = 0;

	if (f.reader == NULL)
		return false;
	memset(out, 0, sizeof(*out));
	out->url = url;
	curl_easy_reset(curl);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &f);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, rules->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_DEFAULT_PROTOCOL, "http");
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, rules->headers);
	if (base_length(url) < ENGINE_URL_MAX &&
	    address_make(url, out->address))
		code = ask_paths(&f, rules, out, &refused);
	explain_failure(out, code, why, refused);
	capacity_free(f.reader);
	return true;
}
