/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-replay - replay a trace through the router.
 *
 * Reads one request at a time, generates and hashes its tokens once, and
 * passes the same prompt to every policy, each with its own region.
 * kvroute-replay(1) describes the options and the model.
 */
#include "args_table.h"
#include "progress.h"
#include "table.h"
#include "policy_run.h"
#include "simulate.h"
#include "simulate_run.h"
#include "tokens.h"
#include "trace.h"

#include <bsd/string.h>
#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY (UINT64_C(256) << 20)
enum {
	DEFAULT_WORKERS = 8,
	DEFAULT_PREFILL_RATE = 10000,
	DEFAULT_DECODE_RATE = 50,
	DEFAULT_SEED = 1
};
#define RATE_MAX UINT64_C(1000000000000)

struct settings {
	struct kvr_options region;
	enum pass_policy policies[PASS_POLICIES];
	size_t n_policies;
	uint32_t workers;
	uint64_t prefill_rate;
	uint64_t decode_rate;
	double speed;
	enum report_format format;
	const char *trace; /* NULL: standard input */
	const char *file; /* holds the region; NULL: private memory */
	bool quiet;
};

struct replay {
	const struct settings *settings;
	FILE *input;
	const char *name;
	struct trace *trace;
	struct tokens tokens;
	struct kvr_prompt *prompt;
	struct pass *passes[PASS_POLICIES];
	struct kvr_options region; /* in force */
	uint64_t requests;
	uint64_t n_tokens;
	int64_t last_ms;
	int64_t hash_ns;
};

static const char usage_text[] =
"usage: kvroute-replay [-q] [--policy balanced|dynamo|half|round-robin]...\n"
"           [--workers N] [--block TOKENS] [--ttl SEC|endless]\n"
"           [--hash keyed|dynamo] [--seed N] [--memory SIZE]\n"
"           [--region FILE] [--speed X] [--prefill-rate N] [--decode-rate N]\n"
"           [--format text|kv|json] [trace]\n"
"       kvroute-replay --simulate [option]... [trace]\n"
"       kvroute-replay --help | --version\n";

/* -------------------------------------------------------------- options --- */

static void
set_defaults(struct settings *s)
{
	memset(s, 0, sizeof(*s));
	kvr_options_init(&s->region, sizeof(s->region));
	s->region.region_bytes = DEFAULT_MEMORY;
	s->region.block_size = 16;
	args_secret(&s->region, DEFAULT_SEED);
	s->workers = DEFAULT_WORKERS;
	s->prefill_rate = DEFAULT_PREFILL_RATE;
	s->decode_rate = DEFAULT_DECODE_RATE;
	s->speed = 1;
	s->format = REPORT_TEXT;
}

/* Modelled engines have more policies, also with an index after a colon. */
static void
check_policy(const char *text)
{
	size_t i, n = strcspn(text, ":");
	bool here = false, there = false;

	for (i = 0; i < PASS_POLICIES; i++)
		here = here || strcmp(text, pass_policy_names[i]) == 0;
	for (i = 0; i < SIMULATE_POLICIES; i++)
		there = there || (strlen(simulate_policy_names[i]) == n &&
		    memcmp(text, simulate_policy_names[i], n) == 0);
	if (there && !here)
		errx(ARGS_USAGE, "--policy %s: needs --simulate", text);
}

static void
add_policy(struct settings *s, const char *text)
{
	enum pass_policy policy;
	size_t i;

	check_policy(text);
	policy = (enum pass_policy)args_word("policy", text,
	    pass_policy_names, PASS_POLICIES);
	for (i = 0; i < s->n_policies; i++)
		if (s->policies[i] == policy)
			errx(ARGS_USAGE, "--policy %s: given twice", text);
	s->policies[s->n_policies++] = policy;
}

static void
take_policy(void *settings, const struct args_row *row, const char *text)
{
	(void)row;
	add_policy(settings, text);
}

static void
take_seed(void *settings, const struct args_row *row, const char *text)
{
	args_secret(&((struct settings *)settings)->region,
	    args_number(row->name, text, 0, INT64_MAX));
}

#define AT(member) offsetof(struct settings, member)

static const char *const hashes[] = { "keyed", "dynamo" };

static const struct args_row option_rows[] = {
	{ "policy", "NAME", "routing policy; repeat to compare (balanced)",
	    ARGS_CALL, .take = take_policy },
	{ "workers", "N", "number of workers (8)", ARGS_UINT32,
	    .at = AT(workers), .min = 1, .max = KVR_WORKERS_MAX },
	{ "block", "TOKENS", "index block size in tokens (16)", ARGS_UINT32,
	    .at = AT(region.block_size), .min = 1, .max = INT32_MAX },
	{ "ttl", "SEC", "how long a prefix counts as cached (120); endless",
	    ARGS_TTL, .at = AT(region.ttl_ns) },
	{ "hash", "KIND", "keyed, or dynamo for the reference's hashes (keyed)",
	    ARGS_WORD, .at = AT(region.hash), .max = 2, .words = hashes },
	{ "seed", "N", "seeds the secret, which also breaks ties (1)",
	    ARGS_CALL, .take = take_seed },
	{ "memory", "SIZE", "index size for each policy (256M)", ARGS_SIZE,
	    .at = AT(region.region_bytes) },
	{ "region", "FILE", "keep the index in FILE; start from its contents",
	    ARGS_STRING, .at = AT(file) },
	{ "speed", "X", "replay X times as fast as recorded (1)", ARGS_FACTOR,
	    .at = AT(speed) },
	{ "prefill-rate", "N",
	    "tokens/s of a modelled worker (10000); 0: no load", ARGS_UINT64,
	    .at = AT(prefill_rate), .max = RATE_MAX },
	{ "decode-rate", "N", "tokens/s of a running request (50)",
	    ARGS_UINT64, .at = AT(decode_rate), .min = 1, .max = RATE_MAX },
	{ "format", "KIND", "text, kv (name=value) or json (text)", ARGS_WORD,
	    .at = AT(format), .max = REPORT_FORMATS,
	    .words = report_format_names },
	{ "quiet", NULL, "no progress bar", ARGS_FLAG, 'q', .at = AT(quiet) },
	{ .kind = ARGS_PROSE, .help =
	    "\n--simulate models engines and their caches in full. It has its "
	    "own\noptions: kvroute-replay --simulate --help.\n" }
};

