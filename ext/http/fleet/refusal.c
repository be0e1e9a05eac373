/* SPDX-License-Identifier: BSD-2-Clause */
/* refusal.c - see refusal.h. */
#include "refusal.h"

#include "json_writer.h"

struct refusal
refusal_of(enum reason reason, bool late)
{
	switch (reason) {
	case REASON_QUEUE_FULL:
		return (struct refusal){ 503, true, reason_name(reason),
		    "all servers are full, and no more requests may wait" };
	case REASON_QUEUE_TIMEOUT:
		return (struct refusal){ 503, true, reason_name(reason),
		    "all servers were full for as long as requests may wait" };
	case REASON_STATE_BUSY:
		return (struct refusal){ 0, false, "state_busy",
		    "the server that keeps the state of this request cannot "
		    "take it now" };
	default:
		return (struct refusal){ 0, false, "no_server", late ?
		    "no server has answered in time" :
		    "no server could answer" };
	}
}

struct refusal
refusal_invalid(const char *why)
{
	return (struct refusal){ 0, false, "invalid_request", why };
}

void
refusal_write(const struct refusal *r, struct writer *to)
{
	struct json j;

	json_begin(&j, to);
	json_map(&j, NULL);
	json_map(&j, "error");
	json_text(&j, "message", r->why);
	json_text(&j, "type", "kvroute");
	json_text(&j, "code", r->code);
	json_map_end(&j);
	json_map_end(&j);
	json_end(&j);
}
