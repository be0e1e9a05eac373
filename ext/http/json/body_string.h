/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_string.h - finds the end of a JSON string and decodes it.
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
 * checked for its form alone: each first byte must be followed by the number of
 * bytes that it announces. ASCII, Latin and CJK text pass this check at the
 * same speed. Overlong forms and surrogates pass; they cannot look like a mark,
 * which is the byte 0xFF.
 *
 * An escaped surrogate without its other half is not an error. A high one is
 * joined with any `\u` that follows, even that of a letter, into one character;
 * if something else follows, it becomes '?'. A low one that follows no high one
 * becomes the three bytes of its number, ED Bx xx. YAJL does the same, so
 * prompts keep their hashes.
 */
#ifndef KVROUTE_BODY_STRING_H
#define KVROUTE_BODY_STRING_H

#include <stddef.h>

enum string_stop {
	STRING_QUOTE = 0, /* the string ends here */
	STRING_ESCAPE,    /* a backslash is here; string_plain only */
	STRING_MORE,      /* the input ends, perhaps within a character */
	STRING_FULL,      /* `to` has no room; string_decode only */
	STRING_BAD
};

enum {
	STRING_UNIT = 12,   /* the longest escape: a pair of surrogates */
	STRING_SLACK = 128, /* room needed beyond the decoded bytes */
	STRING_ESCAPED = 6  /* the longest that string_escape makes */
};

/* Returns the code that this build uses: "SSE2" or "C". */
const char *string_way(void);

/* Returns how many bytes need no decoding, and in *why the reason to stop. */
size_t string_plain(const unsigned char *p, size_t n, enum string_stop *why);

/*
 * Decodes the text ahead of the quote into `to`, which has `room` bytes with
 * the slack. Returns the length of the input that was decoded, always whole
 * characters and escapes. At STRING_MORE less than STRING_UNIT bytes are left.
 */
size_t string_decode(const unsigned char *p, size_t n, unsigned char *to,
    size_t room, size_t *written, enum string_stop *why);

/* Escapes a quote, a backslash or a control character; returns the length. */
size_t string_escape(unsigned char c, unsigned char to[STRING_ESCAPED]);

#endif
