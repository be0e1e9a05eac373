/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fleet.h - two upstreams with an index and one without, for the suites of
 * status_*.c. Names hold characters that JSON and Prometheus must escape.
 *
 *   a"b\    workers "up" (4 blocks of "abcd"), "draining", "\xff"
 *   c       no worker
 *   none    no index
 */
#ifndef KVR_FLEET_H
#define KVR_FLEET_H

#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "busy.h"
#include "region.h"
#include "sink.h"
#include "status.h"

enum { FLEET = 3, FLEET_NOW = 1000000 };

static struct sink sink;
static struct status_upstream fleet[FLEET];
static struct counters counted;
static struct status fleet_status;
static struct kvr_prompt *prompt;

static inline struct kvr *
fleet_index(struct kvr_options *o)
{
	struct kvr *k = NULL;

	ck_assert_int_eq(kvr_options_init(o, sizeof(*o)), KVR_OK);
	o->region_bytes = 1 << 20;
	o->unit = KVR_UNIT_BYTES;
	o->block_size = 1;
	o->max_workers = 4;
	o->secret_bytes = KVR_SECRET_MIN;
	memset(o->secret, 's', sizeof(o->secret));
	ck_assert_int_eq(kvr_new(o, &k), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(k, 1), KVR_OK);
	return k;
}

static inline uint64_t
fleet_worker(struct kvr *k, const char *name, uint32_t state)
{
	struct kvr_worker facts;
	uint64_t id;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.state = state;
	ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), &facts, &id),
	    KVR_OK);
	return id;
}

/* One more data-parallel rank of that worker. */
static inline void
fleet_rank(struct kvr *k, const char *name, uint32_t rank)
{
	struct kvr_worker facts;
	uint64_t id;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = rank;
	ck_assert_int_eq(kvr_worker_add(k, name, strlen(name), &facts, &id),
	    KVR_OK);
}

static inline void
fleet_prompt(const char *text)
{
	ck_assert_int_eq(kvr_prompt_set_bytes(prompt, NULL, text,
	    strlen(text)), KVR_OK);
}

static inline void
upstream_set(struct status_upstream *up, const char *name)
{
	up->name = name;
	up->name_length = strlen(name);
	up->cost = KVR_COST_BALANCED;
}

/* Each counter is another number. */
static inline void
fleet_setup(void)
{
	uint64_t id;
	size_t i;

	memset(fleet, 0, sizeof(fleet));
	upstream_set(&fleet[0], "a\"b\\");
	upstream_set(&fleet[1], "none");
	upstream_set(&fleet[2], "c");
	fleet[0].kvr = fleet_index(&fleet[0].options);
	fleet[2].kvr = fleet_index(&fleet[2].options);
	fleet[0].shadow = "least_conn";
	fleet[0].counters = &counted;
	for (i = 0; i < COUNTS; i++)
		counted.count[i] = 100 + i;
	for (i = 0; i < REASONS; i++)
		counted.reason[i] = 200 + i;
	for (i = 0; i < ENDPOINTS; i++)
		counted.endpoint[i] = 300 + i;
	counted.path[0] = (struct counted_path){ 400, 5, "/v1/x??" };
	counted.path[1] = (struct counted_path){ 401, 0, "not written yet" };
	counted.path[PATHS - 1].count = 402;
	id = fleet_worker(fleet[0].kvr, "up", KVR_STATE_UP);
	(void)fleet_worker(fleet[0].kvr, "draining", KVR_STATE_DRAINING);
	(void)fleet_worker(fleet[0].kvr, "\xff", KVR_STATE_UP);
	ck_assert_int_eq(kvr_prompt_new(fleet[0].kvr, &prompt), KVR_OK);
	fleet_prompt("abcd");
	ck_assert_int_eq(kvr_observe(fleet[0].kvr, prompt, id, FLEET_NOW,
	    0, NULL), KVR_OK);
	fleet_status = (struct status){ .proxy = "proxy", .time = 1234,
	    .upstream = fleet, .upstreams = FLEET };
}

static inline void
fleet_teardown(void)
{
	size_t i;

	kvr_prompt_free(prompt);
	for (i = 0; i < FLEET; i++)
		kvr_free(fleet[i].kvr);
}

