/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * markup.h - text and numbers for HTML and SVG.
 *
 * Untrusted strings (a file name, for instance) are escaped, so that no parser
 * reads them as markup. The result is UTF-8 with only the characters that XML
 * allows; anything else becomes U+FFFD.
 */
#ifndef KVROUTE_MARKUP_H
#define KVROUTE_MARKUP_H

#include <stdio.h>

void markup_text(FILE *f, const char *text);
/* Formats as printf and escapes the result. */
void markup_printf(FILE *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A no-break space. */
#define MARKUP_BLANK "\xc2\xa0"

/* A formatted number; use at once: number_short(n).text. */
struct number {
	char text[32];
};
/* 0.25, 950, 1.2k, 20k, 1.5M */
struct number number_short(double value);
/* 1,234,567.8 with so many decimals */
struct number number_full(double value, int decimals);
/* 250 us, 20 ms, 1.5 s, 12 s; value in seconds */
struct number number_seconds(double value);
/* 25 % */
struct number number_percent(double value);

#endif
