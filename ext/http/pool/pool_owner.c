/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_owner.c - see pool_owner.h.
 *
 *	| namespace of processes | number of the pool | process |
 *	63                       31                   21        0
 *
 * Containers may share a file, hence the namespace. Linux has fewer than 2^22
 * processes. A process that was forked has its parent's number, and its own
 * pid. Numbers that no pool of this process has are those of an earlier process
 * with this pid, or of pools that could not end all of their leases.
 */
#include "pool_owner.h"

#include <unistd.h>

#include "owner_pid.h"

enum { TRIES = 100 };
enum { NUMBERS = 1 << (32 - OWNER_PID_BITS) };

/* The pools of this process that have a number; 0 is not given. */
static pthread_mutex_t numbers_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t numbers[NUMBERS];

/* One of the fewest pools; *shared: another one has it too. */
static uint32_t
number_take(bool *shared)
{
	uint32_t i, best = 1;

	(void)pthread_mutex_lock(&numbers_lock);
	for (i = 2; i < NUMBERS; i++)
		if (numbers[i] < numbers[best])
			best = i;
	*shared = numbers[best]++ > 0;
	(void)pthread_mutex_unlock(&numbers_lock);
	return best;
}

/* Returns how many other pools have it. */
static uint32_t
number_give(uint32_t number)
{
	uint32_t left;

	(void)pthread_mutex_lock(&numbers_lock);
	left = --numbers[number];
	(void)pthread_mutex_unlock(&numbers_lock);
	return left;
}

/* No pool of this process has it. */
static bool
owner_has_ended(uint64_t owner)
{
	const uint32_t number = (uint32_t)owner >> OWNER_PID_BITS;
	bool taken;

	(void)pthread_mutex_lock(&numbers_lock);
	taken = number == 0 || numbers[number] > 0;
	(void)pthread_mutex_unlock(&numbers_lock);
	return !taken;
}

uint64_t
owner_self(const struct kvh *h)
{
	return h->owner | (uint32_t)getpid();
}

void
owner_begin(struct kvh *h)
{
	bool shared;
	const uint32_t number = number_take(&shared);

	h->owner = replicas_namespace() | (uint64_t)number << OWNER_PID_BITS;
	h->fleet.self = h->replicas.self = owner_self(h);
	h->replicas.has_ended = owner_has_ended;
	if (!shared)
		replicas_begin(&h->fleet, &h->replicas, 0);
}

/* As far as the region is not locked for long. */
void
owner_end(struct kvh *h)
{
	unsigned tries = TRIES;

	/* A process that was forked has leases of its own. */
	h->replicas.self = owner_self(h);
	if (number_give((uint32_t)h->owner >> OWNER_PID_BITS) == 0)
		while (!replicas_clear(&h->fleet, &h->replicas, 0) &&
		    --tries > 0)
			continue;
}
