/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-engine - simulates inference engines over HTTP, to test routers.
 *
 * It responds as vLLM does and computes nothing. The cache differs on purpose
 * from a router's model: it has tokens instead of bytes, a template that the
 * router does not see, another block size, and its own eviction order
 * (tokenizer.h, ask.h, serving.h).
 */
#include "server.h"

#include "args_table.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	ENGINES_MAX = 256, MODELS_MAX = 8, BLOCK_MAX = 1 << 20,
	RESPONSES_MAX = 1 << 20,
	ENDPOINT_BYTES = 200, TOPIC_BYTES = 200, KEPT_BATCHES_MAX = 1 << 20,
	TICK_NS = 2000000 /* of real time between sends of tokens, at least */
};

static const char usage_text[] =
"usage: kvroute-engine [--port N] [--engines N] [--ranks N]\n"
"           [--address IP] [--model NAME ...] [--block TOKENS]\n"
"           [--capacity TOKENS]\n"
"           [--evict lru|leaf|random] [--sequences N] [--batch TOKENS]\n"
"           [--reads shared|own] [--attention TOKENS] [--preempt]\n"
"           [--prefill-rate N] [--decode-ms MS] [--scale F]\n"
"           [--tools N] [--reasoning]\n"
"           [--usage value|null-for-0|null|none] [--headers early|late]\n"
"           [--publish vllm|sglang|sglang-old|trtllm|none]\n"
"           [--publish-window TOKENS]\n"
"           [--responses N] [--seed N] [--for SECONDS]\n"
"           [--events ENDPOINT] [--events-replay ENDPOINT]\n"
"           [--events-form vllm|vllm-arrays|sglang|sglang-arrays]\n"
"           [--events-topic TEXT] [--events-keep N] [--events-lose N]\n"
"           [--events-window TOKENS] [--events-full] [--events-copies]\n"
"       kvroute-engine --help | --version\n";

struct options {
	struct server_facts facts;
	const char *models[MODELS_MAX];
	uint64_t capacity;
	uint64_t seed;
	uint32_t engines;
	uint16_t port;
	int64_t for_ns; /* 0: unlimited */
};

static void
defaults(struct options *o)
{
	static const struct options none;

	*o = none;
	o->facts.address = "127.0.0.1";
	o->facts.ranks = 1;
	o->facts.scale = 1;
	o->facts.headers_early = true;
	o->facts.keepalive_ns = 5000000000;
	o->facts.responses = 1024;
	if (getentropy(&o->facts.ids, sizeof(o->facts.ids)) != 0)
		err(ARGS_FAILED, "getentropy");
	o->facts.serving.block_tokens = 16;
	o->facts.serving.sequences = 256;
	o->facts.serving.prefill_rate = 9000;
	o->facts.serving.decode_ns = 15000000;
	o->facts.events.topic = "";
	o->facts.events.keep = 10000;
	o->capacity = 400000;
	o->engines = 1;
	o->seed = 1;
}

static void
add_model(struct options *o, const char *name)
{
	struct ask_rules *rules = &o->facts.rules;

	if (rules->n_models == MODELS_MAX)
		errx(ARGS_USAGE, "--model: more than %d", MODELS_MAX);
	o->models[rules->n_models++] = name;
}

static void
take_model(void *options, const struct args_row *row, const char *text)
{
	(void)row;
	add_model(options, text);
}

static void
take_headers(void *options, const struct args_row *row, const char *text)
{
	((struct options *)options)->facts.headers_early =
	    args_word(row->name, text, row->words, 2) == 0;
}

static void
take_decode(void *options, const struct args_row *row, const char *text)
{
	((struct options *)options)->facts.serving.decode_ns =
	    (int64_t)(args_factor(row->name, text) * 1e6);
}

static void
take_seed(void *options, const struct args_row *row, const char *text)
{
	struct options *o = options;

	o->seed = args_number(row->name, text, 0, INT64_MAX);
	o->facts.ids = 0;
}

