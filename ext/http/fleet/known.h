/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - the servers of an upstream, as one process has them.
 *
 *   struct fleet   of an upstream, in one process
 *     known[]      its servers: first ones, then backups
 *     shared       as all processes see them; shared.h
 *     kvr          the region: a worker for each rank of a server
 *
 * The proxy makes the list, whenever its servers change, and sets their states
 * before each choice. All else of this room takes a struct fleet.
 */
#ifndef KVROUTE_KNOWN_H
#define KVROUTE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvroute.h>

struct ask;
struct blame;
struct health;
struct poll;
struct polled;
struct shared;

/* A server as configured. */
struct server_facts {
	struct kvr_worker worker;
	bool ask;               /* capacity=auto */
	uint32_t windows;       /* window_mode=, if window= is read; or full */
	bool evicts;            /* eviction= is among the facts */
	uint32_t ranks;         /* each of them a worker; 0: not given */
	bool used;              /* by a server that is known */
};

/* A server as it was when the current choice began; backups come last. */
struct known {
	char name[KVR_NAME_MAX];
	size_t name_len;
	uint64_t key;           /* of the name */
	struct server_facts *facts; /* or NULL */
	struct ask *ask;        /* of the process that asks, or NULL */
	struct poll *poll;      /* likewise */
	bool joined;            /* its workers are in the region; */
	bool refused;           /* they cannot be, and that was logged */
	uint64_t *ids;          /* [ranks] of its workers; 0: not known */
	uint8_t *flags;         /* [ranks], as below */
	uint32_t ranks;
	uint32_t due;           /* ids to be looked up */
	bool named;             /* the request names one to the engine */
	bool closed;            /* drained or set down at run time, all */
	bool usable;            /* by the proxy's rules, now */
	bool full;              /* and it would be, were it not full */
	bool down;              /* as configured, so not for a while only */
	bool hinted;            /* the proxy asks for it */
	uint64_t conns, weight;
	struct health *health;  /* shared, or NULL */
	bool held;              /* for requests that have no other, */
	bool gray;              /* since it is slow or failing; */
	bool spared;            /* failing: taken for full while others are */
	bool prefills;          /* it may prefill for another */
	int64_t prefills_after; /* for a request with it failed, or 0 */
};

/* Flags of a rank: look up its id; it was in use when that was done. */
enum { KNOWN_DUE = 1, KNOWN_OPEN = 2 };
enum { KNOWN_RANKS_MAX = 1024 }; /* of a server */

enum fleet_level {
	FLEET_INFO,
	FLEET_NOTICE,
	FLEET_WARN,
	FLEET_ERROR,
	FLEET_OF_REQUEST = 8    /* a bit: `to` is the log of a request */
};

struct fleet {
	/* of the proxy */
	void *proxy;
	void (*log)(const struct fleet *f, void *to, unsigned level,
	    const char *text, size_t n);
	struct kvr *kvr;        /* kvr_nowait_set; NULL: there is no region */
	const struct kvr_options *options;
	uint64_t self;          /* this process, by owner_pid.h */
	/* shared with other processes */
	struct shared *shared;
	struct polled *polled;  /* [max_workers] */
	struct health *health;  /* [max_workers], or NULL */
	struct blame *blame;    /* behind that */
	/* as configured */
	double gray;            /* times as slow as others; 0: off */
	uint64_t slow_start_ms; /* 0: off */
	uint64_t poll_ms;       /* 0: off */
	const char *poll_path;
	uint32_t queue;         /* how many may wait; 0: off */
	uint32_t split;         /* tokens that a decode server prefills */
	/* of this process */
	struct known *known;
	size_t n_known;
	size_t n_first;         /* of them, not backups */
	size_t n_workers;       /* of them, with their ranks */
	uint64_t *allowed;      /* [n_workers], scratch: ids of usable ones */
	struct health **judged; /* of first ones, each once */
	size_t n_judged;        /* 0: health is off */
	uint64_t epoch;         /* of shared, when ids were looked up */
	size_t turn;            /* which of equals is first */
	size_t asking;          /* errands for capacities that are open */
};

/* A line of the log of at most 1,000 bytes; `to` is for the proxy. */
void fleet_log(const struct fleet *f, void *to, unsigned level,
    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Rows of a table of text_rows.h: facts that each proxy has, beside others. */
#define KNOWN_FACT(called, by) { .name = called, .kind = TEXT_LIBRARY, \
	.special = by }
#define KNOWN_FACTS(by) KNOWN_FACT("role", by), \
	KNOWN_FACT("prefill_rate", by), KNOWN_FACT("block_tokens", by), \
	KNOWN_FACT("eviction", by), KNOWN_FACT("window", by), \
	KNOWN_FACT("window_mode", by), KNOWN_FACT("window_layers", by), \
	KNOWN_FACT("window_interval", by), KNOWN_FACT("window_capacity", by)
/* Reads NAME=VALUE, or capacity=auto. NULL, or why it is refused. */
const char *known_fact_read(struct server_facts *told, const char *pair,
    size_t n);
/*
 * Do facts about windows fit together? NULL, or why not. A window that is to be
 * read off the engine sets the mode, too.
 */
const char *known_windows_fit(struct server_facts *facts);
/* How many workers a server with these facts, or without, is. */
uint32_t known_ranks(const struct server_facts *facts);
bool known_is_called(const struct known *known, const void *name, size_t len);
/* The server of this name among the first n, or n. */
size_t known_find(const struct fleet *f, const void *name, size_t len,
    size_t n);
/* The ranks of the server of this name; 0: no server has it. */
uint32_t known_ranks_named(const struct fleet *f, const void *name,
    size_t len);
/* The server of a worker, and its rank; n_known: no server has it. */
size_t known_of_worker(const struct fleet *f, uint64_t worker,
    uint32_t *rank);
/* All ids of a server are to be looked up. */
void known_ids_due(struct known *known);

#endif
