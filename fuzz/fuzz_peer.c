/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_peer.c - a peer that writes into the region while calls run.
 *
 * The library is compiled so that each of its functions, also an inlined one,
 * reports when it is entered and left. The input says after how many of these
 * steps of a call the peer writes, where, and what. Some words it changes back
 * and forth at every step, so that they differ each time they are read.
 *
 *   call    |--step--step--step--step--step--> a defined result, soon
 *   peer             ^write      ^write
 *
 * Nothing is asked of results. What kvr_open(3) promises: no crash, no access
 * outside of the region, an end; and when the peer has gone, the next call
 * makes a region of what is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corrupt.h"

#define CALL_MAX UINT64_C(100000000)
#define WAIT_NS INT64_C(200000)
/* A run with more steps goes on without the peer: it has slowed one call. */
#define RUN_MAX UINT64_C(5000000)
enum { SHOTS = 3, STEPS = 4096, OFTEN = 64, DEAR = 16 };

/* One write, or one at each step. */
struct shot {
	uint64_t step; /* of the call; 0: none */
	bool always;
	size_t at, width;
	uint64_t value, other;
};

static struct shot shots[SHOTS];
static unsigned char *memory;
/* Steps of this call, of those before; the step at which something happens. */
static uint64_t taken, spent, next = UINT64_MAX;
static bool armed;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __cyg_profile_func_enter(void *function, void *from);
void __cyg_profile_func_exit(void *function, void *from);

/*
 * Aligned and within the region: see aim. A memcpy of a length not known
 * would be checked by a call, and some shots are fired millions of times.
 */
static uint64_t
swap(void *at, size_t width, uint64_t value)
{
	uint64_t before = width == 8 ? *(uint64_t *)at : width == 4
	    ? *(uint32_t *)at : width == 2 ? *(uint16_t *)at : *(uint8_t *)at;

	if (width == 8)
		*(uint64_t *)at = value;
	else if (width == 4)
		*(uint32_t *)at = (uint32_t)value;
	else if (width == 2)
		*(uint16_t *)at = (uint16_t)value;
	else
		*(uint8_t *)at = (uint8_t)value;
	return before;
}

static void
fire(struct shot *s)
{
	uint64_t before = swap(memory + s->at, s->width, s->value);

	if (s->always) {
		s->value = before == s->value ? s->other : before;
		s->step++;
	} else {
		s->step = 0;
	}
}

static void
happen(void)
{
	uint32_t i;

	if (taken > CALL_MAX) {
		fprintf(stderr, "a call without end\n");
		abort();
	}
	next = CALL_MAX + 1;
	for (i = 0; i < SHOTS; i++) {
		if (shots[i].step == 0)
			continue;
		if (shots[i].step == taken)
			fire(&shots[i]);
		if (shots[i].step > taken && shots[i].step < next)
			next = shots[i].step;
	}
}

/* Millions a second of them. */
static void
step(void)
{
	if (++taken >= next)
		happen();
}

void
__cyg_profile_func_enter(void *function, void *from)
{
	(void)function;
	(void)from;
	step();
}

void
__cyg_profile_func_exit(void *function, void *from)
{
	(void)function;
	(void)from;
	step();
}

/* Where: the header, the tables before the cells, or a cell that is in use. */
static size_t
place(struct corrupt *c)
{
	const struct region *whole = (const void *)c->w->image;
	uint64_t cells = whole->seal.layout.cells_at;
	uint32_t kind = ops_pick(c->s, CELL_LEASE + 4);

	if (kind > CELL_LEASE + 2)
		return corrupt_pick(c->s, (uint32_t)sizeof(struct region));
	if (kind > CELL_LEASE + 1)
		return corrupt_pick(c->s, (uint32_t)c->w->bytes);
	if (kind > CELL_LEASE || c->w->n[kind] == 0)
		return corrupt_pick(c->s, (uint32_t)cells);
	return (size_t)cells + CELL * (size_t)c->w->cells[kind][
	    corrupt_pick(c->s, c->w->n[kind])] + ops_pick(c->s, CELL);
}

static uint64_t
content(struct corrupt *c)
{
	switch (ops_pick(c->s, 4)) {
	case 0:
		return corrupt_word(c->s);
	case 1:
		return UINT64_MAX - ops_pick(c->s, 3);
	default:
		return corrupt_pick(c->s, 1 << 16);
	}
}

static void
aim(struct corrupt *c, struct shot *s)
{
	memset(s, 0, sizeof(*s));
	s->step = ops_pick(c->s, 4) == 0 ? 0 : 1 + (ops_pick(c->s, 2) == 0
	    ? ops_pick(c->s, OFTEN) : corrupt_pick(c->s, STEPS));
	if (s->step == 0)
		return;
	s->always = ops_pick(c->s, 4) == 0;
	s->width = (size_t)1 << ops_pick(c->s, 4);
	s->at = place(c) & ~(s->width - 1);
	if (s->at + s->width > c->w->bytes)
		s->at = 0;
	s->value = content(c);
	s->other = content(c);
}

/* Before a call. A lock that looked held for ever would end all calls. */
static void
peer(struct corrupt *c, bool present)
{
	struct region *r = (void *)c->w->memory;
	uint32_t i;

	spent += armed ? taken : 0;
	next = UINT64_MAX;
	present = present && spent < RUN_MAX;
	memory = c->w->memory;
	if (c->k != NULL)
		c->k->wait_ns = WAIT_NS;
	if (!present || ops_pick(c->s, 4) != 0)
		atomic_store(&r->lock, 0);
	for (i = 0; present && i < SHOTS; i++)
		aim(c, &shots[i]);
	armed = present;
	taken = 0;
	if (armed)
		happen();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct corrupt_totals totals = { .slow = "", .peer = peer,
		.dear = DEAR };
	struct ops_source s;
	char why[200];

	spent = taken = 0;
	armed = false;
	ops_from_bytes(&s, data, size);
	if (!corrupt_run(&s, CORRUPT_PEER, &totals, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	return 0;
}
