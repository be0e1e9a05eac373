/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_run.c - see simulate_run.h.
 *
 * Every policy named on the command line is a simulation of its own; the trace
 * is read once, each prompt is hashed once, and all simulations get it.
 */
#include "simulate_run.h"

#include "args.h"
#include "progress.h"
#include "rng.h"
#include "simulate.h"
#include "simulate_report.h"
#include "tokens.h"
#include "trace.h"

#include <bsd/string.h>
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY (UINT64_C(64) << 20)
#define TTL_NS INT64_C(120000000000)
/* No lease is ended by age: the engines end all, however late. */
#define LEASE_LIMIT_NS (INT64_C(86400000000000) * 365)

enum { POLICIES_MAX = 64, NAME_BYTES = 48 };

/* As named on the command line. */
struct wanted {
	char name[NAME_BYTES];
	enum simulate_policy policy;
	enum simulate_index index;
	int64_t ttl_ns;
};

struct settings {
	struct kvr_options region;
	struct wanted wanted[POLICIES_MAX];
	size_t n;
	uint32_t workers;
	uint64_t capacity;
	uint64_t seed;
	double speed;
	bool spread;
	bool kv;
	bool quiet;
	const char *path; /* NULL: standard input */
};

struct run {
	struct settings set;
	FILE *input;
	const char *name;
	struct trace *trace;
	struct tokens tokens;
	struct kvr *k; /* for the prompt alone */
	struct kvr_prompt *prompt;
	struct simulation *simulations[POLICIES_MAX];
	uint64_t requests;
	int64_t last; /* arrival */
};

static const char usage_text[] =
"usage: kvroute-replay --simulate [-q] [--policy NAME[:INDEX]]...\n"
"           [--workers N] [--capacity TOKENS|endless] [--block TOKENS]\n"
"           [--seed N] [--memory SIZE] [--speed X]\n"
"           [--arrivals ticks|spread] [--format text|kv] [trace]\n";

static const char help_text[] =
"\nReplays a Mooncake-format trace (a file, or standard input) on modelled\n"
"engines and reports what their caches hit and how long requests took.\n\n"
"  --policy NAME      round-robin, random, least-loaded, dynamo or two-tier;\n"
"                     again to compare (round-robin and dynamo); the last\n"
"                     two with :ttl=SEC (120), :ttl=endless or :oracle\n"
"  --workers N        how many engines there are (8)\n"
"  --capacity TOKENS  of the cache of each (1000000); endless\n"
"  --block TOKENS     tokens of an index block (512)\n"
"  --seed N           of random, of ties and of the secret (1)\n"
"  --memory SIZE      of the index, for each policy (64M)\n"
"  --speed X          X times as many requests in the same time (1)\n"
"  --arrivals HOW     ticks, as recorded, or spread over them (ticks)\n"
"  --format KIND      text or kv (name=value) (text)\n"
"  -q, --quiet        no progress bar\n";

/* -------------------------------------------------------------- options --- */

enum {
	O_SIMULATE = 256, O_POLICY, O_WORKERS, O_CAPACITY, O_BLOCK, O_SEED,
	O_MEMORY, O_SPEED, O_ARRIVALS, O_FORMAT, O_HELP, O_VERSION
};

static const struct option long_options[] = {
	{ "simulate", no_argument, NULL, O_SIMULATE },
	{ "policy", required_argument, NULL, O_POLICY },
	{ "workers", required_argument, NULL, O_WORKERS },
	{ "capacity", required_argument, NULL, O_CAPACITY },
	{ "block", required_argument, NULL, O_BLOCK },
	{ "seed", required_argument, NULL, O_SEED },
	{ "memory", required_argument, NULL, O_MEMORY },
	{ "speed", required_argument, NULL, O_SPEED },
	{ "arrivals", required_argument, NULL, O_ARRIVALS },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

bool
simulate_wanted(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--simulate") == 0)
			return true;
	return false;
}

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(ARGS_USAGE);
}

