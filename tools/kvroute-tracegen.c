/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-tracegen - write a synthetic trace for kvroute-replay.
 */
#include "args_table.h"
#include "families.h"
#include "sample.h"
#include "session_gen.h"
#include "trace.h"

#include <kvroute.h>

#include <err.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
	REQUESTS_MAX = 1000000000,
	SECONDS_MAX = 86400 * 365,
	SESSIONS_MAX = 10000
};

/* Options as given; NULL: not given. Their meaning depends on the family. */
struct given {
	const char *seed, *requests, *duration, *tool_loops, *documents;
	const char *systems, *family, *rate, *prompt, *private, *output;
	const char *popularity, *users, *out, *sessions, *agents, *limit;
};

#define OTHER_FAMILY "is not an option of this family"

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

#define TEXT ARGS_STRING, .at = offsetof

static const struct args_row option_rows[] = {
	{ "seed", "N", "same seed, same trace (1)",
	    TEXT(struct given, seed) },
	{ "requests", "N", "number of requests (3000)",
	    TEXT(struct given, requests) },
	{ "duration", "SEC", "approximate length of the trace (600)",
	    TEXT(struct given, duration) },
	{ "tool-loops", "PERCENT",
	    "share of conversations by programs with tools (25)",
	    TEXT(struct given, tool_loops) },
	{ "documents", "PERCENT",
	    "share of conversations about a long text (10)",
	    TEXT(struct given, documents) },
	{ "systems", "N", "system prompts of each kind (20)",
	    TEXT(struct given, systems) },
	{ .kind = ARGS_PROSE, .column = 21,
	    .help = "\nWith --family, one kind of load instead:\n" },
	{ "family", "NAME",
	    "shared          one system prompt for all requests\n"
	    "documents       questions about a few documents\n"
	    "idle-documents  the same, one at a time\n"
	    "unshared        no common prefix\n"
	    "subagents       5 to 40 at once on a new prefix\n"
	    "bursts          shared, at times 5 x the rate for 10 s\n"
	    "chat            conversations of up to 12 turns\n"
	    "images          the same, an image each turn, unseen\n"
	    "openings        the same, 8 requests at once first\n"
	    "users           few users, each with a few chats",
	    TEXT(struct given, family) },
	{ "rate", "N", "mean requests per second", TEXT(struct given, rate) },
	{ "prompt", "TOKENS", "the common prefix or the document",
	    TEXT(struct given, prompt) },
	{ "private", "TOKENS", "mean of what follows, or of a chat's questions",
	    TEXT(struct given, private) },
	{ "output", "TOKENS", "mean output", TEXT(struct given, output) },
	{ .kind = ARGS_PROSE, .help =
	    "  --documents N      how many documents; of users, how many "
	    "chats\n" },
	{ "popularity", "KIND",
	    "of documents: even, or zipf, the k-th by 1/k (even)",
	    TEXT(struct given, popularity) },
	{ "users", "N", "how many users; at most as many as chats (1)",
	    TEXT(struct given, users) },
	{ .kind = ARGS_PROSE, .help =
	    "\nWith --family sessions, sessions of agents, a file each:\n" },
	{ "out", "FOLDER", "where to write session_0001.json, ...",
	    TEXT(struct given, out) },
	{ "sessions", "N", "how many (20)", TEXT(struct given, sessions) },
	{ .kind = ARGS_PROSE, .help =
	    "  --requests N       mean requests of a session's main agent "
	    "(50)\n" },
	{ "agents", "N", "sub-agents at once, at most; 0: none (5)",
	    TEXT(struct given, agents) },
	{ .kind = ARGS_PROSE, .help =
	    "  --prompt TOKENS    tools and system prompt (15000)\n" },
	{ "limit", "TOKENS", "of a prompt; a longer one is summarised (180000)",
	    TEXT(struct given, limit) }
};

