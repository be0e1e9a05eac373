/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept_state.h - the session of a request, and state that one engine keeps.
 *
 * A SESSION is named by a header or a member of the body, as configured. The
 * digest goes with the request into the library's choice: kvr_affinity(3). It
 * is a hint: it isolates nothing and is in no scope.
 *
 * STATE is an answer or a conversation that an engine keeps and clients name by
 * its id. Only that engine can go on from it, so this is no matter of cost:
 *
 *   the answer passes     id -> its worker, kvr_affinity_bind
 *   an id in body or path
 *     bound               that worker, also if it is drained
 *     gone, or down       state_lost: any other, whose engine has its own
 *                         words that it does not know the id
 *     full, failed, or the region is locked
 *                         state_busy: refused, since any other engine would say
 *                         for good that there is no such id
 *     not bound           as if there were no id
 *   accepted              the binding is made anew: it lives on while it is
 *                         used; or it ends, if the id was to be deleted
 *
 * All of it is within the tenant: no tenant reaches the state of another.
 */
#ifndef KVROUTE_KEPT_STATE_H
#define KVROUTE_KEPT_STATE_H

#include "reason.h"
#include "session_key.h"
#include "writes.h"

enum { KEPT_TRIES = 4 }; /* of a lookup that finds writers in the way */

/* All 0 at first. */
struct kept_state {
	uint64_t session;       /* its digest, or 0 */
	uint64_t state;         /* its digest, if the engine keeps it, or 0 */
	unsigned binds;         /* kind of its answer's id, or 0 */
	unsigned bound;         /* bits of enum object_id: done */
	bool ends;              /* the engine is asked to delete `state` */
};

struct kept_text {
	const char *bytes;
	size_t length;
};

/*
 * The path of a request: the kind of its answer's id, and the id in the path;
 * of->length is 0 without one.
 */
void kept_path(struct kept_state *s, enum endpoint endpoint, const char *path,
    size_t n, bool post, bool deletes, struct session_path *of);
/* The digest of the id in the path, or of the ids in a body for responses. */
void kept_digest(struct kept_state *s, const struct kvr *k,
    struct kept_text tenant, const struct session_path *of,
    struct kept_text previous, struct kept_text conversation);
/*
 * Where a request must go whose binding was looked up, with this error: there:
 * its worker is one of a server that is not down; usable: which takes it now.
 * Returns AFFINITY, STATE_LOST, STATE_BUSY; or COST: it has none.
 */
enum reason kept_verdict(int error, bool there, bool usable,
    uint32_t *affinity);
/* Counts an outcome of a choice; held: its session's server is held back. */
void kept_count(struct shared *shared, uint32_t affinity, bool held);
/* The digest of the next id in an answer that is to be bound; 0: none. */
uint64_t kept_next(struct kept_state *s, const struct answer *a, bool unstored,
    const struct kvr *k, struct kept_text tenant);
/* ends: it was deleted. False: nothing is bound. */
bool kept_bind(struct writes *w, uint64_t digest, uint64_t worker, int64_t ttl,
    bool ends, int64_t now);

#endif
