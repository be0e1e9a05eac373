/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.c - how fast workers get through prompts, and their backlogs.
 *
 * A worker is modelled as prefilling one request after the other, so all that
 * is booked on it will be done at
 *
 *	free_at = max(free_at, now) + new tokens * pace      at each booking
 *
 * Real engines are earlier or later. Each first token corrects free_at: the
 * tokens still waiting take no longer than their number times the pace, and if
 * none wait it is now. If it has passed and some still wait, the worker is
 * LATE: something delays them, and is likely to last as long again. Requests
 * whose first token will not be told are nothing to wait for.
 *
 * The PACE (seconds per token) is learnt from the time between a request, or
 * the first token before it, and its own first token. Until a worker has been
 * seen prefilling for long, a prior is mixed in: balanced_prior seconds (of the
 * policy) at the rate it was configured with, or else at the fleet's rate times
 * its weight.
 *
 *	rate = (tokens seen + prior * expected rate) / (seconds seen + prior)
 *
 * Older evidence fades with each new piece. The rate of the fleet is learnt in
 * the same way, from all workers.
 *
 * What a worker has shown FADES with time too: one that seemed slow is not
 * asked, and would seem slow for good. After FADE_BEGIN seconds without a first
 * token it counts less and less, and after FADE_END nothing. And it counts only
 * if it differs from what was expected by more than a dead band, so that equal
 * workers are equal. See kvr_policy(3), "Prefill rates".
 */
#include "rate.h"

#include "exp.h"

#define KEEP_OWN 0.995 /* of older evidence, per new piece */
#define KEEP_FLEET 0.999
#define FADE_BEGIN 30.0 /* seconds without a first token */
#define FADE_END 90.0
#define SPOKEN_SHARE 0.05 /* of a request in the share with first tokens */
#define WINDOW 60.0 /* seconds in which arrivals fade to 1/e */
#define PACE_MIN 1e-9
#define PACE_MAX 1e3
#define SLOWER_MAX 100 /* times the pace; more is a stall, not a rate */
#define FREE_MAX 1e6 /* how far free_at may be ahead of now, in seconds */
enum { EVIDENCE_TOKENS = 256, EVIDENCE_NS = 1000000 };

/* x is from shared memory and may be anything, also NaN. */
static double
clamp(double x, double min, double max)
{
	return x >= min ? x <= max ? x : max : min;
}

static bool
sane(double x)
{
	return x >= 0 && x <= 1e300;
}

/* Whether all learnt values are possible ones. */
bool
rate_sane(const struct kvr *k)
{
	const struct region *r = k->region;
	bool good = sane(r->fleet_tokens) && sane(r->fleet_seconds) &&
	    sane(r->arrivals) && r->spoken >= 0 && r->spoken <= 1;
	uint32_t i;

	for (i = 0; i < k->layout.slots && good; i++)
		good = sane(k->slots[i].rate_tokens) &&
		    sane(k->slots[i].rate_seconds) &&
		    sane(k->slots[i].completion);
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
	write_once_double(&k->region->arrivals, 0);
	write_once_double(&k->region->spoken, 0);
	for (i = 0; i < k->layout.slots; i++) {
		put_once(k->slots[i].rate_tokens, 0);
		put_once(k->slots[i].rate_seconds, 0);
		put_once(k->slots[i].completion, 0);
	}
}

/* Tokens per second of a worker of weight 1. */
double
rate_fleet(const struct kvr *k)
{
	double tokens = read_once_double(&k->region->fleet_tokens);

	return clamp(tokens / read_once_double(&k->region->fleet_seconds),
	    1 / PACE_MAX, 1 / PACE_MIN);
}

/* Forgets what a worker has shown. */
void
rate_forget(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	put_once(s->rate_tokens, 0);
	put_once(s->rate_seconds, 0);
	rate_publish(k, slot);
}

/* How much counts what a worker has shown: 1 at first, 0 after long silence. */
static double
freshness(const struct kvr *k, const struct slot *s)
{
	int64_t now = k->region->clock, heard = s->last_first;
	double silent = now > heard && heard >= 0
	    ? (double)(now - heard) * 1e-9 : 0;

	return clamp((FADE_END - silent) / (FADE_END - FADE_BEGIN), 0, 1);
}

