/* SPDX-License-Identifier: BSD-2-Clause */
/* writes.c - see writes.h. */
#include "writes.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WRITES_MOST = 16384, WRITES_HINTS = 512, WRITES_RECORDS = 64 };

static void
writes_lock(struct writes *w)
{
	if (w->lock != NULL)
		(void)pthread_mutex_lock(w->lock);
}

static void
writes_unlock(struct writes *w)
{
	if (w->lock != NULL)
		(void)pthread_mutex_unlock(w->lock);
}

static void
prompt_leave(struct writes *w, struct write_due *one)
{
	spare_prompt_back(w->spares, one->prompt);
	one->prompt = NULL;
}

/* ---------------------------------------------------------------- write --- */

/* A lease whose answer was no stream is not committed yet, nor a late one. */
static int
lease_extend(struct writes *w, const struct write_due *one, int64_t now)
{
	int error = kvr_lease_extend(w->k, one->id, one->prompt, now,
	    KVR_NOWAIT);

	if (error != KVR_ESTATE)
		return error;
	error = kvr_lease_commit(w->k, one->id, now, KVR_NOWAIT);
	return error != KVR_OK ? error : kvr_lease_extend(w->k, one->id,
	    one->prompt, now, KVR_NOWAIT);
}

static int
lease_finish(struct writes *w, struct write_due *one, int64_t now)
{
	if (one->prompt != NULL) {
		if (lease_extend(w, one, now) == KVR_EBUSY)
			return KVR_EBUSY;
		prompt_leave(w, one);
	}
	return kvr_lease_finish(w->k, one->id, &one->report, now, KVR_NOWAIT);
}

/* The id may not have been known, because the region was locked. */
static int
prompt_record(struct writes *w, struct write_due *one, int64_t now)
{
	int error = one->id != 0 ? KVR_OK : kvr_worker_find(w->k, one->name,
	    one->name_len, 0, &one->id);

	if (error == KVR_OK)
		error = kvr_observe(w->k, one->prompt, one->id, now,
		    KVR_NOWAIT, NULL);
	if (error != KVR_EBUSY)
		prompt_leave(w, one);
	return error;
}

static int
worker_reset(struct writes *w, const struct write_due *one)
{
	uint64_t id;
	int error = kvr_worker_reset(w->k, one->id, &id);

	if (error == KVR_OK)
		w->shared->epoch++;
	return error;
}

static int
write_try(struct writes *w, struct write_due *one, int64_t now)
{
	switch (one->kind) {
	case WRITE_FINISH:
		return lease_finish(w, one, now);
	case WRITE_ABORT:
		return kvr_lease_abort(w->k, one->id, now, KVR_NOWAIT);
	case WRITE_BIND:
		return kvr_affinity_bind(w->k, one->digest, one->id, one->ttl,
		    now, KVR_NOWAIT);
	case WRITE_RECORD:
		return prompt_record(w, one, now);
	case WRITE_RESET:
		break;
	}
	return worker_reset(w, one);
}

/* ----------------------------------------------------------------- list --- */

/* Counts it in or out, with the lock. */
static void
writes_tally(struct writes *w, const struct write_due *one, bool in)
{
	const size_t n = in ? 1 : SIZE_MAX;

	w->binds += one->kind == WRITE_BIND ? n : 0;
	w->records += one->kind == WRITE_RECORD ? n : 0;
	(void)atomic_fetch_add_explicit(&w->n, n, memory_order_relaxed);
}

static bool
is_hint(const struct write_due *one)
{
	return one->kind == WRITE_BIND || one->kind == WRITE_RECORD;
}

/* The end of a lease always has room. */
static bool
has_room(const struct writes *w, const struct write_due *one)
{
	return one->kind == WRITE_FINISH || one->kind == WRITE_ABORT ||
	    (atomic_load_explicit(&w->n, memory_order_relaxed) < WRITES_MOST &&
	    (!is_hint(one) || w->binds + w->records < WRITES_HINTS) &&
	    (one->kind != WRITE_RECORD || w->records < WRITES_RECORDS));
}

