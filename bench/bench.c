/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-bench - what a request costs, step by step, beside the floor.
 *
 * kvroute-bench(1) says what each number means.
 */
#include "args.h"
#include "fit.h"
#include "flood.h"
#include "growth.h"
#include "load.h"
#include "measure.h"
#include "sample.h"
#include "threads.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEFAULT_WORKERS = 64,
	DEFAULT_TRIALS = 5,
	DEFAULT_FLOOD_TRIALS = 50,
	TRIALS_MAX = 1000
};
enum format { TEXT, KV };

struct settings {
	struct kvr_options region;
	uint32_t workers;
	uint32_t trials;  /* 0: as many as the measurement likes */
	uint32_t threads; /* 0: measure one request, step by step */
	bool flood;       /* measure a flood */
	bool growth;      /* measure curves, of which this one */
	size_t curve;
	enum format format;
	const char *trace; /* NULL: the sample */
};

struct result {
	const struct settings *settings;
	struct load load;
	struct measure measure;
	struct fit fit;
	uint64_t blocks;
};

static const char usage_text[] =
"usage: kvroute-bench [--workers N] [--block TOKENS] [--ttl SEC|endless]\n"
"           [--hash keyed|dynamo] [--memory SIZE] [--trials N]\n"
"           [--format text|kv] [trace]\n"
"       kvroute-bench --threads N [the same options] [trace]\n"
"       kvroute-bench --flood [the same options]\n"
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
"  --trials N        replays; the best counts (5)\n"
"  --threads N       what N threads reach, beside one; --trials pairs (9)\n"
"  --flood           prompts whose hashes agree in low bits, beside others\n"
"  --growth CURVE    how costs grow: blocks, workers, prompt, shared, chat,\n"
"                    fan, stairs, or all\n"
"  --format KIND     text, or kv (name=value) (text)\n";

/* ------------------------------------------------------------- options --- */

