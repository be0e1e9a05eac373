/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_load.h - reads the load that an engine publishes.
 *
 *   vLLM          vllm:num_requests_running{engine="0",model_name="m"} 3.0
 *                 vllm:num_requests_waiting, vllm:kv_cache_usage_perc,
 *                 before that vllm:gpu_cache_usage_perc
 *   SGLang        sglang:num_running_reqs, sglang:num_queue_reqs,
 *                 sglang:token_usage
 *   TensorRT-LLM  trtllm_num_requests_running, trtllm_num_requests_waiting,
 *                 trtllm_kv_cache_utilization; or a list, see below
 *   llama.cpp     llamacpp:requests_processing, llamacpp:requests_deferred,
 *                 llamacpp:kv_cache_usage_ratio
 *
 * The text is one for Prometheus, in pieces of any size. ':' and '_' are alike
 * in names. A line counts at its LF, if it is not longer than LOAD_LINE_MAX. A
 * value that is not a number from 0 on counts as 0.
 *
 * Samples of one metric are added up, such as those of several models. Samples
 * with the label tp_rank or pp_rank are not: processes that run the same
 * requests together publish the same number each, so the largest of each
 * data-parallel rank counts.
 *
 * The labels engine (vLLM) and dp_rank (SGLang) name a data-parallel rank. If
 * several ranks are asked for, and no label names one, each has its share of
 * the sum. If one is asked for, it is the sum of all.
 *
 * TensorRT-LLM has another form, too: a list in JSON of the iterations since
 * the list was last read. The last iteration counts.
 *
 *   [{"numActiveRequests":3,"numQueuedRequests":5,
 *     "kvCacheStats":{"usedNumBlocks":600,"maxNumBlocks":1000,...},...}]
 *
 * The list is empty without a new iteration: nothing has changed, or the engine
 * is idle.
 */
#ifndef KVROUTE_ENGINE_LOAD_H
#define KVROUTE_ENGINE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LOAD_LINE_MAX = 2048,
	LOAD_RANKS_MOST = 1024,
	LOAD_REQUESTS_MOST = 1000000 /* at a rank */
};

struct engine_load {
	uint32_t running, waiting;
	double usage;     /* share of the KV cache, 0 to 1; -1: not known */
};

struct load_reader;

/*
 * Makes the reader of one text, for 1 to LOAD_RANKS_MOST ranks. NULL: no
 * memory, or too many ranks.
 */
struct load_reader *load_reader_new(uint32_t ranks);
void load_reader_free(struct load_reader *r);
void load_reader_data(struct load_reader *r, const void *bytes, size_t n);
/* Ends the text and writes out[ranks]; false: it has no running requests. */
bool load_reader_end(struct load_reader *r, struct engine_load *out);
/* Was the text an empty list? The load read before is then still the latest. */
bool load_reader_same(const struct load_reader *r);

#endif
