/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * affinity.c - the table of sessions: which worker each was sent to last.
 *
 *	digest of a session --> bucket --> 8 bindings, in no order
 *
 *	             digest   worker   used   ttl
 *	binding 0    7f3a..   5        100 s  600 s
 *	binding 1    02c9..   9        340 s  600 s  by hand
 *	binding 2    0        free
 *
 * A binding is live until its TTL has passed since it was used last, and while
 * its worker has this id: a worker that is removed or reset takes another one,
 * so its bindings are void at once, and nothing has to be searched for.
 * Bindings that are not live stay where they are until their place is wanted.
 *
 * A new session takes a free place of its bucket; else one that is not live;
 * else that of the session which was used least recently; else, where all were
 * bound by hand, that of the one used least recently. A binding by hand stands
 * for state that only its worker has; a session is a hint, and clients name as
 * many as they like. So each call looks at 8 places, and a table of twice as
 * many places as sessions loses few.
 *
 * DISTRUST. Every number may be wrong, of a stray write or of a writer that
 * died in between: ids are looked up, and times compared with the clock. The
 * worst is a session that is lost, or goes to another worker. So the table is
 * kept when the index is emptied after a death; affinity_recover drops bindings
 * that no call can have left.
 */
#include "affinity.h"

#include "id.h"
#include "load.h"
#include "mix.h"

enum { TTL_DEFAULT_MS = 600 * 1000, MS = 1000000 };

uint32_t
affinity_ttl_ms(int64_t ttl)
{
	return ttl == 0 ? TTL_DEFAULT_MS : (uint32_t)((ttl - 1) / MS + 1);
}

/* ------------------------------------------------------------- looking --- */

/* Where the bucket of a digest begins. */
static uint32_t
bucket_of(const struct kvr *k, uint64_t digest)
{
	uint64_t buckets = k->layout.bindings / BINDINGS;
	uint64_t h = mix(digest ^ k->table_key[0]) >> 32;

	return (uint32_t)(h * buckets >> 32) * BINDINGS;
}

/* The binding of a session; NULL: it has none. */
static struct binding *
place_of(const struct kvr *k, uint64_t digest)
{
	struct binding *b;
	uint32_t i;

	if (digest == 0 || k->layout.bindings == 0)
		return NULL;
	b = &k->bindings[bucket_of(k, digest)];
	for (i = 0; i < BINDINGS; i++)
		if (read_once(b[i].digest) == digest)
			return &b[i];
	return NULL;
}

static bool
has_expired(const struct binding *b, int64_t now)
{
	return b->stamp < 0 || b->stamp > now ||
	    now - b->stamp >= (int64_t)b->ttl_ms * MS;
}

bool
affinity_look(const struct kvr *k, uint64_t digest, int64_t now,
    struct binding *b)
{
	const struct binding *place = place_of(k, digest);

	if (place == NULL)
		return false;
	read_once_words(b, place, sizeof(*b));
	return b->digest == digest && !has_expired(b, now);
}

/* ------------------------------------------------------------- binding --- */

static bool
is_live(const struct kvr *k, const struct binding *b, int64_t now)
{
	uint32_t slot;

	return b->digest != 0 && !has_expired(b, now) &&
	    worker_slot(k, b->worker, &slot);
}

/* Is a to be evicted before b? */
static bool
leaves_before(const struct binding *a, const struct binding *b)
{
	return a->by_hand == b->by_hand ? a->stamp < b->stamp
	    : a->by_hand == 0;
}

/* The place for a new session; the binding that was there leaves. */
static struct binding *
place_make(struct kvr *k, uint64_t digest, int64_t now)
{
	struct binding *b = &k->bindings[bucket_of(k, digest)], *least = b;
	struct counts *counts = &k->region->counts;
	uint32_t i;

	for (i = 0; i < BINDINGS; i++)
		if (b[i].digest == 0) {
			add_once(counts->bindings, 1);
			return &b[i];
		}
	for (i = 0; i < BINDINGS; i++) {
		if (!is_live(k, &b[i], now))
			return &b[i];
		if (leaves_before(&b[i], least))
			least = &b[i];
	}
	add_once(counts->bindings_evicted, 1);
	return least;
}

/* A writer that dies in between leaves a place without a digest. */
static void
place_write(struct binding *place, const struct binding *b)
{
	write_once(place->digest, UINT64_C(0));
	atomic_signal_fence(memory_order_seq_cst);
	write_once_words((char *)place + sizeof(b->digest),
	    (const char *)b + sizeof(b->digest),
	    sizeof(*b) - sizeof(b->digest));
	atomic_signal_fence(memory_order_seq_cst);
	write_once(place->digest, b->digest);
}

void
affinity_bind(struct kvr *k, const struct affinity_use *use, int64_t now)
{
	struct binding *place = place_of(k, use->digest);
	struct binding b = { use->digest, worker_id(k, use->slot), now,
		use->ttl_ms, use->by_hand };

	if (use->digest == 0 || k->layout.bindings == 0)
		return;
	if (place == NULL)
		place = place_make(k, use->digest, now);
	else if (is_live(k, place, now) && place->worker != b.worker)
		add_once(k->region->counts.bindings_moved, 1);
	place_write(place, &b);
}

void
affinity_refresh(struct kvr *k, const struct affinity_use *use, int64_t now)
{
	const struct binding *place = place_of(k, use->digest);

	if (place == NULL || !is_live(k, place, now) ||
	    place->worker == worker_id(k, use->slot))
		affinity_bind(k, use, now);
}

/* -------------------------------------------------------------- damage --- */

void
affinity_empty(struct kvr *k)
{
	write_once_zeros(k->bindings,
	    k->layout.bindings * sizeof(struct binding));
	put_once(k->region->counts.bindings, 0);
}

/* Can calls have left this in the place i, in the order of a bucket? */
static bool
place_possible(const struct kvr *k, uint32_t i)
{
	const struct binding *b = &k->bindings[i];
	uint64_t most = (uint64_t)AFFINITY_TTL_MAX / MS;

	return b->stamp >= 0 && b->stamp <= k->region->clock &&
	    id_is_worker(b->worker) && id_slot(b->worker) < k->layout.slots &&
	    b->by_hand <= 1 && b->ttl_ms > 0 && b->ttl_ms <= most &&
	    place_of(k, b->digest) == b;
}

bool
affinity_sound(const struct kvr *k)
{
	uint64_t taken = 0;
	uint32_t i;

	for (i = 0; i < k->layout.bindings; i++) {
		if (k->bindings[i].digest == 0)
			continue;
		if (!place_possible(k, i))
			return false;
		taken++;
	}
	return taken == k->region->counts.bindings;
}

void
affinity_recover(struct kvr *k)
{
	uint64_t taken = 0;
	uint32_t i;

	for (i = 0; i < k->layout.bindings; i++) {
		if (k->bindings[i].digest == 0)
			continue;
		if (place_possible(k, i))
			taken++;
		else
			write_once(k->bindings[i].digest, UINT64_C(0));
	}
	put_once(k->region->counts.bindings, taken);
}
