/* SPDX-License-Identifier: BSD-2-Clause */
/* evidence.c - see evidence.h. */
#include "evidence.h"

#include "blame.h"
#include "health.h"
#include "shared.h"

enum {
	UNIT_TOKENS = 64,
	FIRST_UNITS = 4,
	TOKEN_UNITS = 2,
	STEP_TOKENS = 2048,      /* of a prompt, that a step computes at most */
	SOME_TOKENS = 8          /* that a segment needs */
};
#define SEGMENT_NS INT64_C(250000000)

/* Tokens that are booked there and not prefilled. */
static double
booked_on(struct fleet *f, uint64_t worker)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	return worker != 0 && kvr_worker_stats_get(f->kvr, worker, &s) ==
	    KVR_OK ? (double)s.prefill_tokens : 0;
}

void
evidence_sent(struct fleet *f, struct evidence *e, size_t i, uint64_t worker,
    int64_t now)
{
	e->health = i < f->n_known ? f->known[i].health : NULL;
	if (e->health == NULL || !health_is_of(e->health, f->known[i].key))
		return;
	e->key = f->known[i].key;
	e->stalled = false;
	e->due = true;
	e->failed = e->answered = e->cools = false;
	e->sent_at = e->seen_at = now;
	e->first_at = 0;
	e->events = 0;
	e->booked = e->beside = f->gray > 0 ? booked_on(f, worker) : 0;
}

static void
change_note(struct fleet *f, struct health *h, const char *name, size_t len,
    enum health_change change, int64_t now, void *log)
{
	static const char *const lines[] = {
		[HEALTH_BECAME_SLOW] = "is much slower than the others: it is "
		    "gray",
		[HEALTH_BECAME_FAILING] = "fails more often than the others: "
		    "it is gray",
		[HEALTH_HEALED] = "is as good as the others again" };

	if (change == HEALTH_SAME)
		return;
	fleet_log(f, log, FLEET_OF_REQUEST | (change == HEALTH_HEALED ?
	    FLEET_NOTICE : FLEET_WARN), "worker \"%.*s\" %s", (int)len, name,
	    lines[change]);
	shared_count(f->shared, change == HEALTH_HEALED ? COUNT_HEALED :
	    COUNT_GRAY, 1);
	if (change == HEALTH_HEALED) {
		health_cool(h);
		(void)health_answered(h, now);
	}
}

/* ------------------------------------------------------------- failures --- */

/* A failure of that time counts, now that it is known. */
static void
failure_count(struct fleet *f, uint64_t key, int64_t at, int64_t now,
    void *log)
{
	struct known *known, *end = f->known + f->n_first;

	for (known = f->known; known < end; known++) {
		if (known->key != key || known->health == NULL ||
		    !health_is_of(known->health, key))
			continue;
		change_note(f, known->health, known->name, known->name_len,
		    health_ended(f->judged, f->n_judged, known->health,
		    f->gray, at, true, now), now, log);
		return;
	}
}

/* The prompt is good: the servers that failed with it before are to blame. */
void
evidence_accepted(struct fleet *f, struct evidence *e, int64_t now, void *log)
{
	size_t i;

	if (!e->due || f->gray <= 0 || !e->prompts)
		return;
	for (i = 0; i < e->n_tries; i++)
		failure_count(f, e->tries[i].key, e->tries[i].at, now, log);
	e->n_tries = 0;
}

/* If it is not known yet, a later try of this request may show it. */
static void
failure_keep(struct fleet *f, struct evidence *e, int64_t now, void *log)
{
	if (blame_failed(f->blame, f->judged, f->n_judged, e->health,
	    e->failed_prompt, e->failed_client, now)) {
		failure_count(f, e->key, e->sent_at, now, log);
	} else if (e->n_tries < EVIDENCE_FAILED) {
		e->tries[e->n_tries].key = e->key;
		e->tries[e->n_tries++].at = e->sent_at;
	}
}

uint64_t
evidence_digest(const struct kvr_prompt *p)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t local, of[2];

	if (p == NULL || kvr_prompt_info_get(p, &info) != KVR_OK ||
	    info.blocks == 0 || kvr_prompt_hash(p, info.blocks - 1, &local,
	    &of[0]) != KVR_OK)
		return 0;
	of[1] = info.units;
	return shared_key(of, sizeof(of));
}

