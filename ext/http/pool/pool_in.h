/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_in.h - shared by the files of the pool: the structs of kvroute_http.h.
 *
 *   pool_text      NAME=VALUE texts, by a table
 *   pool_options   the table of options
 *   pool_ignore    lines of prompts that do not count
 *   pool_count     counters
 *   pool_server    the servers, their facts, their workers in the region
 *   pool_roll      ids, states and requests, as the region has them
 *   pool_owner     the owner of leases
 *   pool_gray      evidence for servers that are slow, fail, or warm up
 *   call_look      the servers as they are for a request; takes one
 *   pool_wait      requests that wait in line
 *   pool_poll      capacities and loads that engines publish
 *   pool           open, free, tick
 *   pool_status    reports
 *
 *   call_session   sessions, and state that an engine keeps
 *   call_body      the request -> its prompt
 *   call_trace     lines of kvroute-replay(1)
 *   call_prefill   the server that prefills for another
 *   call_book      the load of a request at its server
 *   call_shadow    a plain method, and the choice beside it
 *   call_choose    the server of a request
 *   call_end       finish or abort; the report; the answer extends the prompt
 *   call_explain   how it would be routed
 *   call_pick      targets, and those that failed
 *   call_edit      changes to the request
 *   call_answer    the response while it passes
 *   call           begin, facts, free
 *
 * Each file calls only files above it.
 *
 * THREADS. kvh.lock guards all members that are neither fixed by kvh_open() nor
 * atomic, the servers, and the fleet. A choice writes there how they are for
 * its request, so that is valid only until it gives the lock back: it does so
 * while the library chooses, books or looks ids up, and then takes the server
 * only if that still has room. A server is put into the region without the
 * lock; one is removed from there with it. A kvh_call has no lock, and one
 * thread uses it at a time; while it stands in line kvh_turn() of any thread
 * reads its `wait`, wait_began, and the lists of servers, so these are written
 * with the lock.
 */
#ifndef KVROUTE_POOL_IN_H
#define KVROUTE_POOL_IN_H

#pragma GCC visibility push(default)
#include "kvroute_http.h"
#pragma GCC visibility pop

#include <pthread.h>
#include <regex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "body.h"
#include "evidence.h"
#include "fronts.h"
#include "kept_state.h"
#include "known.h"
#include "kvroute.h"
#include "passing.h"
#include "reason.h"
#include "replicas.h"
#include "salt.h"
#include "session_key.h"
#include "shared.h"
#include "text_hold.h"
#include "text_rows.h"
#include "trace_line.h"
#include "waits.h"
#include "writes.h"

enum {
	POOL_NAME_MAX = 64,  /* of an option that is text */
	POOL_REGEX_MAX = 200,
	POOL_KEYS = 8,       /* headers of affinity_key */
	POOL_AUTO_KEYS = 5
};

enum { POOL_LEAST_CONN = 1, POOL_ROUND_ROBIN = 2 };
extern const char *const pool_shadows[];

struct pool_text {
	char bytes[POOL_NAME_MAX];
	size_t length;
};

/* As configured; pool_options.c has a row for each. */
struct pool_options {
	/* of a region that kvh_open() makes */
	struct kvr_options region;
	/* of requests */
	bool feedback, include_usage, trace;
	uint32_t reasoning;          /* 1: it counts */
	char ignore[POOL_REGEX_MAX + 1]; /* a regular expression, or empty */
	uint64_t max_body;
	bool auto_keys;
	size_t n_keys;
	struct pool_text key[POOL_KEYS];
	struct pool_text scope;      /* a header, or empty */
	uint32_t affinity_mode;
	int64_t affinity_ttl, responses_ttl;
	uint32_t trace_sample;       /* of TRACE_ALL */
	/* of servers */
	struct pool_text name;
	double gray;                 /* 0: off */
	int64_t slow_start;          /* 0: off */
	uint32_t max_fails;          /* 0: off */
	int64_t fail_timeout;
	uint32_t fallbacks;
	uint32_t split;              /* tokens */
	uint32_t shadow;             /* a method that chooses; 0: off */
	uint32_t queue;              /* 0: off */
	int64_t queue_timeout;
	int64_t poll;                /* 0: off */
	char poll_path[TEXT_PATH_MAX + 1];
};

struct pool_server {
	char name[KVR_NAME_MAX];
	size_t length;
	uint64_t key;        /* of the name; not 0 */
	uint64_t serial;     /* of this pool; not 0 */
	size_t at;           /* its place in kvh.server and in the fleet */
	struct server_facts told;
	uint32_t puts;       /* how often these have changed */
	uint64_t *ids;       /* [ranks] of its workers; 0: not known */
	uint32_t ranks;
	uint32_t left;       /* workers of ranks below it may be there */
	bool named;          /* its engine is asked for a rank */
	bool gone, down;
	bool closed;         /* all of its workers are drained, or down */
	uint32_t max_conns;  /* 0: no limit */
	uint32_t inflight;   /* requests of this pool */
	uint64_t requests;   /* of all processes, as of the latest count */
	uint32_t refs;       /* calls that have it as a further target */
	uint32_t fails;
	int64_t failed_at, out_until;
};

struct pool_asked;

/*
 * Polls look workers up in the region, so they have servers of their own, which
 * are copied when the list has changed, and a lock, before that of the pool.
 */
struct pool_polls {
	pthread_mutex_t lock;
	struct fleet fleet;
	struct pool_asked **asked; /* [fleet.n_known] */
	uint64_t lists;      /* kvh.lists when they were copied */
	uint64_t tokens;
	int64_t look_at;     /* when the leader is looked for */
	bool leads;
};

