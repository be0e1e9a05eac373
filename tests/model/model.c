/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.c - an index that is obviously right; the idea is in model.h.
 *
 * Slow where that is simpler. The only count it keeps besides the records is
 * each worker's number of pinned records.
 */
#include "model_in.h"

#include <stdio.h>

/* ------------------------------------------------------------ memory --- */

void
model_no_memory(void)
{
	fputs("model: no memory\n", stderr);
	abort();
}

void *
model_take(size_t n)
{
	void *p = calloc(1, n > 0 ? n : 1);

	if (p == NULL)
		model_no_memory();
	return p;
}

struct model *
model_new(int64_t ttl)
{
	struct model *m = model_take(sizeof(*m));

	m->ttl = ttl;
	m->clock = -1;
	return m;
}

void
model_drop(struct model *m, struct record *r)
{
	HASH_DEL(m->records, r);
	free(r);
}

static void
drop_lease(struct model *m, struct lease *l)
{
	HASH_DEL(m->leases, l);
	free(l->prefix);
	free(l);
}

static void
forget(struct model *m)
{
	struct record *r, *next_r;
	struct lease *l, *next_l;

	HASH_ITER(hh, m->records, r, next_r)
		model_drop(m, r);
	HASH_ITER(hh, m->leases, l, next_l)
		drop_lease(m, l);
}

void
model_free(struct model *m)
{
	struct worker *w, *next;

	forget(m);
	HASH_ITER(hh, m->workers, w, next) {
		HASH_DEL(m->workers, w);
		free(w);
	}
	model_events_free(m);
	free(m);
}

