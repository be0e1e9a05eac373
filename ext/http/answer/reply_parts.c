/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_parts.c - the memory of a reply, which is freed beyond its bound. */
#include "reply_parts.h"

#include <stdlib.h>
#include <string.h>

static void
part_free(struct reply_part *part)
{
	hold_free(&part->name);
	hold_free(&part->text);
	hold_free(&part->raw);
}

void
reply_forget(struct reply *r)
{
	size_t i;

	hold_free(&r->event);
	hold_free(&r->text);
	hold_free(&r->refusal);
	hold_free(&r->thought[0]);
	hold_free(&r->thought[1]);
	hold_free(&r->message);
	part_free(&r->function_call);
	for (i = 0; i < r->n_parts; i++)
		part_free(&r->parts[i]);
	free(r->parts);
	memset(r, 0, sizeof(*r));
	r->why = REPLY_NONE;
}

void
reply_drop(struct reply *r, enum reply_outcome why)
{
	if (r->why != REPLY_WHOLE)
		return;
	reply_forget(r);
	r->why = why;
}

void
reply_keep(struct reply *r, struct hold *h, const void *bytes, size_t n)
{
	if (r->why != REPLY_WHOLE)
		return;
	if (n > r->most - r->kept)
		reply_drop(r, REPLY_TOO_LONG);
	else if (!hold_append(h, bytes, n))
		reply_drop(r, REPLY_NO_MEMORY);
	else
		r->kept += n;
}

static size_t
part_bytes(const struct reply_part *p)
{
	return p->name.capacity + p->text.capacity + p->raw.capacity;
}

size_t
reply_bytes(const struct reply *r)
{
	size_t i, sum = sizeof(*r) + r->event.capacity + r->text.capacity +
	    r->refusal.capacity + r->thought[0].capacity +
	    r->thought[1].capacity + r->message.capacity +
	    part_bytes(&r->function_call) + r->parts_room * sizeof(*r->parts);

	for (i = 0; i < r->n_parts; i++)
		sum += part_bytes(&r->parts[i]);
	return sum;
}
