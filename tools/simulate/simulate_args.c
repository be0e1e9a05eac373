/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate_args.c - see simulate_args.h. */
#include "simulate_args.h"

#include "args.h"
#include "simulate_args_load.h"
#include "simulate_help.h"
#include "trace.h"

#include <bsd/string.h>
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY (UINT64_C(64) << 20)
#define SAMPLE_NS INT64_C(1000000000)
#define TTL_NS INT64_C(120000000000)
/* Leases do not expire: the engines end all of them. */
#define LEASE_LIMIT_NS (INT64_C(86400000000000) * 365)

enum { REPLICAS_MAX = 64 };

enum {
	O_SIMULATE = 256, O_POLICY, O_WORKERS, O_CAPACITY, O_SPEEDS,
	O_ENGINE_BLOCK, O_EVICTION, O_RESETS, O_REPORTS, O_SILENT, O_TOLD,
	O_DELAY, O_EVENT_LOSS, O_EVENT_REPLAY, O_BYPASS,
	O_AFFINITY, O_SEQUENCES, O_BATCH, O_READS,
	O_ATTENTION, O_PREEMPT, O_WINDOW, O_UNAWARE, O_LEARN, O_SLOW, O_JOIN,
	O_DRAIN, O_KILL, O_SLO, O_REPLICAS, O_EXCHANGE, O_EXCHANGE_DELAY,
	O_EXCHANGE_LOSS,
	O_EXCHANGE_REPAIR, O_EXCHANGE_LATE, O_BLOCK, O_SEED, O_MEMORY, O_SPEED,
	O_ARRIVALS, O_FORMAT, O_REPORT, O_SESSIONS, O_ACTIVE,
	O_SESSION_COUNT, O_RAMP, O_THINK_LIMIT, O_HELP, O_VERSION
};

static const struct option long_options[] = {
	{ "simulate", no_argument, NULL, O_SIMULATE },
	{ "policy", required_argument, NULL, O_POLICY },
	{ "workers", required_argument, NULL, O_WORKERS },
	{ "capacity", required_argument, NULL, O_CAPACITY },
	{ "speeds", required_argument, NULL, O_SPEEDS },
	{ "engine-block", required_argument, NULL, O_ENGINE_BLOCK },
	{ "eviction", required_argument, NULL, O_EVICTION },
	{ "sequences", required_argument, NULL, O_SEQUENCES },
	{ "batch", required_argument, NULL, O_BATCH },
	{ "reads", required_argument, NULL, O_READS },
	{ "attention", required_argument, NULL, O_ATTENTION },
	{ "preempt", no_argument, NULL, O_PREEMPT },
	{ "window", required_argument, NULL, O_WINDOW },
	{ "unaware", no_argument, NULL, O_UNAWARE },
	{ "learn", no_argument, NULL, O_LEARN },
	{ "slow", required_argument, NULL, O_SLOW },
	{ "join", required_argument, NULL, O_JOIN },
	{ "drain", required_argument, NULL, O_DRAIN },
	{ "kill", required_argument, NULL, O_KILL },
	{ "slo", required_argument, NULL, O_SLO },
	{ "resets", required_argument, NULL, O_RESETS },
	{ "reports", required_argument, NULL, O_REPORTS },
	{ "silent", required_argument, NULL, O_SILENT },
	{ "told", no_argument, NULL, O_TOLD },
	{ "event-delay", required_argument, NULL, O_DELAY },
	{ "event-loss", required_argument, NULL, O_EVENT_LOSS },
	{ "event-replay", required_argument, NULL, O_EVENT_REPLAY },
	{ "bypass", required_argument, NULL, O_BYPASS },
	{ "affinity", required_argument, NULL, O_AFFINITY },
	{ "replicas", required_argument, NULL, O_REPLICAS },
	{ "exchange", required_argument, NULL, O_EXCHANGE },
	{ "exchange-delay", required_argument, NULL, O_EXCHANGE_DELAY },
	{ "exchange-loss", required_argument, NULL, O_EXCHANGE_LOSS },
	{ "exchange-repair", required_argument, NULL, O_EXCHANGE_REPAIR },
	{ "exchange-late", required_argument, NULL, O_EXCHANGE_LATE },
	{ "block", required_argument, NULL, O_BLOCK },
	{ "seed", required_argument, NULL, O_SEED },
	{ "memory", required_argument, NULL, O_MEMORY },
	{ "speed", required_argument, NULL, O_SPEED },
	{ "arrivals", required_argument, NULL, O_ARRIVALS },
	{ "format", required_argument, NULL, O_FORMAT },
	{ "report", required_argument, NULL, O_REPORT },
	{ "sessions", required_argument, NULL, O_SESSIONS },
	{ "active", required_argument, NULL, O_ACTIVE },
	{ "session-count", required_argument, NULL, O_SESSION_COUNT },
	{ "ramp", required_argument, NULL, O_RAMP },
	{ "think-limit", required_argument, NULL, O_THINK_LIMIT },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, O_HELP },
	{ "version", no_argument, NULL, O_VERSION },
	{ NULL, 0, NULL, 0 }
};

