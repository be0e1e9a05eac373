/* SPDX-License-Identifier: BSD-2-Clause */
/* chats_options.c - the command line of kvroute-chats. */
#include "chats.h"

#include "args.h"
#include "session_gen.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const chats_endpoint_names[CHATS_ENDPOINTS] = {
	[CHATS_CHAT] = "chat",
	[CHATS_COMPLETIONS] = "completions",
	[CHATS_RESPONSES] = "responses",
	[CHATS_MESSAGES] = "messages"
};

const char *const chats_endpoint_paths[CHATS_ENDPOINTS] = {
	[CHATS_CHAT] = "/v1/chat/completions",
	[CHATS_COMPLETIONS] = "/v1/completions",
	[CHATS_RESPONSES] = "/v1/responses",
	[CHATS_MESSAGES] = "/v1/messages"
};

const char *const chats_stage_names[CHATS_STAGES] = {
	[CHATS_STAY] = "never",
	[CHATS_HALF_BODY] = "half-body",
	[CHATS_SENT] = "sent",
	[CHATS_HEADERS] = "headers",
	[CHATS_FIRST_EVENT] = "first-event",
	[CHATS_BYTES] = "bytes"
};

const char *const chats_format_names[CHATS_FORMATS] = {
	[CHATS_TEXT] = "text",
	[CHATS_KV] = "kv",
	[CHATS_JSON] = "json",
	[CHATS_TSV] = "tsv"
};

enum {
	O_URL = 256, O_ENDPOINT, O_PATH, O_MODEL, O_HEADER, O_NO_STREAM,
	O_NO_USAGE, O_CHATS, O_REQUESTS, O_SECONDS, O_WARM_UP, O_TIMEOUT,
	O_SEED, O_SYSTEMS, O_SYSTEM_BYTES, O_TURNS, O_TURN_BYTES,
	O_ANSWER_TOKENS, O_THINK_MS, O_BODY, O_MAKE_BODY, O_VARY, O_ABORT,
	O_SESSIONS, O_AGENTS, O_PROMPT, O_LIMIT, O_SHRINK, O_SESSION_HEADER,
	O_ABORT_PERCENT, O_ABORT_BYTES, O_PID, O_FORMAT, O_HELP, O_VERSION
};
enum {
	CHATS_MAX = 10000, REQUESTS_MAX = 1000000000, TEXT_MAX = 64 << 20,
	SYSTEMS_MAX = 100000, TURNS_MAX = 100000, TOKENS_MAX = 1000000,
	MS_MAX = 3600000, SESSIONS_MAX = 10000, LIMIT_MIN = 1000,
	SHRINK_MAX = 10000, TURNS_OF_CHATS = 6, TURNS_OF_AGENTS = 50
};

static const char usage_text[] =
"usage: kvroute-chats --url URL [--endpoint NAME] [--path PATH]\n"
"           [--model NAME] [--header LINE] [--no-stream] [--no-usage]\n"
"           [--chats N] [--requests N] [--seconds S] [--warm-up S]\n"
"           [--timeout S] [--seed N] [--systems N] [--system-bytes N]\n"
"           [--turns N] [--turn-bytes N] [--answer-tokens N] [--think-ms N]\n"
"           [--body FILE] [--vary] [--abort STAGE] [--abort-percent N]\n"
"           [--abort-bytes N] [--pid PID,...] [--format FORMAT] [-q]\n"
"       kvroute-chats --url URL --sessions N [--agents N] [--prompt TOKENS]\n"
"           [--limit TOKENS] [--shrink N] [--session-header NAME] ...\n"
"       kvroute-chats --make-body BYTES [--endpoint NAME] [--model NAME] ...\n"
"       kvroute-chats --help | --version\n";

