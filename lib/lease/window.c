/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.c - how much an engine keeps of layers with sliding windows.
 *
 * A layer with a window of W tokens reads the W - 1 before each. So to resume
 * behind p cached tokens an engine needs all p of its full layers, but only the
 * last W - 1 of the others, the TAIL of p:
 *
 *	full      |==================|=========|-- new --     W = 6
 *	sliding                 -----|    -----|
 *	                             ^ an earlier prompt ended here
 *
 * The mode decides which tails it keeps. FULL: all, nothing here matters.
 * DENSE: it keeps all blocks of sliding layers, in one memory with the others,
 * so that a prompt takes as much room as it has layers. BOUNDARY: only the
 * tails where prompts ended, and where a prompt left an earlier one; blocks
 * cached between two such places cannot be used. DUAL: the same, in a memory of
 * its own that may be smaller or larger than the other one.
 *
 * MARKS. With the last two modes it must be known where prompts ended, also if
 * the path goes on there. So the entry of such a worker that ends there is
 * marked: it is not absorbed by one further down, its node is not extended nor
 * merged, and there is one for each prompt that ended. A mark is lost with the
 * blocks before it: engines evict tails first.
 *
 *	[h0 .. h3]* w1          the first prompt had 4 blocks, the second 7 and
 *	   `== [h4 .. h6]* w1   the answer to it one more: of all 8, w1 can
 *	          `== [h7] w1   reuse 7
 *
 * DENSE needs to know only whether the engine still has the end of a path, of
 * an answer or of a prompt. So the entry there is marked as WHOLE, and nothing
 * above it. This mark keeps no entries apart.
 *
 * Where a prompt leaves the blocks that its worker had, the engine finds the
 * full layers cached and has computed the tail again, so that place is marked
 * too: it is where the first entry above ends that was there before.
 *
 * EVENTS name the blocks of the full layers (hold.c), and not the places where
 * prompts ended. A request marks its end while it holds the path, and the mark
 * stays if that is stored meanwhile. Prompts that other routers sent are seen
 * only as runs of blocks that are stored by one batch, each behind the one
 * before: marks are set at their ends, and where they part from blocks that
 * were there. Blocks that are stored one at a time are an answer, and so are
 * blocks stored behind the end of a request that runs. An engine that computes
 * a long prompt in parts reports it in several batches: each leaves a mark too
 * many. Where DENSE goes by events, a path is whole from when its end is stored
 * until that is removed.
 *
 * ROOM. Blocks of sliding layers take room in the cache of the others, and are
 * evicted in the same order. They are listed as outputs are that have no
 * hashes (entry_add_anonymous). Blocks of running requests are counted.
 */
#include "window.h"

#include "cover.h"
#include "entry.h"
#include "event_stream.h"
#include "index.h"
#include "trust.h"

#define PERCENT 100.0

void
window_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts)
{
	struct window *w = &slot_at(k, slot)->window;

	write_once(w->capacity, facts->window_capacity);
	write_once(w->tokens, facts->window_tokens);
	write_once(w->align, facts->window_align);
	write_once(w->interval, facts->window_interval);
	write_once(w->layers, (uint16_t)facts->window_layers);
	write_once(w->mode, (uint8_t)facts->window_mode);
}

void
window_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts)
{
	const struct window *w = window_of(k, slot);

	facts->window_capacity = read_once(w->capacity);
	facts->window_tokens = read_once(w->tokens);
	facts->window_align = read_once(w->align);
	facts->window_interval = read_once(w->interval);
	facts->window_layers = read_once(w->layers);
	facts->window_mode = read_once(w->mode);
}

/* Mends a mode that damage made impossible. */
void
window_mend(struct kvr *k, uint32_t slot)
{
	struct window *w = &slot_at(k, slot)->window;

	if (!window_sane(k, slot))
		put_once(w->mode, KVR_WINDOW_FULL);
}

/* --------------------------------------------------------------- marks --- */

