/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_in.h - internals of a simulation:
 *
 *   simulate_make.c    creation and destruction
 *   simulate.c         time: steps, arrivals, resets
 *   simulate_change.c  workers that join, drain, die, are slow
 *   simulate_serve.c   a request from arrival to end
 *   simulate_place.c   the choice of a worker
 *   simulate_exchange.c messages between routers, late or never
 *   simulate_sums.c    ... their loads, and which leases are open
 *   simulate_router.c  routers and their leases
 *   simulate_rival.c   the rules of rivals.h
 *   simulate_past.c    engines as they were, for the delayed oracle
 *   simulate_events.c  events of engines, late or never
 *   simulate_measure.c times of requests, load of workers, utilisation
 *   simulate_options.c options, and their consequences
 *   simulate_return.c  requests of workers that joined or were slow
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
	uint64_t seen;      /* by routers: tokens */
	uint64_t predicted; /* tokens */
	uint64_t hit;       /* tokens; set by admission */
	uint64_t session;   /* 0: not named */
	uint32_t worker;
	uint32_t router;        /* the one that decided */
	uint32_t output_blocks; /* index blocks, as the router sees them */
	bool admitted;
	bool counted;      /* in the totals of admissions */
	bool finished;
	bool waited;
	bool again;        /* its worker died; not routed again yet */
	bool lost;
	bool bypass;       /* no router sees it */
	int64_t end;
	uint64_t output;   /* tokens that were generated */
	uint64_t wanted;   /* output tokens */
	uint64_t known;    /* of them: those that ids cover as well */
	uint64_t *ids;     /* kept if workers die or engines tell, until it */
	                   /* has finished */
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

/* A worker's load, by the decisions that a router made or heard of. */
struct booked {
	uint64_t requests;
	uint64_t prefill_tokens;
};

/* A request in a router: its own, or one that it heard of. */
struct held {
	uint64_t lease;          /* 0: the policy has no index */
	uint64_t prefill_tokens; /* booked; 0 after the first token */
	int64_t since;           /* its own router decided */
	uint32_t worker;
	uint32_t origin;         /* its own router */
	uint32_t output_blocks;  /* index blocks, as the library has them */
	bool open;
};

/* A router's own load of a worker, as it sends it to the others. */
struct sums {
	uint64_t requests;
	uint64_t prefill_tokens;
	uint64_t blocks;
};

struct router {
	struct kvr *k; /* NULL: not needed by the policy */
	struct fleet *fleet;
	struct booked *booked; /* [workers] */
	uint32_t turn;
	double pace;           /* requests a second, heard of lately */
	int64_t pace_at;
	bool *late;            /* [replicas] its messages are late */
	struct sums *told;     /* [replicas][workers] by each router */
	struct sums *others;   /* [workers] their sum */
};

/* A change of a request, or the sums of a router at one time. */
enum notice_kind {
	NOTICE_OPEN,
	NOTICE_FIRST_TOKEN,
	NOTICE_OUTPUT,
	NOTICE_FINISH,
	NOTICE_ABORT,
	NOTICE_SUMS, /* struct sums of each worker */
	NOTICE_ROLL  /* the rides with open leases */
};
struct notice {
	enum notice_kind kind;
	uint32_t origin;       /* router */
	int64_t sent;
	size_t ride;
	uint64_t lease;        /* OPEN: of the origin */
	uint64_t tokens;       /* OPEN: these four */
	uint64_t predicted;
	uint64_t session;
	uint32_t worker;
	uint32_t blocks;       /* OUTPUT */
	struct kvr_report report; /* FINISH */
	const uint64_t *list;  /* [n_list] OPEN: ids, or hashes of blocks */
	size_t n_list;
};

struct events;
struct message;
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
	bool keeps;               /* ids of requests: see `again`, events */
	struct kvr *again_k;      /* these three: to route requests again */
	struct kvr_prompt *again;
	struct tokens tokens;
	uint32_t *ready;          /* [n_ready] */
	bool *is_ready;           /* [workers] */
	struct kvr_overlap *seen; /* [workers] by the oracle */
	struct kvr_overlap *used; /* [workers] */
	struct kvr_candidate *candidates; /* [workers] of rules by an index */
	uint32_t n_ready;
	uint32_t block_size;
	struct rng lots;    /* of policies */
	struct rng byways;  /* these two: of requests that bypass routers */
	uint32_t byway;
	struct events *events; /* NULL: engines publish nothing */
	struct rng reports; /* of engines */
	int64_t now;
	struct ride *rides;
	struct held *held; /* [ride][replicas] */
	size_t n_rides;
	size_t ride_capacity;
	struct message *messages; /* under way, earliest first */
	struct simulate_exchanged exchanged;
	struct kvr_prompt *told;  /* the prompt of a message */
	struct rng losses;        /* of messages */
	struct rng deals;         /* of requests */
	int64_t next_sums;        /* these two: TIMES_NEVER, never */
	int64_t next_roll;
	uint32_t sums_turn;       /* these two: the next router, in turn */
	uint32_t roll_turn;
	size_t oldest;            /* ride that some router may hold open */
	uint64_t *done; /* numbers of requests that ended, if wanted */
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
struct held *held_by(const struct simulation *s, uint32_t router, size_t ride);
/* Books, frees, ... by the notice: not SUMS, not ROLL. */
int router_hear(struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct notice *n);
/* Records the prefix of an OPEN, and no load. */
int router_learn(struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct notice *n);
/* Ends its lease of a request, if it has one. */
int router_let_go(struct simulation *s, uint32_t router, size_t ride);
/* Ends all that it holds of another router's requests. */
int router_drop(struct simulation *s, uint32_t router, uint32_t origin);
/* It hears of a request; the limit of lateness for load depends on it. */
void router_count(struct simulation *s, uint32_t router);
bool router_late(const struct simulation *s, uint32_t router, int64_t sent);

