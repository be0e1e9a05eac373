/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * markup.h - text and numbers for HTML and SVG.
 *
 * What comes from outside (a file's name, for instance) may hold anything.
 * Here it becomes text that no parser takes for markup, in UTF-8, of
 * characters that XML allows; what is none of them becomes U+FFFD.
 */
#ifndef KVROUTE_MARKUP_H
#define KVROUTE_MARKUP_H

#include <stdio.h>

void markup_text(FILE *f, const char *text);
/* What printf would write, as text. */
void markup_printf(FILE *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A blank at which no line is broken. */
#define MARKUP_BLANK "\xc2\xa0"

/* A number as people read it; to be used at once: number_short(n).text. */
struct number {
	char text[32];
};
/* 0.25, 950, 1.2k, 20k, 1.5M */
struct number number_short(double value);
/* 1,234,567.8 with that many decimals */
struct number number_full(double value, int decimals);
/* 250 us, 20 ms, 1.5 s, 12 s; of so many seconds */
struct number number_seconds(double value);
/* 25 % */
struct number number_percent(double value);

#endif
