/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-tracegen - write a synthetic trace for kvroute-replay.
 */
#include "args.h"
#include "families.h"
#include "sample.h"
#include "session_gen.h"
#include "trace.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum {
	O_SEED = 256, O_REQUESTS, O_DURATION, O_TOOL_LOOPS, O_DOCUMENTS,
	O_SYSTEMS, O_FAMILY, O_PROMPT, O_RATE,
	O_PRIVATE, O_OUTPUT, O_POPULARITY, O_USERS,
	O_OUT, O_SESSIONS, O_AGENTS, O_LIMIT, O_END, O_HELP, O_VERSION
};
enum {
	REQUESTS_MAX = 1000000000,
	SECONDS_MAX = 86400 * 365,
	SESSIONS_MAX = 10000
};

/* Options as given; NULL: not given. Their meaning depends on the family. */
struct given {
	const char *text[O_END - O_SEED];
};

static const char usage_text[] =
"usage: kvroute-tracegen [--seed N] [--requests N] [--duration SEC]\n"
"           [--tool-loops PERCENT] [--documents PERCENT] [--systems N]\n"
"       kvroute-tracegen --family NAME [--seed N] [--requests N] [--rate N]\n"
"           [--prompt TOKENS] [--private TOKENS] [--output TOKENS]\n"
"           [--documents N] [--popularity even|zipf] [--users N]\n"
"       kvroute-tracegen --family sessions --out FOLDER [--seed N]\n"
"           [--sessions N] [--requests N] [--agents N] [--prompt TOKENS]\n"
"           [--limit TOKENS]\n"
"       kvroute-tracegen --help | --version\n";

static const char help_text[] =
"\nWrites a trace of synthetic conversations that share system prompts.\n\n"
"  --seed N               same seed, same trace (1)\n"
"  --requests N           number of requests (3000)\n"
"  --duration SEC         approximate length of the trace (600)\n"
"  --tool-loops PERCENT   share of conversations by programs with tools (25)\n"
"  --documents PERCENT    share of conversations about a long text (10)\n"
"  --systems N            system prompts of each kind (20)\n"
"\nWith --family, one kind of load instead:\n"
"  --family NAME      shared          one system prompt for all requests\n"
"                     documents       questions about a few documents\n"
"                     idle-documents  the same, one at a time\n"
"                     unshared        no common prefix\n"
"                     subagents       5 to 40 at once on a new prefix\n"
"                     bursts          shared, at times 5 x the rate for 10 s\n"
"                     chat            conversations of up to 12 turns\n"
"                     images          the same, an image each turn, unseen\n"
"                     openings        the same, 8 requests at once first\n"
"                     users           few users, each with a few chats\n"
"  --rate N           mean requests per second\n"
"  --prompt TOKENS    the common prefix or the document\n"
"  --private TOKENS   mean of what follows, or of a chat's questions\n"
"  --output TOKENS    mean output\n"
"  --documents N      how many documents; of users, how many chats\n"
"  --popularity KIND  of documents: even, or zipf, the k-th by 1/k (even)\n"
"  --users N          how many users; at most as many as chats (1)\n"
"\nWith --family sessions, sessions of agents, a file each:\n"
"  --out FOLDER       where to write session_0001.json, ...\n"
"  --sessions N       how many (20)\n"
"  --requests N       mean requests of a session's main agent (50)\n"
"  --agents N         sub-agents at once, at most; 0: none (5)\n"
"  --prompt TOKENS    tools and system prompt (15000)\n"
"  --limit TOKENS     of a prompt; a longer one is summarised (180000)\n";

