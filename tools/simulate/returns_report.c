/* SPDX-License-Identifier: BSD-2-Clause */
/* returns_report.c - see returns_report.h. */
#include "returns_report.h"

#include "simulate.h"

#include <inttypes.h>
#include <stdlib.h>

/* To be freed. NULL: *error, or there is no return. */
static struct simulate_return *
find_returns(const struct simulation *s, size_t *n, int *error)
{
	struct simulate_return *r = calloc(SIMULATE_CHANGES_MAX, sizeof(*r));

	*error = r == NULL ? KVR_ENOMEM : simulate_returns(s, r, n);
	if (*error == KVR_OK && *n > 0)
		return r;
	free(r);
	return NULL;
}

static const char *
kind_of(const struct simulate_return *r)
{
	return r->change.kind == SIMULATE_JOIN ? "join" : "slow-end";
}

int
returns_kv(FILE *out, const struct simulation *s)
{
	size_t n = 0, i;
	int e;
	struct simulate_return *r = find_returns(s, &n, &e);

	for (i = 0; r != NULL && i < n; i++)
		fprintf(out, "return%zu_kind=%s\nreturn%zu_worker=%" PRIu32
		    "\nreturn%zu_at=%.3f\nreturn%zu_requests=%" PRIu64
		    "\nreturn%zu_share=%.4f\nreturn%zu_session_share=%.4f\n",
		    i, kind_of(&r[i]), i, r[i].change.worker, i,
		    (double)r[i].change.at / 1e9, i, r[i].requests, i,
		    r[i].share, i, r[i].session_share);
	free(r);
	return e;
}

int
returns_json(FILE *out, const struct simulation *s)
{
	size_t n = 0, i;
	int e;
	struct simulate_return *r = find_returns(s, &n, &e);

	for (i = 0; r != NULL && i < n; i++)
		fprintf(out, "%s{\"kind\":\"%s\",\"worker\":%" PRIu32
		    ",\"at\":%.3f,\"requests\":%" PRIu64
		    ",\"share\":%.4f,\"session_share\":%.4f}%s",
		    i == 0 ? ",\"returns\":[" : ",", kind_of(&r[i]),
		    r[i].change.worker, (double)r[i].change.at / 1e9,
		    r[i].requests, r[i].share, r[i].session_share,
		    i + 1 == n ? "]" : "");
	free(r);
	return e;
}