/* The entry that covers a node; links are steps of the call. */
static uint32_t
seek_counted(struct kvr *k, uint32_t node, uint32_t slot)
{
	struct cover at = COVER_ANY;
	uint32_t links = at.links, entry = cover_seek(k, node, slot, &at);

	add_once(k->region->counts.steps, links - at.links);
	return entry;
}

/*
 * Where a path leaves the blocks that its worker had: the first node up whose
 * entry is confirmed; 0: it had nothing. It is not stamped yet. Where nothing
 * covers an heir, nothing from further down covers its parent.
 */
static uint32_t
find_parting(struct kvr *k, uint32_t node, uint32_t slot)
{
	bool further = true;

	while (node != 0 && !region_broken(k)) {
		uint32_t above = node_at(k, node)->parent;
		uint32_t entry = further ? seek_counted(k, node, slot)
		    : entry_find(k, node, slot);

		add_once(k->region->counts.steps, 1);
		if (entry == 0) {
			further = node_at(k, above)->heir != node;
			node = above;
		} else if ((entry_at(k, entry)->flags &
		    ENTRY_UNCONFIRMED) != 0) {
			further = true;
			node = cover_above(k, entry);
		} else {
			return node;
		}
	}
	return 0;
}

/* Marks the end of a node, if an entry ends there and has not lost it. */
static void
mark_end(struct kvr *k, uint32_t node, uint32_t slot, uint8_t how)
{
	uint32_t entry = node == 0 ? 0 : entry_find(k, node, slot);

	if (entry != 0 && entry_at(k, entry)->trimmed == 0)
		write_once(entry_at(k, entry)->flags,
		    entry_at(k, entry)->flags | how);
}

/* All is kept as long as the end is: that of the path, and no other. */
static void
mark_whole(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t entry = node == 0 ? 0 : entry_find(k, node, slot);

	mark_end(k, node, slot, ENTRY_WHOLE);
	while (entry != 0 && !region_broken(k)) {
		node = cover_above(k, entry);
		entry = node == 0 ? 0 : entry_find(k, node, slot);
		if (entry != 0)
			entry_unmark(entry_at(k, entry), ENTRY_WHOLE);
	}
}

/* Whether it matters where prompts ended. */
static bool
by_ends(const struct kvr *k, uint32_t slot)
{
	uint8_t mode = window_of(k, slot)->mode;

	return mode != KVR_WINDOW_FULL && mode != KVR_WINDOW_DENSE;
}

/* The path leaves its line where it is parted, or ends. */
static void
mark_at(struct kvr *k, uint32_t left, uint32_t slot)
{
	if (left != 0)
		(void)cover_make(k, left, slot);
	mark_end(k, left, slot, ENTRY_MARKED);
}

/* Stamps and marks; left: also there, or 0. */
static void
stamp_end(struct kvr *k, uint32_t node, uint32_t slot, uint32_t left, bool ends,
    int64_t now)
{
	uint8_t mode = window_of(k, slot)->mode;

	mark_at(k, left, slot);
	index_stamp(k, node, slot, now);
	if (mode == KVR_WINDOW_DENSE)
		mark_whole(k, node, slot);
	if (ends)
		mark_end(k, node, slot, ENTRY_MARKED);
}

/*
 * Where events name the blocks, a request adds none: it uses those on its path
 * that are held. The request's end is marked all the same, and stays if it is
 * stored while the request runs.
 */
void
window_stamp(struct kvr *k, uint32_t node, uint32_t slot, bool ends,
    int64_t now)
{
	bool marks = ends && by_ends(k, slot), tracks = event_tracks(k, slot);
	uint32_t left = marks || tracks ? find_parting(k, node, slot) : 0;

	if (!tracks) {
		stamp_end(k, node, slot, left, marks, now);
		return;
	}
	if (marks) {
		mark_at(k, left, slot);
		mark_end(k, node, slot, ENTRY_MARKED);
	}
	index_touch(k, left, slot, now);
}

/* ----------------------------------------------------------- by events --- */

static bool
has_pins(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t entry = seek_counted(k, node, slot);

	return entry != 0 && entry_at(k, entry)->pins > 0;
}