static const struct option long_options[] = {
	{ "seed", required_argument, NULL, O_SEED },
	{ "requests", required_argument, NULL, O_REQUESTS },
	{ "duration", required_argument, NULL, O_DURATION },
	{ "tool-loops", required_argument, NULL, O_TOOL_LOOPS },
	{ "documents", required_argument, NULL, O_DOCUMENTS },
	{ "systems", required_argument, NULL, O_SYSTEMS },
	{ "family", required_argument, NULL, O_FAMILY },
	{ "prompt", required_argument, NULL, O_PROMPT },
	{ "rate", required_argument, NULL, O_RATE },
	{ "private", required_argument, NULL, O_PRIVATE },
	{ "output", required_argument, NULL, O_OUTPUT },
	{ "popularity", required_argument, NULL, O_POPULARITY },
	{ "users", required_argument, NULL, O_USERS },
	{ "out", required_argument, NULL, O_OUT },
	{ "sessions", required_argument, NULL, O_SESSIONS },
	{ "agents", required_argument, NULL, O_AGENTS },
	{ "limit", required_argument, NULL, O_LIMIT },
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

static const char *
text_of(const struct given *g, int option)
{
	return g->text[option - O_SEED];
}

/* The number given, or `otherwise`. */
static uint64_t
number_of(const struct given *g, int option, uint64_t min, uint64_t max,
    uint64_t otherwise)
{
	const char *text = text_of(g, option);

	return text == NULL ? otherwise :
	    args_number(long_options[option - O_SEED].name, text, min, max);
}

static void
refuse(const struct given *g, int option, const char *why)
{
	if (text_of(g, option) != NULL)
		errx(ARGS_USAGE, "--%s %s", long_options[option - O_SEED].name,
		    why);
}

static void
refuse_sessions(const struct given *g)
{
	refuse(g, O_OUT, "needs --family sessions");
	refuse(g, O_SESSIONS, "needs --family sessions");
	refuse(g, O_AGENTS, "needs --family sessions");
	refuse(g, O_LIMIT, "needs --family sessions");
}

static void
refuse_sample(const struct given *g)
{
	refuse(g, O_DURATION, "and --family exclude each other");
	refuse(g, O_TOOL_LOOPS, "and --family exclude each other");
	refuse(g, O_SYSTEMS, "and --family exclude each other");
}

static int
write_sample(const struct given *g)
{
	struct sample_options o;

	refuse_sessions(g);
	refuse(g, O_PROMPT, "needs --family");
	refuse(g, O_RATE, "needs --family");
	refuse(g, O_PRIVATE, "needs --family");
	refuse(g, O_OUTPUT, "needs --family");
	refuse(g, O_POPULARITY, "needs --family");
	refuse(g, O_USERS, "needs --family users");
	sample_defaults(&o);
	o.seed = number_of(g, O_SEED, 0, INT64_MAX, o.seed);
	o.requests = number_of(g, O_REQUESTS, 1, REQUESTS_MAX, o.requests);
	o.duration_s = number_of(g, O_DURATION, 1, SECONDS_MAX, o.duration_s);
	o.tool_loops = (uint32_t)number_of(g, O_TOOL_LOOPS, 0, 100,
	    o.tool_loops);
	o.documents = (uint32_t)number_of(g, O_DOCUMENTS, 0, 100, o.documents);
	o.systems = (uint32_t)number_of(g, O_SYSTEMS, 1, 100000, o.systems);
	if (o.tool_loops + o.documents > 100)
		errx(ARGS_USAGE, "--tool-loops and --documents add up to more "
		    "than 100 percent");
	return sample_write(stdout, &o);
}

static void
set_rate(const struct given *g, struct family_options *o)
{
	if (text_of(g, O_RATE) != NULL)
		o->gap_us = (uint64_t)(1e6 / args_factor("rate",
		    text_of(g, O_RATE)) + 0.5);
	/* Times between requests may exceed their mean. */
	if (o->requests > (uint64_t)TRACE_SPAN_MAX_MS / 2 * 1000 / o->gap_us)
		errx(ARGS_USAGE, "--requests %llu at this --rate take more "
		    "than a year", (unsigned long long)o->requests);
}

static int
write_family(const struct given *g)
{
	struct family_options o;
	enum family family = (enum family)args_word("family",
	    text_of(g, O_FAMILY), family_names, FAMILIES);

	refuse_sample(g);
	refuse_sessions(g);
	family_defaults(&o, family);
	if (o.documents == 0) {
		refuse(g, O_DOCUMENTS, "is not an option of this family");
		refuse(g, O_POPULARITY, "is not an option of this family");
	}
	if (family != FAMILY_USERS)
		refuse(g, O_USERS, "needs --family users");
	else
		refuse(g, O_POPULARITY, "is not an option of this family");
	if (o.private == 0)
		refuse(g, O_PRIVATE, "is not an option of this family");
	o.seed = number_of(g, O_SEED, 0, INT64_MAX, o.seed);
	o.requests = number_of(g, O_REQUESTS, 1, FAMILY_REQUESTS_MAX,
	    o.requests);
	o.prompt = number_of(g, O_PROMPT, 1, FAMILY_PROMPT_MAX, o.prompt);
	o.documents = number_of(g, O_DOCUMENTS, 1, FAMILY_DOCUMENTS_MAX,
	    o.documents);
	o.private = number_of(g, O_PRIVATE, 1, FAMILY_LENGTH_MAX, o.private);
	o.output = number_of(g, O_OUTPUT, 1, FAMILY_LENGTH_MAX, o.output);
	if (text_of(g, O_POPULARITY) != NULL)
		o.popularity = (enum family_popularity)args_word("popularity",
		    text_of(g, O_POPULARITY), family_popularities,
		    FAMILY_POPULARITIES);
	o.users = number_of(g, O_USERS, 1, o.documents, o.users);
	set_rate(g, &o);
	return family_write(stdout, &o);
}

static void
write_session(const char *folder, const struct session_gen *o, uint64_t n)
{
	size_t size = strlen(folder) + 40;
	char *path = malloc(size);
	FILE *f;

	if (path == NULL)
		err(ARGS_FAILED, "session");
	snprintf(path, size, "%s/session_%04llu.json", folder,
	    (unsigned long long)n);
	f = fopen(path, "w");
	if (f == NULL || session_gen_write(f, o, n) != 0 || fclose(f) != 0)
		err(ARGS_FAILED, "%s", path);
	free(path);
}

static int
write_sessions(const struct given *g)
{
	struct session_gen o;
	uint64_t n = number_of(g, O_SESSIONS, 1, SESSIONS_MAX, 20), i;

	refuse_sample(g);
	refuse(g, O_RATE, "is not an option of this family");
	refuse(g, O_DOCUMENTS, "is not an option of this family");
	refuse(g, O_PRIVATE, "is not an option of this family");
	refuse(g, O_OUTPUT, "is not an option of this family");
	refuse(g, O_POPULARITY, "is not an option of this family");
	if (text_of(g, O_OUT) == NULL)
		errx(ARGS_USAGE, "--family sessions needs --out");
	session_gen_defaults(&o);
	o.seed = number_of(g, O_SEED, 0, INT64_MAX, o.seed);
	o.prompt = number_of(g, O_PROMPT, 2, SESSION_GEN_PROMPT_MAX, o.prompt);
	o.requests = number_of(g, O_REQUESTS, 1, SESSION_GEN_REQUESTS_MAX,
	    o.requests);
	o.agents = number_of(g, O_AGENTS, 0, SESSION_GEN_AGENTS_MAX, o.agents);
	o.limit = number_of(g, O_LIMIT, 1, SESSION_GEN_LIMIT_MAX, 0);
	for (i = 1; i <= n; i++)
		write_session(text_of(g, O_OUT), &o, i);
	return 0;
}

static int
write_wanted(const struct given *g)
{
	if (text_of(g, O_FAMILY) == NULL)
		return write_sample(g);
	return strcmp(text_of(g, O_FAMILY), "sessions") == 0 ?
	    write_sessions(g) : write_family(g);
}

static void
take_option(struct given *g, int option, const char *text)
{
	switch (option) {
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-tracegen %s\n", kvr_version_string());
		exit(0);
	case '?':
		usage();
	default:
		g->text[option - O_SEED] = text;
	}
}

int
main(int argc, char **argv)
{
	struct given g = { { NULL } };
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		take_option(&g, option, optarg);
	if (optind != argc)
		usage();
	if (write_wanted(&g) != 0)
		err(ARGS_FAILED, "standard output");
	return 0;
}
