/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_tenants.c - see status_tenants.h. There may be a thousand; those that
 * have most are shown. Their names are not in the index: they go by digests,
 * which the shares beside them tell apart where each has its own.
 */
#include "status_tenants.h"

#include <stdlib.h>

#include "status_in.h"

enum { SHOWN = 16, HEX = 16, AT_ONCE = 64, ROWS_MAX = KVR_TENANTS_MAX + 1 };

static void
hex_put(char to[HEX], uint64_t digest)
{
	int i;

	for (i = HEX; i-- > 0; digest >>= 4)
		to[i] = "0123456789abcdef"[digest & 15];
}

/* Those with most bytes come first. */
static int
by_bytes(const void *a, const void *b)
{
	const struct kvr_tenant *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->digest == y->digest ? 0 : x->digest < y->digest ? -1 : 1;
}

/* All of them; false: the index is not shared, or the report has failed. */
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
	char digest[HEX];

	hex_put(digest, t->digest);
	json_map(j, NULL);
	if (t->digest == 0)
		json_null(j, "tenant");
	else
		json_bytes(j, "tenant", digest, sizeof(digest));
	json_whole(j, "share", t->share);
	json_whole(j, "bytes", t->bytes);
	json_whole(j, "evicted", t->evicted);
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
	struct kvr_tenant *rows = writer_alloc(j->to, (ROWS_MAX + AT_ONCE) *
	    sizeof(*rows));
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

static const struct {
	const char *name, *type, *help;
} figures[] = {
	{ "tenant_bytes", "gauge", "What a tenant has of the index." },
	{ "tenant_share", "gauge", "Its share of a full one." },
	{ "tenant_evicted_total", "counter", "What it lost in a full one." }
};

static uint64_t
figure_of(const struct kvr_tenant *t, size_t figure)
{
	const uint64_t all[] = { t->bytes, t->share, t->evicted };

	return all[figure];
}

static struct metric
metric_of(const struct status *s, size_t figure)
{
	return (struct metric){ .proxy = s->proxy,
	    .name = figures[figure].name };
}

static void
sample_put(const struct status *s, const struct status_upstream *up,
    const struct kvr_tenant *t, size_t figure, struct writer *to)
{
	const struct metric m = metric_of(s, figure);
	char digest[HEX];

	hex_put(digest, t->digest);
	metric_sample(to, &m, up);
	writer_text(to, ",tenant=\"");
	if (t->digest == 0)
		writer_text(to, "rest");
	else
		writer_put(to, digest, sizeof(digest));
	writer_text(to, "\"");
	metric_number(to, figure_of(t, figure));
}

/* All samples of a metric stand together: each index is read for each. */
static void
figure_put(const struct status *s, struct kvr_tenant *rows, size_t figure,
    struct writer *to)
{
	const struct metric m = metric_of(s, figure);
	bool begun = false;
	size_t u, i, n;

	for (u = 0; u < s->upstreams; u++) {
		const struct status_upstream *up = &s->upstream[u];

		if (up->kvr == NULL || !rows_read(to, up->kvr, rows, &n))
			continue;
		if (n > 0 && !begun)
			metric_head(to, &m, figures[figure].type,
			    figures[figure].help);
		begun |= n > 0;
		for (i = 0; i < n; i++)
			sample_put(s, up, &rows[i], figure, to);
	}
}

void
tenants_metrics(const struct status *s, struct writer *to)
{
	struct kvr_tenant *rows = writer_alloc(to, (ROWS_MAX + AT_ONCE) *
	    sizeof(*rows));
	size_t figure;

	if (rows == NULL)
		return;
	for (figure = 0; figure < sizeof(figures) / sizeof(figures[0]);
	    figure++)
		figure_put(s, rows, figure, to);
	writer_free(to, rows);
}
