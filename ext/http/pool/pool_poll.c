/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_poll.c - see pool_poll.h. */
#include "pool_poll.h"

#include <stdlib.h>
#include <string.h>

#include "capacities.h"
#include "loads.h"

#define MS INT64_C(1000000)

_Static_assert((int)KVH_NAME_MAX == (int)KVR_NAME_MAX, "room of the caller");

/* An errand that the caller makes. */
struct poll_open {
	uint64_t token;      /* 0: the caller has none */
	int64_t until;
	bool again;          /* another path is to be asked for */
};

struct pool_asked {
	uint64_t serial;
	uint32_t puts;
	struct server_facts told;
	struct ask *ask;     /* or NULL */
	struct poll *poll;   /* or NULL */
	struct poll_open open[2];
};

void
polls_begin(struct kvh *h)
{
	struct fleet *f = &h->polls.fleet;

	(void)pthread_mutex_init(&h->polls.lock, NULL);
	f->kvr = h->k;
	f->options = &h->region;
	f->poll_ms = (uint64_t)(h->options.poll / MS);
	f->poll_path = h->options.poll_path;
}

static void
asked_free(struct pool_asked *a)
{
	if (a == NULL)
		return;
	capacities_free(a->ask);
	loads_free(a->poll);
	free(a);
}

static void
polls_free(struct pool_asked **asked, size_t n)
{
	while (n > 0)
		asked_free(asked[--n]);
	free(asked);
}

void
polls_end(struct kvh *h)
{
	struct fleet *f = &h->polls.fleet;

	if (h->polls.leads)
		loads_leave(f);
	polls_free(h->polls.asked, f->n_known);
	free(f->known);
	free(f->allowed);
	(void)pthread_mutex_destroy(&h->polls.lock);
}

/* -------------------------------------------------------------- servers --- */

/* NULL: no memory. */
static struct pool_asked *
asked_new(struct fleet *f, const struct pool_server *s, struct known *known,
    int64_t now)
{
	struct pool_asked *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return NULL;
	a->serial = s->serial;
	a->puts = s->puts;
	a->told = s->told;
	known->facts = &a->told;
	if (s->told.ask)
		a->ask = capacities_new(f, known, now);
	if (f->poll_ms > 0)
		a->poll = loads_new(f, known, now);
	if ((s->told.ask && a->ask == NULL) ||
	    (f->poll_ms > 0 && a->poll == NULL)) {
		asked_free(a);
		return NULL;
	}
	return a;
}

/* As it was, if nothing of it has changed. */
static struct pool_asked *
asked_keep(struct pool_polls *p, const struct pool_server *s)
{
	struct pool_asked *a;
	size_t i;

	for (i = 0; i < p->fleet.n_known; i++) {
		a = p->asked[i];
		if (a == NULL || a->serial != s->serial || a->puts != s->puts)
			continue;
		p->asked[i] = NULL;
		return a;
	}
	return NULL;
}

/* With both locks. False: no memory, and some are left out until later. */
static bool
asked_fill(struct kvh *h, struct pool_asked **asked, struct known *known,
    uint64_t *ids, int64_t now)
{
	const struct pool_server *s;
	bool all = true;
	size_t i, n = 0;

	for (i = 0; i < h->fleet.n_first; i++) {
		s = h->server[i];
		known[n] = (struct known){ .name_len = s->length,
		    .key = s->key, .ids = ids, .ranks = s->ranks };
		memcpy(known[n].name, s->name, s->length);
		asked[n] = asked_keep(&h->polls, s);
		if (asked[n] == NULL)
			asked[n] = asked_new(&h->polls.fleet, s, &known[n],
			    now);
		if (asked[n] == NULL) {
			all = false;
			continue;
		}
		known[n].facts = &asked[n]->told;
		known[n].ask = asked[n]->ask;
		known[n].poll = asked[n]->poll;
		ids += s->ranks;
		n++;
	}
	polls_free(h->polls.asked, h->polls.fleet.n_known);
	h->polls.asked = asked;
	h->polls.fleet.n_known = h->polls.fleet.n_first = n;
	return all;
}

/* With both locks: ids are not kept, so all of them are 0. */
static void
servers_copy(struct kvh *h, int64_t now)
{
	struct fleet *f = &h->polls.fleet;
	const size_t n = h->fleet.n_first + 1;
	struct pool_asked **asked = calloc(n, sizeof(struct pool_asked *));
	struct known *known = calloc(n, sizeof(*known));
	uint64_t *ids = calloc(h->fleet.n_workers + 1, sizeof(*ids));

	if (asked == NULL || known == NULL || ids == NULL) {
		free(asked);
		free(known);
		free(ids);
		return;
	}
	if (asked_fill(h, asked, known, ids, now))
		h->polls.lists = h->lists;
	free(f->known);
	free(f->allowed);
	f->known = known;
	f->allowed = ids;
	f->n_workers = h->fleet.n_workers;
}

