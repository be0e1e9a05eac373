/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_metrics.c - reads vLLM's capacity from a text for Prometheus, see
 * capacity.h.
 *
 *   # HELP vllm:cache_config_info ...
 *   vllm:num_requests_running{engine="0",model_name="m"} 3.0
 *   vllm:cache_config_info{block_size="16",engine="0",...} 1.0
 *
 * Lines of other metrics are passed over, except for the name of the model. A
 * line counts at its LF, so a cut line never counts. If a rank has several
 * lines, the first one with a capacity counts. Each line has the blocks of all
 * ranks.
 */
#include "capacity_in.h"

#include <string.h>

static const char prefix[] = "vllm:";
#define GIB 1073741824.0

/* Is the line wanted? All metrics of vLLM have labels. */
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
	m->over |= m->taken && !m->line.config;
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
	} else if (samples_is(name, n_name, "prefix_match_unit")) {
		l->unit = value_number(value, n, CAPACITY_BLOCK_MAX);
	} else if (samples_is(name, n_name, "kv_offloading_size")) {
		l->host_bytes = n > SAMPLES_VALUE_MAX ? 0 : (uint64_t)
		    (capacity_decimal(value, n) * GIB);
	} else if (samples_is(name, n_name, "mamba_block_size")) {
		l->states = !samples_is(value, n, "None");
	} else if (samples_is(name, n_name, "sliding_window")) {
		l->window = value_number(value, n, CAPACITY_WINDOW_MAX);
	} else if (samples_is(name, n_name, "engine")) {
		l->rank = value_number(value, n, UINT32_MAX);
		l->other_rank = l->rank == 0 && !samples_is(value, n, "0");
	}
}

static void
rank_note(struct metrics *m, const struct metrics_line *l)
{
	uint64_t *word = &m->seen[l->rank / 64 % RANKS_SEEN];

	if (l->rank >= 64 * RANKS_SEEN || (*word >> l->rank % 64 & 1) != 0)
		return;
	*word |= UINT64_C(1) << l->rank % 64;
	if (m->lines == 0)
		m->blocks = l->blocks;
	m->apart |= l->blocks != m->blocks;
	m->lines++;
	m->top = l->rank > m->top ? l->rank : m->top;
}

/* The line is whole: takes it if it is the wanted rank's. */
static void
on_number(void *context, const char *text, size_t n)
{
	struct metrics *m = context;
	const struct metrics_line *l = &m->line;
	const bool first = !m->taken || (m->mine.tokens == 0 &&
	    m->mine.blocks * m->mine.block == 0);

	if (n == 0 || *text != '1' || !l->config || l->other_rank)
		return;
	rank_note(m, l);
	if (l->rank == m->rank && first) {
		m->taken = true;
		m->mine = *l;
	}
}

/* Are the numbers equal but for one block, which may be reserved? */
static bool
is_near(uint64_t a, uint64_t b, uint64_t block)
{
	return (a > b ? a - b : b - a) <= block;
}

/* Returns how many ranks share the blocks of a line. */
static uint64_t
sharers_of(const struct metrics *m)
{
	return m->apart || m->lines == 0 ? 1 : m->lines;
}

/* Returns the blocks of one rank, in tokens; 0: not known. */
static uint64_t
product_of(const struct metrics *m)
{
	/* Neither factor is above 2^40 and 2^20, so this does not overflow. */
	const uint64_t all = m->mine.blocks * m->mine.block;

	if (m->mine.states || all > CAPACITY_TOKENS_MAX)
		return 0;
	return m->mine.blocks / sharers_of(m) * m->mine.block;
}

/* Returns the block that hits are rounded to; 0: the sizes do not agree. */
static uint64_t
block_of(const struct metrics *m, uint64_t product)
{
	const struct metrics_line *l = &m->mine;

	if (l->unit > 0)
		return l->unit;
	return product > 0 && (l->tokens == 0 ||
	    is_near(l->tokens, product, l->block) ||
	    is_near(l->tokens, l->blocks * l->block, l->block)) ? l->block : 0;
}

void
metrics_conclude(const struct metrics *m, struct capacity *out)
{
	const uint64_t product = product_of(m);

	*out = m->found;
	if (!m->taken)
		return;
	out->ranks = m->lines == m->top + 1 ? (uint32_t)m->lines : 0;
	out->tokens = m->mine.tokens > 0 ? m->mine.tokens : product;
	if (out->tokens == 0)
		return;
	out->block_tokens = (uint32_t)block_of(m, product);
	out->window = (uint32_t)m->mine.window;
	out->offload_bytes = m->mine.host_bytes;
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
