/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - learns from the number of cached tokens an engine reports.
 *
 *   open      predicted: overlap = 9 blocks; others use 2 of them
 *   report    cached = 6 blocks
 *
 *             0 1 | 2 3 4 5 | 6 7 8 | 9 10 11
 *             in    hit       miss    was new: no evidence
 *             use
 *
 * Only blocks that were idle when the lease was opened are evidence: each hit
 * or missed at the age it had then (survival.c). Blocks in use were cached
 * anyway.
 *
 * WHICH REPORTS ARE EVIDENCE. Many numbers prove nothing (see kvr_report(3)):
 * numbers of retries, of errors, of several prompts in one request; a 0 from an
 * engine that never reported more, since it may not report at all; more tokens
 * than the prompt has. A missing number stands for 0 in some engines; it counts
 * as a weak 0 if numbers above 0 were seen in the same kind of response. And an
 * unlikely report is more likely wrong than right: if blocks like the first one
 * it misses survive with likelihood S, and one report in twenty is wrong, it is
 * right with likelihood
 *
 *	(1 - S) / (1 - S + 1/20)
 *
 * and its misses are weighted by that. An engine that has lost everything
 * reports that again and again, S falls, and the reports are believed.
 *
 * BYTES. An engine counts tokens, the index bytes, and no ratio converts a
 * prefix, because text differs. The ratio of all prompts converts a capacity
 * (trust.c). It is that of the text which a turn adds to the one before, since
 * engines count more than our prompts, too, such as tools. But where an
 * earlier prompt ended, its length in tokens is known (the anchor of an entry),
 * so the two can be compared there: the blocks between two anchors have hit if
 * the engine found all their tokens, missed if it found none, and are no
 * evidence otherwise.
 */
#include "report.h"

#include "ages.h"
#include "cover.h"
#include "entry.h"
#include "load.h"
#include "mix.h"
#include "numbers.h"
#include "retain.h"
#include "survival.h"
#include "trust.h"

enum {
	WINDOW_REPORTS = 16, /* their common divisor is the engine's block, */
	KINDS_MIN = 4,       /* if they had so many different numbers */
	ANCHOR_SLACK = 16,   /* tokens of templates at the end of a prompt */
	TURN_TOKENS = 64,    /* fewer are mostly marks */
	WHOLE_SHARE = 8,     /* of a first turn one in so many counts */
	UNEVEN = 8,          /* bytes a token differ by one part in so many */
	ENDPOINT_BITS = 32,
	MUCH_TOKENS = 4096
};
#define MUCH 0.25  /* of a prompt */
#define WRONG 0.05 /* share of all reports, by assumption */

/* One report as evidence about one request. */
struct evidence {
	struct kvr *k;
	const struct lease *l;
	const struct claim *c;
	struct slot *s;
	uint32_t kind;       /* of response */
	uint64_t cached;     /* tokens */
	double weight;       /* less than 1 if the number is missing */
	double confidence;   /* likelihood that its misses are real */
	uint32_t from, to;   /* blocks that were idle, and could have hit */
	uint64_t young;      /* blocks below this age */
	struct trust_sample sample;
};

/* ----------------------------------------- which reports are evidence --- */

static uint32_t
kind_of(const struct kvr_report *r)
{
	return (r->endpoint % ENDPOINT_BITS) * 2 +
	    (r->flags & KVR_REPORT_STREAM);
}

/* Knowledge of the worker may have changed, and so how it is retained. */
static void
decide_again(struct kvr *k, uint32_t slot)
{
	uint8_t before = slot_at(k, slot)->mode;

	retain_decide(k, slot);
	if (slot_at(k, slot)->mode != before)
		load_recount(k, slot);
}

/* Whether this kind of response has had a number above 0. */
static bool
has_shown(const struct evidence *e)
{
	return (e->s->shown >> e->kind & 1) != 0;
}

/* Takes the number; false if it proves nothing, whoever reports it. */
static bool
evidence_read(struct evidence *e, const struct kvr_report *r)
{
	uint64_t max = r->prompt_tokens != 0 ? r->prompt_tokens : e->c->tokens;

	if (r->kind == KVR_REPORT_NONE ||
	    (r->flags & KVR_REPORT_NO_EVIDENCE) != 0)
		return false;
	e->kind = kind_of(r);
	e->cached = r->kind == KVR_REPORT_VALUE ? r->cached_tokens : 0;
	e->weight = e->confidence = 1;
	e->young = trust_young(e->k, e->l->slot);
	if (e->cached > max || max > UINT32_MAX)
		return false;
	if (e->cached > e->c->tokens && e->k->rule.unit == KVR_UNIT_TOKENS)
		e->cached = e->c->tokens; /* about others nothing is known */
	return true;
}

