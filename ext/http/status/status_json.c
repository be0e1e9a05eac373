/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_json.c - writes the state as JSON, see status.h. The proxy's page
 * defines each member.
 */
#include "status_in.h"

#include <stdlib.h>
#include <string.h>

#include "body.h"
#include "status_parts.h"

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

/* Tries a call that takes the lock and only reads. */
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

/* ----------------------------------------------------------- the region --- */

struct journal {
	uint64_t bytes, written, overruns;
	int64_t beat_age;       /* -1: there was no beat */
};

static const struct fact journal_facts[] = {
	{ "bytes", NULL, FACT(struct journal, bytes), NULL },
	{ "written", NULL, FACT(struct journal, written), NULL },
	{ "overruns", NULL, FACT(struct journal, overruns), NULL },
	{ "beat_age", NULL, FACT(struct journal, beat_age), NULL }
};

#define OF_REGION(field) { #field, NULL, FACT(struct kvr_stats, field), NULL }
/* kvr_metrics(3) has their metrics. */
static const struct fact region_facts[] = {
	{ "bytes", NULL, FACT(struct kvr_stats, region_bytes), NULL },
	OF_REGION(cells),
	OF_REGION(cells_free),
	OF_REGION(blocks),
	OF_REGION(held_blocks),
	OF_REGION(leases),
	OF_REGION(evicted_region),
	OF_REGION(truncated),
	OF_REGION(recoveries),
	OF_REGION(busy_writes),
	OF_REGION(lease_reaps),
	OF_REGION(affinity_entries),
	OF_REGION(affinity_bindings)
};

static void
journal_put(struct json *j, const struct kvr_stats *s)
{
	const int64_t age = kvr_clock_now() - s->journal_beat;
	const struct journal journal = { .bytes = s->journal_bytes,
	    .written = s->journal_written, .overruns = s->journal_overruns,
	    .beat_age = s->journal_beat < 0 ? -1 : age < 0 ? 0 : age };

	if (s->journal_bytes == 0) {
		json_null(j, "journal");
		return;
	}
	json_map(j, "journal");
	facts_json(j, FACTS(journal_facts), &journal);
	json_map_end(j);
}

static void
region_put(struct json *j, const struct kvr *k, const struct kvr_stats *s)
{
	json_map(j, "region");
	facts_json(j, FACTS(region_facts), s);
	journal_put(j, s);
	tenants_json(j, k);
	json_map_end(j);
}

/* --------------------------------------------------------- a worker --- */

struct worker {
	uint64_t id;
	struct kvr_worker facts;
	struct kvr_worker_stats stats;
	char name[KVR_NAME_MAX];
	size_t name_length;
	/* as texts */
	const char *state, *source, *window_mode, *retain;
	bool overloaded;
};

#define OF_WORKER(name, field) { name, NULL, FACT(struct worker, field), NULL }
#define OF_STATS(field) OF_WORKER(#field, stats.field)
/* kvr_metrics(3) has their metrics. */
static const struct fact worker_facts[] = {
	OF_WORKER("state", state),
	OF_WORKER("weight", facts.weight),
	OF_WORKER("capacity", facts.capacity_tokens),
	OF_WORKER("capacity_source", source),
	OF_WORKER("block_tokens", facts.block_tokens),
	OF_WORKER("window_mode", window_mode),
	OF_WORKER("window", facts.window_tokens),
	OF_WORKER("window_capacity", facts.window_capacity),
	OF_WORKER("overloaded", overloaded),
	OF_STATS(requests),
	OF_STATS(prefill_tokens),
	OF_STATS(backlog),
	OF_STATS(prefill_rate),
	OF_STATS(held_blocks)
};
static const struct fact hit_facts[] = {
	OF_WORKER("retain", retain),
	OF_STATS(lease_opens),
	OF_STATS(prompt_tokens),
	OF_STATS(predicted_tokens),
	OF_STATS(best_tokens),
	OF_WORKER("reports", stats.calibration.reports),
	OF_WORKER("unreported", stats.calibration.unreported),
	OF_WORKER("reported_tokens", stats.calibration.reported_tokens),
	OF_WORKER("report_predicted_tokens",
	    stats.calibration.predicted_tokens),
	OF_WORKER("usage_prompt_tokens",
	    stats.calibration.usage_prompt_tokens),
	OF_WORKER("usage_cached_tokens",
	    stats.calibration.usage_cached_tokens),
	OF_STATS(learnt_capacity),
	OF_STATS(learnt_block)
};

/* Is the worker's capacity read? The search begins behind the last result. */
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

/* A worker that has left keeps its state for the time its server is back. */
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
texts_set(struct worker *w, const struct status_upstream *up, bool asked)
{
	w->state = state_of(up, w);
	w->source = w->facts.capacity_tokens == 0 ? NULL :
	    asked ? "read" : "told";
	w->window_mode = NAME_IN(windows, w->facts.window_mode);
	w->retain = NAME_IN(retains, w->stats.retain);
	w->overloaded = w->stats.overloaded != 0;
}

static void
worker_put(struct json *j, const struct status_upstream *up,
    const struct worker *w, bool ranked)
{
	json_map(j, NULL);
	json_bytes(j, "name", w->name, w->name_length);
	if (ranked)
		json_whole(j, "rank", w->facts.rank);
	facts_json(j, FACTS(worker_facts), w);
	loads_json(j, up, w->id);
	health_json(j, up, w->name, w->name_length);
	facts_json(j, FACTS(hit_facts), w);
	json_map_end(j);
}

/* Reads all of a worker; false: it is gone, or the report has failed. */
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
		error = kvr_worker_stats_get(k, id, &w->stats);
	while (status_again(j->to, error));
	if (error != KVR_OK)
		return false;
	do
		error = kvr_worker_name(k, id, w->name, sizeof(w->name),
		    &w->name_length);
	while (status_again(j->to, error));
	return error == KVR_OK;
}

/* Returns the next worker; 0: this is the last, or the report has failed. */
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
 * Workers are sorted by their names: the index lists them by slots, which a
 * reset changes.
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

/* Reads up to *n workers into scratch memory; further ones are left out. */
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

/* Is it one of several ranks of its name, or not of the first rank? */
static bool
is_ranked(const struct worker *all, size_t n, size_t i)
{
	return all[i].facts.rank > 0 ||
	    (i + 1 < n && same_name(&all[i], &all[i + 1]));
}

static void
workers_put(struct json *j, const struct status_upstream *up,
    struct worker *all, size_t n)
{
	size_t i, at = 0;

	json_list(j, "workers");
	for (i = 0; i < n; i++) {
		texts_set(&all[i], up, is_asked(up, &all[i], &at));
		worker_put(j, up, &all[i], is_ranked(all, n, i));
	}
	json_list_end(j);
}

/* Writes sums over the present workers; they are estimates. */
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

/* Reads the options too: an index in a file keeps its own. */
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
		error = kvr_stats_get(k, s);
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
	sums_put(j, workers, n);
	counters_json(j, up->counters);
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
