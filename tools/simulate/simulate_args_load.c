/* SPDX-License-Identifier: BSD-2-Clause */
/* simulate_args_load.c - see simulate_args_load.h. */
#include "simulate_args_load.h"

#include "args.h"

#include <bsd/string.h>
#include <err.h>
#include <inttypes.h>
#include <string.h>

static const char *const change_names[] = {
	[SIMULATE_JOIN] = "join",
	[SIMULATE_DRAIN] = "drain",
	[SIMULATE_KILL] = "kill",
	[SIMULATE_SLOW] = "slow",
	[SIMULATE_SLOW_END] = "slow"
};

/* Splits a copy of `text` into exactly n parts. */
static void
args_parts(const char *option, const char *text, const char *form,
    char *copy, size_t size, const char **parts, size_t n)
{
	char separators[2] = { n == 2 && strchr(form, ',') ? ',' : ':', 0 };
	char *rest = copy, *part;
	size_t i = 0;

	if (strlcpy(copy, text, size) >= size)
		errx(ARGS_USAGE, "--%s: too long", option);
	while ((part = strsep(&rest, separators)) != NULL) {
		if (i < n)
			parts[i] = part;
		i++;
	}
	if (i != n)
		errx(ARGS_USAGE, "--%s %s: not %s", option, text, form);
}

static void
args_add(struct simulate_options *o, const struct simulate_change *c)
{
	if (!simulate_add_change(o, c))
		errx(ARGS_USAGE, "--%s: more than %d changes of workers",
		    change_names[c->kind], SIMULATE_CHANGES_MAX);
}

static uint32_t
args_worker(const char *option, const char *text)
{
	return (uint32_t)args_number(option, text, 0, KVR_WORKERS_MAX - 1);
}

void
args_change(struct simulate_options *o, enum simulate_change_kind kind,
    const char *text)
{
	const char *option = change_names[kind], *parts[2];
	struct simulate_change c = { .kind = kind, .factor = 1 };
	char copy[64];

	args_parts(option, text, "WORKER:SEC", copy, sizeof(copy), parts, 2);
	c.worker = args_worker(option, parts[0]);
	c.at = args_seconds(option, parts[1]);
	args_add(o, &c);
}

void
args_slow(struct simulate_options *o, const char *text)
{
	struct simulate_change c = { .kind = SIMULATE_SLOW };
	const char *parts[4];
	char copy[64];

	args_parts("slow", text, "WORKER:FROM:TO:FACTOR", copy, sizeof(copy),
	    parts, 4);
	c.worker = args_worker("slow", parts[0]);
	c.at = args_seconds("slow", parts[1]);
	c.factor = args_factor("slow", parts[3]);
	args_add(o, &c);
	c.kind = SIMULATE_SLOW_END;
	if (args_seconds("slow", parts[2]) <= c.at)
		errx(ARGS_USAGE, "--slow %s: ends before it begins", text);
	c.at = args_seconds("slow", parts[2]);
	args_add(o, &c);
}

void
args_slo(struct simulate_options *o, const char *text)
{
	const char *parts[2];
	char copy[64];

	args_parts("slo", text, "TTFT,TOKEN (seconds, milliseconds)", copy,
	    sizeof(copy), parts, 2);
	o->slo_first_ns = args_seconds("slo", parts[0]);
	o->slo_token_ns = args_seconds("slo", parts[1]) / 1000;
	if (o->slo_first_ns <= 0 || o->slo_token_ns <= 0)
		errx(ARGS_USAGE, "--slo %s: not above 0", text);
}

/* ------------------------------------------------------ sliding windows --- */

enum {
	WINDOW_TOKENS, WINDOW_GROUPS, WINDOW_ALIGN, WINDOW_INTERVAL,
	WINDOW_CAPACITY, WINDOW_VALUES
};
static const char *const window_values[WINDOW_VALUES] = {
	[WINDOW_TOKENS] = "tokens",
	[WINDOW_GROUPS] = "groups",
	[WINDOW_ALIGN] = "align",
	[WINDOW_INTERVAL] = "interval",
	[WINDOW_CAPACITY] = "capacity"
};

/* `text` is NAME=N. */
static void
window_value(struct engine_window_idea *w, char *text)
{
	char *value = strchr(text, '=');
	uint64_t n;
	size_t i;

	if (value == NULL)
		errx(ARGS_USAGE, "--window %s: not NAME=N", text);
	*value++ = '\0';
	i = args_word("window", text, window_values, WINDOW_VALUES);
	n = args_number("window", value, 1, i == WINDOW_GROUPS ? 100 :
	    i == WINDOW_CAPACITY ? INT64_MAX : 1 << 30);
	if (i == WINDOW_TOKENS)
		w->tokens = n;
	else if (i == WINDOW_GROUPS)
		w->groups = (uint32_t)n;
	else if (i == WINDOW_ALIGN)
		w->align = n;
	else if (i == WINDOW_INTERVAL)
		w->interval = n;
	else
		w->capacity = n;
}

void
args_window(struct simulate_options *o, const char *text)
{
	struct engine_window_idea *w = &o->window;
	char copy[256], *rest = copy, *part;

	if (strlcpy(copy, text, sizeof(copy)) >= sizeof(copy))
		errx(ARGS_USAGE, "--window: too long");
	*w = (struct engine_window_idea){ .tokens = 1024, .groups = 5 };
	part = strsep(&rest, "+");
	w->mode = (enum engine_window_mode)args_word("window", part,
	    engine_window_names, ENGINE_WINDOW_MODES);
	while ((part = strsep(&rest, "+")) != NULL)
		window_value(w, part);
	if ((w->mode == ENGINE_WINDOW_DUAL) != (w->capacity > 0))
		errx(ARGS_USAGE, "--window %s: dual, and nothing else, has a "
		    "capacity", text);
}

/* ------------------------------------------------------------- together --- */

/* A decoding request takes a token of each step, so all must fit into one. */
static void
check_batch(const struct simulate_options *o)
{
	uint32_t most = o->n_sequences == 0 ? ENGINE_SEQUENCES : 0, i;

	for (i = 0; i < o->n_sequences; i++)
		most = o->sequences[i] > most ? o->sequences[i] : most;
	if (o->batch > 0 && o->batch < most)
		errx(ARGS_USAGE, "--batch %" PRIu32 ": less than the %" PRIu32
		    " requests that run at a time (--sequences)", o->batch,
		    most);
}

void
args_load_check(const struct simulate_options *o)
{
	const struct simulate_change *c;
	const char *problem;
	uint32_t which = 0;

	check_batch(o);
	problem = simulate_changes_problem(o, &which);
	c = &o->changes[which];
	if (problem != NULL)
		errx(ARGS_USAGE, "--%s %" PRIu32 ":%g: %s",
		    change_names[c->kind], c->worker, (double)c->at / 1e9,
		    problem);
}
