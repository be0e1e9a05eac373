/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate_times.c - see simulate_times.h. */
#include "simulate_times.h"

#include <stddef.h>
#include <stdlib.h>

int
times_make(struct times *t, uint32_t n)
{
	size_t i;

	for (t->leaves = 1; t->leaves < n; t->leaves *= 2)
		;
	t->least = calloc((size_t)2 * t->leaves, sizeof(*t->least));
	if (t->least == NULL)
		return -1;
	for (i = 0; i < (size_t)2 * t->leaves; i++)
		t->least[i] = TIMES_NEVER;
	return 0;
}

void
times_free(struct times *t)
{
	free(t->least);
	t->least = NULL;
}

/* Updates ancestors up to the first that does not change. */
void
times_set(struct times *t, uint32_t i, int64_t at)
{
	uint32_t node = t->leaves + i;
	int64_t *least = t->least, lesser;

	least[node] = at;
	for (node /= 2; node > 0; node /= 2) {
		lesser = least[2 * node] <= least[2 * node + 1] ?
		    least[2 * node] : least[2 * node + 1];
		if (least[node] == lesser)
			break;
		least[node] = lesser;
	}
}

int64_t
times_get(const struct times *t, uint32_t i)
{
	return t->least[t->leaves + i];
}

int64_t
times_least(const struct times *t)
{
	return t->least[1];
}

uint32_t
times_first(const struct times *t)
{
	uint32_t node = 1;

	while (node < t->leaves) {
		node *= 2;
		node += t->least[node] > t->least[node + 1];
	}
	return node - t->leaves;
}
