/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_metrics.c - vLLM's capacity in a text for Prometheus, see
 * capacity.h.
 *
 *   # HELP vllm:cache_config_info ...
 *   vllm:num_requests_running{engine="0",model_name="m"} 3.0
 *   vllm:cache_config_info{block_size="16",engine="0",...} 1.0
 *
 * Lines of other metrics are passed over, except for the name of the model. A
 * line counts at its LF, so one that is cut never does. Of several lines of a
 * rank the first one with a capacity counts.
 */
#include "capacity_in.h"

#include <string.h>

static const char prefix[] = "vllm:";

/* Metrics of vLLM have labels. */
static bool
on_name(void *context, const char *name, size_t n, bool labels)
{
	const bool vllm = labels && n > sizeof(prefix) - 1 &&
	    memcmp(name, prefix, sizeof(prefix) - 1) == 0;
	struct metrics *m = context;

	memset(&m->line, 0, sizeof(m->line));
	if (vllm)
		m->found.kind = CAPACITY_VLLM;
	m->line.config = vllm && samples_is(name, n, "vllm:cache_config_info");
	return m->line.config || (vllm && m->found.model[0] == '\0');
}

static uint64_t
value_number(const char *value, size_t n, uint64_t most)
{
	return n <= SAMPLES_VALUE_MAX ? capacity_number(value, n, most) : 0;
}

static void
on_label(void *context, const char *name, size_t n_name, const char *value,
    size_t n)
{
	struct metrics *m = context;
	struct metrics_line *l = &m->line;

	if (samples_is(name, n_name, "model_name")) {
		capacity_model_set(m->found.model, value,
		    n < SAMPLES_VALUE_MAX ? n : SAMPLES_VALUE_MAX);
	} else if (!l->config) {
		return;
	} else if (samples_is(name, n_name, "num_gpu_blocks")) {
		l->blocks = value_number(value, n, CAPACITY_TOKENS_MAX);
	} else if (samples_is(name, n_name, "block_size")) {
		l->block = value_number(value, n, CAPACITY_BLOCK_MAX);
	} else if (samples_is(name, n_name, "kv_cache_size_tokens")) {
		l->tokens = value_number(value, n, CAPACITY_TOKENS_MAX);
	} else if (samples_is(name, n_name, "mamba_block_size")) {
		l->states = !samples_is(value, n, "None");
	} else if (samples_is(name, n_name, "sliding_window")) {
		l->window = value_number(value, n, CAPACITY_WINDOW_MAX);
	} else if (samples_is(name, n_name, "engine")) {
		l->rank = value_number(value, n, UINT32_MAX);
		l->other_rank = l->rank == 0 && !samples_is(value, n, "0");
	}
}

/* The line of the wanted rank. */
static void
take_line(struct metrics *m)
{
	const struct metrics_line *l = &m->line;
	/* Neither factor is above 2^40 and 2^20, so this does not overflow. */
	uint64_t product = l->blocks * l->block;

	if (product > CAPACITY_TOKENS_MAX)
		product = 0;
	m->found.tokens = l->tokens;
	if (l->tokens == 0 && !l->states)
		m->found.tokens = product;
	m->found.window = m->found.tokens > 0 ? (uint32_t)l->window : 0;
	m->product = l->states ? 0 : product;
	m->block = l->block;
}

/* One block of the pool may be reserved. */
static bool
is_near(const struct metrics *m, uint64_t product)
{
	const uint64_t tokens = m->found.tokens;

	return (product > tokens ? product - tokens : tokens - product) <=
	    m->block;
}

/* The line is whole. num_gpu_blocks of vLLM 0.32 is the sum over ranks. */
static void
on_number(void *context, const char *text, size_t n)
{
	struct metrics *m = context;
	const struct metrics_line *l = &m->line;

	if (n == 0 || *text != '1' || !l->config || l->other_rank)
		return;
	if (l->rank >= m->ranks)
		m->ranks = l->rank + 1;
	if (l->rank == m->rank && m->found.tokens == 0)
		take_line(m);
	m->found.block_tokens = m->found.tokens > 0 && m->product > 0 &&
	    (is_near(m, m->product) || is_near(m, m->product / m->ranks)) ?
	    (uint32_t)m->block : 0;
}

void
metrics_begin(struct metrics *m, uint32_t rank)
{
	static const struct samples_calls calls = { on_name, on_label,
	    on_number };

	memset(m, 0, sizeof(*m));
	m->rank = rank;
	samples_begin(&m->samples, &calls, m, SIZE_MAX);
}

void
metrics_data(struct metrics *m, const char *bytes, size_t n)
{
	samples_data(&m->samples, bytes, n);
}