uint64_t
model_prefix(uint64_t prefix, uint32_t token)
{
	uint64_t z = prefix * UINT64_C(0xd1342543de82ef95) + token + 1;

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ------------------------------------------------------------- clock --- */

int
model_time(const struct model *m, int64_t now, int64_t *time)
{
	const int64_t leap = INT64_C(30) * 86400 * 1000000000;

	if (now < 0 || now > INT64_MAX / 2 || (m->clock >= 0 &&
	    now > m->clock && now - m->clock > leap))
		return KVR_ECLOCK;
	*time = now > m->clock ? now : m->clock;
	return KVR_OK;
}

void
model_advance(struct model *m, int64_t now)
{
	if (now < m->clock)
		m->clock_back++;
	else
		m->clock = now;
}

int64_t
model_clock(const struct model *m)
{
	return m->clock;
}

uint64_t
model_clock_back(const struct model *m)
{
	return m->clock_back;
}

/* ----------------------------------------------------------- workers --- */

struct worker *
model_worker_find(const struct model *m, uint64_t id)
{
	struct worker *w;

	HASH_FIND(hh, m->workers, &id, sizeof(id), w);
	return w;
}

void
model_worker_add(struct model *m, uint64_t id)
{
	struct worker *w = model_take(sizeof(*w));

	w->id = id;
	HASH_ADD(hh, m->workers, id, sizeof(w->id), w);
}

void
model_worker_void(struct model *m, uint64_t id)
{
	struct worker *w = model_worker_find(m, id);
	struct record *r, *next;

	if (w == NULL)
		return;
	HASH_ITER(hh, m->records, r, next)
		if (r->key.worker == id)
			model_drop(m, r);
	HASH_DEL(m->workers, w);
	free(w);
}

bool
model_worker_known(const struct model *m, uint64_t id)
{
	return model_worker_find(m, id) != NULL;
}

void
model_set_load(struct model *m, uint64_t id, uint32_t source,
    const struct kvr_load *load)
{
	struct worker *w = model_worker_find(m, id);

	if (w != NULL)
		w->outside[source] = *load;
}

void
model_clear(struct model *m)
{
	struct worker *w;

	forget(m);
	model_events_emptied(m);
	for (w = m->workers; w != NULL; w = w->hh.next) {
		w->requests = w->prefill = w->output = w->private = 0;
		w->pinned = 0;
		memset(w->outside, 0, sizeof(w->outside));
	}
}

void
model_load(const struct model *m, uint64_t worker, struct model_load *out)
{
	const struct worker *w = model_worker_find(m, worker);
	uint32_t i;

	memset(out, 0, sizeof(*out));
	if (w == NULL)
		return;
	out->requests = w->requests;
	out->prefill_tokens = w->prefill;
	out->active_blocks = w->pinned;
	out->output_blocks = w->output + w->private;
	for (i = 0; i < KVR_LOAD_SOURCES; i++) {
		out->requests += w->outside[i].requests;
		out->prefill_tokens += w->outside[i].prefill_tokens;
		out->active_blocks += w->outside[i].active_blocks;
	}
}

/* ----------------------------------------------------------- records --- */

struct record *
model_find(const struct model *m, uint64_t worker, uint64_t prefix)
{
	struct record_key key = { worker, prefix };
	struct record *r;

	HASH_FIND(hh, m->records, &key, sizeof(key), r);
	return r;
}

bool
model_live(const struct model *m, const struct record *r, int64_t time)
{
	if (r->pins > 0)
		return true;
	return r->confirmed && (m->ttl < 0 || time - r->stamp < m->ttl ||
	    model_tracked(m, r->key.worker));
}

static struct record *
find_or_add(struct model *m, uint64_t worker, const struct model_path *path,
    uint32_t i)
{
	struct record *r = model_find(m, worker, path->prefix[i]);

	if (r != NULL)
		return r;
	r = model_take(sizeof(*r));
	r->key.worker = worker;
	r->key.prefix = path->prefix[i];
	r->parent = i > 0 ? path->prefix[i - 1] : 0;
	r->name.worker = worker;
	r->name.prefix = path->sequence[i];
	r->depth = i;
	model_events_seen(m, path, i);
	HASH_ADD(hh, m->records, key, sizeof(r->key), r);
	return r;
}

uint32_t
model_overlap(const struct model *m, uint64_t worker,
    const struct model_path *path, int64_t time, uint32_t *active)
{
	const struct record *r;
	uint32_t i, pinned = 0;

	for (i = 0; i < path->blocks; i++) {
		r = model_find(m, worker, path->prefix[i]);
		if (r == NULL || !model_live(m, r, time))
			break;
		if (r->pins > 0 && pinned == i)
			pinned++;
	}
	*active = pinned;
	return i;
}

int64_t
model_age(const struct model *m, uint64_t worker,
    const struct model_path *path, int64_t time)
{
	const struct record *r;
	uint32_t active, depth = model_overlap(m, worker, path, time, &active);

	if (depth == 0)
		return -1;
	r = model_find(m, worker, path->prefix[depth - 1]);
	return r->pins > 0 ? 0 : time - r->stamp;
}

static void
stamp(struct record *r, int64_t time)
{
	r->confirmed = true;
	r->stamp = time;
}

static void
pin(struct model *m, struct record *r, int64_t time)
{
	struct worker *w = model_worker_find(m, r->key.worker);

	if (!model_live(m, r, time))
		r->confirmed = false;
	if (r->pins++ == 0 && w != NULL)
		w->pinned++;
}

/* An unconfirmed record goes with its last pin. */
static void
unpin(struct model *m, struct record *r)
{
	struct worker *w = model_worker_find(m, r->key.worker);

	if (--r->pins > 0)
		return;
	if (w != NULL)
		w->pinned--;
	if (!r->confirmed)
		model_drop(m, r);
}

void
model_observe(struct model *m, uint64_t worker, const struct model_path *path,
    uint32_t recorded, int64_t time)
{
	struct record *r;
	uint32_t i;

	for (i = 0; i < path->blocks && i < recorded; i++) {
		r = model_tracked(m, worker)
		    ? model_find(m, worker, path->prefix[i])
		    : find_or_add(m, worker, path, i);
		if (r != NULL && (r->confirmed || !model_tracked(m, worker)))
			stamp(r, time);
	}
}

void
model_stamp(struct model *m, uint64_t worker, const struct model_path *path,
    uint32_t i, int64_t time)
{
	stamp(find_or_add(m, worker, path, i), time);
}

/* ------------------------------------------------------------ leases --- */

static struct lease *
find_lease(const struct model *m, uint64_t number)
{
	struct lease *l;

	HASH_FIND(hh, m->leases, &number, sizeof(number), l);
	return l;
}

static void
pin_path(struct model *m, struct lease *l, const struct model_path *path,
    uint32_t upto, int64_t time)
{
	uint32_t i;

	l->prefix = realloc(l->prefix, (upto + 1) * sizeof(*l->prefix));
	if (l->prefix == NULL)
		model_no_memory();
	for (i = l->recorded; i < upto; i++) {
		l->prefix[i] = path->prefix[i];
		pin(m, find_or_add(m, l->worker, path, i), time);
	}
	l->recorded = upto;
}

void
model_reserve(struct model *m, uint64_t worker, const struct model_path *path,
    const struct model_booking *b, int64_t time)
{
	struct worker *w = model_worker_find(m, worker);
	struct lease *l = model_take(sizeof(*l));

	l->number = b->lease;
	l->owner = b->owner;
	l->worker = worker;
	l->prefill = b->prefill;
	l->opened = time;
	l->private = b->private;
	l->unrecorded = b->unrecorded;
	HASH_ADD(hh, m->leases, number, sizeof(l->number), l);
	pin_path(m, l, path, b->recorded, time);
	w->requests++;
	w->prefill += b->prefill;
	w->private += b->private;
}

/*
 * Does nothing if the lease's worker was removed or reset since. If its blocks
 * are known by events, the request uses those that it holds, and adds none.
 */
static void
stamp_lease(struct model *m, struct lease *l, int64_t time)
{
	struct record *r;
	uint32_t i;

	l->committed = true;
	if (model_worker_find(m, l->worker) == NULL)
		return;
	for (i = 0; i < l->recorded; i++) {
		r = model_find(m, l->worker, l->prefix[i]);
		if (r->confirmed || !model_tracked(m, l->worker))
			stamp(r, time);
	}
}

static void
release_prefill(struct model *m, struct lease *l)
{
	struct worker *w = model_worker_find(m, l->worker);

	if (w != NULL)
		w->prefill -= l->prefill;
	l->prefill = 0;
}

/* Removes a lease's load, unpins its path, and ends it. */
static void
end(struct model *m, struct lease *l)
{
	struct worker *w = model_worker_find(m, l->worker);
	uint32_t i;

	release_prefill(m, l);
	if (w != NULL) {
		w->requests--;
		w->private -= l->private;
		w->output -= l->output;
		for (i = 0; i < l->recorded; i++)
			unpin(m, model_find(m, l->worker, l->prefix[i]));
	}
	drop_lease(m, l);
}

/* 0 is no lease, which may be committed and ended. */
static int
not_open(uint64_t lease)
{
	return lease == 0 ? KVR_OK : KVR_ELEASE;
}

int
model_commit(struct model *m, uint64_t lease, int64_t time)
{
	struct lease *l = find_lease(m, lease);

	if (l == NULL)
		return not_open(lease);
	stamp_lease(m, l, time);
	return KVR_OK;
}

int
model_first_token(struct model *m, uint64_t lease, int64_t time)
{
	struct lease *l = find_lease(m, lease);

	if (l == NULL)
		return not_open(lease);
	if (!l->committed)
		stamp_lease(m, l, time);
	release_prefill(m, l);
	return KVR_OK;
}

static bool
continues(const struct lease *l, const struct model_path *path)
{
	if (path->blocks < l->recorded + l->private)
		return false;
	return l->recorded == 0 || l->recorded < path->first ||
	    memcmp(l->prefix, path->prefix,
	    l->recorded * sizeof(*l->prefix)) == 0;
}

int
model_extend(struct model *m, uint64_t lease, const struct model_path *path,
    uint32_t room, int64_t time)
{
	struct lease *l = find_lease(m, lease);
	uint32_t upto = path->blocks < room ? path->blocks : room;
	struct worker *w;

	if (l == NULL)
		return not_open(lease);
	w = model_worker_find(m, l->worker);
	if (w == NULL) {
		l->committed = true;
		return KVR_OK;
	}
	if (!continues(l, path))
		return KVR_EMISMATCH;
	if (!l->unrecorded && upto > l->recorded && l->recorded >= path->first)
		pin_path(m, l, path, upto, time);
	w->private -= l->private;
	l->private = path->blocks - l->recorded;
	w->private += l->private;
	stamp_lease(m, l, time);
	return KVR_OK;
}

int
model_output(struct model *m, uint64_t lease, uint32_t blocks)
{
	struct lease *l = find_lease(m, lease);
	struct worker *w;

	if (l == NULL)
		return not_open(lease);
	w = model_worker_find(m, l->worker);
	l->output += blocks;
	if (w != NULL)
		w->output += blocks;
	return KVR_OK;
}

int
model_finish(struct model *m, uint64_t lease, int64_t time)
{
	struct lease *l = find_lease(m, lease);

	if (l == NULL)
		return not_open(lease);
	stamp_lease(m, l, time);
	end(m, l);
	return KVR_OK;
}

int
model_abort(struct model *m, uint64_t lease)
{
	struct lease *l = find_lease(m, lease);

	if (l == NULL)
		return not_open(lease);
	end(m, l);
	return KVR_OK;
}

static void
reap(struct model *m, struct lease *l, int64_t time)
{
	if (l->committed)
		stamp_lease(m, l, time);
	end(m, l);
}

uint32_t
model_reap_owner(struct model *m, uint64_t owner, int64_t time)
{
	struct lease *l, *next;
	uint32_t n = 0;

	HASH_ITER(hh, m->leases, l, next) {
		if (l->owner != owner)
			continue;
		reap(m, l, time);
		n++;
	}
	return n;
}

/* Leases are in the table in the order in which they were opened. */
bool
model_reap_old(struct model *m, uint64_t n, int64_t limit, int64_t time)
{
	uint64_t left = n;

	for (; left > 0; left--) {
		if (m->leases == NULL || time - m->leases->opened < limit)
			return false;
		reap(m, m->leases, time);
	}
	return n > 0 || m->leases == NULL || time - m->leases->opened < limit;
}

bool
model_lease_open(const struct model *m, uint64_t lease)
{
	return find_lease(m, lease) != NULL;
}

bool
model_lease_fresh(const struct model *m, uint64_t lease)
{
	const struct lease *l = find_lease(m, lease);

	return l != NULL && !l->committed;
}

bool
model_lease_grows(const struct model *m, uint64_t lease,
    const struct model_path *path, uint32_t upto)
{
	const struct lease *l = find_lease(m, lease);

	return l != NULL && !l->unrecorded && upto > l->recorded &&
	    l->recorded >= path->first &&
	    model_worker_find(m, l->worker) != NULL;
}

uint64_t
model_leases(const struct model *m)
{
	return HASH_COUNT(m->leases);
}

uint64_t
model_void_leases(const struct model *m)
{
	const struct lease *l;
	uint64_t n = 0;

	for (l = m->leases; l != NULL; l = l->hh.next)
		n += model_worker_find(m, l->worker) == NULL;
	return n;
}
