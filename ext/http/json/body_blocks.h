/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_blocks.h - shared by body_string.c and body_avx512.c: strings, a block
 * of 64 bytes at a time, and where one may end.
 */
#ifndef KVROUTE_BODY_BLOCKS_H
#define KVROUTE_BODY_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tests set these two, for the ways that this processor does not take. */
#if defined(__x86_64__) && !defined(BODY_WITHOUT_AVX512)
#define BODY_AVX512
#endif
#if defined(__SSE2__) && !defined(BODY_WITHOUT_SSE2)
#define BODY_SSE2
#endif

enum { BLOCK = 64 };

/* Where decoding is. */
struct way {
	const unsigned char *from;
	unsigned char *to;
};

/* What a backslash and this letter stand for; 0: another escape, or none. */
extern const unsigned char body_escaped[256];

/* How many bytes before p + n belong to a character that is not whole. */
size_t body_begun_by(const unsigned char *p, size_t n);

static inline size_t
body_begun(const unsigned char *p, size_t n)
{
	return n == 0 || p[n - 1] < 0x80 ? 0 : body_begun_by(p, n);
}

/* Returns to where the last character begins, if it is not whole. */
static inline struct way
way_back(struct way w, const unsigned char *start)
{
	size_t n = body_begun(start, (size_t)(w.from - start));

	return (struct way){ w.from - n, w.to - n };
}

/*
 * Where a byte is not what the first byte of its character wants: a mask.
 * first: bytes that begin a character of two bytes or more; three, four: of as
 * many. *owed are those of the next block that must follow.
 *
 *   text    c3 a4 61 e2 82 22        two, ASCII, three and cut short
 *   first    1  .  .  1  .  .
 *   wanted   .  1  .  .  1  1
 *   follows  .  1  .  .  1  .
 *   wrong    .  .  .  .  .  1
 */
static inline uint64_t
wrong_of(uint64_t high, uint64_t first, uint64_t three, uint64_t four,
    uint64_t none, uint64_t *owed)
{
	uint64_t wanted = *owed | first << 1 | three << 2 | four << 3;

	*owed = first >> 63 | three >> 62 | four >> 61;
	return (wanted ^ (high & ~first)) | none;
}

#ifdef BODY_AVX512
/* Has the processor what these need? */
bool body_avx512(void);
/* The length of text without anything to decode, up to a whole character. */
size_t body_avx512_plain(const unsigned char *p, size_t n);
/* Decodes up to what is no text and no escape, or a surrogate. */
struct way body_avx512_decode(struct way w, const unsigned char *end,
    const unsigned char *full);
#endif

#endif
