/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name.c - names of workers, and the data-parallel groups of their ranks.
 *
 *	bucket --> "10.0.0.1:8000" rank 0 --> slot 3, number 7
 *	       --> "10.0.0.1:8000" rank 1 --> slot 5, number 2
 *
 * A name has a number for as long as its worker exists, also across resets,
 * which move the worker to another slot. Ranks of one name share a bucket.
 */
#include "name.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* --------------------------------------------------------------- names --- */

struct name *
name_at(const struct kvr *k, uint32_t number)
{
	return &k->names[number - 1 < k->layout.names ? number - 1 : 0];
}

/* Ranks of one name share a bucket. */
static uint32_t *
name_bucket(const struct kvr *k, const char *name, size_t length)
{
	uint64_t h = XXH3_64bits_withSeed(name, length, k->table_key[11]);

	return &k->name_buckets[h % k->layout.name_buckets];
}

/* Bounded also if the name is damaged. */
size_t
name_length(const struct name *n)
{
	return n->length < KVR_NAME_MAX ? n->length : KVR_NAME_MAX;
}

static bool
name_is(const struct name *n, const char *name, size_t length)
{
	return name_length(n) == length && memcmp(n->text, name, length) == 0;
}

bool
name_find(const struct kvr *k, const char *name, size_t length,
    uint32_t rank, uint32_t *slot)
{
	uint32_t i = read_once(*name_bucket(k, name, length));
	uint32_t limit = k->layout.names;
	struct name n;

	for (; i != 0 && limit > 0; i = n.next, limit--) {
		read_once_words(&n, name_at(k, i), sizeof(n));
		if (name_is(&n, name, length) &&
		    read_once(slot_at(k, n.slot)->rank) == rank) {
			*slot = n.slot;
			return true;
		}
	}
	return false;
}

/* There are as many names as workers; the caller has checked the limit. */
uint32_t
name_add(struct kvr *k, const char *name, size_t length, uint32_t slot)
{
	uint32_t number = k->region->name_free;
	uint32_t *head = name_bucket(k, name, length);
	struct name n;

	put_once(k->region->name_free, name_at(k, number)->next);
	memset(&n, 0, sizeof(n));
	memcpy(n.text, name, length);
	n.length = (uint8_t)length;
	n.used = 1;
	n.slot = (uint16_t)slot;
	n.next = *head;
	write_once_words(name_at(k, number), &n, sizeof(n));
	write_once(*head, number);
	return number;
}

void
name_remove(struct kvr *k, uint32_t number)
{
	struct name *n = name_at(k, number);
	uint32_t *link = name_bucket(k, n->text, name_length(n));
	uint32_t limit = k->layout.names;

	for (; *link != 0 && *link != number && limit > 0; limit--)
		link = &name_at(k, *link)->next;
	if (*link == number)
		write_once(*link, n->next);
	write_once(n->used, 0);
	write_once(n->next, k->region->name_free);
	put_once(k->region->name_free, number);
}

/* Puts it into its bucket or, if it is not in use, among the free ones. */
void
name_link(struct kvr *k, uint32_t number)
{
	struct name *n = name_at(k, number);
	uint32_t *head = n->used ? name_bucket(k, n->text, name_length(n))
	    : &k->region->name_free;

	put_once(n->next, *head);
	write_once(*head, number);
}

/* --------------------------------------------------------------- groups --- */

/*
 * The ranks of one name are a data-parallel group. The number of ranks that are
 * up and not overloaded is kept up to date, so that no reader has to count
 * them.
 */
struct dp_group *
dp_group_at(const struct kvr *k, uint32_t dp_group)
{
	return &k->dp_groups[dp_group - 1 < k->layout.names ? dp_group - 1 : 0];
}

static void
dp_group_not_overloaded(struct kvr *k, uint32_t dp_group, int32_t more)
{
	struct dp_group *t = dp_group_at(k, dp_group);

	write_once(t->not_overloaded, t->not_overloaded + (uint32_t)more);
}

void
dp_group_join(struct kvr *k, uint32_t slot, uint32_t dp_group)
{
	write_once(slot_at(k, slot)->dp_group, dp_group);
	add_once(dp_group_at(k, dp_group)->ranks, 1);
	if (slot_relieves(slot_at(k, slot)))
		dp_group_not_overloaded(k, dp_group, 1);
}

/* Call it after a change; before: whether it relieved the group before. */
void
dp_group_recount(struct kvr *k, const struct slot *s, bool before)
{
	if (s->dp_group != 0 && before != slot_relieves(s))
		dp_group_not_overloaded(k, s->dp_group, before ? -1 : 1);
}

void
dp_group_leave(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	sub_once(dp_group_at(k, s->dp_group)->ranks, 1);
	if (slot_relieves(s))
		dp_group_not_overloaded(k, s->dp_group, -1);
	write_once(s->dp_group, 0);
}

/* The group of the other ranks of this name, or a free one. */
uint32_t
dp_group_of(const struct kvr *k, const char *name, size_t length)
{
	uint32_t i = *name_bucket(k, name, length), limit = k->layout.names;

	for (; i != 0 && limit > 0; i = name_at(k, i)->next, limit--)
		if (name_is(name_at(k, i), name, length) &&
		    slot_at(k, name_at(k, i)->slot)->dp_group != 0)
			return slot_at(k, name_at(k, i)->slot)->dp_group;
	for (i = 1; i < k->layout.names && dp_group_at(k, i)->ranks > 0; i++)
		continue;
	return i;
}
