/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - what an engine says it found cached, and what follows from it.
 *
 *   reserve   predicted: overlap = 9 blocks, of which 2 are in use by others
 *   report    cached = 6 blocks
 *
 *             0 1 | 2 3 4 5 | 6 7 8 | 9 10 11
 *             in    hit       miss    was new: no evidence
 *             use
 *
 * Only what was idle when the request was placed is evidence: it hit or missed
 * at its age then (survival.c). What was in use was there anyhow.
 *
 * WHO IS BELIEVED. Many numbers say nothing (spec: kvr_report(3)): retries,
 * errors, several prompts in one; a 0 where nobody has ever seen more, because
 * the engine may not report at all; more tokens than the prompt has. A number
 * that is missing stands for 0 in some engines; it counts as a weak 0 where
 * numbers above 0 were seen, in the same kind of answer. And a report that
 * says the unlikely is likelier wrong than right: if blocks like the first it
 * misses survive with S, and one report in twenty is wrong, it is right with
 *
 *	(1 - S) / (1 - S + 1/20)
 *
 * and so much its misses count. An engine that has lost everything says so
 * again and again, S falls, and it is believed.
 *
 * BYTES. An engine counts tokens, the index bytes, and no ratio maps a prefix:
 * text differs. But where an earlier prompt ended, its length in tokens is
 * known (the anchor of an entry), and to there the two can be compared: what
 * lies between two anchors has hit if the engine found all its tokens, missed
 * if it found none, and is no evidence else.
 *
 * PURGE, if the policy wants it. One report that is too low, wrongly believed,
 * would delete most of what is known. So two must be far too low (by more than
 * two blocks and a quarter), with no hit between them on anything as old. Then
 * what was released up to the older of the two moments goes, of this worker
 * alone. What a request has just used was released later and stays. Where
 * tokens are but estimated there is no purge.
 */
#include "report.h"

#include "entry.h"
#include "mix.h"
#include "retain.h"
#include "survival.h"
#include "worker.h"

enum {
	WINDOW_REPORTS = 16, /* whose common divisor is the engine's block, */
	KINDS_MIN = 4,     /* if there were so many different numbers */
	ANCHOR_SLACK = 16,   /* tokens of templates at the end of a prompt */
	ENDPOINT_BITS = 32
};
#define WEAK 0.25  /* of a 0 that was not said */
#define WRONG 0.05 /* of all reports, as far as anybody knows */

/* What one report says of one request. */
struct evidence {
	struct kvr *k;
	const struct lease *l;
	const struct claim *c;
	struct slot *s;
	uint64_t cached;     /* tokens */
	double weight;
	uint64_t lost;       /* of the slot, before this report */
	double confidence;   /* how likely, that what it misses is missing */
	uint32_t from, to;   /* blocks that were idle, and could have hit */
	bool missed, hit;    /* any of them */
	uint64_t missed_at;  /* volume at the release of the first missed, */
	uint64_t hit_at;     /* and of the oldest hit */
};

/* -------------------------------------------------- who is believed --- */

static uint64_t
endpoint_bit(const struct kvr_report *r)
{
	return UINT64_C(1) << ((r->endpoint % ENDPOINT_BITS) * 2 +
	    (r->flags & KVR_REPORT_STREAM));
}

/* It has shown that it reports: from now on that is believed. */
static void
mark_reporting(struct kvr *k, uint32_t slot, const struct kvr_report *r)
{
	struct slot *s = slot_at(k, slot);
	bool first = s->shown == 0;

	s->shown |= endpoint_bit(r);
	if (!first)
		return;
	retain_decide(k, slot);
	worker_recount(k, slot);
}

/* Is it evidence? Then of how many tokens, and how much is it worth? */
static bool
evidence_read(struct evidence *e, const struct kvr_report *r)
{
	uint64_t max = r->prompt_tokens != 0 ? r->prompt_tokens : e->c->tokens;
	bool value = r->kind == KVR_REPORT_VALUE;

	if (r->kind == KVR_REPORT_NONE ||
	    (r->flags & KVR_REPORT_NO_EVIDENCE) != 0)
		return false;
	e->cached = value ? r->cached_tokens : 0;
	e->weight = value ? 1 : WEAK;
	e->confidence = 1;
	if (e->cached > max || max > UINT32_MAX)
		return false;
	if (e->cached > e->c->tokens && e->k->rule.unit == KVR_UNIT_TOKENS)
		e->cached = e->c->tokens; /* of the others nothing is known */
	if (e->cached > 0)
		mark_reporting(e->k, e->l->slot, r);
	return (e->s->shown & endpoint_bit(r)) != 0;
}

