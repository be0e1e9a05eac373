/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blame.h - decides which failures of requests count against a worker.
 *
 * A prompt may be at fault as well as a worker. A failure counts if
 *
 *   shared      several prompts of several clients fail at the worker
 *   total       for a second the worker has answered nothing, several prompts
 *               have failed there, more than half of the others answer and
 *               fail much less, and the client has failed at none of them
 *
 * or if another worker answers a retry of the same request; the caller decides
 * this case. Requests of one client prove nothing by themselves, even if they
 * differ little: the difference may be the fault.
 *
 * A prompt that has failed at two workers proves nothing against a third. The
 * record is in memory that processes share, without a lock. When two of them
 * write at a time, one failure may be lost and then does not count.
 */
#ifndef KVROUTE_BLAME_H
#define KVROUTE_BLAME_H

#include "health.h"

enum { BLAME_FAILURES = 64 };

/* A failure; the digests of the prompt and the client are not 0. */
struct blame_failure {
	uint64_t worker;  /* its key, as in health.h; 0: the place is free */
	uint64_t prompt, client;
	uint64_t at;
};

/* A ring of the latest failures. All 0 at first. */
struct blame {
	struct blame_failure failures[BLAME_FAILURES];
	uint64_t next;
};

/*
 * Notes that a request has failed at `of`, one of the n workers. True: the
 * failure counts. False: the evidence does not suffice yet.
 */
bool blame_failed(struct blame *b, struct health *const *all, size_t n,
    struct health *of, uint64_t prompt, uint64_t client, int64_t now);

#endif
