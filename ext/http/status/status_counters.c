/* SPDX-License-Identifier: BSD-2-Clause */
/* status_counters.c - counters of the proxy, see status_parts.h. */
#include "status_parts.h"

#include <string.h>

/* An array of counters, each named after its reason or endpoint. */
struct kinds {
	const char *json, *metric, *label, *help;
	size_t n;
	const char *(*name)(size_t i); /* returns NULL if i is not shown */
	size_t at;              /* the array's offset in struct counters */
};

static const char *
name_of_reason(size_t i)
{
	return reason_occurs((uint32_t)i) ? reason_name((uint32_t)i) : NULL;
}

static const char *
name_of_endpoint(size_t i)
{
	return endpoint_name((enum endpoint)i);
}

static const struct kinds kinds[] = {
	{ "reasons", "requests_total", "reason", "Choices of a server, by "
	    "reason.", REASONS, name_of_reason,
	    offsetof(struct counters, reason) },
	{ "endpoints", "endpoints_total", "endpoint", "Requests, by kind of "
	    "endpoint.", ENDPOINTS, name_of_endpoint,
	    offsetof(struct counters, endpoint) }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static const uint64_t *
numbers_of(const struct kinds *k, const struct counters *all)
{
	return (const uint64_t *)((const char *)all + k->at);
}

/* ----------------------------------------------------------------- JSON --- */

static void
kinds_json(struct json *j, const struct kinds *k, const struct counters *all)
{
	size_t i;

	json_map(j, k->json);
	for (i = 0; i < k->n; i++)
		if (k->name(i) != NULL)
			json_whole(j, k->name(i), all == NULL ? 0 :
			    numbers_of(k, all)[i]);
	json_map_end(j);
}

/* Returns the i-th path, "*" for further ones, or NULL if it is not used. */
static const char *
path_text(const struct counters *all, size_t i, char text[PATH_BYTES + 1])
{
	const struct counted_path *p = &all->path[i];

	if (p->count == 0 || (p->length == 0 && i + 1 < PATHS))
		return NULL;
	memcpy(text, p->text, p->length);
	text[p->length] = '\0';
	return i + 1 < PATHS ? text : "*";
}

static void
paths_json(struct json *j, const struct counters *all)
{
	char text[PATH_BYTES + 1];
	size_t i;

	json_map(j, "unknown_paths");
	for (i = 0; all != NULL && i < PATHS; i++)
		if (path_text(all, i, text) != NULL)
			json_whole(j, path_text(all, i, text),
			    all->path[i].count);
	json_map_end(j);
}

void
counters_json(struct json *j, const struct counters *all)
{
	const char *group = NULL;
	size_t i;

	for (i = 0; i < KINDS; i++)
		kinds_json(j, &kinds[i], all);
	paths_json(j, all);
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

/* -------------------------------------------------------------- metrics --- */

static void
kinds_metrics(struct metrics *m, const struct kinds *k, const struct status *s)
{
	const struct metric name = { .name = k->metric };
	size_t u, i;

	metric_head(m, &name, k->help);
	for (u = 0; u < s->upstreams; u++)
		for (i = 0; s->upstream[u].counters != NULL && i < k->n; i++) {
			if (k->name(i) == NULL)
				continue;
			sample_begin(m, &name, &s->upstream[u]);
			metric_label_text(m, k->label, k->name(i));
			metric_whole(m, numbers_of(k,
			    s->upstream[u].counters)[i]);
		}
}

static void
paths_metrics(struct metrics *m, const struct status *s)
{
	const struct metric name = { .name = "unknown_paths_total" };
	const struct counters *all;
	char text[PATH_BYTES + 1];
	size_t u, i;

	metric_head(m, &name, "Requests whose path is not that of an endpoint, "
	    "by path.");
	for (u = 0; u < s->upstreams; u++) {
		all = s->upstream[u].counters;
		for (i = 0; all != NULL && i < PATHS; i++) {
			if (path_text(all, i, text) == NULL)
				continue;
			sample_begin(m, &name, &s->upstream[u]);
			metric_label_text(m, "path", path_text(all, i, text));
			metric_whole(m, all->path[i].count);
		}
	}
}

void
counters_metrics(struct metrics *m, const struct status *s)
{
	size_t i, u;

	for (i = 0; i < KINDS; i++)
		kinds_metrics(m, &kinds[i], s);
	paths_metrics(m, s);
	for (i = 0; i < counters_shown; i++) {
		const struct metric name = { counter_list[i].group,
		    counter_list[i].name, "_total" };

		metric_head(m, &name, counter_list[i].help);
		for (u = 0; u < s->upstreams; u++) {
			sample_begin(m, &name, &s->upstream[u]);
			metric_whole(m, counter_value(
			    s->upstream[u].counters, i));
		}
	}
}
