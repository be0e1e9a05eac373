/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_health.c - engines that are gray, that break off, and that
 * warm up; health.h judges.
 *
 *   peer.get     gray ones and those that have enough while they warm up are
 *                held back: they are for requests that have no other; now and
 *                then a request is a probe of a gray one
 *   body filter  each 250 ms of a stream: time, and tokens seen
 *   peer.free    did it fail? broken off after its headers: nginx counts it
 *                like a failure before them, while another server is there
 *   end          time until the first token or the whole answer, less what had
 *                to be prefilled before
 *
 * A unit of work is the prefill of UNIT_TOKENS tokens, about 7 ms; a token of
 * the answer is TOKEN_UNITS of them, and more while the engine prefills beside
 * that, since each step of an engine does some of both:
 *
 *   sent |--- prefill of all that is booked there ---| first |- . - . - . -|
 *             FIRST_UNITS + booked / UNIT_TOKENS               tokens
 *
 * Of the prompt itself what the engine reports counts: tokens are estimated by
 * the index, and what it took for cached need not be. A cold cache is no gray
 * engine, nor is one with other prompts. A stream whose client is slow
 * tells nothing, as nginx then reads it no faster than it can be sent.
 */
#include "ngx_http_kvroute_health.h"

#include "answer.h"
#include "counters.h"
#include "endpoint.h"
#include "health.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_try.h"
#include "status.h"

enum {
	UNIT_TOKENS = 64,
	FIRST_UNITS = 4,
	TOKEN_UNITS = 2,
	STEP_TOKENS = 2048,      /* of a prompt, that a step computes at most */
	SOME_TOKENS = 8,         /* that a segment needs */
	CHEAP_BYTES = 16384      /* of the body of a probe */
};
#define SEGMENT_NS INT64_C(250000000)
#define LATE_NS INT64_C(1000000000) /* then a probe need not be cheap */

/* --------------------------------------------------------------- places --- */

bool
ngx_http_kvroute_health_on(const ngx_http_kvroute_srv_conf_t *up)
{
	return up->gray > 0 || up->slow_start > 0;
}

/*
 * Of the master, before the processes begin: what is known of servers that stay
 * is kept over a reload, and new ones warm up, unless all are new.
 */
void
ngx_http_kvroute_health_prepare(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_http_upstream_rr_peer_t *peer;
	struct health *h;
	uint64_t *keys;
	size_t n = 0, i;
	bool fresh, first = true;

	if (up->health == NULL || !ngx_http_kvroute_health_on(up))
		return;
	keys = ngx_alloc((peers->number + 1) * sizeof(*keys), log);
	if (keys == NULL)
		return;
	for (peer = peers->peer; peer != NULL && n < peers->number;
	    peer = peer->next)
		keys[n++] = ngx_http_kvroute_key(peer->name.data,
		    peer->name.len);
	for (i = 0; i < up->options.max_workers && first; i++)
		first = up->health[i].key == 0;
	health_keep(up->health, up->options.max_workers, keys, n);
	for (i = 0; i < n; i++) {
		h = health_place(up->health, up->options.max_workers, keys[i],
		    &fresh);
		if (h != NULL && fresh && !first)
			health_cool(h);
	}
	ngx_free(keys);
}

static void
fleet_add(ngx_http_kvroute_srv_conf_t *up, struct health *h)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_fleet; i++)
		if (up->fleet[i] == h)
			return;
	up->fleet[up->n_fleet++] = h;
}

/*
 * Backups are not judged: what they do is not what the others do. One that is
 * new while nginx runs warms up.
 */
void
ngx_http_kvroute_health_follow(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_first;
	bool fresh;

	up->n_fleet = 0;
	if (up->health == NULL || !ngx_http_kvroute_health_on(up))
		return;
	for (known = up->known; known < end; known++) {
		known->health = health_place(up->health,
		    up->options.max_workers, known->key, &fresh);
		if (known->health != NULL && fresh)
			health_cool(known->health);
		if (known->health != NULL)
			fleet_add(up, known->health);
	}
}

void
ngx_http_kvroute_health_follow_late(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_first;

	for (known = up->known; known < end; known++) {
		if (known->health == NULL) {
			ngx_http_kvroute_health_follow(up);
			return;
		}
	}
}

