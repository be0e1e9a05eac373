/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_json.c - the state as JSON, see status.h. kvroute-nginx(7) defines
 * every member.
 */
#include "status_in.h"

#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "json_writer.h"
#include "status_health.h"
#include "status_loads.h"
#include "status_peers.h"
#include "status_queue.h"
#include "status_tenants.h"
#include "status_times.h"

static const char *const costs[] = {
	[KVR_COST_BALANCED] = "balanced",
	[KVR_COST_DYNAMO] = "dynamo"
};
static const char *const states[] = {
	[KVR_STATE_UP] = "up",
	[KVR_STATE_DRAINING] = "draining",
	[KVR_STATE_DOWN] = "down"
};
static const char *const windows[] = {
	[KVR_WINDOW_FULL] = "full", [KVR_WINDOW_BOUNDARY] = "boundary",
	[KVR_WINDOW_DENSE] = "dense", [KVR_WINDOW_DUAL] = "dual"
};
static const char *const retains[] = {
	[KVR_RETAIN_AUTO] = "auto",
	[KVR_RETAIN_TTL] = "ttl",
	[KVR_RETAIN_CAPACITY] = "capacity",
	[KVR_RETAIN_FEEDBACK] = "feedback",
	[KVR_RETAIN_EVENTS] = "events"
};

#define NAME_IN(names, i) \
	((i) < sizeof(names) / sizeof((names)[0]) ? (names)[i] : "?")

const char *
status_state_name(uint32_t state)
{
	return NAME_IN(states, state);
}

/* By a read that takes the lock. */
bool
status_blocked(const struct kvr *k)
{
	unsigned tries = STATUS_TRIES;
	uint64_t id = 0;
	int error;

	if (k == NULL)
		return false;
	do
		error = kvr_worker_next(k, &id);
	while (error == KVR_EBUSY && --tries > 0);
	return error == KVR_EBUSY;
}

/* ------------------------------------------------------- an upstream --- */

static void
journal_put(struct json *j, const struct kvr_stats *s)
{
	const int64_t age = kvr_clock_now() - s->journal_beat;

	if (s->journal_bytes == 0) {
		json_null(j, "journal");
		return;
	}
	json_map(j, "journal");
	json_whole(j, "bytes", s->journal_bytes);
	json_whole(j, "written", s->journal_written);
	json_whole(j, "overruns", s->journal_overruns);
	if (s->journal_beat < 0)
		json_null(j, "beat_age");
	else
		json_real(j, "beat_age", age < 0 ? 0 : (double)age / 1e9);
	json_map_end(j);
}

static void
region_put(struct json *j, const struct kvr *k, const struct kvr_stats *s)
{
	json_map(j, "region");
	json_whole(j, "bytes", s->region_bytes);
	json_whole(j, "cells", s->cells);
	json_whole(j, "cells_free", s->cells_free);
	json_whole(j, "blocks", s->blocks);
	json_whole(j, "held_blocks", s->held_blocks);
	json_whole(j, "leases", s->leases);
	json_whole(j, "evicted_region", s->evicted_region);
	json_whole(j, "truncated", s->truncated);
	json_whole(j, "recoveries", s->recoveries);
	json_whole(j, "busy_writes", s->busy_writes);
	json_whole(j, "lease_reaps", s->lease_reaps);
	json_whole(j, "affinity_entries", s->affinity_entries);
	json_whole(j, "affinity_bindings", s->affinity_bindings);
	journal_put(j, s);
	tenants_json(j, k);
	json_map_end(j);
}

static void
requests_put(struct json *j, const struct counters *c)
{
	uint32_t i;

	json_map(j, "reasons");
	for (i = 0; i < REASONS; i++) {
		if (reason_occurs(i))
			json_whole(j, reason_name(i),
			    c == NULL ? 0 : c->reason[i]);
	}
	json_map_end(j);
	json_map(j, "endpoints");
	for (i = 0; i < ENDPOINTS; i++)
		json_whole(j, endpoint_name((enum endpoint)i),
		    c == NULL ? 0 : c->endpoint[i]);
	json_map_end(j);
}

static void
counters_put(struct json *j, const struct counters *all)
{
	const char *group = NULL;
	size_t i;

	for (i = 0; i < counters_shown; i++) {
		const struct counter *c = &counter_list[i];

		if (c->group != group && group != NULL)
			json_map_end(j);
		if (c->group != group)
			json_map(j, c->group);
		group = c->group;
		json_whole(j, c->name, counter_value(all, i));
	}
	json_map_end(j);
}

/* --------------------------------------------------------- a worker --- */

struct worker {
	uint64_t id;
	struct kvr_worker facts;
	struct kvr_worker_stats stats;
	char name[KVR_NAME_MAX];
	size_t name_length;
};