static const char help_text[] =
"\nSimulates many users of an OpenAI-compatible server and prints statistics.\n"
"Users have chats of several turns that begin with shared system prompts;\n"
"each turn sends the whole chat.\n\n"
"  --url URL              http://127.0.0.1:8080\n"
"  --endpoint NAME        chat, completions, responses, messages (chat)\n"
"  --path PATH            instead of the endpoint's, such as /v1/completions\n"
"  --model NAME           named in requests (kvroute)\n"
"  --header LINE          additional header, 'Name: value'; at most 8\n"
"  --no-stream            no event streams\n"
"  --no-usage             streams without include_usage\n"
"  --chats N              users, or requests, at a time (16)\n"
"  --requests N           in total; the same ones each time\n"
"  --seconds S            begin no request later (10, or until --requests)\n"
"  --warm-up S            do not count requests begun before (0)\n"
"  --timeout S            of a request (60)\n"
"  --seed N               of the texts (1)\n"
"  --systems N            system prompts, the first ones most used (8)\n"
"  --system-bytes N       length of each (6000)\n"
"  --turns N              of a chat (6)\n"
"  --turn-bytes N         length of a user's message (400)\n"
"  --answer-tokens N      max_tokens (the server's default)\n"
"  --think-ms N           pause between turns, half to one and a half (100)\n"
"  --sessions N           agents with tools, not chats: sessions in all,\n"
"                         --chats at a time, --turns requests on average (50)\n"
"  --agents N             sub-agents of a session at a time, at most (5)\n"
"  --prompt TOKENS        tools and system prompt of an agent (15000)\n"
"  --limit TOKENS         a longer prompt is replaced by a summary (180000)\n"
"  --shrink N             divide all these lengths (1)\n"
"  --session-header NAME  send the session's id in this header\n"
"  --body FILE            send this repeatedly instead, without pauses\n"
"  --vary                 with a number over its last 0000000000\n"
"  --make-body BYTES      write such a file\n"
"  --abort STAGE          close the connection: half-body, sent, headers,\n"
"                         first-event, bytes (never)\n"
"  --abort-percent N      of the requests (100)\n"
"  --abort-bytes N        after this many bytes of the response (1)\n"
"  --pid PID,...          report CPU time and memory of these processes\n"
"  --format FORMAT        text, kv, json, tsv (text)\n"
"  -q                     no progress on the terminal\n";

