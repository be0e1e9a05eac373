/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_learn.c - which mode of windows fits what an engine reports.
 *
 * An operator knows the window of a model. What the engine keeps of it depends
 * on its version and its options. KVR_WINDOW_LEARN keeps what all modes need:
 * the marks of ends, and of paths that are whole (window.c). So when a lease is
 * opened it is known what each would predict:
 *
 *   full     all that is on record                    |==========|
 *   ends     as far as the last mark                  |======|
 *   dense    all; or, if the end of the path is gone  |==========|  or  |=|
 *            or older than what fills such a
 *            cache, what others have used since
 *   report                                            |======|
 *
 * EVIDENCE. ENDS and DENSE are each compared with FULL, which is what routing
 * that is not aware of windows predicts. Where they do not differ a report says
 * nothing. Where they do, the errors of both are shares of the difference, and
 * what FULL errs more is a gain. Gains fade: their sum is of about the last 32
 * such reports. A mode is taken when its sum is two and a third of the
 * reports' weight, which is when it errs half as much as FULL; it is left when
 * its gain is none. So none is in force for long that is worse than unaware.
 *
 * LOST. An engine that has restarted, or whose cache is smaller than was told,
 * finds less than any mode predicts. What neither of two modes explains is no
 * evidence. Where one predicts nothing, it is right about all that is lost, for
 * whatever reason. So reports on which the two agree say how much is KEPT, and
 * a report of nothing counts as much as the square of that.
 *
 * ROOM follows the mode in force, and with it what is on record. A dense cache
 * is believed to evict early: what is found beyond the record is then held
 * against DENSE.
 *
 * ENDS are those of DUAL where the capacity of a memory for windows was told,
 * of BOUNDARY otherwise. DENSE needs the capacity and the share of layers, and
 * is FULL without.
 */
#include "window_learn.h"

#include "entry.h"
#include "survival.h"
#include "trust.h"
#include "window_mode.h"

#define FADE (31.0 / 32)
#define SUM_MAX 32.5F   /* 1 / (1 - FADE), and a bit */
#define LEAD 2.0         /* gain, for a mode to be taken, */
#define SHARE (1.0 / 3) /* also as a share of the reports */
#define MUCH 0.25       /* of a prompt: a difference of full weight, */
#define LITTLE 0.25     /* and the least weight */
#define KEPT_FADE (1.0 / 16)
#define HALF 0.5        /* it is, before anything is known */
#define BLOCKS_APART 2.0 /* modes that differ less do not differ */
#define BYTES_APART (1.0 / 16) /* the same, where tokens are estimates */

/* A damaged sum is none. */
static double
sound_sum(const float *place)
{
	float sum;

	__atomic_load(place, &sum, __ATOMIC_RELAXED);
	return sum >= -SUM_MAX && sum <= SUM_MAX ? (double)sum : 0;
}

double
window_compared(const struct kvr *k, uint32_t slot, enum window_idea idea)
{
	double n = sound_sum(&survival_at(k, slot)->idea[idea].compared);

	return n > 0 ? n : 0;
}

double
window_gain(const struct kvr *k, uint32_t slot, enum window_idea idea)
{
	double n = window_compared(k, slot, idea), gain;

	gain = sound_sum(&survival_at(k, slot)->idea[idea].gain);
	return gain >= n ? n > 0 : gain <= -n ? -(double)(n > 0) : gain / n;
}

static double
kept_of(const struct fit *f)
{
	return f->kept >= -HALF && f->kept <= HALF ? (double)f->kept + HALF
	    : HALF;
}

/* ------------------------------------------------------------ choosing --- */

static uint8_t
mode_of(const struct window *w, enum window_idea idea)
{
	if (idea == IDEA_DENSE)
		return KVR_WINDOW_DENSE;
	return w->capacity > 0 ? KVR_WINDOW_DUAL : KVR_WINDOW_BOUNDARY;
}

static bool
idea_fits(const struct kvr *k, uint32_t slot, enum window_idea idea)
{
	return sound_sum(&survival_at(k, slot)->idea[idea].gain) >= LEAD &&
	    window_gain(k, slot, idea) >= SHARE;
}

/* The one in force stays until it gains nothing, or another far more. */
static uint8_t
choose_mode(const struct kvr *k, uint32_t slot)
{
	const struct window *w = window_of(k, slot);
	uint8_t mode = KVR_WINDOW_FULL;
	double most = 0, gain;
	enum window_idea i;

	for (i = IDEA_ENDS; i < WINDOW_IDEAS; i++) {
		bool now = w->in_force == mode_of(w, i);

		if (i == IDEA_DENSE && w->capacity > 0)
			continue; /* that is of one memory for all layers */
		gain = window_gain(k, slot, i);
		if ((now || idea_fits(k, slot, i)) &&
		    gain * (now ? 1 + SHARE : 1) > most) {
			most = gain * (now ? 1 + SHARE : 1);
			mode = mode_of(w, i);
		}
	}
	return mode;
}

