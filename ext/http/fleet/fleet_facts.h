/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet_facts.h - the facts of a fleet for a report, see status.h. All of them
 * are copied: its servers may go before the report is written.
 */
#ifndef KVROUTE_FLEET_FACTS_H
#define KVROUTE_FLEET_FACTS_H

#include "members.h"
#include "places.h"
#include "status.h"

struct fleet_facts {
	struct counters counters;
	struct status_load *loads;
	struct status_health *healths;
	struct status_name *asked;
	uint64_t *left;
	char *names;
};

/*
 * Sets what *up has of the fleet: all but its name, options, cost and method.
 * polls: the fleet that has the loads, maybe the same; m: NULL, or those that
 * have left. False: no memory, and nothing is to be freed.
 */
bool fleet_facts_take(struct fleet_facts *to, struct status_upstream *up,
    const struct fleet *f, const struct fleet *polls, const struct places *p,
    const struct members *m, int64_t now);
void fleet_facts_free(struct fleet_facts *of);

#endif