enum {
	O_WORKERS = 256, O_BLOCK, O_TTL, O_HASH, O_MEMORY, O_TRIALS, O_THREADS,
	O_FLOOD, O_GROWTH, O_FORMAT, O_HELP, O_VERSION
};
static const struct option long_options[] = {
	{ "workers", required_argument, NULL, O_WORKERS },
	{ "block", required_argument, NULL, O_BLOCK },
	{ "ttl", required_argument, NULL, O_TTL },
	{ "hash", required_argument, NULL, O_HASH },
	{ "memory", required_argument, NULL, O_MEMORY },
	{ "trials", required_argument, NULL, O_TRIALS },
	{ "threads", required_argument, NULL, O_THREADS },
	{ "flood", no_argument, NULL, O_FLOOD },
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
set_option(struct settings *s, int option, const char *text)
{
	static const char *const hashes[] = { "keyed", "dynamo" };
	static const char *const formats[] = { "text", "kv" };

	switch (option) {
	case O_WORKERS:
		s->workers = (uint32_t)args_number("workers", text, 1,
		    KVR_WORKERS_MAX);
		break;
	case O_BLOCK:
		s->region.block_size = (uint32_t)args_number("block", text, 1,
		    INT32_MAX);
		break;
	case O_TTL:
		s->region.ttl_ns = args_ttl("ttl", text);
		break;
	case O_HASH:
		s->region.hash = args_word("hash", text, hashes, 2) == 0 ?
		    KVR_HASH_KEYED : KVR_HASH_DYNAMO;
		break;
	case O_MEMORY:
		s->region.region_bytes = args_size("memory", text);
		break;
	case O_TRIALS:
		s->trials = (uint32_t)args_number("trials", text, 1,
		    TRIALS_MAX);
		break;
	case O_THREADS:
		s->threads = (uint32_t)args_number("threads", text, 2,
		    CREW_MOST);
		break;
	case O_FLOOD:
		s->flood = true;
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

	memset(s, 0, sizeof(*s));
	kvr_options_init(&s->region, sizeof(s->region));
	s->region.block_size = 16;
	s->workers = DEFAULT_WORKERS;
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(s, option, optarg);
	if (argc - optind > (s->flood || s->growth ? 0 : 1) ||
	    s->flood + s->growth + (s->threads > 0) > 1)
		usage();
	if (optind < argc)
		s->trace = argv[optind];
}

/* ----------------------------------------------------------- the result --- */

static void
read_trace(struct result *r)
{
	const char *trace = r->settings->trace;
	struct sample_options sample;
	bool standard = trace != NULL && strcmp(trace, "-") == 0;
	FILE *f = standard ? stdin : trace != NULL ? fopen(trace, "r") :
	    tmpfile();
	size_t i;

	if (f == NULL)
		err(ARGS_FAILED, "%s", trace == NULL ? "a temporary file" :
		    trace);
	sample_defaults(&sample);
	if (trace == NULL && sample_write(f, &sample) != 0)
		err(ARGS_FAILED, "a temporary file");
	if (trace == NULL)
		rewind(f);
	load_read(&r->load, f, standard ? "standard input" :
	    trace == NULL ? "sample" : trace);
	if (!standard)
		fclose(f);
	for (i = 0; i < r->load.n; i++)
		r->blocks += r->load.requests[i].tokens /
		    r->settings->region.block_size;
}

static double
index_ns(const struct measure *m)
{
	return m->expire_ns + m->match_ns + m->observe_ns;
}

static double
bytes_per_live(const struct fit *f)
{
	return f->live_max == 0 ? 0 : (double)f->bytes / (double)f->live_max;
}

static void
print_kv(const struct result *r)
{
	const struct measure *m = &r->measure;
	const struct {
		const char *name;
		double ns;
	} lines[] = {
		{ "floor_ns", m->floor_ns },
		{ "hash_ns", m->hash_ns },
		{ "match_ns", m->match_ns },
		{ "observe_ns", m->observe_ns },
		{ "expire_ns", m->expire_ns },
		{ "index_ns", index_ns(m) },
		{ "total_ns", m->hash_ns + index_ns(m) },
		{ "route_ns", m->route_ns },
		{ "route_busy_ns", m->route_busy_ns },
		{ "p50_ns", m->total[MEASURE_P50] },
		{ "p99_ns", m->total[MEASURE_P99] },
		{ "p999_ns", m->total[MEASURE_P999] },
		{ "index_p50_ns", m->index[MEASURE_P50] },
		{ "index_p99_ns", m->index[MEASURE_P99] },
		{ "index_p999_ns", m->index[MEASURE_P999] }
	};
	size_t i;

	printf("requests=%zu\nblocks=%" PRIu64 "\n", r->load.n, r->blocks);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		printf("%s=%.1f\n", lines[i].name, lines[i].ns);
	printf("live_max=%" PRIu64 "\nbytes_per_live=%.2f\n", r->fit.live_max,
	    bytes_per_live(&r->fit));
	printf("region_min_bytes=%" PRIu64 "\nevicted=%" PRIu64 "\ntruncated=%"
	    PRIu64 "\n", r->fit.bytes, m->evicted, m->truncated);
}

static void
print_step(const char *name, double ns, double floor_ns)
{
	printf("  %-22s %9.2f us  %6.2f x floor\n", name, ns / 1e3,
	    floor_ns > 0 ? ns / floor_ns : 0);
}

static void
print_text(const struct result *r)
{
	const struct measure *m = &r->measure;
	const struct kvr_options *o = &r->settings->region;

	printf("%zu requests, %" PRIu64 " blocks of %" PRIu32 " tokens, %"
	    PRIu32 " workers, ", r->load.n, r->blocks, o->block_size,
	    r->settings->workers);
	if (o->ttl_ns < 0)
		printf("TTL endless");
	else
		printf("TTL %g s", (double)o->ttl_ns / 1e9);
	printf(", best of %" PRIu32 "\n\nmean of a request\n",
	    r->settings->trials);
	print_step("floor: hashes alone", m->floor_ns, m->floor_ns);
	print_step("hash", m->hash_ns, m->floor_ns);
	print_step("match", m->match_ns, m->floor_ns);
	print_step("observe", m->observe_ns, m->floor_ns);
	print_step("expire", m->expire_ns, m->floor_ns);
	print_step("index (without hash)", index_ns(m), m->floor_ns);
	print_step("all of it", m->hash_ns + index_ns(m), m->floor_ns);
	print_step("cost function, apart", m->route_ns, m->floor_ns);
	print_step("  the same under load", m->route_busy_ns, m->floor_ns);
	printf("\n%-24s %9s %9s %9s us\n", "percentiles", "50", "99", "99.9");
	printf("  %-22s %9.2f %9.2f %9.2f\n", "index", m->index[0] / 1e3,
	    m->index[1] / 1e3, m->index[2] / 1e3);
	printf("  %-22s %9.2f %9.2f %9.2f\n", "all of it", m->total[0] / 1e3,
	    m->total[1] / 1e3, m->total[2] / 1e3);
	printf("\nmemory: %.2f bytes a live (block, worker) pair; %" PRIu64
	    " at the peak in %.1f KiB\n", bytes_per_live(&r->fit),
	    r->fit.live_max, (double)r->fit.bytes / 1024);
	if (m->evicted > 0 || m->truncated > 0)
		printf("the timed region was full (%" PRIu64 " entries "
		    "evicted, %" PRIu64 " prompts cut): more --memory?\n",
		    m->evicted, m->truncated);
}

/* -------------------------------------------------------- measurements --- */

/* One request, step by step. */
static void
bench_steps(struct settings *s)
{
	struct result r;

	if (s->trials == 0)
		s->trials = DEFAULT_TRIALS;
	memset(&r, 0, sizeof(r));
	r.settings = s;
	read_trace(&r);
	measure_load(&r.load, &s->region, s->workers, s->trials, &r.measure);
	fit_find(&r.load, &s->region, s->workers, &r.fit);
	if (s->format == KV)
		print_kv(&r);
	else
		print_text(&r);
	load_free(&r.load);
}

static void
bench_threads(const struct settings *s)
{
	struct result r;
	struct threads t;

	memset(&r, 0, sizeof(r));
	r.settings = s;
	read_trace(&r);
	threads_measure(&r.load, &s->region, s->workers, s->threads,
	    s->trials > 0 ? s->trials : THREADS_PAIRS, &t);
	if (s->format == KV)
		threads_print_kv(&t);
	else
		threads_print_text(&t);
	load_free(&r.load);
}

static void
bench_flood(const struct settings *s)
{
	struct flood f;

	flood_measure(&s->region, s->workers, s->trials > 0 ? s->trials :
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
	else if (settings.flood)
		bench_flood(&settings);
	else if (settings.growth)
		bench_growth(&settings);
	else
		bench_steps(&settings);
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	return 0;
}
