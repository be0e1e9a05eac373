/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roles.h - disaggregated serving: one server prefills the prompt of a request,
 * and another decodes.
 *
 *   role      chosen for requests   prefills for others
 *   both      yes                   yes
 *   decode    yes                   no; others prefill for it
 *   prefill   no                    yes
 *
 * A server is chosen as always. If it decodes, and lacks more than fleet.split
 * tokens of the prompt, one that prefills is chosen, too.
 */
#ifndef KVROUTE_ROLES_H
#define KVROUTE_ROLES_H

#include "known.h"

/* As the library has it: one that decodes prefills short prompts. */
struct kvr_worker roles_worker(const struct server_facts *told);
/* enum kvr_role, as configured. */
uint32_t roles_of(const struct known *known);
/* Once the proxy has set their states: targets leave out pure prefillers. */
void roles_mark(struct fleet *f, int64_t now);
/* May a request be split? */
bool roles_split(const struct fleet *f);
/* Does server i leave the prompt of this decision to another? */
bool roles_leaves(const struct fleet *f, size_t i,
    const struct kvr_decision *d);
/*
 * Collects the workers that may prefill in f->allowed, all but those of the
 * server of that name, and returns their number.
 */
size_t roles_allow(struct fleet *f, const void *name, size_t len);
/*
 * Books the prompt at the best of the n workers, which prefills it; the prompt
 * is allowed these alone then. False: none of them does.
 */
bool roles_book(struct kvr *k, struct kvr_prompt *prompt,
    const struct kvr_request *target, const uint64_t *workers, size_t n,
    int64_t now, struct kvr_decision *d);
/* A request with it has failed, by an error that may be of either server. */
void roles_failed(struct fleet *f, const void *name, size_t len, int64_t now);

#endif
