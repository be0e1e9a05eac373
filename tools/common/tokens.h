/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tokens.h - tokens for a trace that only has hash ids.
 *
 * Token j of the 512 that hash id h stands for is a mix of h * 512 + j (modulo
 * 2^64), 17 bits wide, as wide as the vocabulary of today's models. The same
 * formula everywhere makes replays of different routers comparable, decision
 * for decision.
 */
#ifndef KVROUTE_TOKENS_H
#define KVROUTE_TOKENS_H

#include <stddef.h>
#include <stdint.h>

struct trace_request;

uint32_t token_of(uint64_t id, uint64_t offset);

/* A buffer that is used again for each prompt; begin with all zero. */
struct tokens {
	uint32_t *tokens;
	size_t capacity;
};
/* Writes the r->tokens tokens of r's prompt. 0, or -1: no memory. */
int tokens_make(struct tokens *b, const struct trace_request *r);
void tokens_free(struct tokens *b);

#endif
