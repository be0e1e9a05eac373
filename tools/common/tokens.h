/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tokens.h - generates tokens for a trace that has only hash ids.
 *
 * Token j of the 512 that hash id h stands for is a mix of h * 512 + j (modulo
 * 2^64), 17 bits wide, like the vocabulary of current models. With the same
 * formula, replays of different routers can be compared decision by decision.
 */
#ifndef KVROUTE_TOKENS_H
#define KVROUTE_TOKENS_H

#include <stddef.h>
#include <stdint.h>

struct trace_request;

uint32_t token_of(uint64_t id, uint64_t offset);

/* A buffer reused for each prompt; initialize with zeros. */
struct tokens {
	uint32_t *tokens;
	size_t capacity;
};
/* Writes the r->tokens tokens of r's prompt. -1: out of memory. */
int tokens_make(struct tokens *b, const struct trace_request *r);
void tokens_free(struct tokens *b);

#endif
