/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prometheus.h - a strict parser for the text of kvr_metrics: HELP and TYPE
 * before the samples of each metric, once; all samples of a metric together;
 * no two with the same labels; UTF-8 throughout. The result is then compared
 * with kvr_stats and kvr_worker_stats, field by field.
 */
#ifndef KVR_PROMETHEUS_H
#define KVR_PROMETHEUS_H

#include "inner.h"

#include <errno.h>
#include <iconv.h>
#include <math.h>
#include <stdio.h>

/* ---------------------------------------------------------- the parser --- */

struct span {
	const char *at;
	size_t length;
};

struct sample {
	struct span metric, worker, rank, way, value;
};

enum { METRICS_MAX = 128, SAMPLES_MAX = 256 << 10, BYTES_MAX = 16 << 20 };

/* The last text parsed, and the samples found in it. */
static char text[BYTES_MAX + 1];
static size_t length;
static struct sample sample[SAMPLES_MAX], sorted[SAMPLES_MAX];
static struct span metric[METRICS_MAX];
static size_t samples, metrics;
static const char *at; /* in the text, which has a NUL at its end */

/* On failure, reports the position. */
#define here(that) do { \
	if (!(that)) \
		ck_abort_msg("%s (KVR_SEED=%" PRIu64 ") before: %.80s", \
		    #that, seed, at); \
} while (0)