static _Noreturn void
usage(void)
{
	fputs(simulate_usage, stderr);
	exit(ARGS_USAGE);
}

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
	static const char *const modes[] = { "none", "soft", "tie", "hard" };

	return (uint32_t)args_word(option, text, modes, 4);
}

/* `text` follows the at sign; NULL: there is none. */
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

/* A weight of the list: NAME=NUMBER. */
static void
set_weight(struct simulate_weights *w, const char *text)
{
	const struct {
		const char *name;
		double *value;
	} known[] = { { "credit=", &w->credit }, { "prefill=", &w->prefill },
		{ "request=", &w->request } };
	size_t i, n;
	char *end;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		n = strlen(known[i].name);
		if (strncmp(text, known[i].name, n) != 0)
			continue;
		*known[i].value = strtod(text + n, &end);
		if (end == text + n || *end != '\0' ||
		    !(*known[i].value >= 0 && *known[i].value <= 1e6))
			break;
		return;
	}
	errx(ARGS_USAGE, "--policy: not a weight: \"%s\" (credit=N, "
	    "prefill=N or request=N, from 0)", text);
}

/* Takes a list in brackets, if there is one, off the name of a policy. */
static void
set_weights(struct wanted *w, char *name)
{
	char *list = strchr(name, '['), *end, *part;

	w->weights = (struct simulate_weights){ 1, 1, 0 };
	if (list == NULL)
		return;
	*list++ = '\0';
	end = strchr(list, ']');
	if (end == NULL || end[1] != '\0')
		errx(ARGS_USAGE, "--policy %s: no ] at the end of the weights",
		    name);
	if (strcmp(name, simulate_policy_names[SIMULATE_DYNAMO]) != 0)
		errx(ARGS_USAGE, "--policy %s: it has no weights", name);
	*end = '\0';
	while ((part = strsep(&list, ",")) != NULL)
		set_weight(&w->weights, part);
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

/* Calls `take` for each part of a list; returns their number. */
static uint32_t
each_of(const char *option, const char *text, struct simulate_options *o,
    void (*take)(struct simulate_options *, uint32_t, const char *))
{
	char copy[512], *rest = copy, *part;
	uint32_t n = 0;

	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy))
		errx(ARGS_USAGE, "--%s: too long", option);
	while ((part = strsep(&rest, ",")) != NULL) {
		if (n == SIMULATE_KINDS)
			errx(ARGS_USAGE, "--%s: more than %d", option,
			    SIMULATE_KINDS);
		take(o, n++, part);
	}
	return n;
}

static void
take_capacity(struct simulate_options *o, uint32_t i, const char *text)
{
	o->capacities[i] = strcmp(text, "endless") == 0 ? 0 :
	    args_number("capacity", text, 1, INT64_MAX);
	o->capacity_tokens = o->capacities[0];
}

static void
take_speed(struct simulate_options *o, uint32_t i, const char *text)
{
	o->speeds[i] = args_factor("speeds", text);
}

static void
take_sequences(struct simulate_options *o, uint32_t i, const char *text)
{
	o->sequences[i] = (uint32_t)args_number("sequences", text, 1, 1 << 16);
}

static void
set_reports(struct simulate_options *o, const char *text)
{
	const char *problem = engine_report_parse(text, &o->reports);

	if (problem != NULL)
		errx(ARGS_USAGE, "--reports %s: %s", text, problem);
	o->reports_text = o->reports.n > 0 ? text : NULL;
}

