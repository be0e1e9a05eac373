/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_server.c - see pool_server.h. */
#include "pool_server.h"

#include <stdlib.h>
#include <string.h>

#include "capacities.h"
#include "health.h"
#include "judge.h"
#include "members.h"
#include "roles.h"

enum {
	PUT_TRIES = 1000, /* of the library, if it is busy */
	WEIGHT_ONE = 1000
};

enum { STATE_UP, STATE_DRAIN, STATE_DOWN, STATE_GONE };

struct pool_facts {
	struct server_facts told;
	uint32_t state, max_conns;
};

static const char *const states[TEXT_WORDS] = {
	[STATE_UP] = "up", [STATE_DRAIN] = "drain", [STATE_DOWN] = "down",
	[STATE_GONE] = "gone"
};
#define ROW(called, type, field, ...) { .name = called, \
	FIELD(type, struct pool_facts, field), __VA_ARGS__ }

static const char *
fact_read(void *fields, const char *pair, size_t n)
{
	return known_fact_read(&((struct pool_facts *)fields)->told, pair, n);
}

const struct text_row server_rows[] = {
	ROW("state", TEXT_WORD, state, .words = states),
	ROW("max_conns", TEXT_COUNT, max_conns, LEAST("0")),
	KNOWN_FACT("weight", fact_read), KNOWN_FACT("capacity", fact_read),
	KNOWN_FACTS(fact_read),
	ROW("ranks", TEXT_COUNT, told.ranks, RANGE("1", "1024"))
};
const size_t server_rows_all = sizeof(server_rows) / sizeof(server_rows[0]);

struct pool_server *
server_find(const struct kvh *h, const char *name, size_t n)
{
	const uint64_t key = shared_key(name, n);
	size_t i;

	for (i = 0; i < h->n; i++)
		if (h->server[i]->key == key && h->server[i]->length == n &&
		    memcmp(h->server[i]->name, name, n) == 0)
			return h->server[i];
	return NULL;
}

/* ---------------------------------------------------------------- fleet --- */

/* Servers that are gone come last: they are not judged. */
static void
gone_last(struct kvh *h)
{
	struct pool_server *s;
	size_t i, n = 0;

	for (i = 0; i < h->n; i++) {
		s = h->server[i];
		if (s->gone)
			continue;
		memmove(h->server + n + 1, h->server + n,
		    (i - n) * sizeof(*h->server));
		h->server[n++] = s;
	}
	h->fleet.n_first = n;
}

static uint64_t
weight_of(const struct pool_server *s)
{
	const double weight = s->told.worker.weight * WEIGHT_ONE;

	return weight < 1 ? 1 : weight < UINT32_MAX ? (uint64_t)weight :
	    UINT32_MAX;
}

/* The list has changed. */
static void
fleet_follow(struct kvh *h)
{
	struct fleet *f = &h->fleet;
	struct known *known;
	struct pool_server *s;
	bool parted = false;
	size_t i;

	gone_last(h);
	f->n_known = h->n;
	f->n_workers = 0;
	for (i = 0; i < h->n; i++) {
		s = h->server[i];
		s->at = i;
		known = &f->known[i];
		memset(known, 0, sizeof(*known));
		memcpy(known->name, s->name, s->length);
		known->name_len = s->length;
		known->key = s->key;
		known->facts = &s->told;
		known->ids = s->ids;
		known->ranks = s->ranks;
		known->named = s->named;
		known->weight = weight_of(s);
		f->n_workers += s->ranks;
		parted |= roles_of(known) != KVR_ROLE_BOTH;
	}
	h->lists++;
	h->parted = parted;
	judge_follow(f);
	places_follow(&h->waits.places);
}

/* ------------------------------------------------------------------ put --- */

/* The facts of a rank; true: there is no worker of that rank yet. */
static bool
rank_facts(struct kvh *h, const char *name, size_t n,
    const struct server_facts *told, uint32_t rank, struct kvr_worker *facts)
{
	struct kvr_worker now = { .size = sizeof(now) };
	uint64_t id;
	int error = kvr_worker_find(h->k, name, n, rank, &id);

	*facts = roles_worker(told);
	facts->rank = rank;
	if (error == KVR_OK && kvr_worker_get(h->k, id, &now) == KVR_OK)
		members_read_keep(told, &now, facts);
	return error == KVR_EWORKER;
}

/* Removes the workers that were added just now. */
static void
workers_undo(struct kvh *h, const uint64_t *ids, const bool *fresh,
    uint32_t ranks)
{
	unsigned tries = PUT_TRIES;
	uint32_t rank;

	for (rank = 0; rank < ranks; rank++)
		while (fresh[rank] && ids[rank] != 0 && kvr_worker_remove(h->k,
		    ids[rank]) == KVR_EBUSY && --tries > 0)
			continue;
}

