/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_ask.c - see usage_ask.h. */
#include "usage_ask.h"

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