static int64_t
read_seconds(const char *option, const char *text)
{
	int64_t ns = args_ttl(option, text);

	if (ns == KVR_TTL_ENDLESS)
		errx(ARGS_USAGE, "--%s %s: not seconds", option, text);
	return ns;
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

/* Options of engines. False: another option. */
static bool
set_engines(struct simulate_options *o, int option, const char *text)
{
	static const char *const evictions[] = {
		[ENGINE_EVICT_RELEASED] = "released",
		[ENGINE_EVICT_RANDOM] = "random",
		[ENGINE_EVICT_LEAF] = "leaf"
	};

	switch (option) {
	case O_CAPACITY:
		o->n_capacities = each_of("capacity", text, o, take_capacity);
		return true;
	case O_SPEEDS:
		o->n_speeds = each_of("speeds", text, o, take_speed);
		return true;
	case O_ENGINE_BLOCK:
		o->engine_block = (uint32_t)args_number("engine-block", text,
		    1, INT32_MAX);
		return true;
	case O_EVICTION:
		o->eviction = (enum engine_eviction)args_word("eviction", text,
		    evictions, sizeof(evictions) / sizeof(evictions[0]));
		return true;
	case O_RESETS:
		o->reset_ns = read_seconds("resets", text);
		return true;
	case O_REPORTS:
		set_reports(o, text);
		return true;
	case O_SILENT:
		o->silent = (uint32_t)args_number("silent", text, 1,
		    KVR_WORKERS_MAX);
		return true;
	default:
		return false;
	}
}

/* Options of engines under load. False: another option. */
static bool
set_load(struct simulate_options *o, int option, const char *text)
{
	static const char *const reads[] = { "shared", "own" };

	switch (option) {
	case O_SEQUENCES:
		o->n_sequences = each_of("sequences", text, o, take_sequences);
		return true;
	case O_BATCH:
		o->batch = (uint32_t)args_number("batch", text, 1, 1 << 20);
		return true;
	case O_READS:
		o->own_reads = args_word("reads", text, reads, 2) == 1;
		return true;
	case O_ATTENTION:
		o->attention = args_number("attention", text, 1000,
		    1000000000);
		return true;
	case O_PREEMPT:
		o->preempt = true;
		return true;
	case O_WINDOW:
		args_window(o, text);
		return true;
	default:
		return false;
	}
}

/* What happens to workers in mid-run. False: another option. */
static bool
set_changes(struct simulate_options *o, int option, const char *text)
{
	switch (option) {
	case O_SLOW:
		args_slow(o, text);
		return true;
	case O_JOIN:
		args_change(o, SIMULATE_JOIN, text);
		return true;
	case O_DRAIN:
		args_change(o, SIMULATE_DRAIN, text);
		return true;
	case O_KILL:
		args_change(o, SIMULATE_KILL, text);
		return true;
	case O_SLO:
		args_slo(o, text);
		return true;
	default:
		return false;
	}
}

/* From 0 to 100; as a share. */
static double
read_percent(const char *option, const char *text)
{
	int64_t billionths = args_ttl(option, text);

	if (billionths < 0 || billionths > INT64_C(100000000000))
		errx(ARGS_USAGE, "--%s %s: not from 0 to 100", option, text);
	return (double)billionths / 1e11;
}

/* Options of events. False: another option. */
static bool
set_events(struct simulate_options *o, int option, const char *text)
{
	static const char *const off_on[] = { "off", "on" };

	switch (option) {
	case O_DELAY:
		o->event_delay_ns = read_seconds("event-delay", text);
		return true;
	case O_EVENT_LOSS:
		o->event_loss = read_percent("event-loss", text);
		return true;
	case O_EVENT_REPLAY:
		o->event_replay = args_word("event-replay", text, off_on, 2) ==
		    1;
		return true;
	case O_BYPASS:
		o->bypass = read_percent("bypass", text);
		return true;
	default:
		return false;
	}
}

/* Options of routers. False: another option. */
static bool
set_routers(struct simulate_options *o, int option, const char *text)
{
	switch (option) {
	case O_AFFINITY:
		o->affinity = read_affinity("affinity", text);
		return true;
	case O_TOLD:
		o->told = true;
		return true;
	case O_UNAWARE:
		o->unaware = true;
		return true;
	case O_LEARN:
		o->learn = true;
		return true;
	case O_REPLICAS:
		o->replicas = (uint32_t)args_number("replicas", text, 1,
		    REPLICAS_MAX);
		return true;
	default:
		return false;
	}
}

/* Options of several routers. False: another option. */
static bool
set_exchange(struct simulate_options *o, int option, const char *text)
{
	static const char *const off_on[] = { "off", "on" };
	static const char *const late[] = { "apply", "degrade" };

	switch (option) {
	case O_EXCHANGE:
		o->exchange = (enum simulate_exchange)args_word("exchange",
		    text, simulate_exchange_names, SIMULATE_EXCHANGES);
		return true;
	case O_EXCHANGE_DELAY:
		o->exchange_delay_ns = read_seconds("exchange-delay", text) /
		    1000;
		return true;
	case O_EXCHANGE_LOSS:
		o->exchange_loss = read_percent("exchange-loss", text);
		return true;
	case O_EXCHANGE_REPAIR:
		o->repair = args_word("exchange-repair", text, off_on, 2) == 1;
		return true;
	case O_EXCHANGE_LATE:
		o->degrade = args_word("exchange-late", text, late, 2) == 1;
		return true;
	default:
		return false;
	}
}

/* Does it say how requests are dealt, and name no path? */
static bool
set_dealing(struct simulate_options *o, const char *text)
{
	size_t i;

	for (i = 0; i < SIMULATE_DEALINGS; i++) {
		if (strcmp(text, simulate_dealing_names[i]) != 0)
			continue;
		o->dealing = (enum simulate_dealing)i;
		return true;
	}
	return false;
}

/* Options of sessions. False: another option. */
static bool
set_sessions(struct settings *s, int option, const char *text)
{
	switch (option) {
	case O_SESSIONS:
		if (set_dealing(&s->simulate, text))
			return true;
		if (s->sessions != NULL)
			errx(ARGS_USAGE, "--sessions: given twice; further "
			    "paths are arguments");
		s->sessions = text;
		s->simulate.closed = true;
		return true;
	case O_ACTIVE:
		s->loop.active = args_number("active", text, 1,
		    SESSIONS_ACTIVE_MAX);
		return true;
	case O_SESSION_COUNT:
		s->loop.count = args_number("session-count", text, 1,
		    SESSIONS_COUNT_MAX);
		return true;
	case O_RAMP:
		s->loop.ramp_ns = read_seconds("ramp", text);
		return true;
	case O_THINK_LIMIT:
		s->loop.think_ns = read_seconds("think-limit", text);
		return true;
	default:
		return false;
	}
}

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
			usage();
		if (argc == 1 && strcmp(argv[0], "-") != 0)
			s->path = argv[0];
		return;
	}
	if (s->speed < 1 || s->speed > 1 || s->spread)
		errx(ARGS_USAGE, "--sessions excludes --speed and --arrivals");
	s->more_sessions = argv;
	s->n_more_sessions = argc;
}