bool
evidence_is_refusal(unsigned status)
{
	return status == 429 || status == 500 || (status >= 502 &&
	    status <= 504);
}

/* ----------------------------------------------------------------- work --- */

/* Is there enough for a segment? */
static bool
is_segment(const struct evidence *e, uint64_t events, int64_t now)
{
	const int64_t ns = now - e->seen_at;

	return ns >= SEGMENT_NS && (events - e->events >= SOME_TOKENS ||
	    ns >= 8 * SEGMENT_NS);
}

bool
evidence_is_due(const struct evidence *e, uint64_t events, int64_t now)
{
	return e->due && (e->first_at == 0 || is_segment(e, events, now));
}

void
evidence_progress(struct fleet *f, struct evidence *e, uint64_t events,
    uint64_t worker, int64_t now, void *log)
{
	double beside, step;

	if (!evidence_is_due(e, events, now) || f->gray <= 0 ||
	    !health_is_of(e->health, e->key))
		return;
	if (e->first_at == 0) {
		e->first_at = e->seen_at = now;
		e->events = events;
		e->beside = booked_on(f, worker);
		return;
	}
	beside = booked_on(f, worker);
	step = (e->beside + beside) / 2;
	if (step > STEP_TOKENS)
		step = STEP_TOKENS;
	/* A client that was slow since then: the proxy has not read on. */
	if (!e->stalled)
		health_worked(e->health, e->sent_at, now - e->seen_at,
		    (double)(events - e->events) * (TOKEN_UNITS + step /
		    UNIT_TOKENS), now);
	e->stalled = false;
	e->seen_at = now;
	e->events = events;
	e->beside = beside;
	change_note(f, e->health, e->name, e->name_len, health_goes_on(
	    f->judged, f->n_judged, e->health, f->gray, now), now, log);
}

static double
excess_of(double a, double b)
{
	return a > b ? a - b : 0;
}

/*
 * Tokens that were booked there, and those of this prompt as the engine reports
 * it; without a report nothing of it was cached, for all that is known.
 */
static double
prefilled_tokens(const struct evidence *e, const struct evidence_end *how)
{
	double prompt = (double)how->prompt_tokens;
	double others = excess_of(e->booked, excess_of(prompt,
	    (double)how->overlap_tokens));

	if (how->report->kind == KVR_REPORT_VALUE)
		prompt = excess_of((double)how->report->prompt_tokens,
		    (double)how->report->cached_tokens);
	return others + prompt;
}

/* Until its first token; or, of one that is no stream, until its headers. */
static void
answer_note(struct evidence *e, const struct evidence_end *how, int64_t now)
{
	double units = FIRST_UNITS + prefilled_tokens(e, how) / UNIT_TOKENS;
	int64_t ns = e->first_at - e->sent_at;

	if (how->stream ? e->first_at == 0 : how->head_ns < 0)
		return;
	/* The length of an answer without usage is not known. */
	if (!how->stream && how->report->completion_tokens == 0)
		return;
	if (!how->stream) {
		ns = how->head_ns;
		units += TOKEN_UNITS * (double)how->report->completion_tokens;
	}
	health_worked(e->health, e->sent_at, ns, units, now);
}

void
evidence_end(struct fleet *f, struct evidence *e,
    const struct evidence_end *how, int64_t now, void *log)
{
	if (!e->due)
		return;
	e->due = false;
	/* A new configuration may have given its place to another server. */
	if (!health_is_of(e->health, e->key))
		return;
	if (e->cools)
		health_cool(e->health);
	else if (how->taken && health_answered(e->health, now) &&
	    f->slow_start_ms > 0)
		fleet_log(f, log, FLEET_OF_REQUEST | FLEET_NOTICE,
		    "worker \"%.*s\" warms up", (int)e->name_len, e->name);
	/* A client that leaves proves nothing, nor does a lack of a prompt. */
	if (f->gray <= 0 || !e->prompts || (!e->failed && (!e->answered ||
	    how->left)))
		return;
	if (e->failed) {
		failure_keep(f, e, now, log);
		return;
	}
	if (how->taken && how->worker != 0)
		answer_note(e, how, now);
	change_note(f, e->health, e->name, e->name_len, health_ended(f->judged,
	    f->n_judged, e->health, f->gray, e->sent_at, false, now), now, log);
}