/* ----------------------------------------------------------- exchange --- */

/* Call exchange_free also after a failure. */
int exchange_make(struct simulation *s);
void exchange_free(struct simulation *s);
/* The time of the next message or sum; TIMES_NEVER: none. */
int64_t exchange_next(const struct simulation *s);
/* Delivers and sends messages that are due. */
int exchange_do(struct simulation *s);
/* The router that gets the request. */
uint32_t exchange_deal(struct simulation *s, uint64_t session,
    const struct engine_request *q);
bool exchange_has_sums(const struct simulation *s);
bool exchange_has_leases(const struct simulation *s);

int sums_make(struct simulation *s);
void sums_free(struct simulation *s);
/* Reads a router's notice; *list is to be freed, also after a failure. */
int sums_list(const struct simulation *s, uint32_t origin, uint64_t **list,
    size_t *n);
int sums_hear(struct simulation *s, uint32_t router, const struct notice *n);
/* The worker is gone, and so are its loads. */
void sums_leave(struct simulation *s, uint32_t worker);
int roll_list(struct simulation *s, uint32_t origin, uint64_t **list,
    size_t *n);
int roll_hear(struct simulation *s, uint32_t router, const struct notice *n);

/*
 * A change of a request: its router hears of it, then the others may.
 * Called after the ride's router chose a worker and opened a lease; d is its
 * decision. Commits the lease.
 */
int routers_book(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, const struct ride *r,
    const struct kvr_decision *d);
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
int router_request(const struct simulation *s, const struct router *router,
    uint64_t session, struct kvr_request *request);
int routers_leave(struct simulation *s, uint32_t worker);
int routers_drain(struct simulation *s, uint32_t worker, bool drain);

/* ------------------------------------------------------------- events --- */

/* Does the policy hear them? */
bool news_wanted(const struct simulate_options *o);
/* Call news_free also after a failure. */
int news_make(struct simulation *s);
void news_free(struct simulation *s);
/* Takes the changes of an engine's cache; call it before requests end. */
int news_publish(struct simulation *s, uint32_t worker);
/* The engine has lost its cache. */
int news_reset(struct simulation *s, uint32_t worker);
/* The engine is gone, with all its events. */
void news_leave(struct simulation *s, uint32_t worker);
/* The time of the next batch that arrives; TIMES_NEVER: none. */
int64_t news_next(const struct simulation *s);
/* Delivers events that are due. */
int news_do(struct simulation *s);

/* ------------------------------------------------------------ changes --- */

/* May new requests be sent to it? */
bool worker_up(const struct simulation *s, uint32_t worker);
/*
 * The worker that is number n, from 0 to s->n_up - 1, among the workers that
 * are up.
 */
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

/* ------------------------------------------------------------ requests --- */

/* The engine has no step, but may have work. */
void serve_ready(struct simulation *s, uint32_t worker);
/* Handles all events of an engine. */
int serve_listen(struct simulation *s, uint32_t worker);
int serve_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, const struct trace_request *from);
/* Sends a request that is kept to the worker that p is for. */
int serve_again(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r);
/* Takes an admission out of the totals. */
void serve_undo(struct simulation *s, struct ride *r);
/* Remembers that the response to a request has ended. */
int serve_done(struct simulation *s, uint64_t number);
/* Drops the copy that was kept to route a request again. */
void ride_drop(struct ride *r);

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
/* Makes the state of a policy of rivals.h. */
int rivals_make(struct simulation *s);
void rivals_free(struct simulation *s);
/* The worker is gone: routers forget its cache. */
void rivals_leave(struct simulation *s, uint32_t worker);
/* Sets the ride's worker and, if the policy has one, its prediction. */
int rivals_place(struct simulation *s, const struct engine_request *q,
    struct ride *r);
/* A router hears that a prompt of n ids is on this worker. */
int rivals_hear(struct simulation *s, uint32_t router, uint32_t worker,
    const uint64_t *ids, size_t n);
/* Is it one that goes by the overlaps that an index expects? */
bool rivals_by_index(const struct simulation *s);
/* [workers] tokens of a prompt, to be filled before such a one is placed. */
uint64_t *rivals_seen(const struct simulation *s);
int rivals_place_seen(struct simulation *s, uint64_t tokens, struct ride *r);

/* --------------------------------------------------------------- past --- */

uint32_t simulate_sequences(const struct simulate_options *o, uint32_t worker);
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