/* Options of input and output. */
static void
set_files(struct settings *s, int option, const char *text)
{
	static const char *const arrivals[] = { "ticks", "spread" };
	static const char *const formats[] = { "text", "kv", "json" };

	switch (option) {
	case O_SPEED:
		s->speed = args_factor("speed", text);
		break;
	case O_ARRIVALS:
		s->spread = args_word("arrivals", text, arrivals, 2) == 1;
		break;
	case O_REPORT:
		s->report = text;
		s->simulate.sample_ns = SAMPLE_NS;
		break;
	case O_FORMAT:
		s->json = args_word("format", text, formats, 3) == 2;
		s->kv = strcmp(text, "kv") == 0;
		break;
	default:
		usage();
	}
}

static void
set_option(struct settings *s, int option, const char *text)
{
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
		s->simulate.workers = (uint32_t)args_number("workers", text, 1,
		    KVR_WORKERS_MAX);
		break;
	case O_BLOCK:
		s->region.block_size = (uint32_t)args_number("block", text, 1,
		    INT32_MAX);
		break;
	case O_SEED:
		s->simulate.seed = args_number("seed", text, 0, INT64_MAX);
		break;
	case O_MEMORY:
		s->region.region_bytes = args_size("memory", text);
		break;
	case O_HELP:
		printf("%s%s%s", simulate_usage, simulate_help,
		    simulate_help_routers);
		exit(0);
	case O_VERSION:
		printf("kvroute-replay %s\n", kvr_version_string());
		exit(0);
	default:
		if (!set_engines(&s->simulate, option, text) &&
		    !set_load(&s->simulate, option, text) &&
		    !set_changes(&s->simulate, option, text) &&
		    !set_events(&s->simulate, option, text) &&
		    !set_routers(&s->simulate, option, text) &&
		    !set_exchange(&s->simulate, option, text) &&
		    !set_sessions(s, option, text))
			set_files(s, option, text);
	}
}

void
simulate_args(struct settings *s, int argc, char **argv)
{
	int option;

	set_defaults(s);
	while ((option = getopt_long(argc, argv, "q", long_options, NULL)) !=
	    -1)
		set_option(s, option, optarg);
	set_paths(s, argc - optind, argv + optind);
	if (s->n == 0) {
		add_policy(s, "round-robin");
		add_policy(s, "balanced");
	}
	args_load_check(&s->simulate);
	s->region.max_workers = s->simulate.workers;
	args_secret(&s->region, s->simulate.seed);
}
