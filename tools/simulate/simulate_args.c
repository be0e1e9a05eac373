/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate_args.c - see simulate_args.h. */
#include "simulate_args.h"

#include "args_table.h"
#include "simulate_args_load.h"
#include "trace.h"

#include <bsd/string.h>
#include <err.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY (UINT64_C(64) << 20)
#define SAMPLE_NS INT64_C(1000000000)
#define TTL_NS INT64_C(120000000000)
/* Leases do not expire: the engines end all of them. */
#define LEASE_LIMIT_NS (INT64_C(86400000000000) * 365)

enum { REPLICAS_MAX = 64 };

static const char usage_text[] =
"usage: kvroute-replay --simulate [-q] [--policy POLICY]...\n"
"           [--workers N] [--capacity TOKENS|endless[,...]]\n"
"           [--speeds X[,...]] [--engine-block TOKENS] [--eviction KIND]\n"
"           [--sequences N[,...]] [--batch TOKENS] [--reads KIND]\n"
"           [--attention TOKENS] [--preempt] [--window LIST]\n"
"           [--unaware]\n"
"           [--slow WORKER:FROM:TO:FACTOR]... [--join WORKER:SEC]...\n"
"           [--drain WORKER:SEC]... [--kill WORKER:SEC]...\n"
"           [--slo SEC,MS] [--resets SEC] [--reports LIST] [--silent N]\n"
"           [--told] [--event-delay SEC] [--event-loss PERCENT]\n"
"           [--event-replay on|off] [--bypass PERCENT]\n"
"           [--affinity MODE] [--replicas N]\n"
"           [--sessions dealt|random|sticky]\n"
"           [--exchange WHAT] [--exchange-delay MS]\n"
"           [--exchange-loss PERCENT] [--exchange-repair on|off]\n"
"           [--exchange-late apply|degrade]\n"
"           [--block TOKENS] [--seed N] [--memory SIZE] [--speed X]\n"
"           [--arrivals ticks|spread] [--format text|kv|json]\n"
"           [--report FILE] [trace | --sessions PATH [--active N]\n"
"           [--session-count N] [--ramp SEC] [--think-limit SEC] [path]...]\n";

/* ------------------------------------------------------------- policies --- */

/* `text` follows the colon. */
static void
set_index(struct wanted *w, const char *text)
{
	size_t i;

	if (strncmp(text, "ttl=", 4) == 0) {
		w->ttl_ns = args_ttl("policy ttl", text + 4);
		return;
	}
	i = args_word("policy", text, simulate_index_names, SIMULATE_INDEXES);
	w->index = (enum simulate_index)i;
	if (i == SIMULATE_TTL)
		errx(ARGS_USAGE, "--policy: ttl needs a value: ttl=SEC");
}

static uint32_t
read_affinity(const char *option, const char *text)
{
	static const char *const modes[] = { "none", "hard", "hash" };

	return (uint32_t)args_word(option, text, modes, 3);
}

/* `text` follows the at sign; NULL: without one. */
static void
set_mode(struct wanted *w, const char *text)
{
	w->own_affinity = text != NULL;
	if (text == NULL)
		return;
	if (w->policy < SIMULATE_DYNAMO || w->policy > SIMULATE_BALANCED ||
	    w->index == SIMULATE_ORACLE)
		errx(ARGS_USAGE, "--policy %s: it does not look at affinity",
		    w->name);
	w->affinity = read_affinity("policy", text);
}

/* Takes a list in brackets, if there is one, off the name of a policy. */
static void
set_weights(struct wanted *w, char *name)
{
	char *list = strchr(name, '[');
	const char *why;
	size_t at;
	int error;

	kvr_policy_init(&w->weights, sizeof(w->weights));
	if (list == NULL)
		return;
	error = kvr_policy_parse(&w->weights, name, strlen(name), &at, &why);
	if (error == KVR_EUNKNOWN && at == 0)
		errx(ARGS_USAGE, "--policy %.*s: it has no weights",
		    (int)(list - name), name);
	if (error != KVR_OK)
		errx(ARGS_USAGE, "--policy: not a weight: \"%.*s\" (%s)",
		    (int)strcspn(name + at, ",]"), name + at, why);
	*list = '\0';
}

