/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-engine - simulates inference engines over HTTP, to test routers.
 *
 * It responds as vLLM does and computes nothing. Its cache differs on purpose
 * from a router's model: it has tokens instead of bytes, a template that the
 * router does not see, another block size, and its own eviction order
 * (tokenizer.h, ask.h, serving.h).
 */
#include "server.h"

#include "args.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	O_PORT = 256, O_ENGINES, O_RANKS, O_ADDRESS, O_MODEL, O_BLOCK,
	O_CAPACITY, O_EVICT, O_SEQUENCES, O_BATCH, O_READS, O_ATTENTION,
	O_PREEMPT, O_PREFILL_RATE, O_DECODE_MS, O_SCALE, O_TEMPLATE, O_USAGE,
	O_PUBLISH, O_PUBLISH_WINDOW,
	O_RESPONSES, O_TOOLS, O_REASONING, O_HEADERS, O_SEED, O_FOR,
	O_EVENTS, O_EVENTS_REPLAY, O_EVENTS_FORM, O_EVENTS_TOPIC,
	O_EVENTS_KEEP, O_EVENTS_LOSE, O_EVENTS_WINDOW, O_EVENTS_FULL,
	O_EVENTS_COPIES, O_VERBOSE, O_HELP, O_VERSION
};
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
"           [--template plain|date|clock]\n"
"           [--tools N] [--reasoning]\n"
"           [--usage value|null-for-0|null|none] [--headers early|late]\n"
"           [--publish vllm|sglang|sglang-old|trtllm|none]\n"
"           [--publish-window TOKENS]\n"
"           [--responses N] [--seed N] [--for SECONDS] [--verbose]\n"
"           [--events ENDPOINT] [--events-replay ENDPOINT]\n"
"           [--events-form vllm|vllm-arrays|sglang|sglang-arrays]\n"
"           [--events-topic TEXT] [--events-keep N] [--events-lose N]\n"
"           [--events-window TOKENS] [--events-full] [--events-copies]\n"
"       kvroute-engine --help | --version\n";

static const char help_text[] =
"\nAnswers like an inference engine, with a prefix cache but no model.\n\n"
"  --port N          to listen on; 0: a free one, printed (0)\n"
"  --engines N       number of engines, each with its own port and cache (1)\n"
"  --ranks N         data-parallel ranks of each, with a cache each (1)\n"
"  --address IP      to listen on (127.0.0.1)\n"
"  --model NAME      served model; may be repeated (all are served)\n"
"  --block TOKENS    in a block of the cache (16)\n"
"  --capacity TOKENS in the cache (400000)\n"
"  --evict WHICH     lru, leaf or random (lru)\n"
"  --sequences N     in prefill and decode at a time, at most (256)\n"
"  --batch TOKENS    in a step, the generated ones included; without: 2048\n"
"                    of prompts, besides those\n"
"  --reads WHICH     of a step from memory: each block in use once (shared),\n"
"                    or once for each request that uses it (own) (shared)\n"
"  --attention N     the context at which prefill takes twice as long (none)\n"
"  --preempt         outputs take memory as they grow\n"
"  --prefill-rate N  tokens a second of a step that only computes them (9000)\n"
"  --decode-ms MS    of a step without load, a token for each request (15)\n"
"  --scale F         factor of all times: 0.02 is 50 times as fast (1)\n"
"  --template WHICH  plain, date or clock at the front of prompts (plain)\n"
"  --tools N         one answer in N calls tools, if a chat has them (none)\n"
"  --reasoning       answers of chats begin with reasoning\n"
"  --usage WHICH     value, null-for-0, null or none (value)\n"
"  --headers WHEN    of streams: early, or late: after prefill (early)\n"
"  --publish HOW     the size of the cache: as vllm, sglang, sglang-old,\n"
"                    trtllm (none, but its load) or none (vllm)\n"
"  --publish-window N as vllm the window of all layers, as sglang the size\n"
"                    of the memory for windows (none)\n"
"  --responses N     kept, and as many conversations (1024)\n"
"  --seed N          of random eviction (1) and of ids (differ in each run)\n"
"  --for SECONDS     exit after this time\n"
"  --events ENDPOINT where events of the cache are published (nowhere)\n"
"  --events-replay ENDPOINT   where they are sent again (nowhere)\n"
"  --events-form F   as vllm, vllm-arrays, sglang or sglang-arrays (vllm)\n"
"  --events-topic T  before each batch (empty)\n"
"  --events-keep N   batches that can be sent again (10000)\n"
"  --events-lose N   one batch in N is not published (none)\n"
"  --events-window N also those of a group of layers with this window\n"
"  --events-full     blocks are stored again when they are hit\n"
"  --events-copies   a block that is computed again is a copy\n"
"  --verbose         a line on standard error for each response\n";

