/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * roots.h - of which tenants the roots of chains are, and their shares.
 *
 * A sequence hash does not tell its tenant. What this router's own records say
 * and what peers tell is kept here; a share that a request of this router has
 * said counts before what others say of theirs.
 *
 * Memory is bounded: what was neither said nor asked for of late is forgotten.
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
/* share 0: nothing is said of it. */
void roots_own(struct roots *t, uint64_t root, uint64_t tenant,
    uint32_t share);
void roots_told(struct roots *t, uint64_t root, uint64_t tenant,
    uint64_t share);
/* false: no tenant is known of this root. *share 0: none was said. */
bool roots_get(struct roots *t, uint64_t root, uint64_t *tenant,
    uint32_t *share);
/* Says to a prompt of sequence hashes what is known of its tenant. */
void roots_say(struct roots *t, uint64_t root, struct kvr_prompt *p);

#endif
