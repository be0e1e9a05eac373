/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_fetch.c - see ngx_http_kvroute_fetch.h. */
#include "ngx_http_kvroute_fetch.h"

#include "ngx_http_kvroute_table.h"

enum { PIECE = 16384 }; /* parsed in a fraction of a millisecond */

void
ngx_http_kvroute_fetch_leave(ngx_http_kvroute_fetch_t *fetch)
{
	if (fetch->connection != NULL)
		ngx_close_connection(fetch->connection);
	fetch->connection = NULL;
	if (fetch->deadline.timer_set)
		ngx_del_timer(&fetch->deadline);
}

static void
on_deadline(ngx_event_t *event)
{
	ngx_http_kvroute_fetch_t *fetch = event->data;

	fetch->failed(fetch, "it does not answer");
}

/* One piece; other events have their turn before the next one. */
static void
on_read(ngx_event_t *event)
{
	static u_char piece[PIECE];
	ngx_connection_t *c = event->data;
	ngx_http_kvroute_fetch_t *fetch = c->data;
	ssize_t n = c->recv(c, piece, sizeof(piece));

	if (n == NGX_ERROR || (n == NGX_AGAIN &&
	    ngx_handle_read_event(event, 0) != NGX_OK)) {
		fetch->failed(fetch, "the connection is broken");
	} else if (n != NGX_AGAIN && fetch->read(fetch, piece, (size_t)n)) {
		ngx_post_event(event, &ngx_posted_next_events);
	}
}

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
	ngx_http_kvroute_fetch_t *fetch = c->data;
	ssize_t n;

	if (fetch->sent == 0 && !is_connected(c)) {
		fetch->failed(fetch, "it cannot be connected to");
		return;
	}
	n = c->send(c, fetch->request + fetch->sent,
	    fetch->to_send - fetch->sent);
	if (n == NGX_ERROR) {
		fetch->failed(fetch, "the connection is broken");
		return;
	}
	if (n > 0)
		fetch->sent += (size_t)n;
	if (fetch->sent == fetch->to_send)
		event->handler = on_nothing;
	if (ngx_handle_write_event(event, 0) != NGX_OK ||
	    ngx_handle_read_event(c->read, 0) != NGX_OK)
		fetch->failed(fetch, "the connection is broken");
}

ngx_str_t
ngx_http_kvroute_fetch_host(ngx_http_kvroute_fetch_t *fetch)
{
	static const ngx_str_t local = ngx_string("localhost");

	return fetch->address.sockaddr.sa_family == AF_UNIX ? local :
	    fetch->name;
}

void
ngx_http_kvroute_fetch(ngx_http_kvroute_fetch_t *fetch, ngx_msec_t deadline)
{
	ngx_peer_connection_t pc;
	ngx_connection_t *c;
	ngx_int_t rc;

	fetch->sent = 0;
	ngx_memzero(&pc, sizeof(pc));
	pc.sockaddr = &fetch->address.sockaddr;
	pc.socklen = fetch->address_len;
	pc.name = &fetch->name;
	pc.get = ngx_event_get_peer;
	pc.log = fetch->log;
	pc.log_error = NGX_ERROR_INFO;
	rc = fetch->to_send > 0 ? ngx_event_connect_peer(&pc) : NGX_ERROR;
	if (rc != NGX_OK && rc != NGX_AGAIN) {
		fetch->failed(fetch, "it cannot be connected to");
		return;
	}
	c = fetch->connection = pc.connection;
	c->data = fetch;
	c->log = c->read->log = c->write->log = fetch->log;
	c->read->handler = on_read;
	c->write->handler = on_write;
	ngx_add_timer(&fetch->deadline, deadline);
	if (rc == NGX_OK)
		on_write(c->write);
}

void
ngx_http_kvroute_fetch_init(ngx_http_kvroute_fetch_t *fetch,
    const ngx_http_kvroute_known_t *known, ngx_log_t *log)
{
	fetch->log = log;
	fetch->name.len = known->name_len;
	fetch->name.data = fetch->text;
	ngx_memcpy(fetch->text, known->name, known->name_len);
	fetch->address = known->address;
	fetch->address_len = known->address_len;
	fetch->deadline.handler = on_deadline;
	fetch->deadline.data = fetch;
	fetch->deadline.log = log;
	fetch->deadline.cancelable = 1;
}
