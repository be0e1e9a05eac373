/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - see counters.h. kvroute-nginx(7) defines every counter. */
#include "counters.h"

static const char usage[] = "usage", shadowed[] = "shadowed";

const struct counter counter_list[COUNTERS_SHOWN] = {
	{ NULL, "cut", "Bodies of which only the beginning was a prompt.",
	    COUNT_CUT, COUNTS },
	{ NULL, "retries", "Choices after the first of a request.",
	    COUNT_RETRIES, COUNTS },
	{ NULL, "aborts", "Requests not taken, or answered with 400 or more.",
	    COUNT_ABORTS, COUNTS },
	{ NULL, "refused", "Workers reset because they refused connections.",
	    COUNT_REFUSED, COUNTS },
	{ NULL, "delayed", "Writes put off because the lock was taken.",
	    COUNT_DELAYED, COUNTS },
	{ NULL, "lost", "Leases left to their age limit.",
	    COUNT_LOST, COUNTS },
	{ NULL, "asked", "Requests in which usage was asked for.",
	    COUNT_ASKED, COUNTS },
	{ NULL, "stripped", "Usage chunks taken out again.",
	    COUNT_STRIPPED, COUNTS },
	{ usage, "value", "Answers with a number of cached tokens.",
	    COUNT_VALUES, COUNTS },
	{ usage, "absent", "Answers with usage that has no such number.",
	    COUNT_USAGES, COUNT_VALUES },
	{ usage, "none", "Answers without usage.", COUNT_MISSING, COUNTS },
	{ usage, "prompt_tokens", "Prompt tokens of answers with a number of "
	    "cached ones.", COUNT_PROMPT_TOKENS, COUNTS },
	{ usage, "cached_tokens", "Of them, cached by report.",
	    COUNT_CACHED_TOKENS, COUNTS },
	{ usage, "foretold_tokens", "Of them, cached by prediction.",
	    COUNT_FORETOLD_TOKENS, COUNTS },
	{ shadowed, "same", "Requests to the worker that kvroute would have "
	    "taken.", COUNT_SHADOW_SAME, COUNTS },
	{ shadowed, "other", "Requests to another worker than kvroute would "
	    "have taken.", COUNT_SHADOW, COUNT_SHADOW_SAME },
	{ shadowed, "blocks", "Blocks of their prompts.",
	    COUNT_SHADOW_BLOCKS, COUNTS },
	{ shadowed, "wanted_blocks", "Of them, predicted to be cached where "
	    "kvroute would have sent them.", COUNT_SHADOW_WANTED, COUNTS },
	{ shadowed, "taken_blocks", "Of them, predicted to be cached where "
	    "they went.", COUNT_SHADOW_TAKEN, COUNTS }
};

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