/* In tokens as the index counts them: in byte mode by this prompt's length. */
static double
cached_tokens(const struct evidence *e, const struct kvr_report *report)
{
	double cached = (double)e->cached;

	if (e->k->rule.unit == KVR_UNIT_BYTES && report->prompt_tokens > 0)
		cached *= (double)e->c->tokens / (double)report->prompt_tokens;
	return cached;
}

static double
tokens_predicted(const struct evidence *e)
{
	return e->to * hash_block_tokens(&e->k->rule);
}

/* So much of the prompt was predicted that the engine should find some. */
static bool
much_predicted(const struct evidence *e)
{
	double tokens = tokens_predicted(e);

	return tokens >= numbers_least(e->k, e->l->slot) &&
	    (tokens >= MUCH_TOKENS ||
	    tokens >= (double)e->c->tokens * MUCH);
}

/* A zero of a shorter prediction than any of which it found some. */
static bool
zero_of_few(const struct evidence *e)
{
	return e->cached == 0 && e->to > 0 &&
	    tokens_predicted(e) < e->s->shortest;
}

/* There was usage, and much was predicted: did it have a number? */
static void
answer_note(struct evidence *e, bool number)
{
	struct numbers_answer answer = { .kind = e->kind, .number = number,
		.in_use = e->from > 0 };

	if (!answer.in_use)
		answer.age = ages_of(e->c, 0);
	numbers_note(e->k, e->l->slot, &answer);
	if (!number)
		e->weight = numbers_usual(e->k, e->l->slot, e->kind);
}

/* A number above 0. By how much is known only in tokens: text is not even. */
static void
found_note(struct evidence *e, const struct kvr_report *r)
{
	double found = cached_tokens(e, r);

	if (e->k->rule.unit == KVR_UNIT_BYTES)
		found -= (double)e->c->tokens / UNEVEN;
	numbers_above_zero(e->k, e->l->slot, found);
	or_once(e->s->shown, UINT64_C(1) << e->kind);
}

/*
 * Counts zeros in a row. Zeros of a kind of response that never had more count
 * only until some kind has had more.
 */
static void
zeros_note(struct evidence *e, bool number)
{
	if (e->cached == 0 && much_predicted(e) && e->weight >= 0.5 &&
	    (has_shown(e) || (number && e->s->shown == 0)))
		numbers_zero(e->k, e->l->slot);
}

/* Whether the report is evidence about the cache of this worker. */
static bool
evidence_weigh(struct evidence *e, const struct kvr_report *r)
{
	bool number = r->kind == KVR_REPORT_VALUE;

	if (e->cached > 0)
		found_note(e, r);
	if (much_predicted(e))
		answer_note(e, number);
	zeros_note(e, number);
	decide_again(e->k, e->l->slot);
	if (zero_of_few(e))
		return false;
	return (has_shown(e) && e->weight > 0) ||
	    (number && numbers_nothing(e->k, e->l->slot));
}

/* ---------------------------------------------- engine's block size --- */

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
 * The common divisor of many numbers of cached tokens, several of them
 * different, is the engine's block size, or by chance a multiple of it: the
 * first number that it does not divide refutes it.
 */
static void
learn_block(struct slot *s, uint64_t cached)
{
	if (cached == 0 || cached > UINT32_MAX)
		return;
	if (s->learnt_block != 0 && cached % s->learnt_block != 0)
		write_once(s->learnt_block, 0);
	put_once(s->common, common_divisor((uint32_t)cached, s->common));
	or_once(s->common_kinds, UINT64_C(1) << (mix(cached) % 64));
	add_once(s->common_of, 1);
	if (s->common_of < WINDOW_REPORTS)
		return;
	if (__builtin_popcountll(s->common_kinds) >= KINDS_MIN) {
		write_once(s->learnt_block, s->common);
		put_once(s->common, 0);
		put_once(s->common_of, 0);
		put_once(s->common_kinds, 0);
	}
}

/* ----------------------------------------------------- hits and misses --- */

/* Notes a hit, or a miss, of blocks of one age. */
static void
note_part(struct evidence *e, uint32_t age, double tokens, bool hit)
{
	bool young = age < survival_bin(e->young);

	*(hit ? &e->sample.hit : &e->sample.missed) += tokens;
	if (young)
		*(hit ? &e->sample.young_hit : &e->sample.young_missed) +=
		    tokens;
	survival_note(e->k, e->l->slot, age,
	    tokens * e->weight * (hit ? 1 : e->confidence), hit);
}

