/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_retain.c - retention, reports and costs, decoded from the input.
 *
 * fuzz_ops compares with a model where workers go by TTL. Here they go by any
 * mode, change it at any time, and report whatever the input says. Nothing is
 * compared, but the region stays sound, costs are numbers, predictions are no
 * longer than the prompt, and everything is reclaimed in the end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kvroute.h"

enum { WORKERS = 5, LEASES = 12, OPS = 300, TEXT = 96 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	const uint8_t *data;
	size_t size, at;
	struct kvr *k;
	struct kvr_prompt *p;
	uint64_t worker[WORKERS], lease[LEASES];
	uint32_t token[LEASES][TEXT], length[LEASES];
	uint32_t unit;
	int64_t now;
} f;

static void
must(bool good)
{
	if (!good)
		abort();
}

static bool
used_up(void)
{
	return f.at >= f.size;
}

static uint32_t
pick(uint32_t n)
{
	return used_up() ? 0 : f.data[f.at++] % n;
}

/* Small, at a boundary, or anything. */
static uint64_t
number(void)
{
	static const uint64_t odd[] = { UINT64_MAX, (uint64_t)-8, INT64_MAX,
	    UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT32_MAX, 1 << 20, 1 };
	uint64_t n = 0;
	uint32_t i, how = pick(16);

	if (how < 12)
		return pick(256);
	if (how < 15)
		return odd[pick(8)];
	for (i = 0; i < 8; i++)
		n = n << 8 | pick(256);
	return n;
}

static double
real(double most)
{
	static const double odd[] = { 0, 1e-300, 1e-9, 0.1, 1, 10, 1e15,
	    1e308 };
	double x = odd[pick(8)];

	return x < most ? x : most;
}

/* ------------------------------------------------------------- prompts --- */

/* Few tokens, long runs of one, so that much is shared. */
static uint32_t
text(uint32_t *token, uint32_t from)
{
	uint32_t runs = 1 + pick(4), n = from, length, symbol;

	for (; runs > 0; runs--) {
		symbol = pick(3);
		for (length = 1 + pick(24); length > 0 && n < TEXT; length--)
			token[n++] = symbol;
	}
	return n;
}

static void
say(const uint32_t *token, uint32_t n)
{
	if (f.unit == KVR_UNIT_TOKENS)
		must(kvr_prompt_set_tokens(f.p, NULL, token, n) == KVR_OK);
	else
		must(kvr_prompt_set_bytes(f.p, NULL, token, n * 4) == KVR_OK);
}

static struct kvr_request
request(void)
{
	struct kvr_request r;
	uint32_t i;

	must(kvr_request_init(&r, sizeof(r)) == KVR_OK);
	r.owner = pick(3);
	if (pick(2) == 0)
		return r;
	r.flags = pick(4) << 1;
	r.stage = pick(3);
	r.overlap_credit = (double)pick(4) - 1;
	r.temperature = pick(4) == 0 ? real(1e308) : -1;
	r.overlap_blocks = pick(2) == 0 ? (uint32_t)KVR_AUTO
	    : (uint32_t)(number() % ((uint64_t)KVR_AUTO + 1));
	r.n_preferences = pick(3);
	for (i = 0; i < r.n_preferences; i++) {
		r.preferences[i].taints = pick(4);
		r.preferences[i].weight = real(1e308) * (pick(2) ? 1 : -1);
	}
	return r;
}

/* --------------------------------------------------------------- calls --- */

static void
ask(void)
{
	struct kvr_candidate c[WORKERS];
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r = request();
	uint32_t token[TEXT], n = text(token, 0);
	size_t count, i;

	say(token, n);
	must(kvr_candidates(f.k, f.p, &r, f.now, c, sizeof(c[0]), WORKERS,
	    &count) == KVR_OK && count == WORKERS);
	for (i = 0; i < count; i++) {
		must(c[i].cost >= 0 && c[i].cost <= 1e300);
		must(c[i].backlog >= 0 && c[i].backlog <= 1e300);
		must(c[i].overlap_tokens <= n);
	}
	if (kvr_route(f.k, f.p, &r, f.now, &d) == KVR_OK)
		must(d.cost >= 0 && d.overlap_tokens <= d.prompt_tokens);
}