/* A text of at most `max` bytes. */
static void
take_short(void *options, const struct args_row *row, const char *text)
{
	if (strlen(text) > row->max)
		errx(ARGS_USAGE, "--%s: longer than %zu bytes", row->name,
		    (size_t)row->max);
	*(const char **)(void *)((char *)options + row->at) = text;
}

#define AT(member) offsetof(struct options, member)
#define IN(member) offsetof(struct options, facts.member)

static const char *const evictions[] = { "lru", "leaf", "random" };
static const char *const reads[] = { "shared", "own" };
static const char *const usages[] = { "value", "null-for-0", "null", "none" };
static const char *const when[] = { "early", "late" };
static const char *const published[] = {
	"vllm", "sglang", "sglang-old", "trtllm", "none"
};

static const struct args_row option_rows[] = {
	{ "port", "N", "to listen on; 0: a free one, printed (0)",
	    ARGS_UINT16, .at = AT(port), .max = UINT16_MAX },
	{ "engines", "N",
	    "number of engines, each with its own port and cache (1)",
	    ARGS_UINT32, .at = AT(engines), .min = 1, .max = ENGINES_MAX },
	{ "ranks", "N", "data-parallel ranks of each, with a cache each (1)",
	    ARGS_UINT32, .at = IN(ranks), .min = 1, .max = RANKS_MAX },
	{ "address", "IP", "to listen on (127.0.0.1)", ARGS_STRING,
	    .at = IN(address) },
	{ "model", "NAME", "served model; may be repeated (all are served)",
	    ARGS_CALL, .take = take_model },
	{ "block", "TOKENS", "in a block of the cache (16)", ARGS_UINT32,
	    .at = IN(serving.block_tokens), .min = 1, .max = BLOCK_MAX },
	{ "capacity", "TOKENS", "in the cache (400000)", ARGS_UINT64,
	    .at = AT(capacity), .min = 1, .max = UINT64_C(1) << 32 },
	{ "evict", "WHICH", "lru, leaf or random (lru)", ARGS_WORD,
	    .at = IN(serving.eviction), .max = 3, .words = evictions },
	{ "sequences", "N", "in prefill and decode at a time, at most (256)",
	    ARGS_UINT32, .at = IN(serving.sequences), .min = 1,
	    .max = 65536 },
	{ "batch", "TOKENS",
	    "in a step, the generated ones included; without: 2048\n"
	    "of prompts, besides those", ARGS_UINT32,
	    .at = IN(serving.batch), .min = 1, .max = 1 << 20 },
	{ "reads", "WHICH",
	    "of a step from memory: each block in use once (shared),\n"
	    "or once for each request that uses it (own) (shared)",
	    ARGS_CHOICE, .at = IN(serving.own_reads), .words = reads },
	{ "attention", "N",
	    "the context at which prefill takes twice as long (none)",
	    ARGS_UINT64, .at = IN(serving.attention), .min = 1000,
	    .max = 1000000000 },
	{ "preempt", NULL, "outputs take memory as they grow", ARGS_FLAG,
	    .at = IN(serving.preempt) },
	{ "prefill-rate", "N",
	    "tokens a second of a step that only computes them (9000)",
	    ARGS_FACTOR, .at = IN(serving.prefill_rate) },
	{ "decode-ms", "MS",
	    "of a step without load, a token for each request (15)",
	    ARGS_CALL, .take = take_decode },
	{ "scale", "F", "factor of all times: 0.02 is 50 times as fast (1)",
	    ARGS_FACTOR, .at = IN(scale) },
	{ "tools", "N",
	    "one answer in N calls tools, if a chat has them (none)",
	    ARGS_UINT32, .at = IN(tools), .min = 1, .max = 1000000 },
	{ "reasoning", NULL, "answers of chats begin with reasoning",
	    ARGS_FLAG, .at = IN(reasoning) },
	{ "usage", "WHICH", "value, null-for-0, null or none (value)",
	    ARGS_WORD, .at = IN(usage), .max = 4, .words = usages },
	{ "headers", "WHEN",
	    "of streams: early, or late: after prefill (early)", ARGS_CALL,
	    .words = when, .take = take_headers },
	{ "publish", "HOW",
	    "the size of the cache: as vllm, sglang, sglang-old,\n"
	    "trtllm (none, but its load) or none (vllm)", ARGS_WORD,
	    .at = IN(publish), .max = 5, .words = published },
	{ "publish-window", "N",
	    "as vllm the window of all layers, as sglang the size\n"
	    "of the memory for windows (none)", ARGS_UINT64,
	    .at = IN(window), .min = 1, .max = UINT64_C(1) << 32 },
	{ "keepalive", "SECONDS", "an idle connection is closed after (5)",
	    ARGS_TTL, .at = IN(keepalive_ns) },
	{ "responses", "N", "kept, and as many conversations (1024)",
	    ARGS_UINT64, .at = IN(responses), .max = RESPONSES_MAX },
	{ "seed", "N",
	    "of random eviction (1) and of ids (differ in each run)",
	    ARGS_CALL, .take = take_seed },
	{ "for", "SECONDS", "exit after this time", ARGS_TTL,
	    .at = AT(for_ns) },
	{ "events", "ENDPOINT",
	    "where events of the cache are published (nowhere)", ARGS_CALL,
	    .at = IN(events.endpoint), .max = ENDPOINT_BYTES,
	    .take = take_short },
	{ "events-replay", "ENDPOINT", "where they are sent again (nowhere)",
	    ARGS_CALL, .at = IN(events.replay), .max = ENDPOINT_BYTES,
	    .take = take_short },
	{ "events-form", "F",
	    "as vllm, vllm-arrays, sglang or sglang-arrays (vllm)", ARGS_WORD,
	    .at = IN(events.form), .max = FORMS, .words = event_forms },
	{ "events-topic", "T", "before each batch (empty)", ARGS_CALL,
	    .at = IN(events.topic), .max = TOPIC_BYTES, .take = take_short },
	{ "events-keep", "N", "batches that can be sent again (10000)",
	    ARGS_UINT32, .at = IN(events.keep), .min = 1,
	    .max = KEPT_BATCHES_MAX },
	{ "events-lose", "N", "one batch in N is not published (none)",
	    ARGS_UINT32, .at = IN(events.lose), .min = 1, .max = 1000000 },
	{ "events-window", "N",
	    "also those of a group of layers with this window", ARGS_UINT32,
	    .at = IN(events.window), .min = 1, .max = 1 << 20 },
	{ "events-full", NULL, "blocks are stored again when they are hit",
	    ARGS_FLAG, .at = IN(serving.tells_hits) },
	{ "events-copies", NULL, "a block that is computed again is a copy",
	    ARGS_FLAG, .at = IN(serving.has_copies) }
};