static const struct args_table table = {
	"kvroute-tracegen", usage_text,
	"\nWrites a trace of synthetic conversations that share system "
	"prompts.\n\n",
	25, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

/* The argument of this option; NULL: not given. */
static const char *
text_of(const struct given *g, const char *option)
{
	const struct args_row *row = option_rows;

	while (row->name == NULL || strcmp(row->name, option) != 0)
		row++;
	return *(const char *const *)((const char *)g + row->at);
}

/* The number given, or `otherwise`. */
static uint64_t
number_of(const struct given *g, const char *option, uint64_t min,
    uint64_t max, uint64_t otherwise)
{
	const char *text = text_of(g, option);

	return text == NULL ? otherwise : args_number(option, text, min, max);
}

static void
refuse_option(const struct given *g, const char *option, const char *why)
{
	if (text_of(g, option) != NULL)
		errx(ARGS_USAGE, "--%s %s", option, why);
}

static void
refuse_sessions(const struct given *g)
{
	refuse_option(g, "out", "needs --family sessions");
	refuse_option(g, "sessions", "needs --family sessions");
	refuse_option(g, "agents", "needs --family sessions");
	refuse_option(g, "limit", "needs --family sessions");
}

static void
refuse_sample(const struct given *g)
{
	refuse_option(g, "duration", "and --family exclude each other");
	refuse_option(g, "tool-loops", "and --family exclude each other");
	refuse_option(g, "systems", "and --family exclude each other");
}

static int
write_sample(const struct given *g)
{
	struct sample_options o;

	refuse_sessions(g);
	refuse_option(g, "prompt", "needs --family");
	refuse_option(g, "rate", "needs --family");
	refuse_option(g, "private", "needs --family");
	refuse_option(g, "output", "needs --family");
	refuse_option(g, "popularity", "needs --family");
	refuse_option(g, "users", "needs --family users");
	sample_defaults(&o);
	o.seed = number_of(g, "seed", 0, INT64_MAX, o.seed);
	o.requests = number_of(g, "requests", 1, REQUESTS_MAX, o.requests);
	o.duration_s = number_of(g, "duration", 1, SECONDS_MAX, o.duration_s);
	o.tool_loops = (uint32_t)number_of(g, "tool-loops", 0, 100,
	    o.tool_loops);
	o.documents = (uint32_t)number_of(g, "documents", 0, 100, o.documents);
	o.systems = (uint32_t)number_of(g, "systems", 1, 100000, o.systems);
	if (o.tool_loops + o.documents > 100)
		errx(ARGS_USAGE, "--tool-loops and --documents add up to more "
		    "than 100 percent");
	return sample_write(stdout, &o);
}

static void
set_rate(const struct given *g, struct family_options *o)
{
	if (text_of(g, "rate") != NULL)
		o->gap_us = (uint64_t)(1e6 / args_factor("rate",
		    text_of(g, "rate")) + 0.5);
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
	    text_of(g, "family"), family_names, FAMILIES);

	refuse_sample(g);
	refuse_sessions(g);
	family_defaults(&o, family);
	if (o.documents == 0) {
		refuse_option(g, "documents", OTHER_FAMILY);
		refuse_option(g, "popularity", OTHER_FAMILY);
	}
	if (family != FAMILY_USERS)
		refuse_option(g, "users", "needs --family users");
	else
		refuse_option(g, "popularity", OTHER_FAMILY);
	if (o.private == 0)
		refuse_option(g, "private", OTHER_FAMILY);
	o.seed = number_of(g, "seed", 0, INT64_MAX, o.seed);
	o.requests = number_of(g, "requests", 1, FAMILY_REQUESTS_MAX,
	    o.requests);
	o.prompt = number_of(g, "prompt", 1, FAMILY_PROMPT_MAX, o.prompt);
	o.documents = number_of(g, "documents", 1, FAMILY_DOCUMENTS_MAX,
	    o.documents);
	o.private = number_of(g, "private", 1, FAMILY_LENGTH_MAX, o.private);
	o.output = number_of(g, "output", 1, FAMILY_LENGTH_MAX, o.output);
	if (text_of(g, "popularity") != NULL)
		o.popularity = (enum family_popularity)args_word("popularity",
		    text_of(g, "popularity"), family_popularities,
		    FAMILY_POPULARITIES);
	o.users = number_of(g, "users", 1, o.documents, o.users);
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
	uint64_t n = number_of(g, "sessions", 1, SESSIONS_MAX, 20), i;

	refuse_sample(g);
	refuse_option(g, "rate", OTHER_FAMILY);
	refuse_option(g, "documents", OTHER_FAMILY);
	refuse_option(g, "private", OTHER_FAMILY);
	refuse_option(g, "output", OTHER_FAMILY);
	refuse_option(g, "popularity", OTHER_FAMILY);
	if (text_of(g, "out") == NULL)
		errx(ARGS_USAGE, "--family sessions needs --out");
	session_gen_defaults(&o);
	o.seed = number_of(g, "seed", 0, INT64_MAX, o.seed);
	o.prompt = number_of(g, "prompt", 2, SESSION_GEN_PROMPT_MAX, o.prompt);
	o.requests = number_of(g, "requests", 1, SESSION_GEN_REQUESTS_MAX,
	    o.requests);
	o.agents = number_of(g, "agents", 0, SESSION_GEN_AGENTS_MAX, o.agents);
	o.limit = number_of(g, "limit", 1, SESSION_GEN_LIMIT_MAX, 0);
	for (i = 1; i <= n; i++)
		write_session(text_of(g, "out"), &o, i);
	return 0;
}

static int
write_wanted(const struct given *g)
{
	if (text_of(g, "family") == NULL)
		return write_sample(g);
	return strcmp(text_of(g, "family"), "sessions") == 0 ?
	    write_sessions(g) : write_family(g);
}

int
main(int argc, char **argv)
{
	struct given g = { .seed = NULL };

	if (args_parse(&table, &g, argc, argv) != argc)
		args_usage(&table);
	if (write_wanted(&g) != 0)
		err(ARGS_FAILED, "standard output");
	return 0;
}
