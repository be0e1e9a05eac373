/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways_avx512.c - body_string.c as with AVX-512, on any processor: each of its
 * instructions is a loop over 64 bytes here. See ways.h.
 */
#define string_plain wide_plain
#define string_decode wide_decode
#define string_way wide_way
#define body_avx512 wide_cpu
#define body_avx512_plain wide_blocks_plain
#define body_avx512_decode wide_blocks_decode

#include "body_string.c"

#ifdef BODY_AVX512

#include <immintrin.h>

struct wide {
	unsigned char at[BLOCK];
};

/* `i` is the place of a byte, and of its bit in a mask. */
#define EACH_BYTE size_t i = 0; i < BLOCK; i++
#define BIT(mask) (((mask) >> i & 1) != 0)

#define WIDE_BYTES(name, parameters, byte)	\
	static inline struct wide		\
	name parameters				\
	{					\
		struct wide to;			\
						\
		for (EACH_BYTE)			\
			to.at[i] = (unsigned char)(byte); \
		return to;			\
	}

#define WIDE_MASK(name, condition)		\
	static inline uint64_t			\
	name(struct wide a, struct wide b)	\
	{					\
		uint64_t mask = 0;		\
						\
		for (EACH_BYTE)			\
			mask |= (uint64_t)(condition) << i; \
		return mask;			\
	}

WIDE_BYTES(wide_set1, (char c), c)
WIDE_BYTES(wide_zero, (void), 0)
WIDE_BYTES(wide_or, (struct wide a, struct wide b), a.at[i] | b.at[i])
WIDE_BYTES(wide_and, (struct wide a, struct wide b), a.at[i] & b.at[i])
WIDE_BYTES(wide_sub, (struct wide a, struct wide b), a.at[i] - b.at[i])
WIDE_BYTES(wide_mask_sub, (struct wide not, uint64_t m, struct wide a,
    struct wide b), BIT(m) ? a.at[i] - b.at[i] : not.at[i])
WIDE_BYTES(wide_mask_mov, (struct wide not, uint64_t m, struct wide a),
    BIT(m) ? a.at[i] : not.at[i])
WIDE_BYTES(wide_permute, (struct wide from, struct wide a),
    a.at[from.at[i] % 64])
WIDE_BYTES(wide_permute2, (struct wide a, struct wide from, struct wide b),
    (from.at[i] & 64) != 0 ? b.at[from.at[i] % 64] : a.at[from.at[i] % 64])
/* Of words of 16 bits, the first byte being the lower one. */
WIDE_BYTES(wide_slli16, (struct wide a, int by), i % 2 == 0 ? a.at[i] << by :
    (a.at[i] << 8 | a.at[i - 1]) << by >> 8)
WIDE_BYTES(wide_srli16, (struct wide a, int by), i % 2 == 1 ? a.at[i] >> by :
    (a.at[i + 1] << 8 | a.at[i]) >> by)
WIDE_MASK(wide_eq, a.at[i] == b.at[i])
WIDE_MASK(wide_ge, a.at[i] >= b.at[i])
WIDE_MASK(wide_le, a.at[i] <= b.at[i])
WIDE_MASK(wide_lt, a.at[i] < b.at[i])
WIDE_MASK(wide_test, (a.at[i] & b.at[i]) != 0)
WIDE_MASK(wide_testn, (a.at[i] & b.at[i]) == 0)

static inline uint64_t
wide_high(struct wide a)
{
	return wide_ge(a, wide_set1((char)0x80));
}

static inline struct wide
wide_load(const void *from)
{
	struct wide to;

	memcpy(to.at, from, BLOCK);
	return to;
}

/* Bytes without their bit are not touched. */
static inline struct wide
wide_mask_load(uint64_t m, const unsigned char *from)
{
	struct wide to = wide_zero();

	for (EACH_BYTE) {
		if (BIT(m))
			to.at[i] = from[i];
	}
	return to;
}

static inline void
wide_store(void *to, struct wide a)
{
	memcpy(to, a.at, BLOCK);
}

static inline struct wide
wide_compress(uint64_t m, struct wide a)
{
	struct wide to = wide_zero();
	size_t n = 0;

	for (EACH_BYTE) {
		if (BIT(m))
			to.at[n++] = a.at[i];
	}
	return to;
}

/* Macros of some compilers. */
#undef _mm512_slli_epi16
#undef _mm512_srli_epi16
#undef _mm512_cmpeq_epi8_mask
#undef _mm512_cmpge_epu8_mask
#undef _mm512_cmple_epu8_mask
#undef _mm512_cmplt_epu8_mask
#define __builtin_cpu_supports(feature) 1
#define WIDE
#define __m512i struct wide
#define _mm512_set1_epi8 wide_set1
#define _mm512_setzero_si512 wide_zero
#define _mm512_or_si512 wide_or
#define _mm512_and_si512 wide_and
#define _mm512_sub_epi8 wide_sub
#define _mm512_mask_sub_epi8 wide_mask_sub
#define _mm512_mask_mov_epi8 wide_mask_mov
#define _mm512_permutexvar_epi8 wide_permute
#define _mm512_permutex2var_epi8 wide_permute2
#define _mm512_slli_epi16 wide_slli16
#define _mm512_srli_epi16 wide_srli16
#define _mm512_cmpeq_epi8_mask wide_eq
#define _mm512_cmpge_epu8_mask wide_ge
#define _mm512_cmple_epu8_mask wide_le
#define _mm512_cmplt_epu8_mask wide_lt
#define _mm512_test_epi8_mask wide_test
#define _mm512_testn_epi8_mask wide_testn
#define _mm512_movepi8_mask wide_high
#define _mm512_loadu_si512 wide_load
#define _mm512_maskz_loadu_epi8 wide_mask_load
#define _mm512_storeu_si512 wide_store
#define _mm512_maskz_compress_epi8 wide_compress

#include "body_avx512.c"

#endif