/* Upstream i gets an index for so many tenants, with a worker "w". */
static inline struct kvr *
fleet_share(size_t i, uint32_t tenants)
{
	struct kvr_options o;

	kvr_free(fleet[i].kvr);
	kvr_free(fleet_index(&o));
	o.tenants = tenants;
	ck_assert_int_eq(kvr_new(&o, &fleet[i].kvr), KVR_OK);
	(void)fleet_worker(fleet[i].kvr, "w", KVR_STATE_UP);
	return fleet[i].kvr;
}

/* A lease of a tenant, whose share is the number of its name; 0: none. */
static inline void
fleet_tenant_opens(struct kvr *k, char tenant, const char *text)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *p;
	struct kvr_request r;
	struct kvr_scope scope;

	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
	ck_assert_int_eq(kvr_scope_set(k, &scope, KVR_SCOPE_TENANT, &tenant,
	    tenant == 0 ? 0 : 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, &scope, text, strlen(text)),
	    KVR_OK);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.share = tenant == 0 ? 0 : (uint32_t)tenant;
	ck_assert_int_eq(kvr_lease_open(k, p, &r, FLEET_NOW, &d), KVR_OK);
	kvr_prompt_free(p);
}

/* The second upstream gets an index with a journal. */
static inline void
fleet_journal(void)
{
	struct kvr_options o;

	kvr_free(fleet_index(&o));
	o.journal_bytes = KVR_JOURNAL_MIN;
	ck_assert_int_eq(kvr_new(&o, &fleet[1].kvr), KVR_OK);
	ck_assert_int_eq(kvr_nowait_set(fleet[1].kvr, 1), KVR_OK);
}

/* A report that fails by each write and each allocation there is. */
static inline void
fails_everywhere(void (*report)(void))
{
	static char whole[SINK_BYTES + 1];
	size_t length, room, n;

	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	report();
	ck_assert(!sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
	length = sink.length;
	memcpy(whole, sink.text, length + 1);
	for (room = 0; room < length; room += 1 + room / 64) {
		sink_begin(&sink, room, SIZE_MAX);
		report();
		ck_assert(sink.writer.failed);
		ck_assert_uint_eq(sink.held, 0);
		ck_assert_int_eq(memcmp(sink.text, whole, sink.length), 0);
	}
	for (n = 0;; n++) {
		sink_begin(&sink, SINK_BYTES, n);
		report();
		ck_assert_uint_eq(sink.held, 0);
		if (!sink.writer.failed)
			break;
	}
	ck_assert_uint_gt(n, 0);
	ck_assert_str_eq(sink.text, whole);
}

/* --------------------------------------------------------- a held lock --- */

/* Holds the lock as a writer does, in the middle of a change or before it. */
static inline void
fleet_hold(struct kvr *k, bool changing)
{
	ck_assert_int_eq(region_lock(k, false), KVR_OK);
	if (changing)
		atomic_fetch_add(&k->region->seq, 1);
}

static inline void
fleet_let_go(struct kvr *k)
{
	if ((atomic_load(&k->region->seq) & 1) != 0)
		atomic_fetch_add(&k->region->seq, 1);
	region_unlock(k);
}

/* It has failed, within the tries of one report. */
static inline void
ck_gave_up(void)
{
	unsigned tries = busy_end();

	ck_assert(sink.writer.failed);
	ck_assert_uint_eq(sink.held, 0);
	ck_assert_uint_gt(tries, 0);
	ck_assert_uint_le(tries, STATUS_TRIES);
}

/* The lock of one index is held all the time. */
static inline void
fails_while_held(void (*report)(void), bool changing)
{
	fleet_hold(fleet[0].kvr, changing);
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	busy_begin(0);
	report();
	ck_gave_up();
	fleet_let_go(fleet[0].kvr);
}

/* A lock that is held now and then changes nothing in the report. */
static inline void
repeats_what_is_busy(void (*report)(void))
{
	static char whole[SINK_BYTES + 1];

	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	report();
	memcpy(whole, sink.text, sink.length + 1);
	sink_begin(&sink, SINK_BYTES, SIZE_MAX);
	busy_begin(3);
	report();
	ck_assert_uint_gt(busy_end(), 3);
	ck_assert(!sink.writer.failed);
	ck_assert_str_eq(sink.text, whole);
}

#endif
