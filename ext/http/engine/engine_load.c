/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_load.c - see engine_load.h. */
#include "engine_load_in.h"

#include <stdlib.h>
#include <string.h>

enum figure { RUNNING, WAITING, USAGE, FIGURES };

static const struct {
	const char *name; /* with '_' for ':' */
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
	double apart, together; /* sum; largest of those that are the same */
	uint32_t samples;       /* in `apart` */
	bool has_together;
};

/* Of the ranks of an engine that is one worker; those above share sums. */
enum { RANKS_ADDED = 64 };

/* Only lists of iterations begin with this. */
enum { LIST_BEGINS = '[' };

struct load_reader {
	bool begun, is_list;
	struct iterations list;
	char line[LOAD_LINE_MAX];
	size_t n_line;          /* with what had no room */
	uint32_t ranks, columns;
	bool named;             /* a label names a rank */
	struct sum sums[];      /* [FIGURES][columns] */
};

struct load_reader *
load_reader_new(uint32_t ranks)
{
	uint32_t columns = ranks == 1 ? RANKS_ADDED : ranks;
	struct load_reader *r = ranks == 0 || ranks > LOAD_RANKS_MOST ? NULL :
	    calloc(1, sizeof(*r) + columns * FIGURES * sizeof(struct sum));

	if (r == NULL)
		return NULL;
	r->ranks = ranks;
	r->columns = columns;
	iterations_begin(&r->list);
	return r;
}

void
load_reader_free(struct load_reader *r)
{
	free(r);
}

static struct sum *
sum_at(struct load_reader *r, enum figure f, uint32_t column)
{
	return &r->sums[f * r->columns + column];
}

/* -------------------------------------------------------------- a line --- */

struct sample {
	enum figure figure;
	uint32_t rank;
	bool named, together;
	double value;
};

static const char *
pass_blanks(const char *at, const char *end)
{
	while (at < end && load_is_blank(*at))
		at++;
	return at;
}

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

/* A rank; UINT32_MAX: it is none. */
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

static bool
name_is(const char *text, const char *name, size_t n)
{
	return strlen(text) == n && memcmp(text, name, n) == 0;
}

static void
label_take(struct sample *s, const char *name, size_t n_name,
    const char *value, size_t n_value)
{
	uint32_t rank;

	if (name_is("tp_rank", name, n_name) ||
	    name_is("pp_rank", name, n_name)) {
		s->together = true;
	} else if (name_is("engine", name, n_name) ||
	    name_is("dp_rank", name, n_name)) {
		rank = rank_of(value, n_value);
		s->named |= rank != UINT32_MAX;
		s->rank = rank != UINT32_MAX ? rank : s->rank;
	}
}

/* From behind '{' to behind '}'; NULL: they are broken. */
static const char *
labels_take(struct sample *s, const char *at, const char *end)
{
	const char *name, *value;
	size_t n;

	for (;;) {
		while (at < end && (load_is_blank(*at) || *at == ','))
			at++;
		if (at < end && *at == '}')
			return at + 1;
		for (name = at; at < end && *at != '=' && !load_is_blank(*at);)
			at++;
		n = (size_t)(at - name);
		at = pass_blanks(at, end);
		if (at == end || *at++ != '=')
			return NULL;
		at = pass_blanks(at, end);
		if (at == end || *at++ != '"')
			return NULL;
		for (value = at; at < end && *at != '"'; at++)
			if (*at == '\\' && ++at == end)
				return NULL;
		if (at == end)
			return NULL;
		label_take(s, name, n, value, (size_t)(at - value));
		at++;
	}
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

static void
line_take(struct load_reader *r)
{
	const char *at = r->line, *end = at + r->n_line;
	struct sample s = { .rank = 0 };

	while (at < end && *at != '{' && !load_is_blank(*at))
		at++;
	s.figure = figure_of(r->line, (size_t)(at - r->line));
	if (s.figure == FIGURES)
		return;
	at = pass_blanks(at, end);
	if (at < end && *at == '{')
		at = labels_take(&s, at + 1, end);
	if (at == NULL)
		return;
	at = pass_blanks(at, end);
	if (at == end)
		return;
	s.value = load_number(at, end);
	sample_add(r, &s);
}

static void
lines_take(struct load_reader *r, const char *at, const char *end)
{
	const char *lf;
	size_t piece, room;

	while (at < end) {
		lf = memchr(at, '\n', (size_t)(end - at));
		piece = (size_t)((lf == NULL ? end : lf) - at);
		room = r->n_line < LOAD_LINE_MAX ?
		    LOAD_LINE_MAX - r->n_line : 0;
		memcpy(r->line + r->n_line % LOAD_LINE_MAX, at,
		    piece < room ? piece : room);
		r->n_line = piece < room ? r->n_line + piece : LOAD_LINE_MAX;
		if (lf == NULL)
			return;
		if (r->n_line < LOAD_LINE_MAX)
			line_take(r);
		r->n_line = 0;
		at = lf + 1;
	}
}

/* Its first byte, behind blanks, says which form it is. */
void
load_reader_data(struct load_reader *r, const void *bytes, size_t n)
{
	const char *at = bytes, *const end = at + n;

	while (!r->begun && at < end && (load_is_blank(*at) || *at == '\n'))
		at++;
	if (at == end)
		return;
	if (!r->begun)
		r->is_list = *at == LIST_BEGINS;
	r->begun = true;
	if (r->is_list)
		iterations_data(&r->list, at, (size_t)(end - at));
	else
		lines_take(r, at, end);
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

/* Of a worker: of its own rank, or of all if it is the whole engine. */
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

/* The mean of what adds up for requests. */
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
