/* SPDX-License-Identifier: BSD-2-Clause */
/* search.c - see search.h. */
#include "search.h"

#include "args.h"
#include "rng.h"

#include <err.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHANGES = 3, REQUESTS = 3000, TRIALS = 3 };

const struct plan plan_usual = { .requests = 100000, .workers = 64,
	.memory = 64, .ttl = 120, .second = 200, .cost = KVR_COST_BALANCED,
	.retain = KVR_RETAIN_AUTO, .systems = 64, .system = 100,
	.chats = 4096, .turns = 20, .turn = 20, .parts = 8, .seldom = 1000,
	.leases = 512 };

/* Numbers of a plan; the search draws from the values. */
static const struct field {
	const char *name;
	size_t at;
	uint32_t min, max;
	uint32_t n, values[8];
} fields[] = {
#define AT(member) #member, offsetof(struct plan, member)
	{ AT(seed), 0, UINT32_MAX, 0, { 0 } },
	{ AT(requests), 100, 1000000000, 0, { 0 } },
	{ AT(workers), 1, KVR_WORKERS_MAX, 4, { 64, 512, 1000, 4096 } },
	{ AT(memory), 1, 65536, 4, { 8, 32, 64, 128 } },
	{ AT(ttl), 1, 1000000, 3, { 10, 120, 3600 } },
	{ AT(second), 1, 1000000, 3, { 20, 200, 2000 } },
	{ AT(cost), 0, KVR_COST_DYNAMO, 3, { 0, 0, KVR_COST_DYNAMO } },
	{ AT(retain), 0, KVR_RETAIN_FEEDBACK, 4, { KVR_RETAIN_AUTO,
	    KVR_RETAIN_TTL, KVR_RETAIN_CAPACITY, KVR_RETAIN_FEEDBACK } },
	{ AT(capacity), 0, 1000000, 4, { 20, 100, 1000, 10000 } },
	{ AT(window), 0, KVR_WINDOW_DUAL, 6, { 0, 0, 0, KVR_WINDOW_DENSE,
	    KVR_WINDOW_BOUNDARY, KVR_WINDOW_DUAL } },
	{ AT(engine), 0, 100000, 3, { 0, 16, 64 } },
	{ AT(reports), 0, 2, 3, { 0, 1, 2 } },
	{ AT(sessions), 0, 1, 3, { 0, 0, 1 } },
	{ AT(systems), 1, 1000, 3, { 1, 4, 64 } },
	{ AT(system), 1, 10000, 4, { 4, 50, 250, 1000 } },
	{ AT(fill), 0, 1, 2, { 0, 1 } },
	{ AT(chats), 1, 1000000, 4, { 1, 4, 64, 4096 } },
	{ AT(turns), 1, 10000, 4, { 4, 32, 100, 500 } },
	{ AT(turn), 1, 1000, 4, { 1, 4, 10, 40 } },
	{ AT(parts), 0, 1000000, 4, { 0, 1, 2, 8 } },
	{ AT(backs), 0, 1000000, 4, { 0, 2, 8, 32 } },
	{ AT(spread), 0, 1000000, 5, { 0, 0, 1, 4, 16 } },
	{ AT(seldom), 0, 1000000, 1, { 1000 } },
	{ AT(leases), 1, 1000000, 4, { 1, 16, 512, 2000 } }
#undef AT
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static uint32_t *
field_at(struct plan *p, const struct field *f)
{
	return (uint32_t *)(void *)((char *)p + f->at);
}

/* ---------------------------------------------------------------- plans --- */

static void
plan_take(struct plan *p, char *word, const char *text)
{
	char *number = strchr(word, '=');
	uint32_t i;

	if (number != NULL)
		*number++ = '\0';
	for (i = 0; number != NULL && i < FIELDS; i++)
		if (strcmp(word, fields[i].name) == 0) {
			*field_at(p, &fields[i]) = (uint32_t)args_number(
			    word, number, fields[i].min, fields[i].max);
			return;
		}
	errx(ARGS_USAGE, "%s: %s is no number of a history", text, word);
}

void
plan_read(const char *text, struct plan *p)
{
	char *copy = strdup(text), *rest = copy, *word;

	if (copy == NULL)
		err(ARGS_FAILED, NULL);
	*p = plan_usual;
	while ((word = strsep(&rest, ",")) != NULL)
		plan_take(p, word, text);
	free(copy);
}

void
plan_write(const struct plan *p, FILE *f)
{
	struct plan copy = *p, usual = plan_usual;
	const char *before = "";
	uint32_t i;

	for (i = 0; i < FIELDS; i++) {
		uint32_t value = *field_at(&copy, &fields[i]);

		if (value == *field_at(&usual, &fields[i]))
			continue;
		fprintf(f, "%s%s=%" PRIu32, before, fields[i].name, value);
		before = ",";
	}
}

/* --------------------------------------------------------------- search --- */

/* The worst of a call. */
struct worst {
	struct plan plan;
	double p999, most;
	uint64_t steps;
};

struct search {
	struct rng random;
	struct worst worst[CALLS];
	uint64_t histories, calls;
};

static uint32_t
pick(struct search *s, uint32_t n)
{
	return (uint32_t)rng_between(&s->random, 0, n - 1);
}

static void
draw_field(struct search *s, struct plan *p, const struct field *f)
{
	if (f->n > 0)
		*field_at(p, f) = f->values[pick(s, f->n)];
}

static void
draw_plan(struct search *s, struct plan *p)
{
	const struct worst *w = &s->worst[pick(s, CALLS)];
	uint32_t i;

	*p = plan_usual;
	if (w->most > 0 && pick(s, 2) == 0) {
		*p = w->plan;
		for (i = 0; i < CHANGES; i++)
			draw_field(s, p, &fields[pick(s, FIELDS)]);
	} else {
		for (i = 0; i < FIELDS; i++)
			draw_field(s, p, &fields[i]);
	}
	p->requests = REQUESTS;
	p->seed = pick(s, 1000000);
	if (p->retain == KVR_RETAIN_CAPACITY && p->capacity == 0)
		p->capacity = p->system;
}

/* Worse than all before it: what is so in each of a few trials counts. */
static void
look_again(struct search *s, const struct plan *p)
{
	struct history h;
	double p999;
	uint32_t i;

	if (!history_run(p, TRIALS, &h))
		return;
	for (i = 0; i < CALLS; i++) {
		struct worst *w = &s->worst[i];

		if (h.times[i].n == 0)
			continue;
		p999 = history_rank(&h.times[i], 999);
		if (history_rank(&h.times[i], 1000) > w->most)
			w->most = history_rank(&h.times[i], 1000);
		if (p999 > w->p999) {
			w->plan = *p;
			w->p999 = p999;
			w->steps = h.max_steps;
		}
	}
	history_free(&h);
}

static void
try_plan(struct search *s, const struct plan *p)
{
	struct history h;
	bool worse = false;
	uint32_t i;

	if (!history_run(p, 1, &h))
		return;
	s->histories++;
	for (i = 0; i < CALLS; i++) {
		s->calls += h.times[i].n;
		if (h.times[i].n > 0 && history_rank(&h.times[i], 999) >
		    s->worst[i].p999)
			worse = true;
	}
	if (worse)
		look_again(s, p);
	history_free(&h);
}

static void
print_worst(const struct search *s)
{
	uint32_t i;

	printf("%" PRIu64 " histories, %" PRIu64 " calls\n"
	    "%-20s %9s %9s %9s  history\n", s->histories, s->calls,
	    "worst CPU time, us", "99.9 %", "most", "steps");
	for (i = 0; i < CALLS; i++) {
		const struct worst *w = &s->worst[i];

		if (!(w->most > 0))
			continue;
		printf("  %-18s %9.2f %9.2f %9" PRIu64 "  ", call_names[i],
		    w->p999 / 1e3, w->most / 1e3, w->steps);
		plan_write(&w->plan, stdout);
		putchar('\n');
	}
}

void
search_run(uint32_t seconds, uint32_t seed)
{
	struct search *s = calloc(1, sizeof(*s));
	time_t until = time(NULL) + (time_t)seconds;
	struct plan p;

	if (s == NULL)
		err(ARGS_FAILED, NULL);
	s->random.state = seed;
	do {
		draw_plan(s, &p);
		try_plan(s, &p);
	} while (time(NULL) < until);
	print_worst(s);
	free(s);
}
