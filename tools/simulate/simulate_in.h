/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_in.h - internals of a simulation:
 *
 *   simulate.c         time: steps, arrivals, resets
 *   simulate_make.c    creation and destruction
 *   simulate_place.c   the choice of a worker
 *   simulate_rival.c   ... by the rules of rivals.h
 *   simulate_router.c  routers and their leases
 *   simulate_past.c    engines as they were, for the delayed oracle
 *   simulate_change.c  workers that join, drain, die, are slow
 *   simulate_measure.c times of requests, load of workers, utilisation
 *   simulate_return.c  what workers get that joined or were slow
 *   simulate_sample.c  requests and samples, for charts
 *   simulate_check.c   consistency checks
 *
 * Functions that return int return an enum kvr_error.
 */
#ifndef KVROUTE_SIMULATE_IN_H
#define KVROUTE_SIMULATE_IN_H

#include "engine_model.h"
#include "fleet.h"
#include "rng.h"
#include "simulate.h"
#include "simulate_times.h"
#include "tokens.h"

#include <stddef.h>

/* A request that was served, from arrival to end. */
struct ride {
	int64_t arrival;
	int64_t first; /* token; or -1 */
	uint64_t number; /* the caller's */
	uint64_t tokens;
	uint64_t predicted; /* tokens */
	uint64_t hit;       /* tokens; set by admission */
	uint64_t session;   /* 0: not named */
	uint32_t worker;
	uint32_t router;        /* the one that decided */
	uint32_t output_blocks; /* index blocks passed to the library */
	bool admitted;
	bool counted;      /* in the totals of admissions */
	bool finished;
	bool waited;
	bool again;        /* its worker died; not routed again yet */
	bool lost;
	int64_t end;
	uint64_t output;   /* tokens that were generated */
	uint64_t wanted;   /* output tokens */
	uint64_t known;    /* of them: those that ids cover as well */
	uint64_t *ids;     /* kept if workers die, until it has finished */
};

/* Requests in flight at a worker; sums of the time in which it is up. */
struct flight {
	uint64_t requests;
	uint64_t request_ns; /* the integral of requests until `since` */
	int64_t up_ns;       /* until `since` */
	int64_t since;
	bool up;
};

/*
 * Integrals over time, of all workers; in seconds of a worker that is up, of
 * one that computes prompts at its full speed, of all slots, of a whole cache.
 */
struct usage {
	double up;
	double prefill;
	double slots;
	double memory;
};

/* A worker's load, by the decisions that a router made or was told of. */
struct booked {
	uint64_t requests;
	uint64_t prefill_tokens;
};

struct router {
	struct kvr *k; /* NULL: not needed by the policy */
	struct fleet *fleet;
	struct booked *booked; /* [workers] */
	uint32_t turn;
};

struct past;
struct rivals;

struct simulation {
	struct simulate_options options;
	struct simulate_totals totals;
	struct router *routers;   /* [replicas] */
	struct engine **engines;  /* [workers] */
	struct past **past;       /* [workers]; NULL: no delay */
	struct rivals *rivals;    /* NULL: not needed by the policy */
	struct times next;        /* [workers] end of the step */
	struct times next_reset;  /* [workers] */
	struct flight *flights;   /* [workers] */
	struct usage usage;
	struct usage used_then;   /* when the last request arrived */
	bool *absent;             /* [workers] routers do not know it */
	uint32_t n_up;
	uint32_t next_change;
	bool changed;             /* an index, since it was checked */
	bool keeps;               /* ids of requests: see `again` */
	struct kvr *again_k;      /* these three: to route requests again */
	struct kvr_prompt *again;
	struct tokens tokens;
	uint32_t *ready;          /* [n_ready] */
	bool *is_ready;           /* [workers] */
	struct kvr_overlap *seen; /* [workers] by the oracle */
	struct kvr_overlap *used; /* [workers] */
	uint32_t n_ready;
	uint32_t block_size;
	struct rng lots;    /* of policies */
	struct rng reports; /* of engines */
	int64_t now;
	struct ride *rides;
	uint64_t *leases; /* [ride][replicas]; 0: unknown to that router */
	size_t n_rides;
	size_t ride_capacity;
	uint64_t *done; /* numbers of requests that ended, if told */
	size_t next_done;
	size_t n_done;
	size_t done_capacity;
	int64_t *first_tokens;
	struct simulate_ride *shown;
	struct simulate_sample *samples;
	uint32_t *loads; /* of each sample: running, then waiting, by worker */
	size_t n_samples;
	size_t sample_capacity;
	int64_t sample_ns; /* current interval */
	int64_t next_sample;
};

/* ------------------------------------------------------------ routers --- */