void
ngx_http_kvroute_health_leave(ngx_http_kvroute_srv_conf_t *up, uint64_t key)
{
	if (up->health != NULL)
		health_drop(up->health, up->options.max_workers, key);
}

/* --------------------------------------------------------------- choice --- */

static bool
is_gray(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known)
{
	return up->gray > 0 && known->health != NULL &&
	    health_verdict(known->health) != HEALTH_GOOD;
}

static double
warmth_of(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known, int64_t now)
{
	if (up->slow_start == 0 || known->health == NULL)
		return 1;
	return health_warmth(known->health, (int64_t)up->slow_start * 1000000,
	    now);
}

/* Connections for each unit of weight of those that are warm; 0: none is. */
static double
load_of_warm(const ngx_http_kvroute_srv_conf_t *up, int64_t now)
{
	double conns = 0, weight = 0;
	ngx_uint_t i;

	for (i = 0; i < up->n_first; i++) {
		if (!up->known[i].usable || is_gray(up, &up->known[i]) ||
		    warmth_of(up, &up->known[i], now) < 1)
			continue;
		conns += (double)up->known[i].conns;
		weight += (double)up->known[i].weight;
	}
	/* and the one that is about to be sent */
	return weight > 0 ? (conns + 1) / weight : 0;
}

/* While it warms up it takes a share of what the others have. */
static bool
has_enough(const ngx_http_kvroute_known_t *known, double warmth, double load)
{
	double most = warmth * load * (double)known->weight;

	return warmth < 1 && load > 0 &&
	    (double)known->conns + 1 > (most > 1 ? most : 1);
}

/* It is counted why sessions leave their servers. */
static void
session_look(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	uint64_t worker = 0;
	uint32_t rank;
	ngx_uint_t i;

	if (ctx->session == 0 ||
	    kvr_affinity_find(up->kvr, ctx->session, now, &worker) != KVR_OK)
		return;
	i = ngx_http_kvroute_peer_of(up, worker, &rank);
	if (i < up->n_peers)
		ctx->bound_held = up->known[i].held;
}

void
ngx_http_kvroute_health_look(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_http_kvroute_known_t *known;
	bool any = false;
	double load;

	ctx->due = ctx->bound_held = false;
	if (up->n_fleet == 0)
		return;
	load = load_of_warm(up, now);
	for (known = up->known; known < up->known + up->n_first; known++) {
		known->held = is_gray(up, known) || has_enough(known,
		    warmth_of(up, known, now), load);
		any |= known->held;
	}
	if (any && up->kvr != NULL)
		session_look(ctx, now);
}

/* A gray server that is to be tried by this request; n_peers: none. */
ngx_uint_t
ngx_http_kvroute_health_probe(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	bool cheap = ctx->request->headers_in.content_length_n <= CHEAP_BYTES;
	ngx_http_kvroute_known_t *known;
	ngx_uint_t i;

	/* Without a prompt it would show nothing. */
	if (ctx->endpoint == ENDPOINT_OTHER)
		return up->n_peers;
	for (i = 0; i < up->n_first && up->gray > 0 && ctx->tries == 1; i++) {
		known = &up->known[i];
		if (known->usable && !known->closed && is_gray(up, known) &&
		    health_is_due(known->health, cheap ? 0 : LATE_NS, now) &&
		    health_probe(known->health, now))
			return i;
	}
	return up->n_peers;
}

/* ------------------------------------------------------------- evidence --- */

/* Tokens that are booked there and not prefilled. */
static double
booked_on(ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	return ctx->worker != 0 && kvr_worker_stats_get(ctx->up->kvr,
	    ctx->worker, &s) == KVR_OK ? (double)s.prefill_tokens : 0;
}

/* The request was sent to peer i of up->known. */
void
ngx_http_kvroute_health_sent(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i,
    int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	ctx->health = i < up->n_peers ? up->known[i].health : NULL;
	if (ctx->health == NULL || !health_is_of(ctx->health,
	    up->known[i].key))
		return;
	ctx->health_key = up->known[i].key;
	ctx->stalled = false;
	ctx->health_name = ngx_http_kvroute_taken_name(ctx);
	ctx->due = true;
	ctx->failed = ctx->answered = ctx->cools = false;
	ctx->sent_at = ctx->seen_at = now;
	ctx->first_at = 0;
	ctx->events = 0;
	ctx->booked = ctx->beside = up->gray > 0 ? booked_on(ctx) : 0;
}

