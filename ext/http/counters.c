/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - see counters.h. kvroute-nginx(7) defines every counter. */
#include "counters.h"

static const char usage[] = "usage", shadowed[] = "shadowed";

const struct counter counter_list[] = {
	{ NULL, "bodies_truncated", "Bodies read in part, or broken.",
	    COUNT_TRUNCATED, COUNTS },
	{ NULL, "retries", "Choices after the first of a request.",
	    COUNT_RETRIES, COUNTS },
	{ NULL, "aborts", "Requests not accepted, or with status 400 or more.",
	    COUNT_ABORTS, COUNTS },
	{ NULL, "clients_left", "Requests whose client left before the end "
	    "of the response.", COUNT_CLIENTS_LEFT, COUNTS },
	{ NULL, "refused", "Workers reset because they refused connections.",
	    COUNT_REFUSED, COUNTS },
	{ NULL, "delayed_writes", "Writes delayed because the lock was held.",
	    COUNT_DELAYED, COUNTS },
	{ NULL, "lost_leases", "Leases left to their age limit.",
	    COUNT_LOST, COUNTS },
	{ usage, "requested", "Requests to which include_usage was added.",
	    COUNT_REQUESTED, COUNTS },
	{ usage, "stripped", "Usage chunks removed from responses.",
	    COUNT_STRIPPED, COUNTS },
	{ usage, "value", "Responses with a number of cached tokens.",
	    COUNT_VALUES, COUNTS },
	{ usage, "absent", "Responses with usage but without that number.",
	    COUNT_USAGES, COUNT_VALUES },
	{ usage, "none", "Responses without usage.", COUNT_MISSING, COUNTS },
	{ usage, "prompt_tokens", "Prompt tokens of responses with a number "
	    "of cached tokens.", COUNT_PROMPT_TOKENS, COUNTS },
	{ usage, "cached_tokens", "Of these, cached as reported.",
	    COUNT_CACHED_TOKENS, COUNTS },
	{ usage, "predicted_tokens", "Of these, cached as predicted.",
	    COUNT_PREDICTED_TOKENS, COUNTS },
	{ shadowed, "same", "Requests sent to the worker that kvroute would "
	    "have chosen.", COUNT_SHADOW_SAME, COUNTS },
	{ shadowed, "other", "Requests sent to another worker than kvroute "
	    "would have chosen.", COUNT_SHADOW, COUNT_SHADOW_SAME },
	{ shadowed, "blocks", "Blocks of their prompts.",
	    COUNT_SHADOW_BLOCKS, COUNTS },
	{ shadowed, "wanted_blocks", "Of these, predicted to be cached on the "
	    "worker that kvroute would have chosen.", COUNT_SHADOW_WANTED,
	    COUNTS },
	{ shadowed, "taken_blocks", "Of these, predicted to be cached on the "
	    "worker that was used.", COUNT_SHADOW_TAKEN, COUNTS }
};
const size_t counters_shown = sizeof(counter_list) / sizeof(counter_list[0]);

/* The copy is not atomic: a part may have outgrown the whole meanwhile. */
uint64_t
counter_value(const struct counters *all, size_t i)
{
	const struct counter *c = &counter_list[i];
	uint64_t n, less;

	if (all == NULL)
		return 0;
	n = all->count[c->of];
	less = c->less == COUNTS ? 0 : all->count[c->less];
	return n > less ? n - less : 0;
}
