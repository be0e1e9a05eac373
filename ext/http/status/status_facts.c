/* SPDX-License-Identifier: BSD-2-Clause */
/* status_facts.c - see status_facts.h. */
#include "status_facts.h"

#include <string.h>

/* The value of a field, of any kind. */
union value {
	uint64_t whole;
	uint32_t part;
	double real;
	int64_t ns;
	bool yes;
	const char *text;
};

static union value
value_of(const struct fact *f, const void *object)
{
	static const size_t sizes[] = {
		[FACT_UINT64] = sizeof(uint64_t),
		[FACT_DECIMAL] = sizeof(uint64_t),
		[FACT_UINT32] = sizeof(uint32_t),
		[FACT_REAL] = sizeof(double), [FACT_NS] = sizeof(int64_t),
		[FACT_BOOL] = sizeof(bool), [FACT_TEXT] = sizeof(char *)
	};
	union value v = { 0 };

	memcpy(&v, (const char *)object + f->at, sizes[f->kind]);
	return v;
}

static bool
is_known(const struct fact *f, const union value *v)
{
	switch (f->kind) {
	case FACT_REAL:
		return v->real >= 0;
	case FACT_NS:
		return v->ns >= 0;
	case FACT_TEXT:
		return v->text != NULL;
	default:
		return true;
	}
}

static void
fact_json(struct json *j, const struct fact *f, const union value *v)
{
	if (!is_known(f, v)) {
		json_null(j, f->json);
		return;
	}
	switch (f->kind) {
	case FACT_UINT64:
	case FACT_DECIMAL:
		json_whole(j, f->json, v->whole);
		break;
	case FACT_UINT32:
		json_whole(j, f->json, v->part);
		break;
	case FACT_REAL:
		json_real(j, f->json, v->real);
		break;
	case FACT_NS:
		json_real(j, f->json, (double)v->ns / 1e9);
		break;
	case FACT_BOOL:
		json_bool(j, f->json, v->yes);
		break;
	case FACT_TEXT:
		json_text(j, f->json, v->text);
		break;
	}
}

void
facts_json(struct json *j, const struct fact *facts, size_t n,
    const void *object)
{
	union value v;
	size_t i;

	for (i = 0; i < n; i++) {
		if (facts[i].json == NULL)
			continue;
		v = value_of(&facts[i], object);
		fact_json(j, &facts[i], &v);
	}
}

/* -------------------------------------------------------------- metrics --- */

static void
fact_metric(struct metrics *m, const struct fact *f, const union value *v)
{
	if (f->kind == FACT_DECIMAL)
		metric_real(m, (double)v->whole);
	else if (f->kind == FACT_REAL)
		metric_real(m, v->real);
	else if (f->kind == FACT_NS)
		metric_seconds(m, (uint64_t)v->ns, 3);
	else if (f->kind == FACT_BOOL)
		metric_whole(m, v->yes);
	else
		metric_whole(m, f->kind == FACT_UINT32 ? v->part : v->whole);
}

void
sample_begin(struct metrics *m, const struct metric *name,
    const struct status_upstream *up)
{
	metric_begin(m, name);
	metric_label(m, "upstream", up->name, up->name_length);
}

/* Returns whether there was a sample. */
static bool
samples_put(struct metrics *m, const struct fact *f,
    const struct status_upstream *up, const struct fact_rows *rows, bool begun)
{
	const struct metric name = { .name = f->metric };
	const void *object;
	union value v;
	size_t i;

	for (i = 0; (object = rows->at(rows->context, up, i)) != NULL; i++) {
		v = value_of(f, object);
		if (!is_known(f, &v))
			continue;
		if (!begun)
			metric_head(m, &name, f->help);
		begun = true;
		sample_begin(m, &name, up);
		if (rows->labels != NULL)
			rows->labels(m, object);
		fact_metric(m, f, &v);
	}
	return begun;
}

void
facts_metrics(struct metrics *m, const struct status *s,
    const struct fact *facts, size_t n, const struct fact_rows *rows)
{
	size_t i, u;
	bool begun;

	for (i = 0; i < n; i++) {
		begun = false;
		for (u = 0; facts[i].metric != NULL && u < s->upstreams; u++)
			begun = samples_put(m, &facts[i], &s->upstream[u],
			    rows, begun);
	}
}