static const struct option long_options[] = {
	{ "port", required_argument, NULL, O_PORT },
	{ "engines", required_argument, NULL, O_ENGINES },
	{ "ranks", required_argument, NULL, O_RANKS },
	{ "address", required_argument, NULL, O_ADDRESS },
	{ "model", required_argument, NULL, O_MODEL },
	{ "block", required_argument, NULL, O_BLOCK },
	{ "capacity", required_argument, NULL, O_CAPACITY },
	{ "evict", required_argument, NULL, O_EVICT },
	{ "sequences", required_argument, NULL, O_SEQUENCES },
	{ "batch", required_argument, NULL, O_BATCH },
	{ "reads", required_argument, NULL, O_READS },
	{ "attention", required_argument, NULL, O_ATTENTION },
	{ "preempt", no_argument, NULL, O_PREEMPT },
	{ "prefill-rate", required_argument, NULL, O_PREFILL_RATE },
	{ "decode-ms", required_argument, NULL, O_DECODE_MS },
	{ "scale", required_argument, NULL, O_SCALE },
	{ "template", required_argument, NULL, O_TEMPLATE },
	{ "tools", required_argument, NULL, O_TOOLS },
	{ "reasoning", no_argument, NULL, O_REASONING },
	{ "usage", required_argument, NULL, O_USAGE },
	{ "headers", required_argument, NULL, O_HEADERS },
	{ "publish", required_argument, NULL, O_PUBLISH },
	{ "publish-window", required_argument, NULL, O_PUBLISH_WINDOW },
	{ "responses", required_argument, NULL, O_RESPONSES },
	{ "seed", required_argument, NULL, O_SEED },
	{ "for", required_argument, NULL, O_FOR },
	{ "events", required_argument, NULL, O_EVENTS },
	{ "events-replay", required_argument, NULL, O_EVENTS_REPLAY },
	{ "events-form", required_argument, NULL, O_EVENTS_FORM },
	{ "events-topic", required_argument, NULL, O_EVENTS_TOPIC },
	{ "events-keep", required_argument, NULL, O_EVENTS_KEEP },
	{ "events-lose", required_argument, NULL, O_EVENTS_LOSE },
	{ "events-window", required_argument, NULL, O_EVENTS_WINDOW },
	{ "events-full", no_argument, NULL, O_EVENTS_FULL },
	{ "events-copies", no_argument, NULL, O_EVENTS_COPIES },
	{ "verbose", no_argument, NULL, O_VERBOSE },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

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

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(ARGS_USAGE);
}

static void
set_words(struct options *o, int option, const char *text)
{
	static const char *const evictions[] = { "lru", "leaf", "random" };
	static const char *const reads[] = { "shared", "own" };
	static const char *const templates[] = { "plain", "date", "clock" };
	static const char *const usages[] = {
		"value", "null-for-0", "null", "none"
	};
	static const char *const when[] = { "early", "late" };
	static const char *const published[] = {
		"vllm", "sglang", "sglang-old", "trtllm", "none"
	};

	switch (option) {
	case O_EVICT:
		o->facts.serving.eviction = (enum engine_eviction)args_word(
		    "evict", text, evictions, 3);
		break;
	case O_READS:
		o->facts.serving.own_reads = args_word("reads", text, reads,
		    2) == 1;
		break;
	case O_TEMPLATE:
		o->facts.rules.template = (enum ask_template)args_word(
		    "template", text, templates, 3);
		break;
	case O_USAGE:
		o->facts.usage = (enum reply_usage)args_word("usage", text,
		    usages, 4);
		break;
	case O_HEADERS:
		o->facts.headers_early = args_word("headers", text, when,
		    2) == 0;
		break;
	case O_PUBLISH:
		o->facts.publish = (enum publish)args_word("publish", text,
		    published, 5);
		break;
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-engine %s\n", kvr_version_string());
		exit(0);
	default:
		usage();
	}
}

static const char *
short_text(const char *option, const char *text, size_t most)
{
	if (strlen(text) > most)
		errx(ARGS_USAGE, "--%s: longer than %zu bytes", option, most);
	return text;
}

