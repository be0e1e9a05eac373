/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-tracegen - write a synthetic trace for kvroute-replay.
 */
#include "args.h"
#include "sample.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <stdlib.h>

enum {
	O_SEED = 256, O_REQUESTS, O_DURATION, O_TOOL_LOOPS, O_DOCUMENTS,
	O_SYSTEMS, O_HELP, O_VERSION
};
enum { REQUESTS_MAX = 1000000000, SECONDS_MAX = 86400 * 365 };

static const char usage_text[] =
"usage: kvroute-tracegen [--seed N] [--requests N] [--duration SEC]\n"
"           [--tool-loops PERCENT] [--documents PERCENT] [--systems N]\n"
"       kvroute-tracegen --help | --version\n";

static const char help_text[] =
"\nWrites a trace of synthetic conversations that share system prompts.\n\n"
"  --seed N               same seed, same trace (1)\n"
"  --requests N           number of requests (3000)\n"
"  --duration SEC         approximate length of the trace (600)\n"
"  --tool-loops PERCENT   share of conversations by programs with tools (25)\n"
"  --documents PERCENT    share of conversations about a long text (10)\n"
"  --systems N            system prompts of each kind (20)\n";

static const struct option long_options[] = {
	{ "seed", required_argument, NULL, O_SEED },
	{ "requests", required_argument, NULL, O_REQUESTS },
	{ "duration", required_argument, NULL, O_DURATION },
	{ "tool-loops", required_argument, NULL, O_TOOL_LOOPS },
	{ "documents", required_argument, NULL, O_DOCUMENTS },
	{ "systems", required_argument, NULL, O_SYSTEMS },
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
set_option(struct sample_options *o, int option, const char *text)
{
	switch (option) {
	case O_SEED:
		o->seed = args_number("seed", text, 0, INT64_MAX);
		break;
	case O_REQUESTS:
		o->requests = args_number("requests", text, 1, REQUESTS_MAX);
		break;
	case O_DURATION:
		o->duration_s = args_number("duration", text, 1, SECONDS_MAX);
		break;
	case O_TOOL_LOOPS:
		o->tool_loops = (uint32_t)args_number("tool-loops", text, 0,
		    100);
		break;
	case O_DOCUMENTS:
		o->documents = (uint32_t)args_number("documents", text, 0, 100);
		break;
	case O_SYSTEMS:
		o->systems = (uint32_t)args_number("systems", text, 1, 100000);
		break;
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-tracegen %s\n", kvr_version_string());
		exit(0);
	default:
		usage();
	}
}

int
main(int argc, char **argv)
{
	struct sample_options o;
	int option;

	sample_defaults(&o);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(&o, option, optarg);
	if (optind != argc)
		usage();
	if (o.tool_loops + o.documents > 100)
		errx(ARGS_USAGE, "--tool-loops and --documents add up to more "
		    "than 100 percent");
	if (sample_write(stdout, &o) != 0)
		err(ARGS_FAILED, "standard output");
	return 0;
}
