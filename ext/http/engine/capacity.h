/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacity.h - reads the size of its KV cache from the texts of an engine.
 *
 *   vLLM       GET /metrics         vllm:cache_config_info{block_size="16",
 *                                   num_gpu_blocks="27000",...} 1.0
 *   SGLang     GET /server_info     {"max_total_num_tokens":432000,
 *                  /get_server_info  "page_size":1,"internal_states":[...]}
 *   llama.cpp  GET /props           {"total_slots":4,...}
 *
 * A reader gets the text in pieces of any size, in bounded memory: it keeps one
 * label of metrics at a time, or the beginning of one string of JSON.
 *
 * Engines publish little about sliding windows. vLLM's sliding_window is "None"
 * unless all layers slide, so models in which some do look like models without
 * windows; their events show the windows. SGLang (since August 2026) publishes
 * the size of the memory for windows beside that of the other, as
 * memory_usage.token_capacity_swa, but not the window. Models without windows
 * have a swa_full_tokens_ratio too.
 *
 * A number that is missing, not a decimal integer ("None", null, -1, 1e9), 0 or
 * absurd is unknown.
 *
 * Each data-parallel rank of vLLM has a line. num_gpu_blocks is the sum of all
 * ranks; kv_cache_size_tokens belongs to one rank. The number of ranks is known
 * once another metric follows the last line, and then the blocks of one rank
 * are known too.
 *
 * Where KV is offloaded to the host, an engine finds more than its own memory
 * has room for:
 *
 *   vLLM     kv_offloading_size="8.0" (GiB)
 *   SGLang   "enable_hierarchical_cache":true, "hicache_ratio":2.0,
 *            or "hicache_size":64 (GB of a rank), which memory_usage.kvcache
 *            (GB) and .token_capacity convert to tokens
 *
 * vLLM's num_cpu_blocks is swap space, in which nothing is found.
 *
 * A size in bytes that nothing converts to tokens is of use all the same: the
 * capacity is then unknown, rather than too small.
 *
 * vLLM rounds hits to prefix_match_unit tokens, whatever the size of a block.
 *
 * The product of vLLM's blocks and their size is the capacity only if all
 * layers share one kind of block. Newer versions publish kv_cache_size_tokens,
 * which is right for all models and is preferred. If the two differ, or layers
 * keep a state (mamba_block_size), hits are not rounded to block_size, and the
 * block stays unknown. If layers keep a state and there is no
 * kv_cache_size_tokens, the capacity stays unknown too, because the product may
 * be a fraction of it.
 */
#ifndef KVROUTE_CAPACITY_H
#define KVROUTE_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CAPACITY_MODEL_MAX = 128,       /* with the NUL; longer names are cut */
	CAPACITY_BLOCK_MAX = 1 << 20,   /* tokens */
	CAPACITY_SEQUENCES_MAX = 1 << 20,
	CAPACITY_RANKS_MAX = 65536
};
#define CAPACITY_TOKENS_MAX (UINT64_C(1) << 40)
#define CAPACITY_WINDOW_MAX (UINT64_C(1) << 30)

enum capacity_kind {
	CAPACITY_OTHER = 0, CAPACITY_VLLM, CAPACITY_SGLANG, CAPACITY_LLAMA
};

struct capacity {
	enum capacity_kind kind;
	uint64_t tokens;        /* the KV cache of one rank; 0: not known */
	uint64_t offload_tokens; /* more on the host; 0: not known, or none */
	uint64_t offload_bytes; /* the same in bytes; 0: not known, or none */
	uint32_t ranks;         /* data-parallel ranks; 0: not known */
	uint32_t block_tokens;  /* hits are rounded to it; 0: not known */
	uint32_t sequences;     /* requests that run at a time; 0: not known */
	uint32_t window;        /* tokens, of all layers; 0: unknown, or none */
	uint64_t window_tokens; /* the memory for windows; 0: not known */
	char model[CAPACITY_MODEL_MAX]; /* empty: not known */
};

/* Returns "vLLM", "SGLang" or "llama.cpp"; "?" for others. */
const char *capacity_kind_name(enum capacity_kind kind);
/*
 * Returns the tokens of one rank and its share of the host; 0: not known. If
 * only bytes of the host are known, it has at least this: reports show more.
 */
uint64_t capacity_whole(const struct capacity *c);
/* Takes each fact of `later` that is unknown in `sum`. */
void capacity_add(struct capacity *sum, const struct capacity *later);

enum capacity_form { CAPACITY_METRICS, CAPACITY_JSON };

struct capacity_reader; /* about 1.6 kB */

struct capacity_reader *capacity_new(void); /* NULL: no memory */
void capacity_free(struct capacity_reader *r);
/* Begins another text of a data-parallel engine's rank; others have rank 0. */
void capacity_begin(struct capacity_reader *r, enum capacity_form form,
    uint32_t rank);
void capacity_data(struct capacity_reader *r, const void *bytes, size_t n);
/*
 * Writes the facts known so far; those of JSON are known only at its end. True:
 * the rest of the text adds nothing.
 */
bool capacity_so_far(const struct capacity_reader *r, struct capacity *out);
/* Ends the text and writes its facts; cut or broken JSON has no facts. */
void capacity_end(struct capacity_reader *r, struct capacity *out);

#endif
