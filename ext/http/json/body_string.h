/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_string.h - the strings of JSON: where one ends, and what it says.
 *
 * Nearly all bytes of a body are in strings, so this is the loop that counts.
 * It takes 64 bytes at a time, as four masks of 64 bits:
 *
 *   text       a  \  n  c3 a4 \  "  b  "  ,
 *   quote      .  .  .  .  .  .  1  .  1  .
 *   backslash  .  1  .  .  .  1  .  .  .  .
 *   control    .  .  .  .  .  .  .  .  .  .
 *   high       .  .  .  1  1  .  .  .  .  .
 *
 * A string is bytes of UTF-8 without control characters, and escapes. UTF-8 is
 * checked for its form alone: a first byte says how many others follow, which
 * all of ASCII, Latin and CJK text passes at the same speed. Overlong forms and
 * surrogates pass; they cannot look like a mark, which is the byte 0xFF.
 *
 * An escaped surrogate of which the other half is missing is not an error. What
 * a high one becomes depends on what follows: with any other `\u`, even that of
 * a letter, it is one character; with anything else it is '?'. A low one that
 * follows no high one becomes the three bytes of its number, ED Bx xx. YAJL
 * does the same, so prompts keep their hashes.
 */
#ifndef KVROUTE_BODY_STRING_H
#define KVROUTE_BODY_STRING_H

#include <stddef.h>

enum string_stop {
	STRING_QUOTE = 0, /* the string ends here */
	STRING_ESCAPE,    /* here is a backslash; of string_plain only */
	STRING_MORE,      /* the input ends, perhaps within a character */
	STRING_FULL,      /* no room; of string_decode only */
	STRING_BAD
};

enum {
	STRING_UNIT = 12,  /* the longest escape: a pair of surrogates */
	STRING_SLACK = 128, /* room is needed beyond what is written */
	STRING_ESCAPED = 6 /* the longest that string_escape makes */
};

/* How they are read here: "SSE2" or "C". */
const char *string_way(void);

/* The length of what needs no decoding, and why it ends there. */
size_t string_plain(const unsigned char *p, size_t n, enum string_stop *why);

/*
 * Decodes what precedes the quote into `to`, at most `room` bytes with the
 * slack, and returns how much of the input that took: whole characters and
 * escapes. What is left at STRING_MORE is less than STRING_UNIT bytes.
 */
size_t string_decode(const unsigned char *p, size_t n, unsigned char *to,
    size_t room, size_t *written, enum string_stop *why);

/* The escape of a quote, a backslash or a control character; its length. */
size_t string_escape(unsigned char c, unsigned char to[STRING_ESCAPED]);

#endif
