/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_poll.c - timers by which engines are asked for their
 * capacity (capacities.h, by the first nginx worker process) and their load
 * (loads.h, by the one that leads).
 *
 *   errand --> connect --> send --> receive --> response.h --> errand_data
 *     ^           |                    |                           |
 *     |           +--- errand_failed <-+                           |
 *     +------------------------- ERRAND_AGAIN: another path -------+
 */
#include "ngx_http_kvroute_poll.h"

#include "capacities.h"
#include "errand.h"
#include "loads.h"
#include "ngx_http_kvroute_time.h"
#include "response.h"

/* ---------------------------------------------------------- connections --- */

enum {
	PIECE = 16384,           /* parsed in a fraction of a millisecond */
	REQUEST = 512,
	CONNECTIONS_MIN = 16     /* that stay free for requests */
};

/* The client of an errand. */
typedef struct {
	kvroute_srv_conf_t *up;
	struct errand *errand;
	struct response response;
	ngx_str_t name;          /* of the errand's server */
	ngx_connection_t *connection; /* or NULL */
	ngx_event_t deadline;
	u_char request[REQUEST];
	size_t to_send, sent;
} fetch_t;

static void fetch_connect(fetch_t *fetch);
static void fetch_leave(struct errand *errand);

static ngx_log_t *
lines_of(const fetch_t *fetch)
{
	return fetch->up->asks.timer.log;
}

static void
fetch_close(fetch_t *fetch)
{
	if (fetch->connection != NULL)
		ngx_close_connection(fetch->connection);
	fetch->connection = NULL;
	if (fetch->deadline.timer_set)
		ngx_del_timer(&fetch->deadline);
}

static void
fetch_fail(fetch_t *fetch, const char *why)
{
	fetch_close(fetch);
	errand_failed(fetch->errand, why, kvr_clock_now(), lines_of(fetch));
}

static void
on_deadline(ngx_event_t *event)
{
	fetch_fail(event->data, "it does not answer");
}

/* ------------------------------------------------------------ responses --- */

/* A piece of the response, or its end if n is 0. */
static enum errand_state
piece_read(fetch_t *fetch, const u_char *bytes, size_t n)
{
	struct response *response = &fetch->response;
	const char *at = (const char *)bytes, *end = at + n;
	enum errand_state state = ERRAND_MORE;
	int64_t now = kvr_clock_now();
	struct response_part part;
	enum response_what what;

	do {
		what = response_next(response, &at, end, &part);
		if (what == RESPONSE_BODY)
			state = errand_data(fetch->errand, response->status,
			    part.bytes, part.n, now, lines_of(fetch));
	} while (what == RESPONSE_BODY && state == ERRAND_MORE);
	if (state != ERRAND_MORE || (what == RESPONSE_MORE && n > 0))
		return state;
	return errand_end(fetch->errand, what == RESPONSE_BAD ||
	    response->place == RESPONSE_BROKEN ? 0 : response->status,
	    what == RESPONSE_END || (what == RESPONSE_MORE &&
	    response_close(response)), now, lines_of(fetch));
}

/* One piece; other events have their turn before the next one. */
static void
on_read(ngx_event_t *event)
{
	static u_char piece[PIECE];
	ngx_connection_t *c = event->data;
	fetch_t *fetch = c->data;
	ssize_t n = c->recv(c, piece, sizeof(piece));
	enum errand_state state;

	if (n == NGX_ERROR || (n == NGX_AGAIN &&
	    ngx_handle_read_event(event, 0) != NGX_OK)) {
		fetch_fail(fetch, "the connection is broken");
		return;
	}
	if (n == NGX_AGAIN)
		return;
	/* Another process leads by now. */
	if (ngx_exiting) {
		fetch_leave(fetch->errand);
		return;
	}
	state = piece_read(fetch, piece, (size_t)n);
	if (state == ERRAND_MORE) {
		ngx_post_event(event, &ngx_posted_next_events);
		return;
	}
	fetch_close(fetch);
	if (state == ERRAND_AGAIN)
		fetch_connect(fetch);
}

