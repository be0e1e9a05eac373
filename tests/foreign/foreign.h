/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * foreign.h - drives the library by its public calls and prints every result.
 *
 *   main.c     the worlds, and how often each call is made
 *   prompts.c  prompts that share prefixes, by tokens, bytes and hashes
 *   choices.c  calls that read and choose
 *   writes.c   calls that change something
 *   vectors.c  the reference's hashes, from a file
 *
 * The output depends on the seed alone: the same on every machine and for
 * every compiler, or a replica would send requests elsewhere. The key of the
 * region's tables is drawn at random and must not show anywhere.
 */
#ifndef FOREIGN_FOREIGN_H
#define FOREIGN_FOREIGN_H

#include "kvroute.h"
#include "rng.h"

#include <stdbool.h>

enum {
	WORKERS = 24, LEASES = 32, SCOPES = 4, PROMPT_UNITS = 6000,
	FAMILIES = 12 /* of prompts */
};

struct setting {
	const char *name;
	uint32_t unit, hash, block_size, eagle;
	int64_t ttl;
	uint64_t region_bytes;
	uint32_t max_prompt_blocks;
	uint32_t policy; /* which of policies: writes.c */
	uint32_t retain; /* of all workers */
};

struct world {
	const struct setting *s;
	struct rng rng;
	struct kvr *k;
	struct kvr_prompt *p;
	struct kvr_scope scope[SCOPES];
	uint32_t at_scope;
	int64_t now;
	uint64_t worker[WORKERS];
	struct {
		uint64_t number;
		uint32_t family, cut, variant, length, scope;
	} lease[LEASES], at; /* and the current prompt */
	uint32_t tokens[PROMPT_UNITS];
	unsigned char bytes[PROMPT_UNITS];
};

uint32_t pick(struct world *w, uint32_t n); /* a number below n */
double pick_of(struct world *w, const double *values, uint32_t n);
uint64_t pick_worker(struct world *w);
/* Ends the program: not a result that a correct library returns. */
_Noreturn void fail(const char *what, int error);
void must(const char *what, int error);

void prompt_scopes(struct world *w);
/* A prompt is made, given and printed. */
void prompt_draw(struct world *w);
/* The prompt of a lease, some blocks longer. */
void prompt_of_lease(struct world *w, uint32_t lease);

void choice_request(struct world *w, struct kvr_request *r);
void choice_print(const struct world *w, const char *call, int error,
    const struct kvr_decision *d);
void choice_match(struct world *w);
void choice_route(struct world *w);
void choice_choose(struct world *w);
void choice_candidates(struct world *w);

void write_worker_add(struct world *w, uint32_t i);
void write_policy(struct world *w, uint32_t kind);
void write_observe(struct world *w);
void write_reserve(struct world *w);
void write_reserve_on(struct world *w);
void write_lease(struct world *w);
void write_worker(struct world *w);
void write_time(struct world *w);
void write_rest(struct world *w);

void look_at_all(struct world *w);

/* Compares with the reference's; the number of hashes, or -1. */
int vectors_check(const char *file);

#endif