static void
reserve(uint32_t i)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r = request();
	int rc;

	f.length[i] = text(f.token[i], 0);
	say(f.token[i], f.length[i]);
	if (pick(3) == 0)
		rc = kvr_lease_open(f.k, f.p, &r, f.now, &d);
	else
		rc = kvr_lease_open_on(f.k, f.p, &r, f.worker[pick(WORKERS)],
		    f.now, &d);
	if (rc != KVR_OK)
		return;
	must(d.overlap_tokens <= d.prompt_tokens);
	f.lease[i] = d.lease;
}

static void
finish(uint32_t i)
{
	struct kvr_report r = { .size = sizeof(r) };

	r.kind = pick(3);
	r.flags = pick(8) < 6 ? 0 : pick(4);
	r.endpoint = pick(8) < 6 ? 0 : (uint32_t)number();
	r.cached_tokens = number();
	r.prompt_tokens = pick(2) == 0 ? f.length[i] : number();
	r.completion_tokens = pick(2) == 0 ? 0 : number();
	(void)kvr_lease_finish(
	    f.k, f.lease[i], pick(8) == 7 ? NULL : &r, f.now, 0);
	f.lease[i] = 0;
}

static void
go_on(uint32_t i)
{
	switch (pick(8)) {
	case 0:
		(void)kvr_lease_commit(f.k, f.lease[i], f.now, 0);
		break;
	case 1:
		(void)kvr_lease_commit(f.k, f.lease[i], f.now, 0);
		(void)kvr_lease_first_token(f.k, f.lease[i], f.now, 0);
		break;
	case 2:
		f.length[i] = text(f.token[i], f.length[i]);
		say(f.token[i], f.length[i]);
		(void)kvr_lease_extend(f.k, f.lease[i], f.p, f.now, 0);
		break;
	case 3:
		(void)kvr_lease_output(f.k, f.lease[i], (uint32_t)number(),
		    f.now, 0);
		break;
	case 4:
		(void)kvr_lease_abort(f.k, f.lease[i], f.now, 0);
		f.lease[i] = 0;
		break;
	default:
		finish(i);
	}
}

static void
facts(void)
{
	struct kvr_worker w;

	must(kvr_worker_init(&w, sizeof(w)) == KVR_OK);
	w.retain = pick(4);
	w.capacity_tokens = pick(3) == 0 ? number() : pick(200);
	w.eviction = pick(2);
	w.block_tokens = pick(3) == 0 ? (uint32_t)number() : pick(20);
	w.prefill_rate = pick(2) == 0 ? 0 : real(1e15);
	w.weight = pick(2) == 0 ? 1 : 1e-6 + real(1e5);
	w.taints = pick(4);
	w.state = pick(8) == 7 ? pick(3) : KVR_STATE_UP;
	/* by what was picked above: the corpus keeps its meaning */
	/* some of that is absurd: then nothing happens */
	(void)kvr_worker_set(f.k, f.worker[pick(WORKERS)], &w);
}

static void
policy(void)
{
	struct kvr_policy y;
	double observed;

	must(kvr_policy_init(&y, sizeof(y)) == KVR_OK);
	y.cost = pick(3) % 2;
	(void)pick(2); /* the corpus keeps its meaning */
	y.balanced_bound = real(1e15);
	observed = real(1e15);
	if (observed >= 1e-3 && observed <= 1e6)
		y.observed_seconds = observed;
	y.temperature = pick(4) == 0 ? real(1e308) : 0;
	must(kvr_policy_set(f.k, &y) == KVR_OK);
}

static void
load(void)
{
	struct kvr_load l = { .size = sizeof(l) };

	uint32_t source;

	l.prefill_tokens = number();
	l.active_blocks = number();
	l.requests = pick(9);
	l.used_blocks = number();
	/* not picked: the corpus keeps its meaning */
	source = (uint32_t)l.active_blocks % KVR_LOAD_SOURCES;
	(void)kvr_worker_set_load(f.k, f.worker[pick(WORKERS)], source, &l);
}

static void
metrics(void)
{
	char room[512];
	size_t length;

	must(kvr_metrics(f.k, room, pick(2) * sizeof(room), &length) ==
	    KVR_OK && length > sizeof(room));
}

