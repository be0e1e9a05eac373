/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * traffic.c - routers in front of modelled engines, in real time: what hits the
 * real daemons and buses leave.
 *
 *	traffic make SPEED REGION ...
 *	traffic run SPEED SECONDS SEED random|sticky INPUT REGION ...
 *
 *	INPUT --requests--> routers (regions) --> engines (modelled)
 *	                      |  ^
 *	                   kvroute-sync, started by the caller, if any
 *
 * The engines are those of kvroute-replay --simulate and run SPEED times as
 * fast as in life, so that an hour of a trace takes minutes; the clocks of
 * routers and daemons are real. So a bus is SPEED times as late, for engines.
 * INPUT is a trace, or a folder of recorded sessions, of which 24 are active at
 * a time. Requests come for so many seconds; then those under way end.
 *
 * One process stands for all routers; each decides by its own region alone. 8
 * engines have room for 1 M tokens each.
 */
#include "engine_model.h"
#include "fleet.h"
#include "rivals.h"
#include "rng.h"
#include "session_files.h"
#include "sessions.h"
#include "tokens.h"
#include "trace.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define SECOND INT64_C(1000000000)
#define NEVER INT64_MAX
#define MS INT64_C(1000000)

enum { ROUTERS_MAX = 8, WORKERS = 8, BLOCKS = 1000000 / ENGINE_BLOCK };
enum { ACTIVE = 24, THINK_S = 60, TTL_S = 120 };
enum { REGION = 64 << 20, JOURNAL = 4 << 20, RUN_ARGUMENTS = 8 };

/* A request. */
struct ride {
	int64_t arrival;
	uint64_t ticket, tokens, hit, lease;
	uint32_t router, output_blocks;
};

struct router {
	struct kvr *k;
	struct fleet *fleet;
};

struct figures {
	uint64_t requests, finished;
	uint64_t failed;     /* no worker was chosen, or the engine refused */
	uint64_t gone;       /* calls on leases that had ended */
	uint64_t tokens, hit, predicted;
	double first_s;      /* sum of times to first token, modelled */
};

struct traffic {
	double speed;
	bool sticky;
	int64_t began;       /* real */
	int64_t until;       /* modelled, as all that follows */
	int64_t steps[WORKERS]; /* the end of each, or NEVER */
	struct engine *engines[WORKERS];
	uint32_t block;      /* of the routers */
	size_t routers, capacity;
	struct router router[ROUTERS_MAX];
	struct ride *rides;
	struct kvr_prompt *prompt;
	struct tokens tokens;
	struct rng deals;
	struct trace *trace; /* these two: the next request of a trace */
	struct trace_request next;
	bool has_next;
	struct session_files files;
	struct sessions *sessions; /* NULL: a trace */
	struct figures f;
};

static volatile sig_atomic_t ended;

static void
end(int number)
{
	(void)number;
	ended = 1;
}

static void
must(int error, const char *what)
{
	if (error != KVR_OK)
		errx(1, "%s: %s", what, kvr_errname(error));
}

/* -------------------------------------------------------------- routers --- */

static void
open_region(struct router *r, const char *path, double speed, uint32_t flags)
{
	struct kvr_options o;
	struct kvr_policy policy;

	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = REGION;
	o.journal_bytes = JOURNAL;
	o.ttl_ns = (int64_t)(TTL_S * 1e9 / speed);
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', KVR_SECRET_MIN);
	must(kvr_open(path, strlen(path), flags, &o, &r->k), path);
	must(fleet_new(r->k, WORKERS, &r->fleet), "workers");
	(void)kvr_policy_init(&policy, sizeof(policy));
	policy.cost = KVR_COST_BALANCED;
	must(kvr_policy_set(r->k, &policy), "policy");
}

static void
close_region(struct router *r)
{
	fleet_free(r->fleet);
	kvr_free(r->k);
}

/* The lease may be gone, with its region's content. */
static void
may(struct traffic *t, int error, const char *what)
{
	if (error == KVR_ELEASE)
		t->f.gone++;
	else
		must(error, what);
}

static uint32_t
deal(struct traffic *t, const struct trace_request *q)
{
	const uint64_t lot = t->sticky ? rival_key(q->session, q->ids,
	    q->tokens) : rng_next(&t->deals);

	return (uint32_t)(lot % t->routers);
}

/* -------------------------------------------------------------- engines --- */

static uint64_t
index_blocks(const struct traffic *t, uint64_t tokens)
{
	return (tokens + t->block - 1) / t->block;
}

static void
on_generated(struct traffic *t, struct ride *r, uint64_t generated)
{
	const uint64_t n = index_blocks(t, r->tokens + generated) -
	    index_blocks(t, r->tokens) - r->output_blocks;

	if (n == 0)
		return;
	r->output_blocks += (uint32_t)n;
	may(t, kvr_lease_output(t->router[r->router].k, r->lease, (uint32_t)n,
	    kvr_clock_now(), 0), "output");
}

