/* SPDX-License-Identifier: BSD-2-Clause */
/* status_text.c - see status_text.h. */
#include "status_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "file_writer.h"
#include "metric_writer.h"

#define MS INT64_C(1000000)

enum { COUNTERS = 51 };

struct counter {
	const char *group, *name;
	uint64_t value;
};

static size_t
collect(const struct site *s, struct counter out[COUNTERS])
{
	const struct publish_counts p = publish_counts(s->publish);
	const struct apply_counts c = apply_counts(s->apply);
	const struct bus_counts b = bus_counts(s->bus);
	const struct give_counts g = s->late.give == NULL ?
	    (struct give_counts){ 0 } : give_counts(s->late.give);
	const struct fetch_counts f = s->late.fetch == NULL ?
	    (struct fetch_counts){ 0 } : fetch_counts(s->late.fetch);
	const struct counter all[COUNTERS] = {
		{ "bus", "sent", b.sent },
		{ "bus", "received", b.received },
		{ "bus", "send_drops", b.send_drops },
		{ "bus", "take_drops", b.take_drops },
		{ "bus", "gaps", b.gaps },
		{ "bus", "connects", b.connects },
		{ "bus", "failures", b.failures },
		{ "published", "frames", p.frames },
		{ "published", "bytes", p.bytes },
		{ "published", "records", p.records },
		{ "published", "unsent", p.unsent },
		{ "published", "overruns", p.overruns },
		{ "published", "unknown_worker", p.unknown_worker },
		{ "published", "too_long", p.too_long },
		{ "published", "unsayable", p.unsayable },
		{ "published", "unlisted", p.unlisted },
		{ "applied", "frames", c.frames[FRAME_GOOD] },
		{ "applied", "malformed", c.frames[FRAME_MALFORMED] },
		{ "applied", "version", c.frames[FRAME_VERSION] },
		{ "applied", "stranger", c.frames[FRAME_STRANGER] },
		{ "applied", "forged", c.frames[FRAME_FORGED] },
		{ "applied", "repeated", c.repeated },
		/* counters do not go down */
		{ "applied", "missed", c.lost + c.reordered },
		{ "applied", "reordered", c.reordered },
		{ "applied", "records", c.records },
		{ "applied", "replayed", c.replayed },
		{ "applied", "repaired", c.repaired },
		{ "applied", "silences", c.silences },
		{ "applied", "stops", c.stops },
		{ "applied", "unknown_worker", c.unknown_worker },
		{ "applied", "unknown_lease", c.unknown_lease },
		{ "applied", "old_epoch", c.old_epoch },
		{ "applied", "late", c.late },
		{ "applied", "stale", c.stale },
		{ "applied", "no_room", c.no_room },
		{ "applied", "unjoined", c.unjoined },
		{ "applied", "unproved", c.unproved },
		{ "applied", "refused", c.refused },
		{ "fetched", "entries", f.applied },
		{ "fetched", "blocks", f.blocks },
		{ "fetched", "refused", f.refused },
		{ "fetched", "lost", f.lost },
		{ "fetched", "left_out", s->late.left_out },
		{ "given", "asked", g.asked },
		{ "given", "answers", g.given },
		{ "given", "refused", g.refused },
		{ "given", "broken", g.broken },
		{ "given", "bytes", g.bytes },
		{ "given", "entries", g.entries },
		{ "given", "blocks", g.blocks },
		{ "given", "unknown", g.unknown + g.no_room }
	};

	memcpy(out, all, sizeof(all));
	return COUNTERS;
}

/* Whatever it is, JSON and a terminal survive it. */
static void
put_text(FILE *out, const char *text, size_t n)
{
	size_t i;

	fputc('"', out);
	for (i = 0; i < n; i++)
		fputc(text[i] < ' ' || text[i] > '~' || text[i] == '"' ||
		    text[i] == '\\' ? '?' : text[i], out);
	fputc('"', out);
}

static void
put_fresh(struct metrics *m, const struct apply_peer *p)
{
	metric_whole(m, p->state == APPLY_FRESH);
}

static void
put_lag(struct metrics *m, const struct apply_peer *p)
{
	metric_seconds(m, (uint64_t)p->excess, 6);
}