static const struct args_table table = {
	"kvroute-engine", usage_text,
	"\nAnswers like an inference engine, with a prefix cache but no "
	"model.\n\n",
	20, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

static void
complete_events(struct server_facts *f)
{
	const struct events_facts *e = &f->events;

	f->serving.watched = e->endpoint != NULL;
	if (e->endpoint == NULL && (e->replay != NULL || e->lose > 0 ||
	    e->window > 0 || f->serving.tells_hits || f->serving.has_copies))
		errx(ARGS_USAGE, "--events-...: without --events there are "
		    "none");
	if (e->window > 0 && event_form_sglang(e->form))
		errx(ARGS_USAGE, "--events-window: SGLang publishes no other "
		    "groups");
}

/* vLLM counts one block that holds nothing. */
static bool
has_null_block(const struct server_facts *f)
{
	return f->publish == PUBLISH_VLLM;
}

/* Derived from several options. */
static void
complete(struct options *o)
{
	struct serving_facts *s = &o->facts.serving;
	struct ask_rules *rules = &o->facts.rules;

	if (o->port > 0 && o->port + o->engines - 1 > UINT16_MAX)
		errx(ARGS_USAGE, "--port and --engines: no such ports");
	s->blocks = o->capacity / s->block_tokens;
	if (s->blocks <= has_null_block(&o->facts))
		errx(ARGS_USAGE, "--capacity and --block: not one block");
	s->blocks -= has_null_block(&o->facts);
	if (s->batch > 0 && s->batch < s->sequences)
		errx(ARGS_USAGE, "--batch %" PRIu32 ": less than the %" PRIu32
		    " requests that run at a time (--sequences)", s->batch,
		    s->sequences);
	s->tick_ns = (int64_t)(TICK_NS / o->facts.scale);
	s->decode_ns += s->decode_ns == 0;
	complete_events(&o->facts);
	rules->models = o->models;
	rules->any_model = rules->n_models == 0;
	if (rules->any_model)
		add_model(o, "kvroute-engine");
}

/* -------------------------------------------------------------- running --- */

static void
leave(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(base);
}

/* Timers finer than a millisecond. NULL: no memory. */
static struct event_base *
make_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config != NULL && event_config_set_flag(config,
	    EVENT_BASE_FLAG_PRECISE_TIMER | EVENT_BASE_FLAG_NOLOCK) == 0)
		base = event_base_new_with_config(config);
	if (config != NULL)
		event_config_free(config);
	return base;
}

