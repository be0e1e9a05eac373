/* SPDX-License-Identifier: BSD-2-Clause */
/* tokens.c - see tokens.h. */
#include "tokens.h"

#include "trace.h"

#include <stdlib.h>

uint32_t
token_of(uint64_t id, uint64_t offset)
{
	uint64_t z = id * TRACE_BLOCK + offset;

	z = (z + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0x9E3779B97F4A7C15);
	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	z ^= z >> 31;
	return (uint32_t)(z >> 47);
}

int
tokens_make(struct tokens *b, const struct trace_request *r)
{
	size_t i;

	if (r->tokens > b->capacity) {
		uint32_t *p = realloc(b->tokens,
		    r->n_ids * TRACE_BLOCK * sizeof(*p));

		if (p == NULL)
			return -1;
		b->tokens = p;
		b->capacity = r->n_ids * TRACE_BLOCK;
	}
	for (i = 0; i < r->tokens; i++)
		b->tokens[i] = token_of(r->ids[i / TRACE_BLOCK],
		    i % TRACE_BLOCK);
	return 0;
}

void
tokens_free(struct tokens *b)
{
	free(b->tokens);
	b->tokens = NULL;
	b->capacity = 0;
}
