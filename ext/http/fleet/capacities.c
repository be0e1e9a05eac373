/* SPDX-License-Identifier: BSD-2-Clause */
/* capacities.c - see capacities.h. */
#include "capacities.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capacity.h"
#include "lacking.h"
#include "probe.h"
#include "shared.h"

enum {
	DEADLINE_MS = 10000,     /* for one path */
	BACKOFFS = 4,            /* at most so often */
	AT_ONCE = 8,             /* servers of an upstream */
	STATUS_BYTES = 32
};
#define AGAIN INT64_C(2000000000)     /* after an answer, at least */
#define BACKOFF INT64_C(1000000000)   /* doubled by each failure */
#define REFRESH INT64_C(300000000000)

struct ask {
	struct errand errand;    /* first; open while it has a probe */
	const struct server_facts *told;
	uint64_t key;            /* of its name */
	uint32_t ranks;
	struct probe *probe;
	/* known facts */
	uint64_t id;             /* of the worker; 0: not looked up */
	uint64_t troubles;       /* when it was asked */
	struct capacity found;
	bool denied;             /* it has answered that it has none */
	int64_t due, answered;
	unsigned failures;       /* since the last capacity */
};

static const struct errand_calls calls;

/* --------------------------------------------------------------- facts --- */

/* A fact that is missing may come from events, and stays. */
static void
windows_wanted(const struct ask *ask, struct kvr_worker *facts)
{
	const struct server_facts *told = ask->told;
	const struct capacity *found = &ask->found;

	if (told->windows != KVR_WINDOW_FULL && found->window != 0) {
		facts->window_mode = told->windows;
		facts->window_tokens = found->window;
	}
	if (told->worker.window_capacity == 0 && found->window_tokens != 0 &&
	    facts->window_mode == KVR_WINDOW_DUAL)
		facts->window_capacity = found->window_tokens;
}

/* The facts as they should be; false: nothing is known of them. */
static bool
facts_wanted(const struct ask *ask, struct kvr_worker *facts)
{
	const struct server_facts *told = ask->told;
	const struct capacity *found = &ask->found;

	if (found->tokens == 0 && !ask->denied)
		return false;
	facts->capacity_tokens = capacity_whole(found);
	facts->retain = KVR_RETAIN_AUTO;
	if (told->worker.block_tokens == 0)
		facts->block_tokens = found->block_tokens;
	if (!told->evicts)
		facts->eviction = found->kind == CAPACITY_SGLANG ?
		    KVR_EVICT_LEAF : KVR_EVICT_RELEASED;
	windows_wanted(ask, facts);
	return true;
}

static bool
facts_differ(const struct kvr_worker *a, const struct kvr_worker *b)
{
	return a->capacity_tokens != b->capacity_tokens ||
	    a->block_tokens != b->block_tokens ||
	    a->eviction != b->eviction || a->retain != b->retain ||
	    a->window_mode != b->window_mode ||
	    a->window_tokens != b->window_tokens ||
	    a->window_capacity != b->window_capacity;
}

/*
 * Facts of one of its workers. If the lock is held, the next look tries again.
 */
static void
facts_write_to(struct ask *ask, uint64_t id)
{
	struct kvr *k = ask->errand.fleet->kvr;
	struct kvr_worker facts, now = { .size = sizeof(now) };

	if (id == 0 || kvr_worker_get(k, id, &now) != KVR_OK)
		return;
	facts = now;
	if (facts_wanted(ask, &facts) && facts_differ(&facts, &now))
		(void)kvr_worker_set(k, id, &facts);
}

/* The answer is about one rank, the first; the others are like it. */
static void
facts_write(struct ask *ask)
{
	const struct errand *e = &ask->errand;
	uint32_t rank;
	uint64_t id;

	facts_write_to(ask, ask->id);
	for (rank = 1; rank < ask->ranks && ask->id != 0; rank++) {
		if (kvr_worker_find(e->fleet->kvr, e->name, e->name_len, rank,
		    &id) == KVR_OK)
			facts_write_to(ask, id);
	}
}

/* Sets the id of now; true: it is another one than before. */
static bool
id_look(struct ask *ask)
{
	const struct errand *e = &ask->errand;
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id = ask->id;

	if (id != 0 && kvr_worker_get(e->fleet->kvr, id, &facts) !=
	    KVR_EWORKER)
		return false;
	if (kvr_worker_find(e->fleet->kvr, e->name, e->name_len, 0, &id) !=
	    KVR_OK || id == ask->id)
		return false;
	ask->id = id;
	return true;
}

/* -------------------------------------------------------------- result --- */

static void
ask_leave(struct errand *e)
{
	struct ask *ask = (struct ask *)e;

	probe_free(ask->probe);
	ask->probe = NULL;
	e->fleet->asking--;
}

/* The first failure is logged, others are not. */
static void
failure_note(struct ask *ask, const char *why, unsigned status, int64_t now,
    void *log)
{
	const struct errand *e = &ask->errand;
	unsigned doublings = ask->failures < BACKOFFS ? ask->failures :
	    BACKOFFS;
	char text[STATUS_BYTES] = "";

	if (status != 0)
		(void)snprintf(text, sizeof(text), ", status %u", status);
	if (ask->failures++ == 0)
		fleet_log(e->fleet, log, FLEET_WARN, "capacity of %.*s is %s: "
		    "%s%s", (int)e->name_len, e->name, ask->found.tokens == 0 ?
		    "not known" : "as before", why, text);
	ask->due = now + (BACKOFF << doublings);
	errand_leave(&ask->errand);
}

static void
ask_failed(struct errand *e, const char *why, int64_t now, void *log)
{
	failure_note((struct ask *)e, why, 0, now, log);
}

