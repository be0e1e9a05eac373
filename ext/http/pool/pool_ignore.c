/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_ignore.c - see pool_ignore.h. */
#include "pool_ignore.h"

#include <string.h>

enum { FLAGS = REG_EXTENDED | REG_NOSUB };

/* A body asks no further than that. */
enum { LINE_BYTES = 16384 };

/* Counts of repetitions take memory without a bound, references time. */
static bool
is_bounded(const char *expression)
{
	const char *at;

	for (at = expression; *at != '\0'; at++)
		if (*at == '{' || (*at == '\\' && at[1] >= '0' &&
		    at[1] <= '9'))
			return false;
	return true;
}

bool
ignore_check(const char *expression)
{
	regex_t compiled;

	if (!is_bounded(expression) ||
	    regcomp(&compiled, expression, FLAGS) != 0)
		return false;
	regfree(&compiled);
	return true;
}

bool
ignore_begin(struct kvh *h)
{
	if (h->options.ignore[0] == '\0')
		return true;
	h->ignores = regcomp(&h->ignored, h->options.ignore, FLAGS) == 0;
	return h->ignores;
}

void
ignore_end(struct kvh *h)
{
	if (h->ignores)
		regfree(&h->ignored);
}

/* Without memory the line counts. */
bool
ignore_line(void *expression, const char *line, size_t n)
{
	char text[LINE_BYTES + 1];

	if (n > LINE_BYTES)
		n = LINE_BYTES;
	memcpy(text, line, n);
	text[n] = '\0';
	return regexec(expression, text, 0, NULL, 0) == 0;
}