/* Gives all ranks their facts, and learns their ids; all of them or none. */
static int
workers_put(struct kvh *h, const char *name, size_t n,
    const struct pool_facts *facts, uint64_t *ids)
{
	bool fresh[KNOWN_RANKS_MAX] = { false };
	unsigned tries = PUT_TRIES;
	struct kvr_worker worker;
	int error = KVR_OK;
	uint32_t rank;

	for (rank = 0; rank < facts->told.ranks && error == KVR_OK; rank++) {
		fresh[rank] = rank_facts(h, name, n, &facts->told, rank,
		    &worker);
		do /* entries of earlier workers are reclaimed in pieces */
			error = kvr_worker_put(h->k, name, n, &worker,
			    &ids[rank]);
		while (error == KVR_EBUSY && --tries > 0);
	}
	if (error != KVR_OK)
		workers_undo(h, ids, fresh, facts->told.ranks);
	return error;
}

static bool
room_grow(struct kvh *h)
{
	const size_t room = h->room == 0 ? 16 : 2 * h->room;
	struct fleet *f = &h->fleet;
	struct pool_server **server;
	struct known *known;
	struct health **judged;

	server = realloc(h->server, room * sizeof(*server));
	if (server != NULL)
		h->server = server;
	known = realloc(f->known, room * sizeof(*known));
	if (known != NULL)
		f->known = known;
	judged = realloc(f->judged, room * sizeof(struct health *));
	if (judged != NULL)
		f->judged = judged;
	if (server == NULL || known == NULL || judged == NULL)
		return false;
	h->room = room;
	return true;
}

bool
servers_begin(struct kvh *h)
{
	return room_grow(h);
}

/* For one more server, and so many more workers. */
static bool
room_make(struct kvh *h, uint32_t workers)
{
	const size_t all = h->fleet.n_workers + workers;
	uint64_t *allowed;

	if (h->n == h->room && !room_grow(h))
		return false;
	if (all <= h->room_workers)
		return true;
	allowed = realloc(h->fleet.allowed, all * sizeof(*allowed));
	if (allowed == NULL)
		return false;
	h->fleet.allowed = allowed;
	h->room_workers = all;
	return true;
}

static struct pool_server *
server_add(struct kvh *h, const char *name, size_t n)
{
	struct pool_server *s = calloc(1, sizeof(*s));
	bool fresh;

	if (s == NULL)
		return NULL;
	memcpy(s->name, name, n);
	s->length = n;
	s->key = shared_key(name, n);
	s->serial = ++h->serials;
	h->server[h->n++] = s;
	/* One that joins later than the first requests warms up. */
	if (!h->begun && judge_on(&h->fleet))
		(void)health_place(h->fleet.health, h->region.max_workers,
		    s->key, &fresh);
	return s;
}

/* Is an engine to be asked the same? */
static bool
facts_same(const struct server_facts *a, const struct server_facts *b)
{
	return a->ask == b->ask && a->windows == b->windows &&
	    a->evicts == b->evicts && a->ranks == b->ranks &&
	    memcmp(&a->worker, &b->worker, sizeof(a->worker)) == 0;
}

static void
server_set(struct pool_server *s, const struct pool_facts *facts,
    uint64_t *ids, bool named)
{
	free(s->ids);
	s->ids = ids;
	s->left = s->left > facts->told.ranks ? s->left : facts->told.ranks;
	s->ranks = facts->told.ranks;
	s->puts += !facts_same(&s->told, &facts->told);
	s->named = named;
	s->told = facts->told;
	s->max_conns = facts->max_conns;
	s->gone = false;
	s->down = facts->state == STATE_DOWN;
	s->closed = facts->state != STATE_UP;
}

/*
 * Removes its workers from a rank on, by its name: another process may have
 * given them other ids. False: the region is locked, and some are left.
 */
static bool
workers_drop(struct kvh *h, struct pool_server *s, uint32_t from)
{
	uint64_t id;
	int error;

	for (; s->left > from; s->left--) {
		error = kvr_worker_find(h->k, s->name, s->length, s->left - 1,
		    &id);
		if (error == KVR_OK)
			error = kvr_worker_remove(h->k, id);
		if (error == KVR_EBUSY)
			return false;
		if (s->left <= s->ranks)
			s->ids[s->left - 1] = 0;
	}
	return true;
}

/* Takes ids, also if it fails. */
static int
server_install(struct kvh *h, const char *name, size_t n,
    const struct pool_facts *facts, uint64_t *ids, bool named)
{
	struct pool_server *s;

	pool_lock(h);
	s = server_find(h, name, n);
	if (!room_make(h, facts->told.ranks))
		s = NULL;
	else if (s == NULL)
		s = server_add(h, name, n);
	if (s != NULL) {
		server_set(s, facts, ids, named);
		(void)workers_drop(h, s, s->ranks);
		fleet_follow(h);
		h->fleet.shared->epoch++;
	} else {
		free(ids);
	}
	pool_unlock(h);
	return s == NULL ? KVR_ENOMEM : KVR_OK;
}

/* ----------------------------------------------------------------- gone --- */

static void
server_free(struct pool_server *s)
{
	free(s->ids);
	free(s);
}

static bool
is_used(const struct pool_server *s)
{
	return s->inflight > 0 || s->refs > 0;
}

