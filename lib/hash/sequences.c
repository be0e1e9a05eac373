/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sequences.c - a prompt of sequence hashes alone, as another router made it.
 *
 * The index asks a prompt for its root, its sequence hashes and its length, and
 * for nothing else, so these will do. Local hashes and the state of the chain
 * are not known: the prompt is closed but has not begun, and so can be neither
 * continued nor saved. If its first blocks are missing it is as one that was
 * resumed: see saved.c. The tenant, which is a part of the root, has to be
 * given beside.
 *
 *	            parent | hashes[0] ... hashes[n-1] |
 *	sequence    s[f-1] |   s[f]          s[f+n-1]  |    base = f - 1
 */
#include "prompt.h"

/* Units of a prompt: any sum over all leases stays small. */
#define UNITS_MAX (UINT64_C(1) << 40)

int
kvr_prompt_set_sequences(struct kvr_prompt *p, uint64_t parent, uint32_t first,
    const uint64_t *hashes, size_t n, uint64_t units)
{
	const uint64_t blocks = (uint64_t)first + n;
	const uint32_t before = first > 0;
	int e;

	if (p == NULL || (hashes == NULL && n > 0) || n > UINT32_MAX - 1 ||
	    blocks > UINT32_MAX - 1 || units > UNITS_MAX ||
	    blocks * p->rule.block_size > units)
		return KVR_EINVAL;
	if ((e = prompt_room(p, (uint32_t)n + before, 0)) != KVR_OK)
		return e;
	(void)kvr_prompt_begin(p, NULL);
	p->begun = 0;
	p->closed = 1;
	p->deferred = 0;
	p->resumed = before;
	p->first = first;
	p->base = first - before;
	p->root = parent;
	p->blocks = (uint32_t)blocks;
	p->units = units;
	p->tail_digest = 0;
	if (before)
		p->sequence[0] = parent;
	if (n > 0)
		memcpy(p->sequence + before, hashes, n * sizeof(*hashes));
	return KVR_OK;
}

int
kvr_prompt_set_tenant(struct kvr_prompt *p, uint64_t tenant, uint32_t share)
{
	if (p == NULL || share > KVR_SHARE_MAX || (tenant == 0 && share != 0))
		return KVR_EINVAL;
	if (p->begun || !p->closed)
		return KVR_ESTATE;
	p->scope.digest[KVR_SCOPE_TENANT] = tenant;
	p->share = share;
	return KVR_OK;
}
