/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_poll.c - timers by which engines are asked for their
 * capacity (capacities.h, by the first nginx worker process) and their load
 * (loads.h, by the one that leads).
 */
#include "ngx_http_kvroute_poll.h"

#include "capacities.h"
#include "loads.h"
#include "ngx_http_kvroute_fetch.h"

static bool
is_ending(void)
{
	return ngx_exiting || ngx_quit || ngx_terminate;
}

static void
asks_look(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	struct errand *errand;
	size_t i = 0;

	if (is_ending())
		return;
	while ((errand = capacities_next(&up->fleet, &i,
	    ngx_http_kvroute_fetch_room(), kvr_clock_now())) != NULL)
		ngx_http_kvroute_fetch(up, errand);
	ngx_add_timer(event, CAPACITIES_TICK_MS);
}

static void
asks_close(ngx_http_kvroute_srv_conf_t *up)
{
	struct known *known, *end = up->fleet.known + up->fleet.n_known;

	for (known = up->fleet.known; known < end; known++)
		if (known->ask != NULL)
			ngx_http_kvroute_fetch_leave(capacities_errand(
			    known->ask));
}

static void
polls_close(ngx_http_kvroute_srv_conf_t *up)
{
	struct known *known, *end = up->fleet.known + up->fleet.n_known;

	for (known = up->fleet.known; known < end; known++)
		if (known->poll != NULL)
			ngx_http_kvroute_fetch_leave(loads_errand(known->poll));
}

static void
polls_look(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	struct errand *errand;
	enum loads_role role;
	size_t i = 0;

	if (is_ending()) {
		polls_close(up);
		loads_leave(&up->fleet);
		return;
	}
	role = loads_look(&up->fleet, kvr_clock_now());
	if (role == LOADS_REST)
		return;
	if (role == LOADS_FOLLOW)
		polls_close(up);
	while (role == LOADS_LEAD && (errand = loads_next(&up->fleet, &i,
	    ngx_http_kvroute_fetch_room(), kvr_clock_now())) != NULL)
		ngx_http_kvroute_fetch(up, errand);
	ngx_add_timer(event, loads_tick_ms(&up->fleet));
}

/* -------------------------------------------------------------- process --- */

/* Without memory the next change of the peers tries again. */
void
ngx_http_kvroute_polls_follow(ngx_http_kvroute_srv_conf_t *up)
{
	struct known *known, *end = up->fleet.known + up->fleet.n_known;
	int64_t now = kvr_clock_now();
	bool asks = false;

	for (known = up->fleet.known; known < end; known++) {
		if (up->polls.on && known->poll == NULL)
			known->poll = loads_new(&up->fleet, known, now);
		if (up->asks.on && known->ask == NULL &&
		    known->facts != NULL && known->facts->ask)
			known->ask = capacities_new(&up->fleet, known, now);
		asks |= known->ask != NULL;
	}
	if (asks && !up->asks.timer.timer_set)
		ngx_add_timer(&up->asks.timer, 1);
	/* With poll=off it may rest. */
	if (up->polls.on && !up->polls.timer.timer_set)
		ngx_add_timer(&up->polls.timer, 1);
}

static void
timer_make(ngx_http_kvroute_srv_conf_t *up, ngx_event_t *timer,
    ngx_event_handler_pt handler, ngx_log_t *log)
{
	timer->handler = handler;
	timer->data = up;
	timer->log = log;
	timer->cancelable = 1;
}

void
ngx_http_kvroute_polls_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle)
{
	if (ngx_process == NGX_PROCESS_HELPER)
		return;
	/* Failures to connect are expected, and logged by the errands. */
	up->asks.log = *cycle->log;
	up->asks.log.log_level = NGX_LOG_ALERT;
	timer_make(up, &up->asks.timer, asks_look, cycle->log);
	timer_make(up, &up->polls.timer, polls_look, cycle->log);
	up->asks.on = ngx_worker == 0;
	up->polls.on = up->fleet.polled != NULL;
	ngx_http_kvroute_polls_follow(up);
}

void
ngx_http_kvroute_polls_leave(ngx_http_kvroute_srv_conf_t *up)
{
	asks_close(up);
	polls_close(up);
	if (up->polls.on)
		loads_leave(&up->fleet);
}

void
ngx_http_kvroute_poll_free(struct known *known)
{
	if (known->ask != NULL)
		ngx_http_kvroute_fetch_free(capacities_errand(known->ask));
	capacities_free(known->ask);
	if (known->poll != NULL)
		ngx_http_kvroute_fetch_free(loads_errand(known->poll));
	loads_free(known->poll);
}
