/* SPDX-License-Identifier: BSD-2-Clause */
/* roles.c - see roles.h. */
#include "roles.h"

#define FAILED_NS INT64_C(10000000000) /* it is left alone for so long */

struct kvr_worker
roles_worker(const struct server_facts *told)
{
	struct kvr_worker worker = told->worker;

	if (worker.role == KVR_ROLE_DECODE)
		worker.role = KVR_ROLE_BOTH;
	return worker;
}

uint32_t
roles_of(const struct known *known)
{
	return known->facts != NULL ? known->facts->worker.role : KVR_ROLE_BOTH;
}

void
roles_mark(struct fleet *f, int64_t now)
{
	struct known *known, *end = f->known + f->n_known;
	uint32_t role;

	for (known = f->known; known < end; known++) {
		role = roles_of(known);
		known->prefills = role != KVR_ROLE_DECODE && !known->down &&
		    !known->full && !known->closed &&
		    now >= known->prefills_after &&
		    (known->usable || role == KVR_ROLE_PREFILL);
		if (role == KVR_ROLE_PREFILL)
			known->usable = known->full = known->hinted = false;
	}
}

bool
roles_split(const struct fleet *f)
{
	const struct known *known, *end = f->known + f->n_known;
	bool prefills = false, decodes = false;

	for (known = f->known; known < end; known++) {
		prefills |= known->prefills;
		decodes |= known->usable && roles_of(known) == KVR_ROLE_DECODE;
	}
	return prefills && decodes;
}

bool
roles_leaves(const struct fleet *f, size_t i, const struct kvr_decision *d)
{
	return i < f->n_known && roles_of(&f->known[i]) == KVR_ROLE_DECODE &&
	    d->prompt_tokens > d->overlap_tokens &&
	    d->prompt_tokens - d->overlap_tokens > f->split;
}

size_t
roles_allow(struct fleet *f, const void *name, size_t len)
{
	const struct known *known, *end = f->known + f->n_known;
	size_t n = 0;
	uint32_t rank;

	for (known = f->known; known < end; known++) {
		if (!known->prefills || known_is_called(known, name, len))
			continue;
		for (rank = 0; rank < known->ranks; rank++)
			if (known->ids[rank] != 0)
				f->allowed[n++] = known->ids[rank];
	}
	return n;
}

bool
roles_book(struct kvr *k, struct kvr_prompt *prompt,
    const struct kvr_request *target, const uint64_t *workers, size_t n,
    int64_t now, struct kvr_decision *d)
{
	struct kvr_request r = *target;

	r.stage = KVR_STAGE_PREFILL;
	/* A session is where it is decoded. */
	r.affinity = 0;
	return n > 0 && kvr_prompt_allow(prompt, workers, n) == KVR_OK &&
	    kvr_lease_open(k, prompt, &r, now, d) == KVR_OK;
}

void
roles_failed(struct fleet *f, const void *name, size_t len, int64_t now)
{
	const size_t i = known_find(f, name, len, f->n_known);

	if (i < f->n_known)
		f->known[i].prefills_after = now + FAILED_NS;
}