static inline bool
same(struct span a, struct span b)
{
	return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

static inline bool
is(struct span a, const char *word)
{
	return a.length == strlen(word) &&
	    (a.length == 0 || memcmp(a.at, word, a.length) == 0);
}

static inline void
expect(const char *word)
{
	here(strncmp(at, word, strlen(word)) == 0);
	at += strlen(word);
}

/* Reads at least one of these characters. */
static inline struct span
some_of(const char *characters)
{
	struct span s = { at, strspn(at, characters) };

	here(s.length > 0);
	at += s.length;
	return s;
}

static inline struct span
read_name(void)
{
	struct span s = some_of("abcdefghijklmnopqrstuvwxyz_");

	here(s.length > 8 && memcmp(s.at, "kvroute_", 8) == 0);
	return s;
}

/* Up to the closing quote; only the three defined escapes are accepted. */
static inline struct span
read_label(void)
{
	struct span s = { at, 0 };

	for (; *at != '"'; at++) {
		here(*at != '\n' && *at != '\0');
		if (*at == '\\')
			here(strchr("\\\"n", *++at) != NULL && *at != '\0');
	}
	s.length = (size_t)(at++ - s.at);
	return s;
}

#define DIGITS "0123456789"

static inline struct span
read_value(void)
{
	struct span s = { at, 0 };

	if (*at == '-')
		at++;
	if (strncmp(at, "+Inf", 4) == 0 || strncmp(at, "Inf", 3) == 0 ||
	    strncmp(at, "NaN", 3) == 0) {
		at += strcspn(at, "\n");
	} else {
		(void)some_of(DIGITS);
		if (*at == '.')
			at++, (void)some_of(DIGITS);
		if (*at == 'e')
			at++, (void)some_of(DIGITS);
	}
	s.length = (size_t)(at - s.at);
	return s;
}

static inline void
read_sample(void)
{
	struct sample *s = &sample[samples++];

	here(samples < SAMPLES_MAX && metrics > 0);
	memset(s, 0, sizeof(*s));
	s->metric = read_name();
	here(same(s->metric, metric[metrics - 1]));
	if (strncmp(s->metric.at, "kvroute_worker_", 15) == 0) {
		expect("{worker=\"");
		s->worker = read_label();
		expect(",rank=\"");
		s->rank = some_of(DIGITS);
		expect("\"");
		if (*at == ',') {
			expect(is(s->metric, "kvroute_worker_retain")
			    ? ",retain=\"" : is(s->metric,
			    "kvroute_worker_window_mode") ? ",mode=\""
			    : ",state=\"");
			s->way = read_label();
		}
		expect("}");
	}
	if (is(s->metric, "kvroute_entries_removed_total")) {
		expect("{reason=\"");
		s->way = read_label();
		expect("}");
	}
	expect(" ");
	s->value = read_value();
	expect("\n");
}

/* A metric begins, and must not have begun before. */
static inline void
read_head(void)
{
	struct span name, type;
	size_t i;

	expect("# HELP ");
	name = read_name();
	expect(" ");
	here(*at != '\n' && *at != ' ');
	at += strcspn(at, "\n");
	expect("\n# TYPE ");
	here(same(read_name(), name));
	expect(" ");
	type = some_of("abcdefghijklmnopqrstuvwxyz");
	expect("\n");
	here(is(type, "counter") || is(type, "gauge"));
	here(is(type, "counter") == (name.length > 6 &&
	    memcmp(name.at + name.length - 6, "_total", 6) == 0));
	for (i = 0; i < metrics; i++)
		here(!same(metric[i], name));
	here(metrics < METRICS_MAX);
	metric[metrics++] = name;
}

static inline int
by_labels(const void *one, const void *two)
{
	const struct sample *a = one, *b = two;
	size_t n, m;

	if (a->metric.at != b->metric.at && !same(a->metric, b->metric))
		return a->metric.at < b->metric.at ? -1 : 1;
	/* a quote inside a name does not end it */
	n = (size_t)(a->value.at - a->metric.at);
	m = (size_t)(b->value.at - b->metric.at);
	return n != m ? n < m ? -1 : 1 : memcmp(a->metric.at, b->metric.at, n);
}

static inline void
no_sample_twice(void)
{
	size_t i;

	memcpy(sorted, sample, samples * sizeof(sample[0]));
	qsort(sorted, samples, sizeof(sorted[0]), by_labels);
	for (i = 1; i < samples; i++) {
		at = sorted[i].metric.at;
		here(by_labels(&sorted[i - 1], &sorted[i]) != 0);
	}
}

/* iconv's opinion on whether it is UTF-8. */
static inline void
utf8_throughout(void)
{
	static char wide[1 << 16];
	iconv_t to = iconv_open("UTF-32LE", "UTF-8");
	char *from = text, *out;
	size_t left = length, room;

	ck_assert_ptr_ne(to, (iconv_t)-1);
	while (left > 0) {
		out = wide;
		room = sizeof(wide);
		errno = 0;
		(void)iconv(to, &from, &left, &out, &room);
		must(errno == 0 || errno == E2BIG);
	}
	ck_assert_int_eq(iconv_close(to), 0);
}

static inline void
read_text(void)
{
	samples = metrics = 0;
	ck_assert_uint_eq(strlen(text), length);
	utf8_throughout();
	for (at = text; *at != '\0';)
		if (*at == '#')
			read_head();
		else
			read_sample();
	for (at = text; *at != '\0'; at++)
		here((unsigned char)*at >= ' ' || *at == '\n');
}

/* Parses the whole text. */
static inline int
take(const struct kvr *from)
{
	int error = kvr_metrics(from, text, BYTES_MAX, &length);

	if (error == KVR_OK) {
		must(length <= BYTES_MAX);
		text[length] = '\0';
		read_text();
	}
	return error;
}

static inline void
taken(const struct kvr *from)
{
	ck_assert_int_eq(take(from), KVR_OK);
	no_sample_twice();
}

/* The bytes of the name that a label shows. */
static inline size_t
name_shown(struct span label, char name[KVR_NAME_MAX + 1])
{
	char value[4 * KVR_NAME_MAX + 1], hex[3] = "";
	size_t i, n = 0, m = 0;

	for (i = 0; i < label.length; i++) {
		bool escaped = label.at[i] == '\\';
		char c = label.at[i += escaped];

		must(n < sizeof(value) - 1);
		value[n++] = escaped && c == 'n' ? '\n' : c;
	}
	for (i = 0; i < n; i++) {
		must(m < KVR_NAME_MAX);
		name[m] = value[i];
		if (i + 3 < n && value[i] == '\\' && value[i + 1] == 'x') {
			memcpy(hex, &value[i + 2], 2);
			must(strspn(hex, "0123456789abcdef") == 2);
			name[m] = (char)strtoul(hex, NULL, 16);
			i += 3;
		}
		m++;
	}
	return m;
}

/* ------------------------------------------ values of the structs --- */

/* Returns the one sample of this worker, or of no worker. */
static inline struct span
value_of(const char *name, const char *worker, uint32_t rank,
    const char *way)
{
	char shown[KVR_NAME_MAX + 1];
	struct span value = { NULL, 0 };
	size_t i, n;

	for (i = 0; i < samples; i++) {
		const struct sample *s = &sample[i];

		if (!is(s->metric, name) || !is(s->way, way))
			continue;
		n = name_shown(s->worker, shown);
		if (n != strlen(worker) || memcmp(shown, worker, n) != 0 ||
		    (n > 0 && strtoul(s->rank.at, NULL, 10) != rank))
			continue;
		ck_assert_msg(value.at == NULL, "%s twice", name);
		value = s->value;
	}
	ck_assert_msg(value.at != NULL, "no %s of \"%s\"", name, worker);
	return value;
}

enum holds {
	WHOLE, SMALL, CLOCK, NUMBER, WAY, STATE, WINDOW, UNUSED, UNUSED_WORDS,
	UNUSED_TIME
};

struct field {
	const char *name; /* of the metric without its prefix */
	const char *reason; /* its label, or "" */
	size_t offset;
	enum holds holds;
};

#define AT(type, field) offsetof(struct type, field)
#define R(field) { #field, "", AT(kvr_stats, field), WHOLE }
#define RC(field) { #field "_total", "", AT(kvr_stats, field), WHOLE }
#define REMOVED(reason, field) \
	{ "entries_removed_total", reason, AT(kvr_stats, field), WHOLE }
#define W(field) { #field, "", AT(kvr_worker_stats, field), WHOLE }
#define WC(field) { #field "_total", "", AT(kvr_worker_stats, field), WHOLE }
#define CALIBRATION(s) \
	{ "reports_total", "", AT(s, calibration.reports), WHOLE }, \
	{ "unreported_total", "", AT(s, calibration.unreported), WHOLE }, \
	{ "reported_tokens_total", "", \
	    AT(s, calibration.reported_tokens), WHOLE }, \
	{ "report_predicted_tokens_total", "", \
	    AT(s, calibration.predicted_tokens), WHOLE }, \
	{ "over_tokens_total", "", AT(s, calibration.over_tokens), WHOLE }, \
	{ "under_tokens_total", "", AT(s, calibration.under_tokens), WHOLE }, \
	{ "usage_prompt_tokens_total", "", \
	    AT(s, calibration.usage_prompt_tokens), WHOLE }, \
	{ "usage_cached_tokens_total", "", \
	    AT(s, calibration.usage_cached_tokens), WHOLE }, \
	{ "", "", AT(s, calibration.reserved), UNUSED_WORDS }

static const struct field region_fields[] = {
	R(region_bytes), R(cells), R(cells_free), R(workers), R(nodes),
	R(entries), R(blocks), R(held_blocks), R(leases),
	{ "clock_seconds", "", AT(kvr_stats, clock), CLOCK },
	RC(observes), RC(lease_opens), RC(lease_commits), RC(lease_finishes),
	RC(lease_aborts), RC(lease_reaps), CALIBRATION(kvr_stats),
	REMOVED("expired", expired), REMOVED("capacity", evicted_capacity),
	REMOVED("region", evicted_region), REMOVED("orphaned", orphaned),
	RC(splits), RC(merges), RC(extensions), RC(truncated), RC(clock_back),
	RC(recoveries), RC(busy_writes), RC(read_retries), RC(read_locks),
	R(max_steps), R(max_cells), R(max_reclaimed),
	R(affinity_entries), R(affinity_bindings), RC(affinity_found),
	RC(affinity_moved), RC(affinity_evicted), R(journal_bytes),
	{ "journal_written_bytes_total", "", AT(kvr_stats, journal_written),
	    WHOLE },
	RC(journal_overruns),
	{ "journal_beat_seconds", "", AT(kvr_stats, journal_beat), CLOCK },
	RC(prompt_tokens), RC(predicted_tokens), RC(best_tokens)
};

static const struct field worker_fields[] = {
	W(entries), W(held_blocks), W(requests), W(prefill_tokens),
	W(active_blocks), W(output_blocks), WC(lease_opens),
	WC(prompt_tokens), WC(predicted_tokens),
	{ "overloaded", "", AT(kvr_worker_stats, overloaded), SMALL },
	{ "retain", "", AT(kvr_worker_stats, retain), WAY },
	CALIBRATION(kvr_worker_stats),
	{ "learnt_capacity_tokens", "",
	    AT(kvr_worker_stats, learnt_capacity), WHOLE },
	{ "learnt_block_tokens", "", AT(kvr_worker_stats, learnt_block),
	    SMALL },
	{ "", "", AT(kvr_worker_stats, reserved), UNUSED },
	{ "prefill_tokens_per_second", "",
	    AT(kvr_worker_stats, prefill_rate), NUMBER },
	{ "backlog_seconds", "", AT(kvr_worker_stats, backlog), NUMBER },
	WC(events_batches), WC(events_stored), WC(events_removed),
	WC(events_refused), WC(events_cleared), WC(events_restarts),
	WC(events_lost), W(events_next), W(events_held),
	{ "events_capacity_tokens", "",
	    AT(kvr_worker_stats, events_capacity), WHOLE },
	W(events_blocks), WC(events_orphans),
	{ "events_at_seconds", "", AT(kvr_worker_stats, events_at), CLOCK },
	{ "events_state", "", AT(kvr_worker_stats, events_state), STATE },
	{ "window_mode", "", AT(kvr_worker_stats, window_mode), WINDOW },
	WC(best_tokens), WC(events_evicted), WC(events_unseen),
	{ "", "", AT(kvr_worker_stats, events_until), UNUSED_TIME },
	{ "", "", AT(kvr_worker_stats, events_cause), UNUSED },
	{ "", "", AT(kvr_worker_stats, events_reserved), UNUSED }
};

enum {
	REGION_FIELDS = sizeof(region_fields) / sizeof(region_fields[0]),
	WORKER_FIELDS = sizeof(worker_fields) / sizeof(worker_fields[0]),
	/*
	 * A reserved field is not shown, nor is what the daemon of events
	 * shows of its lease. The four reasons are one metric. The
	 * four ways of retention, the three states of a stream and the four
	 * modes of windows are samples of one field each.
	 */
	REGION_SAMPLES = REGION_FIELDS - 1,
	REGION_METRICS = REGION_SAMPLES - 3,
	WORKER_METRICS = WORKER_FIELDS - 5,
	WORKER_SAMPLES = WORKER_METRICS + 8
};

static inline bool
in_word(const struct field *f)
{
	return f->holds == SMALL || f->holds == WAY || f->holds == UNUSED ||
	    f->holds == STATE || f->holds == WINDOW;
}

/* A struct that has grown lacks a metric here. */
static inline void
no_gap(const struct field *f, size_t fields, size_t bytes)
{
	size_t next = sizeof(size_t), i;

	for (i = 0; i < fields; i++) {
		ck_assert_uint_eq(f[i].offset, next);
		next += in_word(&f[i]) ? sizeof(uint32_t)
		    : f[i].holds == UNUSED_WORDS ? sizeof(uint64_t[4])
		    : sizeof(uint64_t);
	}
	ck_assert_uint_eq(next, bytes);
}

static inline void
ck_whole(struct span value, uint64_t want)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%" PRIu64, want);
	ck_assert_msg(is(value, digits), "%.*s instead of %s",
	    (int)value.length, value.at, digits);
}

