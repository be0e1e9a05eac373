/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.h - one policy in front of a fleet of modelled engines.
 *
 * Requests are given one by one in order of arrival; each advances the engines
 * to its time. The policy has the knowledge of a router: its own decisions,
 * first tokens, growing output, and the engine's report at the end. Only the
 * oracle sees the engines' caches.
 *
 *   requests --> routers --> engines     one router, or several that each get
 *                  ^  decisions   |      a share of the requests, and may tell
 *                  `---- events --'      each other what they do
 *
 * Several simulations can share the same prompts.
 */
#ifndef KVROUTE_SIMULATE_H
#define KVROUTE_SIMULATE_H

#include "engine_model.h"
#include "engine_report.h"

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_request;

enum simulate_policy {
	SIMULATE_ROUND_ROBIN,
	SIMULATE_RANDOM,
	SIMULATE_LEAST_LOADED, /* fewest requests, then least to prefill */
	SIMULATE_LEAST_BACKLOG, /* these four: see rivals.h */
	SIMULATE_STICKY,
	SIMULATE_CHBL,
	SIMULATE_CACHE_AWARE,
	/* these use an index: the library's costs, */
	SIMULATE_DYNAMO,
	SIMULATE_BALANCED,
	SIMULATE_LMETRIC,      /* and rules of rivals.h */
	SIMULATE_RAMJET,
	SIMULATE_TWO_TIER,
	SIMULATE_POLICIES
};
extern const char *const simulate_policy_names[SIMULATE_POLICIES];

/* How policies with an index predict overlap. */
enum simulate_index {
	SIMULATE_TTL,      /* by the region's TTL */
	SIMULATE_CAPACITY, /* the index has the engines' capacities */
	SIMULATE_FEEDBACK, /* it has no facts: by TTL until reports arrive */
	SIMULATE_COUNTS,   /* as FEEDBACK; engines say how many blocks they */
	                   /* store and remove */
	SIMULATE_EVENTS,   /* ... and which */
	SIMULATE_ORACLE,   /* from the engines' caches, possibly delayed */
	SIMULATE_INDEXES
};
extern const char *const simulate_index_names[SIMULATE_INDEXES];

enum { SIMULATE_KINDS = 16 }; /* of engines in a mixed fleet, at most */

/* A worker changes in mid-run. One that joins first is absent until then. */
enum simulate_change_kind {
	SIMULATE_JOIN,     /* with an empty cache, or back from draining */
	SIMULATE_DRAIN,    /* routers send nothing more; its requests end */
	SIMULATE_KILL,     /* its cache is gone, its requests are rerouted */
	SIMULATE_SLOW,     /* steps take `factor` times as long ... */
	SIMULATE_SLOW_END  /* ... until then */
};
enum { SIMULATE_CHANGES_MAX = 256 };
struct simulate_change {
	int64_t at;
	double factor;
	uint32_t worker;
	enum simulate_change_kind kind;
};

/* Which of several routers gets a request. */
enum simulate_dealing {
	SIMULATE_DEALT,        /* each in turn */
	SIMULATE_DEALT_RANDOM,
	SIMULATE_DEALT_STICKY, /* a session's requests go to one router */
	SIMULATE_DEALINGS
};
extern const char *const simulate_dealing_names[SIMULATE_DEALINGS];

/* Messages between routers. */
enum simulate_exchange {
	SIMULATE_NOTHING,
	SIMULATE_ALL,      /* every decision and its outcome */
	SIMULATE_PREFIXES, /* which worker got which prompt */
	SIMULATE_LOADS,    /* sums by worker, ten times a second */
	SIMULATE_PREFIXES_LOADS,
	SIMULATE_BOOKINGS, /* as ALL, without prefixes */
	SIMULATE_EXCHANGES
};
extern const char *const simulate_exchange_names[SIMULATE_EXCHANGES];

/* A request counts as so many blocks of 16 tokens, if the cost asks for it. */
enum { SIMULATE_WEIGHT_BLOCK = 16 };

/* simulate_defaults writes the defaults. Worker w is of kind w % kinds. */
struct simulate_options {
	enum simulate_policy policy;
	struct kvr_policy weights; /* except the cost */
	enum simulate_index index;
	uint32_t workers;
	uint64_t capacity_tokens; /* per worker; 0: endless */
	uint32_t n_capacities;    /* above 0: these instead */
	uint64_t capacities[SIMULATE_KINDS];
	uint32_t n_speeds;        /* above 0: engine speeds; otherwise 1 */
	double speeds[SIMULATE_KINDS];
	uint32_t engine_block;    /* tokens; 0: ENGINE_BLOCK */
	enum engine_eviction eviction;
	uint32_t n_sequences;     /* above 0: of each engine; otherwise 256 */
	uint32_t sequences[SIMULATE_KINDS];
	uint32_t batch;           /* these four: see engine_model.h */
	uint64_t attention;
	bool own_reads;
	bool preempt;
	struct engine_window_idea window;
	bool unaware;             /* the index is not told of the window */
	uint32_t n_changes;       /* see simulate_add_change */
	struct simulate_change changes[SIMULATE_CHANGES_MAX];
	int64_t slo_first_ns;     /* goodput: at most so long to the first */
	int64_t slo_token_ns;     /* ... and for each token; 0: no SLO */
	bool told;                /* the index has block and eviction */
	uint32_t affinity;        /* requests name their sessions: 1 + enum */
	                          /* kvr_affinity_mode; 0: they do not */
	int64_t reset_ns;         /* interval of cache resets; 0: never */
	struct engine_report_idea reports; /* faults of engine reports */
	const char *reports_text; /* the same as text; NULL: exact */
	uint32_t silent;          /* every so many-th engine; 0: none */
	int64_t event_delay_ns;   /* of events; the oracle sees the past */
	double event_loss;        /* share of their batches that is lost */
	bool event_replay;        /* engines send lost batches again */
	double bypass;            /* share of the requests unseen by routers */
	uint32_t replicas;        /* routers that share the requests; 0: 1 */
	enum simulate_dealing dealing;
	enum simulate_exchange exchange;
	int64_t exchange_delay_ns; /* of each message */
	double exchange_loss;     /* share of the messages that is lost */
	bool repair;              /* open leases are compared each second */
	bool degrade;             /* late messages are prefixes, not load */
	uint64_t seed;            /* of all randomness */
	int64_t sample_ns;        /* minimum between samples; 0: none */
	bool closed;              /* for simulate_next_done */
	bool check;               /* after each step; fails: KVR_ECORRUPT */
};
void simulate_defaults(struct simulate_options *o);
uint64_t simulate_capacity(const struct simulate_options *o, uint32_t worker);
double simulate_speed(const struct simulate_options *o, uint32_t worker);
/* Keeps them in order of time. False: there are too many. */
bool simulate_add_change(struct simulate_options *o,
    const struct simulate_change *change);
/* NULL: the changes make sense; or why the change *which does not. */
const char *simulate_changes_problem(const struct simulate_options *o,
    uint32_t *which);

struct simulate_totals {
	uint64_t requests;
	uint64_t refused;          /* of them: too large for an engine */
	uint64_t empty;            /* of them: without tokens, not served */
	uint64_t tokens;           /* of the prompts that were served */
	uint64_t hit_tokens;       /* of them: actual hits */
	uint64_t predicted_tokens; /* of them: predicted hits */
	uint64_t over_tokens;      /* predicted and not hit, ... */
	uint64_t under_tokens;     /* ... hit and not predicted, by request */
	uint64_t finished;
	uint64_t waited;           /* for memory or a slot after arrival */
	uint64_t preempted;        /* how often */
	uint64_t retried;          /* routed again because a worker died, ... */
	uint64_t lost;             /* of them: to a worker too small for them */
	uint64_t bypassed;         /* finished; in no prediction */
	uint64_t steps;            /* of all engines */
	uint64_t resets;           /* of all engines */
	uint64_t token_ns;         /* from the first token to the last, ... */
	uint64_t later_tokens;     /* ... and the tokens generated after it */
	int64_t end;               /* of the last request */
};

/* Messages between routers, counted once for each that they are sent to. */
struct simulate_exchanged {
	uint64_t messages;
	uint64_t lost;
	uint64_t late;     /* too late to count in full, see `degrade` */
	uint64_t repaired; /* leases ended by a list of their router */
};

/* Batches of events, counted once for each router. */
struct simulate_heard {
	uint64_t batches; /* applied */
	uint64_t lost;
	uint64_t gaps;    /* that routers noticed */
};

struct simulation;

/* Functions that return int return an enum kvr_error. */
int simulate_new(const struct simulate_options *options,
    const struct kvr_options *region, struct simulation **out);
void simulate_free(struct simulation *s);
/*
 * `p` is set to the visible part of the prompt of `q`; `now` never decreases.
 */
int simulate_request(struct simulation *s, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now);
/*
 * A closed loop, in which requests depend on responses: runs until responses
 * have ended, at most to `to`. All that simulate_next_done returns must be
 * taken before time can advance again.
 */
int simulate_until(struct simulation *s, int64_t to, int64_t *now);
/* The number of a request that has ended or was refused. False: no more. */
bool simulate_next_done(struct simulation *s, uint64_t *number);
/* Runs until the engines are idle. */
int simulate_drain(struct simulation *s);
/* Are engines, requests, leases and loads consistent? */
int simulate_check(const struct simulation *s);

const struct simulate_options *simulate_options(const struct simulation *s);
const struct simulate_totals *simulate_totals(const struct simulation *s);
const struct simulate_exchanged *simulate_exchanged(
    const struct simulation *s);
void simulate_heard(const struct simulation *s, struct simulate_heard *out);
/* Sums over the regions of all routers; all 0 without regions. */
int simulate_index_stats(const struct simulation *s, struct kvr_stats *sum);
/*
 * Times to first token in nanoseconds, ascending, of all finished requests;
 * valid until the next call. NULL: out of memory, or nothing has finished.
 */
const int64_t *simulate_first_tokens(struct simulation *s);

/* Figures of all finished requests; seconds from arrival to the end. */
struct simulate_served {
	double mean;
	double p90;
	double p99;
	double goodput; /* share of served requests that met the SLO */
	/*
	 * The most requests in flight at a worker over those of the mean
	 * worker, both averaged over the time in which it was up.
	 */
	double worst_share;
	/* The use of prefill, slots or memory, whichever is the scarcest. */
	double utilisation;
};
int simulate_served(const struct simulation *s, struct simulate_served *out);

/*
 * A worker that joined or came back, or is no longer slow, and its requests: in
 * the first minute, or in the second one after it was slow. Shares are relative
 * to its fair share; -1: too few requests.
 */
struct simulate_return {
	struct simulate_change change;
	uint64_t requests;    /* routed to it */
	double share;         /* of all requests */
	double session_share; /* of the sessions that began */
};
/* In order of time; *n is at most SIMULATE_CHANGES_MAX. */
int simulate_returns(const struct simulation *s, struct simulate_return *out,
    size_t *n);

enum { SIMULATE_SAMPLES_MAX = 4096 }; /* then the interval doubles */

/* The state at one time. */
struct simulate_sample {
	int64_t at;
	const uint32_t *running; /* [workers] requests */
	const uint32_t *waiting; /* [workers] for memory */
	uint64_t index_entries;  /* these three: sums over all routers */
	uint64_t index_blocks;   /* (block, worker) pairs */
	uint64_t index_bytes;    /* of the region, in use */
};
/* In order of time; valid until time advances. */
const struct simulate_sample *simulate_samples(const struct simulation *s,
    size_t *n);

/* A request that was served. */
struct simulate_ride {
	int64_t arrival;
	int64_t first; /* token; -1: not yet */
	uint64_t tokens;
	uint64_t predicted; /* of them: predicted hits */
	uint64_t hit;       /* of them: actual hits */
	uint32_t worker;
	int64_t end;        /* -1: not yet */
	uint64_t output;    /* tokens, once it has ended */
};
/* In order of arrival; valid until the next call. NULL: out of memory. */
const struct simulate_ride *simulate_rides(struct simulation *s, size_t *n);

#endif
