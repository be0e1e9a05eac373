/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salts.h - salts a body as a proxy does, and looks at the result with YAJL,
 * which is independent of salt.c.
 */
#ifndef KVROUTE_SALTS_H
#define KVROUTE_SALTS_H

#include <stdbool.h>
#include <stddef.h>

#include "salt.h"

/* Reads it in pieces of `step` bytes, 0: whole. False: it is refused. */
bool salts_read(struct salt *s, const void *body, size_t n, size_t step);

/* The body without the client's salts. The caller frees it. */
unsigned char *salts_blank(const struct salt *s, const void *body, size_t n);

/* The body that is sent; NULL: the value is not UTF-8. The caller frees it. */
unsigned char *salts_apply(const struct salt *s, const void *body, size_t n,
    const void *value, size_t n_value, size_t *length);

/* The body as seen by YAJL. */
struct salts_seen {
	bool valid;              /* one whole object */
	size_t depth;            /* the deepest */
	size_t salts;            /* keys at its top that are the name */
	char value[64];          /* of the last of them, if a short string */
	size_t n_value;
	unsigned long long rest; /* digest of all other events */
};

struct salts_seen salts_look(const void *body, size_t n);

#endif