static inline void
ck_near(struct span value, double want)
{
	double got = strtod(value.at, NULL);

	ck_assert_msg(fabs(got - want) <= 6.5e-7 + 5.01e-10 * fabs(want),
	    "%.*s instead of %.17g", (int)value.length, value.at, want);
}

static inline void
ck_way(const char *name, const char *worker, uint32_t rank, uint32_t way)
{
	ck_whole(value_of(name, worker, rank, "ttl"), way == KVR_RETAIN_TTL);
	ck_whole(value_of(name, worker, rank, "capacity"),
	    way == KVR_RETAIN_CAPACITY);
	ck_whole(value_of(name, worker, rank, "feedback"),
	    way == KVR_RETAIN_FEEDBACK);
	ck_whole(value_of(name, worker, rank, "events"),
	    way == KVR_RETAIN_EVENTS);
}

static inline void
ck_state(const char *name, const char *worker, uint32_t rank, uint32_t state)
{
	ck_whole(value_of(name, worker, rank, "off"),
	    state == KVR_EVENTS_OFF);
	ck_whole(value_of(name, worker, rank, "complete"),
	    state == KVR_EVENTS_COMPLETE);
	ck_whole(value_of(name, worker, rank, "degraded"),
	    state == KVR_EVENTS_DEGRADED);
}

