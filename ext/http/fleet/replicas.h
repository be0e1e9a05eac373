/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replicas.h - requests and loads that kvroute-sync has brought from other
 * machines, and processes of this one that have died: both are ended.
 *
 *     beat        |  |  |  |  |                              |  |
 *     silent                        ==========================
 *     leases      ------------------|   reaped, as of dead processes
 *     loads       ------------------|   set to nothing, once
 *
 * An owner is a process: its pid, and above it the pid namespace, because a
 * region file may be shared with another container. All processes do the same,
 * a second apart at most; a thing done twice changes nothing. The first one
 * logs it.
 */
#ifndef KVROUTE_REPLICAS_H
#define KVROUTE_REPLICAS_H

#include "known.h"

/* A process has looked so far; all 0 at first. */
struct replicas {
	uint64_t self;          /* the owner that this process is */
	uint64_t listed;        /* where looking for dead ones goes on; */
	uint64_t dead, reaped;  /* one that is being reaped, or 0, */
	                        /* and where that goes on */
	bool silent;            /* kvroute-sync, since its latest beat; */
	int64_t silence;        /* that + 1, when loads were ended; or 0 */
	uint64_t unloaded;      /* where ending them goes on */
	/* Has an owner of this process ended? NULL: there is only r->self. */
	bool (*has_ended)(uint64_t owner);
};

/* The namespace of pids that this process is in, as the half of an owner. */
uint64_t replicas_namespace(void);
/* This process is one; leases that another with its pid has left are ended. */
void replicas_begin(struct fleet *f, struct replicas *r, int64_t now);
/* Ends the leases of r->self; false: there may be more. */
bool replicas_clear(struct fleet *f, const struct replicas *r, int64_t now);
/* Ends a piece of the leases. False: there is more to do soon. */
bool replicas_watch(struct fleet *f, struct replicas *r, int64_t now,
    void *log);

#endif