static void
more_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static bool
make_servers(struct event_base *base, const struct options *o,
    struct server **servers)
{
	struct server_place place;
	uint32_t i;

	for (i = 0; i < o->engines; i++) {
		place = (struct server_place){ (uint16_t)(o->port == 0 ? 0 :
		    o->port + i), i, o->seed + i };
		servers[i] = server_new(base, &o->facts, &place);
		if (servers[i] == NULL)
			return false;
		if (o->port == 0)
			printf("%u\n", (unsigned)servers[i]->port);
	}
	return fflush(stdout) == 0;
}

static int
serve(struct event_base *base, const struct options *o)
{
	struct timeval end = { (time_t)(o->for_ns / 1000000000),
	    (suseconds_t)(o->for_ns % 1000000000 / 1000) };
	struct event *term = evsignal_new(base, SIGTERM, leave, base);
	struct event *interrupt = evsignal_new(base, SIGINT, leave, base);
	struct server *servers[ENGINES_MAX] = { NULL };
	bool ready = term != NULL && interrupt != NULL &&
	    make_servers(base, o, servers);
	uint32_t i;

	if (ready) {
		event_add(term, NULL);
		event_add(interrupt, NULL);
		if (o->for_ns > 0)
			event_base_once(base, -1, EV_TIMEOUT, leave, base,
			    &end);
		event_base_dispatch(base);
	}
	for (i = 0; i < o->engines; i++)
		server_free(servers[i]);
	if (term != NULL)
		event_free(term);
	if (interrupt != NULL)
		event_free(interrupt);
	return ready ? 0 : ARGS_FAILED;
}

int
main(int argc, char **argv)
{
	struct event_base *base;
	struct options o;
	int status;

	defaults(&o);
	if (args_parse(&table, &o, argc, argv) != argc)
		args_usage(&table);
	complete(&o);
	signal(SIGPIPE, SIG_IGN);
	more_files();
	base = make_base();
	if (base == NULL)
		errx(ARGS_FAILED, "no memory");
	if (o.facts.events.endpoint != NULL) {
		o.facts.sockets = events_begin();
		if (o.facts.sockets == NULL)
			errx(ARGS_FAILED, "--events: there are none");
	}
	status = serve(base, &o);
	events_end(o.facts.sockets);
	event_base_free(base);
	libevent_global_shutdown();
	return status;
}
