/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_run.c - see simulate_run.h.
 *
 * Each policy of the command line is a separate simulation. The trace is read
 * and each prompt is hashed once, for all of them.
 */
#include "simulate_run.h"

#include "args.h"
#include "progress.h"
#include "report_page.h"
#include "simulate.h"
#include "simulate_args.h"
#include "session_files.h"
#include "sessions_drive.h"
#include "simulate_report.h"
#include "tokens.h"
#include "trace.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run {
	struct settings set;
	FILE *input;
	FILE *page; /* NULL: none */
	const char *name;
	struct trace *trace;
	struct tokens tokens;
	struct kvr *k; /* for the prompt only */
	struct kvr_prompt *prompt;
	struct simulation *simulations[POLICIES_MAX];
	uint64_t requests;
	int64_t last; /* arrival */
	struct session_files sessions;
	struct sessions_figures figures[POLICIES_MAX];
	struct progress bar;
	char *const *command;
	int n_words; /* of the command */
};

bool
simulate_wanted(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--simulate") == 0)
			return true;
	return false;
}

/* ----------------------------------------------------------- simulating --- */

static void
run_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

static void
open_trace(struct run *r)
{
	const char *path = r->set.path;
	int i;

	if (r->set.sessions != NULL) {
		r->name = "sessions";
		session_files_add(&r->sessions, r->set.sessions);
		for (i = 0; i < r->set.n_more_sessions; i++)
			session_files_add(&r->sessions,
			    r->set.more_sessions[i]);
		return;
	}
	r->input = args_input(path, &r->name);
	r->trace = trace_new(r->input, path == NULL ? r->name : path);
	if (r->trace == NULL)
		errx(ARGS_FAILED, "out of memory");
}

static void
make_simulations(struct run *r)
{
	const struct settings *s = &r->set;
	struct kvr_options region = s->region;
	size_t i;

	for (i = 0; i < s->n; i++) {
		const struct wanted *w = &s->wanted[i];
		struct simulate_options o = s->simulate;

		o.policy = w->policy;
		o.weights = w->weights;
		o.index = w->index;
		if (w->own_affinity)
			o.affinity = w->affinity;
		region.ttl_ns = w->ttl_ns;
		run_must(simulate_new(&o, &region, &r->simulations[i]),
		    w->name);
	}
	run_must(kvr_new(&region, &r->k), "creating an index");
	run_must(kvr_prompt_new(r->k, &r->prompt), "prompt");
}

static int64_t
run_arrival(const struct settings *s, const struct trace_request *q,
    int64_t first_ms)
{
	int64_t ms = s->spread ? q->arrival_ms : q->timestamp_ms - first_ms;
	double ns = (double)ms * 1e6 / s->speed;

	if (!(ns < 4e18))
		errx(ARGS_FAILED, "--speed %g: the replay would take too long",
		    s->speed);
	return (int64_t)ns;
}

static void
give_request(struct run *r, const struct trace_request *q, int64_t now)
{
	struct trace_request seen = trace_seen(q);
	size_t i;

	if (tokens_make(&r->tokens, &seen) != 0)
		errx(ARGS_FAILED, "out of memory");
	if (seen.tokens > 0)
		run_must(kvr_prompt_set_tokens(r->prompt, NULL,
		    r->tokens.tokens, seen.tokens), "hashing");
	for (i = 0; i < r->set.n; i++)
		run_must(simulate_request(r->simulations[i], r->prompt, q, now),
		    r->set.wanted[i].name);
}