/* A piece at a time, if earlier ones have left much. */
static void
reset(uint32_t i)
{
	int error;

	do {
		error = kvr_worker_reset(f.k, f.worker[i], &f.worker[i]);
	} while (error == KVR_EBUSY);
	must(error == KVR_OK);
}

static void
rest(void)
{
	uint32_t i = pick(WORKERS), token[TEXT], n;
	uint64_t at = 0;

	switch (pick(8)) {
	case 0: facts(); break;
	case 1: policy(); break;
	case 2: load(); break;
	case 3: metrics(); break;
	case 4: (void)kvr_owner_reap(f.k, pick(3), f.now, &at, NULL); break;
	case 5: (void)kvr_expire(f.k, f.now, pick(9), NULL); break;
	case 6:
		n = pick(4);
		if (n == 0)
			reset(i);
		else if (n == 1)
			must(kvr_worker_forget(f.k, f.worker[i]) == KVR_OK);
		break;
	default:
		n = text(token, 0);
		say(token, n);
		must(kvr_observe(f.k, f.p, f.worker[i], f.now, 0, NULL) ==
		    KVR_OK);
	}
}

static void
one_call(void)
{
	static const int64_t step[] = { 0, 0, 0, 1, 1000, 400000, 60000000,
	    INT64_C(3600000000000) };
	uint32_t i = pick(LEASES);

	f.now += step[pick(8)];
	switch (pick(4)) {
	case 0: ask(); break;
	case 1: rest(); break;
	default:
		if (f.lease[i] == 0)
			reserve(i);
		else
			go_on(i);
	}
}

/* --------------------------------------------------------------- worlds --- */

static void
begin(void)
{
	struct kvr_options o;
	uint32_t i;
	char name;

	must(kvr_options_init(&o, sizeof(o)) == KVR_OK);
	o.region_bytes = pick(2) == 0 ? 30 << 10 : 102 << 10;
	o.unit = f.unit = pick(4) == 3 ? KVR_UNIT_BYTES : KVR_UNIT_TOKENS;
	o.block_size = f.unit == KVR_UNIT_TOKENS ? 1 + pick(4)
	    : 4 + 4 * pick(4);
	o.ttl_ns = 1000000;
	o.idle_limit_ns = 100000000;
	o.max_workers = WORKERS;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 's', sizeof(o.secret));
	must(kvr_new(&o, &f.k) == KVR_OK);
	must(kvr_prompt_new(f.k, &f.p) == KVR_OK);
	for (i = 0; i < WORKERS; i++) {
		name = (char)('a' + i);
		must(kvr_worker_add(f.k, &name, 1, NULL, &f.worker[i]) ==
		    KVR_OK);
	}
}

/* Nothing is left of leases, and in time nothing at all. */
static void
end(void)
{
	struct kvr_stats s = { .size = sizeof(s) };
	uint64_t at;
	uint32_t i;

	for (i = 0; i < LEASES; i++)
		if (f.lease[i] != 0)
			(void)kvr_lease_abort(f.k, f.lease[i], f.now, 0);
	for (i = 0; i < 3; i++) {
		at = 0;
		must(kvr_owner_reap(f.k, i, f.now, &at, NULL) == KVR_OK &&
		    at == 0);
	}
	must(kvr_check(f.k) == KVR_OK);
	must(kvr_expire(f.k, f.now + INT64_C(1000000000), UINT32_MAX, NULL) ==
	    KVR_OK);
	must(kvr_stats_get(f.k, &s) == KVR_OK);
	must(s.leases == 0 && s.entries == 0 && s.held_blocks == 0 &&
	    s.nodes == 0 && s.recoveries == 0);
	must(kvr_check(f.k) == KVR_OK);
	kvr_prompt_free(f.p);
	kvr_free(f.k);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t i;

	memset(&f, 0, sizeof(f));
	f.data = data;
	f.size = size;
	begin();
	for (i = 0; i < OPS && !used_up(); i++) {
		one_call();
		if (i % 16 == 0)
			must(kvr_check(f.k) == KVR_OK);
	}
	end();
	return 0;
}
