/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_record.c - records of leases and prompts for the journal.
 */
#include "lease_record.h"

#include "id.h"
#include "lease.h"
#include "load.h"

void
lease_record(const struct kvr *k, uint32_t lease, uint32_t kind, int64_t now,
    struct kvr_record *r)
{
	const struct lease *l = lease_at(k, lease);

	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->at = now;
	r->lease = id_of_lease(l->number);
	r->owner = l->owner;
	r->worker = lease_orphaned(k, l) ? 0 : worker_id(k, l->slot);
}

const uint64_t *
lease_record_prompt(const struct kvr_prompt *p, uint32_t from,
    struct kvr_record *r)
{
	if (from < p->first)
		from = p->first;
	if (from > p->blocks)
		from = p->blocks;
	r->first_block = from;
	r->blocks = p->blocks;
	r->hashes = p->blocks - from;
	r->parent = from == 0 ? p->root : *prompt_sequence(p, from - 1);
	r->units = p->units;
	r->tenant = prompt_tenant(p);
	return r->hashes > 0 ? prompt_sequence(p, from) : NULL;
}
