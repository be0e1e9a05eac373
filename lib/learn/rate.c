/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.c - how fast workers get through prompts, and their backlogs.
 *
 * The PACE (seconds per token) is learnt from the time between a request, or
 * the first token before it, and its own first token. Until a worker has been
 * seen prefilling for long, a prior is mixed in: PRIOR seconds at the rate it
 * was configured with, or else at the fleet's rate times its weight.
 *
 *	rate = (tokens seen + prior * expected rate) / (seconds seen + prior)
 *
 * Older evidence fades with each new piece. The rate of the fleet is learnt in
 * the same way, from all workers.
 *
 * Rates of a worker FADE with time too: one that seemed slow is not
 * asked, and would seem slow for good. After FADE_BEGIN seconds without a first
 * token it counts less and less, and after FADE_END nothing.
 *
 * The BACKLOG of a worker are the tokens that are booked on it until their
 * first token, at its pace. The first token of some requests is not reported:
 * answers that do not stream, and prompts that were only observed. They
 * are taken for prefilled one after the other, by when all will be done:
 *
 *	silent_until = max(silent_until, now) + new tokens * pace
 *
 * When such a request ends, all tokens booked before it have been prefilled.
 */
#include "rate.h"

#include "exp.h"

#define KEEP_OWN 0.995 /* of older evidence, per new piece */
#define KEEP_FLEET 0.999
#define FADE_BEGIN 30.0 /* seconds without a first token */
#define FADE_END 90.0
#define PRIOR 3.0 /* seconds */
#define PACE_MIN 1e-9
#define PACE_MAX 1e3
#define SLOWER_MAX 100 /* times the pace; more is a stall, not a rate */
#define SILENT_MAX 1e6 /* how far silent_until may be ahead, in seconds */
enum { EVIDENCE_TOKENS = 256, EVIDENCE_NS = 1000000 };

/* x is from shared memory and may be anything, also NaN. */
static double
clamp_to(double x, double min, double max)
{
	return x >= min ? x <= max ? x : max : min;
}

static bool
is_sane(double x)
{
	return x >= 0 && x <= 1e300;
}

/* No more than SILENT_MAX ahead of the clock. */
static bool
sane_until(const struct kvr *k, int64_t until)
{
	int64_t clock = k->region->clock > 0 ? k->region->clock : 0;

	return until <= 0 || until - clock <= (int64_t)(SILENT_MAX * 1e9);
}

/* Whether all learnt values are possible ones. */
bool
rate_sane(const struct kvr *k)
{
	const struct region *r = k->region;
	bool good = is_sane(r->fleet_tokens) && is_sane(r->fleet_seconds);
	uint32_t i;

	for (i = 0; i < k->layout.slots && good; i++)
		good = is_sane(k->slots[i].rate_tokens) &&
		    is_sane(k->slots[i].rate_seconds) &&
		    is_sane(k->slots[i].completion) &&
		    is_sane(k->slots[i].usage_tokens) &&
		    is_sane(k->slots[i].usage_estimate) &&
		    sane_until(k, k->loads.silent_until[i]) &&
		    sane_until(k, k->loads.observed_until[i]);
	return good;
}

/* Resets the learnt values if damage made any of them impossible. */
void
rate_recover(struct kvr *k)
{
	uint32_t i;

	if (rate_sane(k))
		return;
	write_once_double(&k->region->fleet_tokens, RATE_FIRST_TOKENS);
	write_once_double(&k->region->fleet_seconds, RATE_FIRST_SECONDS);
	for (i = 0; i < k->layout.slots; i++) {
		put_once(k->slots[i].rate_tokens, 0);
		put_once(k->slots[i].rate_seconds, 0);
		put_once(k->slots[i].completion, 0);
		write_once_double(&k->slots[i].usage_tokens, 0);
		write_once_double(&k->slots[i].usage_estimate, 0);
		rate_idle(k, i);
	}
}

/* Tokens per second of a worker of weight 1. */
double
rate_fleet(const struct kvr *k)
{
	double tokens = read_once_double(&k->region->fleet_tokens);

	return clamp_to(tokens / read_once_double(&k->region->fleet_seconds),
	    1 / PACE_MAX, 1 / PACE_MIN);
}

/* Forgets the rates of a worker. */
void
rate_forget(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	put_once(s->rate_tokens, 0);
	put_once(s->rate_seconds, 0);
	rate_publish(k, slot);
}

