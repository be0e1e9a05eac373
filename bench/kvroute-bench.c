/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-bench - the cost of a request, step by step, beside the floor.
 *
 * kvroute-bench(1) says what each number means.
 */
#include "args.h"
#include "calls.h"
#include "flood.h"
#include "growth.h"
#include "load.h"
#include "records.h"
#include "sample.h"
#include "step_times.h"
#include "threads.h"
#include "bench_index.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_WORKERS = 64,
	DEFAULT_TRIALS = 5,
	DEFAULT_FLOOD_TRIALS = 50,
	DEFAULT_RECORD_TRIALS = 50,
	DEFAULT_CAPACITY = 1000000,
	TRIALS_MAX = 1000
};
enum format { TEXT, KV };

struct settings {
	struct world_options world;
	bool all;         /* every retention, in turns */
	uint32_t trials;  /* 0: the measurement's default */
	uint32_t threads; /* 0: measure one request, step by step */
	uint32_t calls;   /* requests of a history, or 0 */
	bool flood;       /* measure a flood */
	bool journal;     /* measure records */
	bool growth;      /* measure curves, of which this one */
	size_t curve;
	enum format format;
	const char *trace; /* NULL: the sample */
};

static const char usage_text[] =
"usage: kvroute-bench [--workers N] [--block TOKENS] [--ttl SEC|endless]\n"
"           [--hash keyed|dynamo] [--memory SIZE] [--trials N]\n"
"           [--retain ttl|capacity|feedback|all] [--capacity TOKENS]\n"
"           [--policy balanced|dynamo] [--format text|kv]\n"
"           [trace]\n"
"       kvroute-bench --threads N [the same options] [trace]\n"
"       kvroute-bench --calls N [the same options]\n"
"       kvroute-bench --flood [the same options]\n"
"       kvroute-bench --journal [--trials N] [--format text|kv]\n"
"       kvroute-bench --growth CURVE [--trials N] [--format text|kv]\n"
"       kvroute-bench --help | --version\n";

static const char help_text[] =
"\nMeasures hashing, match, observe and expire on a trace (on one that is\n"
"made up, without a file) under the policy half of kvroute-replay(1).\n\n"
"  --workers N       how many workers there are (64)\n"
"  --block TOKENS    tokens of an index block (16)\n"
"  --ttl SEC         how long a prefix is believed cached (120); endless\n"
"  --hash KIND       keyed, or dynamo for the reference's hashes (keyed)\n"
"  --memory SIZE     of the region that is timed (64M)\n"
"  --retain MODE     how workers are believed to keep what they were sent:\n"
"                    ttl, capacity, feedback (ttl); all: each, in turns\n"
"  --capacity TOKENS of each worker that goes by capacity (1000000)\n"
"  --policy NAME     cost function: balanced, dynamo (balanced)\n"
"  --trials N        replays; the best counts (5)\n"
"  --threads N       what N threads reach, beside one; --trials pairs (9)\n"
"  --calls N         the longest calls in a history of N requests\n"
"  --flood           prompts with hashes equal in low bits, beside others\n"
"  --journal         a record of the journal, beside copying its bytes\n"
"  --growth CURVE    how costs grow: blocks, workers, prompt, shared, chat,\n"
"                    fan, stairs, parted, or all\n"
"  --format KIND     text, or kv (name=value) (text)\n";

/* ------------------------------------------------------------- options --- */

enum {
	O_WORKERS = 256, O_BLOCK, O_TTL, O_HASH, O_MEMORY, O_TRIALS, O_THREADS,
	O_RETAIN, O_CAPACITY, O_POLICY, O_CALLS, O_FLOOD, O_JOURNAL, O_GROWTH,
	O_FORMAT, O_HELP, O_VERSION
};
static const struct option long_options[] = {
	{ "workers", required_argument, NULL, O_WORKERS },
	{ "block", required_argument, NULL, O_BLOCK },
	{ "ttl", required_argument, NULL, O_TTL },
	{ "hash", required_argument, NULL, O_HASH },
	{ "memory", required_argument, NULL, O_MEMORY },
	{ "trials", required_argument, NULL, O_TRIALS },
	{ "threads", required_argument, NULL, O_THREADS },
	{ "retain", required_argument, NULL, O_RETAIN },
	{ "capacity", required_argument, NULL, O_CAPACITY },
	{ "policy", required_argument, NULL, O_POLICY },
	{ "calls", required_argument, NULL, O_CALLS },
	{ "flood", no_argument, NULL, O_FLOOD },
	{ "journal", no_argument, NULL, O_JOURNAL },
	{ "growth", required_argument, NULL, O_GROWTH },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(ARGS_USAGE);
}

static void
set_retain(struct settings *s, const char *text)
{
	static const char *const names[] = { "ttl", "capacity", "feedback",
		"all" };
	static const uint32_t modes[] = { KVR_RETAIN_TTL, KVR_RETAIN_CAPACITY,
		KVR_RETAIN_FEEDBACK, KVR_RETAIN_TTL };
	size_t i = args_word("retain", text, names, 4);

	s->world.retain = modes[i];
	s->all = i == 3;
}

static void
set_policy(struct settings *s, const char *text)
{
	static const char *const names[] = { "balanced", "dynamo" };
	static const uint32_t costs[] = { KVR_COST_BALANCED, KVR_COST_DYNAMO };

	s->world.cost = costs[args_word("policy", text, names, 2)];
}

