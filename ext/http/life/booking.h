/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * booking.h - a request asks the library for a worker, and is booked there.
 *
 *   choose   the best worker of usable servers
 *   kept     the worker is given
 *   taken    the server is given: which of its ranks it was is not known, so it
 *            is the best of them
 *   shadow   the same, beside the worker that would have been chosen
 *   split    the worker is given, and another server may prefill for it
 *   late     the engine has accepted a prompt that could not be booked before
 *   plain    there is no prompt: the request is load
 *
 * Nothing waits for the region's lock: if it is held, the request goes on
 * without a lease. The caller has the fleet for itself, and calls writes_run()
 * when one of writes_do() was refused.
 */
#ifndef KVROUTE_BOOKING_H
#define KVROUTE_BOOKING_H

#include <stdbool.h>

#include "known.h"
#include "reason.h"
#include "writes.h"

/* Of a request. All 0 at first, but for the first members. */
struct booking {
	struct fleet *fleet;
	struct writes *writes;
	struct kvr_decision decision;
	enum reason reason;
	uint32_t affinity;      /* enum kvr_affinity_outcome */
	uint64_t lease, worker; /* 0: none */
	bool missed;            /* it has none, and the prompt is to be */
	                        /* recorded once it is accepted, */
	bool late;              /* which was done */
	uint64_t prefill;       /* the lease of its prompt elsewhere, or 0, */
	char prefill_name[KVR_NAME_MAX]; /* and the server; */
	size_t prefill_length;  /* 0: there is none */
};

/* A choice begins; nothing is booked. */
void booking_begin(struct booking *b, enum reason reason);
/*
 * Sets worker, and its lease if `book`. False: `reason` is why not. A prompt
 * that is NULL had no memory.
 */
bool booking_choose(struct booking *b, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now, bool book);
/* On b->worker. False: it has no lease, which changes nothing else. */
bool booking_kept(struct booking *b, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now);
/* On server i of the fleet; n_known: it is not known. */
bool booking_taken(struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now);
void booking_shadow(struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now);
/* On b->worker of server i; r: its flags may change. */
void booking_split(struct booking *b, size_t i, struct kvr_prompt *p,
    struct kvr_request *r, int64_t now);
/* On server i. A prompt that is recorded later is taken away. */
void booking_late(struct booking *b, size_t i, struct kvr_prompt **p,
    const struct kvr_request *r, int64_t now);
void booking_plain(struct booking *b, size_t i, const struct kvr_request *r,
    int64_t now);
/* The prefill is over; `taken`: the prompt is in the cache of its server. */
void booking_prefill_end(struct booking *b, bool taken, int64_t now);

#endif
