/* SPDX-License-Identifier: BSD-2-Clause */
/* markup.c - see markup.h. */
#include "markup.h"

#include <bsd/string.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PRINTED_BYTES = 512, DECIMALS_MAX = 6 };

/* ---------------------------------------------------------------- text --- */

/* The length of a UTF-8 sequence, by its first byte; 0: invalid. */
static size_t
sequence_length(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* Decodes one character; false: invalid. */
static bool
markup_decode(const char *text, uint32_t *character, size_t *length)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = sequence_length((unsigned char)text[0]), i;
	uint32_t c;

	if (n == 0)
		return false;
	c = (unsigned char)text[0];
	c &= n == 1 ? 0x7fu : 0x7fu >> n;
	for (i = 1; i < n; i++) {
		unsigned char next = (unsigned char)text[i];

		if ((next & 0xc0) != 0x80)
			return false;
		c = c << 6 | (next & 0x3fu);
	}
	*character = c;
	*length = n;
	return c >= least[n];
}

/* Allowed in XML, and neither a control nor a direction override. */
static bool
is_plain(uint32_t c)
{
	if (c < 0x20)
		return c == '\t' || c == '\n';
	if (c >= 0x7f && c < 0xa0)
		return false;
	if ((c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return false; /* changes the direction of text */
	return (c < 0xd800 || c > 0xdfff) && c <= 0x10ffff &&
	    (c & 0xfffe) != 0xfffe;
}

void
markup_text(FILE *f, const char *text)
{
	uint32_t c;
	size_t n;

	for (; *text != '\0'; text += n) {
		if (!markup_decode(text, &c, &n)) {
			fputs("\xef\xbf\xbd", f);
			n = 1;
		} else if (c == '&')
			fputs("&amp;", f);
		else if (c == '<')
			fputs("&lt;", f);
		else if (c == '>')
			fputs("&gt;", f);
		else if (c == '"')
			fputs("&quot;", f);
		else if (c == '\'')
			fputs("&#39;", f);
		else if (is_plain(c))
			fwrite(text, 1, n, f);
		else
			fputs("\xef\xbf\xbd", f);
	}
}

void
markup_printf(FILE *f, const char *format, ...)
{
	char text[PRINTED_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	markup_text(f, text);
}

/* ------------------------------------------------------------- numbers --- */

/* Three significant digits, without trailing zeros. */
static void
round_off(char *to, size_t size, double value)
{
	double size_of = fabs(value);
	int decimals = size_of >= 99.95 || size_of < 1e-9 ? 0 :
	    size_of >= 9.995 ? 1 : size_of >= 0.9995 ? 2 : 3;
	size_t n;

	(void)snprintf(to, size, "%.*f", decimals, value);
	if (strchr(to, '.') == NULL)
		return;
	for (n = strlen(to); to[n - 1] == '0'; n--)
		to[n - 1] = '\0';
	if (to[n - 1] == '.')
		to[n - 1] = '\0';
}

static struct number
scaled(double value, double unit, const char *name)
{
	struct number n;

	round_off(n.text, sizeof(n.text), value / unit);
	strlcat(n.text, name, sizeof(n.text));
	return n;
}

struct number
number_short(double value)
{
	double size = fabs(value);

	if (size >= 999.5e6)
		return scaled(value, 1e9, "G");
	if (size >= 999.5e3)
		return scaled(value, 1e6, "M");
	return size >= 999.5 ? scaled(value, 1e3, "k") : scaled(value, 1, "");
}

struct number
number_seconds(double value)
{
	double size = fabs(value);

	if (size > 0 && size < 0.9995e-3)
		return scaled(value, 1e-6, MARKUP_BLANK "us");
	if (size > 0 && size < 0.9995)
		return scaled(value, 1e-3, MARKUP_BLANK "ms");
	return scaled(value, 1, MARKUP_BLANK "s");
}

struct number
number_percent(double value)
{
	return scaled(value, 1, MARKUP_BLANK "%");
}

struct number
number_full(double value, int decimals)
{
	struct number n = { "" };
	char digits[sizeof(n.text)];
	size_t whole, i, at = 0;

	if (decimals > DECIMALS_MAX)
		decimals = DECIMALS_MAX;
	if (!(fabs(value) < 1e15)) { /* does not fit */
		(void)snprintf(n.text, sizeof(n.text), "%.6g", value);
		return n;
	}
	(void)snprintf(digits, sizeof(digits), "%.*f", decimals, value);
	whole = strcspn(digits, ".");
	for (i = 0; digits[i] != '\0'; i++) {
		if (i > 0 && i < whole && (whole - i) % 3 == 0 &&
		    digits[i - 1] != '-')
			n.text[at++] = ',';
		n.text[at++] = digits[i];
	}
	n.text[at] = '\0';
	return n;
}