/* A figure of a peer: kvroute_sync_peer_NAMESUFFIX, and the member NAME. */
struct peer_fact {
	const char *name, *suffix;
	/* Writes the metric of a fact that the JSON has in another form. */
	void (*put)(struct metrics *, const struct apply_peer *);
	size_t at;          /* offset of a number in struct apply_peer */
};

#define OF_PEER(name, suffix) \
	{ #name, suffix, NULL, offsetof(struct apply_peer, name) }
static const struct peer_fact peer_facts[] = {
	{ "fresh", NULL, put_fresh, 0 },
	{ "lag", "_seconds", put_lag, 0 },
	OF_PEER(leases, NULL),
	OF_PEER(unseen, NULL),
	OF_PEER(requests, NULL),
	OF_PEER(prefill_tokens, NULL),
	OF_PEER(frames, "_total"),
	OF_PEER(lost, NULL), /* a frame that comes after others was lost */
	OF_PEER(dropped, "_total")
};

enum { PEER_FACTS = sizeof(peer_facts) / sizeof(peer_facts[0]) };

static uint64_t
peer_number(const struct apply_peer *p, const struct peer_fact *f)
{
	uint64_t n;

	memcpy(&n, (const char *)p + f->at, sizeof(n));
	return n;
}

static void
put_peer(FILE *out, const struct site *s, const struct apply_peer *p,
    int64_t now)
{
	size_t i;

	fprintf(out, "{ \"origin\": \"%016" PRIx64 "\", \"host\": ", p->origin);
	put_text(out, p->host, p->host_len);
	fprintf(out, ", \"state\": \"%s\", \"lag_ms\": %" PRId64
	    ", \"silent_ms\": %" PRId64, apply_state_name(p->state),
	    p->excess / MS, (now - p->heard) / MS);
	for (i = 0; i < PEER_FACTS; i++)
		if (peer_facts[i].put == NULL)
			fprintf(out, ", \"%s\": %" PRIu64, peer_facts[i].name,
			    peer_number(p, &peer_facts[i]));
	fprintf(out, ", \"same_policy\": %s }",
	    p->policy == publish_policy(s->k) ? "true" : "false");
}

static void
put_counters(FILE *out, const struct site *s)
{
	struct counter all[COUNTERS];
	const size_t n = collect(s, all);
	const char *group = "";
	size_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(group, all[i].group) != 0)
			fprintf(out, "%s,\n  \"%s\": {", i == 0 ? "" : " }",
			    all[i].group);
		else
			fputc(',', out);
		group = all[i].group;
		fprintf(out, " \"%s\": %" PRIu64, all[i].name, all[i].value);
	}
	fputs(" }", out);
}

static void
put_site(FILE *out, const struct site *s)
{
	struct apply_peer peers[APPLY_PEERS_MAX];
	const size_t n = apply_peers(s->apply, peers, APPLY_PEERS_MAX);
	const int64_t now = kvr_clock_now();
	size_t i;

	fputs("{ \"name\": ", out);
	put_text(out, s->name, strlen(s->name));
	fputs(", \"region\": ", out);
	put_text(out, s->path, strlen(s->path));
	fprintf(out, ",\n  \"origin\": \"%016" PRIx64 "\", \"connected\": %s, "
	    "\"error\": ", s->origin, bus_connected(s->bus) ? "true" : "false");
	put_text(out, bus_error(s->bus), strlen(bus_error(s->bus)));
	fprintf(out, ",\n  \"ready\": %s, \"late_start\": \"%s\", "
	    "\"chain_blocks\": %zu", s->late.ready ? "true" : "false",
	    s->late.fetch != NULL ? fetch_state_name(fetch_state(
	    s->late.fetch)) : s->late.replaying ? "replaying" : "none",
	    s->late.chains == NULL ? 0 : chains_blocks(s->late.chains));
	fprintf(out, ",\n  \"workers\": %zu, \"own_leases\": %" PRIu64
	    ", \"peers_leases\": %" PRIu64 ", \"requests_per_worker\": %.3f",
	    s->roster.count, publish_counts(s->publish).leases,
	    apply_counts(s->apply).leases, publish_counts(s->publish).rate);
	put_counters(out, s);
	fputs(",\n  \"peers\": [", out);
	for (i = 0; i < n; i++) {
		fputs(i == 0 ? "\n    " : ",\n    ", out);
		put_peer(out, s, &peers[i], now);
	}
	fputs("] }", out);
}

