/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_in.h - the two forms of capacity.h, each with its state.
 */
#ifndef KVROUTE_CAPACITY_IN_H
#define KVROUTE_CAPACITY_IN_H

#include "capacity.h"
#include "json_finder.h"
#include "samples.h"

/* ------------------------------------------------------------- metrics --- */

/* What a line of vllm:cache_config_info says; 0: unknown. */
struct metrics_line {
	uint64_t blocks, block, tokens, window;
	uint64_t rank;
	bool other_rank;    /* the label is no rank */
	bool states;        /* layers keep a state in place of blocks */
	bool config;        /* it is that metric */
};

struct metrics {
	struct samples samples;
	uint32_t rank;      /* wanted */
	uint64_t ranks;     /* that have a line so far */
	uint64_t product, block; /* of the line that counts */
	struct metrics_line line;
	struct capacity found;
};

void metrics_begin(struct metrics *m, uint32_t rank);
void metrics_data(struct metrics *m, const char *bytes, size_t n);

/* ---------------------------------------------------------------- JSON --- */

enum info_place {
	INFO_ROOT = FOUND_TOP, INFO_STATES, INFO_STATE, INFO_MEMORY,
	INFO_NUMBER, INFO_MODEL
};

enum info_number {
	INFO_TOKENS, INFO_PAGE, INFO_RUNNING, INFO_STATE_TOKENS,
	INFO_STATE_ROOM, INFO_STATE_WINDOWS, INFO_STATE_PAGE,
	INFO_STATE_RUNNING, INFO_STATE_SEQUENCES, INFO_SLOTS, INFO_NUMBERS
};

struct info {
	struct finder finder;
	uint32_t rank;      /* wanted */
	uint64_t states;    /* elements of internal_states so far */
	bool has_state;     /* that rank's is among them */
	unsigned model_rank;     /* of the name of the model; 0: none */
	uint64_t numbers[INFO_NUMBERS]; /* 0: unknown */
	char model[CAPACITY_MODEL_MAX];
};

void info_begin(struct info *o, uint32_t rank);
void info_data(struct info *o, const char *bytes, size_t n);
void info_end(struct info *o, struct capacity *out);

/* -------------------------------------------------------------- shared --- */

/* A decimal integer up to `most`; 0: it is none. */
uint64_t capacity_number(const char *digits, size_t n, uint64_t most);
void capacity_model_set(char *model, const char *bytes, size_t n);

#endif
