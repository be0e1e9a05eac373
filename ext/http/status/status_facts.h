/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_facts.h - tables of facts: each row has the member in the JSON, the
 * metric, and the field of a struct.
 *
 *   { "bytes", "tenant_bytes", FACT(struct kvr_tenant, bytes), "Of ..." }
 *        |            |
 *        |            '--> kvroute_PROXY_tenant_bytes{...} 6400
 *        '--> "bytes":6400
 *
 * A row without a member or without a metric is in the other report alone.
 * Times and decimals below 0 and texts that are NULL are not known: they are
 * null in the JSON and have no sample. The pages of the proxies define each
 * name, which tests/http/test_dashboard.c checks.
 */
#ifndef KVROUTE_STATUS_FACTS_H
#define KVROUTE_STATUS_FACTS_H

#include "json_writer.h"
#include "metric_writer.h"
#include "status.h"

enum fact_kind {
	FACT_UINT64,
	FACT_DECIMAL,    /* uint64_t; its metric has decimals */
	FACT_UINT32,
	FACT_REAL,       /* double */
	FACT_NS,         /* int64_t, as seconds */
	FACT_BOOL,
	FACT_TEXT        /* const char * */
};

struct fact {
	const char *json;   /* NULL: not in the JSON */
	const char *metric; /* behind kvroute_PROXY_; NULL: not a metric */
	enum fact_kind kind;
	size_t at;          /* the offset of the field */
	const char *help;
};

#define FACT(type, field) \
	_Generic(((type *)0)->field, uint64_t: FACT_UINT64, \
	    uint32_t: FACT_UINT32, double: FACT_REAL, int64_t: FACT_NS, \
	    bool: FACT_BOOL, const char *: FACT_TEXT), offsetof(type, field)
#define FACTS(table) table, sizeof(table) / sizeof((table)[0])

/* Writes the members of one object. */
void facts_json(struct json *j, const struct fact *facts, size_t n,
    const void *object);

/* Finds the objects of a kind, and writes their labels. */
struct fact_rows {
	/* Returns the i-th object of an upstream; NULL: it has less. */
	const void *(*at)(void *context, const struct status_upstream *up,
	    size_t i);
	void *context;
	void (*labels)(struct metrics *m, const void *object); /* or NULL */
};

/* Writes each metric, a head and the samples, if an object has a sample. */
void facts_metrics(struct metrics *m, const struct status *s,
    const struct fact *facts, size_t n, const struct fact_rows *rows);
/* Begins a sample: its name and the label of its upstream. */
void sample_begin(struct metrics *m, const struct metric *name,
    const struct status_upstream *up);

#endif
