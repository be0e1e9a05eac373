/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity.h - what an engine publishes about its KV cache.
 *
 *   vLLM       GET /metrics         vllm:cache_config_info{block_size="16",
 *                                   num_gpu_blocks="27000",...} 1.0
 *   SGLang     GET /server_info     {"max_total_num_tokens":432000,
 *                  /get_server_info  "page_size":1,"internal_states":[...]}
 *   llama.cpp  GET /props           {"total_slots":4,...}
 *
 * A reader gets the text in pieces of any size. Its memory is bounded whatever
 * the text: of metrics, one label at a time is kept; of JSON, the beginning of
 * one string.
 *
 * Of sliding windows the two say little. vLLM's sliding_window is "None" unless
 * all layers slide, so it says nothing of models in which some do: their events
 * do. SGLang (since August 2026) has the size of the memory for windows beside
 * that of the other, as memory_usage.token_capacity_swa, but not the window.
 * Its swa_full_tokens_ratio is there for models without windows too.
 *
 * A number that is missing, no decimal integer ("None", null, -1, 1e9), 0 or
 * absurd is unknown.
 *
 * The product of vLLM's blocks and their size is the capacity only if all
 * layers share one kind of block. Newer versions publish
 * kv_cache_size_tokens, which is right for all, and is preferred. If the two
 * differ, or layers keep a state (mamba_block_size), block_size is not what a
 * hit is rounded to, and remains unknown; without kv_cache_size_tokens so does
 * the capacity of the latter, because the product may be a fraction of it.
 */
#ifndef KVROUTE_CAPACITY_H
#define KVROUTE_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CAPACITY_MODEL_MAX = 128,       /* with the NUL; longer names are cut */
	CAPACITY_BLOCK_MAX = 1 << 20,   /* tokens */
	CAPACITY_SEQUENCES_MAX = 1 << 20
};
#define CAPACITY_TOKENS_MAX (UINT64_C(1) << 40)
#define CAPACITY_WINDOW_MAX (UINT64_C(1) << 30)

enum capacity_kind {
	CAPACITY_OTHER = 0, CAPACITY_VLLM, CAPACITY_SGLANG, CAPACITY_LLAMA
};

struct capacity {
	enum capacity_kind kind;
	uint64_t tokens;        /* of KV cache, of one rank; 0: not known */
	uint32_t block_tokens;  /* of the engine; 0: not known */
	uint32_t sequences;     /* running at a time; 0: not known */
	uint32_t window;        /* of all layers; 0: not known, or none */
	uint64_t window_tokens; /* of the memory for windows; 0: not known */
	char model[CAPACITY_MODEL_MAX]; /* empty: not known */
};

/* "vLLM", "SGLang", "llama.cpp"; "?" for others. */
const char *capacity_kind_name(enum capacity_kind kind);
/* Adds what `later` knows and `sum` does not. */
void capacity_add(struct capacity *sum, const struct capacity *later);

enum capacity_form { CAPACITY_METRICS, CAPACITY_JSON };

struct capacity_reader; /* about 3 kB */

struct capacity_reader *capacity_new(void); /* NULL: no memory */
void capacity_free(struct capacity_reader *r);
/* Begins another text. The rank is that of a data-parallel engine; 0. */
void capacity_begin(struct capacity_reader *r, enum capacity_form form,
    uint32_t rank);
void capacity_data(struct capacity_reader *r, const void *bytes, size_t n);
/* What is known so far; JSON is known only by capacity_end. */
void capacity_so_far(const struct capacity_reader *r, struct capacity *out);
/* The text has ended: of JSON that is cut or broken nothing is known. */
void capacity_end(struct capacity_reader *r, struct capacity *out);

#endif
