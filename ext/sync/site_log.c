/* SPDX-License-Identifier: BSD-2-Clause */
/* site_log.c - writes a line of a region to the log. */
#include "site.h"

#include <stdarg.h>
#include <stdio.h>

void
site_log(const struct site *s, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "kvroute-sync: %s: ", s->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}