bool
servers_sweep(struct kvh *h)
{
	bool done = true, ends;
	size_t i, n = 0;

	for (i = 0; i < h->n; i++) {
		struct pool_server *s = h->server[i];

		ends = s->gone && !is_used(s);
		if (!workers_drop(h, s, ends ? 0 : s->ranks))
			done = ends = false;
		if (!ends) {
			h->server[n++] = s;
			continue;
		}
		judge_leave(&h->fleet, s->key);
		server_free(s);
	}
	if (n < h->n) {
		h->n = n;
		fleet_follow(h);
	}
	return done;
}

/* Other processes choose it no longer while its last requests run here. */
static void
workers_close(struct kvh *h, const struct pool_server *s)
{
	struct kvr_worker facts = roles_worker(&s->told);

	facts.state = KVR_STATE_DOWN;
	for (facts.rank = 0; facts.rank < s->ranks; facts.rank++)
		if (s->ids[facts.rank] != 0)
			(void)kvr_worker_set(h->k, s->ids[facts.rank], &facts);
}

/* The highest rank of a name in the region, and one; 0: no worker has it. */
static int
ranks_find(struct kvh *h, const char *name, size_t n, uint32_t *ranks)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char other[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t length;
	int error;

	*ranks = 0;
	while ((error = kvr_worker_next(h->k, &id)) == KVR_OK && id != 0) {
		error = kvr_worker_name(h->k, id, other, sizeof(other),
		    &length);
		if (error == KVR_OK)
			error = kvr_worker_get(h->k, id, &facts);
		if (error == KVR_EBUSY)
			break;
		if (error == KVR_OK && length == n &&
		    memcmp(other, name, n) == 0 && facts.rank >= *ranks)
			*ranks = facts.rank + 1;
	}
	return error == KVR_EBUSY ? error : KVR_OK;
}

/* A server that an earlier run had: it is known until it has no worker. */
static int
stranger_add(struct kvh *h, const char *name, size_t n,
    struct pool_server **out)
{
	uint32_t ranks;
	int error = ranks_find(h, name, n, &ranks);

	*out = NULL;
	if (error != KVR_OK || ranks == 0)
		return error;
	if (room_make(h, 0))
		*out = server_add(h, name, n);
	if (*out == NULL)
		return KVR_ENOMEM;
	(*out)->left = ranks;
	return KVR_OK;
}

/* No more requests; its workers are removed once it has none. */
static int
server_end(struct kvh *h, const char *name, size_t n)
{
	struct pool_server *s;
	int error = KVR_OK;

	pool_lock(h);
	s = server_find(h, name, n);
	if (s == NULL)
		error = stranger_add(h, name, n, &s);
	if (s != NULL) {
		s->gone = s->down = s->closed = true;
		s->puts++;
		fleet_follow(h);
		if (is_used(s))
			workers_close(h, s);
		h->fleet.shared->epoch++;
		error = servers_sweep(h) ? KVR_OK : KVR_EBUSY;
	}
	pool_unlock(h);
	return error;
}

/* ------------------------------------------------------------------ all --- */

int
server_put(struct kvh *h, const char *name, size_t n, const char *text,
    size_t length, size_t *bad)
{
	struct pool_facts facts = { .state = STATE_UP };
	uint64_t *ids;
	bool named;
	int error;

	(void)kvr_worker_init(&facts.told.worker, sizeof(facts.told.worker));
	error = text_read(server_rows, server_rows_all, &facts, text, length,
	    bad);
	if (error != KVR_OK)
		return error;
	if (known_windows_fit(&facts.told) != NULL) {
		if (bad != NULL)
			*bad = length;
		return KVH_EVALUE;
	}
	if (facts.state == STATE_GONE)
		return server_end(h, name, n);
	named = facts.told.ranks > 0;
	facts.told.ranks += !named;
	facts.told.worker.state = facts.state == STATE_UP ? KVR_STATE_UP :
	    facts.state == STATE_DRAIN ? KVR_STATE_DRAINING : KVR_STATE_DOWN;
	ids = calloc(facts.told.ranks, sizeof(*ids));
	if (ids == NULL)
		return KVR_ENOMEM;
	error = workers_put(h, name, n, &facts, ids);
	if (error == KVR_OK)
		return server_install(h, name, n, &facts, ids, named);
	free(ids);
	return error;
}

/* ------------------------------------------------------------- failures --- */

void
server_failed(struct kvh *h, struct pool_server *s, int64_t now)
{
	capacities_trouble(&h->fleet, s->key);
	if (h->options.max_fails == 0)
		return;
	if (now - s->failed_at > h->options.fail_timeout)
		s->fails = 0;
	s->failed_at = now;
	s->fails++;
	if (s->fails < h->options.max_fails)
		return;
	s->fails = 0;
	s->out_until = now + h->options.fail_timeout;
}

void
servers_free(struct kvh *h)
{
	while (h->n > 0)
		server_free(h->server[--h->n]);
	free(h->server);
	free(h->fleet.known);
	free(h->fleet.judged);
	free(h->fleet.allowed);
}
