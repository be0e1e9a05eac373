/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * set.h - sets of slots as bitmaps: one bit per slot, 64 per word.
 */
#ifndef KVR_SET_H
#define KVR_SET_H

#include <stdbool.h>
#include <stdint.h>

static inline bool
set_has(const uint64_t *set, uint32_t slot)
{
	return (set[slot / 64] >> slot % 64 & 1) != 0;
}

static inline void
set_add(uint64_t *set, uint32_t slot)
{
	set[slot / 64] |= UINT64_C(1) << slot % 64;
}

static inline void
set_remove(uint64_t *set, uint32_t slot)
{
	set[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

/*
 * Iterates over the slots of a set in ascending order:
 * 	struct set_walk w = set_walk(set, words);
 * 	while (set_next(&w, &slot))
 * 		use(slot);
 */
struct set_walk {
	const uint64_t *set;
	uint64_t left; /* bits left in the word before `word` */
	uint32_t word, words;
};

static inline struct set_walk
set_walk(const uint64_t *set, uint32_t words)
{
	struct set_walk w = { set, 0, 0, words };

	return w;
}

static inline bool
set_next(struct set_walk *w, uint32_t *slot)
{
	while (w->left == 0) {
		if (w->word == w->words)
			return false;
		w->left = w->set[w->word++];
	}
	*slot = (w->word - 1) * 64 + (uint32_t)__builtin_ctzll(w->left);
	w->left &= w->left - 1;
	return true;
}

/*
 * The same by runs of slots that follow each other, of up to 64: the loop over
 * a run is a plain one, and most sets have all of their slots.
 */
struct set_run {
	uint32_t from, to;
};

static inline bool
set_next_run(struct set_walk *w, struct set_run *run)
{
	uint32_t bit, n;
	uint64_t gaps;

	while (w->left == 0) {
		if (w->word == w->words)
			return false;
		w->left = w->set[w->word++];
	}
	bit = (uint32_t)__builtin_ctzll(w->left);
	gaps = ~(w->left >> bit);
	n = gaps != 0 ? (uint32_t)__builtin_ctzll(gaps) : 64;
	w->left = bit + n < 64 ? w->left & UINT64_MAX << (bit + n) : 0;
	run->from = (w->word - 1) * 64 + bit;
	run->to = run->from + n;
	return true;
}

#endif
