/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_run.h - a pass: one policy on its own region, replaying a trace.
 *
 * Passes share nothing, so several can be given the same prompts. The cost of
 * a decision is measured here, around the library calls alone.
 */
#ifndef KVROUTE_POLICY_RUN_H
#define KVROUTE_POLICY_RUN_H

#include <kvroute.h>

#include <stdint.h>

struct trace_request;

enum pass_policy {
	PASS_BALANCED,    /* KVR_COST_BALANCED */
	PASS_DYNAMO,      /* KVR_COST_DYNAMO */
	PASS_HALF,        /* half.h */
	PASS_ROUND_ROBIN,
	PASS_POLICIES
};
extern const char *const pass_policy_names[PASS_POLICIES];

struct pass_options {
	enum pass_policy policy;
	uint32_t workers;
	uint64_t prefill_rate; /* of the modelled engines, see plain_engine.h */
	uint64_t decode_rate;  /* prefill_rate 0: no engines, no load */
};

struct pass_choice {
	uint32_t worker; /* its number */
	uint32_t overlap_blocks;
	uint32_t prompt_blocks;
};

struct pass_worker {
	uint64_t requests;
	uint64_t computed_tokens; /* prompt tokens not predicted as cached */
};

struct pass_totals {
	uint64_t requests;
	uint64_t unrouted;       /* of them: without tokens, not routed */
	uint64_t tokens;
	uint64_t blocks;
	uint64_t longest_tokens; /* of the longest overlap of any worker */
	uint64_t hit_tokens;     /* of the overlap of the chosen worker */
	uint64_t checksum;
	uint64_t overdue;        /* leases that had expired in the region */
	int64_t decision_ns;
	double first_token_ns;   /* sum over requests, as modelled */
};

struct pass;

/* Functions that return int return an enum kvr_error. */
int pass_new(const struct pass_options *options,
    const struct kvr_options *region, struct pass **out);
/*
 * The same with the region in a file, which is created if it does not exist.
 * If it exists, the pass continues from its clock, after reaping the leases
 * left open.
 */
int pass_new_in(const char *file, const struct pass_options *options,
    const struct kvr_options *region, struct pass **out);
int pass_request(struct pass *r, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now, struct pass_choice *out);
void pass_free(struct pass *r);

const struct pass_options *pass_options(const struct pass *r);
const struct pass_totals *pass_totals(const struct pass *r);
const struct pass_worker *pass_workers(const struct pass *r);
const struct kvr *pass_region(const struct pass *r);

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t pass_clock(void);

#endif
