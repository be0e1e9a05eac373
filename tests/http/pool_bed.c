/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_bed.c - see pool_bed.h. */
#include "pool_bed.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 18 };

const char bed_json[] = "{\"id\":\"x1\",\"choices\":[{\"index\":0,\"message\":"
    "{\"role\":\"assistant\",\"content\":\"Yes.\"}}],\"usage\":"
    "{\"prompt_tokens\":100,\"completion_tokens\":7,"
    "\"prompt_tokens_details\":{\"cached_tokens\":60}}}";
const char bed_stream[] = "data: {\"choices\":[{\"index\":0,\"delta\":"
    "{\"content\":\"Yes.\"}}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,"
    "\"completion_tokens\":7,\"prompt_tokens_details\":"
    "{\"cached_tokens\":60}}}\n\n"
    "data: [DONE]\n\n";

void
bed_file(char path[BED_PATH])
{
	int fd;

	(void)snprintf(path, BED_PATH, "/tmp/kvroute-pool-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ne(fd, -1);
	(void)close(fd);
}

void
bed_file_end(const char *path)
{
	char lock[BED_PATH + 8];

	(void)unlink(path);
	(void)snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(lock);
}

int
bed_server(struct kvh *h, const char *name, const char *facts)
{
	return kvh_server_put(h, name, strlen(name), facts, strlen(facts),
	    NULL);
}

struct kvh *
bed_pool(const char *options, unsigned servers)
{
	struct kvh *h = NULL;
	char name[2] = "a";

	if (kvh_open("", 0, options, strlen(options), NULL, &h) != 0)
		return NULL;
	for (; servers > 0; servers--, name[0]++)
		(void)bed_server(h, name, "");
	return h;
}

static void
headers_pass(struct kvh_call *c, const char *headers)
{
	const char *colon, *end;

	for (; headers != NULL && *headers != '\0'; headers = end + 1) {
		end = strchr(headers, '\n');
		colon = strchr(headers, ':');
		if (end == NULL || colon == NULL || colon > end)
			return;
		(void)kvh_header(c, headers, (size_t)(colon - headers),
		    colon + 2, (size_t)(end - colon - 2));
	}
}

struct kvh_call *
bed_request(struct kvh *h, const char *path, const char *headers,
    const char *body, int64_t now)
{
	struct kvh_call *c = NULL;

	if (kvh_begin(h, body == NULL ? "GET" : "POST", body == NULL ? 3 : 4,
	    path, strlen(path), now, &c) != 0)
		return NULL;
	headers_pass(c, headers);
	if (body != NULL)
		(void)kvh_body(c, body, strlen(body));
	(void)kvh_body_end(c, 1);
	return c;
}

const char *
bed_chat(const char *text, size_t bytes, const char *more)
{
	static char body[ROOM];
	size_t n = (size_t)snprintf(body, sizeof(body), "{\"model\":\"m\","
	    "\"messages\":[{\"role\":\"user\",\"content\":\"");
	size_t from = n;

	while (n - from < bytes && n + strlen(text) < sizeof(body) - 512)
		n += (size_t)snprintf(body + n, sizeof(body) - n, "%s", text);
	(void)snprintf(body + n, sizeof(body) - n, "\"}%s}",
	    more[0] == '\0' ? "]" : more);
	return body;
}

int64_t
bed_fact(struct kvh_call *c, uint32_t which)
{
	int64_t value = -1;

	(void)kvh_fact(c, which, &value);
	return value;
}

static const char *
text_keep(const char *text, size_t n)
{
	static char kept[4096];

	if (n >= sizeof(kept))
		n = sizeof(kept) - 1;
	memcpy(kept, text, n);
	kept[n] = '\0';
	return kept;
}

const char *
bed_target(struct kvh_call *c)
{
	const char *name;
	size_t n;

	return kvh_target(c, 0, &name, &n, NULL) == 0 ? text_keep(name, n) :
	    "";
}

const char *
bed_word(struct kvh_call *c, uint32_t which)
{
	const char *text;
	size_t n;

	return kvh_word(c, which, &text, &n) == 0 ? text_keep(text, n) : "?";
}

const char *
bed_edited(struct kvh_call *c, const char *body, char *headers, size_t room)
{
	static char out[ROOM];
	const char *text;
	uint64_t cut;
	int64_t offset, at = 0;
	uint32_t i;
	size_t n, to = 0, used = 0;

	headers[0] = '\0';
	for (i = 0; kvh_edit(c, i, &offset, &cut, &text, &n) == 0; i++) {
		if (offset == KVH_HEADER) {
			used += (size_t)snprintf(headers + used, room - used,
			    "%.*s\n", (int)n, text);
			continue;
		}
		if (offset < at)
			return "not in order";
		memcpy(out + to, body + at, (size_t)(offset - at));
		to += (size_t)(offset - at);
		memcpy(out + to, text, n);
		to += n;
		at = offset + (int64_t)cut;
	}
	(void)snprintf(out + to, sizeof(out) - to, "%s", body + at);
	return out;
}

const char *
bed_answer(struct kvh_call *c, uint32_t status, const char *type,
    const char *body, size_t piece, int64_t now)
{
	static char out[ROOM];
	size_t left = strlen(body), n, got = 0, written;
	uint32_t rewrites;

	if (kvh_response(c, status, type, strlen(type), "", 0, "", 0, now,
	    &rewrites) != 0)
		return NULL;
	for (; left > 0; left -= n, body += n) {
		n = piece == 0 || left < piece ? left : piece;
		if (kvh_response_data(c, body, n, now, out + got,
		    sizeof(out) - got, &written) != 0)
			return NULL;
		got += written;
	}
	if (kvh_end(c, KVH_WHOLE, now, out + got, sizeof(out) - got,
	    &written) != 0)
		return NULL;
	out[got + written] = '\0';
	return out;
}

int64_t
bed_count_at(struct kvh *h, const char *key, int64_t now)
{
	static char text[ROOM];
	char quoted[64];
	const char *at;
	size_t n;

	if (kvh_status(h, KVH_JSON, now, text, sizeof(text) - 1, &n) != 0 ||
	    n >= sizeof(text))
		return -1;
	text[n] = '\0';
	(void)snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = strstr(text, quoted);
	return at == NULL ? -1 : strtoll(at + strlen(quoted), NULL, 10);
}

int64_t
bed_count(struct kvh *h, const char *key)
{
	return bed_count_at(h, key, 0);
}
