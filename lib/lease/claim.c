/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * claim.c - the predictions made when a lease was opened: its second cell.
 */
#include "claim.h"

#include "affinity.h"
#include "prompt.h"

void
claim_make(struct kvr *k, uint32_t cell, const struct kvr_prompt *p,
    const struct choice *choice, int64_t session_ttl)
{
	struct claim *c = claim_at(k, cell);
	uint64_t tokens = prompt_tokens(p);

	if (tokens > UINT32_MAX) /* no engine takes such a prompt */
		tokens = UINT32_MAX;
	write_once_zeros(c, sizeof(*c));
	write_once(c->tokens, (uint32_t)tokens);
	write_once(c->predicted, (uint32_t)(choice->tokens < tokens
	    ? choice->tokens : tokens));
	write_once(c->overlap, choice_records(choice) ? choice->usable : 0);
	write_once(c->active, choice->active);
	write_once(c->prompt, p->blocks);
	write_once(
	    c->tail, p->units > (uint64_t)p->blocks * p->rule.block_size);
	write_once(c->session, (uint32_t)choice->session);
	write_once(c->ttl_ms, affinity_ttl_ms(session_ttl));
}
