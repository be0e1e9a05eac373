/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reading.h - the status of upstreams at one moment, as kvroute-top uses it.
 *
 *   status as JSON, see kvroute-nginx(7) ---> struct reading
 *
 * Members that are absent are 0, or below 0 where noted: the status of a
 * region has no counters of a proxy. Unknown members are passed over, so that
 * newer proxies can be read.
 */
#ifndef KVROUTE_TOP_READING_H
#define KVROUTE_TOP_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	READING_NAME = 64,     /* bytes of a name with the NUL; it may be cut */
	READING_WORD = 24,
	READING_REASONS = 48   /* further ones are left out */
};

struct reading_worker {
	char name[READING_NAME];
	int64_t rank;           /* below 0: there is one only */
	char state[READING_WORD];
	char health[READING_WORD]; /* empty: it is not judged */
	char retain[READING_WORD];
	bool overloaded;
	uint64_t requests;      /* booked on it now */
	uint64_t prefill_tokens;
	double backlog;         /* seconds */
	double prefill_rate;    /* tokens a second; 0: not known */
	uint64_t held_blocks;
	uint64_t opens;         /* requests since it is there */
	uint64_t prompt_tokens, predicted_tokens, best_tokens;
	uint64_t usage_prompt, usage_cached; /* as the engine reported */
	double running, waiting; /* as the engine publishes; below 0: unknown */
	double usage;            /* of its cache, 1 is all; below 0: unknown */
};

struct reading_reason {
	char name[READING_WORD];
	uint64_t choices;
};

struct reading_upstream {
	char name[READING_NAME];
	char policy[READING_WORD];
	bool attached;
	uint64_t block;         /* bytes */
	double ttl;             /* seconds; below 0: endless */
	uint64_t region_bytes, cells, cells_free, blocks, leases, evicted;
	uint64_t retries, aborts;
	uint64_t sessions;      /* on record, with the ids of answers */
	uint64_t session_hits, session_moves; /* turns that stayed, that left */
	uint64_t session_grays; /* sessions that left a gray server */
	uint64_t session_gone;  /* and those without their worker */
	struct reading_reason reason[READING_REASONS];
	size_t reasons;
	struct reading_worker *worker;
	size_t workers;
};

struct reading {
	struct reading_upstream *upstream;
	size_t upstreams;
};

/*
 * Reads n bytes; NULL, or the error. The caller gives it to
 * reading_free, also after an error.
 */
const char *reading_parse(struct reading *r, const char *text, size_t n);
void reading_free(struct reading *r);

#endif