/* The weight of a worker's rates: 1 at first, 0 after long silence. */
static double
freshness_of(const struct kvr *k, const struct slot *s)
{
	int64_t now = k->region->clock, heard = s->last_first;
	double silent = now > heard && heard >= 0
	    ? (double)(now - heard) * 1e-9 : 0;

	return clamp_to((FADE_END - silent) / (FADE_END - FADE_BEGIN), 0, 1);
}

/* The current estimate, in seconds per token. */
static double
rate_pace(const struct kvr *k, const struct slot *s)
{
	double expected = s->prefill_rate > 0 ? s->prefill_rate
	    : s->weight * rate_fleet(k);
	double fresh = freshness_of(k, s);
	double tokens = fresh * s->rate_tokens + PRIOR * expected;
	double seconds = fresh * s->rate_seconds + PRIOR;

	return clamp_to(seconds / tokens, PACE_MIN, PACE_MAX);
}

/* Copies the figures of a slot that choices read to the loads. */
void
rate_publish(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (slot >= k->layout.slots)
		return;
	write_once_double(&k->loads.pace[slot], rate_pace(k, s));
}

/* ------------------------------------------------------------- backlog --- */

/*
 * A change of the fleet's rate changes the pace of other workers, and so does
 * time: publishes the next one, in turn.
 */
void
rate_publish_next(struct kvr *k)
{
	uint32_t slots = slots_used(k), slot = k->region->rate_turn + 1;

	put_once(k->region->rate_turn, slot < slots ? slot : 0);
	if (slots > 0)
		rate_publish(k, k->region->rate_turn);
}

/*
 * A request has ended without a report of its first token: so has all prefill
 * booked before its own, and at most that of the others like it is left.
 */
void
rate_unbook_silent(struct kvr *k, uint32_t slot, int64_t now)
{
	const struct slot *s = slot_at(k, slot);
	double seconds = clamp_to((double)s->silent * rate_pace(k, s), 0,
	    SILENT_MAX);
	int64_t most = now + (int64_t)(seconds * 1e9);

	if (slot < k->layout.slots && k->loads.silent_until[slot] > most)
		write_once(k->loads.silent_until[slot], most);
}

/* Books prefill without a later report of its end. */
static void
book_until(const struct kvr *k, uint32_t slot, int64_t *until,
    uint64_t tokens, int64_t now)
{
	double seconds = (double)tokens * rate_pace(k, slot_at(k, slot));

	if (*until > now)
		seconds += (double)((uint64_t)*until - (uint64_t)now) * 1e-9;
	seconds = clamp_to(seconds, 0, SILENT_MAX);
	write_once(*until, now + (int64_t)(seconds * 1e9));
}

void
rate_book_silent(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now)
{
	if (slot < k->layout.slots)
		book_until(k, slot, &k->loads.silent_until[slot], tokens, now);
}

void
rate_book_observed(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now)
{
	if (slot < k->layout.slots)
		book_until(k, slot, &k->loads.observed_until[slot], tokens,
		    now);
}

/* Nothing is booked without a later report of its end. */
void
rate_idle(struct kvr *k, uint32_t slot)
{
	if (slot >= k->layout.slots)
		return;
	write_once(k->loads.silent_until[slot], INT64_C(0));
	write_once(k->loads.observed_until[slot], INT64_C(0));
}

/* The first token has come of a request with `tokens` to prefill. */
void
rate_learn(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t opened,
    int64_t now)
{
	struct region *r = k->region;
	struct slot *s = slot_at(k, slot);
	int64_t from = opened > s->last_first ? opened : s->last_first;
	double seconds, max;

	if (from < 0) /* damaged */
		from = now;
	seconds = (double)(now - from) * 1e-9;
	put_once(s->rate_tokens, s->rate_tokens * freshness_of(k, s));
	put_once(s->rate_seconds, s->rate_seconds * freshness_of(k, s));
	put_once(s->last_first, now);
	if (tokens < EVIDENCE_TOKENS || now - from <= EVIDENCE_NS)
		return;
	max = SLOWER_MAX * (double)tokens * rate_pace(k, s);
	seconds = seconds < max ? seconds : max;
	put_once(s->rate_tokens, s->rate_tokens * KEEP_OWN + (double)tokens);
	put_once(s->rate_seconds, s->rate_seconds * KEEP_OWN + seconds);
	write_once_double(&r->fleet_tokens, r->fleet_tokens * KEEP_FLEET +
	    (double)tokens);
	write_once_double(&r->fleet_seconds, r->fleet_seconds * KEEP_FLEET +
	    seconds * s->weight);
	rate_publish(k, slot);
}
