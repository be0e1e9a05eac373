/* SPDX-License-Identifier: BSD-2-Clause */
/* tell.c - see tell.h. */
#include "tell.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "file_writer.h"
#include "metric_writer.h"

enum { COUNTERS_MAX = 40 };
/* Blocks and events in a row that make a stream useless that was of use. */
enum { UNUSED_AFTER_USED = 1000 };
#define LAG_MAX (UINT64_C(30) * 86400 * 1000)

struct counter {
	const char *name, *label; /* label: a reason; NULL: none */
	uint64_t value;
};

static size_t
put(struct counter *all, size_t n, const char *name, const char *label,
    uint64_t value)
{
	all[n] = (struct counter){ name, label, value };
	return n + 1;
}

/* Counters of one name stand together. */
static size_t
collect(const struct tell_row *r, struct counter all[COUNTERS_MAX])
{
	const struct target_counts *t = &r->target->counts;
	size_t i, n = 0;

	n = put(all, n, "batches", NULL, t->applied);
	n = put(all, n, "blocks", "stored", t->stored);
	n = put(all, n, "blocks", "removed", t->removed);
	n = put(all, n, "blocks", "moved", t->moved);
	n = put(all, n, "orphans", NULL, t->orphans);
	n = put(all, n, "other_scopes", NULL, t->unseen);
	n = put(all, n, "events", NULL, r->decoded.events);
	n = put(all, n, "cleared", NULL, t->cleared);
	n = put(all, n, "restarts", NULL, t->restarts);
	n = put(all, n, "duplicates", NULL, t->duplicates +
	    r->stream.duplicates);
	n = put(all, n, "gaps", NULL, r->stream.gaps);
	n = put(all, n, "replays", NULL, r->stream.replays);
	n = put(all, n, "replayed_past", NULL, t->past);
	n = put(all, n, "lost", NULL, t->lost);
	n = put(all, n, "rejoins", NULL, r->counts.rejoins);
	n = put(all, n, "reconnects", NULL, r->counts.reconnects);
	n = put(all, n, "absences", NULL, r->counts.absences);
	n = put(all, n, "strange", NULL, r->counts.strange);
	n = put(all, n, "other_ranks", NULL, r->counts.ranks);
	n = put(all, n, "malformed", NULL, r->counts.malformed);
	n = put(all, n, "unread", NULL, r->counts.unread);
	n = put(all, n, "pages_forgotten", NULL, r->target->pages.forgotten);
	n = put(all, n, "refused", "batches", r->stream.refused + t->errors);
	n = put(all, n, "refused", "events", t->refused);
	for (i = DROP_MALFORMED; i < DROP_NO_MEMORY; i++)
		n = put(all, n, "dropped",
		    drop_reason_name((enum drop_reason)i),
		    r->decoded.dropped[i] + (i == DROP_TIER ? t->ignored : 0));
	return n;
}

void
tell_add(struct stream_counts *sum, const struct stream_counts *more,
    struct decode_counts *decoded, const struct decode_counts *more_decoded)
{
	size_t i;

	sum->batches += more->batches;
	sum->duplicates += more->duplicates;
	sum->gaps += more->gaps;
	sum->lost += more->lost;
	sum->restarts += more->restarts;
	sum->replays += more->replays;
	sum->refused += more->refused;
	decoded->batches += more_decoded->batches;
	decoded->refused += more_decoded->refused;
	decoded->events += more_decoded->events;
	for (i = 0; i < DROP_REASONS; i++)
		decoded->dropped[i] += more_decoded->dropped[i];
}

uint64_t
tell_unread(const struct decode_counts *c)
{
	return c->dropped[DROP_MALFORMED] + c->dropped[DROP_SIZE];
}

/* ---------------------------------------------------------------- state --- */

/* A block that is not full is no evidence: it is never announced as such. */
static void
count_unused(const struct target *t, const struct decode_counts *decoded,
    uint64_t unused[TELL_REASONS])
{
	size_t i;

	memset(unused, 0, TELL_REASONS * sizeof(*unused));
	for (i = DROP_MALFORMED; i < DROP_NO_MEMORY && decoded != NULL; i++)
		unused[i] = i == DROP_PARTIAL ? 0 : decoded->dropped[i];
	unused[DROP_TIER] += t->counts.ignored;
	unused[TELL_ORPHANS] = t->counts.orphans;
	unused[TELL_REFUSED] = t->counts.refused;
}

