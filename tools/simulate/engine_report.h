/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_report.h - what an engine says about a request that it answered.
 *
 * What is true goes in, what a router gets to read comes out: how many tokens
 * the prompt had, how many of them were cached, how many the answer has. On
 * the way from the one to the other may stand, each applied to what the one
 * before it left:
 *
 *   low=SHARE       one block of the engine too few, in that share of reports
 *   noisy=SHARE     off by up to that share of itself, any error as likely;
 *                   never above the prompt
 *   zeros=SHARE     0 whatever is true, in that share of reports
 *   null            no number where it is 0
 *   reported=SHARE  only that share of requests is reported at all
 *   rounded=TOKENS  down to a multiple of so many tokens
 *   lying[=SHARE]   any numbers, in that share of reports, or in all: larger
 *                   than the prompt, negative before they were converted,
 *                   here this and there that
 *
 * All but the last are about cached tokens alone. As a text they are put
 * together by "+", for instance "rounded=16+low=0.2+null"; "exact" is none.
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
	ENGINE_FAULT_REPORTED,
	ENGINE_FAULT_ROUNDED,
	ENGINE_FAULT_LYING,
	ENGINE_FAULT_KINDS
};
struct engine_fault {
	enum engine_fault_kind kind;
	double share;
	uint64_t tokens; /* of ROUNDED, above 0 */
};
enum { ENGINE_FAULTS_MAX = 8 };
/* Begin with all zero: exact. */
struct engine_report_idea {
	size_t n;
	struct engine_fault faults[ENGINE_FAULTS_MAX];
};

/* NULL, or what is wrong with the text; *out is then untouched. */
const char *engine_report_parse(const char *text,
    struct engine_report_idea *out);

/* What is true of a request; tokens are below 2^62. */
struct engine_answer {
	uint64_t prompt_tokens;
	uint64_t cached_tokens;     /* of the prompt */
	uint64_t completion_tokens;
	uint32_t block_tokens;      /* of the engine */
};
/* The answer was an event stream. */
void engine_report(const struct engine_report_idea *idea,
    const struct engine_answer *truth, struct rng *rng,
    struct kvr_report *out);

#endif
