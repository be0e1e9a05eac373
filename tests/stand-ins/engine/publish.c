/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * publish.c - an engine's published facts about its KV cache.
 *
 *   vllm         GET /metrics           vllm:cache_config_info{...} 1.0
 *   sglang       GET /server_info,      {"max_total_num_tokens":...}
 *                    /get_server_info
 *   sglang-old   GET /get_server_info
 *   trtllm       GET /metrics           [{"numActiveRequests":...},...]
 *   none                                metrics without that line
 *
 * SGLang without its switch and TensorRT-LLM have no /metrics. TensorRT-LLM's
 * is a list of the events since it was last read; this one has the beginning
 * and the end of it, or nothing.
 */
#include "server.h"

#include <inttypes.h>

#include <event2/buffer.h>

static bool
is_sglang(const struct server *s)
{
	return s->facts->publish == PUBLISH_SGLANG ||
	    s->facts->publish == PUBLISH_SGLANG_OLD;
}

/* Writes the window; `none`: the engine's word for no window. */
static void
put_window(const struct server *s, struct evbuffer *body, const char *none)
{
	if (s->facts->window > 0)
		evbuffer_add_printf(body, "%" PRIu64, s->facts->window);
	else
		evbuffer_add_printf(body, "%s", none);
}

bool
publish_has_metrics(const struct server *s)
{
	return !is_sglang(s);
}

void
publish_config(const struct server *s, struct evbuffer *body)
{
	const struct serving_facts *f = &s->facts->serving;
	uint32_t i;

	if (s->facts->publish != PUBLISH_VLLM)
		return;
	evbuffer_add_printf(body, "# HELP vllm:cache_config_info Information "
	    "of the LLMEngine CacheConfig\n"
	    "# TYPE vllm:cache_config_info gauge\n");
	for (i = 0; i < s->facts->ranks; i++) {
		evbuffer_add_printf(body,
		    "vllm:cache_config_info{block_size=\"%" PRIu32 "\","
		    "cache_dtype=\"auto\",enable_prefix_caching=\"True\","
		    "engine=\"%" PRIu32 "\",gpu_memory_utilization=\"0.9\","
		    "mamba_block_size=\"None\",num_cpu_blocks=\"None\","
		    "num_gpu_blocks=\"%" PRIu64 "\",sliding_window=\"",
		    f->block_tokens, i, (f->blocks + 1) * s->facts->ranks);
		put_window(s, body, "None");
		evbuffer_add_printf(body, "\"} 1.0\n");
	}
}

/* Gateways recognise an engine by these two. */
const char *
publish_owner(const struct server *s)
{
	return s->facts->publish == PUBLISH_VLLM ? "vllm" :
	    is_sglang(s) ? "sglang" : "kvroute-engine";
}

void
publish_version(struct link *l, struct evbuffer *body)
{
	if (l->server->facts->publish != PUBLISH_VLLM) {
		server_error(l, ASK_CHAT, 404, "Not Found");
		return;
	}
	evbuffer_add_printf(body, "{\"version\":\"0.20.0\"}");
	evhttp_add_header(evhttp_request_get_output_headers(l->request),
	    "Content-Type", "application/json");
	server_answer(l, 200, body);
}

bool
publish_has_iterations(const struct server *s)
{
	return s->facts->publish == PUBLISH_TRTLLM;
}

static struct iteration
iteration_now(const struct server *s)
{
	struct iteration it = { .number = s->told.number };
	struct serving_counts n;
	uint32_t i;

	for (i = 0; i < s->facts->ranks; i++) {
		serving_counts(s->ranks[i], &n);
		it.running += n.running;
		it.waiting += n.waiting;
		it.held += n.held;
		it.blocks += n.blocks;
		it.work += n.prompt_tokens + n.generated + n.finished;
	}
	return it;
}

