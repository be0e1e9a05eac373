/* SPDX-License-Identifier: BSD-2-Clause */
/* passing.c - see passing.h. */
#include "passing.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool
passing_type_is(const char *type, size_t n, const char *name)
{
	const size_t length = strlen(name);

	return n >= length && strncasecmp(type, name, length) == 0 &&
	    (n == length || type[length] == ';' || type[length] == ' ');
}

static enum answer_kind
kind_of(const struct passing *p)
{
	return p->stream ? ANSWER_STREAM : ANSWER_JSON;
}

bool
passing_begin(struct passing *p, struct spares *s, bool json, bool asked)
{
	if (p->stream || json)
		p->answer = spare_answer(s);
	if (p->answer == NULL)
		return false;
	p->strip = asked && p->stream;
	answer_begin(p->answer, kind_of(p), p->strip);
	return true;
}

static bool
prompt_save(struct passing *p, struct kvr_prompt *prompt)
{
	p->n_saved = kvr_prompt_saved_bytes(prompt);
	p->saved = malloc(p->n_saved + 1);
	return p->saved != NULL &&
	    kvr_prompt_save(prompt, p->saved, p->n_saved) == KVR_OK;
}

void
passing_extends(struct passing *p, struct spares *s, enum endpoint endpoint,
    struct kvr_prompt *prompt)
{
	if (p->saved != NULL || !prompt_save(p, prompt))
		return;
	p->reply = spare_reply(s);
	if (p->reply != NULL)
		reply_begin(p->reply, endpoint, kind_of(p), REPLY_MOST);
}

/* --------------------------------------------------------------- pieces --- */

void
passing_data(struct passing *p, const void *bytes, size_t n)
{
	if (p->answer != NULL)
		answer_data(p->answer, bytes, n);
	if (p->reply != NULL)
		reply_data(p->reply, bytes, n);
}

size_t
passing_strip(struct passing *p, struct shared *shared, const void *bytes,
    size_t n, void *out)
{
	const size_t held = answer_held(p->answer);
	size_t left;

	if (p->reply != NULL)
		reply_data(p->reply, bytes, n);
	left = answer_strip(p->answer, bytes, n, out);
	if (left + answer_held(p->answer) < held + n)
		shared_count(shared, COUNT_STRIPPED, 1);
	return left;
}

size_t
passing_flush(struct passing *p, struct shared *shared, void *out)
{
	const size_t held = answer_held(p->answer);
	const size_t n = answer_flush(p->answer, out);

	if (n < held)
		shared_count(shared, COUNT_STRIPPED, 1);
	return n;
}

/* Repeats a commit that found the region locked. */
static int
token_note(struct kvr *k, uint64_t lease, int64_t now)
{
	int error = kvr_lease_first_token(k, lease, now, KVR_NOWAIT);

	if (error != KVR_ESTATE)
		return error;
	error = kvr_lease_commit(k, lease, now, KVR_NOWAIT);
	return error != KVR_OK ? error :
	    kvr_lease_first_token(k, lease, now, KVR_NOWAIT);
}

bool
passing_token(struct passing *p, struct kvr *k, uint64_t lease, int64_t now)
{
	const bool first = p->first == 0;

	if (p->started || !answer_started(p->answer))
		return false;
	if (first)
		p->first = now;
	/* If the region is locked, the next piece tries again. */
	p->started = lease == 0 || token_note(k, lease, now) != KVR_EBUSY;
	return first;
}

/* --------------------------------------------------------------- report --- */

/* Compares the reported number of cached tokens with the prediction. */
static void
values_count(const struct kvr_report *report, const struct kvr_decision *d,
    struct shared *shared)
{
	double scale;

