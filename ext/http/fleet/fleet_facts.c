/* SPDX-License-Identifier: BSD-2-Clause */
/* fleet_facts.c - see fleet_facts.h. */
#include "fleet_facts.h"

#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "loads.h"

void
fleet_facts_free(struct fleet_facts *of)
{
	free(of->loads);
	free(of->healths);
	free(of->asked);
	free(of->left);
	free(of->names);
	memset(of, 0, sizeof(*of));
}

/* Servers whose capacity is read. */
static size_t
asked_list(const struct fleet *f, struct status_name *out)
{
	const struct known *known;
	size_t n = 0;

	for (known = f->known; known < f->known + f->n_known; known++)
		if (known->facts != NULL && known->facts->ask)
			out[n++] = (struct status_name){ known->name,
			    known->name_len };
	return n;
}

static void
name_move(const char **name, size_t n, char **at)
{
	memcpy(*at, *name, n);
	*name = *at;
	*at += n;
}

/* False: no memory. */
static bool
names_keep(struct fleet_facts *to, const struct status_upstream *up)
{
	size_t i, n = 1;
	char *at;

	for (i = 0; i < up->n_loads; i++)
		n += to->loads[i].name_length;
	for (i = 0; i < up->n_healths; i++)
		n += to->healths[i].name_length;
	for (i = 0; i < up->n_asked; i++)
		n += to->asked[i].length;
	at = to->names = malloc(n);
	if (at == NULL)
		return false;
	for (i = 0; i < up->n_loads; i++)
		name_move(&to->loads[i].name, to->loads[i].name_length, &at);
	for (i = 0; i < up->n_healths; i++)
		name_move(&to->healths[i].name, to->healths[i].name_length,
		    &at);
	for (i = 0; i < up->n_asked; i++)
		name_move(&to->asked[i].bytes, to->asked[i].length, &at);
	return true;
}

/* False: no memory. */
static bool
lists_make(struct fleet_facts *to, const struct fleet *f,
    const struct fleet *polls, size_t left)
{
	to->loads = malloc((polls->n_workers + 1) * sizeof(*to->loads));
	to->healths = malloc((f->n_known + 1) * sizeof(*to->healths));
	to->asked = malloc((f->n_known + 1) * sizeof(*to->asked));
	to->left = malloc((left + 1) * sizeof(*to->left));
	return to->loads != NULL && to->healths != NULL && to->asked != NULL &&
	    to->left != NULL;
}

bool
fleet_facts_take(struct fleet_facts *to, struct status_upstream *up,
    const struct fleet *f, const struct fleet *polls, const struct places *p,
    const struct members *m, int64_t now)
{
	size_t i;

	memset(to, 0, sizeof(*to));
	up->n_left = m != NULL ? m->n_left : 0;
	if (!lists_make(to, f, polls, up->n_left)) {
		fleet_facts_free(to);
		return false;
	}
	up->n_loads = loads_list(polls, to->loads, now);
	up->n_healths = judge_list(f, to->healths, now);
	up->n_asked = asked_list(f, to->asked);
	for (i = 0; i < up->n_left; i++)
		to->left[i] = m->left[i].id;
	if (!names_keep(to, up)) {
		fleet_facts_free(to);
		return false;
	}
	shared_copy(f->shared, &to->counters);
	up->kvr = f->kvr;
	up->counters = &to->counters;
	up->loads = to->loads;
	up->healths = to->healths;
	up->asked = to->asked;
	up->left = to->left;
	up->queue = f->queue;
	up->waiting = f->queue > 0 ? places_length(p, now) : 0;
	return true;
}
