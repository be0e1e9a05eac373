/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seat.h - which handles use a region, and whether their processes live:
 * seat.c.
 */
#ifndef KVR_SEAT_H
#define KVR_SEAT_H

#include "region.h"

/* A holder: pid, start time and turn in one word; pid 0: the seat is free. */
enum { HOLDER_START_SHIFT = 22, HOLDER_TURN_SHIFT = 44 };
#define HOLDER_PID ((UINT64_C(1) << HOLDER_START_SHIFT) - 1)
#define HOLDER_START HOLDER_PID /* ticks since boot, low bits */
/* In the lock file of a region: the first seat's byte. */
enum { SEAT_BYTES = 16 };

static inline bool
seat_here(const struct kvr *k)
{
	return *(const volatile uint32_t *)&k->own->here != 0;
}

/* The process that a lock word names; 0: none. */
static inline uint32_t
seat_pid(const struct kvr *k, uint32_t word)
{
	uint32_t i = (word & LOCK_SEAT) - 1;

	return i >= k->layout.seats ? 0 : (uint32_t)(atomic_load(
	    &k->seats[i].holder) & HOLDER_PID);
}

int seat_own(struct kvr *k);
void seat_disown(struct kvr *k);
int seat_take(struct kvr *k);
void seat_claim(struct kvr *k, uint32_t seat);
void seat_leave(struct kvr *k);
bool seat_alive(const struct kvr *k, uint32_t word);
void seats_reset(struct kvr *k);
uint64_t seat_room(void);
int seat_byte_held(int fd, uint32_t seat, uint32_t seats);
bool seat_gate_known(const struct kvr *k);

#endif