static void
put_iteration(struct evbuffer *body, const struct iteration *it)
{
	evbuffer_add_printf(body, "{\"iter\":%" PRIu64 ","
	    "\"iterLatencyMS\":15.5,\"numActiveRequests\":%" PRIu64 ","
	    "\"numQueuedRequests\":%" PRIu64 ",\"kvCacheStats\":{"
	    "\"maxNumBlocks\":%" PRIu64 ",\"freeNumBlocks\":%" PRIu64 ","
	    "\"usedNumBlocks\":%" PRIu64 "},\"inflightBatchingStats\":{"
	    "\"numPausedRequests\":0}}", it->number, it->running,
	    it->waiting, it->blocks, it->blocks - it->held, it->held);
}

void
publish_iterations(struct link *l, struct evbuffer *body)
{
	struct server *s = l->server;
	struct iteration now = iteration_now(s);

	evbuffer_add_printf(body, "[");
	if (now.work != s->told.work || now.running != s->told.running ||
	    now.waiting != s->told.waiting) {
		put_iteration(body, &s->told);
		evbuffer_add_printf(body, ",");
		now.number++;
		put_iteration(body, &now);
		s->told = now;
	}
	evbuffer_add_printf(body, "]");
	server_answer(l, 200, body);
}

/* Writes the events' address as SGLang does; null: no events, or no port. */
static void
put_events(const struct server *s, struct evbuffer *body)
{
	char host[256];
	uint32_t port, replay;

	evbuffer_add_printf(body, ",\"kv_events\":");
	if (s->events == NULL || !events_port(s->events, false, host,
	    sizeof(host), &port)) {
		evbuffer_add_printf(body, "null");
		return;
	}
	evbuffer_add_printf(body, "{\"publisher\":\"zmq\","
	    "\"endpoint_host\":");
	(void)reply_quote_to(body, host);
	evbuffer_add_printf(body, ",\"endpoint_port_base\":%" PRIu32 ","
	    "\"topic\":", port);
	(void)reply_quote_to(body, s->facts->events.topic);
	evbuffer_add_printf(body, ",\"block_size\":%" PRIu32
	    ",\"dp_size\":%" PRIu32, s->facts->serving.block_tokens,
	    s->facts->ranks);
	if (events_port(s->events, true, host, sizeof(host), &replay))
		evbuffer_add_printf(body, ",\"replay_endpoint_port_base\":%"
		    PRIu32, replay);
	evbuffer_add_printf(body, "}");
}

static void
info_put(struct link *l, struct evbuffer *body)
{
	const struct server_facts *f = l->server->facts;
	const uint64_t tokens = f->serving.blocks * f->serving.block_tokens;
	uint32_t i;

	evbuffer_add_printf(body, "{\"served_model_name\":");
	(void)reply_quote_to(body, f->rules.models[0]);
	evbuffer_add_printf(body, ",\"page_size\":%" PRIu32 ","
	    "\"max_running_requests\":null,\"max_total_num_tokens\":%" PRIu64
	    ",\"internal_states\":[", f->serving.block_tokens, tokens);
	for (i = 0; i < f->ranks; i++) {
		evbuffer_add_printf(body, "%s{\"page_size\":%" PRIu32 ","
		    "\"memory_usage\":{\"weight\":0.98,\"token_capacity\":%"
		    PRIu64 ",\"token_capacity_swa\":", i > 0 ? "," : "",
		    f->serving.block_tokens, tokens);
		put_window(l->server, body, "null");
		evbuffer_add_printf(body, "},"
		    "\"effective_max_running_requests_per_dp\":%" PRIu32 "}",
		    f->serving.sequences);
	}
	evbuffer_add_printf(body, "]");
	put_events(l->server, body);
	evbuffer_add_printf(body, ",\"version\":\"0.0.0\"}");
	server_answer(l, 200, body);
}

void
publish_info(struct link *l, struct evbuffer *body)
{
	if (l->server->facts->publish == PUBLISH_SGLANG)
		info_put(l, body);
	else
		server_error(l, ASK_CHAT, 404, "Not Found");
}

void
publish_old_info(struct link *l, struct evbuffer *body)
{
	if (is_sglang(l->server))
		info_put(l, body);
	else
		server_error(l, ASK_CHAT, 404, "Not Found");
}
