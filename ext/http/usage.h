/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.h - what one JSON object of an answer says about tokens.
 *
 * The object comes in pieces, in any size, and goes through YAJL, which reads
 * pieces but has three habits that a proxy cannot live with. It keeps a token
 * that a piece cuts, and reads it again from its first byte with each piece:
 * a text of a megabyte in pieces of 4 kB would be read 128 times over. What it
 * keeps has no bound. And it writes to memory without asking whether it got
 * any. So two things stand around it:
 *
 *   {"content":"Once upon a time, there was ...","usage":{...}}
 *                     |
 *                  thinning     of a string stay the first 40 bytes, up to an
 *                     |         escape; all else passes
 *                     v
 *   {"content":"Once upon a time, there was ...","usage":{...}}
 *                     |
 *                   YAJL        allocates from a small arena of our own; when
 *                     |         that is used up, the object is given up by a
 *                     v         long jump, and nothing of YAJL's is left over
 *              what is in place
 *
 * No name and no type that matters here has 40 bytes or an escape, so nothing
 * is lost; and no token is longer, so the arena, with the limit of nesting, is
 * always enough for the YAJL that we know.
 */
#ifndef KVROUTE_USAGE_H
#define KVROUTE_USAGE_H

#include "kvroute.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of tokens that engines report, each under its own name. */
enum usage_number {
	USAGE_PROMPT,       /* prompt_tokens */
	USAGE_COMPLETION,   /* completion_tokens */
	USAGE_CACHED,       /* cached_tokens, of either kind of details */
	USAGE_INPUT,        /* input_tokens */
	USAGE_OUTPUT,       /* output_tokens */
	USAGE_READ,         /* cache_read_input_tokens */
	USAGE_CREATED,      /* cache_creation_input_tokens */
	USAGE_TIMED_CACHE,  /* timings.cache_n */
	USAGE_TIMED_PROMPT, /* timings.prompt_n */
	USAGE_TIMED_OUTPUT, /* timings.predicted_n */
	USAGE_NUMBERS
};
struct usage {
	uint64_t number[USAGE_NUMBERS];
	uint32_t known; /* a bit for each number */
	bool seen;      /* a usage that is an object, whatever is in it */
};
/* Numbers of `later` take the place of those in `sum`. */
void usage_add(struct usage *sum, const struct usage *later);
/* Writes kind, prompt_tokens, cached_tokens and completion_tokens. */
void usage_report(const struct usage *u, struct kvr_report *report);

/* Everything that matters in an object. */
struct object_facts {
	struct usage usage;
	bool error;       /* it says that the engine failed */
	bool at_once;     /* of a type that comes before prefill */
	bool choices;     /* there is a list of that name ... */
	bool some_choice; /* ... and something in it */
};

struct object; /* one that is being read; about 5 kB */

struct object *object_new(void); /* NULL: no memory */
/* Begins another in the same memory. */
void object_again(struct object *o);
void object_free(struct object *o);
void object_data(struct object *o, const void *bytes, size_t n);
/* What is known so far. */
const struct object_facts *object_facts(const struct object *o);
/* Can it still become a whole and valid object? */
bool object_lives(const struct object *o);
/* It has ended: was it whole and valid? */
bool object_end(struct object *o);

#endif
