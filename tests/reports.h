/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reports.h - requests that end with a report, and the effects of reports, for
 * the suites of report.c. Regions and workers are those of inner.h.
 */
#ifndef KVR_REPORTS_H
#define KVR_REPORTS_H

#include "id.h"
#include "inner.h"

#include <math.h>

static inline void
big_setup(void)
{
	struct kvr_options o = small_options();

	o.region_bytes = 8 << 20;
	region_of(&o);
}

static inline void
set_mode(uint32_t worker, uint32_t retain)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.retain = retain;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static inline void
reported(uint64_t lease, uint64_t cached, int64_t now)
{
	struct kvr_report r = { .size = sizeof(r),
	    .kind = KVR_REPORT_VALUE };

	r.cached_tokens = cached;
	ck_assert_int_eq(kvr_lease_finish(k, lease, &r, now, 0), KVR_OK);
	region_sound();
}

/* A whole request on the current prompt. */
static inline void
ask(uint32_t worker, uint64_t cached, int64_t now)
{
	uint64_t lease = reserved(worker, now);

	commit(lease, now);
	reported(lease, cached, now);
}

static inline const struct survival *
seen_of(uint32_t worker)
{
	return &k->survival[slot_at(k, worker)->name - 1];
}

static inline double
hits(uint32_t worker, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (; from < to; from++)
		sum += (double)seen_of(worker)->hit[from];
	return sum;
}

/* A report of an engine, of this kind and with this number. */
static inline struct kvr_report
said(uint32_t kind, uint64_t cached)
{
	struct kvr_report r = { .size = sizeof(r), .kind = kind,
	    .cached_tokens = cached };

	return r;
}

/* A whole request on the current prompt that ends with this report. */
static inline void
tell(uint32_t worker, const struct kvr_report *r)
{
	uint64_t lease = reserved(worker, k->region->clock + 1);

	commit(lease, k->region->clock + 1);
	ck_assert_int_eq(kvr_lease_finish(k, lease, r, k->region->clock + 1, 0),
	    KVR_OK);
	region_sound();
}

static inline double
misses(uint32_t worker, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (; from < to; from++)
		sum += (double)seen_of(worker)->miss[from];
	return sum;
}

/* Blocks of evidence since it was last forgotten. */
static inline void
ck_seen(uint32_t worker, double hit, double miss)
{
	double h = hits(worker, 0, AGES) * 512, m = misses(worker, 0, AGES) *
	    512;

	/* so little fades by less than a hundredth */
	if (!(fabs(h - hit) <= hit / 100 && fabs(m - miss) <= miss / 100))
		ck_abort_msg("hits %g, must be %g; misses %g, must be %g", h,
		    hit, m, miss);
	survival_forget(k, id_slot(id[worker]));
}

#endif