/* ------------------------------------------------------------- requests --- */

/* Nothing more is sent. */
static void
on_nothing(ngx_event_t *event)
{
	(void)event;
}

static bool
is_connected(ngx_connection_t *c)
{
	int error = 0;
	socklen_t n = sizeof(error);

	return getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 &&
	    error == 0;
}

static void
on_write(ngx_event_t *event)
{
	ngx_connection_t *c = event->data;
	fetch_t *fetch = c->data;
	ssize_t n;

	if (fetch->sent == 0 && !is_connected(c)) {
		fetch_fail(fetch, "it cannot be connected to");
		return;
	}
	n = c->send(c, fetch->request + fetch->sent,
	    fetch->to_send - fetch->sent);
	if (n == NGX_ERROR) {
		fetch_fail(fetch, "the connection is broken");
		return;
	}
	if (n > 0)
		fetch->sent += (size_t)n;
	if (fetch->sent == fetch->to_send)
		event->handler = on_nothing;
	if (ngx_handle_write_event(event, 0) != NGX_OK ||
	    ngx_handle_read_event(c->read, 0) != NGX_OK)
		fetch_fail(fetch, "the connection is broken");
}

/* Takes the server's address of now; false: it is not among them. */
static bool
peer_set(const fetch_t *fetch, ngx_peer_connection_t *pc)
{
	struct fleet *f = &fetch->up->fleet;
	size_t i = known_find(f, fetch->errand->name, fetch->errand->name_len,
	    f->n_known);

	if (i == f->n_known)
		return false;
	pc->sockaddr = &fetch->up->addresses[i].address.sockaddr;
	pc->socklen = fetch->up->addresses[i].length;
	return true;
}

/* As nginx names peers; a local socket has no such name. */
static size_t
request_make(fetch_t *fetch, const struct sockaddr *to)
{
	static const char local[] = "localhost";
	bool is_local = to->sa_family == AF_UNIX;

	return response_request(fetch->errand->path, is_local ? local :
	    fetch->errand->name, is_local ? sizeof(local) - 1 :
	    fetch->errand->name_len, (char *)fetch->request,
	    sizeof(fetch->request));
}

static void
fetch_connect(fetch_t *fetch)
{
	ngx_peer_connection_t pc;
	ngx_int_t rc = NGX_ERROR;
	ngx_connection_t *c;

	fetch->sent = fetch->to_send = 0;
	ngx_memzero(&fetch->response, sizeof(fetch->response));
	ngx_memzero(&pc, sizeof(pc));
	pc.name = &fetch->name;
	pc.get = ngx_event_get_peer;
	pc.log = &fetch->up->asks.log;
	pc.log_error = NGX_ERROR_INFO;
	if (peer_set(fetch, &pc))
		fetch->to_send = request_make(fetch, pc.sockaddr);
	if (fetch->to_send > 0)
		rc = ngx_event_connect_peer(&pc);
	if (rc != NGX_OK && rc != NGX_AGAIN) {
		fetch_fail(fetch, "it cannot be connected to");
		return;
	}
	c = fetch->connection = pc.connection;
	c->data = fetch;
	c->log = c->read->log = c->write->log = pc.log;
	c->read->handler = on_read;
	c->write->handler = on_write;
	ngx_add_timer(&fetch->deadline, fetch->errand->deadline_ms);
	if (rc == NGX_OK)
		on_write(c->write);
}

/* -------------------------------------------------------------- errands --- */

/* Does nginx have enough connections for one more? */
static bool
fetch_room(void)
{
	return ngx_cycle->free_connection_n >= CONNECTIONS_MIN;
}

/* NULL: no memory. */
static fetch_t *
fetch_make(kvroute_srv_conf_t *up, struct errand *errand)
{
	fetch_t *fetch = ngx_calloc(sizeof(*fetch), up->asks.timer.log);

	if (fetch == NULL)
		return NULL;
	fetch->up = up;
	fetch->errand = errand;
	fetch->name.data = (u_char *)errand->name;
	fetch->name.len = errand->name_len;
	kvroute_timer_make(&fetch->deadline, on_deadline, fetch,
	    &up->asks.log);
	return fetch;
}

