/* SPDX-License-Identifier: BSD-2-Clause */
/* known_list.c - see known_list.h. */
#include "known_list.h"

#include <stdlib.h>
#include <string.h>

#include "shared.h"

/* Sets its ranks, and makes room for their ids; false: no memory. */
static bool
ranks_make(struct known *known)
{
	known->ranks = known_ranks(known->facts);
	known->named = known->facts != NULL && known->facts->ranks > 0;
	known->ids = calloc(known->ranks, sizeof(*known->ids) +
	    sizeof(*known->flags));
	if (known->ids == NULL)
		return false;
	known->flags = (uint8_t *)(known->ids + known->ranks);
	known_ids_due(known);
	return true;
}

bool
known_list_fill(struct known_list *l)
{
	struct known *known, *end = l->known + l->n;
	size_t workers = 0;

	for (known = l->known; known < end; known++) {
		known->key = shared_key(known->name, known->name_len);
		if (!ranks_make(known))
			return false;
		workers += known->ranks;
	}
	l->allowed = malloc((workers + 1) * sizeof(*l->allowed));
	l->judged = malloc((l->n_first + 1) * sizeof(*l->judged));
	return l->allowed != NULL && l->judged != NULL;
}

void
known_list_free(struct known_list *l)
{
	size_t i;

	for (i = 0; l->known != NULL && i < l->n; i++)
		free(l->known[i].ids);
	free(l->known);
	free(l->allowed);
	free(l->judged);
}

/* ----------------------------------------------------------- known anew --- */

static void
known_move(struct known *to, struct known *from)
{
	free(to->ids);
	to->ids = from->ids;
	to->flags = from->flags;
	to->due = from->due;
	to->closed = from->closed;
	to->ask = from->ask;
	to->poll = from->poll;
	to->health = from->health;
	to->joined = from->joined && to->weight == from->weight;
	to->refused = from->refused;
	to->prefills_after = from->prefills_after;
	from->ids = NULL;
	from->ask = NULL;
	from->poll = NULL;
}

static bool
is_same(const struct known *a, const struct known *b)
{
	return a->key == b->key && a->facts == b->facts &&
	    known_is_called(a, b->name, b->name_len);
}

void
known_list_keep(struct known_list *l, struct fleet *f)
{
	size_t i, j;

	for (i = 0; i < l->n; i++) {
		for (j = 0; j < f->n_known; j++)
			if (f->known[j].ids != NULL &&
			    is_same(&f->known[j], &l->known[i]))
				break;
		if (j < f->n_known)
			known_move(&l->known[i], &f->known[j]);
	}
}

void
known_list_take(struct known_list *l, struct fleet *f)
{
	size_t i;

	known_list_leave(f);
	f->known = l->known;
	f->n_known = l->n;
	f->n_first = l->n_first;
	f->allowed = l->allowed;
	f->judged = l->judged;
	for (i = 0; i < l->n; i++)
		f->n_workers += l->known[i].ranks;
}

void
known_list_leave(struct fleet *f)
{
	struct known_list old = { f->known, f->n_known, f->n_first,
	    f->allowed, f->judged };

	known_list_free(&old);
	f->known = NULL;
	f->allowed = NULL;
	f->judged = NULL;
	f->n_known = f->n_first = f->n_workers = f->n_judged = 0;
}
