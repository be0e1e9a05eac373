/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_facts.h - one row a fact: its member in the JSON, its metric, and the
 * field that has it.
 *
 *   { "lag", "peer_lag_seconds", FACT(struct peer, lag), "Delay of ..." }
 *        |            |
 *        |            '--> kvroute_nginx_peer_lag_seconds{...} 0.005
 *        '--> "lag":0.005000
 *
 * A row without a member or without a metric is in the other report alone.
 * Times and decimals below 0 and texts that are NULL are not known: null in the
 * JSON, and no sample. The page kvroute-nginx-operation(7) has each name;
 * tests/http/test_dashboard.c compares.
 */
#ifndef KVROUTE_STATUS_FACTS_H
#define KVROUTE_STATUS_FACTS_H

#include "json_writer.h"
#include "metric_writer.h"
#include "status.h"

enum fact_kind {
	FACT_UINT64,
	FACT_DECIMAL,    /* uint64_t, and a metric with decimals */
	FACT_UINT32,
	FACT_REAL,       /* double */
	FACT_NS,         /* int64_t, as seconds */
	FACT_BOOL,
	FACT_TEXT        /* const char * */
};

struct fact {
	const char *json;   /* NULL: it is no member */
	const char *metric; /* behind kvroute_PROXY_; NULL: it is no metric */
	enum fact_kind kind;
	size_t at;
	const char *help;
};

#define FACT(type, field) \
	_Generic(((type *)0)->field, uint64_t: FACT_UINT64, \
	    uint32_t: FACT_UINT32, double: FACT_REAL, int64_t: FACT_NS, \
	    bool: FACT_BOOL, const char *: FACT_TEXT), offsetof(type, field)
#define FACTS(table) table, sizeof(table) / sizeof((table)[0])

/* The members of one object. */
void facts_json(struct json *j, const struct fact *facts, size_t n,
    const void *object);

/* The objects of a kind, and their labels. */
struct fact_rows {
	/* The i-th object of an upstream; NULL: it has not so many. */
	const void *(*at)(void *context, const struct status_upstream *up,
	    size_t i);
	void *context;
	void (*labels)(struct metrics *m, const void *object); /* or NULL */
};

/* A metric, with a head and the samples of all objects, if there are any. */
void facts_metrics(struct metrics *m, const struct status *s,
    const struct fact *facts, size_t n, const struct fact_rows *rows);
/* Begins a sample: its name and the label of its upstream. */
void sample_begin(struct metrics *m, const struct metric *name,
    const struct status_upstream *up);

#endif
