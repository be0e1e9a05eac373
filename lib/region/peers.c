/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peers.c - the report on routers of other machines.
 *
 * The program that exchanges records with them writes it once a second, and
 * what shows it must not wait. So it is under no lock:
 *
 *	+--------+----+-------+---------+------+------+-----
 *	| digest | at | peers | dropped | row  | row  | ...
 *	+--------+----+-------+---------+------+------+-----
 *	    |    \________________ ________________/
 *	    |                     V
 *	    +------------ of these words
 *
 * A reader copies it and believes the copy if the digest is that of the rest. A
 * writer that is in the middle of it is done soon: the reader looks again. One
 * that has died there, or two at a time, leave what is no report. No order of
 * stores is needed, since every mixture of two reports has another digest.
 *
 * A digest is no proof: a process with write access can make one. So each value
 * is compared with its bounds.
 */
#include "peers.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { LOOKS = 16, HEAD = offsetof(struct peer_table, row) };

static size_t
bytes_of(uint64_t rows)
{
	return HEAD + (size_t)rows * sizeof(struct kvr_peer);
}

static uint64_t
digest_of(const struct peer_table *t)
{
	return XXH3_64bits((const char *)t + sizeof(t->digest),
	    bytes_of(t->rows) - sizeof(t->digest));
}

static bool
row_valid(const struct kvr_peer *p)
{
	return p->heard >= -1 && p->heard <= CLOCK_MAX && p->lag_ns >= 0 &&
	    p->lag_ns <= CLOCK_MAX && p->state <= KVR_PEER_SILENT &&
	    p->host_length <= KVR_PEER_HOST_MAX;
}

bool
peers_valid(const struct peer_table *t)
{
	uint64_t i;

	if (t->at < -1 || t->at > CLOCK_MAX || t->connected > 1 ||
	    t->rows > KVR_PEERS_MAX || t->rows > t->peers)
		return false;
	for (i = 0; i < t->rows; i++)
		if (!row_valid(&t->row[i]))
			return false;
	return true;
}

void
peers_put(struct kvr *k, struct peer_table *t)
{
	t->digest = digest_of(t);
	write_once_words(k->peers, t, bytes_of(t->rows));
}

/* Is the copy whole? */
static bool
copy_table(const struct kvr *k, struct peer_table *t)
{
	read_once_words(t, k->peers, HEAD);
	if (t->rows > KVR_PEERS_MAX)
		return false;
	read_once_words(t->row, k->peers->row,
	    (size_t)t->rows * sizeof(t->row[0]));
	return t->digest == digest_of(t);
}

void
peers_get(const struct kvr *k, struct peer_table *t)
{
	int looks = 0;
	bool whole;

	do
		whole = copy_table(k, t);
	while (!whole && ++looks < LOOKS);
	if (whole && peers_valid(t))
		return;
	memset(t, 0, HEAD);
	t->at = -1;
}

void
peers_empty(struct kvr *k)
{
	struct peer_table t;

	if (k->peers == NULL)
		return;
	memset(&t, 0, HEAD);
	t.at = -1;
	peers_put(k, &t);
}

/* ------------------------------------------------------- check, recover --- */

/* What is not whole may be about to be. */
bool
peers_sound(const struct kvr *k)
{
	struct peer_table t;

	return k->peers == NULL || !copy_table(k, &t) || peers_valid(&t);
}

void
peers_recover(struct kvr *k)
{
	if (!peers_sound(k))
		peers_empty(k);
}
