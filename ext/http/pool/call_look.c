/* SPDX-License-Identifier: BSD-2-Clause */
/* call_look.c - see call_look.h. */
#include "call_look.h"

#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "members.h"
#include "pool_roll.h"
#include "roles.h"
#include "waits.h"

bool
serials_add(uint64_t **list, size_t *n, size_t *room, uint64_t serial)
{
	const size_t more = *room == 0 ? 8 : 2 * *room;
	uint64_t *grown;

	if (*n == *room) {
		grown = realloc(*list, more * sizeof(**list));
		if (grown == NULL)
			return false;
		*list = grown;
		*room = more;
	}
	(*list)[(*n)++] = serial;
	return true;
}

static int
serials_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool
serials_have(const uint64_t *list, size_t n, uint64_t serial)
{
	return n > 0 && bsearch(&serial, list, n, sizeof(*list),
	    serials_compare) != NULL;
}

/* ----------------------------------------------------------------- mark --- */

static bool
is_target(const struct kvh_call *c, const struct pool_server *s)
{
	uint32_t i;

	for (i = 0; i < c->n_targets; i++)
		if (c->target[i].server == s)
			return true;
	return false;
}

/* A look at the servers. */
struct view {
	const struct kvh_call *c; /* NULL: of a request that may go anywhere */
	int64_t now;
	bool counted;             /* requests of other processes */
	bool out;                 /* those that have failed lately, too */
};

static void
known_mark(const struct view *v, const struct pool_server *s,
    struct known *known)
{
	const struct kvh_call *c = v->c;
	const uint64_t requests = v->counted && s->requests > s->inflight ?
	    s->requests : s->inflight;
	const bool full = s->max_conns > 0 && requests >= s->max_conns;
	const bool tried = c != NULL && serials_have(c->tried, c->n_tried,
	    s->serial);
	bool may;

	known->down = s->down || s->gone || (c != NULL && c->allows &&
	    !serials_have(c->allow, c->n_allow, s->serial));
	may = !known->down && (v->out || v->now >= s->out_until) && !tried &&
	    (c == NULL || !is_target(c, s));
	known->closed = s->closed;
	known->conns = requests;
	known->usable = may && !full;
	known->full = may && full;
	known->gray = known->held = known->spared = false;
	known->prefills_after = tried ? INT64_MAX : s->out_until;
}

static void
view_mark(struct kvh *h, const struct view *v)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		known_mark(v, h->server[i], &h->fleet.known[i]);
	if (h->parted)
		roles_mark(&h->fleet, v->now);
}

void
look_mark(struct kvh_call *c, bool out)
{
	const struct view view = { c, c->now, c->counted, out };
	struct kvh *h = c->h;

	view_mark(h, &view);
	waits_yield(&h->waits, &c->wait, c->now);
	(void)judge_look(&h->fleet, c->now);
}

size_t
look_room(struct kvh *h, int64_t now)
{
	const struct view view = { .now = now, .counted = true };
	const struct known *known;
	size_t i, room = 0;

	view_mark(h, &view);
	for (i = 0; i < h->n; i++) {
		known = &h->fleet.known[i];
		if (known->usable && !known->closed)
			room += h->server[i]->max_conns == 0 ? UINT32_MAX :
			    h->server[i]->max_conns - known->conns;
	}
	judge_mark(&h->fleet);
	return room;
}

bool
look_has_tried(const struct kvh_call *c, size_t i)
{
	const uint64_t serial = c->h->server[i]->serial;

	return serials_have(c->tried, c->n_tried, serial) || (c->allows &&
	    !serials_have(c->allow, c->n_allow, serial));
}

/* Is there a server in use for it, or may it wait for one? */
static bool
has_hope(const struct fleet *f)
{
	size_t i;

	for (i = 0; i < f->n_known; i++)
		if (f->known[i].usable && !f->known[i].closed)
			return true;
	return waits_full(f);
}

void
look_mark_best(struct kvh_call *c)
{
	look_mark(c, false);
	if (!has_hope(&c->h->fleet))
		look_mark(c, true);
}

bool
call_some(struct kvh_call *c, size_t n)
{
	uint64_t *some = c->some;

	if (n > c->some_room) {
		some = realloc(c->some, n * sizeof(*some));
		if (some == NULL)
			return false;
		c->some = some;
		c->some_room = n;
	}
	if (n > 0)
		memcpy(some, c->h->fleet.allowed, n * sizeof(*some));
	return true;
}

int
workers_allow(struct kvh_call *c, size_t *n, bool *splits)
{
	struct fleet *f = &c->h->fleet;
	bool missing, copied;

	pool_lock(c->h);
	look_mark_best(c);
	*n = members_allow(f, &missing);
	*splits = c->parted && roles_split(f);
	copied = call_some(c, *n);
	pool_unlock(c->h);
	return *n == 0 ? KVR_ENOWORKER : copied ? KVR_OK : KVR_ENOMEM;
}

bool
server_takes(const struct pool_server *s)
{
	return !s->down && (s->max_conns == 0 || s->inflight < s->max_conns);
}

void
look_take(struct kvh_call *c, struct pool_server *s, int32_t rank)
{
	s->inflight++;
	c->target[0] = (struct call_target){ .server = s,
	    .rank = s->named ? rank : LOOK_NO_RANK, .ranks = s->ranks,
	    .named = s->named };
	c->n_targets = 1;
}

/* ---------------------------------------------------------------- count --- */

/* Does a limit or a share of the load need the requests of all processes? */
static bool
is_counted(const struct kvh *h)
{
	size_t i;

	if (h->options.slow_start > 0)
		return true;
	for (i = 0; i < h->n; i++)
		if (h->server[i]->max_conns > 0)
			return true;
	return false;
}

/* With the pool's lock: other threads read them while it stands in line. */
static void
lists_sort(struct kvh_call *c)
{
	if (c->n_tried > 1)
		qsort(c->tried, c->n_tried, sizeof(*c->tried),
		    serials_compare);
	if (!c->allow_sorted && c->n_allow > 1)
		qsort(c->allow, c->n_allow, sizeof(*c->allow),
		    serials_compare);
	c->allow_sorted = true;
}

void
look_begin(struct kvh_call *c)
{
	struct kvh *h = c->h;
	bool counted;

	c->counted = false;
	servers_look(h, c->now);
	pool_lock(h);
	lists_sort(c);
	h->begun = true;
	c->parted = h->parted;
	counted = is_counted(h);
	pool_unlock(h);
	if (counted)
		look_count(c);
}

void
look_count(struct kvh_call *c)
{
	if (c->counted)
		return;
	servers_count(c->h);
	c->counted = true;
}
