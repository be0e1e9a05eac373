/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * siphash.h - SipHash-2-4 with 128 bits: a MAC for short messages.
 *
 * By Aumasson and Bernstein, "SipHash: a fast short-input PRF". The library's
 * own hash is no MAC: enough of its results may give its key away.
 */
#ifndef KVROUTE_SIPHASH_H
#define KVROUTE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

enum { SIPHASH_BYTES = 16 };

struct siphash_key {
	uint64_t word[2];
};

/* Makes a key of 16 bytes, little endian. */
struct siphash_key siphash_key(const unsigned char *bytes);
void siphash(const struct siphash_key *key, const void *bytes, size_t n,
    unsigned char *out);

#endif
