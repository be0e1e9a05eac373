/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity_metrics.c - vLLM's capacity in a text for Prometheus, see
 * capacity.h.
 *
 *   # HELP vllm:cache_config_info ...
 *   vllm:num_requests_running{engine="0",model_name="m"} 3.0
 *   vllm:cache_config_info{block_size="16",engine="0",...} 1.0
 *   ^NAME                 ^LABELS    ^VALUE              ^NUMBER
 *
 * Lines of other metrics are passed over, except for the name of the model. A
 * line counts at its LF, so one that is cut never does. Of several lines of a
 * rank the first one with a capacity counts.
 */
#include "capacity_in.h"

#include <string.h>

static const char prefix[] = "vllm:", config_name[] = "vllm:cache_config_info";

/* Does the name, as far as it is known, equal this text? */
static bool
name_is(const struct metrics *m, const char *text)
{
	return m->n_name == strlen(text) &&
	    memcmp(m->name, text, m->n_name) == 0;
}

static void
name_add(struct metrics *m, char c)
{
	if (m->n_name < sizeof(m->name))
		m->name[m->n_name] = c;
	m->n_name++;
}

/* -------------------------------------------------------------- a line --- */

static uint64_t
value_number(const struct metrics *m, uint64_t most)
{
	return m->n_value <= sizeof(m->value) ?
	    capacity_number(m->value, m->n_value, most) : 0;
}

static bool
value_is(const struct metrics *m, const char *text)
{
	return m->n_value == strlen(text) &&
	    memcmp(m->value, text, m->n_value) == 0;
}

static void
label_take(struct metrics *m)
{
	struct metrics_line *l = &m->line;

	if (name_is(m, "model_name")) {
		capacity_model_set(m->found.model, m->value,
		    m->n_value < sizeof(m->value) ? m->n_value :
		    sizeof(m->value));
	} else if (!l->config) {
		return;
	} else if (name_is(m, "num_gpu_blocks")) {
		l->blocks = value_number(m, CAPACITY_TOKENS_MAX);
	} else if (name_is(m, "block_size")) {
		l->block = value_number(m, CAPACITY_BLOCK_MAX);
	} else if (name_is(m, "kv_cache_size_tokens")) {
		l->tokens = value_number(m, CAPACITY_TOKENS_MAX);
	} else if (name_is(m, "mamba_block_size")) {
		l->states = !value_is(m, "None");
	} else if (name_is(m, "sliding_window")) {
		l->window = value_number(m, CAPACITY_WINDOW_MAX);
	} else if (name_is(m, "engine")) {
		l->rank = value_number(m, UINT32_MAX);
		l->other_rank = l->rank == 0 && !value_is(m, "0");
	}
}

/* The line is whole. */
static void
line_take(struct metrics *m)
{
	const struct metrics_line *l = &m->line;
	uint64_t product, apart;

	if (!l->config || !l->whole || l->other_rank || l->rank != m->rank ||
	    m->found.tokens != 0)
		return;
	/* Neither factor is above 2^40 and 2^20, so this does not overflow. */
	product = l->blocks * l->block;
	if (product > CAPACITY_TOKENS_MAX)
		product = 0;
	m->found.tokens = l->tokens;
	if (l->tokens == 0 && !l->states)
		m->found.tokens = product;
	m->found.window = m->found.tokens > 0 ? (uint32_t)l->window : 0;
	apart = product > m->found.tokens ? product - m->found.tokens :
	    m->found.tokens - product;
	/* One block of the pool may be reserved. */
	m->found.block_tokens = m->found.tokens > 0 && product > 0 &&
	    !l->states && apart <= l->block ? (uint32_t)l->block : 0;
}

/* --------------------------------------------------------------- bytes --- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Labels follow the name of the metric; those of vLLM have some. */
static void
name_end(struct metrics *m)
{
	const bool vllm = m->n_name > sizeof(prefix) - 1 &&
	    memcmp(m->name, prefix, sizeof(prefix) - 1) == 0;

	if (vllm)
		m->found.kind = CAPACITY_VLLM;
	m->line.config = name_is(m, config_name);
	m->place = m->line.config || (vllm && m->found.model[0] == '\0') ?
	    METRICS_LABELS : METRICS_REST;
}

static void
labels_byte(struct metrics *m, char c)
{
	if (c == '}') {
		m->place = METRICS_NUMBER;
	} else if (!is_blank(c) && c != ',') {
		m->n_name = 0;
		name_add(m, c);
		m->place = METRICS_LABEL;
	}
}

static void
value_byte(struct metrics *m, char c)
{
	if (m->place == METRICS_VALUE && c == '"') {
		label_take(m);
		m->place = METRICS_AFTER;
		return;
	}
	if (m->place == METRICS_VALUE && c == '\\') {
		m->place = METRICS_ESCAPE;
		return;
	}
	if (m->place == METRICS_ESCAPE && c == 'n')
		c = '\n';
	m->place = METRICS_VALUE;
	if (m->n_value < sizeof(m->value))
		m->value[m->n_value] = c;
	m->n_value++;
}

/* Between a label's name and its value, and behind that. */
static void
between_byte(struct metrics *m, char c)
{
	if (is_blank(c))
		return;
	if (m->place == METRICS_AFTER) {
		m->place = c == ',' ? METRICS_LABELS : c == '}' ?
		    METRICS_NUMBER : METRICS_REST;
	} else if (m->place == METRICS_NUMBER) {
		m->line.whole = c == '1';
		m->place = METRICS_REST;
	} else {
		m->n_value = 0;
		m->place = c == '"' ? METRICS_VALUE : METRICS_REST;
	}
}

static void
line_byte(struct metrics *m, char c)
{
	switch (m->place) {
	case METRICS_LINE:
		memset(&m->line, 0, sizeof(m->line));
		m->n_name = 0;
		name_add(m, c);
		m->place = c == prefix[0] ? METRICS_NAME : METRICS_REST;
		break;
	case METRICS_NAME:
		if (c == '{')
			name_end(m);
		else if (!is_blank(c))
			name_add(m, c);
		break;
	case METRICS_LABELS:
		labels_byte(m, c);
		break;
	case METRICS_LABEL:
		if (c == '=')
			m->place = METRICS_QUOTE;
		else if (!is_blank(c))
			name_add(m, c);
		break;
	case METRICS_VALUE:
	case METRICS_ESCAPE:
		value_byte(m, c);
		break;
	default:
		between_byte(m, c);
		break;
	}
}

void
metrics_data(struct metrics *m, const char *bytes, size_t n)
{
	const char *at = bytes, *const end = bytes + n;

	while (at < end) {
		if (m->place == METRICS_REST) {
			at = memchr(at, '\n', (size_t)(end - at));
			if (at == NULL)
				return;
		}
		if (*at == '\n') {
			if (m->place == METRICS_REST)
				line_take(m);
			m->place = METRICS_LINE;
		} else {
			line_byte(m, *at);
		}
		at++;
	}
}