/* Without memory it is due again. */
static void
fetch_begin(kvroute_srv_conf_t *up, struct errand *errand)
{
	if (errand->client == NULL)
		errand->client = fetch_make(up, errand);
	if (errand->client != NULL)
		fetch_connect(errand->client);
	else
		errand_leave(errand);
}

/* Closes all that is open of it; again is no error. */
static void
fetch_leave(struct errand *errand)
{
	if (errand->client != NULL)
		fetch_close(errand->client);
	errand_leave(errand);
}

static void
fetch_free(struct errand *errand)
{
	fetch_leave(errand);
	ngx_free(errand->client);
}

static void
asks_look(ngx_event_t *event)
{
	kvroute_srv_conf_t *up = event->data;
	struct errand *errand;
	size_t i = 0;

	if (kvroute_is_ending())
		return;
	while ((errand = capacities_next(&up->fleet, &i,
	    fetch_room(), kvr_clock_now())) != NULL)
		fetch_begin(up, errand);
	ngx_add_timer(event, CAPACITIES_TICK_MS);
}

/* For its capacity, or for its load; or NULL. */
static struct errand *
errand_of(const struct known *known, bool load)
{
	if (load)
		return known->poll == NULL ? NULL : loads_errand(known->poll);
	return known->ask == NULL ? NULL : capacities_errand(known->ask);
}

static void
fetches_leave(kvroute_srv_conf_t *up, bool load)
{
	struct errand *errand;
	size_t i;

	for (i = 0; i < up->fleet.n_known; i++)
		if ((errand = errand_of(&up->fleet.known[i], load)) != NULL)
			fetch_leave(errand);
}

static void
polls_look(ngx_event_t *event)
{
	kvroute_srv_conf_t *up = event->data;
	struct errand *errand;
	enum loads_role role;
	size_t i = 0;

	if (kvroute_is_ending()) {
		fetches_leave(up, true);
		loads_leave(&up->fleet);
		return;
	}
	role = loads_look(&up->fleet, kvr_clock_now());
	if (role == LOADS_REST)
		return;
	if (role == LOADS_FOLLOW)
		fetches_leave(up, true);
	while (role == LOADS_LEAD && (errand = loads_next(&up->fleet, &i,
	    fetch_room(), kvr_clock_now())) != NULL)
		fetch_begin(up, errand);
	ngx_add_timer(event, loads_tick_ms(&up->fleet));
}

/* -------------------------------------------------------------- process --- */

/* Without memory the next change of the peers tries again. */
void
kvroute_polls_follow(kvroute_srv_conf_t *up)
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

void
kvroute_polls_begin(kvroute_srv_conf_t *up, ngx_cycle_t *cycle)
{
	if (ngx_process == NGX_PROCESS_HELPER)
		return;
	/* Failures to connect are expected, and logged by the errands. */
	up->asks.log = *cycle->log;
	up->asks.log.log_level = NGX_LOG_ALERT;
	kvroute_timer_make(&up->asks.timer, asks_look, up, cycle->log);
	kvroute_timer_make(&up->polls.timer, polls_look, up, cycle->log);
	up->asks.on = ngx_worker == 0;
	up->polls.on = up->fleet.polled != NULL;
	kvroute_polls_follow(up);
}

void
kvroute_polls_leave(kvroute_srv_conf_t *up)
{
	fetches_leave(up, false);
	fetches_leave(up, true);
	if (up->polls.on)
		loads_leave(&up->fleet);
}

void
kvroute_poll_free(struct known *known)
{
	if (known->ask != NULL)
		fetch_free(capacities_errand(known->ask));
	capacities_free(known->ask);
	if (known->poll != NULL)
		fetch_free(loads_errand(known->poll));
	loads_free(known->poll);
}
