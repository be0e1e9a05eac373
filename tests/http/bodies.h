/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bodies.h - feeds bodies in pieces and returns comparable results: for
 * test_body.c, test_body_bad.c and fuzz_body.c.
 *
 * Blocks are one byte long here, so that the sequence hash of block i stands
 * for the first i + 1 bytes of the prompt: two prompts are equal if count and
 * last hash are, and one begins another if its last hash is found in it.
 */
#ifndef KVR_BODIES_H
#define KVR_BODIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "body.h"
#include "kvroute.h"

/* The cuts of a body. */
struct pieces {
	size_t first;    /* length of the first piece; 0: like the others */
	size_t step;     /* of the others; 0: all the rest */
	uint64_t random; /* other than 0: lengths drawn from it */
	bool more;       /* body_cut at the end */
	bool later;      /* the prompt is made by body_prompt */
};

struct taken {
	enum body_outcome outcome;
	struct body_facts facts; /* model: of `name` */
	char name[BODY_NAME_MAX];
	char id[BODY_IDS][BODY_ID_MAX]; /* likewise */
	struct kvr_scope scope;  /* salt and adapter */
	uint64_t units;
	uint64_t hash;           /* of the whole prompt; 0: empty */
};

/* A region of one-byte blocks; the same secret each time. */
struct kvr *bodies_region(void);

/* Each piece is a separate copy: reads beyond it are detected. */
void bodies_take(struct body *b, const struct kvr *k, struct kvr_prompt *p,
    enum endpoint endpoint, const void *text, size_t n,
    const struct pieces *pieces, struct taken *out);

/* The same by YAJL. Allocations must not fail. */
void bodies_take_yajl(struct body *b, const struct kvr *k,
    struct kvr_prompt *p, enum endpoint endpoint, const void *text, size_t n,
    bool more, struct taken *out);

bool bodies_equal(const struct taken *a, const struct taken *b);
/* The first with its prompt later: nothing else differs. */
bool bodies_later(const struct taken *later, const struct taken *now);
/* Does the prompt begin with the units of `other`? */
bool bodies_begins(const struct kvr_prompt *p, const struct taken *other);

#endif