/* A copy, with the name behind it; NULL: no memory. */
static struct write_due *
write_copy(const struct write_due *of)
{
	const size_t n = of->id == 0 ? of->name_len : 0;
	struct write_due *one = malloc(sizeof(*one) + n);

	if (one == NULL)
		return NULL;
	*one = *of;
	one->next = NULL;
	one->name = (char *)(one + 1);
	if (n > 0)
		memcpy(one + 1, of->name, n);
	return one;
}

static bool
write_append(struct writes *w, struct write_due *one)
{
	bool kept;

	writes_lock(w);
	kept = has_room(w, one);
	if (kept) {
		if (w->first == NULL)
			w->end = &w->first;
		*w->end = one;
		w->end = &one->next;
		writes_tally(w, one, true);
	}
	writes_unlock(w);
	return kept;
}

static void
write_keep(struct writes *w, struct write_due *of)
{
	struct write_due *one = write_copy(of);

	if (one != NULL && write_append(w, one)) {
		shared_count(w->shared, COUNT_DELAYED, 1);
		return;
	}
	free(one);
	prompt_leave(w, of);
	if (!is_hint(of))
		shared_count(w->shared, COUNT_LOST, 1);
}

/*
 * The first one, which still counts; NULL: the list is empty, or another thread
 * is at it.
 */
static struct write_due *
write_take(struct writes *w, bool first)
{
	struct write_due *one = NULL;

	writes_lock(w);
	if (!first || !w->runs)
		one = w->first;
	if (first && one != NULL)
		w->runs = true;
	if (!first && one == NULL)
		w->runs = false;
	if (one != NULL)
		w->first = one->next;
	writes_unlock(w);
	return one;
}

/* It is the first one again, and nobody is at it. */
static void
write_return(struct writes *w, struct write_due *one)
{
	writes_lock(w);
	if (w->first == NULL)
		w->end = &one->next;
	one->next = w->first;
	w->first = one;
	w->runs = false;
	writes_unlock(w);
}

static void
write_done(struct writes *w, struct write_due *one)
{
	writes_lock(w);
	writes_tally(w, one, false);
	writes_unlock(w);
	free(one);
}

bool
writes_run(struct writes *w, int64_t now)
{
	struct write_due *one;
	bool first = true;

	if (atomic_load_explicit(&w->n, memory_order_relaxed) == 0)
		return true;
	while ((one = write_take(w, first)) != NULL) {
		if (write_try(w, one, now) == KVR_EBUSY) {
			write_return(w, one);
			return false;
		}
		write_done(w, one);
		first = false;
	}
	return atomic_load_explicit(&w->n, memory_order_relaxed) == 0;
}

int
writes_do(struct writes *w, const struct write_due *of, int64_t now)
{
	struct write_due one = *of;
	/* A binding that waits must not replace a later one. */
	const bool behind = !writes_run(w, now) && one.kind == WRITE_BIND;
	int error = behind ? KVR_EBUSY : write_try(w, &one, now);

	if (error == KVR_EBUSY)
		write_keep(w, &one);
	return error;
}

bool
writes_reset(struct writes *w, uint64_t worker, int64_t now)
{
	const struct write_due write = { .kind = WRITE_RESET, .id = worker };
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	if (worker == 0 || (kvr_worker_stats_get(w->k, worker, &stats) ==
	    KVR_OK && stats.entries == 0))
		return false;
	(void)writes_do(w, &write, now);
	return true;
}

bool
writes_unbound(struct writes *w, uint64_t digest, int64_t now)
{
	uint64_t worker;
	size_t binds;

	writes_lock(w);
	binds = w->binds;
	writes_unlock(w);
	return binds == 0 && kvr_affinity_find(w->k, digest, now, &worker) ==
	    KVR_EUNBOUND;
}

void
writes_free(struct writes *w)
{
	struct write_due *one;

	while ((one = w->first) != NULL) {
		w->first = one->next;
		kvr_prompt_free(one->prompt);
		free(one);
	}
}
