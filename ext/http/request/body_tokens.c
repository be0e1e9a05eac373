/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_tokens.c - reads prompts that are token ids: 4 bytes for each.
 *
 *   "prompt": [1, 15339, 1917, ...]    or [[1, 15339, ...], ...]
 *
 * A prompt may have a hundred thousand of them. json_reader.c takes a byte at a
 * time; this file takes rows of ids and commas, eight bytes at a time:
 *
 *   1  5  3  3  9  ,     1      number, comma, and a space or no space
 *   01 05 03 03 09 1c 10 01     less '0'; the first above 9 ends the number
 *   00 00 00 01 05 03 03 09     its digits at the end, after leading zeros
 *
 * json_reader.c reads all other forms, even a number of eight digits.
 */
#include "body_in.h"

#include "body_keys.h"

enum { LOOK = 16, ID = 4 }; /* bytes read for a number, written for an id */

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline void
write_id(unsigned char to[ID], uint32_t id)
{
	size_t i;

	for (i = 0; i < ID; i++)
		to[i] = (unsigned char)(id >> 8 * i);
}

/* A token is a 32-bit number, such as 1 or 1.0; others are UINT32_MAX. */
void
body_token(struct body *b, const char *digits, size_t n)
{
	const uint64_t number = body_whole_number(digits, n);
	unsigned char bytes[ID];

	write_id(bytes, number > UINT32_MAX ? UINT32_MAX : (uint32_t)number);
	body_put(b, bytes, sizeof(bytes));
	b->some = true;
}

/* Loads eight bytes, the first one lowest. */
static inline uint64_t
load_word(const unsigned char *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Joins neighbours three times. The first of the eight digits is lowest. */
static inline uint32_t
value_of(uint64_t digits)
{
	uint64_t twos = (digits * 10 + (digits >> 8)) &
	    UINT64_C(0x00ff00ff00ff00ff);
	uint64_t fours = (twos * 100 + (twos >> 16)) &
	    UINT64_C(0x0000ffff0000ffff);

	return (uint32_t)(fours * 10000 + (fours >> 32));
}

/* Returns 1 if a space follows the first comma; a row has it at all or none. */
static size_t
gap_of(const unsigned char *p)
{
	const unsigned char *comma = memchr(p, ',', LOOK - 1);

	return comma != NULL && comma[1] == ' ';
}

/*
 * Takes ids while `to` has room. Bit 4 alone, which digits have and a comma
 * lacks, gives the begin of the next number: so the processor need not wait for
 * the rest of this one.
 */
static const unsigned char *
take_row(const unsigned char *p, const unsigned char *end, unsigned char **to,
    const unsigned char *full)
{
	const size_t gap = end - p >= LOOK ? gap_of(p) : 0;
	uint64_t word, other, digits, bad;
	unsigned bits; /* of the digits */

	while (end - p >= LOOK && full - *to >= ID) {
		word = load_word(p);
		other = ~word & EACH(0x10);
		if (other == 0 || (other & 0x10) != 0)
			break;
		bits = (unsigned)__builtin_ctzll(other) - 4;
		digits = (word ^ EACH('0')) << (64 - bits);
		bad = (word >> bits & 0xff) ^ ',';
		bad |= ((digits + EACH(0x80 - 10)) | digits) & EACH(0x80);
		bad |= (bits > 8) & ((word & 0xff) == '0');
		if (bad != 0 || (gap > 0 && p[bits / 8 + 1] != ' '))
			break;
		write_id(*to, value_of(digits));
		*to += ID;
		p += bits / 8 + 1 + gap;
	}
	return p;
}

static bool
wants_tokens(const struct body *b)
{
	const enum value next = b->level[b->depth].value;

	return (next == IS_TOKEN || (next == IS_PROMPT && b->by_tokens)) &&
	    !b->closing;
}

size_t
body_tokens(void *context, const unsigned char *start, size_t n)
{
	struct body *b = context;
	const unsigned char *p = start, *before;
	unsigned char *to;

	if (!wants_tokens(b))
		return 0;
	do {
		if (STAGE_BYTES - b->staged < ID)
			body_flush(b);
		to = b->stage + b->staged;
		before = p;
		p = take_row(p, start + n, &to, b->stage + STAGE_BYTES);
		b->staged = (size_t)(to - b->stage);
	} while (p > before && !b->stopped);
	b->some |= p > start;
	return (size_t)(p - start);
}
