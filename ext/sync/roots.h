/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roots.h - the tenants of the roots of chains, and their shares.
 *
 * A sequence hash does not show its tenant. The tenants in the records of this
 * router and of peers are kept here; a share in a request of this router counts
 * before the shares of others.
 *
 * Memory is bounded: items that were not used of late are forgotten.
 */
#ifndef KVROUTE_ROOTS_H
#define KVROUTE_ROOTS_H

#include <kvroute.h>

#include <stdbool.h>

enum { ROOTS_KNOWN = 1 << 14 }; /* roots; tenants with a share: two such */

struct roots;

/* NULL: no memory. */
struct roots *roots_new(void);
void roots_free(struct roots *t);
/* share 0: it is not given. */
void roots_own(struct roots *t, uint64_t root, uint64_t tenant,
    uint32_t share);
void roots_told(struct roots *t, uint64_t root, uint64_t tenant,
    uint64_t share);
/* false: no tenant is known of this root. *share 0: it was not given. */
bool roots_get(struct roots *t, uint64_t root, uint64_t *tenant,
    uint32_t *share);
/* Sets the tenant of a prompt of sequence hashes, if it is known. */
void roots_say(struct roots *t, uint64_t root, struct kvr_prompt *p);

#endif
