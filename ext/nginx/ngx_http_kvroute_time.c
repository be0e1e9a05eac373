/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_time.c - histograms of times, in the zone.
 *
 *     request   |- body -|- choice -|---- engine ----|- first - ... - last -|
 *     FIRST     |------------------------------------|
 *     TOKEN                                          |---- / (tokens - 1) --|
 *     REQUEST   |-----------------------------------------------------------|
 *     QUEUE              |--|  of requests that waited for a server
 *     MODULE    |--------|----------|                 |--|      |--|      |-|
 *
 * A request begins as for nginx's $request_time. For a request with several
 * answers, the time for a token is not known.
 *
 * A TURN of the loop is all that nginx does between two waits for events. While
 * the module works nothing else of the process runs, so others may have to wait
 * as long as it spends in one turn, for however many requests. It is counted by
 * an event that is posted in the turn and runs at its end. The filters and
 * phases of other modules are not counted.
 */
#include "ngx_http_kvroute_time.h"

#include "histogram.h"
#include "ngx_http_kvroute_ctx.h"
#include "shared.h"

/* One for this process. */
static struct {
	ngx_event_t over;       /* at the end of this turn */
	ngx_connection_t none;  /* nginx's debug log wants one */
	kvroute_srv_conf_t *up; /* that spent last */
	uint64_t ns;
} turn;

/* ---------------------------------------------------------------- turns --- */

static void
turn_over(ngx_event_t *event)
{
	shared_time(turn.up->fleet.shared, HISTOGRAM_TURN, turn.ns);
	turn.ns = 0;
}

void
kvroute_timer_make(ngx_event_t *timer, ngx_event_handler_pt handler,
    void *data, ngx_log_t *log)
{
	timer->handler = handler;
	timer->data = data;
	timer->log = log;
	timer->cancelable = 1;
}

void
kvroute_time_begin(ngx_cycle_t *cycle)
{
	ngx_memzero(&turn, sizeof(turn));
	turn.none.fd = (ngx_socket_t)-1;
	kvroute_timer_make(&turn.over, turn_over, &turn.none, cycle->log);
}

/* After a reload the peers of a process that ends are old ones. */
bool
kvroute_is_ending(void)
{
	return ngx_exiting || ngx_quit || ngx_terminate;
}

uint64_t
kvroute_spent(kvroute_srv_conf_t *up, int64_t began)
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
kvroute_first_timed(kvroute_ctx_t *ctx)
{
	ctx->first_ms = elapsed_ms(ctx->request);
	shared_time(ctx->up->fleet.shared, HISTOGRAM_FIRST,
	    (uint64_t)ctx->first_ms * 1000000);
}

void
kvroute_request_timed(kvroute_ctx_t *ctx)
{
	/* A subrequest ends when its request does, whatever it took. */
	if (ctx->request == ctx->request->main)
		shared_time(ctx->up->fleet.shared, HISTOGRAM_REQUEST,
		    (uint64_t)elapsed_ms(ctx->request) * 1000000);
	shared_time(ctx->up->fleet.shared, HISTOGRAM_MODULE, ctx->ns);
}
