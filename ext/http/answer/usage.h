/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.h - token counts and ids in one JSON object of a response.
 *
 * The object arrives in pieces of any size and is read by json_finder.h, which
 * keeps the first FINDER_KEPT bytes of a string. No name and no type that
 * matters is longer or has an escape, so nothing is lost. An id that is longer
 * or has an escape is ignored.
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
	USAGE_CACHED,       /* cached_tokens in either kind of details */
	USAGE_INPUT,        /* input_tokens */
	USAGE_OUTPUT,       /* output_tokens */
	USAGE_READ,         /* cache_read_input_tokens */
	USAGE_CREATED,      /* cache_creation_input_tokens */
	USAGE_FLAT,         /* cached_tokens outside of details */
	USAGE_HIT,          /* prompt_cache_hit_tokens */
	USAGE_MISS,         /* prompt_cache_miss_tokens */
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
/* Numbers of `later` replace those in `sum`, but a 0 replaces nothing. */
void usage_add(struct usage *sum, const struct usage *later);
/* Writes kind, prompt_tokens, cached_tokens and completion_tokens. */
void usage_report(const struct usage *u, struct kvr_report *report);

enum { OBJECT_ID_MAX = 256 }; /* as FINDER_KEPT */
enum object_id {
	OBJECT_ID = 0,       /* the answer's */
	OBJECT_CONVERSATION, /* the conversation's */
	OBJECT_IDS
};

/* The facts of an object that matter. */
struct object_facts {
	struct usage usage;
	size_t id_length[OBJECT_IDS]; /* 0: none */
	char id[OBJECT_IDS][OBJECT_ID_MAX];
	bool error;       /* it reports a failure of the engine */
	bool at_once;     /* its type is sent before prefill */
	bool top_usage;   /* usage is an object at the top */
	bool choices;     /* choices is a list */
	bool some_choice; /* the list has an element, or choices is no list */
};

struct object; /* an object that is being read; about 1.3 kB */

struct object *object_new(void); /* NULL: no memory */
/* Begins another object in the same memory. */
void object_again(struct object *o);
void object_free(struct object *o);
void object_data(struct object *o, const void *bytes, size_t n);
/* Returns the facts known so far; valid until the object is freed. */
const struct object_facts *object_facts(const struct object *o);
/* Can it still become a whole and valid object? */
bool object_lives(const struct object *o);
/* The text has ended: was it a whole and valid object? */
bool object_end(const struct object *o);

#endif
