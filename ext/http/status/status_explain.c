/* SPDX-License-Identifier: BSD-2-Clause */
/* status_explain.c - see status_explain.h. */
#include "status_explain.h"

#include <string.h>

#include "json_writer.h"
#include "status_in.h"

static const char *const verdicts[] = {
	[KVR_ELIGIBLE] = "eligible",
	[KVR_NOT_ALLOWED] = "not_allowed",
	[KVR_WRONG_ROLE] = "wrong_role",
	[KVR_NOT_UP] = "not_up",
	[KVR_LACKS_TAINT] = "lacks_taint",
	[KVR_OVERLOADED] = "overloaded",
	[KVR_ABOVE_BOUND] = "above_bound"
};
enum { VERDICTS = sizeof(verdicts) / sizeof(verdicts[0]) };

/* ------------------------------------------------------------ the body --- */

static void
facts_put(struct json *j, const struct explain *e)
{
	json_bytes(j, "upstream", e->upstream, e->upstream_length);
	json_text(j, "endpoint", endpoint_name(e->endpoint));
	json_text(j, "outcome", e->outcome == REASON_COST ? "prompt" :
	    reason_name(e->outcome));
	json_bytes(j, "model", e->model, e->model_length);
	json_bool(j, "stream", e->facts->stream);
	json_bool(j, "truncated", e->facts->cut);
	json_whole(j, "messages", e->facts->messages);
}

/* Writes the digest as 64 hexadecimal digits. */
static void
scope_put(struct json *j, const struct kvr_scope *scope)
{
	char text[4 * 16];
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		text[i] = "0123456789abcdef"[scope->digest[i / 16] >>
		    (60 - i % 16 * 4) & 15];
	json_bytes(j, "scope", text, sizeof(text));
}

static void
prompt_put(struct json *j, const struct explain *e)
{
	scope_put(j, &e->scope);
	json_whole(j, "bytes", e->info.units);
	json_whole(j, "blocks", e->info.blocks);
	json_whole(j, "tokens", e->info.tokens);
}

static void
no_prompt_put(struct json *j)
{
	static const char *const keys[] = { "scope", "bytes", "blocks",
	    "tokens", "decision", "candidates" };
	size_t i;

	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_null(j, keys[i]);
}

/* ---------------------------------------------------------- the choice --- */

/* Writes the rank of a worker that shares its name with others. */
static void
rank_put(struct json *j, const struct kvr *k, uint64_t id, const char *name,
    size_t length)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t other;
	int error;

	do
		error = kvr_worker_get(k, id, &facts);
	while (status_again(j->to, error));
	if (error == KVR_OK && facts.rank == 0)
		do
			error = kvr_worker_find(k, name, length, 1, &other);
		while (status_again(j->to, error));
	if (error == KVR_OK)
		json_whole(j, "rank", facts.rank);
}

/* Writes the name; null if the worker was removed meanwhile. */
static void
worker_put(struct json *j, const struct kvr *k, uint64_t id)
{
	char name[KVR_NAME_MAX];
	size_t length;
	int error;

	do
		error = kvr_worker_name(k, id, name, sizeof(name), &length);
	while (status_again(j->to, error));
	if (error == KVR_OK)
		json_bytes(j, "worker", name, length);
	else
		json_null(j, "worker");
	if (error == KVR_OK)
		rank_put(j, k, id, name, length);
}

static void
decision_put(struct json *j, const struct explain *e)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int error;

	do
		error = kvr_route(e->kvr, e->prompt, NULL, e->now, &d);
	while (status_again(j->to, error));
	if (error != KVR_OK) {
		json_null(j, "decision");
		json_text(j, "error", kvr_strerror(error));
		return;
	}
	json_map(j, "decision");
	worker_put(j, e->kvr, d.worker);
	json_text(j, "reason", reason_name(d.reason));
	json_real(j, "cost", d.cost);
	json_whole(j, "overlap_blocks", d.overlap_blocks);
	json_whole(j, "overlap_tokens", d.overlap_tokens);
	json_whole(j, "best_tokens", d.best_tokens);
	json_map_end(j);
}

static void
candidate_put(struct json *j, const struct kvr *k,
    const struct kvr_candidate *c)
{
	json_map(j, NULL);
	worker_put(j, k, c->worker);
	json_text(j, "verdict", c->verdict < VERDICTS ?
	    verdicts[c->verdict] : "?");
	json_whole(j, "overlap_blocks", c->overlap_blocks);
	json_whole(j, "overlap_tokens", c->overlap_tokens);
	if (c->age_ns < 0)
		json_null(j, "age");
	else
		json_real(j, "age", (double)c->age_ns / 1e9);
	json_whole(j, "requests", c->requests);
	json_whole(j, "prefill_tokens", c->prefill_tokens);
	json_real(j, "backlog", c->backlog);
	json_real(j, "cost", c->cost);
	json_map_end(j);
}

static int
candidates_read(const struct explain *e, struct writer *to,
    struct kvr_candidate *all, size_t room, size_t *n)
{
	int error;

	do
		error = kvr_candidates(e->kvr, e->prompt, NULL, e->now, all,
		    sizeof(*all), room, n);
	while (status_again(to, error));
	return error;
}

/* Writes all candidates but workers that are added meanwhile. */
static void
candidates_put(struct json *j, const struct explain *e)
{
	struct kvr_candidate *all = NULL;
	size_t i, room = 0, n = 0;
	int error = candidates_read(e, j->to, NULL, 0, &room);

	if (error == KVR_OK) {
		all = writer_alloc(j->to, (room + 1) * sizeof(*all));
		if (all == NULL)
			return;
		memset(all, 0, (room + 1) * sizeof(*all));
		error = candidates_read(e, j->to, all, room, &n);
	}
	if (error == KVR_OK) {
		json_list(j, "candidates");
		for (i = 0; i < n && i < room && !j->to->failed; i++)
			candidate_put(j, e->kvr, &all[i]);
		json_list_end(j);
	} else {
		json_null(j, "candidates");
	}
	writer_free(j->to, all);
}

void
status_explain(const struct explain *e, struct writer *to)
{
	struct json j;

	json_begin(&j, to);
	json_map(&j, NULL);
	facts_put(&j, e);
	if (e->outcome == REASON_COST) {
		prompt_put(&j, e);
		decision_put(&j, e);
		if (!to->failed)
			candidates_put(&j, e);
	} else {
		no_prompt_put(&j);
	}
	json_map_end(&j);
	json_end(&j);
}
