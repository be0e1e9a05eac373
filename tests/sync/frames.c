/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.c - random records, by the table of kvroute-frames(7).
 */
#include "frames.h"

#include <string.h>

/* A number of so many bytes, often the largest or the least one. */
static uint64_t
draw(struct rng *rng, unsigned bytes)
{
	const uint64_t most = UINT64_MAX >> (64 - 8 * bytes);
	const uint64_t way = rng_between(rng, 0, 9);

	return way == 0 ? 0 : way == 1 ? most : rng_next(rng) & most;
}

static void
draw_text(struct rng *rng, struct frame_record *r, struct frames_room *room)
{
	r->length = draw(rng, 1);
	rng_fill(rng, (unsigned char *)room->text, r->length);
	r->text = room->text;
}

static void
draw_numbers(struct rng *rng, struct frame_record *r, size_t most,
    struct frames_room *room)
{
	uint64_t i;

	r->length = rng_between(rng, 0, most);
	for (i = 0; i < r->length; i++)
		room->numbers[i] = draw(rng, 8);
	r->numbers = room->numbers;
}

static void
draw_open(struct rng *rng, struct frame_record *r, size_t most,
    struct frames_room *room)
{
	uint64_t i, at = rng_next(rng) >> 1;

	r->least = at;
	r->length = rng_between(rng, 0, most);
	for (i = 0; i < r->length; i++) {
		at += rng_between(rng, i == 0 ? 0 : 1, 1000);
		room->numbers[i] = at;
	}
	r->numbers = room->numbers;
	r->most = at + rng_between(rng, 0, 1);
}

static void
draw_reserve(struct rng *rng, struct frame_record *r)
{
	r->lease = draw(rng, 8);
	r->parent = draw(rng, 8);
	r->affinity = draw(rng, 8);
	r->worker = draw(rng, 2);
	r->stage = draw(rng, 1);
	r->flags = draw(rng, 1);
	r->epoch = draw(rng, 4);
	r->units = draw(rng, 4);
	r->overlap_tokens = draw(rng, 4);
	r->overlap_blocks = draw(rng, 4);
	r->first_block = draw(rng, 4);
	r->blocks = draw(rng, 4);
	r->affinity_ttl = draw(rng, 4);
}

static void
draw_finish(struct rng *rng, struct frame_record *r)
{
	r->lease = draw(rng, 8);
	r->prompt_tokens = draw(rng, 8);
	r->cached_tokens = draw(rng, 8);
	r->completion_tokens = draw(rng, 8);
	r->report = draw(rng, 1);
	r->report_flags = draw(rng, 2);
	r->endpoint = draw(rng, 4);
}

static void
draw_chain(struct rng *rng, struct frame_record *r)
{
	r->peer = draw(rng, 8);
	r->parent = draw(rng, 8);
	r->first_block = draw(rng, 4);
}

/* Draws a record about a worker, or HELLO. */
static void
draw_worker(struct rng *rng, struct frame_record *r, struct frames_room *room)
{
	if (r->kind == FRAME_HELLO) {
		r->policy = draw(rng, 8);
		r->block_size = draw(rng, 4);
		r->workers = draw(rng, 2);
		r->unit = draw(rng, 1);
		draw_text(rng, r, room);
		return;
	}
	r->worker = draw(rng, 2);
	if (r->kind == FRAME_LOAD) {
		r->requests = draw(rng, 4);
		r->prefill_tokens = draw(rng, 4);
		r->active_blocks = draw(rng, 4);
		return;
	}
	r->epoch = draw(rng, 4);
	if (r->kind == FRAME_WORKER) {
		r->rank = draw(rng, 4);
		r->state = draw(rng, 1);
		draw_text(rng, r, room);
	}
}

static void
draw_snapshot(struct rng *rng, struct frame_record *r)
{
	r->peer = draw(rng, 8);
	r->sequence = draw(rng, 8);
	r->stamp_age = draw(rng, 8);
	r->worker = draw(rng, 2);
	r->epoch = draw(rng, 4);
	r->blocks = draw(rng, 4);
}

struct frame_record
frames_draw(struct rng *rng, uint64_t kind, size_t most,
    struct frames_room *room)
{
	struct frame_record r = { .kind = kind, .age = draw(rng, 4) };

	switch (kind) {
	case FRAME_RESERVE:
		draw_reserve(rng, &r);
		break;
	case FRAME_OUTPUT:
		r.lease = draw(rng, 8);
		r.blocks = draw(rng, 4);
		break;
	case FRAME_EXTEND:
		r.lease = draw(rng, 8);
		r.parent = draw(rng, 8);
		r.first_block = draw(rng, 4);
		r.units = draw(rng, 4);
		break;
	case FRAME_FINISH:
		draw_finish(rng, &r);
		break;
	case FRAME_OBSERVE:
		draw_worker(rng, &r, room);
		r.flags = draw(rng, 1);
		r.parent = draw(rng, 8);
		r.units = draw(rng, 4);
		r.first_block = draw(rng, 4);
		r.blocks = draw(rng, 4);
		break;
	case FRAME_BIND:
		draw_worker(rng, &r, room);
		r.affinity = draw(rng, 8);
		r.affinity_ttl = draw(rng, 4);
		break;
	case FRAME_CLEAR:
		break;
	case FRAME_RESET:
	case FRAME_LOAD:
	case FRAME_HELLO:
	case FRAME_WORKER:
		draw_worker(rng, &r, room);
		break;
	case FRAME_OPEN:
		draw_open(rng, &r, most, room);
		break;
	case FRAME_ASK:
		r.peer = draw(rng, 8);
		r.stamp_age = draw(rng, 8);
		break;
	case FRAME_SNAPSHOT:
		draw_snapshot(rng, &r);
		break;
	case FRAME_SNAPSHOT_END:
		r.peer = draw(rng, 8);
		r.pieces = draw(rng, 8);
		break;
	case FRAME_CHAIN:
		draw_chain(rng, &r);
		break;
	case FRAME_SITE:
		r.site = draw(rng, 8);
		break;
	case FRAME_CHALLENGE:
		r.challenge = draw(rng, 8);
		break;
	case FRAME_PROOF:
		r.peer = draw(rng, 8);
		r.challenge = draw(rng, 8);
		break;
	case FRAME_TENANT:
		r.parent = draw(rng, 8);
		r.tenant = draw(rng, 8);
		r.share = draw(rng, 4);
		break;
	default: /* COMMIT, FIRST, ABORT */
		r.lease = draw(rng, 8);
	}
	if (kind == FRAME_RESERVE || kind == FRAME_EXTEND ||
	    kind == FRAME_OBSERVE || kind == FRAME_CHAIN)
		draw_numbers(rng, &r, most, room);
	return r;
}

bool
frames_equal(const struct frame_record *a, const struct frame_record *b)
{
	struct frame_record left = *a, right = *b;

	left.numbers = right.numbers = NULL;
	left.text = right.text = NULL;
	if (memcmp(&left, &right, sizeof(left)) != 0 ||
	    (a->numbers == NULL) != (b->numbers == NULL) ||
	    (a->text == NULL) != (b->text == NULL))
		return false;
	if (a->length > 0 && a->numbers != NULL)
		return memcmp(a->numbers, b->numbers, a->length * 8) == 0;
	return a->length == 0 || a->text == NULL ||
	    memcmp(a->text, b->text, a->length) == 0;
}
