/* SPDX-License-Identifier: BSD-2-Clause */
/* step_times.c - see step_times.h. */
#include "step_times.h"

#include "fit.h"
#include "measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MODES = 4, TENANTS = 64 };
#define INDEX_RATIO_MAX 1.5 /* of TTL's */
#define BYTES_MAX 8.0       /* a live pair, with modes other than TTL */

static const struct mode {
	const char *name;
	uint32_t retain;
	uint32_t tenants; /* of the region */
} modes[MODES] = {
	{ "ttl", KVR_RETAIN_TTL, 0 },
	{ "capacity", KVR_RETAIN_CAPACITY, 0 },
	{ "feedback", KVR_RETAIN_FEEDBACK, 0 },
	{ "shared", KVR_RETAIN_TTL, TENANTS }
};

struct result {
	struct world_options options;
	const struct load *load;
	struct measuring *measuring;
	struct measure measure;
	struct fit fit;
	uint64_t blocks;
	uint32_t trials;
	const char *name; /* of its retention */
};

static double
bytes_per_live(const struct result *r)
{
	return r->fit.live_max == 0 ? 0 : (double)r->fit.bytes /
	    (double)r->fit.live_max;
}

/* ------------------------------------------------------------- as lines --- */

static void
steps_print_kv(const struct result *r, const char *prefix)
{
	const struct measure *m = &r->measure;
	const struct {
		const char *name;
		double ns;
	} lines[] = {
		{ "floor_ns", m->floor_ns },
		{ "hash_ns", m->hash_ns },
		{ "match_ns", m->match_ns },
		{ "observe_ns", m->observe_ns },
		{ "expire_ns", m->expire_ns },
		{ "index_ns", m->index_ns },
		{ "total_ns", m->hash_ns + m->index_ns },
		{ "route_ns", m->route_ns },
		{ "route_busy_ns", m->route_busy_ns },
		{ "p50_ns", m->total[MEASURE_P50] },
		{ "p99_ns", m->total[MEASURE_P99] },
		{ "p999_ns", m->total[MEASURE_P999] },
		{ "index_p50_ns", m->index[MEASURE_P50] },
		{ "index_p99_ns", m->index[MEASURE_P99] },
		{ "index_p999_ns", m->index[MEASURE_P999] },
		{ "decide_ns", m->decide_ns },
		{ "lease_ns", m->lease_ns }
	};
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{ "region_min_bytes", r->fit.bytes },
		{ "evicted_region", m->evicted_region },
		{ "truncated", m->truncated },
		{ "expired", m->expired },
		{ "evicted_capacity", m->evicted_capacity }
	};
	size_t i;

	printf("%srequests=%zu\n%sblocks=%" PRIu64 "\n", prefix, r->load->n,
	    prefix, r->blocks);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		printf("%s%s=%.1f\n", prefix, lines[i].name, lines[i].ns);
	printf("%slive_max=%" PRIu64 "\n%sbytes_per_live=%.2f\n", prefix,
	    r->fit.live_max, prefix, bytes_per_live(r));
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		printf("%s%s=%" PRIu64 "\n", prefix, counts[i].name,
		    counts[i].n);
}

/* -------------------------------------------------------------- as text --- */

static void
steps_print_head(const struct result *r)
{
	const struct world_options *o = &r->options;

	printf("%zu requests, %" PRIu64 " blocks of %" PRIu32 " tokens, %"
	    PRIu32 " workers, ", r->load->n, r->blocks, o->region.block_size,
	    o->workers);
	if (o->retain == KVR_RETAIN_CAPACITY)
		printf("%" PRIu64 " tokens each", o->capacity_tokens);
	else if (o->retain == KVR_RETAIN_FEEDBACK)
		printf("feedback");
	else if (o->region.ttl_ns < 0)
		printf("TTL endless");
	else
		printf("TTL %g s", (double)o->region.ttl_ns / 1e9);
	printf(", best of %" PRIu32 "\n", r->trials);
}

static void
print_step(const char *name, double ns, double floor_ns)
{
	printf("  %-22s %9.2f us  %6.2f x floor\n", name, ns / 1e3,
	    floor_ns > 0 ? ns / floor_ns : 0);
}

