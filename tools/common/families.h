/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * families.h - generates traces of one kind of load each.
 *
 *   shared          | one prompt for all | private |
 *   documents       | one of n documents | question |
 *   idle-documents  the same at fixed intervals
 *   unshared        | private |
 *   subagents       | new prompt | private |   5 to 40 of these at once
 *   bursts          as shared, now and then at 5 times the rate for 10 s
 *   chat            | one prompt for all | q1 | a1 | q2 | ...
 *   images          | one prompt for all | image | q1 | a1 | image | q2 | ...
 *                   routers see no images: | one prompt | q1 | a1 | q2 | ...
 *   openings        | new prompt | q1 | a1 | q2 | ...   and, when it begins,
 *                   | new prompt | private |   7 of these
 *   users           | one prompt for all | q1 | a1 | q2 | ...   of few users,
 *                   each with a few chats in turn, again and again
 *
 * The last three name the session of each request.
 *
 * Documents are equally popular, or of rank k with a weight of 1/k.
 *
 * Arrivals are Poisson processes and lengths are exponential, both with a
 * stated mean. Only integer arithmetic is used, so a seed yields the same bytes
 * on every platform; kvroute-tracegen(1) lists the means.
 */
#ifndef KVROUTE_FAMILIES_H
#define KVROUTE_FAMILIES_H

#include <stdint.h>
#include <stdio.h>

enum family {
	FAMILY_SHARED,
	FAMILY_DOCUMENTS,
	FAMILY_IDLE_DOCUMENTS,
	FAMILY_UNSHARED,
	FAMILY_SUBAGENTS,
	FAMILY_BURSTS,
	FAMILY_CHAT,
	FAMILY_IMAGES,
	FAMILY_OPENINGS,
	FAMILY_USERS,
	FAMILIES
};
extern const char *const family_names[FAMILIES];

enum {
	FAMILY_PROMPT_MAX = 4000000, /* tokens */
	FAMILY_REQUESTS_MAX = 10000000,
	FAMILY_DOCUMENTS_MAX = 100000,
	FAMILY_LENGTH_MAX = 100000 /* means of private parts and outputs */
};

enum family_popularity { FAMILY_EVEN, FAMILY_ZIPF, FAMILY_POPULARITIES };
extern const char *const family_popularities[FAMILY_POPULARITIES];

struct family_options {
	enum family family;
	uint64_t prompt;    /* tokens; UNSHARED: their mean */
	uint64_t gap_us;    /* mean time between requests, above 0 */
	uint64_t requests;
	uint64_t documents; /* of DOCUMENTS and IDLE_DOCUMENTS, above 0; */
	                    /* USERS: chats */
	uint64_t users;     /* of USERS: 1 to its chats */
	enum family_popularity popularity; /* of documents */
	uint64_t private;   /* means in tokens; UNSHARED has no private part */
	uint64_t output;
	uint64_t seed;
};

/* The defaults of a family. */
void family_defaults(struct family_options *o, enum family family);
/* Writes the trace. -1: out of memory, or an error of `out` (see ferror). */
int family_write(FILE *out, const struct family_options *o);

#endif
