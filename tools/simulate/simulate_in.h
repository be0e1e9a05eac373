/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_in.h - the inside of a simulation, for the files that share it:
 *
 *   simulate.c         time: steps, arrivals, resets
 *   simulate_make.c    making one, and ending it
 *   simulate_place.c   who gets a request
 *   simulate_router.c  what the routers are told of it
 *   simulate_past.c    what the engines held a while ago
 *   simulate_sample.c  what is kept to be drawn
 *   simulate_check.c   is anything lost?
 *
 * Functions that return int give an enum kvr_error.
 */
#ifndef KVROUTE_SIMULATE_IN_H
#define KVROUTE_SIMULATE_IN_H

#include "engine_model.h"
#include "fleet.h"
#include "rng.h"
#include "simulate.h"
#include "simulate_times.h"

#include <stddef.h>

/* A request from its arrival to its end. */
struct ride {
	int64_t arrival;
	int64_t first; /* token; or -1 */
	uint64_t tokens;
	uint64_t predicted; /* tokens to hit */
	uint64_t hit;       /* tokens, once admitted */
	uint32_t worker;
	uint32_t router;        /* that chose it */
	uint32_t output_blocks; /* index blocks told to the library */
	bool admitted;
	bool finished;
};

/* What a router knows of a worker by the decisions it made or heard of. */
struct booked {
	uint64_t requests;
	uint64_t prefill_tokens;
};

struct router {
	struct kvr *k; /* NULL: the policy needs none */
	struct fleet *fleet;
	struct booked *booked; /* [workers] */
	uint32_t turn;
};

struct past;

struct simulation {
	struct simulate_options options;
	struct simulate_totals totals;
	struct router *routers;   /* [replicas] */
	struct engine **engines;  /* [workers] */
	struct past **past;       /* [workers]; NULL: nobody looks back */
	struct times next;        /* [workers] end of its step */
	struct times next_reset;  /* [workers] */
	uint32_t *ready;          /* [n_ready] */
	bool *is_ready;           /* [workers] */
	struct kvr_overlap *seen; /* [workers], by the oracle */
	struct kvr_overlap *used; /* [workers] */
	uint32_t n_ready;
	uint32_t block_size;
	struct rng lots;    /* of policies */
	struct rng reports; /* of engines */
	int64_t now;
	struct ride *rides;
	uint64_t *leases; /* [ride][replicas]; 0: that router knows nothing */
	size_t n_rides;
	size_t ride_capacity;
	int64_t *first_tokens;
	struct simulate_ride *shown;
	struct simulate_sample *samples;
	uint32_t *loads; /* of each sample: running, then waiting, by worker */
	size_t n_samples;
	size_t sample_capacity;
	int64_t sample_ns; /* between them, as of now */
	int64_t next_sample;
};

/* -------------------------------------------------------------- routers --- */

/* The routers of a new simulation; routers_free also after a failure. */
int routers_make(struct simulation *s, const struct kvr_options *region);
void routers_free(struct simulation *s);
/* Did this router decide about the ride, or hear of it? */
bool router_knows(const struct simulation *s, uint32_t router,
    const struct ride *r);
/*
 * The ride's router has chosen its worker and reserved; d is its decision.
 * Commits, and tells those who hear of it.
 */
int routers_book(struct simulation *s, struct kvr_prompt *p,
    const struct ride *r, const struct kvr_decision *d);
int routers_first_token(struct simulation *s, const struct ride *r);
/* So many index blocks more of its answer. */
int routers_generated(struct simulation *s, const struct ride *r,
    uint32_t blocks);
int routers_finished(struct simulation *s, const struct ride *r,
    const struct kvr_report *report);
/* No engine could take it: as if it had never been dispatched. */
int routers_refused(struct simulation *s, const struct ride *r);

/* -------------------------------------------------------------- choices --- */

/*
 * Chooses a worker for the ride, which is not among the rides yet, and books
 * it there.
 */
int place_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r);

/* ----------------------------------------------------------------- past --- */

struct engine *simulate_engine(const struct simulation *s, uint32_t worker);
struct past *past_new(struct engine *twin);
void past_free(struct past *p);
/* What the engine itself was given at `now`. */
int past_submit(struct past *p, const struct engine_request *q, int64_t now);
int past_reset(struct past *p, int64_t now);
/* The twin as the engine was at `to`, which is over. NULL: no memory. */
const struct engine *past_at(struct past *p, int64_t to);

/* -------------------------------------------------------------- samples --- */

/* Takes the samples of moments before `to`. */
int sample_until(struct simulation *s, int64_t to);

#endif
