/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_ask.c - see usage_ask.h. */
#include "usage_ask.h"

#include "shared.h"

/* By enum body_usage. */
static const char *const asking[] = {
	",\"stream_options\":{\"include_usage\":true}",
	"{\"include_usage\":true}",
	"\"include_usage\":true",
	"\"include_usage\":true,",
	"true"
};

bool
usage_ask_find(struct usage_ask *ask, const struct body_facts *facts,
    enum endpoint endpoint)
{
	const bool member = facts->usage == BODY_USAGE_MEMBER;

	if (!facts->stream || facts->usage == BODY_USAGE_NONE || facts->cut ||
	    facts->end == 0 || (endpoint != ENDPOINT_CHAT &&
	    endpoint != ENDPOINT_COMPLETIONS))
		return false;
	ask->at = member ? facts->end : facts->usage_at;
	ask->cut = member ? 0 : facts->usage_cut;
	ask->text = asking[facts->usage];
	return true;
}

/* As 400 or 422, for a field that they do not know. */
void
usage_answered(const struct fleet *f, unsigned status, int64_t now, void *log)
{
	if (shared_usage_answered(f->shared, status, now))
		fleet_log(f, log, FLEET_WARN, "all requests with "
		    "stream_options.include_usage are refused, the last one "
		    "with status %u: it is added no longer; without usage "
		    "nothing is learnt of streams", status);
}
