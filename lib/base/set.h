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

#endif
