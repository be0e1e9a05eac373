/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alias.c - a table of the engines' own names of the blocks that they hold.
 *
 * An engine names a block by a hash of its own, which means nothing to others:
 * it depends on a seed, on the engine, and on its version. An alias is such a
 * name with its block in the index. Names are private to one life of one
 * worker: from when its cache was known to be empty until something was lost.
 *
 *   engine's name   9c1f       04d2       77ab
 *                    |          |          |
 *   alias          [ s0 ] <-- [ s1 ] <-- [ s2 ]     parent: the block before
 *                      \        |        /          node: where it was put
 *   index               [h0     h1     h2] w1
 *
 * A root is an alias too, of the scope and not of a block: it has no parent.
 * So the way up from an alias has all hashes of its prefix.
 *
 * THE INVARIANTS
 *   1. An alias is in the bucket of its life and name, once.
 *   2. A parent is of the same life, and outlives its children, which it
 *      counts. A root has no copies.
 *   3. A stream counts the aliases of its life.
 *
 *   4. The region counts those that are dead: of a life that has ended.
 *
 * Ending a life costs nothing: the stream gets another number, or no number.
 * While there are dead aliases, a piece of a batch looks at two for each that
 * it may add, and frees the dead ones; so when half of the table was added all
 * are free again. If it may need more than are free, it looks at as many once
 * more until there are enough, up to a bound, and waits for another call if
 * that was not enough: so no alias is refused while there are dead ones
 * anywhere. Where all free aliases have been counted, so must be all others.
 */
#include "alias.h"

#include "mix.h"

enum {
	SWEEP = 2,         /* looked at for dead ones, for one that is added, */
	SWEEP_MIN = 64,    /* at least, */
	SWEEP_MAX = 16384, /* and by one call; they follow each other, so a */
	SWEEP_STEP = 16,   /* step of other work takes as long as these */
	AHEAD = 6   /* names, from one step of loading ahead to the next */
};

uint32_t
alias_bucket(const struct kvr *k, uint32_t life, uint64_t name)
{
	uint64_t h = mix(mix(name ^ k->table_key[1]) + life) >> 32;

	return (uint32_t)(h * k->layout.aliases >> 32);
}

uint32_t
alias_life(struct kvr *k)
{
	if (k->layout.aliases == 0 || k->region->alias_life == UINT32_MAX)
		return 0;
	put_once(k->region->alias_life, k->region->alias_life + 1);
	return k->region->alias_life;
}

void
alias_end(struct kvr *k, struct stream *s)
{
	add_once(k->region->alias_dead, s->aliases);
	write_once(s->life, 0);
	write_once(s->aliases, 0);
}

/* Only long chains are counted as steps: see BROKEN in region.h. */
uint32_t
alias_find(const struct kvr *k, uint32_t life, uint64_t name)
{
	uint32_t limit = CHAIN_MAX, i;

	if (life == 0 || k->layout.aliases == 0)
		return 0;
	i = k->alias_buckets[alias_bucket(k, life, name)];
	for (; i != 0 && limit > 0; i = alias_at(k, i)->next, limit--)
		if (alias_at(k, i)->name == name &&
		    alias_at(k, i)->life == life)
			break;
	if (limit < CHAIN_MAX - CHAIN_USUAL)
		add_once(k->region->counts.steps, CHAIN_MAX - limit);
	return limit > 0 && i <= k->layout.aliases ? i : 0;
}

/* A bucket, some names later its first alias, and then the one behind that. */
void
alias_prefetch(const struct kvr *k, uint32_t life, const uint64_t *name,
    size_t left, int by)
{
	const ptrdiff_t far = (ptrdiff_t)by * AHEAD;
	const uint32_t *buckets = k->alias_buckets;
	uint32_t first;

	if (left > 3 * AHEAD)
		__builtin_prefetch(&buckets[alias_bucket(k, life,
		    name[3 * far])]);
	if (left > 2 * AHEAD)
		__builtin_prefetch(alias_at(k, read_once(buckets[
		    alias_bucket(k, life, name[2 * far])])));
	if (left > AHEAD) {
		first = read_once(buckets[alias_bucket(k, life, name[far])]);
		__builtin_prefetch(alias_at(k, read_once(alias_at(k,
		    first)->next)));
	}
}

/* ------------------------------------------------------------- freeing --- */

/* Takes it out of its bucket and frees it. */
static void
unlink_alias(struct kvr *k, uint32_t alias)
{
	struct alias *a = alias_at(k, alias);
	uint32_t *at = &k->alias_buckets[alias_bucket(k, a->life, a->name)];
	uint32_t limit = CHAIN_MAX;

	while (*at != alias && *at != 0 && limit-- > 0)
		at = &alias_at(k, *at)->next;
	if (*at != alias) {
		region_break(k);
		return;
	}
	write_once(*at, a->next);
	write_once(a->life, 0);
	write_once(a->next, k->region->alias_free);
	put_once(k->region->alias_free, alias);
}

