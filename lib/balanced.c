/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * balanced.c - what a worker costs in seconds, to this request and to others.
 *
 *	new    = tokens of the prompt that would have to be prefilled there
 *	dec    = tokens in use there, and those this request adds
 *	rho    = min(0.99, arrivals / (W * rate of the fleet))
 *	lambda = 2 / (1 - rho), at most 33
 *	cost   = backlog + pace * (lambda * new + balanced_decode * dec)
 *
 * The backlog delays this request alone. The prefill it brings delays it and
 * all who come while it lasts, the more the busier the fleet is: as in a queue
 * near its limit, a second of work more is 1 / (1 - rho) seconds of waiting.
 * So a busy fleet is careful with prefill and follows overlap, and an idle one
 * spreads its work. Decoding is slowed by all that decodes beside it.
 *
 * backlog and pace (seconds a token) are those of rate.c. W is the number of
 * workers that share all that arrives, not only of those that this request may
 * go to: a pinned one would seem to be overrun. kvr_policy(3) says where the
 * formula comes from.
 */
#include "internal.h"

#define RHO_MOST 0.99
#define LAMBDA_MOST 33.0

/* What is the same for every worker. */
void
balanced_begin(struct route *t)
{
	uint32_t fleet = eligible_fleet(t);
	double most = (double)(fleet > 0 ? fleet : 1) * rate_fleet(t->k);
	double rho = rate_arrivals(t->k, t->now) / most;

	if (!(rho < RHO_MOST))
		rho = RHO_MOST;
	t->lambda = 2 / (1 - rho);
	if (t->lambda > LAMBDA_MOST)
		t->lambda = LAMBDA_MOST;
}

/* If so many blocks of the prompt are cached there. */
double
balanced_cost(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	const struct loads *l = &t->k->loads;
	double pace = look_double(&l->pace[slot]);
	double dec = look_double(&l->blocks[slot]) +
	    (double)route_new_blocks(t->p, &t->request, o);
	double cost = t->policy.balanced_decode * dec * t->block, fresh;

	if ((t->request.flags & KVR_IGNORE_PREFILL) == 0) {
		fresh = (double)t->tokens - held * t->block;
		cost += t->lambda * (fresh > 0 ? fresh : 0);
	}
	cost *= pace;
	if ((t->request.flags & KVR_IGNORE_PREFILL) == 0)
		cost += rate_backlog(t->k, slot, t->now);
	if (t->request.n_preferences != 0)
		cost *= route_disliking(&t->request,
		    look(t->k->slots[slot].taints));
	return cost <= COST_MAX ? cost : COST_MAX;
}