/* The current estimate, in seconds per token. */
static double
rate_pace(const struct kvr *k, const struct slot *s)
{
	const struct kvr_policy *y = &k->region->policy;
	double expected = s->prefill_rate > 0 ? s->prefill_rate
	    : s->weight * rate_fleet(k);
	double fresh = freshness(k, s);
	double tokens = fresh * s->rate_tokens + y->balanced_prior * expected;
	double seconds = fresh * s->rate_seconds + y->balanced_prior;
	double rate = seconds > 0 && tokens > 0 ? tokens / seconds : expected;

	if (rate > expected * (1 - y->balanced_dead_band) &&
	    rate < expected * (1 + y->balanced_dead_band))
		rate = expected;
	return clamp(1 / rate, PACE_MIN, PACE_MAX);
}

/* Copies to the loads what choices read of a slot. */
void
rate_publish(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (slot >= k->layout.slots)
		return;
	write_once_double(&k->loads.pace[slot], rate_pace(k, s));
	write_once_double(&k->loads.waiting[slot], (double)s->load_prefill);
	write_once(k->loads.free_at[slot], s->free_at);
}

/* -------------------------------------------------------- first tokens --- */

/* A request has ended, after a first token or without. */
void
rate_ended(struct kvr *k, bool spoken)
{
	double share = k->region->spoken;

	share += ((spoken ? 1 : 0) - share) * SPOKEN_SHARE;
	write_once_double(&k->region->spoken, clamp(share, 0, 1));
}

/* ------------------------------------------------------------ arrivals --- */

/* Recent arrivals, in tokens to prefill per second. */
double
rate_arrivals(const struct kvr *k, int64_t now)
{
	double tokens = read_once_double(&k->region->arrivals);
	int64_t at = read_once(k->region->arrivals_at);
	double seconds = now > at && at >= 0 ? (double)(now - at) * 1e-9 : 0;

	return clamp(tokens * exp_of(-(seconds / WINDOW)), 0, 1e300) / WINDOW;
}

static void
rate_arrived(struct kvr *k, uint64_t tokens, int64_t now)
{
	write_once_double(&k->region->arrivals,
	    rate_arrivals(k, now) * WINDOW + (double)tokens);
	write_once(k->region->arrivals_at, now);
}

/* ------------------------------------------------------------- backlog --- */

/*
 * A change of the fleet's rate changes the pace of other workers, and so does
 * time: publishes the next one, in turn.
 */
static void
rate_publish_next(struct kvr *k)
{
	uint32_t slots = slots_used(k), slot = k->region->rate_turn + 1;

	put_once(k->region->rate_turn, slot < slots ? slot : 0);
	if (slots > 0)
		rate_publish(k, k->region->rate_turn);
}

static int64_t
rate_after(int64_t from, double tokens, double pace)
{
	double seconds = clamp(tokens * pace, 0, FREE_MAX);

	return from + (int64_t)(seconds * 1e9);
}

/* Books the prefill of a request; `speaks`: its first token will be told. */
void
rate_book(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now,
    bool speaks)
{
	struct slot *s = slot_at(k, slot);
	int64_t max = now + (int64_t)(FREE_MAX * 1e9);
	double pace = rate_pace(k, s);

	rate_arrived(k, tokens, now);
	add_once(s->prefilling, speaks);
	if (s->free_at < now || s->free_at > max)
		put_once(s->free_at, s->free_at < now ? now : max);
	put_once(s->free_at, rate_after(s->free_at, (double)tokens, pace));
	if (s->free_at > max)
		put_once(s->free_at, max);
	rate_publish(k, slot);
	rate_publish_next(k);
}

/*
 * The prefill of a request has ended, or was given up. s->prefill is already
 * without it.
 */
void
rate_unbook(struct kvr *k, uint32_t slot, int64_t now, bool speaks)
{
	struct slot *s = slot_at(k, slot);
	double left = (double)(s->prefill - s->load_prefill);
	int64_t max = rate_after(now, left, rate_pace(k, s));

	sub_once(s->prefilling, speaks && s->prefilling > 0);
	if (s->free_at > max)
		put_once(s->free_at, max);
	rate_publish(k, slot);
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
	put_once(s->rate_tokens, s->rate_tokens * freshness(k, s));
	put_once(s->rate_seconds, s->rate_seconds * freshness(k, s));
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
	rate_publish_next(k);
}