static void
add_policy(struct settings *s, const char *text)
{
	struct wanted *w = &s->wanted[s->n];
	char name[NAME_BYTES], *colon, *at;

	if (s->n == POLICIES_MAX)
		errx(ARGS_USAGE, "--policy: more than %d", POLICIES_MAX);
	if (strlcpy(name, text, sizeof(name)) >= sizeof(name) - 8)
		errx(ARGS_USAGE, "--policy %s: too long", text);
	at = strchr(name, '@');
	if (at != NULL)
		*at++ = '\0';
	colon = strchr(name, ':');
	if (colon != NULL)
		*colon = '\0';
	set_weights(w, name);
	w->policy = (enum simulate_policy)args_word("policy", name,
	    simulate_policy_names, SIMULATE_POLICIES);
	w->index = SIMULATE_TTL;
	w->ttl_ns = TTL_NS;
	if (colon != NULL && w->policy < SIMULATE_DYNAMO)
		errx(ARGS_USAGE, "--policy %s: %s needs no index", text, name);
	if (colon != NULL)
		set_index(w, colon + 1);
	snprintf(w->name, sizeof(w->name), "%.*s%s%s",
	    (int)strcspn(text, "@"), text, colon == NULL &&
	    w->policy >= SIMULATE_DYNAMO ? ":ttl=120" : "",
	    text + strcspn(text, "@"));
	set_mode(w, at);
	s->n++;
}

/* --------------------------------------------------------------- values --- */

enum { LIST_BYTES = 512 };

/* Splits a list into at most SIMULATE_KINDS parts; returns their number. */
static uint32_t
split_list(const char *option, const char *text, char copy[LIST_BYTES],
    const char *parts[SIMULATE_KINDS])
{
	char *rest = copy, *part;
	uint32_t n = 0;

	if (strlcpy(copy, text, LIST_BYTES) >= LIST_BYTES)
		errx(ARGS_USAGE, "--%s: too long", option);
	while ((part = strsep(&rest, ",")) != NULL) {
		if (n == SIMULATE_KINDS)
			errx(ARGS_USAGE, "--%s: more than %d", option,
			    SIMULATE_KINDS);
		parts[n++] = part;
	}
	return n;
}

static void
take_capacities(void *settings, const struct args_row *row, const char *text)
{
	struct simulate_options *o = &((struct settings *)settings)->simulate;
	const char *parts[SIMULATE_KINDS];
	char copy[LIST_BYTES];
	uint32_t i;

	o->n_capacities = split_list(row->name, text, copy, parts);
	for (i = 0; i < o->n_capacities; i++)
		o->capacities[i] = strcmp(parts[i], "endless") == 0 ? 0 :
		    args_number(row->name, parts[i], 1, INT64_MAX);
	o->capacity_tokens = o->capacities[0];
}

static void
take_speeds(void *settings, const struct args_row *row, const char *text)
{
	struct simulate_options *o = &((struct settings *)settings)->simulate;
	const char *parts[SIMULATE_KINDS];
	char copy[LIST_BYTES];
	uint32_t i;

	o->n_speeds = split_list(row->name, text, copy, parts);
	for (i = 0; i < o->n_speeds; i++)
		o->speeds[i] = args_factor(row->name, parts[i]);
}

static void
take_sequences(void *settings, const struct args_row *row, const char *text)
{
	struct simulate_options *o = &((struct settings *)settings)->simulate;
	const char *parts[SIMULATE_KINDS];
	char copy[LIST_BYTES];
	uint32_t i;

	o->n_sequences = split_list(row->name, text, copy, parts);
	for (i = 0; i < o->n_sequences; i++)
		o->sequences[i] = (uint32_t)args_number(row->name, parts[i], 1,
		    1 << 16);
}

static void
take_reports(void *settings, const struct args_row *row, const char *text)
{
	struct simulate_options *o = &((struct settings *)settings)->simulate;
	const char *problem = engine_report_parse(text, &o->reports);

	if (problem != NULL)
		errx(ARGS_USAGE, "--%s %s: %s", row->name, text, problem);
	o->reports_text = o->reports.n > 0 ? text : NULL;
}

static void
take_policy(void *settings, const struct args_row *row, const char *text)
{
	(void)row;
	add_policy(settings, text);
}

/* In the rows, `min` is the kind of change. */
static void
take_change(void *settings, const struct args_row *row, const char *text)
{
	args_change(&((struct settings *)settings)->simulate,
	    (enum simulate_change_kind)row->min, text);
}