void
status_json(FILE *out, const struct site *sites, size_t n)
{
	size_t i;

	fputs("[", out);
	for (i = 0; i < n; i++) {
		fputs(i == 0 ? "" : ",\n", out);
		put_site(out, &sites[i]);
	}
	fputs("]\n", out);
}

/* ----------------------------------------------------------- Prometheus --- */

static void
site_begin(struct metrics *m, const struct metric *name, const struct site *s)
{
	metric_begin(m, name);
	metric_label_text(m, "name", s->name);
	metric_label_text(m, "region", s->path);
}

enum gauge { CONNECTED, READY, PEERS, PEERS_LEASES, GAUGES };

static uint64_t
gauge_of(const struct site *s, enum gauge which)
{
	switch (which) {
	case CONNECTED:
		return bus_connected(s->bus);
	case READY:
		return s->late.ready;
	case PEERS:
		return apply_counts(s->apply).peers;
	default:
		return apply_counts(s->apply).leases;
	}
}

static void
put_gauges(struct metrics *m, const struct site *sites, size_t n)
{
	static const char *const names[GAUGES] = { "connected", "ready",
	    "peers", "peers_leases" };
	size_t i, j;

	for (i = 0; i < GAUGES; i++) {
		const struct metric name = { .name = names[i] };

		metric_head(m, &name, NULL);
		for (j = 0; j < n; j++) {
			site_begin(m, &name, &sites[j]);
			metric_whole(m, gauge_of(&sites[j], (enum gauge)i));
		}
	}
}

struct site_peers {
	size_t n;
	struct apply_peer peer[APPLY_PEERS_MAX];
};

static void
put_peer_fact(struct metrics *m, const struct metric *name,
    const struct peer_fact *f, const struct site *s,
    const struct apply_peer *p)
{
	char origin[WRITER_HEX];

	site_begin(m, name, s);
	metric_label(m, "host", p->host, p->host_len);
	hex_write(origin, p->origin);
	metric_label(m, "origin", origin, sizeof(origin));
	if (f->put != NULL)
		f->put(m, p);
	else
		metric_whole(m, peer_number(p, f));
}

/* Peers are summed once for all metrics; without memory they have none. */
static void
put_peers(struct metrics *m, const struct site *sites, size_t n)
{
	struct site_peers *of = malloc(n * sizeof(*of));
	size_t i, j, p;

	for (j = 0; of != NULL && j < n; j++)
		of[j].n = apply_peers(sites[j].apply, of[j].peer,
		    APPLY_PEERS_MAX);
	for (i = 0; of != NULL && i < PEER_FACTS; i++) {
		const struct peer_fact *f = &peer_facts[i];
		const struct metric name = { .group = "peer",
		    .name = f->name, .suffix = f->suffix };

		metric_head(m, &name, NULL);
		for (j = 0; j < n; j++)
			for (p = 0; p < of[j].n; p++)
				put_peer_fact(m, &name, f, &sites[j],
				    &of[j].peer[p]);
	}
	free(of);
}

static void
put_total(struct metrics *m, size_t i, const struct site *s, bool first)
{
	struct counter all[COUNTERS];
	struct metric name = { .suffix = "_total" };

	(void)collect(s, all);
	name.group = all[i].group;
	name.name = all[i].name;
	if (first)
		metric_head(m, &name, NULL);
	site_begin(m, &name, s);
	metric_whole(m, all[i].value);
}

/* All samples of a metric stand together. */
void
status_prometheus(FILE *out, const struct site *sites, size_t n)
{
	struct writer to = file_writer(out);
	struct metrics m = { .to = &to, .prefix = "sync" };
	size_t i, j;

	put_gauges(&m, sites, n);
	put_peers(&m, sites, n);
	for (i = 0; i < COUNTERS; i++)
		for (j = 0; j < n; j++)
			put_total(&m, i, &sites[j], j == 0);
}