/* An engine that goes on in the host's memory finds more. */
static void
offload_log(const struct errand *e, const struct capacity *c, void *log)
{
	if (c->offload_tokens > 0)
		fleet_log(e->fleet, log, FLEET_NOTICE, "%.*s has room for %"
		    PRIu64 " tokens more in the memory of its host",
		    (int)e->name_len, e->name, c->offload_tokens);
	else if (c->offload_bytes > 0)
		fleet_log(e->fleet, log, FLEET_NOTICE, "%.*s has room for %"
		    PRIu64 " bytes more in the memory of its host: how many "
		    "tokens these are is learnt from reports",
		    (int)e->name_len, e->name, c->offload_bytes);
}

static void
found_log(const struct ask *ask, const struct capacity *c, void *log)
{
	const struct errand *e = &ask->errand;

	if (c->tokens == ask->found.tokens && ask->failures == 0 &&
	    c->block_tokens == ask->found.block_tokens &&
	    c->offload_tokens == ask->found.offload_tokens)
		return;
	fleet_log(e->fleet, log, FLEET_NOTICE, "capacity of %.*s is %" PRIu64
	    " tokens, in blocks of %" PRIu32 " (0: not known), by %s of %s",
	    (int)e->name_len, e->name, c->tokens, c->block_tokens,
	    probe_place(ask->probe), capacity_kind_name(c->kind));
	offload_log(e, c, log);
}

static void
ask_done(struct ask *ask, int64_t now, void *log)
{
	const struct capacity *c = probe_found(ask->probe);
	struct errand *e = &ask->errand;
	struct fleet *f = e->fleet;
	size_t i;

	if (c->tokens == 0) {
		ask->denied = probe_denied(ask->probe);
		if (ask->denied)
			memset(&ask->found, 0, sizeof(ask->found));
		facts_write(ask);
		failure_note(ask, "it publishes none",
		    probe_status(ask->probe), now, log);
		return;
	}
	found_log(ask, c, log);
	ask->found = *c;
	ask->denied = false;
	ask->failures = 0;
	ask->answered = now;
	ask->due = now + REFRESH;
	errand_leave(e);
	facts_write(ask);
	i = known_find(f, e->name, e->name_len, f->n_known);
	if (i < f->n_known)
		lacking_found(f, i, ask->found.ranks, log);
}

/* ------------------------------------------------------------ responses --- */

static enum errand_state
state_follow(struct ask *ask, enum probe_state state, int64_t now, void *log)
{
	if (state == PROBE_MORE)
		return ERRAND_MORE;
	if (state == PROBE_NEXT) {
		ask->errand.path = probe_begin(ask->probe);
		return ERRAND_AGAIN;
	}
	ask_done(ask, now, log);
	return ERRAND_OVER;
}

static enum errand_state
ask_data(struct errand *e, unsigned status, const void *bytes, size_t n,
    int64_t now, void *log)
{
	struct ask *ask = (struct ask *)e;

	return state_follow(ask, probe_body(ask->probe, status, bytes, n), now,
	    log);
}

static enum errand_state
ask_end(struct errand *e, unsigned status, bool whole, int64_t now, void *log)
{
	struct ask *ask = (struct ask *)e;

	return state_follow(ask, probe_end(ask->probe, status, whole), now,
	    log);
}

static const struct errand_calls calls = { .data = ask_data, .end = ask_end,
	.failed = ask_failed, .leave = ask_leave };

/* ----------------------------------------------------------------- asks --- */

static bool
ask_begin(struct ask *ask)
{
	struct errand *e = &ask->errand;

	ask->troubles = e->fleet->shared->troubles[ask->key %
	    SHARED_TROUBLES];
	ask->probe = probe_new(0);
	if (ask->probe == NULL)
		return false;
	e->path = probe_begin(ask->probe);
	e->open = true;
	e->fleet->asking++;
	return true;
}

/* After a reset, or a failed request, the facts may be wrong. */
static bool
is_doubtful(const struct ask *ask, int64_t now)
{
	return ask->failures == 0 && now >= ask->answered + AGAIN &&
	    ask->troubles != ask->errand.fleet->shared->troubles[ask->key %
	    SHARED_TROUBLES];
}

/* True: the errand is to be made. */
static bool
ask_look(struct ask *ask, bool room, int64_t now)
{
	bool other = id_look(ask);

	facts_write(ask);
	return !ask->errand.open && room &&
	    ask->errand.fleet->asking < AT_ONCE &&
	    (other || is_doubtful(ask, now) || now >= ask->due) &&
	    ask_begin(ask);
}

struct ask *
capacities_new(struct fleet *f, const struct known *known, int64_t now)
{
	struct ask *ask = calloc(1, sizeof(*ask));

	if (ask == NULL)
		return NULL;
	errand_begin(&ask->errand, &calls, f, known);
	ask->errand.deadline_ms = DEADLINE_MS;
	ask->told = known->facts;
	ask->key = known->key;
	ask->ranks = known_ranks(known->facts);
	ask->due = now;
	return ask;
}

struct errand *
capacities_errand(struct ask *ask)
{
	return &ask->errand;
}

void
capacities_free(struct ask *ask)
{
	if (ask != NULL)
		errand_leave(&ask->errand);
	free(ask);
}

struct errand *
capacities_next(struct fleet *f, size_t *i, bool room, int64_t now)
{
	struct ask *ask;

	while (*i < f->n_known) {
		ask = f->known[(*i)++].ask;
		if (ask != NULL && ask_look(ask, room, now))
			return &ask->errand;
	}
	return NULL;
}

void
capacities_trouble(struct fleet *f, uint64_t key)
{
	f->shared->troubles[key % SHARED_TROUBLES]++;
}
