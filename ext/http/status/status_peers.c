/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_peers.c - see status_peers.h. The program that exchanges records with
 * other machines leaves what it knows in the region; it is not asked, so that
 * nothing waits for it. When it is silent, its last words are marked as stale
 * in JSON; metrics of single peers are left out then.
 */
#include "status_peers.h"

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

enum { HEX = 16 };

struct news {
	struct kvr_exchange x;
	int64_t age, now;
	size_t n;
	struct kvr_peer peer[KVR_PEERS_MAX];
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
	return true;
}

static bool
is_stale(const struct news *n)
{
	return n->age > SILENCE;
}

static int64_t
heard_age(const struct news *n, const struct kvr_peer *p)
{
	return p->heard > n->now ? 0 : n->now - p->heard;
}

static void
hex_put(char to[HEX], uint64_t id)
{
	int i;

	for (i = HEX; i-- > 0; id >>= 4)
		to[i] = "0123456789abcdef"[id & 15];
}

/* ---------------------------------------------------------------- JSON --- */

static void
peer_put(struct json *j, const struct news *n, const struct kvr_peer *p)
{
	char id[HEX];

	hex_put(id, p->id);
	json_map(j, NULL);
	json_bytes(j, "host", p->host, p->host_length);
	json_bytes(j, "id", id, sizeof(id));
	json_text(j, "state", states[p->state]);
	json_real(j, "lag", (double)p->lag_ns / 1e9);
	if (p->heard < 0)
		json_null(j, "heard_age");
	else
		json_real(j, "heard_age", (double)heard_age(n, p) / 1e9);
	json_whole(j, "leases", p->leases);
	json_whole(j, "requests", p->requests);
	json_whole(j, "prefill_tokens", p->prefill_tokens);
	json_whole(j, "frames", p->frames);
	json_whole(j, "lost", p->lost);
	json_whole(j, "dropped", p->dropped);
	json_map_end(j);
}

