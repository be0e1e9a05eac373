/* SPDX-License-Identifier: BSD-2-Clause */
/* threads.c - see threads.h. */
#include "threads.h"

#include "args.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIFT_SECONDS 0.35 /* of one thread; others take about as long */
#define FLOOR_SHARE 0.9    /* of the processors, which the floor must reach */

enum { TRY_REQUESTS = 1 << 14, TRY_MATCHES = 1 << 17 };

struct run {
	struct crew *crew;
	uint32_t threads, processors, pairs;
	uint64_t units[CREW_WORKS]; /* of a shift of one thread */
	double *rate[CREW_WORKS][THREADS_COLUMNS]; /* [pairs] */
	double *quotient; /* [pairs], in use by one figure at a time */
};

static const char *const work_names[CREW_WORKS] = { "floor", "match", "all" };

/* --------------------------------------------------------------- shifts --- */

static uint32_t
threads_of(const struct run *r, enum threads_column column)
{
	return column == THREADS_ONE ? 1 : column == THREADS_TWO ? 2 :
	    r->threads;
}

/* More work for more threads, as far as there are processors for them. */
static double
shift(struct run *r, enum crew_work work, enum threads_column column)
{
	uint32_t threads = threads_of(r, column);
	uint32_t at_once = threads < r->processors ? threads : r->processors;

	return crew_shift(r->crew, work, threads, r->units[work] * at_once);
}

/* Finds how much work makes a shift; all threads run it once first. */
static void
find_units(struct run *r)
{
	enum crew_work work;
	double rate;

	for (work = 0; work < CREW_WORKS; work++) {
		uint64_t units = work == CREW_MATCH ? TRY_MATCHES :
		    TRY_REQUESTS;

		(void)crew_shift(r->crew, work, r->threads, units);
		rate = crew_shift(r->crew, work, 1, units);
		r->units[work] = (uint64_t)(rate * SHIFT_SECONDS) + 1;
	}
}

/* All shifts of one work in one pair; the columns in either direction. */
static void
measure_work(struct run *r, uint32_t pair, enum crew_work work)
{
	bool back = pair % 2 == 1;
	uint32_t i;

	for (i = 0; i < THREADS_COLUMNS; i++) {
		enum threads_column column = (enum threads_column)(back ?
		    THREADS_COLUMNS - 1 - i : i);

		/* With two threads this column equals the last one. */
		if (column != THREADS_TWO || r->threads > 2)
			r->rate[work][column][pair] = shift(r, work, column);
	}
	if (r->threads == 2)
		r->rate[work][THREADS_TWO][pair] =
		    r->rate[work][THREADS_ALL][pair];
}

static void
measure_pair(struct run *r, uint32_t pair)
{
	uint32_t i;

	for (i = 0; i < CREW_WORKS; i++)
		measure_work(r, pair, (enum crew_work)(pair % 2 == 1 ?
		    CREW_WORKS - 1 - i : i));
}

/* -------------------------------------------------------------- figures --- */

static int
threads_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts the values. */
static struct threads_figure
figure(double *values, uint32_t n)
{
	struct threads_figure f;

	qsort(values, n, sizeof(*values), threads_compare);
	f.least = values[0];
	f.most = values[n - 1];
	f.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
	return f;
}

/* Of a work's rates in two columns, pair by pair. */
static struct threads_figure
quotient(struct run *r, enum crew_work work, enum threads_column over,
    enum threads_column under)
{
	uint32_t i;

	for (i = 0; i < r->pairs; i++)
		r->quotient[i] = r->rate[work][over][i] /
		    r->rate[work][under][i];
	return figure(r->quotient, r->pairs);
}

static struct threads_figure
of_floor(struct run *r, enum crew_work work)
{
	uint32_t i;

	for (i = 0; i < r->pairs; i++)
		r->quotient[i] = r->rate[work][THREADS_ALL][i] /
		    r->rate[work][THREADS_ONE][i] /
		    (r->rate[CREW_FLOOR][THREADS_ALL][i] /
		    r->rate[CREW_FLOOR][THREADS_ONE][i]);
	return figure(r->quotient, r->pairs);
}

static void
conclude(struct run *r, struct threads *out)
{
	uint32_t at_once = r->threads < r->processors ? r->threads :
	    r->processors;
	enum crew_work work;
	uint32_t column;

	for (work = 0; work < CREW_WORKS; work++) {
		out->scale[work] = quotient(r, work, THREADS_ALL, THREADS_ONE);
		out->of_two[work] = quotient(r, work, THREADS_ALL,
		    THREADS_TWO);
		out->of_floor[work] = of_floor(r, work);
	}
	for (work = 0; work < CREW_WORKS; work++)
		for (column = 0; column < THREADS_COLUMNS; column++)
			out->rate[work][column] = figure(r->rate[work][column],
			    r->pairs);
	out->expected = FLOOR_SHARE * (at_once < 2 ? 2 : at_once);
	out->valid = out->scale[CREW_FLOOR].median >= out->expected;
}

/* -------------------------------------------------------------- measure --- */

static double *
doubles(uint32_t n)
{
	double *d = calloc(n, sizeof(*d));

	if (d == NULL)
		err(ARGS_FAILED, NULL);
	return d;
}

