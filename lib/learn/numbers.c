/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbers.c - the meaning of a missing number of cached tokens, and of a zero.
 *
 * MISSING. Some engines leave the number out when it is 0. Others leave it out
 * for reasons of their own, and then it proves nothing. The difference shows
 * where a hit was as good as certain: an engine of the first sort has numbers
 * there. So for each kind of answer (endpoint, stream or not) the latest
 * answers to such requests are kept, a bit each, below a leading one:
 *
 *   0000 0001 1110 1111       seven answers; one had no number
 *           ^ begins them
 *
 *	q = (numbers + 1) / (answers + 1)        here 7 / 8
 *
 * A missing number counts 2 q - 1 of a zero, and nothing if q is below 1/2.
 * The leading one reaches the highest bit at 15 answers; then old ones go.
 *
 * CERTAIN are predicted blocks in use; and idle ones in the youngest quarter of
 * all blocks that were asked for again on this worker, because engines lose old
 * blocks first. `young` follows the end of that quarter: three bins down for an
 * age in it, one up for an older one.
 *
 * ZERO. An engine without a prefix cache reports 0, and so do endpoints that
 * report 0 whatever was hit. A few zeros from an engine that has never reported
 * more therefore prove nothing. But ZEROS_MAX in a row where more was predicted
 * do: the engine is believed to find nothing at all, not even blocks in use,
 * until it reports a number above 0.
 *
 * ENOUGH must have been predicted for a zero. Some engines find nothing below a
 * minimum, or have large blocks. So a zero proves something if the engine once
 * found no more than was predicted now; before it found any, if its block is
 * given; and from LEAST_MAX tokens on always.
 */
#include "numbers.h"

#include "survival.h"

enum {
	ANSWERS_MAX = 15, /* bits below the leading one */
	ZEROS_MAX = 16,
	LEAST_MAX = 2304, /* tokens: no engine's block or minimum is larger */
	YOUNGER = 3       /* steps down for one up: a quarter is younger */
};

static uint32_t
answers_in(uint32_t bits)
{
	return bits == 0 ? 0 : 31 - (uint32_t)__builtin_clz(bits);
}

static uint16_t
answers_add(uint32_t bits, bool number)
{
	uint32_t top = 1U << ANSWERS_MAX;

	if (bits == 0)
		bits = 1;
	bits = (bits & top) != 0 ? top | (bits << 1 & (top - 1)) : bits << 1;
	return (uint16_t)(bits | number);
}

/* Whether an idle block of this age is among the youngest quarter. */
static bool
is_young(struct survival *s, uint32_t age)
{
	uint32_t mark = s->young; /* a bin, plus 1 */
	bool young;

	if (mark == 0 || mark > AGES)
		mark = age + 1;
	young = age + 1 <= mark;
	if (young)
		mark = mark > YOUNGER + 1 ? mark - YOUNGER : 1;
	else
		mark++;
	put_once(s->young, (uint8_t)mark);
	return young;
}

void
numbers_note(struct kvr *k, uint32_t slot, const struct numbers_answer *answer)
{
	struct survival *s = survival_at(k, slot);
	uint16_t *bits = &s->numbers[answer->kind % ANSWER_KINDS];

	if (answer->in_use || is_young(s, answer->age))
		write_once(*bits, answers_add(*bits, answer->number));
}

double
numbers_share(const struct kvr *k, uint32_t slot, uint32_t kind)
{
	uint32_t bits = survival_at(k, slot)->numbers[kind % ANSWER_KINDS];
	int ones = bits == 0 ? 1 : __builtin_popcount(bits);

	return ones / (answers_in(bits) + 1.0);
}

double
numbers_usual(const struct kvr *k, uint32_t slot, uint32_t kind)
{
	double share = numbers_share(k, slot, kind);

	return share > 0.5 ? 2 * share - 1 : 0;
}

/* ---------------------------------------------------------------- zeros --- */

double
numbers_least(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	if (s->shortest != 0)
		return s->shortest;
	return s->block_tokens != 0 ? 1 : LEAST_MAX;
}

void
numbers_zero(struct kvr *k, uint32_t slot)
{
	struct survival *s = survival_at(k, slot);

	if (s->zeros < ZEROS_MAX)
		write_once(s->zeros, s->zeros + 1);
}

void
numbers_above_zero(struct kvr *k, uint32_t slot, double found)
{
	struct slot *s = slot_at(k, slot);
	uint32_t known = s->shortest != 0 ? s->shortest : LEAST_MAX;

	write_once(survival_at(k, slot)->zeros, 0);
	if (found < known)
		known = found < 1 ? 1 : (uint32_t)found;
	put_once(s->shortest, known);
}

bool
numbers_nothing(const struct kvr *k, uint32_t slot)
{
	return read_once(survival_at(k, slot)->zeros) >= ZEROS_MAX;
}