void
polls_lock(struct kvh *h, int64_t now)
{
	(void)pthread_mutex_lock(&h->polls.lock);
	pool_lock(h);
	if (h->polls.lists != h->lists)
		servers_copy(h, now);
	pool_unlock(h);
}

void
polls_unlock(struct kvh *h)
{
	(void)pthread_mutex_unlock(&h->polls.lock);
}

/* ----------------------------------------------------------------- next --- */

/* Errand k of a server: 0 for its capacity, 1 for its load; or NULL. */
static struct errand *
errand_of(const struct pool_asked *a, int k)
{
	if (k == 0)
		return a->ask != NULL ? capacities_errand(a->ask) : NULL;
	return a->poll != NULL ? loads_errand(a->poll) : NULL;
}

/* One that goes on with another path, after those that are late have failed. */
static struct errand *
errand_again(struct pool_polls *p, int64_t now, struct poll_open **open)
{
	struct errand *e;
	size_t i;
	int k;

	for (i = 0; i < 2 * p->fleet.n_known; i++) {
		k = (int)(i % 2);
		e = errand_of(p->asked[i / 2], k);
		if (e == NULL || !e->open)
			continue;
		*open = &p->asked[i / 2]->open[k];
		if ((*open)->again)
			return e;
		if (now >= (*open)->until)
			errand_failed(e, "no response has come in time", now,
			    NULL);
	}
	return NULL;
}

/* For the process that leads. */
static struct errand *
load_next(struct pool_polls *p, int64_t now)
{
	struct fleet *f = &p->fleet;
	size_t i = 0;

	if (f->poll_ms == 0)
		return NULL;
	if (p->look_at == 0 || now >= p->look_at || now < p->look_at -
	    (int64_t)loads_tick_ms(f) * MS) {
		p->leads = loads_look(f, now) == LOADS_LEAD;
		p->look_at = now + (int64_t)loads_tick_ms(f) * MS;
	}
	return p->leads ? loads_next(f, &i, true, now) : NULL;
}

static struct errand *
errand_next(struct pool_polls *p, int64_t now, struct poll_open **open)
{
	struct errand *e = errand_again(p, now, open);
	size_t i = 0;
	int k;

	if (e != NULL)
		return e;
	e = capacities_next(&p->fleet, &i, true, now);
	if (e == NULL)
		e = load_next(p, now);
	for (i = 0; e != NULL && i < p->fleet.n_known; i++)
		for (k = 0; k < 2; k++)
			if (errand_of(p->asked[i], k) == e)
				*open = &p->asked[i]->open[k];
	return e;
}

int
kvh_poll_next(struct kvh *h, int64_t now, char *server, size_t room,
    size_t *server_len, const char **path, size_t *path_len, uint64_t *token)
{
	struct poll_open *open = NULL;
	struct errand *e;

	if (h == NULL || server == NULL || room < KVH_NAME_MAX ||
	    server_len == NULL || path == NULL || path_len == NULL ||
	    token == NULL)
		return KVR_EINVAL;
	now = pool_now(now);
	polls_lock(h, now);
	e = errand_next(&h->polls, now, &open);
	if (e != NULL) {
		*open = (struct poll_open){ .token = ++h->polls.tokens,
		    .until = now + (int64_t)e->deadline_ms * MS };
		*token = open->token;
		memcpy(server, e->name, e->name_len);
		*server_len = e->name_len;
		*path = e->path;
		*path_len = strlen(e->path);
	}
	polls_unlock(h);
	return e != NULL ? KVR_OK : KVH_EEND;
}

/* ----------------------------------------------------------------- done --- */

static void
errand_take(struct errand *e, struct poll_open *open, uint32_t status,
    const void *body, size_t n, int64_t now)
{
	enum errand_state state = ERRAND_MORE;

	open->token = 0;
	if (status == 0) {
		errand_failed(e, "there was no response", now, NULL);
		return;
	}
	if (n > 0)
		state = errand_data(e, status, body, n, now, NULL);
	if (state == ERRAND_MORE)
		state = errand_end(e, status, true, now, NULL);
	open->again = state == ERRAND_AGAIN;
}

int
kvh_poll_done(struct kvh *h, uint64_t token, uint32_t status,
    const void *body, size_t n, int64_t now)
{
	struct pool_asked *a;
	struct errand *e;
	int error = KVH_EEND;
	size_t i;

	if (h == NULL || (body == NULL && n > 0))
		return KVR_EINVAL;
	now = pool_now(now);
	polls_lock(h, now);
	for (i = 0; token != 0 && i < 2 * h->polls.fleet.n_known; i++) {
		a = h->polls.asked[i / 2];
		e = errand_of(a, (int)(i % 2));
		if (e == NULL || !e->open || a->open[i % 2].token != token)
			continue;
		errand_take(e, &a->open[i % 2], status, body, n, now);
		error = KVR_OK;
		break;
	}
	polls_unlock(h);
	return error;
}