void
threads_measure(const struct load *l, const struct world_options *options,
    uint32_t threads, uint32_t pairs, struct threads *out)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	struct run r;
	uint32_t i;

	memset(&r, 0, sizeof(r));
	r.threads = threads;
	r.processors = processors < 1 ? 1 : (uint32_t)processors;
	r.pairs = pairs;
	r.quotient = doubles(pairs);
	for (i = 0; i < CREW_WORKS * THREADS_COLUMNS; i++)
		r.rate[i / THREADS_COLUMNS][i % THREADS_COLUMNS] =
		    doubles(pairs);
	r.crew = crew_new(l, options, threads);
	find_units(&r);
	for (i = 0; i < pairs; i++)
		measure_pair(&r, i);
	memset(out, 0, sizeof(*out));
	out->threads = threads;
	out->processors = r.processors;
	out->pairs = pairs;
	conclude(&r, out);
	crew_stats(r.crew, &out->stats);
	crew_free(r.crew);
	for (i = 0; i < CREW_WORKS * THREADS_COLUMNS; i++)
		free(r.rate[i / THREADS_COLUMNS][i % THREADS_COLUMNS]);
	free(r.quotient);
}

/* ---------------------------------------------------------------- print --- */

static void
kv(const char *name, const char *of, struct threads_figure f)
{
	printf("%s%s=%.3f\n%s%s_min=%.3f\n%s%s_max=%.3f\n", name, of, f.median,
	    name, of, f.least, name, of, f.most);
}

/* Of match and of all, whichever is the smaller. */
static double
rate_of_two(const struct threads *t)
{
	double match = t->of_two[CREW_MATCH].median;
	double all = t->of_two[CREW_ALL].median;

	return match < all ? match : all;
}

void
threads_print_kv(const struct threads *t)
{
	enum crew_work work;

	printf("threads=%" PRIu32 "\nprocessors=%" PRIu32 "\npairs=%" PRIu32
	    "\nvalid=%d\n", t->threads, t->processors, t->pairs, t->valid);
	for (work = 0; work < CREW_WORKS; work++)
		printf("%s_rate_1=%.0f\n%s_rate=%.0f\n", work_names[work],
		    t->rate[work][THREADS_ONE].median, work_names[work],
		    t->rate[work][THREADS_ALL].median);
	for (work = 0; work < CREW_WORKS; work++)
		kv("scale_", work_names[work], t->scale[work]);
	kv("match", "_of_floor", t->of_floor[CREW_MATCH]);
	kv("all", "_of_floor", t->of_floor[CREW_ALL]);
	if (t->threads > 2) {
		printf("rate_of_two=%.3f\n", rate_of_two(t));
		for (work = 0; work < CREW_WORKS; work++)
			kv(work_names[work], "_of_two", t->of_two[work]);
	}
	printf("retried=%" PRIu64 "\nlocked=%" PRIu64 "\ndropped=%" PRIu64
	       "\nevicted_region=%" PRIu64 "\n",
	    t->stats.read_retries, t->stats.read_locks, t->stats.busy_writes,
	    t->stats.evicted_region);
}

static void
print_figure(const char *name, struct threads_figure f)
{
	printf("  %-28s %8.3f   (%.3f to %.3f)\n", name, f.median, f.least,
	    f.most);
}

static void
print_rates(const struct threads *t)
{
	static const char *const what[CREW_WORKS] = {
		"floor: hashes alone", "match, already hashed",
		"hash, match, observe" };
	enum crew_work work;

	printf("requests a second, thousands\n");
	for (work = 0; work < CREW_WORKS; work++) {
		const struct threads_figure *rate = t->rate[work];

		printf("  %-28s %8.1f with 1", what[work],
		    rate[THREADS_ONE].median / 1e3);
		if (t->threads > 2)
			printf(" %8.1f with 2", rate[THREADS_TWO].median / 1e3);
		printf(" %8.1f with %" PRIu32 "\n",
		    rate[THREADS_ALL].median / 1e3, t->threads);
	}
}

void
threads_print_text(const struct threads *t)
{
	printf("%" PRIu32 " threads on %" PRIu32 " processors, median (least "
	    "to most) of %" PRIu32 " pairs\n\n", t->threads, t->processors,
	    t->pairs);
	print_rates(t);
	printf("\n%" PRIu32 " threads, as multiples of one\n", t->threads);
	print_figure("floor", t->scale[CREW_FLOOR]);
	print_figure("match", t->scale[CREW_MATCH]);
	print_figure("all of it", t->scale[CREW_ALL]);
	printf("\nof what the floor reaches\n");
	print_figure("match", t->of_floor[CREW_MATCH]);
	print_figure("all of it", t->of_floor[CREW_ALL]);
	if (t->threads > 2) {
		printf("\n%" PRIu32 " threads, as multiples of two\n",
		    t->threads);
		print_figure("floor", t->of_two[CREW_FLOOR]);
		print_figure("match", t->of_two[CREW_MATCH]);
		print_figure("all of it", t->of_two[CREW_ALL]);
	}
	printf("\nreads begun anew: %" PRIu64 "; reads that took the lock: %"
	    PRIu64 "; writes dropped: %" PRIu64 "\n", t->stats.read_retries,
	    t->stats.read_locks, t->stats.busy_writes);
	if (t->stats.evicted_region > 0)
		printf("the region was full (%" PRIu64 " entries evicted): "
		    "more --memory?\n", t->stats.evicted_region);
	if (!t->valid)
		printf("\nNot valid: threads that only hash reached %.2f "
		    "times one, and %.2f is the least\nat which the rest "
		    "proves anything. Something else ran on this machine.\n",
		    t->scale[CREW_FLOOR].median, t->expected);
}
