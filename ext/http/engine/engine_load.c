/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_load.c - see engine_load.h. */
#include "engine_load_in.h"

#include <stdlib.h>
#include <string.h>

enum figure { RUNNING, WAITING, USAGE, FIGURES };

static const struct {
	const char *name; /* ':' is written '_' */
	enum figure is;
} names[] = {
	{ "vllm_num_requests_running", RUNNING },
	{ "vllm_num_requests_waiting", WAITING },
	{ "vllm_kv_cache_usage_perc", USAGE },
	{ "vllm_gpu_cache_usage_perc", USAGE },
	{ "sglang_num_running_reqs", RUNNING },
	{ "sglang_num_queue_reqs", WAITING },
	{ "sglang_token_usage", USAGE },
	{ "trtllm_num_requests_running", RUNNING },
	{ "trtllm_num_requests_waiting", WAITING },
	{ "trtllm_kv_cache_utilization", USAGE },
	{ "llamacpp_requests_processing", RUNNING },
	{ "llamacpp_requests_deferred", WAITING },
	{ "llamacpp_kv_cache_usage_ratio", USAGE }
};

struct sum {
	double apart;           /* the sum of the samples that add up */
	uint32_t samples;       /* their number */
	double together;        /* the largest of the samples that do not */
	bool has_together;
};

struct sample {
	enum figure figure;
	uint32_t rank;
	bool named, together;
	double value;
};

/* The columns of an engine that is one worker; ranks above share them. */
enum { RANKS_ADDED = 64 };

/* The first byte of a list of iterations. */
enum { LIST_BEGINS = '[' };

struct load_reader {
	bool begun, is_list;
	struct iterations list;
	struct samples samples;
	struct sample sample;   /* the current line */
	uint32_t ranks, columns;
	bool named;             /* a label names a rank */
	struct sum sums[];      /* [FIGURES][columns] */
};

static struct sum *
sum_at(struct load_reader *r, enum figure f, uint32_t column)
{
	return &r->sums[f * r->columns + column];
}

/* -------------------------------------------------------------- a line --- */

static enum figure
figure_of(const char *name, size_t n)
{
	size_t i, j;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (j = 0; j < n && names[i].name[j] != '\0'; j++)
			if (names[i].name[j] != (name[j] == ':' ? '_' :
			    name[j]))
				break;
		if (j == n && names[i].name[j] == '\0')
			return names[i].is;
	}
	return FIGURES;
}

/* Reads a rank; UINT32_MAX: it is not a number. */
static uint32_t
rank_of(const char *digits, size_t n)
{
	uint32_t value = 0;
	size_t i;

	if (n == 0 || n > 6)
		return UINT32_MAX;
	for (i = 0; i < n; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return UINT32_MAX;
		value = value * 10 + (uint32_t)(digits[i] - '0');
	}
	return value;
}

static void
sample_add(struct load_reader *r, const struct sample *s)
{
	struct sum *sum;

	r->named |= s->named;
	if (r->ranks > 1 && s->rank >= r->ranks)
		return;
	sum = sum_at(r, s->figure, s->rank % r->columns);
	if (s->together) {
		sum->has_together = true;
		if (s->value > sum->together)
			sum->together = s->value;
	} else {
		sum->apart += s->value;
		sum->samples++;
	}
}

static bool
on_name(void *context, const char *name, size_t n, bool labels)
{
	struct load_reader *r = context;

	(void)labels;
	r->sample = (struct sample){ .figure = figure_of(name, n) };
	return r->sample.figure != FIGURES;
}

static void
on_label(void *context, const char *name, size_t n_name, const char *value,
    size_t n_value)
{
	struct load_reader *r = context;
	struct sample *s = &r->sample;
	uint32_t rank;

	if (samples_is(name, n_name, "tp_rank") ||
	    samples_is(name, n_name, "pp_rank")) {
		s->together = true;
	} else if (samples_is(name, n_name, "engine") ||
	    samples_is(name, n_name, "dp_rank")) {
		rank = rank_of(value, n_value);
		s->named |= rank != UINT32_MAX;
		s->rank = rank != UINT32_MAX ? rank : s->rank;
	}
}

