/* SPDX-License-Identifier: BSD-2-Clause */
/* chats_options.c - the command line of kvroute-chats. */
#include "chats.h"

#include "args_table.h"
#include "session_gen.h"

#include <kvroute.h>

#include <bsd/string.h>
#include <err.h>
#include <stddef.h>
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
	CHATS_MAX = 10000, REQUESTS_MAX = 1000000000, TEXT_MAX = 64 << 20,
	SYSTEMS_MAX = 100000, TURNS_MAX = 100000, TOKENS_MAX = 1000000,
	MS_MAX = 3600000, SESSIONS_MAX = 10000, PIDS_BYTES = 256,
	LIMIT_MIN = 1000, SHRINK_MAX = 10000,
	TURNS_OF_CHATS = 6, TURNS_OF_AGENTS = 50
};

static const char usage_text[] =
"usage: kvroute-chats --url URL [--endpoint NAME]\n"
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

static void
take_header(void *options, const struct args_row *row, const char *line)
{
	struct chats_options *o = options;

	(void)row;
	if (o->n_headers == CHATS_HEADERS_MAX)
		errx(ARGS_USAGE, "--header: more than %d", CHATS_HEADERS_MAX);
	if (strchr(line, ':') == NULL)
		errx(ARGS_USAGE, "--header %s: not 'Name: value'", line);
	o->headers[o->n_headers++] = line;
}

static void
take_pids(void *options, const struct args_row *row, const char *text)
{
	struct chats_options *o = options;
	char list[PIDS_BYTES], *rest = NULL, *pid;

	if (strlcpy(list, text, sizeof(list)) >= sizeof(list))
		errx(ARGS_USAGE, "--%s: too long", row->name);
	for (pid = strtok_r(list, ",", &rest); pid != NULL;
	    pid = strtok_r(NULL, ",", &rest)) {
		if (o->n_pids == CHATS_PIDS_MAX)
			errx(ARGS_USAGE, "--pid: more than %d", CHATS_PIDS_MAX);
		o->pids[o->n_pids++] = (int)args_number("pid", pid, 1,
		    INT32_MAX);
	}
}

static void
take_no_stream(void *options, const struct args_row *row, const char *text)
{
	(void)row;
	(void)text;
	((struct chats_options *)options)->stream = false;
}

static void
take_no_usage(void *options, const struct args_row *row, const char *text)
{
	(void)row;
	(void)text;
	((struct chats_options *)options)->usage = false;
}

static void
take_think(void *options, const struct args_row *row, const char *text)
{
	((struct chats_options *)options)->think_ns =
	    (int64_t)args_number(row->name, text, 0, MS_MAX) * 1000000;
}

#define AT(member) offsetof(struct chats_options, member)
#define NS 1000000000 /* of a second */

