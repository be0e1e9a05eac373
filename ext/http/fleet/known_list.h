/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_list.h - the list of servers is made anew when they change; the record
 * of a server that stays goes on.
 *
 *   the proxy fills known[0..n - 1]: name, weight, facts; backups come last
 *   known_list_fill   keys, places of ids, and room for choices
 *   known_list_keep   ids, health, polls of servers that the fleet has already
 *   known_list_take   the fleet has the new list; the old one is freed
 */
#ifndef KVROUTE_KNOWN_LIST_H
#define KVROUTE_KNOWN_LIST_H

#include "known.h"

/* All 0 at first. */
struct known_list {
	struct known *known;    /* by calloc */
	size_t n, n_first;
	uint64_t *allowed;
	struct health **judged;
};

/* False: no memory. */
bool known_list_fill(struct known_list *l);
void known_list_free(struct known_list *l);
void known_list_keep(struct known_list *l, struct fleet *f);
void known_list_take(struct known_list *l, struct fleet *f);
/*
 * The fleet has no list any longer. The polls of its servers have been freed.
 */
void known_list_leave(struct fleet *f);

#endif