/* ----------------------------------------------------------- comparing --- */

/* What a report says, in tokens as the index counts them. */
struct found {
	double cached, prompt;
	double apart; /* ideas that differ less do not differ */
};

/* Of a difference: one of a quarter of the prompt has all, a small one less. */
static double
weight_of(double differ, double prompt)
{
	double weight = differ / (prompt * MUCH);

	return weight > 1 ? 1 : weight > LITTLE ? weight : LITTLE;
}

/* One idea, which let expect so many tokens, with FULL. */
static void
compare_idea(struct kvr *k, uint32_t slot, enum window_idea idea,
    double expected, double full, const struct found *found)
{
	struct fit *f = &survival_at(k, slot)->idea[idea];
	double differ = full > expected ? full - expected : expected - full;
	double kept = kept_of(f), cached = found->cached, weight;
	double of_full, of_idea;

	if (differ <= found->apart) {
		if (full > found->apart)
			put_once(f->kept, (float)(kept - HALF + KEPT_FADE *
			    ((cached < full ? cached / full : 1) - kept)));
		return;
	}
	of_full = full > cached ? full - cached : cached - full;
	of_idea = expected > cached ? expected - cached : cached - expected;
	if (of_full >= differ && of_idea >= differ)
		return;
	of_full = of_full < differ ? of_full / differ : 1;
	of_idea = of_idea < differ ? of_idea / differ : 1;
	weight = (1 - FADE) * weight_of(differ, found->prompt) *
	    (cached > found->apart ? 1 : kept * kept);
	put_once(f->gain, (float)(sound_sum(&f->gain) * (1 - weight) +
	    (of_full - of_idea) * weight * 32));
	put_once(f->compared, (float)(window_compared(k, slot, idea) *
	    (1 - weight) + weight * 32));
}

bool
window_learn(struct kvr *k, const struct lease *l, const struct claim *c,
    double cached)
{
	double share = (double)c->tokens / UINT16_MAX, full = c->full * share;
	double ends = c->ends * share, dense = c->dense * share;
	struct found found = { cached, (double)c->tokens,
		BLOCKS_APART * hash_block_tokens(&k->rule) };
	struct window *w = &slot_at(k, l->slot)->window;
	uint8_t mode;

	if (!window_learns(k, l->slot) || c->full == 0)
		return false;
	if (k->rule.unit == KVR_UNIT_BYTES)
		found.apart += found.prompt * BYTES_APART;
	compare_idea(k, l->slot, IDEA_ENDS, ends, full, &found);
	if (w->in_force == KVR_WINDOW_DENSE && cached > full)
		full = cached;
	if (w->capacity == 0)
		compare_idea(k, l->slot, IDEA_DENSE, dense, full, &found);
	mode = choose_mode(k, l->slot);
	if (mode == w->in_force)
		return false;
	write_once(w->in_force, mode);
	if (mode == KVR_WINDOW_DENSE) /* no quarter of a memory ends then */
		write_once(w->clock[0], slot_at(k, l->slot)->clock);
	/* what was lost by the former mode was not lost by age */
	survival_unlearn(k, l->slot);
	trust_told(k, l->slot);
	return true;
}

/* -------------------------------------------------- forgetting, damage --- */

void
window_forget(struct kvr *k, uint32_t slot)
{
	struct window *w = &slot_at(k, slot)->window;

	write_once_zeros(survival_at(k, slot)->idea,
	    sizeof(survival_at(k, slot)->idea));
	write_once(w->in_force, w->mode == KVR_WINDOW_LEARN
	    ? (uint8_t)KVR_WINDOW_FULL : w->mode);
}

bool
window_sane(const struct kvr *k, uint32_t slot)
{
	const struct window *w = window_of(k, slot);
	bool good = true;
	enum window_idea i;

	for (i = IDEA_ENDS; i < WINDOW_IDEAS; i++) {
		const struct fit *f = &survival_at(k, slot)->idea[i];

		good = good && f->compared >= 0 && f->compared <= SUM_MAX &&
		    f->gain >= -SUM_MAX && f->gain <= SUM_MAX &&
		    f->kept >= -HALF && f->kept <= HALF;
	}
	if (w->mode != KVR_WINDOW_LEARN)
		return good && w->mode <= KVR_WINDOW_DUAL &&
		    w->in_force == w->mode;
	return good && (w->in_force == KVR_WINDOW_FULL ||
	    w->in_force == mode_of(w, IDEA_DENSE) ||
	    w->in_force == mode_of(w, IDEA_ENDS));
}
