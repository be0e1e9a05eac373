/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-bench - the cost of a request, step by step, beside the floor.
 *
 * kvroute-bench(1) says what each number means.
 */
#include "args_table.h"
#include "flood.h"
#include "growth.h"
#include "load.h"
#include "records.h"
#include "sample.h"
#include "search.h"
#include "step_times.h"
#include "threads.h"
#include "bench_index.h"

#include <kvroute.h>

#include <err.h>
#include <stdbool.h>
#include <stddef.h>
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
	const char *history; /* the plan of one, or NULL */
	uint32_t search;  /* for slow ones, so many seconds, */
	uint32_t seed;    /* from this one on */
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
"       kvroute-bench --history PLAN [--trials N] [--format text|kv]\n"
"       kvroute-bench --search SECONDS [--seed N]\n"
"       kvroute-bench --flood [the same options]\n"
"       kvroute-bench --journal [--trials N] [--format text|kv]\n"
"       kvroute-bench --growth CURVE [--trials N] [--format text|kv]\n"
"       kvroute-bench --help | --version\n";

/* ------------------------------------------------------------- options --- */

static void
take_retain(void *settings, const struct args_row *row, const char *text)
{
	static const char *const names[] = { "ttl", "capacity", "feedback",
		"all" };
	static const uint32_t modes[] = { KVR_RETAIN_TTL, KVR_RETAIN_CAPACITY,
		KVR_RETAIN_FEEDBACK, KVR_RETAIN_TTL };
	size_t i = args_word(row->name, text, names, 4);
	struct settings *s = settings;

	s->world.retain = modes[i];
	s->all = i == 3;
}

static void
take_policy(void *settings, const struct args_row *row, const char *text)
{
	static const char *const names[] = { "balanced", "dynamo" };
	static const uint32_t costs[] = { KVR_COST_BALANCED, KVR_COST_DYNAMO };

	((struct settings *)settings)->world.cost =
	    costs[args_word(row->name, text, names, 2)];
}

static void
take_growth(void *settings, const struct args_row *row, const char *text)
{
	struct settings *s = settings;

	s->growth = true;
	s->curve = args_word(row->name, text, growth_names, GROWTH_NAMES);
}

#define AT(member) offsetof(struct settings, member)

static const char *const hashes[] = { "keyed", "dynamo" };
static const char *const formats[] = { "text", "kv" };

static const struct args_row option_rows[] = {
	{ "workers", "N", "how many workers there are (64)", ARGS_UINT32,
	    .at = AT(world.workers), .min = 1, .max = KVR_WORKERS_MAX },
	{ "block", "TOKENS", "tokens of an index block (16)", ARGS_UINT32,
	    .at = AT(world.region.block_size), .min = 1, .max = INT32_MAX },
	{ "ttl", "SEC",
	    "how long a prefix is believed cached (120); endless", ARGS_TTL,
	    .at = AT(world.region.ttl_ns) },
	{ "hash", "KIND", "keyed, or dynamo for the reference's hashes (keyed)",
	    ARGS_WORD, .at = AT(world.region.hash), .max = 2,
	    .words = hashes },
	{ "memory", "SIZE", "of the region that is timed (64M)", ARGS_SIZE,
	    .at = AT(world.region.region_bytes) },
	{ "retain", "MODE",
	    "how workers are believed to keep what they were sent:\n"
	    "ttl, capacity, feedback (ttl); all: each, in turns", ARGS_CALL,
	    .take = take_retain },
	{ "capacity", "TOKENS",
	    "of each worker that goes by capacity (1000000)", ARGS_UINT64,
	    .at = AT(world.capacity_tokens), .min = 1, .max = INT64_MAX },
	{ "policy", "NAME", "cost function: balanced, dynamo (balanced)",
	    ARGS_CALL, .take = take_policy },
	{ "trials", "N", "replays; the best counts (5)", ARGS_UINT32,
	    .at = AT(trials), .min = 1, .max = TRIALS_MAX },
	{ "threads", "N",
	    "what N threads reach, beside one; --trials pairs (9)",
	    ARGS_UINT32, .at = AT(threads), .min = 2, .max = CREW_MAX },
	{ "history", "PLAN",
	    "how long calls take in a history: name=number,...", ARGS_STRING,
	    .at = AT(history) },
	{ "search", "SECONDS", "look for histories in which calls take long",
	    ARGS_UINT32, .at = AT(search), .min = 1, .max = INT32_MAX },
	{ "seed", "N", "of the search (0)", ARGS_UINT32, .at = AT(seed),
	    .max = UINT32_MAX },
	{ "flood", NULL, "prompts with hashes equal in low bits, beside others",
	    ARGS_FLAG, .at = AT(flood) },
	{ "journal", NULL,
	    "a record of the journal, beside copying its bytes", ARGS_FLAG,
	    .at = AT(journal) },
	{ "growth", "CURVE",
	    "how costs grow: blocks, workers, prompt, shared, chat,\n"
	    "fan, stairs, parted, or all", ARGS_CALL, .take = take_growth },
	{ "format", "KIND", "text, or kv (name=value) (text)", ARGS_WORD,
	    .at = AT(format), .max = 2, .words = formats }
};

static const struct args_table table = {
	"kvroute-bench", usage_text,
	"\nMeasures hashing, match, observe and expire on a trace (on one that "
	"is\nmade up, without a file) under the policy half of "
	"kvroute-replay(1).\n\n",
	20, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

static void
read_options(struct settings *s, int argc, char **argv)
{
	int next;
	bool made; /* no trace is read */

	memset(s, 0, sizeof(*s));
	kvr_options_init(&s->world.region, sizeof(s->world.region));
	s->world.region.block_size = 16;
	s->world.workers = DEFAULT_WORKERS;
	s->world.retain = KVR_RETAIN_TTL;
	s->world.capacity_tokens = DEFAULT_CAPACITY;
	next = args_parse(&table, s, argc, argv);
	made = s->flood || s->journal || s->growth || s->history != NULL ||
	    s->search > 0;
	if (argc - next > (made ? 0 : 1) ||
	    s->flood + s->journal + s->growth + (s->threads > 0) +
	    (s->history != NULL) + (s->search > 0) > 1 ||
	    (s->all && s->threads > 0) ||
	    (made && (s->all || s->world.retain != KVR_RETAIN_TTL)))
		args_usage(&table);
	if (next < argc)
		s->trace = argv[next];
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

static void
bench_history(const struct settings *s)
{
	struct history h;
	struct plan p;

	plan_read(s->history, &p);
	if (!history_run(&p, s->trials > 0 ? s->trials : 1, &h))
		errx(ARGS_FAILED, "the region is too small for %u workers",
		    (unsigned)p.workers);
	history_print(&h, s->format == KV);
	history_free(&h);
}

int
main(int argc, char **argv)
{
	struct settings settings;

	read_options(&settings, argc, argv);
	if (settings.threads > 0)
		bench_threads(&settings);
	else if (settings.history != NULL)
		bench_history(&settings);
	else if (settings.search > 0)
		search_run(settings.search, settings.seed);
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
