/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_report.c - see engine_report.h. */
#include "engine_report.h"

#include "rng.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- parsing --- */

enum argument { NOTHING, SHARE, MAYBE_SHARE, TOKENS };
static const struct {
	const char *word;
	enum argument argument;
} words[ENGINE_FAULT_KINDS] = {
	[ENGINE_FAULT_LOW] = { "low", SHARE },
	[ENGINE_FAULT_NOISY] = { "noisy", SHARE },
	[ENGINE_FAULT_ZEROS] = { "zeros", SHARE },
	[ENGINE_FAULT_NULL] = { "null", NOTHING },
	[ENGINE_FAULT_ABSENT] = { "absent", SHARE },
	[ENGINE_FAULT_REPORTED] = { "reported", SHARE },
	[ENGINE_FAULT_ROUNDED] = { "rounded", TOKENS },
	[ENGINE_FAULT_LYING] = { "lying", MAYBE_SHARE }
};

/* A number from 0 to 1. */
static bool
read_share(const char *text, double *out)
{
	char *end;

	if (text == NULL || strspn(text, "0123456789.") != strlen(text))
		return false;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out <= 1;
}

static bool
read_tokens(const char *text, uint64_t *out)
{
	size_t digits = text == NULL ? 0 : strspn(text, "0123456789");

	if (digits == 0 || digits > 18 || text[digits] != '\0')
		return false;
	*out = strtoull(text, NULL, 10);
	return *out > 0;
}

/* `value` follows "="; NULL: none. */
static const char *
report_read_fault(const char *word, const char *value, struct engine_fault *out)
{
	size_t i = 0;

	while (i < ENGINE_FAULT_KINDS && strcmp(word, words[i].word) != 0)
		i++;
	if (i == ENGINE_FAULT_KINDS)
		return "unknown name";
	out->kind = (enum engine_fault_kind)i;
	out->share = 1;
	out->tokens = 1;
	if (words[i].argument == NOTHING && value != NULL)
		return "null takes no value";
	if (words[i].argument == TOKENS && !read_tokens(value, &out->tokens))
		return "not a positive number of tokens";
	if ((words[i].argument == SHARE || (value != NULL &&
	    words[i].argument == MAYBE_SHARE)) &&
	    !read_share(value, &out->share))
		return "not a share from 0 to 1";
	return NULL;
}

const char *
engine_report_parse(const char *text, struct engine_report_idea *out)
{
	struct engine_report_idea idea = { 0 };
	char word[40], *value;
	const char *wrong = NULL;
	size_t length;

	for (;; text += length + 1) {
		length = strcspn(text, "+");
		if (length >= sizeof(word))
			return "name too long";
		memcpy(word, text, length);
		word[length] = '\0';
		value = strchr(word, '=');
		if (value != NULL)
			*value++ = '\0';
		if (strcmp(word, "exact") != 0 || value != NULL) {
			if (idea.n == ENGINE_FAULTS_MAX)
				return "too many names";
			wrong = report_read_fault(word, value,
			    &idea.faults[idea.n++]);
		}
		if (wrong != NULL)
			return wrong;
		if (text[length] == '\0')
			break;
	}
	*out = idea;
	return NULL;
}

/* -------------------------------------------------------------- faults --- */

/* In [0, 1), with 53 bits. */
static double
draw_fraction(struct rng *rng)
{
	return (double)(rng_next(rng) >> 11) / 9007199254740992.0;
}

static bool
draw_chance(struct rng *rng, double share)
{
	return draw_fraction(rng) < share;
}

static uint64_t
with_noise(uint64_t value, uint64_t most, double share, struct rng *rng)
{
	double error = share * (2 * draw_fraction(rng) - 1);
	double noisy = (double)value * (1 + error) + 0.5;

	return noisy < (double)most ? (uint64_t)noisy : most;
}

/* A number in place of n: plausible or not. */
static uint64_t
draw_lie(uint64_t n, struct rng *rng)
{
	uint64_t shift;

	switch (rng_between(rng, 0, 5)) {
	case 0:
		return 0;
	case 1:
		return n;
	case 2:
		return rng_between(rng, 0, n);
	case 3:
		return n + 1 + rng_between(rng, 0, n);
	case 4: /* negative */
		return 0 - rng_between(rng, 1, n + 1);
	default: /* of any length */
		shift = rng_between(rng, 0, 63);
		return rng_next(rng) >> shift;
	}
}

static void
say_nothing(struct kvr_report *r)
{
	r->kind = KVR_REPORT_NONE;
	r->prompt_tokens = r->cached_tokens = r->completion_tokens = 0;
}

static void
tell_lies(const struct engine_answer *truth, struct rng *rng,
    struct kvr_report *r)
{
	r->cached_tokens = draw_lie(truth->prompt_tokens, rng);
	if (draw_chance(rng, 0.5))
		r->prompt_tokens = draw_lie(truth->prompt_tokens, rng);
	if (draw_chance(rng, 0.5))
		r->completion_tokens = draw_lie(truth->completion_tokens, rng);
}

/* Applies a fault to a report with a value. */
static void
apply_idea(const struct engine_fault *f, const struct engine_answer *truth,
    struct rng *rng, struct kvr_report *r)
{
	uint64_t block = truth->block_tokens;

	switch (f->kind) {
	case ENGINE_FAULT_LOW:
		if (draw_chance(rng, f->share))
			r->cached_tokens -= r->cached_tokens < block ?
			    r->cached_tokens : block;
		break;
	case ENGINE_FAULT_NOISY:
		r->cached_tokens = with_noise(r->cached_tokens,
		    r->prompt_tokens, f->share, rng);
		break;
	case ENGINE_FAULT_ZEROS:
		if (draw_chance(rng, f->share))
			r->cached_tokens = 0;
		break;
	case ENGINE_FAULT_NULL:
		if (r->cached_tokens == 0)
			r->kind = KVR_REPORT_ABSENT;
		break;
	case ENGINE_FAULT_ABSENT:
		if (draw_chance(rng, f->share))
			r->kind = KVR_REPORT_ABSENT;
		break;
	case ENGINE_FAULT_REPORTED:
		if (!draw_chance(rng, f->share))
			say_nothing(r);
		break;
	case ENGINE_FAULT_ROUNDED:
		r->cached_tokens -= r->cached_tokens % f->tokens;
		break;
	case ENGINE_FAULT_LYING:
	default:
		if (draw_chance(rng, f->share))
			tell_lies(truth, rng, r);
	}
}

void
engine_report(const struct engine_report_idea *idea,
    const struct engine_answer *truth, struct rng *rng,
    struct kvr_report *out)
{
	struct kvr_report r = { .size = sizeof(r) };
	size_t i;

	r.kind = KVR_REPORT_VALUE;
	r.flags = KVR_REPORT_STREAM;
	r.prompt_tokens = truth->prompt_tokens;
	r.cached_tokens = truth->cached_tokens;
	r.completion_tokens = truth->completion_tokens;
	for (i = 0; i < idea->n && r.kind == KVR_REPORT_VALUE; i++)
		apply_idea(&idea->faults[i], truth, rng, &r);
	*out = r;
}