static void
load_put(struct json *j, const struct kvr_worker_stats *s)
{
	json_bool(j, "overloaded", s->overloaded != 0);
	json_whole(j, "requests", s->requests);
	json_whole(j, "prefill_tokens", s->prefill_tokens);
	json_real(j, "backlog", s->backlog);
	json_real(j, "prefill_rate", s->prefill_rate);
	json_whole(j, "held_blocks", s->held_blocks);
}

static void
hits_put(struct json *j, const struct kvr_worker_stats *s)
{
	json_text(j, "retain", NAME_IN(retains, s->retain));
	json_whole(j, "lease_opens", s->lease_opens);
	json_whole(j, "prompt_tokens", s->prompt_tokens);
	json_whole(j, "predicted_tokens", s->predicted_tokens);
	json_whole(j, "best_tokens", s->best_tokens);
	json_whole(j, "reports", s->calibration.reports);
	json_whole(j, "unreported", s->calibration.unreported);
	json_whole(j, "reported_tokens", s->calibration.reported_tokens);
	json_whole(j, "report_predicted_tokens",
	    s->calibration.predicted_tokens);
	json_whole(j, "usage_prompt_tokens",
	    s->calibration.usage_prompt_tokens);
	json_whole(j, "usage_cached_tokens",
	    s->calibration.usage_cached_tokens);
	json_whole(j, "learnt_capacity", s->learnt_capacity);
	json_whole(j, "learnt_block", s->learnt_block);
}

/* Where is the name among those asked? The search begins behind the last. */
static bool
is_asked(const struct status_upstream *up, const struct worker *w, size_t *at)
{
	size_t i, place;

	for (i = 0; i < up->n_asked; i++) {
		place = (*at + i) % up->n_asked;
		if (up->asked[place].length != w->name_length ||
		    memcmp(up->asked[place].bytes, w->name, w->name_length) !=
		    0)
			continue;
		*at = place + 1;
		return true;
	}
	return false;
}

static void
source_put(struct json *j, const struct worker *w, bool asked)
{
	if (w->facts.capacity_tokens == 0)
		json_null(j, "capacity_source");
	else
		json_text(j, "capacity_source", asked ? "read" : "told");
}

/* An order still counts once the server is back. */
static const char *
state_of(const struct status_upstream *up, const struct worker *w)
{
	size_t i;

	for (i = 0; i < up->n_left; i++)
		if (up->left[i] == w->id)
			return "left";
	return status_state_name(w->facts.state);
}

static void
worker_put(struct json *j, const struct status_upstream *up,
    const struct worker *w, bool ranked, bool asked)
{
	json_map(j, NULL);
	json_bytes(j, "name", w->name, w->name_length);
	if (ranked)
		json_whole(j, "rank", w->facts.rank);
	json_text(j, "state", state_of(up, w));
	json_real(j, "weight", w->facts.weight);
	json_whole(j, "capacity", w->facts.capacity_tokens);
	source_put(j, w, asked);
	json_whole(j, "block_tokens", w->facts.block_tokens);
	json_text(j, "window_mode", NAME_IN(windows, w->facts.window_mode));
	json_whole(j, "window", w->facts.window_tokens);
	json_whole(j, "window_capacity", w->facts.window_capacity);
	load_put(j, &w->stats);
	loads_json(j, up, w->id);
	health_json(j, up, w->name, w->name_length);
	hits_put(j, &w->stats);
	json_map_end(j);
}

/* false: the worker is gone, or the report has failed. */
static bool
worker_read(struct json *j, const struct kvr *k, uint64_t id, struct worker *w)
{
	int error;

	w->id = id;
	w->facts.size = sizeof(w->facts);
	w->stats.size = sizeof(w->stats);
	do
		error = kvr_worker_get(k, id, &w->facts);
	while (status_again(j->to, error));
	if (error != KVR_OK)
		return false;
	do
		error = kvr_worker_stats(k, id, &w->stats);
	while (status_again(j->to, error));
	if (error != KVR_OK)
		return false;
	do
		error = kvr_worker_name(k, id, w->name, sizeof(w->name),
		    &w->name_length);
	while (status_again(j->to, error));
	return error == KVR_OK;
}

/* The worker after this one; 0: no more, or the report has failed. */
static uint64_t
worker_next(struct json *j, const struct kvr *k, uint64_t id)
{
	int error;

	if (k == NULL || j->to->failed)
		return 0;
	do
		error = kvr_worker_next(k, &id);
	while (status_again(j->to, error));
	return error == KVR_OK ? id : 0;
}

/*
 * In the order of their names: the index has them in that of their slots, which
 * a reset changes.
 */
