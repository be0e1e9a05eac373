/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * headroom.c - how long a new request waits until memory is free for it.
 *
 * Running requests hold their blocks: their prompts, and their answers as they
 * grow. Idle blocks give way, but if what runs fills the memory, a new request
 * waits until enough of the others have ended, however fast prefill is:
 *
 *	free = MEMORY_SHARE * capacity - (in use + expected + mean answer)
 *	wait = (new - free) * service / in use
 *
 * in tokens. In use are the blocks of running requests, each block once, and
 * expected is what they will still need. In the mean time of service, from the
 * first token of a request to its end (places.c), all that is in use is
 * released once. The capacity is told, or learnt with confidence (trust.c), and
 * then without the mean answer and what is expected; without a capacity nothing
 * is known, and nothing waits.
 */
#include "headroom.h"

#include "trust.h"

#define MEMORY_SHARE 0.95 /* of the capacity: blocks are not filled whole */

struct headroom
headroom_of(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	double block = hash_block_tokens(&k->rule);
	double capacity = (double)trust_room(k, slot);
	double used = (double)s->blocks * block;
	double needed = used + (double)s->ahead * block + s->completion;
	struct headroom h = { 0, 0 };

	if (capacity > 0 && used > 0) {
		h.room = MEMORY_SHARE * capacity - needed;
		h.release = s->service / used;
	}
	return h;
}

/* Copies to the loads what choices read of a slot. */
void
headroom_publish(struct kvr *k, uint32_t slot)
{
	struct headroom h = headroom_of(k, slot);

	write_once_double(&k->loads.room[slot], h.room);
	write_once_double(&k->loads.release[slot], h.release);
}
