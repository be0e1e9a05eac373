/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_piece.c - a long batch of events, a piece at a time.
 *
 * The lock is held for as long as blocks by name take, and an engine that has
 * prefilled a long prompt, or drops many blocks for one, sends one batch.
 * So a long one is cut, and each piece is a transaction of its own:
 *
 *	batch 7     stored 0 ......... 599         removed 0 ... 299
 *	events      [0, 256) [256, 512) [512, 600)  [44, 300) [0, 44)
 *	pieces      |   0   |    1     |    2     |    3     |  4   |
 *	stream      7, 1     7, 2       7, 3        7, 4       8, 0
 *	                                            next, pieces
 *
 * A piece of an event that stores goes on behind the last block of the one
 * before; one that removes begins at the end of a prefix, as engines do, so
 * that no hole is made.
 *
 * The sums of a batch count with the first piece. The number of the batch is
 * passed with the last one, so a caller that dies between two has the batch
 * given again, and pieces that were applied are not applied twice: copies would
 * be counted twice. The digest shows that it is the same batch. So how a batch
 * is cut depends on nothing but the batch and the region's rule; another cut is
 * another FORMAT_VERSION.
 *
 * The digest is of the engine's bytes. A caller may make other events of the
 * same bytes, as kvroute-events does if it has lost the pages that came before:
 * then the pieces are others. So the events have a digest of their own, `cut`.
 *
 * If that is another one, or if there is no digest at all, the batch is taken
 * anew, and as the record is wrong either way, the worker is degraded.
 *
 * Between two pieces readers see a part of the batch, as if the engine had sent
 * it in several.
 */
#include "event_piece.h"

#include "event_hash.h"
#include "hold.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/*
 * Blocks of the index in one of the event's, as far as they cost something. No
 * engine has blocks above BLOCK_BYTES_MAX: such are refused.
 */
static uint64_t
each_of(const struct kvr *k, const struct kvr_event *e)
{
	uint32_t each = event_each(k, e->block_tokens);

	if (e->kind != KVR_EVENT_STORED || e->block_tokens > BLOCK_BYTES_MAX)
		return 1;
	return each > 0 ? each : 1;
}

/* Blocks of the engine in one piece of the event. */
static uint64_t
step_of(const struct kvr *k, const struct kvr_event *e)
{
	uint64_t each = each_of(k, e);

	return each < PIECE_BLOCKS ? PIECE_BLOCKS / each : 1;
}

/* Into how many events one is cut. */
static uint64_t
parts_of(const struct kvr *k, const struct kvr_event *e)
{
	uint64_t step = step_of(k, e);

	return e->hashes > step ? (e->hashes + step - 1) / step : 1;
}

/* The event's blocks [from, from + n). */
static struct kvr_event
cut_part(const struct kvr *k, const struct event_batch *b,
    const struct kvr_event *e, uint64_t from, uint64_t n)
{
	struct kvr_event to = *e;
	bool given = event_blocks_given(k, e) > 0;

	to.hashes_at += from;
	to.hashes = n;
	if (e->kind != KVR_EVENT_STORED)
		return to;
	if ((e->flags & KVR_EVENT_LOCALS) != 0) {
		to.tokens_at += given ? from : 0;
		to.tokens = given ? n : 0;
	} else {
		to.tokens_at += given ? from * e->block_tokens : 0;
		to.tokens = given ? n * e->block_tokens : 0;
	}
	if (from > 0) {
		to.flags |= KVR_EVENT_PARENT;
		to.parent = b->hashes[e->hashes_at + from - 1];
	}
	return to;
}

/* Where the events of a batch that is cut are written. */
struct cutting {
	const struct kvr *k;
	const struct event_batch *b;
	struct kvr_event *events;    /* [room] */
	struct event_piece *pieces;  /* [room] */
	uint64_t n, room, n_pieces;
	uint64_t weight, local;      /* of the piece, and before its end */
};

/* An event more, which may begin a piece. */
static void
put_event(struct cutting *c, const struct kvr_event *e)
{
	uint64_t weight = e->hashes * each_of(c->k, e);

	weight = weight > 0 ? weight : 1;
	if (c->n == 0 || c->weight + weight > PIECE_BLOCKS) {
		c->pieces[c->n_pieces++] = (struct event_piece){ .at = c->n,
			.local = c->local };
		c->weight = 0;
	}
	c->pieces[c->n_pieces - 1].n++;
	c->pieces[c->n_pieces - 1].aliases += event_aliases(c->k, e);
	c->events[c->n++] = *e;
	c->weight += weight;
	c->local += event_blocks_given(c->k, e);
}

/* false: the caller changes it meanwhile. */
static bool
cut_event(struct cutting *c, const struct kvr_event *e)
{
	uint64_t step = step_of(c->k, e), at = 0, n;
	struct kvr_event to;

	if (parts_of(c->k, e) > c->room - c->n) /* GCOVR_EXCL_BR_LINE */
		return false;
	do {
		n = e->hashes - at < step ? e->hashes - at : step;
		to = cut_part(c->k, c->b, e, e->kind == KVR_EVENT_REMOVED
		    ? e->hashes - at - n : at, n);
		put_event(c, &to);
		at += n;
	} while (at < e->hashes);
	return true;
}

