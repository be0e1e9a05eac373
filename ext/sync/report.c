/* SPDX-License-Identifier: BSD-2-Clause */
/* report.c - see report.h. */
#include "report.h"

#include <kvroute_replica.h>
#include <string.h>

_Static_assert((int)APPLY_FRESH == (int)KVR_PEER_FRESH &&
    (int)APPLY_LATE == (int)KVR_PEER_LATE &&
    (int)APPLY_STALE == (int)KVR_PEER_STALE &&
    (int)APPLY_SILENT == (int)KVR_PEER_SILENT, "states have one number");
_Static_assert((int)APPLY_HOST_MAX <= (int)KVR_PEER_HOST_MAX, "a host fits");

static void
drops(const struct site *s, uint64_t to[KVR_DROP_REASONS])
{
	const struct apply_counts c = apply_counts(s->apply);

	to[KVR_DROP_MALFORMED] = c.frames[FRAME_MALFORMED];
	to[KVR_DROP_VERSION] = c.frames[FRAME_VERSION];
	to[KVR_DROP_STRANGER] = c.frames[FRAME_STRANGER];
	to[KVR_DROP_FORGED] = c.frames[FRAME_FORGED];
	to[KVR_DROP_REPEATED] = c.repeated;
	to[KVR_DROP_UNKNOWN_WORKER] = c.unknown_worker;
	to[KVR_DROP_UNKNOWN_LEASE] = c.unknown_lease;
	to[KVR_DROP_OLD_EPOCH] = c.old_epoch;
	to[KVR_DROP_LATE] = c.late;
	to[KVR_DROP_STALE] = c.stale;
	to[KVR_DROP_NO_ROOM] = c.no_room;
	to[KVR_DROP_REFUSED] = c.refused;
	to[KVR_DROP_UNJOINED] = c.unjoined;
}

static void
row(struct kvr_peer *to, const struct apply_peer *p)
{
	memset(to, 0, sizeof(*to));
	to->id = p->origin;
	to->heard = p->heard;
	to->lag_ns = p->excess;
	to->leases = p->leases;
	to->requests = p->requests;
	to->prefill_tokens = p->prefill_tokens;
	to->frames = p->frames;
	to->lost = p->lost;
	to->dropped = p->dropped;
	to->state = (uint32_t)p->state;
	to->host_length = (uint32_t)p->host_len;
	memcpy(to->host, p->host, p->host_len);
}

static void
put(const struct site *s, bool connected, int64_t now)
{
	struct apply_peer peers[KVR_PEERS_MAX];
	struct kvr_peer rows[KVR_PEERS_MAX];
	struct kvr_exchange x = { .size = sizeof(x), .at = now };
	const size_t n = apply_peers(s->apply, peers, KVR_PEERS_MAX);
	size_t i;

	x.connected = connected;
	x.peers = (uint32_t)apply_counts(s->apply).peers;
	drops(s, x.dropped);
	for (i = 0; i < n; i++)
		row(&rows[i], &peers[i]);
	(void)kvr_peer_set(s->k, &x, rows, sizeof(rows[0]), n);
}

void
report(const struct site *s, int64_t now)
{
	put(s, bus_connected(s->bus), now);
}

void
report_end(const struct site *s, int64_t now)
{
	put(s, false, now);
}
