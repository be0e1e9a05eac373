/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trust.c - which capacity and block of a worker are used: given, learnt, none.
 *
 * Only with KVR_RETAIN_AUTO; a mode that was set is kept. A capacity that was
 * counted (event_stream.c) is taken in place of one that was given.
 *
 *                  contradicted                   an edge was found
 *   given capacity ------------> survival by age -----------------> learnt
 *                  <------------                 <-----------------
 *                   young agree                     contradicted
 *
 * CONTRADICTED. By capacity everything predicted is there. So the share of
 * predicted idle blocks that each report misses is averaged, over about the
 * last 32. Above a quarter, of at least 16 reports, the capacity is wrong,
 * or the engine does not evict in this order, or others use it too, or it has
 * restarted: survival by age is closer. And if engines find more than a
 * tenth of their prompts beyond what is on record, while that takes nearly all
 * the capacity, the cache is larger, as where it goes on in the host's memory:
 * then a capacity is not believed again until an edge is found near it.
 *
 * Events that name the blocks are contradicted by the same share of misses:
 * removals are missing. Then the worker is degraded.
 *
 * YOUNG AGREE. Without the capacity nothing is evicted here, so its predictions
 * are not known. But blocks of half its age would be predicted. If engines
 * missed less than a tenth of them in 32 reports, the capacity is tried again.
 *
 * AN EDGE. If the engine evicts in order of release, blocks hit up to some age
 * and are gone beyond it:
 *
 *   hits    ||||  ||||  ||||  ||||  |||    |
 *   misses                           |   ||||  ||||  ||||  ||||
 *           `---- 8 bins: hits ----'      `---- 8 bins: misses ----'
 *                                  `-----'
 *                                 2 bins of any
 *
 * Within a factor of four on both sides, a sixteenth may be different. Caches
 * that evict at random lose young blocks too, and have no such edge wherever it
 * is looked for.
 *
 * LEARNT. It evicts blocks that are surely gone; the others still count by
 * their age, since edges are estimates. The capacity is the middle of the first
 * bin of misses: rather too much than too little, since wrong predictions are
 * noticed, and wrong evictions are not. If it is too large, it is contradicted
 * as above. It is too small if engines find more than predicted, above a tenth
 * of the prompts. Either way the cache must be another one, and all counts by
 * age are forgotten.
 */
#include "trust.h"

#include "entry.h"
#include "event_stream.h"
#include "numbers.h"
#include "survival.h"
#include "window_mode.h"

enum {
	WINDOW = 32,     /* reports that are averaged */
	DOUBT_MIN = 16,  /* reports, before a capacity is doubted */
	RETURN_MIN = 32  /* and before it is believed again */
};
/* Why a capacity that was given is not believed. */
enum doubt { NO_DOUBT, MISSES, TOO_SMALL };
#define DOUBT 0.25
#define MORE 0.1
#define AGREE 0.1
#define RATIO_MIN 2048.0      /* tokens, before their ratio is used */
#define RATIO_WINDOW 4194304.0 /* then older ones count half */
#define RATIO_MOST 8.0
#define COUNTED_MOST 0x1p40

/* A damaged count reads as 0. */
static double
sound_count(float count, double most)
{
	return count >= 0 && (double)count <= most ? (double)count : 0;
}

static void
judge_anew(struct survival *s)
{
	put_once(s->missed, 0);
	put_once(s->judged, 0);
	put_once(s->more, 0);
}

/*
 * Averages the share of tokens that were missed. A report counts by the part of
 * its prompt on which it is evidence.
 */
static void
judge_report(struct survival *s, double hit, double missed, double all)
{
	double n = sound_count(s->judged, WINDOW);
	double share = sound_count(s->missed, 1);
	double weight = (hit + missed) / all;

	if (!(weight > 0))
		return;
	weight = weight < 1 ? weight : 1;
	n = n + weight < WINDOW ? n + weight : WINDOW;
	share += (missed / (hit + missed) - share) * weight / n;
	put_once(s->judged, (float)n);
	put_once(s->missed, (float)share);
}

/* ------------------------------------------------------------ in force --- */

uint64_t
trust_told_room(const struct kvr *k, uint32_t slot)
{
	uint64_t counted = event_capacity(k, slot);

	return counted > 0 ? counted : read_once(slot_at(k, slot)->capacity);
}

static bool
by_told(const struct kvr *k, uint32_t slot)
{
	return trust_told_room(k, slot) > 0 &&
	    survival_at(k, slot)->doubted == 0;
}

/* Is it left to choose, or has it events, which are not complete? */
static bool
may_choose(const struct kvr *k, uint32_t slot)
{
	uint8_t retain = read_once(slot_at(k, slot)->retain);

	return retain == KVR_RETAIN_AUTO || retain == KVR_RETAIN_EVENTS;
}

uint8_t
trust_mode(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (!may_choose(k, slot))
		return s->retain;
	if (event_tracks(k, slot))
		return KVR_RETAIN_EVENTS;
	if (numbers_nothing(k, slot))
		return KVR_RETAIN_FEEDBACK;
	if (by_told(k, slot) || survival_at(k, slot)->room > 0)
		return KVR_RETAIN_CAPACITY;
	return s->shown != 0 || trust_told_room(k, slot) > 0
	    ? KVR_RETAIN_FEEDBACK : KVR_RETAIN_TTL;
}

uint64_t
trust_room(const struct kvr *k, uint32_t slot)
{
	if (trust_learnt(k, slot))
		return read_once(survival_at(k, slot)->room);
	return may_choose(k, slot) ? trust_told_room(k, slot)
	    : read_once(slot_at(k, slot)->capacity);
}

bool
trust_learnt(const struct kvr *k, uint32_t slot)
{
	return may_choose(k, slot) && read_once(survival_at(k, slot)->room) > 0;
}

void
trust_told(struct kvr *k, uint32_t slot)
{
	struct survival *s = survival_at(k, slot);

	judge_anew(s);
	put_once(s->doubted, 0);
	if (trust_told_room(k, slot) > 0)
		write_once(s->room, 0);
}

/* --------------------------------------------------------------- tokens --- */

double
trust_ratio(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	double estimate = read_once_double(&s->usage_estimate);
	double ratio = read_once_double(&s->usage_tokens) / estimate;

	if (k->rule.unit != KVR_UNIT_BYTES || !(estimate >= RATIO_MIN) ||
	    !(ratio > 0))
		return 1;
	return ratio < 1 / RATIO_MOST ? 1 / RATIO_MOST
	    : ratio < RATIO_MOST ? ratio : RATIO_MOST;
}

void
trust_count(struct kvr *k, uint32_t slot, double tokens, double estimate)
{
	struct slot *s = slot_at(k, slot);
	double all = s->usage_tokens, of = s->usage_estimate;

	/* Damage goes, and text of another kind is noticed. */
	if (!(all >= 0 && all <= COUNTED_MOST && of >= 0 &&
	    of <= COUNTED_MOST))
		all = of = 0;
	if (of >= RATIO_WINDOW) {
		all /= 2;
		of /= 2;
	}
	write_once_double(&s->usage_tokens, all + tokens);
	write_once_double(&s->usage_estimate, of + estimate);
}

/* The told capacity, as the index counts. */
static uint64_t
told_here(const struct kvr *k, uint32_t slot)
{
	double told = (double)trust_told_room(k, slot) / trust_ratio(k, slot);

	return told < 0x1p63 ? (uint64_t)told : UINT64_C(1) << 63;
}

uint64_t
trust_young(const struct kvr *k, uint32_t slot)
{
	uint64_t told = told_here(k, slot);

	return told > 0 ? told / 2 : survival_capacity(k, slot) / 2;
}

/* -------------------------------------------------------------- blocks --- */

/*
 * Tokens per block of the engine: as configured, by its events, or learnt from
 * reports; else the index's. The learnt number is a multiple of the unit that
 * the engine reuses: if it is less than the blocks of events, parts of blocks
 * are reused.
 */
uint64_t
trust_block(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	uint32_t configured = read_once(s->block_tokens),
		 learnt = read_once(s->learnt_block), said;

	if (k->rule.unit == KVR_UNIT_BYTES)
		return 1; /* tokens are estimates there: nothing to round */
	if (configured != 0)
		return configured;
	said = event_block(k, slot);
	if (said == 0 || (learnt != 0 && learnt < said))
		said = learnt;
	return said != 0 ? said : k->rule.block_size;
}

/*
 * How many of the first `tokens` of a prompt the engine could take from its
 * cache: it finds whole blocks, and computes at least one token.
 */
uint64_t
trust_usable(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t tokens)
{
	uint64_t align = window_on(k, slot)
	    ? read_once(window_of(k, slot)->align) : 0;
	uint64_t block = align != 0 && k->rule.unit == KVR_UNIT_TOKENS ? align
	    : trust_block(k, slot);

	if (prompt == 0)
		return 0;
	if (tokens > prompt - 1)
		tokens = prompt - 1;
	return tokens / block * block;
}

/* ------------------------------------------------------------- judging --- */

/* Averages tokens found beyond the learnt capacity, as a share of prompts. */
static bool
too_little(struct survival *s, const struct trust_sample *sample)
{
	double more = sound_count(s->more, 1);

	more += (sample->more / sample->all - more) / WINDOW;
	put_once(s->more, (float)(more < 1 ? more : 1));
	return more > MORE;
}

static void
give_up(struct survival *s, enum doubt doubt)
{
	judge_anew(s);
	if (s->room == 0)
		put_once(s->doubted, (uint8_t)doubt);
	write_once(s->room, 0);
}

/* In force: a capacity. */
static bool
judge_capacity(struct kvr *k, uint32_t slot, const struct trust_sample *sample)
{
	struct survival *s = survival_at(k, slot);

	if (too_little(s, sample)) {
		if (s->room > 0)
			survival_unlearn(k, slot);
		give_up(s, TOO_SMALL);
		return true;
	}
	judge_report(s, sample->hit, sample->missed, sample->all);
	if (sound_count(s->judged, WINDOW) >= DOUBT_MIN &&
	    sound_count(s->missed, 1) > DOUBT) {
		if (s->room > 0) /* the cache is another one */
			survival_unlearn(k, slot);
		give_up(s, MISSES);
		return true;
	}
	return false;
}

/* In force: survival. */
static bool
judge_survival(struct kvr *k, uint32_t slot, const struct trust_sample *sample)
{
	struct survival *s = survival_at(k, slot);

	judge_report(s, sample->young_hit, sample->young_missed, sample->all);
	if (sound_count(s->judged, WINDOW) < RETURN_MIN ||
	    sound_count(s->missed, 1) > AGREE)
		return false;
	write_once(s->room, survival_edge(k, slot));
	if (s->room > 0) {
		judge_anew(s);
		return true;
	}
	if (s->doubted != MISSES)
		return false;
	judge_anew(s);
	put_once(s->doubted, NO_DOUBT);
	return true;
}

/*
 * An edge just below the given capacity does not refute it, nor does one above,
 * unless the capacity was too small.
 */
static void
told_again(struct kvr *k, uint32_t slot)
{
	struct survival *s = survival_at(k, slot);
	uint64_t told = told_here(k, slot);

	if (s->doubted == NO_DOUBT || told == 0 || s->room < told - told / 4 ||
	    (s->doubted == TOO_SMALL && s->room > told &&
	    s->room - told > told / 4))
		return;
	put_once(s->doubted, NO_DOUBT);
	write_once(s->room, 0);
}

void
trust_anew(struct kvr *k, uint32_t slot)
{
	judge_anew(survival_at(k, slot));
}

/* In force: events, which may miss removals. */
static bool
judge_events(struct kvr *k, uint32_t slot, const struct trust_sample *sample)
{
	struct survival *s = survival_at(k, slot);

	judge_report(s, sample->hit, sample->missed, sample->all);
	if (sound_count(s->judged, WINDOW) < DOUBT_MIN ||
	    sound_count(s->missed, 1) <= DOUBT)
		return false;
	judge_anew(s);
	event_doubt(k, slot, KVR_DEGRADED_REPORTS);
	return true;
}

bool
trust_judge(struct kvr *k, uint32_t slot, const struct trust_sample *sample)
{
	if (!may_choose(k, slot))
		return false;
	if (event_tracks(k, slot))
		return judge_events(k, slot, sample);
	if (!by_told(k, slot) && survival_at(k, slot)->room == 0) {
		if (!judge_survival(k, slot, sample))
			return false;
		told_again(k, slot);
		return true;
	}
	return judge_capacity(k, slot, sample);
}

/* -------------------------------------------------------------- damage --- */

static bool
counts_possible(const struct survival *s)
{
	return s->missed >= 0 && s->missed <= 1 && s->more >= 0 &&
	    s->more <= 1 && s->judged >= 0 &&
	    s->judged <= WINDOW && s->doubted <= TOO_SMALL;
}

bool
trust_sane(const struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.slots; i++)
		if (slot_in_use(k, i) && (!counts_possible(survival_at(k, i)) ||
		    slot_at(k, i)->mode != trust_mode(k, i)))
			return false;
	return true;
}

void
trust_recover(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.names; i++)
		if (!counts_possible(&k->survival[i])) {
			judge_anew(&k->survival[i]);
			put_once(k->survival[i].doubted, 0);
			write_once(k->survival[i].room, 0);
		}
}
