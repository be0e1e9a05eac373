/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_balanced.c - the cost of a worker in seconds, to this request and to
 * others.
 *
 *	new    = tokens of the prompt that would have to be prefilled there
 *	dec    = tokens in use there, and those this request adds
 *	rho    = min(0.99, arrivals / (W * rate of the fleet))
 *	lambda = 2 / (1 - rho), at most 33
 *	cost   = backlog + pace * (lambda * new + balanced_decode * dec)
 *
 * The backlog delays this request alone. The prefill it brings delays it and
 * all that arrive meanwhile, the more the busier the fleet is: as in a queue
 * near its limit, one more second of work is 1 / (1 - rho) seconds of waiting.
 * So a busy fleet is careful with prefill and follows overlap, and an idle one
 * spreads its work. Decoding is slowed by everything decoded beside it.
 *
 * backlog and pace (seconds per token) are those of rate.c. W is the number of
 * workers that share all arrivals, not only of those eligible for this request:
 * a pinned worker would seem saturated. kvr_policy(3) gives the source of the
 * formula.
 */
#include "cost_balanced.h"

#include "eligible.h"
#include "rate.h"

#define RHO_MAX 0.99
#define LAMBDA_MAX 33.0

/* Computes what is the same for every worker. */
void
balanced_begin(struct question *q)
{
	uint32_t fleet = eligible_fleet(q);
	double most = (double)(fleet > 0 ? fleet : 1) * rate_fleet(q->k);
	double rho = rate_arrivals(q->k, q->now) / most;

	if (!(rho < RHO_MAX))
		rho = RHO_MAX;
	q->lambda = 2 / (1 - rho);
	if (q->lambda > LAMBDA_MAX)
		q->lambda = LAMBDA_MAX;
}

/* The cost if `held` blocks of the prompt are cached there. */
double
balanced_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	const struct loads *l = &q->k->loads;
	double pace = read_once_double(&l->pace[slot]);
	double dec = read_once_double(&l->blocks[slot]) +
	    (double)question_new_blocks(q->p, &q->request, o);
	double cost = q->policy.balanced_decode * dec * q->block, fresh;

	if ((q->request.flags & KVR_IGNORE_PREFILL) == 0) {
		fresh = (double)q->tokens - held * q->block;
		cost += q->lambda * (fresh > 0 ? fresh : 0);
	}
	cost *= pace;
	if ((q->request.flags & KVR_IGNORE_PREFILL) == 0)
		cost += rate_backlog(q->k, slot, q->now);
	if (q->request.n_preferences != 0)
		cost *= question_dislike(&q->request,
		    read_once(q->k->slots[slot].taints));
	return cost <= COST_MAX ? cost : COST_MAX;
}