static void
take_load(void *settings, const struct args_row *row, const char *text)
{
	struct simulate_options *o = &((struct settings *)settings)->simulate;

	if (strcmp(row->name, "slow") == 0)
		args_slow(o, text);
	else if (strcmp(row->name, "slo") == 0)
		args_slo(o, text);
	else
		args_window(o, text);
}

static void
take_affinity(void *settings, const struct args_row *row, const char *text)
{
	((struct settings *)settings)->simulate.affinity =
	    read_affinity(row->name, text);
}

/* Milliseconds are read as seconds. */
static void
take_exchange_delay(void *settings, const struct args_row *row,
    const char *text)
{
	((struct settings *)settings)->simulate.exchange_delay_ns =
	    args_seconds(row->name, text) / 1000;
}

/* How requests are dealt, or a path. */
static void
take_sessions(void *settings, const struct args_row *row, const char *text)
{
	struct settings *s = settings;
	size_t i;

	for (i = 0; i < SIMULATE_DEALINGS; i++)
		if (strcmp(text, simulate_dealing_names[i]) == 0) {
			s->simulate.dealing = (enum simulate_dealing)i;
			return;
		}
	if (s->sessions != NULL)
		errx(ARGS_USAGE, "--%s: given twice; further paths are "
		    "arguments", row->name);
	s->sessions = text;
	s->simulate.closed = true;
}

static void
take_report(void *settings, const struct args_row *row, const char *text)
{
	struct settings *s = settings;

	(void)row;
	s->report = text;
	s->simulate.sample_ns = SAMPLE_NS;
}

/* ------------------------------------------------------------- options --- */

static void
set_defaults(struct settings *s)
{
	kvr_options_init(&s->region, sizeof(s->region));
	s->region.region_bytes = DEFAULT_MEMORY;
	s->region.block_size = TRACE_BLOCK;
	s->region.lease_limit_ns = LEASE_LIMIT_NS;
	simulate_defaults(&s->simulate);
	sessions_defaults(&s->loop);
	s->speed = 1;
}

#define AT(member) offsetof(struct settings, member)
#define IN(member) offsetof(struct settings, simulate.member)

static const char *const evictions[] = {
	[ENGINE_EVICT_RELEASED] = "released",
	[ENGINE_EVICT_RANDOM] = "random",
	[ENGINE_EVICT_LEAF] = "leaf"
};
static const char *const reads[] = { "shared", "own" };
static const char *const off_on[] = { "off", "on" };
static const char *const late[] = { "apply", "degrade" };
static const char *const arrivals[] = { "ticks", "spread" };
static const char *const formats[] = { "text", "kv", "json" };

