/* SPDX-License-Identifier: BSD-2-Clause */
/* replicas.c - see replicas.h. */
#include "replicas.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "owner_pid.h"
#include "shared.h"

/* kvroute-sync(8) has the upper half of owners, and a source of loads. */
#define BROUGHT UINT64_C(0xffffffff)
enum { SOURCE = KVR_LOAD_SOURCES - 1 };

#define SILENCE INT64_C(3000000000) /* it beats once a second */

enum {
	OWNERS = 64,            /* looked at in one go */
	PIECES = 64             /* of the library's work, likewise */
};

static bool
is_brought(uint64_t owner)
{
	return owner >> 32 == BROUGHT;
}

uint64_t
replicas_namespace(void)
{
	struct stat room;

	return stat("/proc/self/ns/pid", &room) != 0 ? 0 :
	    (uint64_t)room.st_ino << 32;
}

bool
replicas_clear(struct fleet *f, const struct replicas *r, int64_t now)
{
	uint64_t reaped = 0;
	int error;

	do
		error = kvr_owner_reap(f->kvr, r->self, now, &reaped, NULL);
	while (error == KVR_OK && reaped != 0);
	return error == KVR_OK;
}

void
replicas_begin(struct fleet *f, struct replicas *r, int64_t now)
{
	r->self = replicas_namespace() | (uint32_t)f->self;
	/* In a container a process may have the pid of a dead one. */
	(void)replicas_clear(f, r, now);
}

/* -------------------------------------------------------------- silence --- */

/* False if there is more to do. */
static bool
loads_end(struct fleet *f, struct replicas *r)
{
	const struct kvr_load none = { .size = sizeof(none) };
	int pieces = PIECES;
	uint64_t id;

	do {
		id = r->unloaded;
		if (kvr_worker_next(f->kvr, &id) != KVR_OK)
			return false;
		if (id != 0 && kvr_worker_set_load(f->kvr, id, SOURCE,
		    &none) == KVR_EBUSY)
			return false;
		r->unloaded = id;
	} while (id != 0 && --pieces > 0);
	return id == 0;
}

static void
silence_log(const struct fleet *f, int64_t beat, void *log)
{
	uint64_t logged = f->shared->silence;

	if (logged != (uint64_t)beat && atomic_compare_exchange_strong(
	    &f->shared->silence, &logged, (uint64_t)beat))
		fleet_log(f, log, FLEET_NOTICE, "kvroute-sync is silent: "
		    "requests and loads of other machines end");
}

static bool
silence_watch(struct fleet *f, struct replicas *r, int64_t now, void *log)
{
	struct kvr_stats s = { .size = sizeof(s) };

	r->silent = false;
	if (kvr_stats_get(f->kvr, &s) != KVR_OK)
		return true;
	r->silent = s.journal_beat >= 0 && now - s.journal_beat > SILENCE;
	/* The last beat of one that ends in good order is old already. */
	if (!r->silent || r->silence == s.journal_beat + 1)
		return true;
	silence_log(f, s.journal_beat, log);
	if (!loads_end(f, r))
		return false;
	r->silence = s.journal_beat + 1;
	return true;
}

/* --------------------------------------------------------------- owners --- */

/* Is it a process of this namespace that has ended? */
static bool
has_died(const struct replicas *r, uint64_t owner)
{
	if (is_brought(owner))
		return r->silent;
	if (owner >> 32 != r->self >> 32)
		return false;
	if (r->has_ended != NULL && owner_pid(owner) == getpid())
		return r->has_ended(owner);
	return owner_pid(owner) > 0 && kill(owner_pid(owner), 0) == -1 &&
	    errno == ESRCH;
}

/* Ends more requests of r->dead; false if some are left. */
static bool
reap_some(struct fleet *f, struct replicas *r, int64_t now, void *log)
{
	uint32_t ended, all = 0;
	int pieces = PIECES, error;

	do {
		error = kvr_owner_reap(f->kvr, r->dead, now, &r->reaped,
		    &ended);
		if (error == KVR_OK)
			all += ended;
	} while (error == KVR_OK && r->reaped != 0 && --pieces > 0);
	if (all > 0 && !is_brought(r->dead))
		fleet_log(f, log, FLEET_NOTICE, "ended %" PRIu32 " requests of "
		    "process %d that died", all, (int)owner_pid(r->dead));
	if (error != KVR_OK || r->reaped != 0)
		return false;
	r->dead = 0;
	return true;
}

/* Looks at the next owners; false if there is more to do soon. */
static bool
reap_dead(struct fleet *f, struct replicas *r, int64_t now, void *log)
{
	uint64_t owners[OWNERS];
	int pieces = PIECES;
	size_t n, i;

	/* kvroute-sync may be back. */
	if (r->dead != 0 && !has_died(r, r->dead))
		r->dead = 0;
	if (r->dead != 0 && !reap_some(f, r, now, log))
		return false;
	do {
		if (kvr_owner_list(f->kvr, &r->listed, owners, OWNERS, &n) !=
		    KVR_OK)
			return true;
		for (i = 0; i < n; i++) {
			if (!has_died(r, owners[i]))
				continue;
			r->dead = owners[i];
			r->reaped = 0;
			if (!reap_some(f, r, now, log))
				return false;
		}
	} while (r->listed != 0 && --pieces > 0);
	return r->listed == 0;
}

bool
replicas_watch(struct fleet *f, struct replicas *r, int64_t now, void *log)
{
	bool done = silence_watch(f, r, now, log);

	return reap_dead(f, r, now, log) && done;
}