static inline void
ck_window(const char *name, const char *worker, uint32_t rank, uint32_t mode)
{
	ck_whole(value_of(name, worker, rank, "full"),
	    mode == KVR_WINDOW_FULL);
	ck_whole(value_of(name, worker, rank, "boundary"),
	    mode == KVR_WINDOW_BOUNDARY);
	ck_whole(value_of(name, worker, rank, "dense"),
	    mode == KVR_WINDOW_DENSE);
	ck_whole(value_of(name, worker, rank, "dual"),
	    mode == KVR_WINDOW_DUAL);
}

static inline void
ck_field(const char *prefix, const struct field *f, const void *stats,
    const char *worker, uint32_t rank)
{
	const char *field = (const char *)stats + f->offset;
	uint64_t whole = 0;
	uint32_t small = 0;
	double number = 0;
	char name[80];

	snprintf(name, sizeof(name), "%s%s", prefix, f->name);
	if (in_word(f))
		memcpy(&small, field, sizeof(small));
	else
		memcpy(&whole, field, sizeof(whole));
	memcpy(&number, &whole, sizeof(number));
	if (f->holds == WHOLE)
		ck_whole(value_of(name, worker, rank, f->reason), whole);
	else if (f->holds == SMALL)
		ck_whole(value_of(name, worker, rank, f->reason), small);
	else if (f->holds == CLOCK)
		ck_near(value_of(name, worker, rank, ""),
		    (int64_t)whole < 0 ? 0 : (double)whole / 1e9);
	else if (f->holds == NUMBER)
		ck_near(value_of(name, worker, rank, ""), number);
	else if (f->holds == WAY)
		ck_way(name, worker, rank, small);
	else if (f->holds == STATE)
		ck_state(name, worker, rank, small);
	else if (f->holds == WINDOW)
		ck_window(name, worker, rank, small);
}

