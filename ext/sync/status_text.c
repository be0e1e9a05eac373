/* SPDX-License-Identifier: BSD-2-Clause */
/* status_text.c - see status_text.h. */
#include "status_text.h"

#include <inttypes.h>
#include <string.h>

#define MS INT64_C(1000000)
#define SECOND 1e9

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
put_peer(FILE *out, const struct site *s, const struct apply_peer *p,
    int64_t now)
{
	fprintf(out, "{ \"origin\": \"%016" PRIx64 "\", \"host\": ", p->origin);
	put_text(out, p->host, p->host_len);
	fprintf(out, ", \"state\": \"%s\", \"lag_ms\": %" PRId64
	    ", \"silent_ms\": %" PRId64 ", \"leases\": %" PRIu64
	    ", \"unseen\": %" PRIu64 ", \"lost\": %" PRIu64
	    ", \"same_policy\": %s }",
	    apply_state_name(p->state), p->excess / MS, (now - p->heard) / MS,
	    p->leases, p->unseen, p->lost,
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

static void
gauge(FILE *out, const char *name, const struct site *s, uint64_t value)
{
	fprintf(out, "kvroute_sync_%s{name=\"%s\",region=", name, s->name);
	put_text(out, s->path, strlen(s->path));
	fprintf(out, "} %" PRIu64 "\n", value);
}

static void
put_fresh(FILE *out, const struct apply_peer *p)
{
	fputs(p->state == APPLY_FRESH ? "1" : "0", out);
}

static void
put_lag(FILE *out, const struct apply_peer *p)
{
	fprintf(out, "%.6f", (double)p->excess / SECOND);
}

static void
put_lost(FILE *out, const struct apply_peer *p)
{
	fprintf(out, "%" PRIu64, p->lost);
}

static void
put_peers(FILE *out, const char *name, const struct site *s,
    void put(FILE *, const struct apply_peer *))
{
	struct apply_peer peers[APPLY_PEERS_MAX];
	const size_t n = apply_peers(s->apply, peers, APPLY_PEERS_MAX);
	size_t i;

	for (i = 0; i < n; i++) {
		fprintf(out, "kvroute_sync_%s{name=\"%s\",region=", name,
		    s->name);
		put_text(out, s->path, strlen(s->path));
		fputs(",host=", out);
		put_text(out, peers[i].host, peers[i].host_len);
		fprintf(out, ",origin=\"%016" PRIx64 "\"} ",
		    peers[i].origin);
		put(out, &peers[i]);
		fputc('\n', out);
	}
}

/* A frame that came after others was lost until then. */
static void
each_peer(FILE *out, const struct site *sites, size_t n)
{
	static const struct {
		const char *name;
		void (*put)(FILE *, const struct apply_peer *);
	} all[] = {
		{ "peer_fresh", put_fresh },
		{ "peer_lag_seconds", put_lag },
		{ "peer_lost", put_lost }
	};
	size_t i, j;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		fprintf(out, "# TYPE kvroute_sync_%s gauge\n", all[i].name);
		for (j = 0; j < n; j++)
			put_peers(out, all[i].name, &sites[j], all[i].put);
	}
}

/* All samples of a metric stand together. */
void
status_prometheus(FILE *out, const struct site *sites, size_t n)
{
	struct counter all[COUNTERS];
	char name[64];
	size_t i, j;

	fputs("# TYPE kvroute_sync_connected gauge\n", out);
	for (j = 0; j < n; j++)
		gauge(out, "connected", &sites[j],
		    bus_connected(sites[j].bus));
	fputs("# TYPE kvroute_sync_ready gauge\n", out);
	for (j = 0; j < n; j++)
		gauge(out, "ready", &sites[j], sites[j].late.ready);
	fputs("# TYPE kvroute_sync_peers gauge\n", out);
	for (j = 0; j < n; j++)
		gauge(out, "peers", &sites[j],
		    apply_counts(sites[j].apply).peers);
	fputs("# TYPE kvroute_sync_peers_leases gauge\n", out);
	for (j = 0; j < n; j++)
		gauge(out, "peers_leases", &sites[j],
		    apply_counts(sites[j].apply).leases);
	each_peer(out, sites, n);
	for (i = 0; i < COUNTERS && n > 0; i++)
		for (j = 0; j < n; j++) {
			(void)collect(&sites[j], all);
			snprintf(name, sizeof(name), "%s_%s_total",
			    all[i].group, all[i].name);
			if (j == 0)
				fprintf(out, "# TYPE kvroute_sync_%s "
				    "counter\n", name);
			gauge(out, name, &sites[j], all[i].value);
		}
}