static const char *
unused_name(size_t reason)
{
	return reason == TELL_ORPHANS ? "orphans" : reason == TELL_REFUSED ?
	    "refused" : drop_reason_name((enum drop_reason)reason);
}

/* Some was of use. */
static void
note_used(struct tell_use *u, uint64_t used,
    const uint64_t unused[TELL_REASONS])
{
	u->used = used;
	memcpy(u->unused, unused, sizeof(u->unused));
	u->enough = UNUSED_AFTER_USED;
	u->reason = NULL;
}

/* Nothing in a row, of all that began a prompt, has a scope of prompts. */
static void
look_at_scopes(struct tell_use *u, const struct target *t)
{
	if (t->counts.unseen_row < UNUSED_AFTER_USED)
		return;
	u->prompts = u->prompts || target_has_prompts(t);
	if (u->prompts)
		u->reason = "scope";
}

void
tell_use(struct tell_use *u, const struct target *t,
    const struct decode_counts *decoded)
{
	const struct target_counts *c = &t->counts;
	/* Blocks of another size are orphans that are not stored. */
	const uint64_t used = c->stored > c->orphans ?
	    c->stored - c->orphans : 0;
	uint64_t unused[TELL_REASONS], all = 0, most = 0, more;
	size_t i, which = 0;

	count_unused(t, decoded, unused);
	if (used > u->used) {
		note_used(u, used, unused);
		look_at_scopes(u, t);
		return;
	}
	for (i = 0; i < TELL_REASONS; i++) {
		more = unused[i] - u->unused[i];
		all += more;
		if (more <= most)
			continue;
		most = more;
		which = i;
	}
	if (all > 0 && all >= u->enough)
		u->reason = unused_name(which);
}

struct tell_state
tell_state(const struct target *t, const struct tell_use *u)
{
	static const char *const causes[] = {
		[KVR_DEGRADED_OTHER] = "region",
		[KVR_DEGRADED_SILENT] = "silent",
		[KVR_DEGRADED_SURPLUS] = "surplus",
		[KVR_DEGRADED_REPORTS] = "reports"
	};
	const size_t n = sizeof(causes) / sizeof(causes[0]);

	if (u->reason != NULL)
		return (struct tell_state){ "unusable", u->reason };
	switch (t->state) {
	case KVR_EVENTS_COMPLETE:
		return (struct tell_state){ "complete", NULL };
	case KVR_EVENTS_DEGRADED:
		return (struct tell_state){ "degraded", t->why != NULL ?
		    t->why : t->cause < n ? causes[t->cause] : causes[0] };
	default:
		return (struct tell_state){ "off", NULL };
	}
}

bool
tell_lag(uint64_t time, int64_t *lag)
{
	struct timespec t;
	uint64_t now;

	*lag = 0;
	clock_gettime(CLOCK_REALTIME, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	if (time == 0 || time > now + LAG_MAX || now > time + LAG_MAX)
		return false;
	*lag = (int64_t)(now - time);
	return true;
}

const char *
tell_reason(const char *reason)
{
	static const char *const reasons[][2] = {
		{ "orphans", "blocks stand behind unknown ones, or have no "
		    "contents that the region understands" },
		{ "refused", "the library takes none of its events" },
		{ "malformed", "events cannot be read" },
		{ "unread", "an event could not be read" },
		{ "unknown", "events are of kinds that are not known" },
		{ "group", "events are of groups or windows that do not "
		    "count" },
		{ "tier", "blocks are in tiers that are shared, or not known" },
		{ "block_size", "blocks do not have the worker's size" },
		{ "size", "events are too large" },
		{ "scope", "no prompt has had the model, adapter or salt of "
		    "its blocks, so none can match them" },
		{ "lost", "batches cannot be had" },
		{ "reconnect", "the engine may have restarted meanwhile: give "
		    "it a replay socket" },
		{ "rank", "another rank publishes at its endpoint" },
		{ "silent", "nobody followed it for too long" },
		{ "surplus", "it holds more than its cache can: removals are "
		    "missing" },
		{ "reports", "the engine found much less than it holds: "
		    "removals are missing" },
		{ "region", "the region lost track, or others reset the "
		    "worker" }
	};
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (strcmp(reasons[i][0], reason) == 0)
			return reasons[i][1];
	return reason;
}

/* Whatever it is, JSON and a terminal survive it. */
static void
put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text != '\0'; text++)
		fputc(*text < ' ' || *text > '~' || *text == '"' ||
		    *text == '\\' ? '?' : *text, out);
	fputc('"', out);
}