/* Frees the dead among so many that were ever used; returns how many. */
static uint64_t
sweep_dead(struct kvr *k, uint64_t most)
{
	struct region *r = k->region;
	uint32_t i = r->alias_sweep, used = r->alias_fresh - 1;
	uint64_t left = most, found = 0;

	for (; left > 0 && r->alias_dead > 0 && !region_broken(k); left--) {
		i = i < used && i < k->layout.aliases ? i + 1 : 1;
		if (!alias_dead(k, alias_at(k, i)))
			continue;
		unlink_alias(k, i);
		sub_once(r->alias_dead, 1);
		found++;
	}
	put_once(r->alias_sweep, i);
	add_once(r->counts.steps, (most - left) / SWEEP_STEP + found);
	return found;
}

/* Aliases that were never used; all, if it is damaged. */
static uint64_t
count_unused(const struct kvr *k)
{
	return k->layout.aliases + UINT64_C(1) - k->region->alias_fresh;
}

/* Aliases that can be added, or as many as are needed. */
static uint64_t
at_hand(const struct kvr *k, uint64_t need)
{
	uint32_t i = k->region->alias_free;
	uint64_t n = count_unused(k), walked = 0;

	if (n >= need)
		return need;
	for (; n + walked < need && i != 0; walked++)
		i = alias_at(k, i)->next;
	add_once(k->region->counts.steps, walked / SWEEP_STEP);
	return n + walked;
}

bool
alias_at_hand(const struct kvr *k, uint64_t need)
{
	return at_hand(k, need) == need;
}

/*
 * So many are free; is each of the others alive, or dead? If too few count as
 * dead some are never found, and if too many, calls wait for those.
 */
static bool
add_up(const struct kvr *k, uint64_t n)
{
	uint32_t i;

	n += k->region->alias_dead;
	for (i = 0; i < k->layout.names; i++)
		n += k->streams[i].aliases;
	add_once(k->region->counts.steps, k->layout.names / SWEEP_STEP);
	return n == k->region->alias_fresh - UINT64_C(1);
}

bool
alias_reclaim(struct kvr *k, uint64_t need)
{
	uint64_t left = k->layout.aliases < SWEEP_MAX ? k->layout.aliases
	    : SWEEP_MAX;
	uint64_t part = SWEEP * need < SWEEP_MIN ? SWEEP_MIN : SWEEP * need;
	uint64_t n = at_hand(k, need);

	do {
		part = part < left ? part : left;
		n += sweep_dead(k, part);
		left -= part;
	} while (n < need && left > 0 && k->region->alias_dead > 0);
	if (n >= need)
		return true;
	if (!add_up(k, n - count_unused(k))) {
		region_break(k);
		return false;
	}
	return k->region->alias_dead == 0;
}

uint64_t
alias_rounds(const struct kvr *k)
{
	return k->layout.aliases / SWEEP_MAX + 1;
}

/* A free alias, or 0. */
static uint32_t
take_free(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t i = r->alias_fresh;

	if (r->alias_free == 0 && i <= k->layout.aliases) {
		put_once(r->alias_fresh, i + 1);
		return i;
	}
	i = r->alias_free;
	if (i > k->layout.aliases || alias_at(k, i)->life != 0) {
		region_break(k);
		return 0;
	}
	if (i != 0)
		put_once(r->alias_free, alias_at(k, i)->next);
	return i;
}

/* ------------------------------------------------------------ changing --- */

uint32_t
alias_add(struct kvr *k, const struct alias *like)
{
	uint32_t i = take_free(k), *head;
	struct alias a = *like, *p = alias_at(k, like->parent);

	if (i == 0 || region_broken(k))
		return 0;
	head = &k->alias_buckets[alias_bucket(k, a.life, a.name)];
	a.next = *head;
	a.children = 0;
	write_once_words(alias_at(k, i), &a, sizeof(a));
	write_once(*head, i);
	if (a.parent != 0)
		write_once(p->children, p->children + 1);
	add_once(stream_at(k, a.worker)->aliases, 1);
	return i;
}

void
alias_drop(struct kvr *k, uint32_t alias)
{
	const struct alias *a = alias_at(k, alias);
	struct alias *p = alias_at(k, a->parent);

	if (alias == 0 || a->children != 0 || alias_dead(k, a))
		return;
	if (a->life == 0) {
		region_break(k); /* it is free: its child was in a ring */
		return;
	}
	if (a->parent != 0)
		write_once(p->children, p->children - 1);
	sub_once(stream_at(k, a->worker)->aliases, 1);
	unlink_alias(k, alias);
}

void
alias_empty(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.aliases; i++)
		write_once(k->alias_buckets[i], 0);
	if (k->layout.aliases > 0)
		write_once_zeros(alias_at(k, 0), sizeof(struct alias));
	put_once(k->region->alias_dead, 0);
	put_once(k->region->alias_free, 0);
	put_once(k->region->alias_fresh, 1);
	put_once(k->region->alias_sweep, 0);
}
