/* SPDX-License-Identifier: BSD-2-Clause */
/* status_loads.c - loads, health and waiting requests, see status_parts.h. */
#include "status_parts.h"

#include <string.h>

/* ---------------------------------------------------------------- loads --- */

#define DECIMAL(field) FACT_DECIMAL, offsetof(struct status_load, field)

static const struct fact load_facts[] = {
	{ "running", "polled_running", DECIMAL(running),
	    "Running requests that the engine publishes." },
	{ "waiting", "polled_waiting", DECIMAL(waiting),
	    "Waiting requests that the engine publishes." },
	{ "usage", "polled_usage", FACT(struct status_load, usage),
	    "Share of its KV cache in use that the engine publishes." },
	{ "surplus", "polled_surplus", DECIMAL(surplus),
	    "Requests at the engine that were not booked." },
	{ "age", "polled_age_seconds", FACT(struct status_load, age),
	    "Time since the engine was last asked with success." }
};

void
loads_json(struct json *j, const struct status_upstream *up, uint64_t worker)
{
	size_t i;

	for (i = 0; i < up->n_loads; i++)
		if (up->loads[i].worker == worker)
			break;
	if (i == up->n_loads) {
		json_null(j, "polled");
		return;
	}
	json_map(j, "polled");
	facts_json(j, FACTS(load_facts), &up->loads[i]);
	json_map_end(j);
}

static const void *
load_at(void *context, const struct status_upstream *up, size_t i)
{
	(void)context;
	return i < up->n_loads ? &up->loads[i] : NULL;
}

static void
load_labels(struct metrics *m, const void *object)
{
	const struct status_load *l = object;

	metric_label(m, "worker", l->name, l->name_length);
	metric_label_whole(m, "rank", l->rank);
}

void
loads_metrics(struct metrics *m, const struct status *s)
{
	facts_metrics(m, s, FACTS(load_facts), &(struct fact_rows){
	    .at = load_at, .labels = load_labels });
}

/* --------------------------------------------------------------- health --- */

struct health_row {
	const struct status_health *worker;
	const char *what;
	bool gray, warming;
};

static const struct fact health_facts[] = {
	{ "health", NULL, FACT(struct health_row, what), NULL },
	{ NULL, "gray", FACT(struct health_row, gray),
	    "1 if the worker gets only probes: it is slow or failing." },
	{ NULL, "warming", FACT(struct health_row, warming),
	    "1 if the worker warms up and gets a part of its load." }
};

void
health_json(struct json *j, const struct status_upstream *up, const char *name,
    size_t n)
{
	struct health_row row = { .what = NULL };
	size_t i;

	for (i = 0; i < up->n_healths; i++)
		if (up->healths[i].name_length == n &&
		    memcmp(up->healths[i].name, name, n) == 0)
			break;
	if (i < up->n_healths)
		row.what = up->healths[i].what;
	facts_json(j, FACTS(health_facts), &row);
}

static const void *
health_at(void *context, const struct status_upstream *up, size_t i)
{
	struct health_row *row = context;

	if (i >= up->n_healths)
		return NULL;
	row->worker = &up->healths[i];
	row->what = row->worker->what;
	row->gray = strcmp(row->what, "slow") == 0 ||
	    strcmp(row->what, "failing") == 0;
	row->warming = strcmp(row->what, "warming") == 0;
	return row;
}

static void
health_labels(struct metrics *m, const void *object)
{
	const struct health_row *row = object;

	metric_label(m, "worker", row->worker->name,
	    row->worker->name_length);
}

void
health_metrics(struct metrics *m, const struct status *s)
{
	struct health_row row;

	facts_metrics(m, s, FACTS(health_facts), &(struct fact_rows){
	    .at = health_at, .context = &row, .labels = health_labels });
}

/* ---------------------------------------------------------------- queue --- */

static const struct fact queue_facts[] = {
	{ "waiting", "waiting", FACT(struct status_upstream, waiting),
	    "Requests that wait for a worker that is not full." },
	{ "most", NULL, FACT(struct status_upstream, queue), NULL }
};

void
queue_json(struct json *j, const struct status_upstream *up)
{
	if (up->queue == 0) {
		json_null(j, "queue");
		return;
	}
	json_map(j, "queue");
	facts_json(j, FACTS(queue_facts), up);
	json_map_end(j);
}

static const void *
queue_at(void *context, const struct status_upstream *up, size_t i)
{
	(void)context;
	return i == 0 && up->queue > 0 ? up : NULL;
}

void
queue_metrics(struct metrics *m, const struct status *s)
{
	facts_metrics(m, s, FACTS(queue_facts), &(struct fact_rows){
	    .at = queue_at });
}