/* Events, and blocks, that the lock would be held for; and room for all. */
static int
measure_pieces(const struct kvr *k, const struct event_batch *b, size_t first,
    uint64_t *room, uint64_t *weight)
{
	struct kvr_event e;
	size_t i;
	int error;

	*room = *weight = 0;
	for (i = first; i < b->n; i++) {
		error = event_get(b, i, &e);
		if (error != KVR_OK) /* GCOVR_EXCL_BR_LINE: as in cut_event() */
			return error;
		*room += parts_of(k, &e);
		if (*weight <= PIECE_BLOCKS)
			*weight += 1 + e.hashes * each_of(k, &e);
	}
	return KVR_OK;
}

/* Of the cuts and of the events in them; never 0. */
static uint64_t
digest_cut(const struct cutting *c)
{
	const struct event_batch *b = c->b;
	const uint64_t digests[3] = {
		XXH3_64bits(c->events, (size_t)c->n * sizeof(*c->events)),
		XXH3_64bits(b->hashes, b->n_hashes * sizeof(*b->hashes)),
		XXH3_64bits(b->tokens, b->n_tokens * sizeof(*b->tokens))
	};

	return XXH3_64bits(digests, sizeof(digests)) | 1;
}

int
event_cut(const struct kvr *k, struct event_batch *b)
{
	size_t first = event_first_valid(b), i;
	struct cutting c = { .k = k, .b = b };
	struct kvr_event e;
	uint64_t weight;
	int error = measure_pieces(k, b, first, &c.room, &weight);

	if (error != KVR_OK || weight <= PIECE_BLOCKS)
		return error;
	c.events = calloc((size_t)c.room, sizeof(*c.events));
	c.pieces = calloc((size_t)c.room, sizeof(*c.pieces));
	if (c.events == NULL || c.pieces == NULL)
		error = KVR_ENOMEM;
	for (i = first; i < b->n && error == KVR_OK; i++) {
		error = event_get(b, i, &e);
		if (error == KVR_OK && !cut_event(&c, &e))
			error = KVR_EINVAL;
	}
	b->cut = c.events;
	b->pieces = c.pieces;
	if (error != KVR_OK) {
		event_cut_free(b);
		return error;
	}
	b->contents = digest_cut(&c);
	b->events = c.events;
	b->element = sizeof(*c.events);
	b->n = (size_t)c.n;
	b->n_pieces = c.n_pieces;
	return KVR_OK;
}

void
event_cut_free(struct event_batch *b)
{
	free(b->cut);
	free(b->pieces);
	b->cut = NULL;
	b->pieces = NULL;
}

struct event_batch
event_piece(const struct event_batch *b, uint64_t i)
{
	struct event_batch piece = *b;

	if (i >= b->n_pieces)
		return piece;
	piece.goes_on = i > 0 &&
	    event_goes_on(b, (size_t)b->pieces[i].at - 1);
	piece.events = b->cut + b->pieces[i].at;
	piece.n = (size_t)b->pieces[i].n;
	piece.after = b->n - (size_t)b->pieces[i].at - piece.n;
	piece.n_aliases = b->pieces[i].aliases;
	if (b->local != NULL) {
		piece.local += b->pieces[i].local;
		piece.n_local -= b->pieces[i].local;
	}
	return piece;
}

/* ------------------------------------------------------ under the lock --- */

bool
event_begun(const struct stream *s, const struct event_batch *b, bool same)
{
	return s->pieces > 0 && s->pieces < b->n_pieces &&
	    s->next == b->head.seq && s->begun == b->head.digest &&
	    s->cut == b->contents && (same || s->begun != 0);
}

static struct stream *
stream_of(const struct kvr *k, uint32_t slot)
{
	return stream_at(k, slot_at(k, slot)->name);
}

void
event_first(struct kvr *k, uint32_t slot, const struct event_batch *b,
    uint64_t last, int64_t now)
{
	struct stream *s = stream_of(k, slot);
	struct event_batch piece = event_piece(b, 0);

	hold_apply(k, slot, &piece, now);
	if (b->n_pieces < 2 || !event_tracks(k, slot))
		return;
	put_once(s->next, b->head.seq);
	put_once(s->last, last);
	put_once(s->begun, b->head.digest);
	put_once(s->cut, b->contents);
	put_once(s->pieces, 1);
}

void
event_go_on(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now)
{
	struct stream *s = stream_of(k, slot);
	uint64_t i = s->pieces;
	struct event_batch piece = event_piece(b, i);

	put_once(s->heard, now);
	hold_apply(k, slot, &piece, now);
	if (i + 1 < b->n_pieces && event_tracks(k, slot)) {
		put_once(s->pieces, i + 1);
		return;
	}
	put_once(s->next, b->head.seq + 1);
	put_once(s->last, b->head.digest);
	put_once(s->begun, 0);
	put_once(s->cut, 0);
	put_once(s->pieces, 0);
}