struct kvh {
	struct kvr *k;
	bool owns;           /* k */
	struct pool_options options;
	struct kvr_options region; /* in force */
	uint64_t owner;      /* of its leases, without the process */
	pthread_mutex_t lock;
	/* servers: those that are gone last */
	struct pool_server **server;
	size_t n, room, room_workers;
	uint64_t serials, lists; /* how often the list has changed */
	struct fleet fleet;  /* known[i] is server[i] */
	void *area;          /* of the fleet, if none is shared */
	bool parted;         /* some servers have a role */
	bool ignores;
	regex_t ignored;     /* lines that do not count, if it ignores */
	bool looks;          /* a thread looks ids up */
	int64_t ids_at;      /* when they were looked up */
	bool begun;          /* a request has come: new servers warm up */
	struct pool_polls polls;
	struct waits waits;  /* requests in line; */
	size_t woken;        /* those that are to pick now, or do */
	struct fronts fronts; /* of the prompts */
	struct spares spares;
	struct writes writes;
	/* leases of processes that have died */
	bool ticks;          /* a thread is at kvh_tick() */
	struct replicas replicas;
};

enum call_stage {
	CALL_READS,     /* the request */
	CALL_READY,     /* for a choice */
	CALL_SENT,      /* to the first target */
	CALL_ANSWERED,  /* with a head */
	CALL_ENDED
};

enum { CALL_TEXT_MAX = 256 };

/* A text of a header, or of kvh_tell(); longer ones do not count. */
struct call_text {
	size_t length;
	char bytes[CALL_TEXT_MAX];
};

struct call_target {
	struct pool_server *server;
	int32_t rank;        /* that its engine is asked for; -1: none */
	uint32_t ranks;      /* of the server, when it was chosen */
	bool named;
	uint32_t failure;    /* enum kvh_failure; 0: it is not known to have */
	uint32_t status;     /* failed; with KVH_STATUS */
};

struct call_edit {
	int64_t offset;
	uint64_t cut;
	const char *text;
	size_t length;
};
enum { CALL_EDITS = SALT_SPANS + 5, CALL_PREFILL_MAX = 32 + KVR_NAME_MAX };

struct kvh_call {
	struct kvh *h;
	enum call_stage stage;
	int64_t now, began;
	/* request */
	enum endpoint endpoint;
	bool post, deletes, bypass, unedited;
	bool not_json;               /* by its Content-Type */
	struct body *body;
	struct kvr_prompt *prompt;
	bool tokens, body_begun, cut;
	uint64_t given, most;        /* bytes of the body; at most */
	struct body_facts facts;     /* without its texts */
	struct call_text model, scope, scope_told, salt, client, path_id;
	struct call_text header[POOL_KEYS + POOL_AUTO_KEYS];
	struct call_text agent, session_told;
	struct salt *scan;           /* NULL: no salt is set */
	struct kvr_scope prompt_scope;
	bool told_model;
	bool unscoped;               /* its tenant is too long to be known */
	bool unsalted;               /* the body cannot have the salt */
	uint32_t share;
	enum reason opinion;         /* COST: a prompt; or why none */
	/* session */
	struct kept_state keeps;
	/* of the path: kvh_tell() may take its own back */
	enum endpoint path_endpoint;
	unsigned path_binds;
	enum session_kind path_kind;
	/* servers that may be picked: serials, sorted; 0: unknown */
	bool allows, allow_sorted;
	uint64_t *allow, *tried;
	size_t n_allow, allow_room, n_tried, tried_room;
	/* choice */
	bool counted;                /* requests of other processes */
	uint64_t *some;              /* ids of workers, scratch */
	size_t some_room;
	struct call_target target[KVH_TARGETS_MAX];
	uint32_t n_targets;
	uint32_t tries;
	struct kvr_decision decision;
	enum reason reason;
	bool uncounted;              /* the reason for which it was refused */
	struct wait wait;
	int64_t wait_began;          /* 0: it has not waited */
	uint32_t affinity;           /* enum kvr_affinity_outcome */
	uint64_t lease, worker;
	bool missed, late;           /* it is to be booked later; it was */
	bool kept;                   /* no other server would do */
	bool moved;                  /* when it was sent there is not known */
	/* its prompt is prefilled elsewhere */
	struct pool_server *prefill; /* NULL: it is not, or no longer */
	uint64_t prefill_lease;
	bool parted;                 /* the header is ours */
	size_t prefill_length;       /* of the server's name; 0: none */
	char prefill_text[CALL_PREFILL_MAX]; /* the header */
	/* edits */
	bool edited, asked;
	struct call_edit edit[CALL_EDITS];
	uint32_t n_edits;
	char *salt_text;
	char rank_text[40];
	/* response */
	struct passing passing;
	uint32_t status;
	bool taken;
	/* health of the target */
	struct evidence evidence;
	int64_t head_at;
	uint64_t digest;             /* of the prompt; 0: not known */
	struct hold explained;
	/* trace */
	struct trace_line trace;
	char *line;
	size_t line_length;
};

/* KVH_NOW is the clock. */
static inline int64_t
pool_now(int64_t now)
{
	return now == KVH_NOW ? kvr_clock_now() : now;
}

static inline void
pool_lock(struct kvh *h)
{
	(void)pthread_mutex_lock(&h->lock);
}

static inline void
pool_unlock(struct kvh *h)
{
	(void)pthread_mutex_unlock(&h->lock);
}

#endif