static void
change_note(ngx_http_kvroute_ctx_t *ctx, enum health_change change)
{
	static const char *const lines[] = {
		[HEALTH_BECAME_SLOW] = "is much slower than the others: it is "
		    "gray",
		[HEALTH_BECAME_FAILING] = "fails more often than the others: "
		    "it is gray",
		[HEALTH_HEALED] = "is as good as the others again" };

	ngx_uint_t level = change == HEALTH_HEALED ? NGX_LOG_NOTICE :
	    NGX_LOG_WARN;

	if (change == HEALTH_SAME)
		return;
	ngx_log_error(level, ctx->request->connection->log, 0, "kvroute: "
	    "worker \"%V\" %s",
	    &ctx->health_name, lines[change]);
	ngx_http_kvroute_count(ctx->up, change == HEALTH_HEALED ?
	    COUNT_HEALED : COUNT_GRAY, 1);
	if (change == HEALTH_HEALED) {
		health_cool(ctx->health);
		(void)health_answered(ctx->health, kvr_clock_now());
	}
}

/* More of a stream has come. */
void
ngx_http_kvroute_health_progress(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	uint64_t events;
	int64_t now;
	double beside, step;

	if (!ctx->due || up->gray == 0 || !answer_started(ctx->answer) ||
	    !health_is_of(ctx->health, ctx->health_key))
		return;
	now = kvr_clock_now();
	events = answer_events(ctx->answer);
	if (ctx->first_at == 0) {
		ctx->first_at = ctx->seen_at = now;
		ctx->events = events;
		ctx->beside = booked_on(ctx);
		return;
	}
	if (now - ctx->seen_at < SEGMENT_NS ||
	    (events - ctx->events < SOME_TOKENS && now - ctx->seen_at <
	    8 * SEGMENT_NS))
		return;
	beside = booked_on(ctx);
	step = ngx_min((ctx->beside + beside) / 2, STEP_TOKENS);
	/* A client that was slow since then: nginx has not read on. */
	if (!ctx->stalled)
		health_worked(ctx->health, ctx->sent_at, now - ctx->seen_at,
		    (double)(events - ctx->events) * (TOKEN_UNITS + step /
		    UNIT_TOKENS), now);
	ctx->stalled = false;
	ctx->seen_at = now;
	ctx->events = events;
	ctx->beside = beside;
	change_note(ctx, health_goes_on(up->fleet, up->n_fleet, ctx->health,
	    up->gray, now));
}

static double
excess_of(double a, double b)
{
	return a > b ? a - b : 0;
}

/*
 * Tokens of what was booked there, and of this prompt as the engine reports it;
 * without a report nothing of it was cached, for all that is known.
 */
static double
prefilled_units(const ngx_http_kvroute_ctx_t *ctx)
{
	double prompt = (double)ctx->decision.prompt_tokens;
	double others = excess_of(ctx->booked, excess_of(prompt,
	    (double)ctx->decision.overlap_tokens));

	if (ctx->report.kind == KVR_REPORT_VALUE)
		prompt = excess_of((double)ctx->report.prompt_tokens,
		    (double)ctx->report.cached_tokens);
	return others + prompt;
}

/* Until its first token; or, of one that is no stream, until its headers. */
static void
answer_note(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	double units = FIRST_UNITS + prefilled_units(ctx) / UNIT_TOKENS;
	int64_t ns = ctx->first_at - ctx->sent_at;

	if (ctx->stream ? ctx->first_at == 0 : u == NULL || u->state == NULL ||
	    u->state->header_time == (ngx_msec_t)-1)
		return;
	if (!ctx->stream) {
		ns = (int64_t)u->state->header_time * 1000000;
		units += TOKEN_UNITS * (double)ctx->report.completion_tokens;
	}
	health_worked(ctx->health, ctx->sent_at, ns, units, now);
}

