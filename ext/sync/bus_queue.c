/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_queue.c - a list of frames.
 */
#include "bus_queue.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of memory that an item of n bytes takes. */
static size_t
cost(size_t n)
{
	return sizeof(struct bus_item) + n;
}

/* Unlinks the item at *place. */
static struct bus_item *
unlink_at(struct bus_queue *q, struct bus_item **place)
{
	struct bus_item *item = *place, *at;

	*place = item->next;
	q->items--;
	q->bytes -= cost(item->n);
	if (q->last == item) {
		q->last = NULL;
		for (at = q->first; at != NULL; at = at->next)
			q->last = at;
	}
	return item;
}

/* The oldest that is not kept. false: all are. */
static bool
drop(struct bus_queue *q)
{
	struct bus_item **place = &q->first;
	size_t i;

	for (i = 0; i < q->kept && *place != NULL; i++)
		place = &(*place)->next;
	if (*place == NULL)
		return false;
	free(unlink_at(q, place));
	q->drops++;
	return true;
}

bool
bus_queue_push(struct bus_queue *q, const char *subject, const void *bytes,
    size_t n)
{
	const size_t length = strlen(subject);
	struct bus_item *item = NULL;

	if (length < BUS_SUBJECT_MAX && n <= q->most && cost(n) <= q->most) {
		while (q->bytes + cost(n) > q->most && drop(q))
			continue;
		if (q->bytes + cost(n) <= q->most)
			item = malloc(cost(n));
	}
	if (item == NULL) {
		q->drops++;
		return false;
	}
	item->next = NULL;
	item->n = n;
	memcpy(item->subject, subject, length + 1);
	if (n > 0)
		memcpy(item->bytes, bytes, n);
	*(q->first == NULL ? &q->first : &q->last->next) = item;
	q->last = item;
	q->bytes += cost(n);
	q->items++;
	return true;
}

struct bus_item *
bus_queue_pop(struct bus_queue *q)
{
	if (q->first == NULL)
		return NULL;
	if (q->kept > 0)
		q->kept--;
	return unlink_at(q, &q->first);
}

void
bus_queue_clear(struct bus_queue *q)
{
	struct bus_item *item;

	while ((item = bus_queue_pop(q)) != NULL)
		free(item);
}