/* What stands behind the colon. */
static void
set_index(struct wanted *w, const char *text)
{
	if (strcmp(text, "oracle") == 0)
		w->index = SIMULATE_ORACLE;
	else if (strncmp(text, "ttl=", 4) == 0)
		w->ttl_ns = args_ttl("policy ttl", text + 4);
	else
		errx(ARGS_USAGE, "--policy: %s: not ttl=SEC, and not oracle",
		    text);
}

static void
add_policy(struct settings *s, const char *text)
{
	struct wanted *w = &s->wanted[s->n];
	char name[NAME_BYTES], *colon;

	if (s->n == POLICIES_MAX)
		errx(ARGS_USAGE, "--policy: more than %d", POLICIES_MAX);
	if (strlcpy(name, text, sizeof(name)) >= sizeof(name))
		errx(ARGS_USAGE, "--policy %s: too long", text);
	colon = strchr(name, ':');
	if (colon != NULL)
		*colon = '\0';
	w->policy = (enum simulate_policy)args_word("policy", name,
	    simulate_policy_names, SIMULATE_POLICIES);
	w->index = SIMULATE_TTL;
	w->ttl_ns = TTL_NS;
	if (colon != NULL && w->policy < SIMULATE_DYNAMO)
		errx(ARGS_USAGE, "--policy %s: %s needs no index", text, name);
	if (colon != NULL)
		set_index(w, colon + 1);
	snprintf(w->name, sizeof(w->name), "%s%s", text, colon == NULL &&
	    w->policy >= SIMULATE_DYNAMO ? ":ttl=120" : "");
	s->n++;
}

/* A simulation is the same each time, its secret too. */
static void
set_secret(struct settings *s)
{
	struct rng r = { s->seed };

	s->region.secret_kind = KVR_SECRET_GIVEN;
	rng_fill(&r, s->region.secret, KVR_SECRET_BYTES);
}

static void
set_defaults(struct settings *s)
{
	kvr_options_init(&s->region, sizeof(s->region));
	s->region.region_bytes = DEFAULT_MEMORY;
	s->region.block_size = TRACE_BLOCK;
	s->region.lease_limit_ns = LEASE_LIMIT_NS;
	s->workers = 8;
	s->capacity = 1000000;
	s->seed = 1;
	s->speed = 1;
}

static void
set_option(struct settings *s, int option, const char *text)
{
	static const char *const arrivals[] = { "ticks", "spread" };
	static const char *const formats[] = { "text", "kv" };

	switch (option) {
	case O_SIMULATE:
		break;
	case 'q':
		s->quiet = true;
		break;
	case O_POLICY:
		add_policy(s, text);
		break;
	case O_WORKERS:
		s->workers = (uint32_t)args_number("workers", text, 1,
		    KVR_WORKERS_MAX);
		break;
	case O_CAPACITY:
		s->capacity = strcmp(text, "endless") == 0 ? 0 :
		    args_number("capacity", text, 1, INT64_MAX);
		break;
	case O_BLOCK:
		s->region.block_size = (uint32_t)args_number("block", text, 1,
		    INT32_MAX);
		break;
	case O_SEED:
		s->seed = args_number("seed", text, 0, INT64_MAX);
		break;
	case O_MEMORY:
		s->region.region_bytes = args_size("memory", text);
		break;
	case O_SPEED:
		s->speed = args_factor("speed", text);
		break;
	case O_ARRIVALS:
		s->spread = args_word("arrivals", text, arrivals, 2) == 1;
		break;
	case O_FORMAT:
		s->kv = args_word("format", text, formats, 2) == 1;
		break;
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-replay %s\n", kvr_version_string());
		exit(0);
	default:
		usage();
	}
}

static void
read_options(struct settings *s, int argc, char **argv)
{
	int option;

	set_defaults(s);
	while ((option = getopt_long(argc, argv, "q", long_options, NULL)) !=
	    -1)
		set_option(s, option, optarg);
	if (argc - optind > 1)
		usage();
	if (optind < argc && strcmp(argv[optind], "-") != 0)
		s->path = argv[optind];
	if (s->n == 0) {
		add_policy(s, "round-robin");
		add_policy(s, "dynamo");
	}
	s->region.max_workers = s->workers;
	set_secret(s);
}