static void
news_put(struct json *j, const struct news *n)
{
	size_t i;

	json_map(j, "exchange");
	json_real(j, "age", (double)n->age / 1e9);
	json_bool(j, "stale", is_stale(n));
	json_bool(j, "connected", n->x.connected != 0);
	json_map(j, "dropped");
	for (i = 0; i < KVR_DROP_REASONS; i++)
		json_whole(j, drops[i], n->x.dropped[i]);
	json_map_end(j);
	json_whole(j, "peers_known", n->x.peers);
	json_list(j, "peers");
	for (i = 0; i < n->n; i++)
		peer_put(j, n, &n->peer[i]);
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

/* ------------------------------------------------------------- metrics --- */

struct metrics {
	struct writer *to;
	const char *proxy;
	const struct status_upstream *up;
	struct news *news;    /* of all that have some, in this order */
	size_t *upstream;
	size_t n;
};

/* Names come from elsewhere: what a label cannot have becomes '?'. */
static void
label_put(struct writer *to, const char *label, const char *text, size_t n)
{
	size_t i;

	writer_text(to, label);
	writer_text(to, "=\"");
	for (i = 0; i < n; i++)
		writer_put(to, text[i] < ' ' || text[i] > '~' ||
		    text[i] == '"' || text[i] == '\\' ? "?" : &text[i], 1);
	writer_text(to, "\"");
}

static void
head_put(const struct metrics *m, const char *name, const char *type,
    const char *help)
{
	metric_head(m->to, &(struct metric){ .proxy = m->proxy, .name = name },
	    type, help);
}

static void
sample_begin(const struct metrics *m, size_t i, const char *name)
{
	metric_sample(m->to, &(struct metric){ .proxy = m->proxy,
	    .name = name }, &m->up[m->upstream[i]]);
}

static void
sample_end(const struct metrics *m, uint64_t value)
{
	metric_number(m->to, value);
}

/* In seconds, of which a thousandth counts. */
static void
sample_end_ns(const struct metrics *m, int64_t ns)
{
	const uint64_t ms = (uint64_t)ns / 1000000;

	writer_text(m->to, "} ");
	writer_number(m->to, ms / 1000);
	writer_text(m->to, ms % 1000 < 10 ? ".00" :
	    ms % 1000 < 100 ? ".0" : ".");
	writer_number(m->to, ms % 1000);
	writer_text(m->to, "\n");
}

static void
exchange_put(const struct metrics *m)
{
	size_t i, j;

	head_put(m, "exchange_age_seconds", "gauge",
	    "Since kvroute-sync has told of other machines.");
	for (i = 0; i < m->n; i++) {
		sample_begin(m, i, "exchange_age_seconds");
		sample_end_ns(m, m->news[i].age);
	}
	head_put(m, "exchange_connected", "gauge",
	    "1: it does, and reaches its bus.");
	for (i = 0; i < m->n; i++) {
		sample_begin(m, i, "exchange_connected");
		sample_end(m, !is_stale(&m->news[i]) &&
		    m->news[i].x.connected != 0);
	}
	head_put(m, "exchange_dropped_total", "counter",
	    "Frames and records that were not applied, by reason.");
	for (i = 0; i < m->n; i++)
		for (j = 0; j < KVR_DROP_REASONS; j++) {
			sample_begin(m, i, "exchange_dropped_total");
			writer_text(m->to, ",");
			label_put(m->to, "reason", drops[j],
			    strlen(drops[j]));
			sample_end(m, m->news[i].x.dropped[j]);
		}
}

#define AT(member) offsetof(struct kvr_peer, member)

static const struct {
	const char *name, *type, *help;
	size_t at;
} figures[] = {
	{ "peer_leases", "gauge", "Leases of a peer, open here.",
	    AT(leases) },
	{ "peer_requests", "gauge", "Requests that it runs.", AT(requests) },
	{ "peer_prefill_tokens", "gauge", "Tokens that it has to prefill.",
	    AT(prefill_tokens) },
	{ "peer_frames_total", "counter", "Frames of it that came.",
	    AT(frames) },
	{ "peer_lost_total", "counter", "Frames of it that never came.",
	    AT(lost) },
	{ "peer_dropped_total", "counter",
	    "Records of it that were not applied.", AT(dropped) }
};

static void
peer_begin(const struct metrics *m, size_t i, const struct kvr_peer *p,
    const char *name)
{
	char id[HEX];

	hex_put(id, p->id);
	sample_begin(m, i, name);
	writer_text(m->to, ",");
	label_put(m->to, "host", p->host, p->host_length);
	writer_text(m->to, ",");
	label_put(m->to, "id", id, sizeof(id));
}

/* Calls `put` for each peer of which there is fresh news. */
static void
each_peer(const struct metrics *m, const char *name, size_t figure,
    void (*put)(const struct metrics *, const struct kvr_peer *, size_t))
{
	size_t i, j;

	for (i = 0; i < m->n; i++)
		for (j = 0; j < m->news[i].n && !is_stale(&m->news[i]); j++) {
			peer_begin(m, i, &m->news[i].peer[j], name);
			put(m, &m->news[i].peer[j], figure);
		}
}

static void
put_fresh(const struct metrics *m, const struct kvr_peer *p, size_t figure)
{
	(void)figure;
	sample_end(m, p->state == KVR_PEER_FRESH);
}

static void
put_lag(const struct metrics *m, const struct kvr_peer *p, size_t figure)
{
	(void)figure;
	sample_end_ns(m, p->lag_ns);
}

static void
put_figure(const struct metrics *m, const struct kvr_peer *p, size_t figure)
{
	uint64_t value;

	memcpy(&value, (const char *)p + figures[figure].at, sizeof(value));
	sample_end(m, value);
}

static void
peers_put(const struct metrics *m)
{
	size_t i;

	head_put(m, "peer_fresh", "gauge", "1: all of this peer counts.");
	each_peer(m, "peer_fresh", 0, put_fresh);
	head_put(m, "peer_lag_seconds", "gauge",
	    "Delay of its latest frame, above that of the fastest.");
	each_peer(m, "peer_lag_seconds", 0, put_lag);
	for (i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
		head_put(m, figures[i].name, figures[i].type,
		    figures[i].help);
		each_peer(m, figures[i].name, i, put_figure);
	}
}

void
peers_metrics(const struct status *s, struct writer *to)
{
	struct metrics m = { .to = to, .proxy = s->proxy, .up = s->upstream };
	size_t i, all = s->upstreams + 1;

	m.news = writer_alloc(to, all * sizeof(*m.news));
	m.upstream = m.news == NULL ? NULL :
	    writer_alloc(to, all * sizeof(*m.upstream));
	for (i = 0; m.upstream != NULL && i < s->upstreams; i++) {
		if (!news_read(s->upstream[i].kvr, &m.news[m.n]))
			continue;
		m.upstream[m.n++] = i;
	}
	if (m.n > 0) {
		exchange_put(&m);
		peers_put(&m);
	}
	if (m.upstream != NULL)
		writer_free(to, m.upstream);
	if (m.news != NULL)
		writer_free(to, m.news);
}