/* The same of blocks [low, high) of the path. */
static void
note_blocks(struct evidence *e, uint32_t low, uint32_t high, bool hit)
{
	double block = hash_block_tokens(&e->k->rule);
	uint32_t end;

	for (; low < high; low = end) {
		end = ages_end(e->c, low);
		if (end > high)
			end = high;
		note_part(e, ages_of(e->c, low), (end - low) * block, hit);
	}
}

/* Restricts [low, high) to blocks that are evidence. */
static void
clip_range(const struct evidence *e, uint32_t *low, uint32_t *high)
{
	if (*low < e->from)
		*low = e->from;
	if (*high > e->to)
		*high = e->to;
	if (*high < *low)
		*high = *low;
}

/*
 * Likelihood that `block`, the first one reported missing, is missing. A
 * missing number may also stand for a hit.
 */
static double
likely_missing(const struct evidence *e, uint64_t block, bool number)
{
	double lost, other = WRONG;

	if (block >= e->to)
		return 1;
	lost = 1 - survival_of(e->k, e->l->slot, ages_of(e->c, block));
	if (!number)
		other += (1 - lost) *
		    (1 - numbers_share(e->k, e->l->slot, e->kind));
	return lost / (lost + other);
}

/* Token mode: the first `hits` blocks of the path were cached. */
static void
compare_tokens(struct evidence *e, bool number)
{
	uint64_t hits = e->cached / e->k->rule.block_size;

	uint64_t gone = (e->cached + trust_block(e->k, e->l->slot) - 1) /
	    e->k->rule.block_size;

	e->confidence = likely_missing(e, gone < e->from ? e->from : gone,
	    number);
	if (hits < e->from)
		hits = e->from;
	if (hits > e->to)
		hits = e->to;
	note_blocks(e, (uint32_t)hits, e->to, false);
	note_blocks(e, e->from, (uint32_t)hits, true);
}

/* A place on the path whose distance from the root in tokens is known. */
struct anchor {
	uint32_t node, depth;
	uint64_t tokens;
};

/* Blocks between two anchors have hit, or missed, or are no evidence. */
static void
compare_between(struct evidence *e, struct anchor above, struct anchor below)
{
	uint64_t slack = (uint64_t)hash_block_tokens(&e->k->rule) +
	    ANCHOR_SLACK + e->s->block_tokens;
	bool hit = e->cached + slack >= below.tokens;
	uint32_t low = above.depth, high = below.depth;

	if (!hit && e->cached > above.tokens + slack)
		return;
	clip_range(e, &low, &high);
	note_blocks(e, low, high, hit);
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
		add_once(e->k->region->counts.steps, 1);
	}
	here.tokens = 0;
	if (below.node != 0)
		compare_between(e, here, below);
}

/* Keeps the prompt's length in tokens, on the entry where it ended. */
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

/* The nearest place above its end where an earlier prompt has ended. */
static struct anchor
anchor_above(const struct evidence *e)
{
	struct anchor here = { e->l->node, e->l->blocks, 0 };
	const struct entry *h;

	while (here.node != 0 && !region_broken(e->k)) {
		here.depth -= node_at(e->k, here.node)->length;
		here.node = node_at(e->k, here.node)->parent;
		h = entry_at(e->k, entry_find(e->k, here.node, e->l->slot));
		here.tokens = h->anchor;
		add_once(e->k->region->counts.steps, 1);
		if (here.node == 0 || h->anchor != 0)
			break;
	}
	return here;
}

/* Counts the rest of this prompt behind the one before it, by both. */
static void
count_turn(const struct evidence *e, uint64_t prompt_tokens)
{
	struct anchor above = anchor_above(e);
	double estimate = (double)e->c->tokens -
	    above.depth * hash_block_tokens(&e->k->rule);
	double tokens = (double)prompt_tokens - (double)above.tokens;

	if (above.node == 0) {
		tokens = (double)prompt_tokens / WHOLE_SHARE;
		estimate = (double)e->c->tokens / WHOLE_SHARE;
	}
	if (prompt_tokens > 0 && prompt_tokens <= UINT32_MAX &&
	    e->c->tokens >= TURN_TOKENS && tokens > 0 &&
	    estimate * (above.node == 0 ? WHOLE_SHARE : 1) >= TURN_TOKENS)
		trust_count(e->k, e->l->slot, tokens, estimate);
}

/* A prompt's length in tokens is known without those that were cached. */
static void
learn_length(const struct evidence *e, const struct kvr_report *r)
{
	if (e->k->rule.unit != KVR_UNIT_BYTES ||
	    (r->flags & KVR_REPORT_NO_EVIDENCE) != 0)
		return;
	count_turn(e, r->prompt_tokens);
	set_anchor(e, r->prompt_tokens);
}

/* --------------------------------------------------------- calibration --- */

