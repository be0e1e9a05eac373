/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_text.h - texts of users and tools.
 *
 * The texts are generated words, so that no two users send the same by chance.
 * They include numbers and letters outside ASCII, which engines and routers may
 * treat differently.
 */
#ifndef KVROUTE_CHATS_TEXT_H
#define KVROUTE_CHATS_TEXT_H

#include "rng.h"

#include <stddef.h>
#include <stdint.h>

/* Independent random numbers for each seed, user and kind of use. */
struct rng text_stream(uint64_t seed, uint64_t user, uint64_t kind);
/* Text of exactly `bytes` bytes, and the tail, to be freed. NULL: no memory. */
char *text_make(struct rng *r, size_t bytes, const char *tail);
/* One of n > 0: number i with a weight of 1/(i + 1) (Zipf). */
uint32_t text_pick(struct rng *r, uint32_t n);

#endif