/* The parsed text equals the structs. */
static inline void
ck_all(const struct kvr *of, uint32_t workers)
{
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_worker_stats w = { .size = sizeof(w) };
	char name[KVR_NAME_MAX + 1];
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t worker = 0;
	size_t i, n, met = 0;

	ck_assert_uint_eq(metrics, REGION_METRICS + WORKER_METRICS);
	ck_assert_uint_eq(samples, REGION_SAMPLES +
	    workers * WORKER_SAMPLES);
	ck_assert_int_eq(kvr_stats_get(of, &s), KVR_OK);
	for (i = 0; i < REGION_FIELDS; i++)
		ck_field("kvroute_", &region_fields[i], &s, "", 0);
	while (kvr_worker_next(of, &worker) == KVR_OK && worker != 0) {
		ck_assert_int_eq(kvr_worker_stats_get(of, worker, &w), KVR_OK);
		ck_assert_int_eq(kvr_worker_get(of, worker, &facts), KVR_OK);
		ck_assert_int_eq(kvr_worker_name(of, worker, name,
		    KVR_NAME_MAX, &n), KVR_OK);
		name[n] = '\0';
		for (i = 0; i < WORKER_FIELDS; i++)
			ck_field("kvroute_worker_", &worker_fields[i], &w,
			    name, facts.rank);
		met++;
	}
	ck_assert_uint_eq(met, workers);
}

#endif