static void
print_ranks(const char *name, const double *ranks)
{
	printf("  %-22s %9.2f %9.2f %9.2f\n", name, ranks[0] / 1e3,
	    ranks[1] / 1e3, ranks[2] / 1e3);
}

/* What was evicted or truncated in the timed region, expected or not. */
static void
print_losses(const struct result *r)
{
	const struct measure *m = &r->measure;

	if (m->evicted_region > 0 || m->truncated > 0)
		printf("the timed region was full (%" PRIu64 " entries "
		    "evicted, %" PRIu64 " prompts cut): more --memory?\n",
		    m->evicted_region, m->truncated);
	if (r->options.retain == KVR_RETAIN_CAPACITY &&
	    m->evicted_capacity == 0)
		printf("no worker was ever full: less --capacity?\n");
}

static void
steps_print_text(const struct result *r)
{
	const struct measure *m = &r->measure;

	steps_print_head(r);
	printf("\nmean of a request\n");
	print_step("floor: hashes alone", m->floor_ns, m->floor_ns);
	print_step("hash", m->hash_ns, m->floor_ns);
	print_step("match", m->match_ns, m->floor_ns);
	print_step("observe", m->observe_ns, m->floor_ns);
	print_step("expire", m->expire_ns, m->floor_ns);
	print_step("index (without hash)", m->index_ns, m->floor_ns);
	print_step("all of it", m->hash_ns + m->index_ns, m->floor_ns);
	print_step("cost function, apart", m->route_ns, m->floor_ns);
	print_step("  the same under load", m->route_busy_ns, m->floor_ns);
	print_step("route: match, choice", m->decide_ns, m->floor_ns);
	print_step("a lease, to its report", m->lease_ns, m->floor_ns);
	printf("\n%-24s %9s %9s %9s us\n", "percentiles", "50", "99", "99.9");
	print_ranks("index", m->index);
	print_ranks("all of it", m->total);
	printf("\nmemory: %.2f bytes a live (block, worker) pair; %" PRIu64
	    " at the peak in %.1f KiB\n", bytes_per_live(r),
	    r->fit.live_max, (double)r->fit.bytes / 1024);
	print_losses(r);
}

/* ------------------------------------------------------ side by side --- */

enum row {
	ROW_FLOOR, ROW_HASH, ROW_MATCH, ROW_OBSERVE, ROW_EXPIRE, ROW_INDEX,
	ROW_P999, ROW_CHOICE, ROW_ROUTE, ROW_LEASE, ROWS
};
static const char *const row_names[ROWS] = {
	"floor: hashes alone", "hash", "match", "observe", "expire",
	"index (without hash)", "  of it 99.9 %", "cost function, apart",
	"route: match, choice", "a lease, to its report"
};

static void
fill_rows(const struct result *r, double rows[ROWS][MODES])
{
	size_t i;

	for (i = 0; i < MODES; i++) {
		const struct measure *m = &r[i].measure;

		rows[ROW_FLOOR][i] = m->floor_ns;
		rows[ROW_HASH][i] = m->hash_ns;
		rows[ROW_MATCH][i] = m->match_ns;
		rows[ROW_OBSERVE][i] = m->observe_ns;
		rows[ROW_EXPIRE][i] = m->expire_ns;
		rows[ROW_INDEX][i] = m->index_ns;
		rows[ROW_P999][i] = m->index[MEASURE_P999];
		rows[ROW_CHOICE][i] = m->route_ns;
		rows[ROW_ROUTE][i] = m->decide_ns;
		rows[ROW_LEASE][i] = m->lease_ns;
	}
}

static void
steps_print_row(const char *name, const double *value, double scale)
{
	size_t i;

	printf("  %-22s", name);
	for (i = 0; i < MODES; i++)
		printf(" %9.2f", scale > 0 ? value[i] / scale : 0);
	printf("\n");
}

static void
print_verdict(const char *what, const char *mode, double value, double most)
{
	printf("%s, %s: %.2f, asked at most %.2f: %s\n", what, mode, value,
	    most, value <= most ? "reached" : "MISSED");
}