/* The report is made, if there is one. Again is no error. */
void
ngx_http_kvroute_health_end(ngx_http_kvroute_ctx_t *ctx, bool taken)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	int64_t now = kvr_clock_now();

	if (!ctx->due)
		return;
	ctx->due = false;
	/* A reload may have given its place to another server. */
	if (!health_is_of(ctx->health, ctx->health_key))
		return;
	if (ctx->cools)
		health_cool(ctx->health);
	else if (taken && health_answered(ctx->health, now) &&
	    up->slow_start > 0)
		ngx_log_error(NGX_LOG_NOTICE, ctx->request->connection->log, 0,
		    "kvroute: worker \"%V\" warms up", &ctx->health_name);
	/* A client that leaves is no evidence, nor is what has no prompt. */
	if (up->gray == 0 || ctx->endpoint == ENDPOINT_OTHER ||
	    (!ctx->failed && (!ctx->answered ||
	    ctx->request->connection->error)))
		return;
	if (taken && !ctx->failed && ctx->worker != 0)
		answer_note(ctx, now);
	change_note(ctx, health_ended(up->fleet, up->n_fleet, ctx->health,
	    up->gray, ctx->sent_at, ctx->failed, now));
}

/* ------------------------------------------------------------- failures --- */

/* After its headers: a connection that breaks, or a server that stops. */
static bool
broke_off(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	ngx_connection_t *c = pc->connection;
	ngx_event_pipe_t *p = u->pipe;

	/* One that was upgraded may be idle. */
	if (!ctx->headers || u->upgrade || c == NULL ||
	    ctx->request->connection->error)
		return false;
	if (c->read->timedout)
		return true;
	if (u->buffering && p != NULL)
		return p->upstream_error || (p->upstream_eof &&
		    !p->upstream_done && p->length > 0);
	return c->read->error || (c->read->eof && u->length > 0);
}

/* As its status says; 429 and 503 of an engine: it is full. */
static bool
is_refusal(ngx_uint_t status)
{
	return status == 429 || status == 500 || (status >= 502 &&
	    status <= 504);
}

/*
 * What nginx is to count of the request that has ended. The last server that
 * is usable does not become unusable.
 */
ngx_uint_t
ngx_http_kvroute_health_free(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state)
{
	ngx_uint_t status = ctx->request->upstream->headers_in.status_n;
	bool broke = (state & NGX_PEER_FAILED) == 0 && broke_off(ctx, pc);

	ctx->failed = (state & NGX_PEER_FAILED) != 0 || broke ||
	    (!ctx->headers && is_refusal(status) &&
	    !ctx->request->connection->error);
	ctx->answered = status > 0;
	if (broke) {
		ngx_http_kvroute_count(ctx->up, COUNT_BROKEN, 1);
		if (ngx_http_kvroute_another_usable(ctx))
			state |= NGX_PEER_FAILED;
	}
	ctx->cools = (state & NGX_PEER_FAILED) != 0;
	return state;
}

/* ----------------------------------------------------------------- show --- */

static const char *
name_of(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known)
{
	if (up->gray > 0 && health_verdict(known->health) == HEALTH_SLOW)
		return "slow";
	if (up->gray > 0 && health_verdict(known->health) == HEALTH_FAILING)
		return "failing";
	return warmth_of(up, known, kvr_clock_now()) < 1 ? "warming" : "good";
}

/* Each address once. */
size_t
ngx_http_kvroute_health_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_health *out)
{
	const ngx_http_kvroute_known_t *known;
	ngx_uint_t i;
	size_t n = 0;

	for (i = 0; i < up->n_fleet; i++) {
		for (known = up->known; known->health != up->fleet[i]; known++)
			continue;
		out[n++] = (struct status_health){
		    .name = (const char *)known->name,
		    .name_length = known->name_len,
		    .what = name_of(up, known) };
	}
	return n;
}

void
ngx_http_kvroute_health_forget(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name)
{
	ngx_http_kvroute_known_t *known;

	for (known = up->known; known < up->known + up->n_first; known++)
		if (known->health != NULL && known->name_len == name->len &&
		    ngx_memcmp(known->name, name->data, name->len) == 0)
			health_forget(known->health);
}
