/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_peers.c - other machines, see status_parts.h and kvr_peer(3). The
 * program that exchanges records with them leaves a report in the region; it is
 * not asked, so that nothing waits for it. The JSON marks a report that is old
 * as stale; metrics of single peers are left out then.
 */
#include "status_parts.h"

#include <kvroute_replica.h>
#include <string.h>

#include "status_in.h"

#define SILENCE INT64_C(3000000000) /* it reports once a second */

static const char *const states[] = {
	[KVR_PEER_FRESH] = "fresh",
	[KVR_PEER_LATE] = "late",
	[KVR_PEER_STALE] = "stale",
	[KVR_PEER_SILENT] = "silent"
};
static const char *const drops[KVR_DROP_REASONS] = {
	[KVR_DROP_MALFORMED] = "malformed",
	[KVR_DROP_VERSION] = "version",
	[KVR_DROP_STRANGER] = "stranger",
	[KVR_DROP_FORGED] = "forged",
	[KVR_DROP_REPEATED] = "repeated",
	[KVR_DROP_UNKNOWN_WORKER] = "unknown_worker",
	[KVR_DROP_UNKNOWN_LEASE] = "unknown_lease",
	[KVR_DROP_OLD_EPOCH] = "old_epoch",
	[KVR_DROP_LATE] = "late",
	[KVR_DROP_STALE] = "stale",
	[KVR_DROP_NO_ROOM] = "no_room",
	[KVR_DROP_REFUSED] = "refused",
	[KVR_DROP_UNJOINED] = "unjoined"
};

struct peer_row {
	struct kvr_peer p;
	const char *state;
	int64_t heard_age;      /* -1: never */
	bool fresh;
};

static const struct fact peer_facts[] = {
	{ "state", NULL, FACT(struct peer_row, state), NULL },
	{ NULL, "peer_fresh", FACT(struct peer_row, fresh),
	    "1: all of this peer counts." },
	{ "lag", "peer_lag_seconds", FACT(struct peer_row, p.lag_ns),
	    "Delay of its latest frame, above that of the fastest." },
	{ "heard_age", NULL, FACT(struct peer_row, heard_age), NULL },
	{ "leases", "peer_leases", FACT(struct peer_row, p.leases),
	    "Leases of a peer, open here." },
	{ "requests", "peer_requests", FACT(struct peer_row, p.requests),
	    "Requests that it runs." },
	{ "prefill_tokens", "peer_prefill_tokens",
	    FACT(struct peer_row, p.prefill_tokens),
	    "Tokens that it has to prefill." },
	{ "frames", "peer_frames_total", FACT(struct peer_row, p.frames),
	    "Frames of it that came." },
	{ "lost", "peer_lost_total", FACT(struct peer_row, p.lost),
	    "Frames of it that never came." },
	{ "dropped", "peer_dropped_total", FACT(struct peer_row, p.dropped),
	    "Records of it that were not applied." }
};

struct news {
	struct kvr_exchange x;
	int64_t age, now;
	bool stale, connected, reaches;
	size_t n;
	struct kvr_peer peer[KVR_PEERS_MAX];
};

static const struct fact news_facts[] = {
	{ "age", "exchange_age_seconds", FACT(struct news, age),
	    "Since kvroute-sync has told of other machines." },
	{ "stale", NULL, FACT(struct news, stale), NULL },
	{ "connected", NULL, FACT(struct news, connected), NULL },
	{ NULL, "exchange_connected", FACT(struct news, reaches),
	    "1: it does, and reaches its bus." }
};

struct drop_row {
	const char *reason;
	uint64_t records;
};

static const struct fact drop_facts[] = {
	{ NULL, "exchange_dropped_total", FACT(struct drop_row, records),
	    "Frames and records that were not applied, by reason." }
};

/* Is there a report? */
static bool
news_read(const struct kvr *k, struct news *n)
{
	n->x.size = sizeof(n->x);
	if (k == NULL || kvr_peer_list(k, &n->x, n->peer, sizeof(n->peer[0]),
	    KVR_PEERS_MAX, &n->n) != KVR_OK || n->x.at < 0)
		return false;
	n->now = kvr_clock_now();
	n->age = n->now < n->x.at ? 0 : n->now - n->x.at;
	n->stale = n->age > SILENCE;
	n->connected = n->x.connected != 0;
	n->reaches = n->connected && !n->stale;
	return true;
}

