/* SPDX-License-Identifier: BSD-2-Clause */
/* ways_portable.c - body_string.c in plain C; see ways.h. */
#define BODY_WITHOUT_SSE2
#define string_plain portable_plain
#define string_decode portable_decode
#define string_way portable_way
#define string_escape portable_escape

#include "body_string.c"
