/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * question.h - one choice: its input and its result.
 */
#ifndef KVR_QUESTION_H
#define KVR_QUESTION_H

#include "lease.h"
#include "match.h"

/* The largest cost. */
#define COST_MAX 1e300
enum { DEPTHS = 256 }; /* of a prompt, that are distinguished */
enum { QUESTION_WORDS = KVR_WORKERS_MAX * SLOTS_PER_WORKER / 64 };
/* The session of a request, and the worker it is bound to: session.c. */
struct session {
	uint64_t digest;   /* 0: none that counts */
	uint32_t slot;     /* of the worker, if bound */
	uint32_t state;    /* outcome if another worker is taken */
	bool bound;        /* to a worker that exists */
	bool binds;        /* its lease binds it */
};

/*
 * One question: all that is equal for every worker, and the set of eligible
 * workers. Lives on the stack of one call.
 */
struct question {
	const struct kvr *k;
	struct kvr_policy policy;     /* as it was when the call began */
	const struct kvr_prompt *p;
	struct kvr_request request;   /* resolved */
	struct found_set *set;        /* of it, steps are counted */
	uint64_t tokens;              /* of the prompt */
	uint64_t whole_blocks;        /* in them; the index may hold fewer */
	uint64_t digest;              /* of the whole prompt: ties, sampling */
	double least_prefill;         /* of the eligible */
	double block;                 /* tokens in a block */
	double per_token;             /* 1 / block where that is exact, or 0 */
	double request_blocks;        /* tokens in blocks, rounded up */
	double decay;                 /* of overlap credit; 0: none */
	/* cost_balanced.c */
	double observed;              /* the part left of observed requests */
	double mean;                  /* tokens of a prompt, */
	double per_mean;              /* and 1 / mean */
	double pressure;              /* for each token inserted */
	double common[DEPTHS + 1];    /* blocks behind that count as held */
	bool shares;                  /* there are any */
	double wait;                  /* that all have, in seconds */
	double least[QUESTION_WORDS]; /* the lowest cost in a word of `below` */
	int64_t now;
	struct session session;
	bool usual;                   /* only the usual terms of a cost */
	bool weighted;                /* some weight is not 1 */
	bool unsure;                  /* some overlap is not certain */
	uint32_t eligible;
	uint32_t overloaded;          /* eligible but for their load */
	uint32_t pinned;              /* slot, if the request pins one */
	uint32_t slots;               /* slots that were ever in use */
	uint32_t words;               /* of the sets below */
	uint64_t open[QUESTION_WORDS]; /* slots the request does not rule out */
	uint64_t take[QUESTION_WORDS]; /* slots that are eligible */
	uint64_t held[QUESTION_WORDS]; /* of them, those with an overlap */
	uint64_t below[QUESTION_WORDS]; /* of them, those below the bound */
};
/* Loads and weights may be damaged: a number that is no cost is the largest. */
static inline __attribute__((always_inline)) double
cost_within(double cost)
{
	return cost >= 0 && cost <= COST_MAX ? cost : COST_MAX;
}

/* The workers among which the policy chooses. */
static inline const uint64_t *
question_candidates(const struct question *q)
{
	return q->policy.cost == KVR_COST_BALANCED ? q->below : q->take;
}

/* Computes sizes and the digest of the prompt. */
void question_measure(struct question *q);
/* Blocks that the request would add to the load of a worker. */
uint32_t question_new_blocks(const struct kvr_prompt *p,
    const struct kvr_request *r, const struct kvr_overlap *o);
/* The factor of the request's preferences on a cost. Above 1: to be avoided. */
double question_dislike(const struct kvr_request *r, uint64_t taints);

#endif