static void
on_number(void *context, const char *text, size_t n)
{
	struct load_reader *r = context;

	r->sample.value = load_number(text, text + n);
	sample_add(r, &r->sample);
}

/* ---------------------------------------------------------------- text --- */

struct load_reader *
load_reader_new(uint32_t ranks)
{
	static const struct samples_calls calls = { on_name, on_label,
	    on_number };
	uint32_t columns = ranks == 1 ? RANKS_ADDED : ranks;
	struct load_reader *r = ranks == 0 || ranks > LOAD_RANKS_MOST ? NULL :
	    calloc(1, sizeof(*r) + columns * FIGURES * sizeof(struct sum));

	if (r == NULL)
		return NULL;
	r->ranks = ranks;
	r->columns = columns;
	iterations_begin(&r->list);
	samples_begin(&r->samples, &calls, r, LOAD_LINE_MAX);
	return r;
}

void
load_reader_free(struct load_reader *r)
{
	free(r);
}

/* The first byte behind blanks decides between the two forms. */
void
load_reader_data(struct load_reader *r, const void *bytes, size_t n)
{
	const char *at = bytes, *const end = at + n;

	while (!r->begun && at < end && (samples_is_blank(*at) || *at == '\n'))
		at++;
	if (at == end)
		return;
	if (!r->begun)
		r->is_list = *at == LIST_BEGINS;
	r->begun = true;
	if (r->is_list)
		iterations_data(&r->list, at, (size_t)(end - at));
	else
		samples_data(&r->samples, at, (size_t)(end - at));
}

static void
last_take(struct load_reader *r)
{
	const double *last = r->list.last;
	struct sample s = { .figure = RUNNING };

	s.value = last[ITERATION_ACTIVE];
	if (s.value < 0)
		return;
	sample_add(r, &s);
	s.figure = WAITING;
	s.value = last[ITERATION_QUEUED] < 0 ? 0 : last[ITERATION_QUEUED];
	sample_add(r, &s);
	if (last[ITERATION_USED] < 0 || !(last[ITERATION_BLOCKS] > 0))
		return;
	s.figure = USAGE;
	s.value = last[ITERATION_USED] / last[ITERATION_BLOCKS];
	sample_add(r, &s);
}

/* -------------------------------------------------------------- result --- */

static uint32_t
samples_of(const struct sum *s)
{
	return s->samples + s->has_together;
}

/* Returns the sum of a worker's rank, or of all ranks of one worker. */
static struct sum
sum_of(const struct load_reader *r, enum figure f, uint32_t rank)
{
	const struct sum *of = &r->sums[f * r->columns];
	struct sum all = { 0 };
	uint32_t i, from = r->named ? rank : 0;

	for (i = 0; i < r->columns; i++) {
		if (r->ranks > 1 && i != from)
			continue;
		all.apart += of[i].apart + of[i].together;
		all.samples += samples_of(&of[i]);
	}
	return all;
}

static uint32_t
requests_of(const struct sum *s, uint32_t share)
{
	double n = s->apart / share;

	return n < LOAD_REQUESTS_MOST ? (uint32_t)n : LOAD_REQUESTS_MOST;
}

/* Requests add up; the usage is the mean of its samples. */
static double
usage_of(const struct sum *s)
{
	double usage = s->samples > 0 ? s->apart / s->samples : -1;

	return usage < 1 ? usage : 1;
}

bool
load_reader_end(struct load_reader *r, struct engine_load *out)
{
	uint32_t share = r->named ? 1 : r->ranks, i;
	struct sum running, waiting, usage;
	bool found = false;

	if (r->is_list && iterations_end(&r->list))
		last_take(r);
	for (i = 0; i < r->ranks; i++) {
		running = sum_of(r, RUNNING, i);
		waiting = sum_of(r, WAITING, i);
		usage = sum_of(r, USAGE, i);
		found |= running.samples > 0;
		out[i].running = requests_of(&running, share);
		out[i].waiting = requests_of(&waiting, share);
		out[i].usage = usage_of(&usage);
	}
	return found;
}

bool
load_reader_same(const struct load_reader *r)
{
	return r->is_list && iterations_end(&r->list) && r->list.elements == 0;
}