static void
simulate_all(struct run *r)
{
	struct progress bar;
	struct trace_request q;
	int64_t first_ms = 0;
	size_t i;
	int result;

	progress_begin(&bar, r->set.quiet, progress_bytes(r->input));
	while ((result = trace_next(r->trace, &q)) == 1) {
		first_ms = r->requests == 0 ? q.timestamp_ms : first_ms;
		r->last = run_arrival(&r->set, &q, first_ms);
		give_request(r, &q, r->last);
		progress_show(&bar, trace_bytes(r->trace), ++r->requests);
	}
	for (i = 0; result == 0 && i < r->set.n; i++)
		run_must(simulate_drain(r->simulations[i]),
		    r->set.wanted[i].name);
	progress_end(&bar);
	if (result != 0)
		errx(ARGS_FAILED, "%s", trace_error(r->trace));
	if (r->requests == 0)
		errx(ARGS_FAILED, "%s: no requests", r->name);
}

static void
show_sent(void *context, uint64_t requests)
{
	struct run *r = context;

	progress_show(&r->bar, 0, r->requests + requests);
}

/* Each policy has its own closed loop. */
static void
simulate_sessions(struct run *r)
{
	struct sessions_options o = r->set.loop;
	struct sessions *loop;
	size_t i;

	o.seed = r->set.simulate.seed;
	progress_begin(&r->bar, r->set.quiet, 0);
	for (i = 0; i < r->set.n; i++) {
		loop = sessions_new(r->sessions.list, r->sessions.n, &o);
		if (loop == NULL)
			errx(ARGS_FAILED, "out of memory");
		run_must(sessions_drive(loop, r->simulations[i], r->prompt,
		    &r->tokens, show_sent, r), r->set.wanted[i].name);
		if (sessions_measure(loop, &r->figures[i]) != 0)
			errx(ARGS_FAILED, "out of memory");
		sessions_free(loop);
		r->requests += r->figures[i].requests;
		if (simulate_totals(r->simulations[i])->end > r->last)
			r->last = simulate_totals(r->simulations[i])->end;
	}
	r->requests /= r->set.n;
	progress_end(&r->bar);
}

/* Opened first, so that an unwritable file fails before hours of work. */
static void
open_report(struct run *r)
{
	const char *path = r->set.report;

	if (path == NULL)
		return;
	r->page = fopen(path, "w");
	if (r->page == NULL)
		err(ARGS_FAILED, "%s", path);
}

static void
write_page(const struct run *r, const struct simulate_about *about,
    const struct simulate_row *rows)
{
	if (r->page == NULL)
		return;
	run_must(report_page(r->page, about, r->command, r->n_words, rows,
	    r->set.n), "reporting");
	if (ferror(r->page) || fclose(r->page) != 0)
		err(ARGS_FAILED, "%s", r->set.report);
}

static void
write_report(const struct run *r)
{
	struct simulate_about about = { r->name, r->set.speed, r->requests,
	    r->last };
	struct simulate_row rows[POLICIES_MAX];
	size_t i;

	for (i = 0; i < r->set.n; i++)
		rows[i] = (struct simulate_row){ r->set.wanted[i].name,
		    r->simulations[i],
		    r->set.sessions == NULL ? NULL : &r->figures[i] };
	run_must(r->set.format == SIMULATE_KV ?
	    simulate_kv(stdout, rows, r->set.n) :
	    r->set.format == SIMULATE_JSON ?
	    simulate_json(stdout, rows, r->set.n) :
	    simulate_table(stdout, &about, rows, r->set.n), "reporting");
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	write_page(r, &about, rows);
}

int
simulate_run(int argc, char **argv)
{
	static struct run r;
	size_t i;

	r.command = argv;
	r.n_words = argc;
	simulate_args(&r.set, argc, argv);
	open_report(&r);
	open_trace(&r);
	make_simulations(&r);
	if (r.set.sessions != NULL)
		simulate_sessions(&r);
	else
		simulate_all(&r);
	write_report(&r);
	for (i = 0; i < r.set.n; i++)
		simulate_free(r.simulations[i]);
	kvr_prompt_free(r.prompt);
	kvr_free(r.k);
	tokens_free(&r.tokens);
	trace_free(r.trace);
	session_files_free(&r.sessions);
	if (r.input != NULL && r.input != stdin)
		fclose(r.input);
	return 0;
}
