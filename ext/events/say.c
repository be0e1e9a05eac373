/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c - see say.h. */
#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void
say(const char *region, const struct conf_stream *stream, const char *format,
    ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (stream != NULL)
		fprintf(stderr, "kvroute-events: %s: %s rank %" PRIu32 ": %s\n",
		    region, stream->worker, stream->rank, text);
	else if (region != NULL)
		fprintf(stderr, "kvroute-events: %s: %s\n", region, text);
	else
		fprintf(stderr, "kvroute-events: %s\n", text);
}
