/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * journal.h - the ring of records.
 *
 *	under the lock               journal_begin(k, &record, &place)
 *	then, without it if need be  journal_end(k, &place, hashes)
 */
#ifndef KVR_JOURNAL_H
#define KVR_JOURNAL_H

#include "region.h"

/* Where the rest of a record belongs. Zeros: there is no record. */
struct journal_place {
	uint64_t position;
	uint64_t check;
	uint32_t lines;    /* before the hashes */
	uint32_t hashes;
};

/* Is it valid as an option? */
static inline bool
journal_bytes_ok(uint64_t bytes)
{
	return bytes == 0 || (bytes >= KVR_JOURNAL_MIN &&
	    bytes <= KVR_JOURNAL_MAX && (bytes & (bytes - 1)) == 0);
}

/* Does a call on this handle leave a record? */
static inline bool
journal_on(const struct kvr *k)
{
	return k->layout.journal_bytes != 0 &&
	    !atomic_load_explicit(&k->quiet, memory_order_relaxed);
}

/*
 * Takes a place and writes all but the hashes; r->hashes falls to as many as
 * have room. Needs the lock. The region has a journal.
 */
void journal_begin(struct kvr *k, struct kvr_record *r,
    struct journal_place *place);
/* Copies the hashes; the record can be read then. */
void journal_end(struct kvr *k, const struct journal_place *place,
    const uint64_t *hashes);
/* A record without hashes, if there is a journal, quiet or not. */
void journal_put(struct kvr *k, struct kvr_record *r);
/* All prefixes and leases were dropped. */
void journal_clear(struct kvr *k);
/*
 * Reads the record at *position, which moves on except with KVR_EAGAIN; the
 * first `capacity` of its hashes are written.
 */
int journal_read(const struct kvr *k, uint64_t *position, int64_t now,
    struct kvr_record *r, uint64_t *hashes, size_t capacity);
/* Where the next record will begin. */
uint64_t journal_head(const struct kvr *k);
bool journal_sound(const struct kvr *k);
void journal_recover(struct kvr *k);

/* The head of a new region. */
#define JOURNAL_FIRST ((uint64_t)CELL)
/* No head comes here: at a GB each second that takes 194 years. */
#define JOURNAL_LAST (UINT64_MAX / 3 & ~(uint64_t)(CELL - 1))

#endif
