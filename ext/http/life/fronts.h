/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fronts.h - the front of prompts.
 *
 * A line that differs in each request, ahead of all else, makes each prompt
 * unlike all others, for the engine's cache as for the index: nothing is
 * shared, and no number shows why. So some blocks of each long prompt are
 * looked up by their content alone, and by all that leads to them:
 *
 *   request 1   | nonce 17 | B1 | B2 | ... | Bi | ...
 *   request 2   | nonce 94 | B1 | B2 | ... | Bi | ...
 *                                            '-- content known, and never
 *                                                behind this front
 *
 * A prompt with several such blocks is counted as parted. A process keeps the
 * hashes of the latest few hundred prompts. A front of varying length moves the
 * blocks behind it: then only those with the same shift are found.
 */
#ifndef KVROUTE_FRONTS_H
#define KVROUTE_FRONTS_H

#include "known.h"

enum { FRONTS = 8192 };

/* All 0 at first. */
struct fronts {
	uint32_t seen[FRONTS];
	unsigned looked, parted; /* prompts of this window */
	bool warned;
};

/*
 * A prompt with this scope has come. Once half of the latest ones are parted, a
 * line of the fleet's log is made of it.
 */
void fronts_look(struct fronts *f, const struct fleet *fleet,
    const struct kvr_prompt *p, const struct kvr_scope *scope, void *log);

#endif
