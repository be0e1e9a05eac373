/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * members.h - the workers of the region are the servers of the list, by name;
 * of an engine with data-parallel ranks one for each, all of that name.
 *
 *     start       workers are made equal to the list; a worker that stays keeps
 *                 its record and a state set at run time
 *     list anew   a new name: its workers are added, by any process; all find
 *                 them there
 *     leave       a worker whose server has left is kept for left_ms, and as
 *                 long as it has requests, then removed; where servers come and
 *                 go by configurations only, for its requests only
 *
 * An address that is back before that, since an engine was not ready for a
 * while or since a name has more addresses than an answer, has its record
 * still. No request goes there meanwhile: it is no server.
 *
 * A process looks up the ids of its servers once, and again when the epoch has
 * changed, since a worker was reset, added or removed. Ids that it knew stay in
 * force until the lookup is done: one that is gone by then means nothing to the
 * library.
 *
 *     epoch changes     due due due         ids are those of before
 *     lock is held      due due due         the same
 *     looked up          -   -  due         a new id, or none: due until there
 *                                           is one
 */
#ifndef KVROUTE_MEMBERS_H
#define KVROUTE_MEMBERS_H

#include "known.h"

struct member_left {
	uint64_t id;            /* of a worker without a server */
	int64_t since;
};

/* Belongs to one process. */
struct members {
	bool resolves;          /* servers come and go while it runs */
	uint64_t left_ms;
	bool joining;           /* not all have joined */
	bool leaving;           /* workers may have no server */
	struct member_left *left; /* [2 * max_workers], or NULL */
	size_t n_left;
};

/* At a start: the workers of the region k are made equal to the list. */
void members_sync(struct fleet *f, struct members *m, struct kvr *k,
    void *log);
/*
 * Facts that were read off the engine stay until they are read again: those of
 * the worker `now`, where the configuration leaves them to the engine.
 */
void members_read_keep(const struct server_facts *told,
    const struct kvr_worker *now, struct kvr_worker *facts);
/* The list is new. */
void members_follow(struct members *m);
/* Some workers of new servers are added; again is no error. */
void members_join(struct fleet *f, struct members *m, int64_t now, void *log);
/* Once in a while: workers without a server are removed. */
void members_leave(struct fleet *f, struct members *m, int64_t now,
    void *log);

/* Ids that are due are looked up. */
void members_look(struct fleet *f, int64_t now);
/*
 * Collects the workers of usable servers in f->allowed, and returns their
 * number: first ones, and those that are held back only if there is no other,
 * and backups then. missing: one is left out, since its id is not known yet.
 */
size_t members_allow(struct fleet *f, bool *missing);
/* The same of server i alone. */
size_t members_allow_one(struct fleet *f, size_t i, bool *missing);

#endif