static const struct args_row option_rows[] = {
	{ "url", "URL", "http://127.0.0.1:8080", ARGS_STRING, .at = AT(url) },
	{ "endpoint", "NAME", "chat, completions, responses, messages (chat)",
	    ARGS_WORD, .at = AT(endpoint), .max = CHATS_ENDPOINTS,
	    .words = chats_endpoint_names },
	{ "model", "NAME", "named in requests (kvroute)", ARGS_STRING,
	    .at = AT(model) },
	{ "header", "LINE", "additional header, 'Name: value'; at most 8",
	    ARGS_CALL, .take = take_header },
	{ "no-stream", NULL, "no event streams", ARGS_CALL,
	    .take = take_no_stream },
	{ "no-usage", NULL, "streams without include_usage", ARGS_CALL,
	    .take = take_no_usage },
	{ "chats", "N", "users, or requests, at a time (16)", ARGS_UINT32,
	    .at = AT(chats), .min = 1, .max = CHATS_MAX },
	{ "requests", "N", "in total; the same ones each time", ARGS_UINT64,
	    .at = AT(requests), .min = 1, .max = REQUESTS_MAX },
	{ "seconds", "S", "begin no request later (10, or until --requests)",
	    ARGS_SCALED, .at = AT(run_ns), .max = NS },
	{ "warm-up", "S", "do not count requests begun before (0)",
	    ARGS_SCALED, .at = AT(warm_up_ns), .max = NS },
	{ "timeout", "S", "of a request (60)", ARGS_SCALED,
	    .at = AT(timeout_ns), .max = NS },
	{ "seed", "N", "of the texts (1)", ARGS_UINT64, .at = AT(seed),
	    .max = INT64_MAX },
	{ "systems", "N", "system prompts, the first ones most used (8)",
	    ARGS_UINT32, .at = AT(systems), .min = 1, .max = SYSTEMS_MAX },
	{ "system-bytes", "N", "length of each (6000)", ARGS_UINT64,
	    .at = AT(system_bytes), .max = TEXT_MAX },
	{ "turns", "N", "of a chat (6)", ARGS_UINT32, .at = AT(turns),
	    .min = 1, .max = TURNS_MAX },
	{ "turn-bytes", "N", "length of a user's message (400)", ARGS_UINT64,
	    .at = AT(turn_bytes), .max = TEXT_MAX },
	{ "answer-tokens", "N", "max_tokens (the server's default)",
	    ARGS_UINT32, .at = AT(answer_tokens), .min = 1,
	    .max = TOKENS_MAX },
	{ "think-ms", "N", "pause between turns, half to one and a half (100)",
	    ARGS_CALL, .take = take_think },
	{ "sessions", "N",
	    "agents with tools, not chats: sessions in all,\n"
	    "--chats at a time, --turns requests on average (50)",
	    ARGS_UINT64, .at = AT(sessions), .min = 1, .max = SESSIONS_MAX },
	{ "agents", "N", "sub-agents of a session at a time, at most (5)",
	    ARGS_UINT64, .at = AT(agents), .max = SESSION_GEN_AGENTS_MAX },
	{ "prompt", "TOKENS", "tools and system prompt of an agent (15000)",
	    ARGS_UINT64, .at = AT(prompt), .min = 2,
	    .max = SESSION_GEN_PROMPT_MAX },
	{ "limit", "TOKENS",
	    "a longer prompt is replaced by a summary (180000)", ARGS_UINT64,
	    .at = AT(limit), .min = LIMIT_MIN, .max = SESSION_GEN_LIMIT },
	{ "shrink", "N", "divide all these lengths (1)", ARGS_UINT64,
	    .at = AT(shrink), .min = 1, .max = SHRINK_MAX },
	{ "session-header", "NAME", "send the session's id in this header",
	    ARGS_STRING, .at = AT(session_header) },
	{ "body", "FILE", "send this repeatedly instead, without pauses",
	    ARGS_STRING, .at = AT(body) },
	{ "vary", NULL, "with a number over its last 0000000000", ARGS_FLAG,
	    .at = AT(vary) },
	{ "make-body", "BYTES", "write such a file", ARGS_UINT64,
	    .at = AT(make_body), .min = 1, .max = TEXT_MAX },
	{ "abort", "STAGE",
	    "close the connection: half-body, sent, headers,\n"
	    "first-event, bytes (never)", ARGS_WORD, .at = AT(abort),
	    .max = CHATS_STAGES, .words = chats_stage_names },
	{ "abort-percent", "N", "of the requests (100)", ARGS_UINT32,
	    .at = AT(abort_percent), .max = 100 },
	{ "abort-bytes", "N", "after this many bytes of the response (1)",
	    ARGS_UINT64, .at = AT(abort_bytes), .min = 1, .max = INT64_MAX },
	{ "pid", "PID,...", "report CPU time and memory of these processes",
	    ARGS_CALL, .take = take_pids },
	{ "format", "FORMAT", "text, kv, json, tsv (text)", ARGS_WORD,
	    .at = AT(format), .max = CHATS_FORMATS,
	    .words = chats_format_names },
	{ .letter = 'q', .help = "no progress on the terminal",
	    .kind = ARGS_FLAG, .at = AT(quiet) }
};

static const struct args_table table = {
	"kvroute-chats", usage_text,
	"\nSimulates many users of an OpenAI-compatible server and prints "
	"statistics.\nUsers have chats of several turns that begin with shared "
	"system prompts;\neach turn sends the whole chat.\n\n",
	25, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

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
	defaults(o);
	if (args_parse(&table, o, argc, argv) != argc ||
	    (o->url == NULL && o->make_body == 0))
		args_usage(&table);
	if (o->vary && o->body == NULL)
		errx(ARGS_USAGE, "--vary needs --body");
	check_sessions(o);
	if (o->turns == 0)
		o->turns = o->sessions != 0 ? TURNS_OF_AGENTS : TURNS_OF_CHATS;
	if (o->requests == 0 && o->run_ns == 0 && o->sessions == 0)
		o->run_ns = INT64_C(10000000000);
	o->path = chats_endpoint_paths[o->endpoint];
	if (o->body != NULL)
		o->think_ns = 0;
	if (o->requests != 0 && o->requests < o->chats)
		o->chats = (uint32_t)o->requests;
	if (o->sessions != 0 && o->sessions < o->chats)
		o->chats = (uint32_t)o->sessions;
}