static const struct args_row option_rows[] = {
	{ .name = "simulate", .kind = ARGS_NOTHING },
	{ "policy", "POLICY",
	    "round-robin, random, least-loaded, least-backlog,\n"
	    "sticky, chbl or cache-aware; or dynamo, balanced,\n"
	    "lmetric, ramjet or two-tier, with an index: :ttl=SEC\n"
	    "(120), :ttl=endless, :capacity, :feedback, :counts,\n"
	    ":events or :oracle. Repeat it to compare (round-robin\n"
	    "and balanced). balanced:capacity@MODE is with that\n"
	    "--affinity; dynamo[credit=2,prefill=4,request=64] with\n"
	    "these weights (1, 1 and 0 blocks of 16 tokens), and\n"
	    "balanced[bound=3] alike: kvr_policy(3)", ARGS_CALL,
	    .take = take_policy },
	{ "workers", "N", "number of engines (8)", ARGS_UINT32,
	    .at = IN(workers), .min = 1, .max = KVR_WORKERS_MAX },
	{ "block", "TOKENS", "index block size in tokens (512)", ARGS_UINT32,
	    .at = AT(region.block_size), .min = 1, .max = INT32_MAX },
	{ "seed", "N", "seeds all randomness and the secret (1)", ARGS_UINT64,
	    .at = IN(seed), .max = INT64_MAX },
	{ "memory", "SIZE", "index size for each policy (64M)", ARGS_SIZE,
	    .at = AT(region.region_bytes) },
	{ "speed", "X", "replay X times as fast as recorded (1)", ARGS_FACTOR,
	    .at = AT(speed) },
	{ "arrivals", "HOW", "ticks, as recorded, or spread evenly (ticks)",
	    ARGS_CHOICE, .at = AT(spread), .words = arrivals },
	{ "format", "KIND", "text, kv (name=value) or json (text)", ARGS_WORD,
	    .at = AT(format), .max = SIMULATE_FORMATS, .words = formats },
	{ "slo", "SEC,MS",
	    "goodput: time to first token, time of each later one", ARGS_CALL,
	    .take = take_load },
	{ "report", "FILE", "also write an HTML page with charts", ARGS_CALL,
	    .take = take_report },
	{ "quiet", NULL, "no progress bar", ARGS_FLAG, 'q', .at = AT(quiet) },
	{ .kind = ARGS_PROSE, .help = "\nSessions, instead of a trace:\n" },
	{ "sessions", "PATH",
	    "a file or a directory of them; more paths may follow", ARGS_CALL,
	    .take = take_sessions },
	{ "active", "N", "how many run at a time (8)", ARGS_UINT64,
	    .at = AT(loop.active), .min = 1, .max = SESSIONS_ACTIVE_MAX },
	{ "session-count", "N", "how many in all (each once)", ARGS_UINT64,
	    .at = AT(loop.count), .min = 1, .max = SESSIONS_COUNT_MAX },
	{ "ramp", "SEC", "the first ones begin within SEC seconds (60)",
	    ARGS_SECONDS, .at = AT(loop.ramp_ns) },
	{ "think-limit", "SEC", "no pause of an agent is longer (as recorded)",
	    ARGS_SECONDS, .at = AT(loop.think_ns) },
	{ .kind = ARGS_PROSE,
	    .help = "\nEngines (a list is repeated over them):\n" },
	{ "capacity", "TOKENS",
	    "cache size per engine (1000000); endless; a list", ARGS_CALL,
	    .take = take_capacities },
	{ "speeds", "X", "relative speed (1); a list", ARGS_CALL,
	    .take = take_speeds },
	{ "engine-block", "TOKENS", "cache block size (512)", ARGS_UINT32,
	    .at = IN(engine_block), .min = 1, .max = INT32_MAX },
	{ "eviction", "KIND", "released, random or leaf (released)",
	    ARGS_WORD, .at = IN(eviction),
	    .max = sizeof(evictions) / sizeof(evictions[0]),
	    .words = evictions },
	{ "sequences", "N", "requests that run at a time (256); a list",
	    ARGS_CALL, .take = take_sequences },
	{ "batch", "TOKENS",
	    "tokens of a step, those that are generated included\n"
	    "(2048 for prefill alone)", ARGS_UINT32,
	    .at = IN(batch), .min = 1, .max = 1 << 20 },
	{ "reads", "KIND",
	    "what a step reads: each block once (shared), or each\n"
	    "request's own context (own) (shared)", ARGS_CHOICE,
	    .at = IN(own_reads), .words = reads },
	{ "attention", "TOKENS",
	    "context at which prefill takes twice as long (none)", ARGS_UINT64,
	    .at = IN(attention), .min = 1000, .max = 1000000000 },
	{ "preempt", NULL,
	    "outputs take memory as they grow; the last request\n"
	    "gives way if there is none", ARGS_FLAG, .at = IN(preempt) },
	{ "window", "LIST",
	    "some layers have a window; what is kept of them: full,\n"
	    "boundary, dense or dual, and +tokens=N (1024),\n"
	    "+groups=N (5), +align=N, +interval=N, +capacity=N", ARGS_CALL,
	    .take = take_load },
	{ "slow", "W:FROM:TO:X",
	    "worker W, from 0, takes X times as long from second\n"
	    "FROM to second TO", ARGS_CALL, .take = take_load },
	{ "drain", "W:SEC", "worker W gets no new requests from then on",
	    ARGS_CALL, .min = SIMULATE_DRAIN, .take = take_change },
	{ "kill", "W:SEC", "worker W dies; its requests are routed again",
	    ARGS_CALL, .min = SIMULATE_KILL, .take = take_change },
	{ "join", "W:SEC", "worker W comes back, or joins the others then",
	    ARGS_CALL, .min = SIMULATE_JOIN, .take = take_change },
	{ "resets", "SEC", "each loses its cache every SEC seconds",
	    ARGS_SECONDS, .at = IN(reset_ns) },
	{ "reports", "LIST",
	    "how they report cached tokens (exact): low=SHARE,\n"
	    "noisy=SHARE, zeros=SHARE, null, absent=SHARE,\n"
	    "reported=SHARE, rounded=TOKENS, lying; several are\n"
	    "joined by +", ARGS_CALL, .take = take_reports },
	{ "silent", "N", "every N-th engine reports nothing", ARGS_UINT32,
	    .at = IN(silent), .min = 1, .max = KVR_WORKERS_MAX },
	{ .kind = ARGS_PROSE, .help = "\nRouters:\n" },
	{ "told", NULL, "tell the index --engine-block and --eviction",
	    ARGS_FLAG, .at = IN(told) },
	{ "unaware", NULL, "do not tell the index of --window", ARGS_FLAG,
	    .at = IN(unaware) },
	{ "event-delay", "SEC",
	    "events arrive late, and the oracle sees caches late",
	    ARGS_SECONDS, .at = IN(event_delay_ns) },
	{ "event-loss", "PERCENT", "batches of events that are lost (0)",
	    ARGS_PERCENT, .at = IN(event_loss) },
	{ "event-replay", "on|off", "engines send again what was lost (on)",
	    ARGS_CHOICE, .at = IN(event_replay), .words = off_on },
	{ "bypass", "PERCENT",
	    "requests that reach engines past the routers (0)", ARGS_PERCENT,
	    .at = IN(bypass) },
	{ "affinity", "MODE",
	    "requests name their sessions: hard or hash (none)",
	    ARGS_CALL, .take = take_affinity },
	{ "replicas", "N", "number of routers that share the requests (1)",
	    ARGS_UINT32, .at = IN(replicas), .min = 1, .max = REPLICAS_MAX },
	{ .kind = ARGS_PROSE, .help =
	    "  --sessions HOW     dealt: requests go to them in turn; random; "
	    "sticky:\n"
	    "                     those of a session go to one of them "
	    "(dealt)\n" },
	{ "exchange", "WHAT",
	    "what routers tell each other: none, all, prefixes,\n"
	    "loads, prefixes+loads or bookings (none)", ARGS_WORD,
	    .at = IN(exchange), .max = SIMULATE_EXCHANGES,
	    .words = simulate_exchange_names },
	{ "exchange-delay", "MS", "how late they hear it (0)", ARGS_CALL,
	    .take = take_exchange_delay },
	{ "exchange-loss", "PERCENT", "messages that are lost (0)",
	    ARGS_PERCENT, .at = IN(exchange_loss) },
	{ "exchange-repair", "on|off",
	    "compare open leases each second (on)", ARGS_CHOICE,
	    .at = IN(repair), .words = off_on },
	{ "exchange-late", "HOW",
	    "of late messages, apply all or degrade to prefixes\n"
	    "(degrade)", ARGS_CHOICE, .at = IN(degrade), .words = late }
};