static void
on_finished(struct traffic *t, struct ride *r, uint64_t generated, int64_t at)
{
	const struct kvr_report report = { .size = sizeof(report),
	    .kind = KVR_REPORT_VALUE, .flags = KVR_REPORT_STREAM,
	    .prompt_tokens = r->tokens, .cached_tokens = r->hit,
	    .completion_tokens = generated };

	t->f.finished++;
	may(t, kvr_lease_finish(t->router[r->router].k, r->lease, &report,
	    kvr_clock_now(), 0), "finish");
	if (t->sessions != NULL && sessions_ended(t->sessions, r->ticket, at))
		errx(1, "no memory");
}

static void
on_event(struct traffic *t, const struct engine_event *e, int64_t at)
{
	struct ride *r = &t->rides[e->request];

	switch (e->kind) {
	case ENGINE_ADMITTED:
		r->hit = e->tokens;
		t->f.hit += r->hit;
		t->f.tokens += r->tokens;
		break;
	case ENGINE_FIRST_TOKEN:
		t->f.first_s += (double)(at - r->arrival) / 1e9;
		may(t, kvr_lease_first_token(t->router[r->router].k, r->lease,
		    kvr_clock_now(), 0), "first token");
		break;
	case ENGINE_GENERATED:
		on_generated(t, r, e->tokens);
		break;
	case ENGINE_FINISHED:
		on_finished(t, r, e->tokens, at);
		break;
	default:
		break;
	}
}

static void
listen(struct traffic *t, uint32_t worker, int64_t at)
{
	struct engine_event e;

	while (engine_next(t->engines[worker], &e))
		on_event(t, &e, at);
	if (t->steps[worker] == NEVER)
		t->steps[worker] = engine_begin(t->engines[worker], at);
}

static void
step(struct traffic *t, uint32_t worker)
{
	const int64_t at = t->steps[worker];

	t->steps[worker] = NEVER;
	if (engine_end(t->engines[worker]) != ENGINE_OK)
		errx(1, "no memory");
	listen(t, worker, at);
}

static void
engines_make(struct traffic *t, uint64_t seed)
{
	struct engine_idea idea = { .blocks = BLOCKS, .speed = 1,
	    .block_tokens = ENGINE_BLOCK };
	uint32_t i;

	for (i = 0; i < WORKERS; i++) {
		idea.seed = seed + i;
		t->steps[i] = NEVER;
		t->engines[i] = engine_new(&idea);
		if (t->engines[i] == NULL)
			errx(1, "no memory");
	}
}

/* ------------------------------------------------------------- requests --- */

static struct ride *
ride_new(struct traffic *t)
{
	if (t->f.requests == t->capacity) {
		t->capacity = t->capacity == 0 ? 1024 : t->capacity * 2;
		t->rides = realloc(t->rides, t->capacity * sizeof(*t->rides));
		if (t->rides == NULL)
			errx(1, "no memory");
	}
	memset(&t->rides[t->f.requests], 0, sizeof(*t->rides));
	return &t->rides[t->f.requests];
}

static void
refused(struct traffic *t, const struct ride *r, int64_t at)
{
	t->f.failed++;
	if (t->sessions != NULL && sessions_ended(t->sessions, r->ticket, at))
		errx(1, "no memory");
}

static void
submit(struct traffic *t, const struct trace_request *q, const struct ride *r,
    uint32_t worker)
{
	const struct engine_request e = { .number = t->f.requests++,
	    .tokens = q->tokens, .output = q->output_length, .ids = q->ids,
	    .known = q->known_output };

	if (engine_submit(t->engines[worker], &e) == ENGINE_OK) {
		listen(t, worker, r->arrival);
		return;
	}
	may(t, kvr_lease_abort(t->router[r->router].k, r->lease,
	    kvr_clock_now(), 0), "abort");
	refused(t, r, r->arrival);
}

static void
request(struct traffic *t, const struct trace_request *q, int64_t at)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct ride *r = ride_new(t);
	struct router *router;
	int error;

	r->arrival = at;
	r->ticket = q->number;
	r->tokens = q->tokens;
	r->router = deal(t, q);
	router = &t->router[r->router];
	if (tokens_make(&t->tokens, q) != 0)
		errx(1, "no memory");
	must(kvr_prompt_set_tokens(t->prompt, NULL, t->tokens.tokens,
	    q->tokens), "prompt");
	error = kvr_lease_open(router->k, t->prompt, NULL, kvr_clock_now(), &d);
	if (error != KVR_OK) {
		warnx("a request failed: %s", kvr_errname(error));
		refused(t, r, at);
		return;
	}
	r->lease = d.lease;
	t->f.predicted += d.overlap_tokens;
	may(t, kvr_lease_commit(router->k, d.lease, kvr_clock_now(), 0),
	    "commit");
	submit(t, q, r, fleet_number(router->fleet, d.worker));
}

/* ----------------------------------------------------------------- time --- */

static void
read_next(struct traffic *t)
{
	int result;

	do {
		result = trace_next(t->trace, &t->next);
	} while (result == 1 && t->next.tokens == 0);
	if (result < 0)
		errx(1, "%s", trace_error(t->trace));
	t->has_next = result == 1;
}