	shared_count(shared, COUNT_VALUES, 1);
	shared_count(shared, COUNT_PROMPT_TOKENS, report->prompt_tokens);
	shared_count(shared, COUNT_CACHED_TOKENS, report->cached_tokens);
	if (d->prompt_tokens == 0)
		return;
	/* The index estimates tokens from bytes; the engine counts them. */
	scale = (double)report->prompt_tokens / (double)d->prompt_tokens;
	shared_count(shared, COUNT_PREDICTED_TOKENS,
	    (uint64_t)((double)d->overlap_tokens * scale));
	shared_count(shared, COUNT_BEST_TOKENS,
	    (uint64_t)((double)d->best_tokens * scale));
}

static void
tokens_time(struct passing *p, const struct passing_way *way,
    struct shared *shared)
{
	const uint64_t tokens = p->report.completion_tokens;

	if (p->first == 0 || tokens < 2 || way->facts->several ||
	    way->facts->many || way->now < p->first)
		return;
	p->token_ns = (uint64_t)(way->now - p->first) / (tokens - 1);
	shared_time(shared, HISTOGRAM_TOKEN, p->token_ns);
}

void
passing_report(struct passing *p, const struct passing_way *way,
    struct shared *shared)
{
	const struct body_facts *facts = way->facts;
	struct kvr_report *report = &p->report;

	if (p->reported)
		return;
	p->reported = true;
	memset(report, 0, sizeof(*report));
	report->size = sizeof(*report);
	report->endpoint = (uint32_t)way->endpoint;
	if (way->endpoint == ENDPOINT_OTHER)
		return;
	if (p->answer != NULL)
		answer_end(p->answer, report);
	tokens_time(p, way, shared);
	if (!way->proves || way->apart || facts->several || facts->media ||
	    facts->prompt_logprobs || facts->stored || facts->cut)
		report->flags |= KVR_REPORT_NO_EVIDENCE;
	if (report->kind == KVR_REPORT_NONE) {
		shared_count(shared, COUNT_MISSING, 1);
		return;
	}
	/* Tokens that came from another server are cached for its engine. */
	if (way->apart)
		return;
	shared_count(shared, COUNT_USAGES, 1);
	if (report->kind == KVR_REPORT_VALUE)
		values_count(report, way->decision, shared);
}

/* --------------------------------------------------------------- extend --- */

static bool
answer_append(struct passing *p, struct spares *s, bool reasoning,
    struct kvr_prompt *prompt)
{
	struct body *b = spare_body(s);
	bool done;

	if (b == NULL)
		return false;
	body_reasoning(b, reasoning);
	done = reply_append(p->reply, b, prompt, NULL) == REPLY_WHOLE;
	spare_body_back(s, b);
	return done;
}

static struct kvr_prompt *
extended_make(struct passing *p, struct spares *s, const struct kvr *k,
    bool reasoning)
{
	struct kvr_prompt *prompt;

	if (reply_end(p->reply) != REPLY_WHOLE)
		return NULL;
	prompt = spare_prompt(s, k);
	if (prompt == NULL)
		return NULL;
	if (kvr_prompt_resume(prompt, p->saved, p->n_saved) == KVR_OK &&
	    answer_append(p, s, reasoning, prompt) &&
	    kvr_prompt_end(prompt, NULL) == KVR_OK)
		return prompt;
	spare_prompt_back(s, prompt);
	return NULL;
}

struct kvr_prompt *
passing_end(struct passing *p, struct spares *s, const struct kvr *k,
    bool reasoning, bool whole, struct shared *shared)
{
	struct kvr_prompt *prompt;

	if (p->reply == NULL)
		return NULL;
	prompt = whole ? extended_make(p, s, k, reasoning) : NULL;
	shared_count(shared, prompt != NULL ? COUNT_ANSWERS :
	    COUNT_ANSWERS_LEFT, 1);
	spare_reply_back(s, p->reply);
	p->reply = NULL;
	return prompt;
}

void
passing_leave(struct passing *p, struct spares *s)
{
	spare_answer_back(s, p->answer);
	spare_reply_back(s, p->reply);
	free(p->saved);
	p->answer = NULL;
	p->reply = NULL;
	p->saved = NULL;
}
