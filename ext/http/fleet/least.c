/* SPDX-License-Identifier: BSD-2-Clause */
/* least.c - see least.h. */
#include "least.h"

#include "waits.h"

static bool
is_less(const struct known *a, const struct known *b)
{
	return a->conns * b->weight < b->conns * a->weight;
}

/* Searches servers from..to - 1; `to`: not found. */
static size_t
least_of(const struct fleet *f, size_t from, size_t to, bool closed, bool held)
{
	size_t n = to - from, i, at, best = to;
	const struct known *known;

	for (i = 0; i < n; i++) {
		at = from + (f->turn + i) % n;
		known = &f->known[at];
		if (known->usable && known->closed == closed &&
		    known->held == held &&
		    (best == to || is_less(known, &f->known[best])))
			best = at;
	}
	return best;
}

static size_t
least_first(const struct fleet *f, bool closed)
{
	size_t best = least_of(f, 0, f->n_first, closed, false);

	return best < f->n_first ? best :
	    least_of(f, 0, f->n_first, closed, true);
}

size_t
least_loaded(struct fleet *f)
{
	int closed, last = waits_full(f) ? 0 : 1;
	size_t best;

	f->turn++;
	for (closed = 0; closed <= last; closed++) {
		best = least_first(f, closed == 1);
		if (best < f->n_first)
			return best;
		best = least_of(f, f->n_first, f->n_known, closed == 1, false);
		if (best < f->n_known)
			return best;
	}
	return f->n_known;
}
