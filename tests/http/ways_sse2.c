/* SPDX-License-Identifier: BSD-2-Clause */
/* ways_sse2.c - body_string.c without AVX-512; see ways.h. */
#define BODY_WITHOUT_AVX512
#define string_plain sse2_plain
#define string_decode sse2_decode
#define string_way sse2_way

#include "body_string.c"