/* ----------------------------------------------------------------- JSON --- */

static void
put_counters(FILE *out, const struct tell_row *r)
{
	struct counter all[COUNTERS_MAX];
	const size_t n = collect(r, all);
	size_t i;

	for (i = 0; i < n; i++)
		fprintf(out, ",%s \"%s%s%s\": %" PRIu64, i % 6 == 0 ?
		    "\n     " : "", all[i].name, all[i].label != NULL ? "_" :
		    "", all[i].label != NULL ? all[i].label : "",
		    all[i].value);
}

static void
put_row(FILE *out, const struct tell_row *r, int64_t now)
{
	const struct tell_state state = tell_state(r->target, r->use);

	fputs("{ \"worker\": ", out);
	put_text(out, r->conf->worker);
	fprintf(out, ", \"rank\": %" PRIu32 ", \"engine\": \"%s\", "
	    "\"endpoint\": ", r->conf->rank, conf_engine_name(r->conf->engine));
	put_text(out, r->conf->events[0] != '\0' ? r->conf->events :
	    r->conf->server);
	fprintf(out, ",\n      \"phase\": \"%s\", \"state\": \"%s\"",
	    r->phase, state.name);
	if (state.reason != NULL)
		fprintf(out, ", \"reason\": \"%s\"", state.reason);
	fprintf(out, ", \"next\": %" PRIu64, r->target->next);
	if (r->heard >= 0)
		fprintf(out, ", \"silent_ms\": %" PRId64,
		    (now - r->heard) / 1000000);
	if (r->lag_known)
		fprintf(out, ", \"lag_ms\": %" PRId64, r->lag);
	if (r->target->sliding != 0)
		fprintf(out, ", \"sliding\": %" PRIu64, r->target->sliding);
	put_counters(out, r);
	fputs(" }", out);
}

static void
put_region(FILE *out, const struct tell_region *r, int64_t now)
{
	size_t i;

	fputs("{ \"region\": ", out);
	put_text(out, r->path);
	fprintf(out, ", \"attached\": %s, \"error\": ", r->why[0] == '\0' ?
	    "true" : "false");
	put_text(out, r->why);
	fprintf(out, ", \"attachments\": %" PRIu64 ",\n  \"workers\": [",
	    r->attached);
	for (i = 0; i < r->n; i++) {
		fputs(i == 0 ? "\n    " : ",\n    ", out);
		put_row(out, &r->rows[i], now);
	}
	fputs("] }", out);
}

void
tell_json(FILE *out, const struct tell_daemon *d)
{
	const int64_t now = kvr_clock_now();
	size_t i;

	fprintf(out, "{ \"reloads\": %" PRIu64 ", \"reloads_failed\": %" PRIu64
	    ",\n  \"regions\": [", d->reloads, d->reloads_failed);
	for (i = 0; i < d->n; i++) {
		fputs(i == 0 ? "\n  " : ",\n  ", out);
		put_region(out, &d->regions[i], now);
	}
	fputs("] }\n", out);
}

/* ----------------------------------------------------------- Prometheus --- */

static void
row_begin(struct metrics *m, const struct metric *name,
    const struct tell_row *r)
{
	metric_begin(m, name);
	metric_label_text(m, "region", r->region);
	metric_label_text(m, "worker", r->conf->worker);
	metric_label_whole(m, "rank", r->conf->rank);
}