void
window_count(struct window_run *run, uint64_t blocks, uint64_t tokens,
    bool goes_on)
{
	if (!run->goes_on)
		memset(run, 0, sizeof(*run));
	run->many = run->many || blocks > 1 || run->tokens > 0;
	run->tokens += blocks * tokens;
	run->goes_on = goes_on;
}

void
window_begin(struct kvr *k, uint32_t slot, const struct insert *how,
    struct window_run *run)
{
	const struct node *n = node_at(k, how->below);

	if (run->begun || !by_ends(k, slot))
		return;
	run->begun = true;
	run->prompt = how->depth == 0 || n->children != 0 ||
	    n->length != how->inside || !has_pins(k, how->below, slot);
}

void
window_store(struct kvr *k, uint32_t node, uint32_t slot,
    const struct window_run *run, int64_t now)
{
	bool foreign = run->prompt && (run->many || run->goes_on) &&
	    !has_pins(k, node, slot);
	bool ends = foreign && !run->goes_on;
	uint32_t left = foreign ? find_parting(k, node, slot) : 0;

	if (ends)
		window_fill(k, slot, run->tokens);
	else if (left == node)
		left = 0; /* it goes on in place */
	stamp_end(k, node, slot, left, ends, now);
}

/* ---------------------------------------------------------------- room --- */

/* Tokens of sliding layers in blocks of the index, as full layers have them. */
static double
layer_blocks(const struct kvr *k, const struct window *w, double tokens)
{
	return tokens * w->layers / PERCENT / hash_block_tokens(&k->rule);
}

/* The tail of a prompt, in whole blocks of the engine. */
static double
tail_tokens(const struct kvr *k, uint32_t slot, double prompt)
{
	uint64_t window = window_of(k, slot)->tokens, block, tail;

	block = trust_block(k, slot);
	tail = (window + block - 2) / block * block;
	return prompt < (double)tail ? prompt : (double)tail;
}

/* Blocks that the windows of running requests take. */
uint64_t
window_running(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	const struct window *w = &s->window;
	double mean, blocks;

	if ((w->mode != KVR_WINDOW_BOUNDARY &&
	    w->mode != KVR_WINDOW_DENSE) || s->leases == 0)
		return 0;
	mean = (double)s->reading / s->leases;
	blocks = layer_blocks(k, w, tail_tokens(k, slot, mean)) * s->leases;
	/* more only if it is damaged */
	return blocks < 0x1p62 ? (uint64_t)blocks : UINT64_C(1) << 62;
}

/*
 * Blocks that sliding layers keep of a request that has ended and computed
 * `fresh` tokens, in the memory of the others.
 */
uint32_t
window_kept(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t fresh)
{
	const struct window *w = window_of(k, slot);
	double blocks = 0;

	if (w->mode == KVR_WINDOW_BOUNDARY)
		blocks = layer_blocks(k, w, tail_tokens(k, slot,
		    (double)prompt));
	else if (w->mode == KVR_WINDOW_DENSE)
		blocks = layer_blocks(k, w, (double)fresh);
	return blocks < 0x1p31 ? (uint32_t)(blocks + 0.5) : UINT32_MAX / 2;
}

/*
 * DUAL: a prompt brings a tail to their memory, or less if less is computed.
 * Whenever a quarter of it has been filled, the time is noted. Blocks released
 * before the last of four notes are lost: a whole memory has been filled since,
 * up to a quarter more.
 */
void
window_fill(struct kvr *k, uint32_t slot, uint64_t fresh)
{
	struct slot *s = slot_at(k, slot);
	struct window *w = &s->window;
	uint64_t quarter = w->capacity / WINDOW_QUARTERS;
	uint32_t i;

	if (!window_apart(w) || w->capacity == 0)
		return;
	write_once(w->filled, w->filled +
	    (uint64_t)tail_tokens(k, slot, (double)fresh));
	if (w->filled < quarter)
		return;
	write_once(w->filled, UINT64_C(0));
	for (i = WINDOW_QUARTERS - 1; i > 0; i--)
		write_once(w->clock[i], w->clock[i - 1]);
	write_once(w->clock[0], s->clock);
}