static void
set_option(struct settings *s, int option, const char *text)
{
	static const char *const hashes[] = { "keyed", "dynamo" };
	static const char *const formats[] = { "text", "kv" };

	switch (option) {
	case O_WORKERS:
		s->world.workers = (uint32_t)args_number("workers", text, 1,
		    KVR_WORKERS_MAX);
		break;
	case O_BLOCK:
		s->world.region.block_size = (uint32_t)args_number("block",
		    text, 1, INT32_MAX);
		break;
	case O_TTL:
		s->world.region.ttl_ns = args_ttl("ttl", text);
		break;
	case O_HASH:
		s->world.region.hash = args_word("hash", text, hashes, 2) == 0 ?
		    KVR_HASH_KEYED : KVR_HASH_DYNAMO;
		break;
	case O_MEMORY:
		s->world.region.region_bytes = args_size("memory", text);
		break;
	case O_TRIALS:
		s->trials = (uint32_t)args_number("trials", text, 1,
		    TRIALS_MAX);
		break;
	case O_THREADS:
		s->threads = (uint32_t)args_number("threads", text, 2,
		    CREW_MAX);
		break;
	case O_RETAIN:
		set_retain(s, text);
		break;
	case O_CAPACITY:
		s->world.capacity_tokens = args_number("capacity", text, 1,
		    INT64_MAX);
		break;
	case O_POLICY:
		set_policy(s, text);
		break;
	case O_CALLS:
		s->calls = (uint32_t)args_number("calls", text, 1000,
		    1000000000);
		break;
	case O_FLOOD:
		s->flood = true;
		break;
	case O_JOURNAL:
		s->journal = true;
		break;
	case O_GROWTH:
		s->growth = true;
		s->curve = args_word("growth", text, growth_names,
		    GROWTH_NAMES);
		break;
	case O_FORMAT:
		s->format = args_word("format", text, formats, 2) == 0 ? TEXT :
		    KV;
		break;
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-bench %s\n", kvr_version_string());
		exit(0);
	default:
		usage();
	}
}

static void
read_options(struct settings *s, int argc, char **argv)
{
	int option;
	bool made; /* no trace is read */

	memset(s, 0, sizeof(*s));
	kvr_options_init(&s->world.region, sizeof(s->world.region));
	s->world.region.block_size = 16;
	s->world.workers = DEFAULT_WORKERS;
	s->world.retain = KVR_RETAIN_TTL;
	s->world.capacity_tokens = DEFAULT_CAPACITY;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(s, option, optarg);
	made = s->flood || s->journal || s->growth || s->calls > 0;
	if (argc - optind > (made ? 0 : 1) ||
	    s->flood + s->journal + s->growth + (s->threads > 0) +
	    (s->calls > 0) > 1 ||
	    (s->all && (s->threads > 0 || s->calls > 0)) ||
	    ((s->flood || s->journal || s->growth) &&
	    (s->all || s->world.retain != KVR_RETAIN_TTL)))
		usage();
	if (optind < argc)
		s->trace = argv[optind];
}

/* ----------------------------------------------------------------- load --- */

static void
read_trace(const struct settings *s, struct load *l)
{
	const char *trace = s->trace;
	struct sample_options sample;
	bool standard = trace != NULL && strcmp(trace, "-") == 0;
	FILE *f = standard ? stdin : trace != NULL ? fopen(trace, "r") :
	    tmpfile();

	if (f == NULL)
		err(ARGS_FAILED, "%s", trace == NULL ? "a temporary file" :
		    trace);
	sample_defaults(&sample);
	if (trace == NULL && sample_write(f, &sample) != 0)
		err(ARGS_FAILED, "a temporary file");
	if (trace == NULL)
		rewind(f);
	load_read(l, f, standard ? "standard input" :
	    trace == NULL ? "sample" : trace);
	if (!standard)
		fclose(f);
}

/* -------------------------------------------------------- measurements --- */

static void
bench_steps(const struct settings *s)
{
	struct load load;

	read_trace(s, &load);
	steps_run(&load, &s->world, s->all, s->trials > 0 ? s->trials :
	    DEFAULT_TRIALS, s->format == KV);
	load_free(&load);
}

static void
bench_threads(const struct settings *s)
{
	struct load load;
	struct threads t;

	read_trace(s, &load);
	threads_measure(&load, &s->world, s->threads,
	    s->trials > 0 ? s->trials : THREADS_PAIRS, &t);
	if (s->format == KV)
		threads_print_kv(&t);
	else
		threads_print_text(&t);
	load_free(&load);
}

static void
bench_flood(const struct settings *s)
{
	struct flood f;

	flood_measure(&s->world, s->trials > 0 ? s->trials :
	    DEFAULT_FLOOD_TRIALS, &f);
	if (s->format == KV)
		flood_print_kv(&f);
	else
		flood_print_text(&f);
}

static void
bench_growth(const struct settings *s)
{
	growth_run(s->curve, s->trials > 0 ? s->trials : DEFAULT_TRIALS,
	    s->format == KV);
}

int
main(int argc, char **argv)
{
	struct settings settings;

	read_options(&settings, argc, argv);
	if (settings.threads > 0)
		bench_threads(&settings);
	else if (settings.calls > 0)
		calls_run(&settings.world, settings.calls,
		    settings.format == KV);
	else if (settings.flood)
		bench_flood(&settings);
	else if (settings.journal)
		records_run(settings.trials > 0 ? settings.trials :
		    DEFAULT_RECORD_TRIALS, settings.format == KV);
	else if (settings.growth)
		bench_growth(&settings);
	else
		bench_steps(&settings);
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	return 0;
}