static const struct option long_options[] = {
	{ "url", required_argument, NULL, O_URL },
	{ "endpoint", required_argument, NULL, O_ENDPOINT },
	{ "path", required_argument, NULL, O_PATH },
	{ "model", required_argument, NULL, O_MODEL },
	{ "header", required_argument, NULL, O_HEADER },
	{ "no-stream", no_argument, NULL, O_NO_STREAM },
	{ "no-usage", no_argument, NULL, O_NO_USAGE },
	{ "chats", required_argument, NULL, O_CHATS },
	{ "requests", required_argument, NULL, O_REQUESTS },
	{ "seconds", required_argument, NULL, O_SECONDS },
	{ "warm-up", required_argument, NULL, O_WARM_UP },
	{ "timeout", required_argument, NULL, O_TIMEOUT },
	{ "seed", required_argument, NULL, O_SEED },
	{ "systems", required_argument, NULL, O_SYSTEMS },
	{ "system-bytes", required_argument, NULL, O_SYSTEM_BYTES },
	{ "turns", required_argument, NULL, O_TURNS },
	{ "turn-bytes", required_argument, NULL, O_TURN_BYTES },
	{ "answer-tokens", required_argument, NULL, O_ANSWER_TOKENS },
	{ "think-ms", required_argument, NULL, O_THINK_MS },
	{ "body", required_argument, NULL, O_BODY },
	{ "make-body", required_argument, NULL, O_MAKE_BODY },
	{ "vary", no_argument, NULL, O_VARY },
	{ "sessions", required_argument, NULL, O_SESSIONS },
	{ "agents", required_argument, NULL, O_AGENTS },
	{ "prompt", required_argument, NULL, O_PROMPT },
	{ "limit", required_argument, NULL, O_LIMIT },
	{ "shrink", required_argument, NULL, O_SHRINK },
	{ "session-header", required_argument, NULL, O_SESSION_HEADER },
	{ "abort", required_argument, NULL, O_ABORT },
	{ "abort-percent", required_argument, NULL, O_ABORT_PERCENT },
	{ "abort-bytes", required_argument, NULL, O_ABORT_BYTES },
	{ "pid", required_argument, NULL, O_PID },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

static void
defaults(struct chats_options *o)
{
	memset(o, 0, sizeof(*o));
	o->model = "kvroute";
	o->stream = o->usage = true;
	o->chats = 16;
	o->timeout_ns = INT64_C(60000000000);
	o->seed = 1;
	o->systems = 8;
	o->system_bytes = 6000;
	o->agents = 5;
	o->prompt = 15000;
	o->limit = SESSION_GEN_LIMIT;
	o->shrink = 1;
	o->turn_bytes = 400;
	o->think_ns = 100000000;
	o->abort_percent = 100;
	o->abort_bytes = 1;
}

static _Noreturn void
usage(void)
{
	fputs(usage_text, stderr);
	exit(ARGS_USAGE);
}

static void
add_header(struct chats_options *o, const char *line)
{
	if (o->n_headers == CHATS_HEADERS_MAX)
		errx(ARGS_USAGE, "--header: more than %d", CHATS_HEADERS_MAX);
	if (strchr(line, ':') == NULL)
		errx(ARGS_USAGE, "--header %s: not 'Name: value'", line);
	o->headers[o->n_headers++] = line;
}

static void
set_pids(struct chats_options *o, char *list)
{
	char *rest = NULL, *pid;

	for (pid = strtok_r(list, ",", &rest); pid != NULL;
	    pid = strtok_r(NULL, ",", &rest)) {
		if (o->n_pids == CHATS_PIDS_MAX)
			errx(ARGS_USAGE, "--pid: more than %d", CHATS_PIDS_MAX);
		o->pids[o->n_pids++] = (int)args_number("pid", pid, 1,
		    INT32_MAX);
	}
}

/* The server, and the amount of requests. */
static bool
set_request(struct chats_options *o, int option, char *text)
{
	switch (option) {
	case O_URL:
		o->url = text;
		return true;
	case O_ENDPOINT:
		o->endpoint = (enum chats_endpoint)args_word("endpoint", text,
		    chats_endpoint_names, CHATS_ENDPOINTS);
		return true;
	case O_PATH:
		o->path = text;
		return true;
	case O_MODEL:
		o->model = text;
		return true;
	case O_HEADER:
		add_header(o, text);
		return true;
	case O_NO_STREAM:
		o->stream = false;
		return true;
	case O_NO_USAGE:
		o->usage = false;
		return true;
	case O_CHATS:
		o->chats = (uint32_t)args_number("chats", text, 1, CHATS_MAX);
		return true;
	case O_REQUESTS:
		o->requests = args_number("requests", text, 1, REQUESTS_MAX);
		return true;
	case O_SECONDS:
		o->run_ns = (int64_t)(args_factor("seconds", text) * 1e9);
		return true;
	case O_WARM_UP:
		o->warm_up_ns = (int64_t)(args_factor("warm-up", text) * 1e9);
		return true;
	case O_TIMEOUT:
		o->timeout_ns = (int64_t)(args_factor("timeout", text) * 1e9);
		return true;
	default:
		return false;
	}
}

/* The texts. */
static bool
set_text(struct chats_options *o, int option, const char *text)
{
	switch (option) {
	case O_SEED:
		o->seed = args_number("seed", text, 0, INT64_MAX);
		return true;
	case O_SYSTEMS:
		o->systems = (uint32_t)args_number("systems", text, 1,
		    SYSTEMS_MAX);
		return true;
	case O_SYSTEM_BYTES:
		o->system_bytes = args_number("system-bytes", text, 0,
		    TEXT_MAX);
		return true;
	case O_TURNS:
		o->turns = (uint32_t)args_number("turns", text, 1, TURNS_MAX);
		return true;
	case O_TURN_BYTES:
		o->turn_bytes = args_number("turn-bytes", text, 0, TEXT_MAX);
		return true;
	case O_ANSWER_TOKENS:
		o->answer_tokens = (uint32_t)args_number("answer-tokens", text,
		    1, TOKENS_MAX);
		return true;
	case O_THINK_MS:
		o->think_ns = (int64_t)args_number("think-ms", text, 0,
		    MS_MAX) * 1000000;
		return true;
	case O_BODY:
		o->body = text;
		return true;
	case O_MAKE_BODY:
		o->make_body = args_number("make-body", text, 1, TEXT_MAX);
		return true;
	case O_VARY:
		o->vary = true;
		return true;
	default:
		return false;
	}
}

/* The sessions. */
static bool
set_session(struct chats_options *o, int option, const char *text)
{
	switch (option) {
	case O_SESSIONS:
		o->sessions = args_number("sessions", text, 1, SESSIONS_MAX);
		return true;
	case O_AGENTS:
		o->agents = args_number("agents", text, 0,
		    SESSION_GEN_AGENTS_MAX);
		return true;
	case O_PROMPT:
		o->prompt = args_number("prompt", text, 2,
		    SESSION_GEN_PROMPT_MAX);
		return true;
	case O_LIMIT:
		o->limit = args_number("limit", text, LIMIT_MIN,
		    SESSION_GEN_LIMIT);
		return true;
	case O_SHRINK:
		o->shrink = args_number("shrink", text, 1, SHRINK_MAX);
		return true;
	case O_SESSION_HEADER:
		o->session_header = text;
		return true;
	default:
		return false;
	}
}

static void
set_option(struct chats_options *o, int option, char *text)
{
	if (set_request(o, option, text) || set_text(o, option, text) ||
	    set_session(o, option, text))
		return;
	switch (option) {
	case O_ABORT:
		o->abort = (enum chats_stage)args_word("abort", text,
		    chats_stage_names, CHATS_STAGES);
		break;
	case O_ABORT_PERCENT:
		o->abort_percent = (uint32_t)args_number("abort-percent", text,
		    0, 100);
		break;
	case O_ABORT_BYTES:
		o->abort_bytes = args_number("abort-bytes", text, 1, INT64_MAX);
		break;
	case O_PID:
		set_pids(o, text);
		break;
	case O_FORMAT:
		o->format = (enum chats_format)args_word("format", text,
		    chats_format_names, CHATS_FORMATS);
		break;
	case 'q':
		o->quiet = true;
		break;
	case O_HELP:
		printf("%s%s", usage_text, help_text);
		exit(0);
	case O_VERSION:
		printf("kvroute-chats %s\n", kvr_version_string());
		exit(0);
	default:
		usage();
	}
}

static void
check_sessions(const struct chats_options *o)
{
	if (o->session_header != NULL && o->sessions == 0)
		errx(ARGS_USAGE, "--session-header needs --sessions");
	if (o->sessions == 0)
		return;
	if (o->endpoint != CHATS_CHAT && o->endpoint != CHATS_MESSAGES)
		errx(ARGS_USAGE, "--sessions has --endpoint chat or messages");
	if (o->requests != 0 || o->body != NULL || o->make_body != 0 ||
	    o->abort != CHATS_STAY)
		errx(ARGS_USAGE, "--sessions goes without --requests, --body, "
		    "--make-body and --abort");
	if (o->turns > SESSION_GEN_REQUESTS_MAX)
		errx(ARGS_USAGE, "--sessions: --turns is at most %d",
		    SESSION_GEN_REQUESTS_MAX);
}

void
chats_options(struct chats_options *o, int argc, char **argv)
{
	int option;

	defaults(o);
	while ((option = getopt_long(argc, argv, "q", long_options, NULL)) !=
	    -1)
		set_option(o, option, optarg);
	if (optind != argc || (o->url == NULL && o->make_body == 0))
		usage();
	if (o->vary && o->body == NULL)
		errx(ARGS_USAGE, "--vary needs --body");
	check_sessions(o);
	if (o->turns == 0)
		o->turns = o->sessions != 0 ? TURNS_OF_AGENTS : TURNS_OF_CHATS;
	if (o->requests == 0 && o->run_ns == 0 && o->sessions == 0)
		o->run_ns = INT64_C(10000000000);
	if (o->path == NULL)
		o->path = chats_endpoint_paths[o->endpoint];
	if (o->body != NULL)
		o->think_ns = 0;
	if (o->requests != 0 && o->requests < o->chats)
		o->chats = (uint32_t)o->requests;
	if (o->sessions != 0 && o->sessions < o->chats)
		o->chats = (uint32_t)o->sessions;
}