/* Call routers_free also after a failure. */
int routers_make(struct simulation *s, const struct kvr_options *region);
void routers_free(struct simulation *s);
/* Did this router make the decision, or was it told of it? */
bool router_knows(const struct simulation *s, uint32_t router,
    const struct ride *r);
/*
 * Called after the ride's router chose a worker and opened a lease; d is its
 * decision. Commits the lease and informs the other routers.
 */
int routers_book(struct simulation *s, struct kvr_prompt *p,
    const struct ride *r, const struct kvr_decision *d);
int routers_first_token(struct simulation *s, const struct ride *r);
/* The output has grown by so many index blocks. */
int routers_generated(struct simulation *s, const struct ride *r,
    uint32_t blocks);
int routers_finished(struct simulation *s, const struct ride *r,
    const struct kvr_report *report);
/* The engine refused the request or died: aborts the leases. */
int routers_refused(struct simulation *s, const struct ride *r);

/* The worker joins with a new id; leaves; drains or comes back. */
int routers_join(struct simulation *s, uint32_t worker);
int routers_leave(struct simulation *s, uint32_t worker);
int routers_drain(struct simulation *s, uint32_t worker, bool drain);

/* ------------------------------------------------------------ changes --- */

/* May new requests be sent to it? */
bool worker_up(const struct simulation *s, uint32_t worker);
/* The worker that is number n, from 0 to s->n_up - 1, of those that are up. */
uint32_t worker_of_up(const struct simulation *s, uint32_t n);
/* Call changes_free also after a failure. */
int changes_make(struct simulation *s, const struct kvr_options *region);
void changes_free(struct simulation *s);
bool simulate_is_slowness(const struct simulate_change *c);
/* Does it join before anything else? */
bool simulate_joins_first(const struct simulate_options *o, uint32_t worker);
/* The time of the next change; TIMES_NEVER: none. */
int64_t changes_next(const struct simulation *s);
/* Makes those that are due. */
int changes_do(struct simulation *s);
/* Keeps what is needed to route a request again; drops it. */
int ride_keep(const struct simulation *s, struct ride *r,
    const struct engine_request *q);
void ride_drop(struct ride *r);
/* simulate.c: sends a request that is kept to the worker that p is for. */
int simulate_again(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r);
/* Takes an admission out of the totals. */
void simulate_undo(struct simulation *s, struct ride *r);

/* ------------------------------------------------------------- checks --- */

/* As simulate_check, without the indexes, which nothing has changed. */
int simulate_check_books(const struct simulation *s);

/* ----------------------------------------------------------- measures --- */

void flight_begin(struct simulation *s, uint32_t worker);
void flight_end(struct simulation *s, uint32_t worker);
void flight_up(struct simulation *s, uint32_t worker, bool up);
/* The worker's step lasts until `end`. */
void usage_step(struct simulation *s, uint32_t worker, int64_t end);
/* Time advances to `to`. */
void usage_time(struct simulation *s, int64_t to);

/* ------------------------------------------------------------ choices --- */

/* Chooses a worker for a ride that is not yet counted, and books it. */
int place_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r);

/* Is the policy one of rivals.h that uses no index? */
bool rivals_plain(const struct simulation *s);
/* What the policy needs, if it is one of rivals.h. */
int rivals_make(struct simulation *s);
void rivals_free(struct simulation *s);
/* The worker is gone: so is what routers believe of its cache. */
void rivals_leave(struct simulation *s, uint32_t worker);
/* Sets the ride's worker and, if the policy has one, its prediction. */
int rivals_place(struct simulation *s, const struct engine_request *q,
    struct ride *r);
/* LMetric: by n overlaps of a prompt. *out is that of the chosen worker. */
int rivals_lmetric(struct simulation *s, const struct router *router,
    const struct kvr_overlap *overlaps, size_t n, uint64_t tokens,
    struct kvr_overlap *out);

/* --------------------------------------------------------------- past --- */

struct engine *simulate_engine(const struct simulation *s, uint32_t worker);
struct past *past_new(struct engine *twin);
void past_free(struct past *p);
/* Records an input of the engine at `now`. */
int past_submit(struct past *p, const struct engine_request *q, int64_t now);
int past_reset(struct past *p, int64_t now);
int past_slow(struct past *p, double factor, int64_t now);
int past_kill(struct past *p, int64_t now);
/*
 * The twin in the state of the engine after everything that happened at `to`,
 * which is in the past. NULL: out of memory.
 */
const struct engine *past_at(struct past *p, int64_t to);

/* ------------------------------------------------------------ samples --- */

/* Takes the samples due before `to`. */
int sample_until(struct simulation *s, int64_t to);

#endif
