/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text.h - builds one line of text from words, numbers and names. No stdio, no
 * locale, no allocation.
 */
#ifndef KVR_TEXT_H
#define KVR_TEXT_H

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TEXT_LINE_MAX = 2048, /* bytes: 5 for each of a name, and the rest */
	DIGITS_MAX = 20  /* of a uint64_t */
};

struct line {
	size_t length;
	char text[TEXT_LINE_MAX];
};

static inline void
add_char(struct line *l, char c)
{
	if (l->length < sizeof(l->text))
		l->text[l->length++] = c;
}

static inline void
add_text(struct line *l, const char *text)
{
	while (*text != '\0')
		add_char(l, *text++);
}

/* value / 10^decimals, without trailing zeros in the fraction. */
static inline void
add_decimal(struct line *l, uint64_t value, uint32_t decimals)
{
	char digits[DIGITS_MAX];
	uint32_t n = 0;

	while (decimals > 0 && value % 10 == 0) {
		value /= 10;
		decimals--;
	}
	for (; value > 0 || n <= decimals; value /= 10)
		digits[n++] = (char)('0' + value % 10);
	while (n > 0) {
		if (n == decimals)
			add_char(l, '.');
		add_char(l, digits[--n]);
	}
}

/*
 * Below 1e9 to six decimals, below 1e15 to an integer, above to 15 digits:
 * never more digits than a double has. The library's own numbers are finite and
 * not negative; a damaged region may contain any.
 */
static inline void
add_real(struct line *l, double x)
{
	uint64_t tens = 0;

	if (x != x || x > DBL_MAX || x < -DBL_MAX) {
		add_text(l, x != x ? "NaN" : x > 0 ? "+Inf" : "-Inf");
		return;
	}
	if (x < 0) {
		add_char(l, '-');
		x = -x;
	}
	if (x < 1e9) {
		add_decimal(l, (uint64_t)(x * 1e6 + 0.5), 6);
		return;
	}
	for (; x >= 1e15; x /= 10)
		tens++;
	add_decimal(l, (uint64_t)(x + 0.5), 0);
	if (tens > 0) {
		add_char(l, 'e');
		add_decimal(l, tens, 0);
	}
}

/* -------------------------------------------------------------- labels --- */

/* Length of the UTF-8 character that begins here; 0 if it is invalid. */
static inline size_t
utf8_length(const unsigned char *s, size_t left)
{
	unsigned char least = 0x80, most = 0xbf;
	size_t n, i;

	if (s[0] < 0x80)
		return 1;
	n = s[0] < 0xc2 || s[0] > 0xf4 ? 0 : s[0] < 0xe0 ? 2
	    : s[0] < 0xf0 ? 3 : 4;
	if (n > left)
		return 0;
	/* no overlong form, no surrogate, nothing above U+10FFFF */
	if (s[0] == 0xe0)
		least = 0xa0;
	else if (s[0] == 0xed)
		most = 0x9f;
	else if (s[0] == 0xf0)
		least = 0x90;
	else if (s[0] == 0xf4)
		most = 0x8f;
	for (i = 1; i < n; i++, least = 0x80, most = 0xbf)
		if (s[i] < least || s[i] > most)
			return 0;
	return n;
}

static inline void
add_hex(struct line *l, unsigned char c)
{
	static const char digits[] = "0123456789abcdef";

	add_text(l, "\\\\x");
	add_char(l, digits[c >> 4]);
	add_char(l, digits[c & 15]);
}

/* A character that needs no escape other than a backslash. */
static inline void
add_letter(struct line *l, const unsigned char *letter, size_t length)
{
	size_t i;

	if (letter[0] == '\\' || letter[0] == '"')
		add_char(l, '\\');
	for (i = 0; i < length; i++)
		add_char(l, (char)letter[i]);
}

/*
 * Label values are UTF-8. Invalid bytes and control characters are shown as
 * \xHH, and so is a backslash before an x, or two names could look the same.
 * The format escapes a backslash as \\ and a newline as \n.
 */
static inline void
add_name(struct line *l, const unsigned char *name, size_t length)
{
	size_t i, n;

	for (i = 0; i < length; i += n) {
		const unsigned char *c = name + i;
		bool before_x = i + 1 < length && c[1] == 'x';

		n = utf8_length(c, length - i);
		if (*c == '\n') {
			add_text(l, "\\n");
		} else if (n == 0 || *c < ' ' || *c == 0x7f ||
		    (*c == '\\' && before_x)) {
			add_hex(l, *c);
			n = 1;
		} else {
			add_letter(l, c, n);
		}
	}
}

#endif