/* What it publishes; false: another option. */
static bool
set_events(struct server_facts *f, int option, const char *text)
{
	struct events_facts *e = &f->events;

	switch (option) {
	case O_EVENTS:
		e->endpoint = short_text("events", text, ENDPOINT_BYTES);
		return true;
	case O_EVENTS_REPLAY:
		e->replay = short_text("events-replay", text, ENDPOINT_BYTES);
		return true;
	case O_EVENTS_FORM:
		e->form = (enum event_form)args_word("events-form", text,
		    event_forms, FORMS);
		return true;
	case O_EVENTS_TOPIC:
		e->topic = short_text("events-topic", text, TOPIC_BYTES);
		return true;
	case O_EVENTS_KEEP:
		e->keep = (uint32_t)args_number("events-keep", text, 1,
		    KEPT_BATCHES_MAX);
		return true;
	case O_EVENTS_LOSE:
		e->lose = (uint32_t)args_number("events-lose", text, 1,
		    1000000);
		return true;
	case O_EVENTS_WINDOW:
		e->window = (uint32_t)args_number("events-window", text, 1,
		    1 << 20);
		return true;
	case O_EVENTS_FULL:
		f->serving.tells_hits = true;
		return true;
	case O_EVENTS_COPIES:
		f->serving.has_copies = true;
		return true;
	default:
		return false;
	}
}

/* What an engine does; false: another option. */
static bool
set_engine(struct serving_facts *s, int option, const char *text)
{
	switch (option) {
	case O_BLOCK:
		s->block_tokens = (uint32_t)args_number("block", text, 1,
		    BLOCK_MAX);
		return true;
	case O_SEQUENCES:
		s->sequences = (uint32_t)args_number("sequences", text, 1,
		    65536);
		return true;
	case O_BATCH:
		s->batch = (uint32_t)args_number("batch", text, 1, 1 << 20);
		return true;
	case O_ATTENTION:
		s->attention = args_number("attention", text, 1000,
		    1000000000);
		return true;
	case O_PREEMPT:
		s->preempt = true;
		return true;
	case O_PREFILL_RATE:
		s->prefill_rate = args_factor("prefill-rate", text);
		return true;
	case O_DECODE_MS:
		s->decode_ns = (int64_t)(args_factor("decode-ms", text) * 1e6);
		return true;
	default:
		return false;
	}
}

static void
set_option(struct options *o, int option, const char *text)
{
	if (set_engine(&o->facts.serving, option, text) ||
	    set_events(&o->facts, option, text))
		return;
	switch (option) {
	case O_PORT:
		o->port = (uint16_t)args_number("port", text, 0, UINT16_MAX);
		break;
	case O_ENGINES:
		o->engines = (uint32_t)args_number("engines", text, 1,
		    ENGINES_MAX);
		break;
	case O_RANKS:
		o->facts.ranks = (uint32_t)args_number("ranks", text, 1,
		    RANKS_MAX);
		break;
	case O_ADDRESS:
		o->facts.address = text;
		break;
	case O_MODEL:
		add_model(o, text);
		break;
	case O_CAPACITY:
		o->capacity = args_number("capacity", text, 1,
		    UINT64_C(1) << 32);
		break;
	case O_TOOLS:
		o->facts.tools = (uint32_t)args_number("tools", text, 1,
		    1000000);
		break;
	case O_REASONING:
		o->facts.reasoning = true;
		break;
	case O_SCALE:
		o->facts.scale = args_factor("scale", text);
		break;
	case O_PUBLISH_WINDOW:
		o->facts.window = args_number("publish-window", text, 1,
		    UINT64_C(1) << 32);
		break;
	case O_RESPONSES:
		o->facts.responses = (size_t)args_number("responses", text, 0,
		    RESPONSES_MAX);
		break;
	case O_SEED:
		o->seed = args_number("seed", text, 0, INT64_MAX);
		o->facts.ids = 0;
		break;
	case O_FOR:
		o->for_ns = args_ttl("for", text);
		break;
	case O_VERBOSE:
		o->facts.verbose = true;
		break;
	default:
		set_words(o, option, text);
	}
}

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

/* Derived from several options. */
static void
complete(struct options *o)
{
	struct serving_facts *s = &o->facts.serving;
	struct ask_rules *rules = &o->facts.rules;

	if (o->port > 0 && o->port + o->engines - 1 > UINT16_MAX)
		errx(ARGS_USAGE, "--port and --engines: no such ports");
	s->blocks = o->capacity / s->block_tokens;
	if (s->blocks == 0)
		errx(ARGS_USAGE, "--capacity and --block: not one block");
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
	int option, status;

	defaults(&o);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(&o, option, optarg);
	if (optind != argc)
		usage();
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
