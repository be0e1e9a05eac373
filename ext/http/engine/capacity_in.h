/* SPDX-License-Identifier: BSD-2-Clause */
/* capacity_in.h - the readers of the two forms of capacity.h. */
#ifndef KVROUTE_CAPACITY_IN_H
#define KVROUTE_CAPACITY_IN_H

#include "capacity.h"
#include "json_finder.h"
#include "samples.h"

/* ------------------------------------------------------------- metrics --- */

/* The labels of a line of vllm:cache_config_info; 0: unknown. */
struct metrics_line {
	uint64_t blocks, block, tokens, window, unit, host_bytes;
	uint64_t rank;
	bool other_rank;    /* the label `engine` is not a rank */
	bool states;        /* layers keep a state in place of blocks */
	bool config;        /* the line is one of cache_config_info */
};

enum { RANKS_SEEN = 16 };    /* words of the set of ranks */

struct metrics {
	struct samples samples;
	uint32_t rank;      /* the wanted one */
	uint64_t seen[RANKS_SEEN]; /* the set of ranks with a line so far */
	uint64_t lines;     /* the number of such ranks */
	uint64_t top;       /* the highest of them */
	uint64_t blocks;    /* in the line of the first of them */
	bool apart;         /* lines have different blocks: not a sum */
	bool over;          /* another metric has followed */
	bool taken;         /* `mine` is the line of the wanted rank */
	struct metrics_line mine;
	struct metrics_line line;
	struct capacity found;
};

void metrics_begin(struct metrics *m, uint32_t rank);
void metrics_data(struct metrics *m, const char *bytes, size_t n);
/* Writes the facts of the lines so far. */
void metrics_conclude(const struct metrics *m, struct capacity *out);

/* ---------------------------------------------------------------- JSON --- */

enum info_place {
	INFO_ROOT = FOUND_TOP, INFO_STATES, INFO_STATE, INFO_MEMORY,
	INFO_NUMBER, INFO_MODEL, INFO_DECIMAL, INFO_FLAG
};

enum info_decimal { INFO_RATIO, INFO_HOST_GB, INFO_GB, INFO_DECIMALS };

enum info_number {
	INFO_TOKENS, INFO_PAGE, INFO_RUNNING, INFO_STATE_TOKENS,
	INFO_STATE_ROOM, INFO_STATE_WINDOWS, INFO_STATE_PAGE,
	INFO_STATE_RUNNING, INFO_STATE_SEQUENCES, INFO_SLOTS, INFO_RANKS,
	INFO_NUMBERS
};

struct info {
	struct finder finder;
	uint32_t rank;      /* the wanted one */
	uint64_t states;    /* elements of internal_states so far */
	bool has_state;     /* the wanted rank's is among them */
	unsigned model_rank;     /* precedence of `model`; 0: it is unknown */
	uint64_t numbers[INFO_NUMBERS]; /* 0: unknown */
	double decimals[INFO_DECIMALS]; /* 0: unknown */
	bool tiered;        /* the host's memory extends the cache */
	char model[CAPACITY_MODEL_MAX];
};

void info_begin(struct info *o, uint32_t rank);
void info_data(struct info *o, const char *bytes, size_t n);
void info_end(struct info *o, struct capacity *out);

/* -------------------------------------------------------------- shared --- */

/* Reads a decimal integer up to `most`; 0: it is not one. */
uint64_t capacity_number(const char *digits, size_t n, uint64_t most);
/* Reads a number above 0, perhaps with a point; 0: it is not one, or absurd. */
double capacity_decimal(const char *text, size_t n);
void capacity_model_set(char *model, const char *bytes, size_t n);

#endif
