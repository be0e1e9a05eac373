/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_tenants.c - tenants, see status_parts.h. There may be a thousand: the
 * JSON has the SHOWN with most bytes, and metrics have all. The index has
 * digests in place of their names.
 */
#include "status_parts.h"

#include <stdlib.h>

#include "status_in.h"

enum { SHOWN = 16, AT_ONCE = 64, ROWS_MAX = KVR_TENANTS_MAX + 1 };
#define ROWS_BYTES ((ROWS_MAX + AT_ONCE) * sizeof(struct kvr_tenant))

static const struct fact tenant_facts[] = {
	{ "share", "tenant_share", FACT(struct kvr_tenant, share),
	    "The tenant's share of a full index." },
	{ "bytes", "tenant_bytes", FACT(struct kvr_tenant, bytes),
	    "Bytes of the index that the tenant has." },
	{ "evicted", "tenant_evicted_total", FACT(struct kvr_tenant, evicted),
	    "Entries that the tenant lost because the index was full." }
};

/* Tenants with more bytes come first. */
static int
by_bytes(const void *a, const void *b)
{
	const struct kvr_tenant *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->digest == y->digest ? 0 : x->digest < y->digest ? -1 : 1;
}

/* Reads all rows; false: the index is not shared, or the report has failed. */
static bool
rows_read(struct writer *to, const struct kvr *k, struct kvr_tenant *rows,
    size_t *n)
{
	uint64_t cursor = 0;
	size_t count = 0;
	int error;

	*n = 0;
	do {
		do
			error = kvr_tenant_list(k, &cursor, rows + *n,
			    sizeof(*rows), AT_ONCE, &count);
		while (status_again(to, error));
		if (error != KVR_OK)
			return false;
		*n += count;
	} while (cursor != 0 && *n <= ROWS_MAX);
	return true;
}

static void
tenant_put(struct json *j, const struct kvr_tenant *t)
{
	char digest[WRITER_HEX];

	hex_write(digest, t->digest);
	json_map(j, NULL);
	if (t->digest == 0)
		json_null(j, "tenant");
	else
		json_bytes(j, "tenant", digest, sizeof(digest));
	facts_json(j, FACTS(tenant_facts), t);
	json_map_end(j);
}

static void
rows_put(struct json *j, struct kvr_tenant *rows, size_t n)
{
	size_t i;

	qsort(rows, n, sizeof(*rows), by_bytes);
	json_map(j, "tenants");
	json_whole(j, "known", n);
	json_list(j, "rows");
	for (i = 0; i < n && i < SHOWN; i++)
		tenant_put(j, &rows[i]);
	json_list_end(j);
	json_map_end(j);
}

void
tenants_json(struct json *j, const struct kvr *k)
{
	struct kvr_tenant *rows = writer_alloc(j->to, ROWS_BYTES);
	size_t n;

	if (rows == NULL)
		return;
	if (k != NULL && rows_read(j->to, k, rows, &n))
		rows_put(j, rows, n);
	else
		json_null(j, "tenants");
	writer_free(j->to, rows);
}

/* ------------------------------------------------------------- metrics --- */

/* The rows of the latest upstream. */
struct reading {
	struct writer *to;
	struct kvr_tenant *rows;
	size_t n;
};

/* Each metric reads the indexes again: its samples must stand together. */
static const void *
tenant_at(void *context, const struct status_upstream *up, size_t i)
{
	struct reading *r = context;

	if (i == 0 && (up->kvr == NULL ||
	    !rows_read(r->to, up->kvr, r->rows, &r->n)))
		r->n = 0;
	return i < r->n ? &r->rows[i] : NULL;
}

static void
tenant_labels(struct metrics *m, const void *object)
{
	const struct kvr_tenant *t = object;
	char digest[WRITER_HEX];

	hex_write(digest, t->digest);
	if (t->digest == 0)
		metric_label_text(m, "tenant", "rest");
	else
		metric_label(m, "tenant", digest, sizeof(digest));
}

void
tenants_metrics(struct metrics *m, const struct status *s)
{
	struct reading r = { .to = m->to };

	r.rows = writer_alloc(m->to, ROWS_BYTES);
	if (r.rows == NULL)
		return;
	facts_metrics(m, s, FACTS(tenant_facts), &(struct fact_rows){
	    .at = tenant_at, .context = &r, .labels = tenant_labels });
	writer_free(m->to, r.rows);
}
