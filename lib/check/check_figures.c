/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_figures.c - the part of check.c for figures that follow from the rest:
 * counts, loads, copies, estimates. They are compared with a recount, and can
 * be replaced by it.
 */
#include "check_in.h"
#include "event_stream.h"
#include "order.h"
#include "parts.h"
#include "retain.h"
#include "tenant.h"
#include "worker.h"

/* --------------------------------------------------------------- check --- */

static bool
check_slot(const struct slot *p, const struct slot *sum)
{
	if (p->entries != sum->entries || p->held != sum->held ||
	    p->active != sum->active || p->leases != sum->leases ||
	    p->output != sum->output || p->anonymous != sum->anonymous ||
	    p->ahead != sum->ahead || p->silent != sum->silent ||
	    p->reading != sum->reading)
		return false;
	return p->prefill == sum->prefill + p->load_prefill &&
	    p->requests == sum->requests + p->load_requests &&
	    p->blocks == sum->active + sum->output + p->load_blocks;
}

static uint32_t
workers_in(const struct kvr *k)
{
	uint32_t i, workers = 0;

	for (i = 0; i < k->layout.slots; i++)
		workers += slot_in_use(k, i);
	return workers;
}

bool
check_figures(struct sums *s)
{
	const struct kvr *k = s->k;
	const struct counts *c = &k->region->counts;
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		if (!check_slot(slot_at(k, i), &s->slots[i]))
			return false;
	return k->region->workers == workers_in(k) &&
	    c->nodes == s->counts.nodes && c->entries == s->counts.entries &&
	    c->blocks == s->counts.blocks && c->held == s->counts.held &&
	    c->leases == s->counts.leases && parts_sound(k) &&
	    check_fleet(k, s->dp_groups) && check_tenant_figures(s);
}

/* ---------------------------------------------------------------- mend --- */

/* The external load of the slot has been summed. */
static void
mend_slot(struct slot *p, const struct slot *sum)
{
	put_once(p->entries, sum->entries);
	put_once(p->held, sum->held);
	put_once(p->active, sum->active);
	put_once(p->leases, sum->leases);
	put_once(p->output, sum->output);
	put_once(p->anonymous, sum->anonymous);
	put_once(p->ahead, sum->ahead);
	put_once(p->silent, sum->silent);
	put_once(p->reading, sum->reading);
	put_once(p->prefill, sum->prefill + p->load_prefill);
	put_once(p->requests, sum->requests + p->load_requests);
	put_once(p->blocks, sum->active + sum->output + p->load_blocks);
}

/* Sets flags of entries and leases that follow from their other fields. */
static void
mend_cells(const struct sums *s, struct kvr *k)
{
	uint32_t i;

	for (i = 1; i < k->layout.cells; i++) {
		struct entry *h = entry_at(k, i);
		const struct lease *l = lease_at(k, i);

		if (s->seen[i] == SEEN_ENTRY && !check_confirmed(h))
			write_once(h->flags, (uint8_t)(h->pins == 0
			    ? h->flags & ~ENTRY_UNCONFIRMED
			    : h->flags | ENTRY_UNCONFIRMED));
		if (s->seen[i] != SEEN_LEASE)
			continue;
		if ((l->flags & LEASE_PREFILLING) == 0)
			write_once(claim_at(k, l->claim)->prefill, UINT64_C(0));
		if (claim_at(k, l->claim)->tail > 1)
			write_once(claim_at(k, l->claim)->tail, 0);
	}
}

void
mend_figures(const struct sums *s, struct kvr *k)
{
	struct counts *c = &k->region->counts;
	uint32_t i;

	mend_cells(s, k);
	worker_mend(k);
	if (s->lost)
		event_recover(k);
	parts_mend(k);
	for (i = 0; i < k->layout.slots; i++)
		mend_slot(slot_at(k, i), &s->slots[i]);
	for (i = 0; i < k->layout.slots; i++) {
		if (slot_in_use(k, i)) {
			order_stack_mend(k, i);
			retain_decide(k, i);
		}
		load_recount(k, i);
	}
	put_once(k->region->workers, workers_in(k));
	put_once(c->nodes, s->counts.nodes);
	put_once(c->entries, s->counts.entries);
	put_once(c->blocks, s->counts.blocks);
	put_once(c->held, s->counts.held);
	put_once(c->leases, s->counts.leases);
	tenant_mend(k, s->tenant_cells);
}