/* When the next request comes. */
static int64_t
arrival(const struct traffic *t)
{
	int64_t at = t->sessions != NULL ? sessions_next(t->sessions) :
	    t->has_next ? t->next.arrival_ms * MS : NEVER;

	return at >= t->until || ended ? NEVER : at;
}

static void
arrive(struct traffic *t, int64_t at)
{
	struct trace_request q = t->next;

	if (t->sessions != NULL && sessions_take(t->sessions, &q) != 0)
		errx(1, "no memory");
	if (q.tokens > 0)
		request(t, &q, at);
	if (t->sessions == NULL)
		read_next(t);
}

static void
wait_until(const struct traffic *t, int64_t at)
{
	const int64_t real = t->began + (int64_t)((double)at / t->speed);
	const struct timespec due = { .tv_sec = real / SECOND,
	    .tv_nsec = real % SECOND };

	if (real > kvr_clock_now())
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due,
		    NULL);
}

/* Until nothing is left to do. */
static void
run(struct traffic *t)
{
	uint32_t i, first;
	int64_t next;

	for (;;) {
		for (i = 1, first = 0; i < WORKERS; i++)
			if (t->steps[i] < t->steps[first])
				first = i;
		next = arrival(t);
		if (next == NEVER && t->steps[first] == NEVER)
			return;
		if (t->steps[first] <= next) {
			wait_until(t, t->steps[first]);
			step(t, first);
		} else {
			wait_until(t, next);
			arrive(t, next);
		}
	}
}

/* ----------------------------------------------------------------- main --- */

static void
open_input(struct traffic *t, const char *path, uint64_t seed)
{
	struct sessions_options o;
	struct stat status;
	FILE *in;

	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		session_files_add(&t->files, path);
		sessions_defaults(&o);
		o.seed = seed;
		o.active = ACTIVE;
		o.think_ns = THINK_S * SECOND;
		t->sessions = sessions_new(t->files.list, t->files.n, &o);
		if (t->sessions == NULL)
			errx(1, "no memory");
		return;
	}
	in = fopen(path, "r");
	if (in == NULL || (t->trace = trace_new(in, path)) == NULL)
		err(1, "%s", path);
	read_next(t);
}

static void
tell(const struct traffic *t)
{
	const struct figures *f = &t->f;
	const double finished = f->finished == 0 ? 1 : (double)f->finished;
	const double tokens = f->tokens == 0 ? 1 : (double)f->tokens;

	printf("requests=%" PRIu64 "\nfinished=%" PRIu64 "\nfailed=%" PRIu64
	    "\ngone=%" PRIu64 "\nhits=%.4f\npredicted=%.4f\n"
	    "first_mean_s=%.4f\n", f->requests, f->finished, f->failed,
	    f->gone, (double)f->hit / tokens, (double)f->predicted / tokens,
	    f->first_s / finished);
}

static void
make(int argc, char **argv)
{
	struct router r;
	int i;

	for (i = 3; i < argc; i++) {
		open_region(&r, argv[i], strtod(argv[2], NULL),
		    KVR_OPEN_CREATE);
		close_region(&r);
	}
}

static void
traffic(struct traffic *t, int argc, char **argv)
{
	struct kvr_options o = { .size = sizeof(o) };
	const uint64_t seed = strtoull(argv[4], NULL, 10);
	int i;

	t->speed = strtod(argv[2], NULL);
	t->until = (int64_t)(strtod(argv[3], NULL) * t->speed * 1e9);
	t->sticky = strcmp(argv[5], "sticky") == 0;
	t->deals.state = seed;
	for (i = RUN_ARGUMENTS - 1; i < argc && t->routers < ROUTERS_MAX; i++)
		open_region(&t->router[t->routers++], argv[i], t->speed,
		    KVR_OPEN_ATTACH);
	must(kvr_options_get(t->router[0].k, &o), "options");
	t->block = o.block_size;
	must(kvr_prompt_new(t->router[0].k, &t->prompt), "prompt");
	engines_make(t, seed);
	open_input(t, argv[6], seed);
	t->began = kvr_clock_now();
	run(t);
	tell(t);
}

int
main(int argc, char **argv)
{
	static struct traffic t;
	size_t i;

	signal(SIGTERM, end);
	if (argc > 3 && strcmp(argv[1], "make") == 0) {
		make(argc, argv);
		return 0;
	}
	if (argc < RUN_ARGUMENTS || strcmp(argv[1], "run") != 0)
		errx(2, "usage: see the source");
	traffic(&t, argc, argv);
	for (i = 0; i < WORKERS; i++)
		engine_free(t.engines[i]);
	for (i = 0; i < t.routers; i++)
		close_region(&t.router[i]);
	kvr_prompt_free(t.prompt);
	tokens_free(&t.tokens);
	trace_free(t.trace);
	sessions_free(t.sessions);
	session_files_free(&t.files);
	free(t.rides);
	return 0;
}
