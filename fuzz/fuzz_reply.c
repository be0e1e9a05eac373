/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_reply.c - any bytes as an engine's response, kept for the next prompt.
 *
 * Four bytes say how it is read: endpoint, kind and reasoning; the pieces;
 * which allocation fails (0: none); how many bytes may be kept. The rest is the
 * response. Whatever it is,
 *
 * - cuts do not change the outcome, nor what is appended;
 * - what is appended is what the body of the next request makes, with the
 *   message in it;
 * - otherwise nothing is appended;
 * - no more is kept than may be;
 * - without memory the outcome is REPLY_NO_MEMORY, or the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "bodies.h"
#include "reply_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KIND = 0x10, REASONING = 0x20, HEAD = 4, SLACK = 65536 };

static struct kvr *region;
static struct kvr_prompt *prompt;
static struct body *body;

struct result {
	enum reply_outcome outcome;
	uint64_t bytes, units, hash;
};

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static void
prepare(void)
{
	if (region != NULL)
		return;
	region = bodies_region();
	demand(kvr_prompt_new(region, &prompt) == KVR_OK);
	body = body_new();
	demand(body != NULL);
}

/* How a request begins, of which nothing closes the list yet. */
static const char *
start_of(enum endpoint endpoint)
{
	switch (endpoint) {
	case ENDPOINT_COMPLETIONS:
		return "{\"prompt\":\"Once";
	case ENDPOINT_RESPONSES:
		return "{\"input\":[{\"role\":\"user\",\"content\":\"q\"}";
	default:
		return "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}";
	}
}

/* The request, with this within it. */
static void
ask(enum endpoint endpoint, const void *more, size_t n, struct taken *t)
{
	static const struct pieces whole;
	const char *start = start_of(endpoint);
	const char *end = endpoint == ENDPOINT_COMPLETIONS ? "\"}" : "]}";
	size_t length = strlen(start);
	char *text = malloc(length + n + 3);

	demand(text != NULL);
	memcpy(text, start, length);
	if (n > 0)
		memcpy(text + length, more, n);
	memcpy(text + length + n, end, 2);
	bodies_take(body, region, prompt, endpoint, text, length + n + 2,
	    &whole, t);
	free(text);
}

/* The message between the brackets, or the quotes, of what was composed. */
static void
ask_next(const struct reply *r, struct taken *t)
{
	const size_t n = r->message.length - 1;
	char *more = malloc(n + 1);

	demand(more != NULL);
	memcpy(more, r->message.data, n);
	more[0] = ',';
	if (r->endpoint == ENDPOINT_COMPLETIONS)
		ask(r->endpoint, more + 1, n - 1, t);
	else
		ask(r->endpoint, more, n, t);
	free(more);
}

static enum reply_outcome
read_all(struct reply *r, const uint8_t *how, const uint8_t *text, size_t n,
    size_t step)
{
	const size_t most = how[3] == 0 ? REPLY_MOST : how[3];
	size_t at, piece;
	uint8_t *copy;

	reply_begin(r, 1 + how[0] % (ENDPOINTS - 1), how[0] & KIND ?
	    ANSWER_JSON : ANSWER_STREAM, most);
	for (at = 0; at < n; at += piece) {
		piece = step == 0 || step > n - at ? n - at : step;
		copy = malloc(piece);
		if (copy == NULL)
			return REPLY_NO_MEMORY;
		memcpy(copy, text + at, piece);
		reply_data(r, copy, piece);
		free(copy);
		demand(r->kept <= most);
		demand(reply_bytes(r) <= 8 * most + SLACK);
	}
	return reply_end(r);
}

static void
append(struct reply *r, struct result *out)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	struct taken request;
	uint64_t local;

	memset(out, 0, sizeof(*out));
	ask(r->endpoint == ENDPOINT_OTHER ? ENDPOINT_CHAT : r->endpoint, "", 0,
	    &request);
	out->outcome = reply_append(r, body, prompt, &out->bytes);
	demand(kvr_prompt_end(prompt, NULL) == KVR_OK);
	demand(kvr_prompt_info_get(prompt, &info) == KVR_OK);
	demand(info.units == request.units + out->bytes);
	demand((out->outcome == REPLY_WHOLE) == (out->bytes > 0));
	demand(bodies_begins(prompt, &request));
	out->units = info.units;
	demand(kvr_prompt_hash(prompt, info.blocks - 1, &local, &out->hash) ==
	    KVR_OK);
}

static void
compare_next(const struct reply *r, const struct result *appended)
{
	struct taken next;

	if (appended->outcome != REPLY_WHOLE)
		return;
	ask_next(r, &next);
	/* It is one object deeper there. */
	if (next.outcome == BODY_TOO_DEEP)
		return;
	demand(next.outcome == BODY_PROMPT && !next.facts.cut);
	demand(next.units == appended->units && next.hash == appended->hash);
}

static void
starve(struct reply *r, const uint8_t *how, const uint8_t *text, size_t n,
    enum reply_outcome want)
{
	enum reply_outcome got;

	alloc_fail_at(how[2]);
	got = read_all(r, how, text, n, how[1]);
	alloc_reset();
	demand(got == want || got == REPLY_NO_MEMORY);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *text = data + HEAD;
	struct result one, many;
	enum reply_outcome outcome;
	struct reply *r;

	if (size < HEAD)
		return 0;
	alloc_reset();
	prepare();
	r = reply_new();
	demand(r != NULL);
	body_reasoning(body, data[0] & REASONING);
	outcome = read_all(r, data, text, size - HEAD, data[1]);
	append(r, &many);
	if (data[3] == 0)
		demand(read_all(r, data, text, size - HEAD, 0) == outcome);
	else
		(void)read_all(r, data, text, size - HEAD, 0);
	append(r, &one);
	demand(data[3] != 0 || memcmp(&one, &many, sizeof(one)) == 0);
	compare_next(r, &one);
	if (data[2] > 0)
		starve(r, data, text, size - HEAD, outcome);
	reply_free(r);
	return 0;
}
