/* SPDX-License-Identifier: BSD-2-Clause */
/* counters.c - see counters.h. The proxy's page defines each counter. */
#include "counters.h"

static const char usage[] = "usage", shadowed[] = "shadowed";
static const char affinity[] = "affinity", answers[] = "answers";

const struct counter counter_list[] = {
	{ NULL, "bodies_truncated", "Bodies read in part, or broken.",
	    COUNT_TRUNCATED, COUNTS },
	{ NULL, "bodies_read", "Bodies read for a prompt.",
	    COUNT_READ, COUNTS },
	{ NULL, "bodies_held", "Requests held until their body was read, a "
	    "piece at a time.", COUNT_HELD, COUNTS },
	{ NULL, "body_pieces", "Pieces in which these were read.",
	    COUNT_PIECES, COUNTS },
	{ NULL, "prompts_parted", "Prompts that differ from an earlier one at "
	    "their beginning only.", COUNT_PARTED, COUNTS },
	{ NULL, "answers_kept", "Answers that became part of the prompt on "
	    "record.", COUNT_ANSWERS, COUNTS },
	{ NULL, "answers_left", "Answers that did not: broken, too long, or "
	    "several.", COUNT_ANSWERS_LEFT, COUNTS },
	{ NULL, "retries", "Choices after the first of a request.",
	    COUNT_RETRIES, COUNTS },
	{ NULL, "refused_ranks", "Requests that a data-parallel rank refused, "
	    "sent again to the first rank.", COUNT_RANKS, COUNTS },
	{ NULL, "split", "Choices whose prompt another server prefills.",
	    COUNT_SPLIT, COUNTS },
	{ NULL, "aborts", "Requests not accepted, or with status 400 or more.",
	    COUNT_ABORTS, COUNTS },
	{ NULL, "clients_left", "Requests whose client left before the end "
	    "of the response.", COUNT_CLIENTS_LEFT, COUNTS },
	{ NULL, "refused", "Workers reset because they refused connections.",
	    COUNT_REFUSED, COUNTS },
	{ NULL, "broken", "Responses that a worker broke off.",
	    COUNT_BROKEN, COUNTS },
	{ NULL, "grayed", "Workers judged gray: slow, or failing.",
	    COUNT_GRAY, COUNTS },
	{ NULL, "healed", "Gray workers that were good again.",
	    COUNT_HEALED, COUNTS },
	{ NULL, "queued", "Times that a request waited for a worker that is "
	    "not full.", COUNT_QUEUED, COUNTS },
	{ NULL, "delayed_writes", "Writes delayed because the lock was held.",
	    COUNT_DELAYED, COUNTS },
	{ NULL, "lost_leases", "Leases left to their age limit.",
	    COUNT_LOST, COUNTS },
	{ NULL, "late_records", "Prompts that were recorded when the engine "
	    "accepted them, because there was no booking before.", COUNT_LATE,
	    COUNTS },
	{ answers, "success", "Answers to clients with status 200 to 299.",
	    COUNT_SUCCESS, COUNTS },
	{ answers, "redirection", "Answers with status 300 to 399.",
	    COUNT_REDIRECTION, COUNTS },
	{ answers, "client_error", "Answers with status 400 to 499.",
	    COUNT_CLIENT_ERROR, COUNTS },
	{ answers, "server_error", "Answers with status 500 and above.",
	    COUNT_SERVER_ERROR, COUNTS },
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
	{ usage, "cached_tokens", "Cached tokens as responses report "
	    "them.", COUNT_CACHED_TOKENS, COUNTS },
	{ usage, "predicted_tokens", "Cached tokens as predicted for "
	    "responses with a reported number.", COUNT_PREDICTED_TOKENS,
	    COUNTS },
	{ usage, "best_tokens", "Cached tokens as predicted for responses with "
	    "a reported number, on the eligible server with the most.",
	    COUNT_BEST_TOKENS, COUNTS },
	{ affinity, "hit", "Choices of the worker to which the session or the "
	    "state was bound.", COUNT_AFFINITY, COUNTS },
	{ affinity, "new", "Choices for a session or a state that was not "
	    "bound.", COUNT_AFFINITY_NEW, COUNTS },
	{ affinity, "moved", "Choices of another worker than the bound one.",
	    COUNT_AFFINITY_MOVED, COUNTS },
	{ affinity, "moved_gray", "Choices of another worker because the bound "
	    "one was gray or warming up.", COUNT_AFFINITY_GRAY, COUNTS },
	{ affinity, "gone", "Choices whose bound worker was removed or reset.",
	    COUNT_AFFINITY_GONE, COUNTS },
	{ affinity, "bound", "Ids of answers and conversations that were bound "
	    "to their worker.", COUNT_BOUND, COUNTS },
	{ shadowed, "same", "Requests sent to the worker that kvroute would "
	    "have chosen.", COUNT_SHADOW_SAME, COUNTS },
	{ shadowed, "other", "Requests sent to another worker than kvroute "
	    "would have chosen.", COUNT_SHADOW, COUNT_SHADOW_SAME },
	{ shadowed, "blocks", "Blocks of the prompts of watched requests.",
	    COUNT_SHADOW_BLOCKS, COUNTS },
	{ shadowed, "wanted_blocks", "Blocks of watched requests predicted to "
	    "be cached on the worker that kvroute would have chosen.",
	    COUNT_SHADOW_WANTED, COUNTS },
	{ shadowed, "taken_blocks", "Blocks of watched requests predicted to "
	    "be cached on the worker that was used.", COUNT_SHADOW_TAKEN,
	    COUNTS }
};
const size_t counters_shown = sizeof(counter_list) / sizeof(counter_list[0]);

/* The copy is not atomic, so a part may be above its whole. */
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
