/* SPDX-License-Identifier: BSD-2-Clause */
/* load.c - see load.h. */
#include "load.h"

#include "args.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

int64_t
load_arrival(const struct trace_request *r)
{
	return r->arrival_ms * 1000000;
}

/* Room for n more elements; doubles. */
static void *
load_room(void *array, size_t *capacity, size_t used, size_t n, size_t element)
{
	if (used + n <= *capacity)
		return array;
	*capacity = 2 * (used + n);
	array = reallocarray(array, *capacity, element);
	if (array == NULL)
		err(ARGS_FAILED, NULL);
	return array;
}

/* The ids may move while they are read: pointers are set at the end. */
static void
set_pointers(struct load *l)
{
	size_t i, at = 0;

	for (i = 0; i < l->n; i++) {
		l->requests[i].ids = l->ids + at;
		at += l->requests[i].n_ids;
	}
}

void
load_read(struct load *l, FILE *file, const char *name)
{
	struct trace *t = trace_new(file, name);
	struct trace_request r;
	size_t requests = 0, ids = 0;
	int result;

	memset(l, 0, sizeof(*l));
	if (t == NULL)
		err(ARGS_FAILED, NULL);
	while ((result = trace_next(t, &r)) == 1) {
		if (r.tokens == 0)
			continue;
		l->requests = load_room(l->requests, &requests, l->n, 1,
		    sizeof(r));
		l->ids = load_room(l->ids, &ids, l->n_ids, r.n_ids,
		    sizeof(*l->ids));
		l->requests[l->n++] = r;
		memcpy(l->ids + l->n_ids, r.ids, r.n_ids * sizeof(*l->ids));
		l->n_ids += r.n_ids;
		l->span_ns = load_arrival(&r);
		if (r.tokens > l->most_tokens)
			l->most_tokens = r.tokens;
	}
	if (result != 0)
		errx(ARGS_FAILED, "%s", trace_error(t));
	if (l->n == 0)
		errx(ARGS_FAILED, "%s: no requests with tokens", name);
	set_pointers(l);
	trace_free(t);
}

void
load_free(struct load *l)
{
	free(l->requests);
	free(l->ids);
}
