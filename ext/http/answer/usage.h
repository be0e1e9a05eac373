/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.h - token counts and ids in one JSON object of a response.
 *
 * The object arrives in pieces of any size and is read by json_finder.h, which
 * keeps little of it. No name and no type that matters has an escape or is
 * longer than what is kept of a string, so nothing is lost. An id that is
 * longer, or has an escape, is none.
 */
#ifndef KVROUTE_USAGE_H
#define KVROUTE_USAGE_H

#include "kvroute.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers of tokens that engines report, by name. */
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
	bool seen;      /* usage is an object, whatever its content */
};
/* Numbers of `later` replace those in `sum`. */
void usage_add(struct usage *sum, const struct usage *later);
/* Writes kind, prompt_tokens, cached_tokens and completion_tokens. */
void usage_report(const struct usage *u, struct kvr_report *report);

enum { OBJECT_ID_MAX = 256 }; /* as FINDER_KEPT */
enum object_id {
	OBJECT_ID = 0,       /* of the answer */
	OBJECT_CONVERSATION, /* of what it belongs to */
	OBJECT_IDS
};

/* All that matters in an object. */
struct object_facts {
	struct usage usage;
	size_t id_length[OBJECT_IDS]; /* 0: none */
	char id[OBJECT_IDS][OBJECT_ID_MAX];
	bool error;       /* reports a failure of the engine */
	bool at_once;     /* of a type that comes before prefill */
	bool choices;     /* there is a list of that name ... */
	bool some_choice; /* ... and something in it */
};

struct object; /* an object being read; about 1.5 kB */

struct object *object_new(void); /* NULL: no memory */
/* Begins another object in the same memory. */
void object_again(struct object *o);
void object_free(struct object *o);
void object_data(struct object *o, const void *bytes, size_t n);
/* What is known so far. */
const struct object_facts *object_facts(const struct object *o);
/* Can it still become a whole and valid object? */
bool object_lives(const struct object *o);
/* It has ended: was it whole and valid? */
bool object_end(const struct object *o);

#endif
