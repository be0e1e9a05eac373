/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * batch.h - events being read, and the arrays that they refer to.
 *
 * An event is begun, filled, and then ended or dropped; dropping takes back its
 * items in the arrays. These grow by the items that were really there.
 */
#ifndef KVROUTE_BATCH_H
#define KVROUTE_BATCH_H

#include "event.h"

#include <stdbool.h>

struct batch_array {
	void *items;
	size_t n, room;
};

/* All 0: empty. */
struct batch {
	struct batch_array events, hashes, tokens, locals, text;
	uint64_t time, publisher, sequence;
	struct event now;  /* being filled */
	size_t text_began; /* where its text does */
};

/* Empties it, but keeps its room, unless that is large. */
void batch_clear(struct batch *b);
void batch_free(struct batch *b);
void batch_begin(struct batch *b);
/* false: no memory, or more than one span can have. */
bool batch_hash(struct batch *b, uint64_t hash);
bool batch_token(struct batch *b, uint32_t token);
/* Room for n more tokens, to be filled or dropped. NULL: no memory. */
uint32_t *batch_tokens(struct batch *b, size_t n);
bool batch_local(struct batch *b, uint64_t local);
bool batch_text(struct batch *b, const char *text, size_t n,
    struct event_span *span);
/* The event being filled keeps its first n tokens or locals. */
void batch_cut_tokens(struct batch *b, uint64_t n);
void batch_cut_locals(struct batch *b, uint64_t n);
bool batch_end(struct batch *b);
void batch_drop(struct batch *b);
void batch_show(const struct batch *b, struct event_batch *out);

#endif
