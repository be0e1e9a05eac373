/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.c - the parts of a region, and how each is emptied, recovered, checked
 * and mended: a row a part.
 *
 * A part that has a new field in the region joins the table here, so no call
 * can forget it. The order matters: limits and names of workers are mended
 * before the slots, which are settled by them.
 *
 *	empty     by a call, a clock that is set back, another boot
 *	recover   after the death of a writer, and damage
 *	sound     for kvr_check and each attach; the index itself is check.c's
 *	mend      one that is not sound; figures that are counted are
 *	          check_figures.c's
 */
#include "parts.h"

#include "affinity.h"
#include "event.h"
#include "journal.h"
#include "observed.h"
#include "policy.h"
#include "pressure.h"
#include "rate.h"
#include "trust.h"
#include "worker.h"

static void
event_mend(struct kvr *k)
{
	if (!event_sound(k))
		event_recover(k);
}

/* The area is the caller's; the end of its last line is nobody's. */
static bool
user_sound(const struct kvr *k)
{
	size_t bytes = (size_t)k->layout.user_bytes;

	return struct_known(k->user, (bytes + CELL - 1) / CELL * CELL, bytes);
}

static void
user_mend(struct kvr *k)
{
	size_t bytes = (size_t)k->layout.user_bytes;

	memset((char *)k->user + bytes, 0, (CELL - bytes % CELL) % CELL);
}

const struct part parts[PARTS] = {
	/* limits, and the policy: durable */
	{ NULL, region_limits_recover, region_limits_sound,
	    region_limits_recover },
	{ NULL, policy_recover, policy_sound, policy_recover },
	/* index, leases, loads */
	{ region_empty, region_empty, NULL, NULL },
	/* speeds of workers */
	{ rate_recover, rate_recover, rate_sane, rate_recover },
	/* names of workers */
	{ NULL, worker_recover, NULL, NULL },
	/* streams of events, and aliases */
	{ event_emptied, event_recover, event_sound, event_mend },
	/* learnt capacities */
	{ NULL, trust_recover, trust_sane, trust_recover },
	/* slots of workers */
	{ NULL, worker_settle, NULL, NULL },
	/* inserted and observed tokens, which region_empty clears */
	{ NULL, NULL, pressure_sane, pressure_recover },
	{ NULL, NULL, observed_sane, observed_recover },
	/* sessions */
	{ affinity_empty, affinity_recover, affinity_sound, affinity_recover },
	/* the caller's area: nothing of it is emptied */
	{ NULL, user_mend, user_sound, user_mend },
	/* the journal: last, a record that all is empty */
	{ journal_clear, journal_clear, journal_sound, journal_recover }
};

void
parts_empty(struct kvr *k, int64_t clock)
{
	size_t i;

	write_once(k->region->clock, clock);
	for (i = 0; i < PARTS; i++)
		if (parts[i].empty != NULL)
			parts[i].empty(k);
}

void
parts_recover(struct kvr *k)
{
	size_t i;

	for (i = 0; i < PARTS; i++)
		if (parts[i].recover != NULL)
			parts[i].recover(k);
}

bool
parts_sound(const struct kvr *k)
{
	size_t i;

	for (i = 0; i < PARTS; i++)
		if (parts[i].sound != NULL && !parts[i].sound(k))
			return false;
	return true;
}

void
parts_mend(struct kvr *k)
{
	size_t i;

	for (i = 0; i < PARTS; i++)
		if (parts[i].mend != NULL)
			parts[i].mend(k);
}