/* ----------------------------------------------------------- simulating --- */

static void
must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

static void
open_trace(struct run *r)
{
	const char *path = r->set.path;

	r->input = args_input(path, &r->name);
	r->trace = trace_new(r->input, path == NULL ? r->name : path);
	if (r->trace == NULL)
		errx(ARGS_FAILED, "out of memory");
}

static void
make_simulations(struct run *r)
{
	const struct settings *s = &r->set;
	struct kvr_options region = s->region;
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct wanted *w = &s->wanted[i];
		struct simulate_options o = { w->policy, w->index, s->workers,
		    s->capacity, s->seed, 0, false };

		region.ttl_ns = w->ttl_ns;
		must(simulate_new(&o, &region, &r->simulations[i]), w->name);
	}
	must(kvr_new(&region, &r->k), "making an index");
	must(kvr_prompt_new(r->k, &r->prompt), "a prompt");
}

static int64_t
arrival(const struct settings *s, const struct trace_request *q,
    int64_t first_ms)
{
	int64_t ms = s->spread ? q->arrival_ms : q->timestamp_ms - first_ms;
	double ns = (double)ms * 1e6 / s->speed;

	if (!(ns < 4e18))
		errx(ARGS_FAILED, "--speed %g: the trace would last for ever",
		    s->speed);
	return (int64_t)ns;
}

static void
give(struct run *r, const struct trace_request *q, int64_t now)
{
	size_t i;

	if (tokens_make(&r->tokens, q) != 0)
		errx(ARGS_FAILED, "out of memory");
	if (q->tokens > 0)
		must(kvr_prompt_set_tokens(r->prompt, NULL, r->tokens.tokens,
		    q->tokens), "hashing");
	for (i = 0; i < r->set.n; i++)
		must(simulate_request(r->simulations[i], r->prompt, q, now),
		    r->set.wanted[i].name);
}

static void
simulate_all(struct run *r)
{
	struct progress bar;
	struct trace_request q;
	int64_t first_ms = 0;
	size_t i;
	int result;

	progress_begin(&bar, r->set.quiet, progress_bytes(r->input));
	while ((result = trace_next(r->trace, &q)) == 1) {
		first_ms = r->requests == 0 ? q.timestamp_ms : first_ms;
		r->last = arrival(&r->set, &q, first_ms);
		give(r, &q, r->last);
		progress_show(&bar, trace_bytes(r->trace), ++r->requests);
	}
	for (i = 0; result == 0 && i < r->set.n; i++)
		must(simulate_drain(r->simulations[i]), r->set.wanted[i].name);
	progress_end(&bar);
	if (result != 0)
		errx(ARGS_FAILED, "%s", trace_error(r->trace));
	if (r->requests == 0)
		errx(ARGS_FAILED, "%s: no requests", r->name);
}

static void
report(const struct run *r)
{
	struct simulate_about about = { r->name, r->set.speed, r->requests,
	    r->last };
	struct simulate_row rows[POLICIES_MAX];
	size_t i;

	for (i = 0; i < r->set.n; i++)
		rows[i] = (struct simulate_row){ r->set.wanted[i].name,
		    r->simulations[i] };
	must(r->set.kv ? simulate_kv(stdout, rows, r->set.n) :
	    simulate_table(stdout, &about, rows, r->set.n), "reporting");
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
}

int
simulate_run(int argc, char **argv)
{
	static struct run r;
	size_t i;

	read_options(&r.set, argc, argv);
	open_trace(&r);
	make_simulations(&r);
	simulate_all(&r);
	report(&r);
	for (i = 0; i < r.set.n; i++)
		simulate_free(r.simulations[i]);
	kvr_prompt_free(r.prompt);
	kvr_free(r.k);
	tokens_free(&r.tokens);
	trace_free(r.trace);
	if (r.input != stdin)
		fclose(r.input);
	return 0;
}
