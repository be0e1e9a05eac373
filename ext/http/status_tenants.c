/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_tenants.c - see status_tenants.h. There may be a thousand; those that
 * have most are shown. Their names are not in the index: they go by digests.
 */
#include "status_tenants.h"

#include <stdlib.h>

#include "status_in.h"

enum { SHOWN = 16, HEX = 16, AT_ONCE = 64, ROWS_MAX = KVR_TENANTS_MAX + 1 };

static void
hex(char to[HEX], uint64_t digest)
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
rows_read(struct json *j, const struct kvr *k, struct kvr_tenant *rows,
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
		while (status_again(j->to, error));
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

	hex(digest, t->digest);
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
	if (k != NULL && rows_read(j, k, rows, &n))
		rows_put(j, rows, n);
	else
		json_null(j, "tenants");
	writer_free(j->to, rows);
}
