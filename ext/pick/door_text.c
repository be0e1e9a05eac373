/* SPDX-License-Identifier: BSD-2-Clause */
/* door_text.c - see door_text.h. */
#include "door_text.h"

#include <stdlib.h>
#include <string.h>

#include "json_writer.h"
#include "kvroute_http.h"

/* -------------------------------------------------------------- tokens --- */

static const char *
skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' ||
	    *at == '\r'))
		at++;
	return at;
}

/* NULL: there is no number below 2^32. */
static const char *
read_token(const char *at, const char *end, uint32_t *token)
{
	uint64_t value = 0;
	const char *begin = at;

	while (at < end && *at >= '0' && *at <= '9' && value <= UINT32_MAX)
		value = value * 10 + (uint64_t)(*at++ - '0');
	*token = (uint32_t)value;
	return at == begin || value > UINT32_MAX ? NULL : at;
}

bool
door_read_tokens(const void *text, size_t length, uint32_t **tokens,
    size_t *n)
{
	const char *at = text, *end;

	*n = 0;
	*tokens = NULL;
	if (length == 0)
		return false;
	end = at + length;
	/* A token needs two bytes, but for the last. */
	*tokens = malloc((length / 2 + 1) * sizeof(**tokens));
	at = skip_blanks(at, end);
	if (*tokens == NULL || at == end || *at != '[')
		return false;
	do {
		at = skip_blanks(at + 1, end);
		if (*n == 0 && at < end && *at == ']')
			break;
		at = read_token(at, end, &(*tokens)[*n]);
		if (at == NULL)
			return false;
		++*n;
		at = skip_blanks(at, end);
	} while (at < end && *at == ',');
	return at < end && *at == ']' && skip_blanks(at + 1, end) == end;
}

/* ------------------------------------------------------------- answers --- */

static void
write_targets(struct json *j, struct kvh_call *call, uint32_t targets)
{
	const char *name;
	int32_t rank = -1, first = -1;
	uint32_t i;
	size_t n;

	json_list(j, "targets");
	for (i = 0; i < targets; i++) {
		if (kvh_target(call, i, &name, &n, &rank) != 0)
			break;
		json_bytes(j, NULL, name, n);
		if (i == 0)
			first = rank;
	}
	json_list_end(j);
	if (first >= 0)
		json_whole(j, "rank", (uint64_t)first);
	if (kvh_prefill(call, &name, &n) == 0)
		json_bytes(j, "prefill", name, n);
}

static void
write_fact(struct json *j, const char *key, struct kvh_call *call,
    uint32_t fact)
{
	int64_t value = 0;

	if (kvh_fact(call, fact, &value) == 0 && value >= 0)
		json_whole(j, key, (uint64_t)value);
}

static void
write_word(struct json *j, const char *key, struct kvh_call *call,
    uint32_t word)
{
	const char *text;
	size_t n;

	if (kvh_word(call, word, &text, &n) == 0)
		json_bytes(j, key, text, n);
}

static void
write_edits(struct json *j, struct kvh_call *call)
{
	const char *text;
	int64_t offset;
	uint64_t cut;
	uint32_t i;
	size_t n;

	json_list(j, "edits");
	for (i = 0; kvh_edit(call, i, &offset, &cut, &text, &n) == 0; i++) {
		json_map(j, NULL);
		if (offset == KVH_HEADER) {
			json_bytes(j, "header", text, n);
		} else {
			json_whole(j, "at", (uint64_t)offset);
			json_whole(j, "cut", cut);
			json_bytes(j, "text", text, n);
		}
		json_map_end(j);
	}
	json_list_end(j);
}

bool
door_write_choice(struct hold *to, struct kvh_call *call, const char *id,
    uint32_t targets)
{
	struct writer w = hold_out(to);
	struct json j;

	json_begin(&j, &w);
	json_map(&j, NULL);
	json_text(&j, "call", id);
	write_targets(&j, call, targets);
	write_fact(&j, "prompt", call, KVH_PROMPT_TOKENS);
	write_fact(&j, "predicted", call, KVH_OVERLAP_TOKENS);
	write_word(&j, "reason", call, KVH_REASON_WORD);
	write_edits(&j, call);
	json_map_end(&j);
	json_end(&j);
	return !w.failed;
}

bool
door_write_report(struct hold *to, struct kvh_call *call)
{
	struct writer w = hold_out(to);
	struct json j;

	json_begin(&j, &w);
	json_map(&j, NULL);
	write_fact(&j, "prompt", call, KVH_REPORT_PROMPT);
	write_fact(&j, "cached", call, KVH_REPORT_CACHED);
	write_fact(&j, "completion", call, KVH_REPORT_COMPLETION);
	json_map_end(&j);
	json_end(&j);
	return !w.failed;
}
