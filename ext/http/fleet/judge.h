/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * judge.h - which servers of a fleet are held back, since they are gray or warm
 * up; health.h judges each.
 *
 *   choice     gray servers and those that have enough while they warm up are
 *              held back: they are for requests that have no other; now and
 *              then a request is a probe of a gray one
 *   evidence   evidence.h collects it
 *
 * Backups are not judged: they do other work than the others.
 */
#ifndef KVROUTE_JUDGE_H
#define KVROUTE_JUDGE_H

#include "known.h"

struct status_health;

bool judge_on(const struct fleet *f);
/*
 * Before the processes begin, with the keys of first servers: the records of
 * servers that stay are kept, and new ones warm up, unless all are new.
 */
void judge_prepare(struct fleet *f, const uint64_t *keys, size_t n);
/* The list is made: a server that is new in it warms up. */
void judge_follow(struct fleet *f);
/*
 * The same for servers that had no place before those of others became free, or
 * whose place another process has given up.
 */
void judge_follow_late(struct fleet *f);
/* The server of this key has left. */
void judge_leave(struct fleet *f, uint64_t key);

/*
 * Sets `gray` once the servers were looked at. Where requests can wait, a
 * server that fails gets no request for which the others have no room now: it
 * would answer them with errors, as fast as it can. Requests that need its
 * state go there all the same.
 */
void judge_mark(struct fleet *f);
/* For a choice: that, and `held`. True: some are. */
bool judge_look(struct fleet *f, int64_t now);
/* Is the server of this session held back? */
bool judge_session(struct fleet *f, uint64_t session, int64_t now);
/*
 * A gray server that a request is to try, cheap ones first; n_known: none. The
 * probe is taken then.
 */
size_t judge_probe(struct fleet *f, bool cheap, int64_t now);

/* An operator has found that it is good. */
void judge_forget(struct fleet *f, const void *name, size_t len);
/* All verdicts, at most n_first of them; each address once. */
size_t judge_list(const struct fleet *f, struct status_health *out,
    int64_t now);

#endif