/* ------------------------------------------- the size of its blocks --- */

static uint32_t
common_divisor(uint32_t a, uint32_t b)
{
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/*
 * What divides all of many numbers of cached tokens, of which some are unlike,
 * is the engine's block, or a multiple by chance: the first number that it does
 * not divide says so.
 */
static void
learn_block(struct slot *s, uint64_t cached)
{
	if (cached == 0 || cached > UINT32_MAX)
		return;
	if (s->learnt_block != 0 && cached % s->learnt_block != 0)
		write_once(s->learnt_block, 0);
	s->common = common_divisor((uint32_t)cached, s->common);
	s->common_kinds |= UINT64_C(1) << (mix(cached) % 64);
	if (++s->common_of < WINDOW_REPORTS)
		return;
	if (__builtin_popcountll(s->common_kinds) >= KINDS_MIN) {
		write_once(s->learnt_block, s->common);
		s->common = s->common_of = 0;
		s->common_kinds = 0;
	}
}

/* ----------------------------------------------------- hits and misses --- */

/* Blocks [low, high) of an entry have hit, or not. */
static void
note_blocks(struct evidence *e, uint32_t node, uint32_t low, uint32_t high,
    bool hit)
{
	const struct entry *h = entry_at(e->k,
	    entry_find(e->k, node, e->l->slot));
	struct survival_sample sample = { e->c->volume, e->lost, h->released,
		e->weight * (hit ? 1 : e->confidence) *
		hash_block_tokens(&e->k->rule), hit };

	if (low >= high)
		return;
	sample.tokens *= high - low;
	survival_note(e->k, e->l->slot, &sample);
	if (hit) {
		if (!e->hit || h->released < e->hit_at)
			e->hit_at = h->released;
		e->hit = true;
	} else {
		e->missed_at = h->released; /* the walk ends at the first */
		e->missed = true;
	}
}

/* What of the blocks [low, high) is evidence. */
static void
clip(const struct evidence *e, uint32_t *low, uint32_t *high)
{
	if (*low < e->from)
		*low = e->from;
	if (*high > e->to)
		*high = e->to;
	if (*high < *low)
		*high = *low;
}

/* Is it likely that this block, the first that is said to be, is missing? */
static double
likely_missing(const struct evidence *e, uint64_t block)
{
	uint32_t node = e->l->node, depth = e->l->blocks;
	const struct entry *h;
	double lost;

	if (block >= e->to)
		return 1;
	while (node != 0 && depth > block && !region_broken(e->k)) {
		depth -= node_at(e->k, node)->length;
		if (depth > block)
			node = node_at(e->k, node)->parent;
		e->k->region->counts.steps++;
	}
	h = entry_at(e->k, entry_find(e->k, node, e->l->slot));
	lost = 1 - survival_of(e->k, e->l->slot, e->c->volume, h->released);
	return lost / (lost + WRONG);
}

/* By tokens: the first `hits` blocks of the path were there. */
static void
compare_tokens(struct evidence *e)
{
	uint64_t hits = e->cached / e->k->rule.block_size;
	uint32_t node = e->l->node, depth = e->l->blocks;

	e->confidence = likely_missing(e, hits < e->from ? e->from : hits);
	while (node != 0 && depth > e->from && !region_broken(e->k)) {
		const struct node *n = node_at(e->k, node);
		uint32_t low = depth - n->length, high = depth, middle;

		depth = low;
		clip(e, &low, &high);
		middle = hits <= low ? low : hits < high ? (uint32_t)hits
		    : high;
		note_blocks(e, node, middle, high, false);
		note_blocks(e, node, low, middle, true);
		node = n->parent;
		e->k->region->counts.steps++;
	}
}

/* A place on the path whose distance from the root is known in tokens. */
struct anchor {
	uint32_t node, depth;
	uint64_t tokens;
};

/* What lies between two anchors hit, or missed, or neither can be said. */
static void
compare_between(struct evidence *e, struct anchor above, struct anchor below)
{
	uint64_t slack = (uint64_t)hash_block_tokens(&e->k->rule) +
	    ANCHOR_SLACK + e->s->block_tokens;
	bool hit = e->cached + slack >= below.tokens;
	uint32_t depth = below.depth, node;

	if (!hit && e->cached > above.tokens + slack)
		return;
	for (node = below.node; node != above.node && node != 0 &&
	    !region_broken(e->k);) {
		const struct node *n = node_at(e->k, node);
		uint32_t low = depth - n->length, high = depth;

		depth = low;
		clip(e, &low, &high);
		note_blocks(e, node, low, high, hit);
		node = n->parent;
		e->k->region->counts.steps++;
	}
}

static void
compare_anchors(struct evidence *e)
{
	struct anchor below = { 0, 0, 0 }, here = { e->l->node, e->l->blocks,
		0 };

	while (here.node != 0 && !region_broken(e->k)) {
		const struct entry *h = entry_at(e->k,
		    entry_find(e->k, here.node, e->l->slot));

		here.tokens = h->anchor;
		if (h->anchor != 0 && here.depth <= e->c->overlap) {
			if (below.node != 0)
				compare_between(e, here, below);
			below = here;
		}
		here.depth -= node_at(e->k, here.node)->length;
		here.node = node_at(e->k, here.node)->parent;
		e->k->region->counts.steps++;
	}
	here.tokens = 0;
	if (below.node != 0)
		compare_between(e, here, below);
}

/* Where the prompt ended, its length in tokens is known from now on. */
static void
set_anchor(const struct evidence *e, uint64_t prompt_tokens)
{
	const struct lease *l = e->l;
	uint32_t entry = entry_find(e->k, l->node, l->slot);

	if (entry != 0 && l->blocks == e->c->prompt && prompt_tokens > 0 &&
	    prompt_tokens <= UINT32_MAX)
		write_once(
		    entry_at(e->k, entry)->anchor, (uint32_t)prompt_tokens);
}

/* --------------------------------------------------------------- purge --- */

static bool
contradicts(const struct evidence *e)
{
	double predicted = (double)e->c->predicted, min;

	min = 2 * hash_block_tokens(&e->k->rule);
	if (min < predicted / 4)
		min = predicted / 4;
	return e->weight == 1 && e->missed &&
	    e->k->rule.unit == KVR_UNIT_TOKENS &&
	    predicted - (double)e->cached > min;
}

static void
consider_purge(struct evidence *e)
{
	struct slot *s = e->s;

	/* older than what is suspected, not just released with it */
	if (e->hit && s->suspect > 0 && e->hit_at + 1 < s->suspect)
		s->suspect = 0;
	if (!contradicts(e) || e->k->region->policy.purge == 0)
		return;
	if (s->suspect == 0) {
		s->suspect = e->missed_at + 1;
		return;
	}
	s->purge = e->missed_at + 1 < s->suspect ? e->missed_at + 1
	    : s->suspect;
	s->suspect = 0;
	/* what is released from now on, this very path too, comes after that */
	if (s->volume < s->purge)
		write_once(s->volume, s->purge);
	s->seen.purges++;
	e->k->region->counts.seen.purges++;
}

/* --------------------------------------------------------- calibration --- */

static void
calibrate(struct calibration *c, const struct evidence *e)
{
	uint64_t predicted = e->c->predicted, cached = e->cached;

	c->reports++;
	c->reported += cached;
	c->predicted += predicted;
	if (predicted > cached)
		c->over += predicted - cached;
	else
		c->under += cached - predicted;
}

/*
 * The report of a request that ends now, while its path is pinned and nothing
 * of it has been stamped or released yet. report NULL: none.
 */
void
report_take(struct kvr *k, const struct lease *l, const struct claim *c,
    const struct kvr_report *report)
{
	struct evidence e = { .k = k, .l = l, .c = c,
		.s = slot_at(k, l->slot), .from = c->active,
		.lost = slot_at(k, l->slot)->lost };
	uint64_t usable;
	double blocks;

	if (report == NULL || !evidence_read(&e, report)) {
		e.s->seen.unreported++;
		k->region->counts.seen.unreported++;
		return;
	}
	usable = worker_usable(k, l->slot, c->tokens, c->tokens);
	blocks = (double)usable / hash_block_tokens(&k->rule);
	e.to = blocks < c->overlap ? (uint32_t)blocks : c->overlap;
	if (k->rule.unit == KVR_UNIT_TOKENS) {
		if (report->kind == KVR_REPORT_VALUE)
			learn_block(e.s, report->cached_tokens);
		compare_tokens(&e);
	} else {
		compare_anchors(&e);
		set_anchor(&e, report->prompt_tokens);
	}
	survival_update(k, l->slot);
	consider_purge(&e);
	calibrate(&e.s->seen, &e);
	calibrate(&k->region->counts.seen, &e);
}
