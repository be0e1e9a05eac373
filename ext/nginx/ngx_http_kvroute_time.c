/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_time.c - what took how long: histograms, in the zone.
 *
 *     request   |- body -|- choice -|---- engine ----|- first - ... - last -|
 *     FIRST     |------------------------------------|
 *     TOKEN                                          |---- / (tokens - 1) --|
 *     REQUEST   |-----------------------------------------------------------|
 *     QUEUE              |--|  of those that had to wait for a server
 *     MODULE    |--------|----------|                 |--|      |--|      |-|
 *
 * A request begins as for nginx's $request_time. Of one that has several
 * answers, the time for a token is not known.
 *
 * A TURN of the loop is all that nginx does between two waits for events. While
 * the module works nothing else of the process runs, so what it spends in one
 * turn, for however many requests, is what others may have to wait. It is
 * counted by an event that is posted in the turn and runs at its end. What the
 * filters and phases of other modules do meanwhile is none of ours.
 */
#include "ngx_http_kvroute_time.h"

#include "histogram.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_shared.h"

/* Of this process. */
static struct {
	ngx_event_t over;       /* at the end of this turn */
	ngx_connection_t none;  /* nginx's debug log wants one */
	ngx_http_kvroute_srv_conf_t *up; /* that spent last */
	uint64_t ns;
} turn;

static void
time_observe(ngx_http_kvroute_srv_conf_t *up, enum histogram_kind kind,
    uint64_t ns)
{
	ngx_http_kvroute_shared_t *shared = up->shared;

	(void)ngx_atomic_fetch_add(&shared->times[kind], (ngx_atomic_int_t)ns);
	(void)ngx_atomic_fetch_add(
	    &shared->buckets[kind][histogram_bucket(kind, ns)], 1);
}

/* ---------------------------------------------------------------- turns --- */

static void
turn_over(ngx_event_t *event)
{
	time_observe(turn.up, HISTOGRAM_TURN, turn.ns);
	turn.ns = 0;
}

void
ngx_http_kvroute_time_begin(ngx_cycle_t *cycle)
{
	ngx_memzero(&turn, sizeof(turn));
	turn.none.fd = (ngx_socket_t)-1;
	turn.over.handler = turn_over;
	turn.over.data = &turn.none;
	turn.over.log = cycle->log;
}

uint64_t
ngx_http_kvroute_spent(ngx_http_kvroute_srv_conf_t *up, int64_t began)
{
	int64_t ns = kvr_clock_now() - began;

	turn.up = up;
	turn.ns += (uint64_t)ns;
	ngx_post_event(&turn.over, &ngx_posted_events);
	return (uint64_t)ns;
}

/* ------------------------------------------------------------- requests --- */

/* Since the request began. nginx's clock may have been set back. */
static ngx_msec_t
elapsed_ms(ngx_http_request_t *r)
{
	ngx_time_t *now = ngx_timeofday();
	ngx_msec_int_t ms = (ngx_msec_int_t)((now->sec - r->start_sec) * 1000 +
	    ((ngx_msec_int_t)now->msec - (ngx_msec_int_t)r->start_msec));

	return ms > 0 ? (ngx_msec_t)ms : 0;
}

void
ngx_http_kvroute_first_timed(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->first != 0 || !ctx->stream)
		return;
	ctx->first = kvr_clock_now();
	ctx->first_ms = elapsed_ms(ctx->request);
	time_observe(ctx->up, HISTOGRAM_FIRST,
	    (uint64_t)ctx->first_ms * 1000000);
}

void
ngx_http_kvroute_tokens_timed(ngx_http_kvroute_ctx_t *ctx)
{
	uint64_t tokens = ctx->report.completion_tokens;

	if (ctx->first == 0 || tokens < 2 || ctx->facts.several)
		return;
	ctx->token_ns = (uint64_t)(kvr_clock_now() - ctx->first) /
	    (tokens - 1);
	time_observe(ctx->up, HISTOGRAM_TOKEN, ctx->token_ns);
}

void
ngx_http_kvroute_waited(ngx_http_kvroute_srv_conf_t *up, uint64_t ns)
{
	time_observe(up, HISTOGRAM_QUEUE, ns);
}

void
ngx_http_kvroute_request_timed(ngx_http_kvroute_ctx_t *ctx)
{
	/* A subrequest ends when its request does, whatever it took. */
	if (ctx->request == ctx->request->main)
		time_observe(ctx->up, HISTOGRAM_REQUEST,
		    (uint64_t)elapsed_ms(ctx->request) * 1000000);
	time_observe(ctx->up, HISTOGRAM_MODULE, ctx->ns);
}

void
ngx_http_kvroute_times_copy(struct histogram *to,
    const ngx_http_kvroute_shared_t *from)
{
	size_t kind, i;

	for (kind = 0; kind < HISTOGRAMS; kind++) {
		to[kind].sum = from->times[kind];
		for (i = 0; i < HISTOGRAM_BUCKETS; i++)
			to[kind].count[i] = from->buckets[kind][i];
	}
}