static const struct args_table table = {
	"kvroute-replay", usage_text,
	"\nReplays a Mooncake-format trace (a file, or standard input) on "
	"modelled\nengines and reports what their caches hit and how long "
	"requests took.\n\n",
	21, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

/* Options that exclude each other, and the paths. */
static void
set_paths(struct settings *s, int argc, char **argv)
{
	struct sessions_options plain;

	sessions_defaults(&plain);
	if (s->sessions == NULL) {
		if (s->loop.active != plain.active || s->loop.count != 0 ||
		    s->loop.ramp_ns != plain.ramp_ns ||
		    s->loop.think_ns != plain.think_ns)
			errx(ARGS_USAGE, "--active, --session-count, --ramp "
			    "and --think-limit need --sessions");
		if (argc > 1)
			args_usage(&table);
		if (argc == 1 && strcmp(argv[0], "-") != 0)
			s->path = argv[0];
		return;
	}
	if (s->speed < 1 || s->speed > 1 || s->spread)
		errx(ARGS_USAGE, "--sessions excludes --speed and --arrivals");
	s->more_sessions = argv;
	s->n_more_sessions = argc;
}

void
simulate_args(struct settings *s, int argc, char **argv)
{
	int next;

	set_defaults(s);
	next = args_parse(&table, s, argc, argv);
	set_paths(s, argc - next, argv + next);
	if (s->n == 0) {
		add_policy(s, "round-robin");
		add_policy(s, "balanced");
	}
	args_load_check(&s->simulate);
	s->region.max_workers = s->simulate.workers;
	args_secret(&s->region, s->simulate.seed);
}