/* As the engine counts: in byte mode by this prompt's length. */
static uint64_t
predicted_tokens(const struct evidence *e, const struct kvr_report *report)
{
	uint64_t predicted = e->c->predicted;

	if (e->k->rule.unit == KVR_UNIT_BYTES && report->prompt_tokens > 0 &&
	    report->prompt_tokens <= UINT32_MAX && e->c->tokens > 0)
		predicted = predicted * report->prompt_tokens / e->c->tokens;
	return predicted;
}

static void
calibrate_by(struct calibration *c, const struct evidence *e,
    const struct kvr_report *report)
{
	uint64_t predicted = predicted_tokens(e, report), cached = e->cached;

	add_once(c->reports, 1);
	add_once(c->reported, cached);
	add_once(c->predicted, predicted);
	if (predicted > cached)
		add_once(c->over, predicted - cached);
	else
		add_once(c->under, cached - predicted);
}

/*
 * Tokens found beyond those on record, if the record takes nearly all of the
 * capacity: else they were cached before there was a record, or for another
 * router. Less than two blocks do not count, nor, in byte mode, less than an
 * eighth of the prompt: text is not even.
 */
static double
found_more(const struct evidence *e, const struct kvr_report *report)
{
	double block = hash_block_tokens(&e->k->rule), least = 2 * block;
	double more = cached_tokens(e, report) - e->c->overlap * block;

	if (e->k->rule.unit == KVR_UNIT_BYTES &&
	    least < (double)e->c->tokens / UNEVEN)
		least = (double)e->c->tokens / UNEVEN;
	return more > least && retain_fills(e->k, e->l->slot, e->c->prompt) ?
	    more : 0;
}

/* Compares the prediction with the report. */
static void
compare_found(struct evidence *e, const struct kvr_report *report)
{
	bool number = report->kind == KVR_REPORT_VALUE;

	if (numbers_nothing(e->k, e->l->slot))
		return; /* which proves nothing about ages */
	if (e->k->rule.unit == KVR_UNIT_TOKENS) {
		if (number)
			learn_block(e->s, report->cached_tokens);
		compare_tokens(e, number);
	} else {
		compare_anchors(e);
	}
	survival_update(e->k, e->l->slot);
	e->sample.all = (double)e->c->tokens / e->weight;
	e->sample.more = found_more(e, report);
	if (e->c->tokens > 0 && trust_judge(e->k, e->l->slot, &e->sample))
		decide_again(e->k, e->l->slot);
}

/* Counts the engine's numbers, whether they are evidence or not. */
static void
usage_count(struct calibration *seen, const struct claim *c,
    const struct kvr_report *r)
{
	uint64_t prompt = r->prompt_tokens != 0 ? r->prompt_tokens : c->tokens;

	if (r->kind != KVR_REPORT_VALUE || r->cached_tokens > prompt ||
	    prompt > UINT32_MAX)
		return;
	add_once(seen->usage_prompt, prompt);
	add_once(seen->usage_cached, r->cached_tokens);
}

/*
 * Learns from the report of a request that finishes. The path must be pinned
 * still, and not yet stamped. report may be NULL.
 */
void
report_take(struct kvr *k, const struct lease *l, const struct claim *c,
    const struct kvr_report *report)
{
	struct evidence e = { .k = k, .l = l, .c = c,
		.s = slot_at(k, l->slot), .from = c->active };
	double block = hash_block_tokens(&k->rule);
	double blocks = (double)trust_usable(k, l->slot, c->tokens,
	    (uint64_t)(c->overlap * block)) / block;

	if (report != NULL) {
		usage_count(&e.s->seen, c, report);
		usage_count(&k->region->counts.seen, c, report);
	}
	e.to = blocks < c->overlap ? (uint32_t)blocks : c->overlap;
	if (report != NULL && evidence_read(&e, report) &&
	    evidence_weigh(&e, report)) {
		compare_found(&e, report);
		calibrate_by(&e.s->seen, &e, report);
		calibrate_by(&k->region->counts.seen, &e, report);
	} else {
		add_once(e.s->seen.unreported, 1);
		add_once(k->region->counts.seen.unreported, 1);
	}
	if (report != NULL)
		learn_length(&e, report);
}

/* Forgets all reports: it is retained as a new worker is. */
void
report_forget(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	put_once(s->shown, 0);
	put_once(s->shortest, 0);
	put_once(s->common_kinds, 0);
	put_once(s->common, 0);
	put_once(s->common_of, 0);
	write_once_double(&s->usage_tokens, 0);
	write_once_double(&s->usage_estimate, 0);
	put_once(s->completions, 0);
	put_once(s->completion, 0);
	write_once(s->learnt_block, 0);
	survival_forget(k, slot);
	retain_decide(k, slot);
	load_recount(k, slot);
}