/* A time of a mode as a multiple of TTL's. */
static double
over_ttl(const double *row, size_t mode)
{
	return row[0] > 0 ? row[mode] / row[0] : 0;
}

static void
print_beside(const struct result *r)
{
	double rows[ROWS][MODES], bytes[MODES];
	const double *index = rows[ROW_INDEX], *lease = rows[ROW_LEASE];
	enum row row;
	size_t i;

	fill_rows(r, rows);
	for (i = 0; i < MODES; i++) {
		steps_print_head(&r[i]);
		bytes[i] = bytes_per_live(&r[i]);
	}
	printf("\n%-24s %9s %9s %9s %9s\n", "mean of a request, us", r[0].name,
	    r[1].name, r[2].name, r[3].name);
	for (row = 0; row < ROWS; row++)
		steps_print_row(row_names[row], rows[row], 1e3);
	steps_print_row("index, over ttl's", index, index[0]);
	steps_print_row("lease, over ttl's", lease, lease[0]);
	steps_print_row("bytes a live pair", bytes, 1);
	printf("\n");
	for (i = 1; i < MODES; i++)
		print_verdict("index over ttl's", r[i].name,
		    over_ttl(index, i), INDEX_RATIO_MAX);
	for (i = 1; i < MODES; i++)
		print_verdict("bytes a live pair", r[i].name, bytes[i],
		    BYTES_MAX);
	for (i = 0; i < MODES; i++)
		print_losses(&r[i]);
}

static void
print_beside_kv(const struct result *r)
{
	double rows[ROWS][MODES];
	char prefix[32];
	size_t i;

	fill_rows(r, rows);
	for (i = 0; i < MODES; i++) {
		(void)snprintf(prefix, sizeof(prefix), "%s.", r[i].name);
		steps_print_kv(&r[i], prefix);
		printf("%sindex_ratio=%.3f\n%slease_ratio=%.3f\n", prefix,
		    over_ttl(rows[ROW_INDEX], i), prefix,
		    over_ttl(rows[ROW_LEASE], i));
	}
}

/* -------------------------------------------------------------- measure --- */

static void
steps_begin(struct result *r, const struct mode *mode, const struct load *l,
    const struct world_options *options, uint32_t trials)
{
	size_t i;

	memset(r, 0, sizeof(*r));
	r->options = *options;
	r->options.retain = mode->retain;
	r->options.region.tenants = mode->tenants;
	r->name = mode->name;
	r->load = l;
	r->trials = trials;
	for (i = 0; i < l->n; i++)
		r->blocks += l->requests[i].tokens /
		    options->region.block_size;
	r->measuring = measure_new(l, &r->options);
}

static void
steps_end(struct result *r)
{
	measure_end(r->measuring, &r->measure);
	fit_find(r->load, &r->options, &r->fit);
}

static void
run_all(const struct load *l, const struct world_options *options,
    uint32_t trials, bool kv)
{
	struct result r[MODES];
	uint32_t i, trial;

	for (i = 0; i < MODES; i++)
		steps_begin(&r[i], &modes[i], l, options, trials);
	for (trial = 0; trial < trials; trial++)
		for (i = 0; i < MODES; i++)
			measure_trial(r[trial % 2 == 0 ? i : MODES - 1 - i]
			    .measuring);
	for (i = 0; i < MODES; i++)
		steps_end(&r[i]);
	if (kv)
		print_beside_kv(r);
	else
		print_beside(r);
}

static void
run_one(const struct load *l, const struct world_options *options,
    uint32_t trials, bool kv)
{
	const struct mode *mode = modes;
	struct result r;
	uint32_t trial;

	while (mode->retain != options->retain)
		mode++;
	steps_begin(&r, mode, l, options, trials);
	for (trial = 0; trial < trials; trial++)
		measure_trial(r.measuring);
	steps_end(&r);
	if (kv)
		steps_print_kv(&r, "");
	else
		steps_print_text(&r);
}

void
steps_run(const struct load *l, const struct world_options *options, bool all,
    uint32_t trials, bool kv)
{
	if (all)
		run_all(l, options, trials, kv);
	else
		run_one(l, options, trials, kv);
}
