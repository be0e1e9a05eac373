/* SPDX-License-Identifier: BSD-2-Clause */
/* say.c - see say.h. */
#include "say.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

static const char *
describe_state(const char *name)
{
	return strcmp(name, "degraded") == 0 ? "degraded: what its cache "
	    "holds is predicted until it clears it or restarts" :
	    strcmp(name, "unusable") == 0 ? "unusable: nothing of what its "
	    "engine says can be used" :
	    name;
}

void
say_state(const char *region, const struct conf_stream *stream,
    struct tell_state *said, struct tell_state now)
{
	const char *was = said->name == NULL ? "off" : said->name;

	if (strcmp(was, now.name) == 0 && said->reason == now.reason)
		return;
	*said = now;
	if (now.reason != NULL)
		say(region, stream, "%s (%s: %s)", describe_state(now.name),
		    now.reason, tell_reason(now.reason));
	else
		say(region, stream, "%s", describe_state(now.name));
}

void
say_pages(const char *region, const struct conf_stream *stream,
    struct target *target)
{
	if (target->pages.forgotten == 0 || target->forgot)
		return;
	target->forgot = true;
	say(region, stream, "its pages take more memory than \"pages_mb\": "
	    "all were forgotten, and what is stored behind them is unknown");
}

void
say_why(const char *region, const struct conf_stream *stream,
    const char *endpoint, const char **said, const char *why)
{
	if (why != NULL && (*said == NULL || strcmp(*said, why) != 0))
		say(region, stream, "%s at %s yet; it is tried again", why,
		    endpoint);
	*said = why;
}
