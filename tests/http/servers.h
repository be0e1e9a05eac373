/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * servers.h - some servers of an upstream, "s0", "s1" and so on, in memory that
 * processes share, for the suites of ext/http/fleet.
 *
 *   servers_begin(&a, 3, 1)   a process, with three servers of one rank
 *   servers_join(&b, &a)      another one of the same servers
 */
#ifndef KVR_SERVERS_H
#define KVR_SERVERS_H

#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kvroute_replica.h>

#include "blame.h"
#include "health.h"
#include "known.h"
#include "shared.h"

enum {
	SERVERS_MOST = 8,
	SERVERS_RANKS = 4,
	SERVERS_WORKERS = 32,
	SERVERS_REGION = 2 << 20,
	SERVERS_LOG = 4096
};

/* Shared by processes. */
struct servers_common {
	struct shared shared;
	struct polled polled[SERVERS_WORKERS];
	struct health health[SERVERS_WORKERS];
	struct blame blame;
	_Alignas(64) char region[SERVERS_REGION];
};

struct servers {
	struct fleet fleet;
	struct kvr_options options;
	struct servers_common *common;
	struct known known[SERVERS_MOST];
	struct server_facts facts[SERVERS_MOST];
	uint64_t ids[SERVERS_MOST][SERVERS_RANKS];
	uint8_t flags[SERVERS_MOST][SERVERS_RANKS];
	uint64_t allowed[SERVERS_MOST * SERVERS_RANKS];
	struct health *judged[SERVERS_MOST];
	char log[SERVERS_LOG];  /* lines, each with its level first */
};

static inline void
servers_log(const struct fleet *f, void *to, unsigned level,
    const char *text, size_t n)
{
	struct servers *s = f->proxy;
	size_t at = strlen(s->log);

	(void)to;
	(void)snprintf(s->log + at, sizeof(s->log) - at, "%c %.*s\n",
	    "inwe"[level & 3], (int)n, text);
}

/* The whole log since the last time. */
static inline void
ck_servers_log(struct servers *s, const char *text)
{
	ck_assert_str_eq(s->log, text);
	s->log[0] = '\0';
}

/* The server of place i, with so many ranks, which are not in the region. */
static inline void
servers_name(struct servers *s, size_t i, uint32_t ranks)
{
	struct known *known = &s->known[i];

	memset(known, 0, sizeof(*known));
	known->name_len = (size_t)snprintf(known->name, sizeof(known->name),
	    "s%zu", i);
	known->key = shared_key(known->name, known->name_len);
	ck_assert_int_eq(kvr_worker_init(&s->facts[i].worker,
	    sizeof(struct kvr_worker)), KVR_OK);
	s->facts[i].ranks = ranks;
	known->facts = &s->facts[i];
	known->ids = s->ids[i];
	known->flags = s->flags[i];
	known->ranks = ranks;
	known->usable = true;
	known->weight = 1;
	known_ids_due(known);
}

static inline void
servers_fill(struct servers *s, size_t n, uint32_t ranks)
{
	size_t i;

	s->fleet = (struct fleet){ .proxy = s, .log = servers_log,
	    .options = &s->options, .self = (uint64_t)getpid(),
	    .shared = &s->common->shared, .polled = s->common->polled,
	    .health = s->common->health, .blame = &s->common->blame,
	    .known = s->known, .n_known = n, .n_first = n,
	    .n_workers = n * ranks, .allowed = s->allowed,
	    .judged = s->judged };
	for (i = 0; i < n; i++)
		servers_name(s, i, ranks);
}

static inline void
servers_begin(struct servers *s, size_t n, uint32_t ranks)
{
	struct kvr_worker facts;
	uint32_t rank;
	size_t i;

	memset(s, 0, sizeof(*s));
	s->common = mmap(NULL, sizeof(*s->common), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(s->common, MAP_FAILED);
	ck_assert_int_eq(kvr_options_init(&s->options, sizeof(s->options)),
	    KVR_OK);
	s->options.unit = KVR_UNIT_BYTES;
	s->options.block_size = 16;
	s->options.max_workers = SERVERS_WORKERS;
	s->options.journal_bytes = KVR_JOURNAL_MIN;
	servers_fill(s, n, ranks);
	ck_assert_int_eq(kvr_new_at(&s->options, s->common->region,
	    sizeof(s->common->region), &s->fleet.kvr), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(s->fleet.kvr, 1), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	for (i = 0; i < n; i++)
		for (rank = 0; rank < ranks; rank++) {
			facts.rank = rank;
			ck_assert_int_eq(kvr_worker_add(s->fleet.kvr,
			    s->known[i].name, s->known[i].name_len, &facts,
			    &s->ids[i][rank]), KVR_OK);
		}
}

/* Another process of the same servers. */
static inline void
servers_join(struct servers *s, const struct servers *of)
{
	memset(s, 0, sizeof(*s));
	s->common = of->common;
	s->options = of->options;
	servers_fill(s, of->fleet.n_known, of->known[0].ranks);
	memcpy(s->ids, of->ids, sizeof(s->ids));
	s->fleet.self++;
	ck_assert_int_eq(kvr_attach_at(NULL, s->common->region,
	    sizeof(s->common->region), &s->fleet.kvr), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(s->fleet.kvr, 1), KVR_OK);
}

static inline void
servers_end(struct servers *s)
{
	kvr_free(s->fleet.kvr);
	ck_assert_int_eq(munmap(s->common, sizeof(*s->common)), 0);
}

static inline uint32_t
servers_state(const struct servers *s, size_t i, uint32_t rank)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(s->fleet.kvr, s->ids[i][rank], &facts),
	    KVR_OK);
	return facts.state;
}

#endif
