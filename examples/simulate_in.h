/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_in.h - the inside of a simulation, for the files that share it:
 * simulate.c (time), simulate_place.c (who gets a request), simulate_check.c.
 */
#ifndef KVROUTE_SIMULATE_IN_H
#define KVROUTE_SIMULATE_IN_H

#include "engine_model.h"
#include "fleet.h"
#include "rng.h"
#include "simulate.h"

#include <stddef.h>

/* A request from its arrival to its end. */
struct ride {
	int64_t arrival;
	int64_t first; /* token; or -1 */
	uint64_t lease;
	uint64_t tokens;
	uint64_t predicted; /* tokens to hit */
	uint64_t hit;       /* tokens, once admitted */
	uint32_t worker;
	uint32_t output_blocks; /* index blocks told to the library */
	bool admitted;
	bool finished;
};

/* What the router knows of a worker by its own decisions. */
struct booked {
	uint64_t requests;
	uint64_t prefill_tokens;
};

struct simulation {
	struct simulate_options options;
	struct simulate_totals totals;
	struct kvr *k; /* NULL: the policy needs none */
	struct fleet *fleet;
	struct engine **engines;  /* [workers] */
	int64_t *next;            /* [workers] */
	uint32_t *ready;          /* [n_ready] */
	bool *is_ready;           /* [workers] */
	struct booked *booked;    /* [workers] */
	struct kvr_overlap *seen; /* [workers], by the oracle */
	struct kvr_overlap *used; /* [workers] */
	uint32_t n_ready;
	uint32_t turn;
	uint32_t block_size;
	struct rng rng;
	int64_t now;
	struct ride *rides;
	size_t n_rides;
	size_t ride_capacity;
	int64_t *first_tokens;
	struct simulate_ride *shown;
	struct simulate_sample *samples;
	uint32_t *loads; /* of each sample: running, then waiting, by worker */
	size_t n_samples;
	size_t sample_capacity;
	int64_t next_sample;
};

/*
 * Chooses a worker for the ride, which is not among the rides yet, and books
 * it there. An enum kvr_error, as is the other one.
 */
int place_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r);
/* What is booked on a worker has changed: tells the oracle's region. */
int place_load(struct simulation *s, uint32_t worker);

/* Takes the samples of moments before `to`. */
int sample_until(struct simulation *s, int64_t to);

#endif
