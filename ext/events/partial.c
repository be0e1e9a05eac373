/* SPDX-License-Identifier: BSD-2-Clause */
/* partial.c - see partial.h. */
#include "partial.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, BUCKETS_LOG2 = 12 };

/* Free places have 0: of a block with that hash nothing is kept. */
static uint64_t *
bucket_of(const struct partial *p, uint64_t hash)
{
	const uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);

	return p->hashes + (mixed >> (64 - BUCKETS_LOG2)) * WAYS;
}

/* The place of a hash; NULL: none. */
static uint64_t *
find(const struct partial *p, uint64_t hash)
{
	uint64_t *bucket;
	int i;

	if (p->hashes == NULL || hash == 0)
		return NULL;
	bucket = bucket_of(p, hash);
	for (i = 0; i < WAYS; i++)
		if (bucket[i] == hash)
			return &bucket[i];
	return NULL;
}

bool
partial_add(struct partial *p, uint64_t hash)
{
	uint64_t *bucket;

	if (p->hashes == NULL)
		p->hashes = calloc(WAYS << BUCKETS_LOG2, sizeof(*p->hashes));
	if (p->hashes == NULL)
		return false;
	if (hash == 0 || find(p, hash) != NULL)
		return true;
	bucket = bucket_of(p, hash);
	memmove(bucket + 1, bucket, (WAYS - 1) * sizeof(*bucket));
	bucket[0] = hash;
	return true;
}

bool
partial_has(const struct partial *p, uint64_t hash)
{
	return find(p, hash) != NULL;
}

void
partial_take(struct partial *p, uint64_t hash)
{
	uint64_t *place = find(p, hash);

	if (place != NULL)
		*place = 0;
}

void
partial_free(struct partial *p)
{
	free(p->hashes);
	p->hashes = NULL;
}
