/* SPDX-License-Identifier: BSD-2-Clause */
/* capacity.c - see capacity.h. */
#include "capacity_in.h"

#include <stdlib.h>
#include <string.h>

struct capacity_reader {
	enum capacity_form form;
	struct metrics metrics;
	struct info info;
};

const char *
capacity_kind_name(enum capacity_kind kind)
{
	switch (kind) {
	case CAPACITY_VLLM:
		return "vLLM";
	case CAPACITY_SGLANG:
		return "SGLang";
	case CAPACITY_LLAMA:
		return "llama.cpp";
	case CAPACITY_OTHER:
		break;
	}
	return "?";
}

uint64_t
capacity_whole(const struct capacity *c)
{
	return c->tokens == 0 ? 0 : c->tokens + c->offload_tokens;
}

void
capacity_add(struct capacity *sum, const struct capacity *later)
{
	if (sum->kind == CAPACITY_OTHER)
		sum->kind = later->kind;
	if (sum->tokens == 0) {
		sum->tokens = later->tokens;
		sum->offload_tokens = later->offload_tokens;
		sum->offload_bytes = later->offload_bytes;
	}
	if (sum->ranks == 0)
		sum->ranks = later->ranks;
	if (sum->block_tokens == 0)
		sum->block_tokens = later->block_tokens;
	if (sum->sequences == 0)
		sum->sequences = later->sequences;
	if (sum->window == 0)
		sum->window = later->window;
	if (sum->window_tokens == 0)
		sum->window_tokens = later->window_tokens;
	if (sum->model[0] == '\0')
		memcpy(sum->model, later->model, sizeof(sum->model));
}

struct capacity_reader *
capacity_new(void)
{
	struct capacity_reader *r = malloc(sizeof(*r));

	if (r != NULL)
		capacity_begin(r, CAPACITY_METRICS, 0);
	return r;
}

void
capacity_free(struct capacity_reader *r)
{
	free(r);
}

void
capacity_begin(struct capacity_reader *r, enum capacity_form form,
    uint32_t rank)
{
	r->form = form;
	metrics_begin(&r->metrics, rank);
	info_begin(&r->info, rank);
}

void
capacity_data(struct capacity_reader *r, const void *bytes, size_t n)
{
	if (r->form == CAPACITY_METRICS)
		metrics_data(&r->metrics, bytes, n);
	else
		info_data(&r->info, bytes, n);
}

bool
capacity_so_far(const struct capacity_reader *r, struct capacity *out)
{
	memset(out, 0, sizeof(*out));
	if (r->form == CAPACITY_METRICS)
		metrics_conclude(&r->metrics, out);
	return out->tokens > 0 && r->metrics.over;
}

void
capacity_end(struct capacity_reader *r, struct capacity *out)
{
	memset(out, 0, sizeof(*out));
	if (r->form == CAPACITY_METRICS)
		metrics_conclude(&r->metrics, out);
	else
		info_end(&r->info, out);
}