static void
peer_read(const struct news *n, size_t i, struct peer_row *row)
{
	const int64_t heard = n->peer[i].heard;

	row->p = n->peer[i];
	row->state = states[row->p.state];
	row->heard_age = heard < 0 ? -1 : heard > n->now ? 0 : n->now - heard;
	row->fresh = row->p.state == KVR_PEER_FRESH;
}

/* ----------------------------------------------------------------- JSON --- */

static void
peer_put(struct json *j, const struct peer_row *row)
{
	char id[WRITER_HEX];

	hex_write(id, row->p.id);
	json_map(j, NULL);
	json_bytes(j, "host", row->p.host, row->p.host_length);
	json_bytes(j, "id", id, sizeof(id));
	facts_json(j, FACTS(peer_facts), row);
	json_map_end(j);
}

static void
news_put(struct json *j, const struct news *n)
{
	struct peer_row row;
	size_t i;

	json_map(j, "exchange");
	facts_json(j, FACTS(news_facts), n);
	json_map(j, "dropped");
	for (i = 0; i < KVR_DROP_REASONS; i++)
		json_whole(j, drops[i], n->x.dropped[i]);
	json_map_end(j);
	json_whole(j, "peers_known", n->x.peers);
	json_list(j, "peers");
	for (i = 0; i < n->n; i++) {
		peer_read(n, i, &row);
		peer_put(j, &row);
	}
	json_list_end(j);
	json_map_end(j);
}

void
peers_json(struct json *j, const struct kvr *k)
{
	struct news *n = writer_alloc(j->to, sizeof(*n));

	if (n == NULL)
		return;
	if (news_read(k, n))
		news_put(j, n);
	else
		json_null(j, "exchange");
	writer_free(j->to, n);
}

/* -------------------------------------------------------------- metrics --- */

/* The reports of all upstreams, and a row of one of them. */
struct reading {
	const struct status_upstream *first;
	struct news *news;
	bool *told;
	struct peer_row peer;
	struct drop_row drop;
};

static const struct news *
news_of(const struct reading *r, const struct status_upstream *up)
{
	const size_t u = (size_t)(up - r->first);

	return r->told[u] ? &r->news[u] : NULL;
}

static const void *
news_at(void *context, const struct status_upstream *up, size_t i)
{
	return i == 0 ? news_of(context, up) : NULL;
}

static const void *
drop_at(void *context, const struct status_upstream *up, size_t i)
{
	struct reading *r = context;
	const struct news *n = news_of(r, up);

	if (n == NULL || i >= KVR_DROP_REASONS)
		return NULL;
	r->drop = (struct drop_row){ drops[i], n->x.dropped[i] };
	return &r->drop;
}

static const void *
peer_at(void *context, const struct status_upstream *up, size_t i)
{
	struct reading *r = context;
	const struct news *n = news_of(r, up);

	if (n == NULL || n->stale || i >= n->n)
		return NULL;
	peer_read(n, i, &r->peer);
	return &r->peer;
}

static void
drop_labels(struct metrics *m, const void *object)
{
	metric_label_text(m, "reason",
	    ((const struct drop_row *)object)->reason);
}

/* Names come from elsewhere. */
static void
peer_labels(struct metrics *m, const void *object)
{
	const struct kvr_peer *p = &((const struct peer_row *)object)->p;
	char id[WRITER_HEX];

	hex_write(id, p->id);
	metric_label_plain(m, "host", p->host, p->host_length);
	metric_label_plain(m, "id", id, sizeof(id));
}

void
peers_metrics(struct metrics *m, const struct status *s)
{
	struct reading r = { .first = s->upstream };
	size_t i, all = s->upstreams + 1;

	r.news = writer_alloc(m->to, all * sizeof(*r.news));
	r.told = writer_alloc(m->to, all * sizeof(*r.told));
	if (r.news != NULL && r.told != NULL) {
		for (i = 0; i < s->upstreams; i++)
			r.told[i] = news_read(s->upstream[i].kvr, &r.news[i]);
		facts_metrics(m, s, FACTS(news_facts), &(struct fact_rows){
		    .at = news_at, .context = &r });
		facts_metrics(m, s, FACTS(drop_facts), &(struct fact_rows){
		    .at = drop_at, .context = &r, .labels = drop_labels });
		facts_metrics(m, s, FACTS(peer_facts), &(struct fact_rows){
		    .at = peer_at, .context = &r, .labels = peer_labels });
	}
	writer_free(m->to, r.told);
	writer_free(m->to, r.news);
}