/* The workers of all regions, in their order; NULL: no more. */
static const struct tell_row *
row_at(const struct tell_daemon *d, size_t at)
{
	size_t i;

	for (i = 0; i < d->n; at -= d->regions[i++].n)
		if (at < d->regions[i].n)
			return &d->regions[i].rows[at];
	return NULL;
}

/* All samples of a metric stand together. */
static void
put_counter(struct metrics *m, const struct tell_daemon *d, const char *text)
{
	const struct metric name = { NULL, text, "_total" };
	struct counter all[COUNTERS_MAX];
	const struct tell_row *r;
	size_t i, c, n;

	metric_head(m, &name, NULL);
	for (i = 0; (r = row_at(d, i)) != NULL; i++) {
		n = collect(r, all);
		for (c = 0; c < n; c++) {
			if (strcmp(all[c].name, text) != 0)
				continue;
			row_begin(m, &name, r);
			if (all[c].label != NULL)
				metric_label_text(m, "kind", all[c].label);
			metric_whole(m, all[c].value);
		}
	}
}

enum gauge { CONNECTED, COMPLETE, SILENT, LAG, GAUGES };

/* false: this worker has no such value yet. */
static bool
gauge_of(const struct tell_row *r, enum gauge which, int64_t now, double *value)
{
	switch (which) {
	case CONNECTED:
		*value = r->connected;
		return true;
	case COMPLETE:
		*value = strcmp(tell_state(r->target, r->use).name,
		    "complete") == 0;
		return true;
	case SILENT:
		*value = (double)(now - r->heard) / 1e9;
		return r->heard >= 0;
	default:
		*value = (double)r->lag / 1e3;
		return r->lag_known;
	}
}

static void
put_gauge(struct metrics *m, const struct tell_daemon *d, enum gauge which)
{
	static const char *const names[GAUGES] = { "connected", "complete",
	    "silent_seconds", "lag_seconds" };
	const struct metric name = { .name = names[which] };
	const int64_t now = kvr_clock_now();
	const struct tell_row *r;
	double value;
	size_t i;

	metric_head(m, &name, NULL);
	for (i = 0; (r = row_at(d, i)) != NULL; i++) {
		if (!gauge_of(r, which, now, &value))
			continue;
		row_begin(m, &name, r);
		metric_real(m, value);
	}
}

/* One for each worker: its state and the reason are labels. */
static void
put_states(struct metrics *m, const struct tell_daemon *d)
{
	const struct metric name = { .name = "state" };
	const struct tell_row *r;
	struct tell_state state;
	size_t i;

	metric_head(m, &name, NULL);
	for (i = 0; (r = row_at(d, i)) != NULL; i++) {
		state = tell_state(r->target, r->use);
		row_begin(m, &name, r);
		metric_label_text(m, "state", state.name);
		metric_label_text(m, "reason", state.reason == NULL ? "" :
		    state.reason);
		metric_whole(m, 1);
	}
}

static void
put_daemon(struct metrics *m, const struct tell_daemon *d)
{
	const struct metric attached = { .name = "attached" };
	const struct metric failed = { .name = "reloads_failed_total" };
	size_t i;

	metric_head(m, &attached, NULL);
	for (i = 0; i < d->n; i++) {
		metric_begin(m, &attached);
		metric_label_text(m, "region", d->regions[i].path);
		metric_whole(m, d->regions[i].why[0] == '\0');
	}
	metric_head(m, &failed, NULL);
	metric_begin(m, &failed);
	metric_whole(m, d->reloads_failed);
}

void
tell_prometheus(FILE *out, const struct tell_daemon *d)
{
	static const char *const names[] = { "batches", "blocks", "orphans",
	    "other_scopes",
	    "events", "cleared", "restarts", "duplicates", "gaps", "replays",
	    "replayed_past", "lost", "rejoins", "reconnects", "absences",
	    "strange", "other_ranks", "malformed", "unread",
	    "pages_forgotten", "refused", "dropped" };
	struct writer to = file_writer(out);
	struct metrics m = { .to = &to, .prefix = "events" };
	size_t i;

	put_daemon(&m, d);
	put_states(&m, d);
	for (i = 0; i < GAUGES; i++)
		put_gauge(&m, d, (enum gauge)i);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put_counter(&m, d, names[i]);
}
