/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * question.c - the facts of a question that all costs use.
 */
#include "question.h"

#include "exp.h"
#include "mix.h"

/* Units per token; in byte mode an estimate. */
static uint32_t
token_units(const struct kvr_prompt *p)
{
	return p->rule.unit == KVR_UNIT_BYTES ? 4 : 1;
}

void
question_measure(struct question *q)
{
	const struct kvr_prompt *p = q->p;
	uint64_t size = p->rule.block_size, units = token_units(p);
	uint64_t end = p->blocks == 0 ? p->root
	    : *prompt_sequence(p, p->blocks - 1);
	uint64_t whole = q->tokens * units / size;

	q->block = hash_block_tokens(&p->rule);
	q->per_token = (size & (size - 1)) == 0 ? 1 / q->block : 0;
	q->whole_blocks = whole;
	whole += whole * size < q->tokens * units;
	q->request_blocks = (double)whole;
	q->digest = mix(end ^ mix(p->units ^ p->tail_digest));
}

uint32_t
question_new_blocks(const struct kvr_prompt *p, const struct kvr_request *r,
    const struct kvr_overlap *o)
{
	if ((r->flags & KVR_IGNORE_REUSE) != 0)
		return p->blocks;
	return o->active_blocks < p->blocks ? p->blocks - o->active_blocks : 0;
}

double
question_dislike(const struct kvr_request *r, uint64_t taints)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < r->n_preferences; i++)
		if ((taints & r->preferences[i].taints) != 0)
			sum += r->preferences[i].weight;
	return sum == 0 ? 1 : exp_of(-exp_tanh(sum));
}
