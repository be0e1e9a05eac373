/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_report.h - the report of an engine about a finished request.
 *
 * Turns the true numbers (tokens of the prompt, how many of them were cached,
 * tokens of the output) into those that the router receives. Faults in
 * between are applied one after the other:
 *
 *   low=SHARE       one engine block too few, in that share of reports
 *   noisy=SHARE     an error of up to that share of the value, uniform;
 *                   never above the prompt
 *   zeros=SHARE     0, in that share of reports
 *   null            no number instead of 0
 *   absent=SHARE    no number, in that share of reports
 *   reported=SHARE  only that share of requests is reported
 *   rounded=TOKENS  rounded down to a multiple
 *   lying[=SHARE]   arbitrary numbers, in that share of reports or in all:
 *                   larger than the prompt, negative before conversion,
 *                   contradictory
 *
 * All but the last affect only cached tokens. In text, faults are joined by
 * "+", for instance "rounded=16+low=0.2+null"; "exact" stands for no fault.
 */
#ifndef KVROUTE_ENGINE_REPORT_H
#define KVROUTE_ENGINE_REPORT_H

#include <kvroute.h>

#include <stddef.h>
#include <stdint.h>

struct rng;

enum engine_fault_kind {
	ENGINE_FAULT_LOW,
	ENGINE_FAULT_NOISY,
	ENGINE_FAULT_ZEROS,
	ENGINE_FAULT_NULL,
	ENGINE_FAULT_ABSENT,
	ENGINE_FAULT_REPORTED,
	ENGINE_FAULT_ROUNDED,
	ENGINE_FAULT_LYING,
	ENGINE_FAULT_KINDS
};
struct engine_fault {
	enum engine_fault_kind kind;
	double share;
	uint64_t tokens; /* for ROUNDED, above 0 */
};
enum { ENGINE_FAULTS_MAX = 8 };
/* All zero: exact. */
struct engine_report_idea {
	size_t n;
	struct engine_fault faults[ENGINE_FAULTS_MAX];
};

/* NULL, or an error message; *out is then untouched. */
const char *engine_report_parse(const char *text,
    struct engine_report_idea *out);

/* The true numbers of a request; tokens are below 2^62. */
struct engine_answer {
	uint64_t prompt_tokens;
	uint64_t cached_tokens;     /* of the prompt */
	uint64_t completion_tokens;
	uint32_t block_tokens;      /* of the engine */
};
/* The response counts as an event stream. */
void engine_report(const struct engine_report_idea *idea,
    const struct engine_answer *truth, struct rng *rng,
    struct kvr_report *out);

#endif