static const struct args_table table = {
	"kvroute-replay", usage_text,
	"\nReplays a Mooncake-format trace (a file, or standard input) "
	"through\nkvroute and reports how much of the prompts would have been "
	"cached.\n\n",
	21, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

static void
read_options(struct settings *s, int argc, char **argv)
{
	int next;

	set_defaults(s);
	next = args_parse(&table, s, argc, argv);
	if (argc - next > 1)
		args_usage(&table);
	if (next < argc && strcmp(argv[next], "-") != 0)
		s->trace = argv[next];
	if (s->n_policies == 0)
		s->policies[s->n_policies++] = PASS_BALANCED;
	if (s->file != NULL && s->n_policies > 1)
		errx(ARGS_USAGE, "--region: needs a single policy");
	s->region.max_workers = s->workers;
}

/* ------------------------------------------------------------ replaying --- */

static void
replay_must(int e, const char *what)
{
	if (e == KVR_ESYSTEM)
		err(ARGS_FAILED, "%s", what);
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

static void
open_files(struct replay *r)
{
	const struct settings *s = r->settings;

	r->input = args_input(s->trace, &r->name);
	r->trace = trace_new(r->input, s->trace == NULL ? r->name : s->trace);
	if (r->trace == NULL)
		errx(ARGS_FAILED, "out of memory");
}

static void
make_passes(struct replay *r)
{
	const struct settings *s = r->settings;
	size_t i;

	for (i = 0; i < s->n_policies; i++) {
		struct pass_options o = { s->policies[i], s->workers,
		    s->prefill_rate, s->decode_rate };

		replay_must(pass_new_in(s->file, &o, &s->region, &r->passes[i]),
		    s->file != NULL ? s->file : "creating the index");
	}
	r->region.size = sizeof(r->region);
	replay_must(kvr_options_get(pass_region(r->passes[0]), &r->region),
	    "options");
	replay_must(kvr_prompt_new(pass_region(r->passes[0]), &r->prompt),
	    "prompt");
}

/* Arrival in nanoseconds, --speed times as fast as recorded. */
static int64_t
replay_arrival(const struct settings *s, int64_t ms)
{
	double fast;

	if (s->speed >= 1 && s->speed <= 1)
		return ms * 1000000;
	fast = (double)ms * 1e6 / s->speed;
	if (!(fast < 9e18))
		errx(ARGS_FAILED, "--speed %g: the replay would take too long",
		    s->speed);
	return (int64_t)fast;
}

static void
replay_request(struct replay *r, const struct trace_request *q)
{
	int64_t now = replay_arrival(r->settings, q->arrival_ms), start;
	struct pass_choice c;
	size_t i;

	if (tokens_make(&r->tokens, q) != 0)
		errx(ARGS_FAILED, "out of memory");
	start = pass_clock();
	if (q->tokens > 0)
		replay_must(kvr_prompt_set_tokens(r->prompt, NULL,
		    r->tokens.tokens, q->tokens), "hashing");
	r->hash_ns += pass_clock() - start;
	for (i = 0; i < r->settings->n_policies; i++)
		replay_must(pass_request(r->passes[i], r->prompt, q, now, &c),
		    pass_policy_names[r->settings->policies[i]]);
	r->requests++;
	r->n_tokens += q->tokens;
	r->last_ms = now / 1000000;
}

static void
replay_all(struct replay *r)
{
	struct progress progress;
	struct trace_request q;
	int result;

	progress_begin(&progress, r->settings->quiet, progress_bytes(r->input));
	while ((result = trace_next(r->trace, &q)) == 1) {
		replay_request(r, &q);
		progress_show(&progress, trace_bytes(r->trace), r->requests);
	}
	progress_end(&progress);
	if (result != 0)
		errx(ARGS_FAILED, "%s", trace_error(r->trace));
	if (r->requests == 0)
		errx(ARGS_FAILED, "%s: no requests", r->name);
}

static void
replay_report(struct replay *r)
{
	const struct settings *s = r->settings;
	struct report about = { r->name, &r->region, r->requests, r->n_tokens,
	    r->last_ms, (double)r->hash_ns / (double)r->requests,
	    s->prefill_rate, s->decode_rate };

	replay_must(report_print(stdout, s->format, &about, r->passes,
	    s->n_policies), "reporting");
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
}

int
main(int argc, char **argv)
{
	struct settings settings;
	struct replay r = { .settings = &settings };
	size_t i;

	if (simulate_wanted(argc, argv))
		return simulate_run(argc, argv);
	read_options(&settings, argc, argv);
	open_files(&r);
	make_passes(&r);
	replay_all(&r);
	replay_report(&r);
	for (i = 0; i < settings.n_policies; i++)
		pass_free(r.passes[i]);
	kvr_prompt_free(r.prompt);
	tokens_free(&r.tokens);
	trace_free(r.trace);
	if (r.input != stdin)
		fclose(r.input);
	return 0;
}