static int
worker_order(const void *a, const void *b)
{
	const struct worker *x = a, *y = b;
	size_t n = x->name_length < y->name_length ? x->name_length
	    : y->name_length;
	int order = memcmp(x->name, y->name, n);

	if (order == 0 && x->name_length != y->name_length)
		order = x->name_length < y->name_length ? -1 : 1;
	if (order == 0 && x->facts.rank != y->facts.rank)
		order = x->facts.rank < y->facts.rank ? -1 : 1;
	return order;
}

/* Up to *n of them, into scratch memory; those added meanwhile are left out. */
static struct worker *
workers_read(struct json *j, const struct kvr *k, size_t *n)
{
	size_t most = *n;
	struct worker *all = writer_alloc(j->to, (most + 1) * sizeof(*all));
	uint64_t id = 0;

	*n = 0;
	if (all == NULL)
		return NULL;
	while (*n < most && (id = worker_next(j, k, id)) != 0) {
		if (worker_read(j, k, id, &all[*n]))
			++*n;
	}
	qsort(all, *n, sizeof(*all), worker_order);
	return all;
}

static bool
same_name(const struct worker *a, const struct worker *b)
{
	return a->name_length == b->name_length &&
	    memcmp(a->name, b->name, a->name_length) == 0;
}

/* One of several ranks of its name, or a lone one that is not the first? */
static bool
is_ranked(const struct worker *all, size_t n, size_t i)
{
	return all[i].facts.rank > 0 ||
	    (i + 1 < n && same_name(&all[i], &all[i + 1]));
}

static void
workers_put(struct json *j, const struct status_upstream *up,
    const struct worker *all, size_t n)
{
	size_t i, at = 0;

	json_list(j, "workers");
	for (i = 0; i < n; i++)
		worker_put(j, up, &all[i], is_ranked(all, n, i),
		    is_asked(up, &all[i], &at));
	json_list_end(j);
}

/* Of the workers there are, estimated. */
static void
sums_put(struct json *j, const struct worker *all, size_t n)
{
	uint64_t prompt = 0, predicted = 0, best = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		prompt += all[i].stats.prompt_tokens;
		predicted += all[i].stats.predicted_tokens;
		best += all[i].stats.best_tokens;
	}
	json_whole(j, "prompt_tokens", prompt);
	json_whole(j, "predicted_tokens", predicted);
	json_whole(j, "best_tokens", best);
}

/* --------------------------------------------------------- together --- */

/* An index in a file keeps the options it was made with. */
static void
index_read(struct json *j, const struct kvr *k, struct kvr_stats *s,
    struct kvr_options *options)
{
	int error;

	memset(s, 0, sizeof(*s));
	s->size = sizeof(*s);
	if (k == NULL)
		return;
	do
		error = kvr_stats(k, s);
	while (status_again(j->to, error));
	if (error != KVR_OK)
		return;
	do
		error = kvr_options_get(k, options);
	while (status_again(j->to, error));
}

static void
upstream_put(struct json *j, const struct status_upstream *up)
{
	struct kvr_options options = up->options;
	struct worker *workers;
	struct kvr_stats s;
	size_t n;

	index_read(j, up->kvr, &s, &options);
	n = (size_t)s.workers;
	workers = workers_read(j, up->kvr, &n);
	if (workers == NULL)
		return;
	json_map(j, NULL);
	json_bytes(j, "name", up->name, up->name_length);
	json_bool(j, "attached", up->kvr != NULL);
	json_text(j, "policy", NAME_IN(costs, up->cost));
	json_whole(j, "block", options.block_size);
	json_real(j, "ttl", options.ttl_ns < 0 ? -1 :
	    (double)options.ttl_ns / 1e9);
	if (up->shadow == NULL)
		json_null(j, "shadow");
	else
		json_text(j, "shadow", up->shadow);
	region_put(j, up->kvr, &s);
	peers_json(j, up->kvr);
	sums_put(j, workers, n);
	requests_put(j, up->counters);
	counters_put(j, up->counters);
	times_json(j, up->counters);
	queue_json(j, up);
	workers_put(j, up, workers, n);
	json_map_end(j);
	writer_free(j->to, workers);
}

void
status_json(const struct status *s, struct writer *to)
{
	struct json j;
	size_t i;

	json_begin(&j, to);
	json_map(&j, NULL);
	json_text(&j, "version", kvr_version_string());
	json_text(&j, "reader", body_reader());
	json_whole(&j, "time", s->time);
	json_list(&j, "upstreams");
	for (i = 0; i < s->upstreams && !to->failed; i++)
		upstream_put(&j, &s->upstream[i]);
	json_list_end(&j);
	json_map_end(&j);
	json_end(&j);
}
