/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * writes.h - writes to the region of an upstream. One that finds the region
 * locked is kept and done later: a lease that is not ended would count as load
 * until it expires.
 *
 * Writes that are kept are done in order. Bindings and prompts are hints, and
 * few of them are kept; the end of a lease is kept while there is memory. The
 * proxy calls writes_run() a few milliseconds after a call was refused.
 */
#ifndef KVROUTE_WRITES_H
#define KVROUTE_WRITES_H

#include <stdbool.h>

#include "shared.h"
#include "spares.h"

enum write_kind {
	WRITE_FINISH,
	WRITE_ABORT,
	WRITE_RESET,    /* of a worker that refused connections */
	WRITE_BIND,     /* of a digest to a worker */
	WRITE_RECORD    /* of a prompt that has no lease */
};

struct write_due {
	struct write_due *next;
	enum write_kind kind;
	uint64_t id;            /* of a lease, or of a worker */
	uint64_t digest;        /* to bind */
	int64_t ttl;
	struct kvr_report report;
	struct kvr_prompt *prompt; /* FINISH: to extend by; RECORD; or NULL */
	const char *name;       /* RECORD without an id: of the server */
	size_t name_len;
};

/* All 0 at first, but for the first members, which the proxy sets. */
struct writes {
	struct kvr *k;          /* kvr_nowait_set */
	struct shared *shared;
	struct spares *spares;
	pthread_mutex_t *lock;  /* NULL: there is one thread */
	/* inside */
	struct write_due *first, **end;
	size_t binds, records;
	bool runs;
	_Atomic size_t n;
};

/*
 * Does it now, or keeps it. The prompt is given away, the name is copied.
 * Returns the error of the library; KVR_EBUSY: it was kept, or there was no
 * room for it.
 */
int writes_do(struct writes *w, const struct write_due *one, int64_t now);
/*
 * Its engine is gone, and the cache with it. False: the worker, or 0, was reset
 * before and not used since.
 */
bool writes_reset(struct writes *w, uint64_t worker, int64_t now);
/* Does all that was kept; false: some of it must wait. */
bool writes_run(struct writes *w, int64_t now);
/* Is the digest bound to no worker, and none waits to be bound? */
bool writes_unbound(struct writes *w, uint64_t digest, int64_t now);
/* Nothing will be done. */
void writes_free(struct writes *w);

#endif
