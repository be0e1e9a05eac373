/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * h2_server.c - see h2_server.h.
 *
 * A connection reads, gives all to nghttp2, which calls the services, and then
 * sends their output, in as few writes as possible:
 *
 *   readable > wire_read > mem_recv > message > h2_written
 *                                                  |
 *   writable ------------------> mem_send > `out` > wire_write
 *
 * An event that is made active sends output that is written at another time.
 *
 * Four traps: Envoy ends each call by RST_STREAM, which nghttp2 takes for an
 * attack after about 1,000; it closes a connection on which two DATA frames
 * without bytes follow each other; nghttp2_session_del() closes no streams; and
 * nghttp2 keeps as many closed streams as may be open, for their priorities.
 */
#include "h2_in.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	READ_BYTES = 1 << 17, WRITE_BYTES = 1 << 16,
	BACKLOG = 512, GREETING_SECONDS = 10,
	KEEP_IDLE = 15, KEEP_INTERVAL = 5, KEEP_COUNT = 3, DEAD_MS = 30000
};

/* --------------------------------------------------------- connections --- */

static void
close_connection(struct h2_connection *c)
{
	while (c->streams != NULL)
		h2_stream_close(c->streams);
	nghttp2_session_del(c->session);
	if (c->readable != NULL)
		event_free(c->readable);
	if (c->writable != NULL)
		event_free(c->writable);
	wire_close(&c->wire);
	hold_free(&c->out);
	*c->at = c->next;
	if (c->next != NULL)
		c->next->at = c->at;
	c->server->counts.open_connections--;
	free(c);
}

/* Takes bytes of nghttp2 into `out`; false: the connection has failed. */
static bool
fill_output(struct h2_connection *c)
{
	const uint8_t *bytes;
	ssize_t n;

	while (c->out.length < WRITE_BYTES) {
		n = nghttp2_session_mem_send(c->session, &bytes);
		if (n < 0)
			return false;
		if (n == 0)
			break;
		if (!hold_append(&c->out, bytes, (size_t)n))
			return false;
	}
	return true;
}

/* false: the connection has ended. */
static bool
send_output(struct h2_connection *c)
{
	ssize_t n;

	for (;;) {
		if (c->sent == c->out.length) {
			c->out.length = c->sent = 0;
			if (!fill_output(c))
				return false;
		}
		if (c->out.length == 0)
			break;
		n = wire_write(&c->wire, c->out.data + c->sent,
		    c->out.length - c->sent);
		if (n == WIRE_AGAIN)
			return event_add(c->writable, NULL) == 0;
		if (n == WIRE_WANTS_READ)
			return true;
		if (n <= 0)
			return false;
		c->sent += (size_t)n;
	}
	return nghttp2_session_want_read(c->session) != 0 ||
	    nghttp2_session_want_write(c->session) != 0;
}

static void
on_writable(evutil_socket_t fd, short events, void *connection)
{
	struct h2_connection *c = connection;

	(void)fd;
	(void)events;
	if (!send_output(c))
		close_connection(c);
}

static bool
read_input(struct h2_connection *c)
{
	static uint8_t bytes[READ_BYTES];
	ssize_t n;

	do {
		n = wire_read(&c->wire, bytes, sizeof(bytes));
		if (n == WIRE_AGAIN)
			return true;
		if (n <= 0 || nghttp2_session_mem_recv(c->session, bytes,
		    (size_t)n) < 0)
			return false;
	} while (wire_pending(&c->wire));
	return true;
}

static void
on_readable(evutil_socket_t fd, short events, void *connection)
{
	struct h2_connection *c = connection;
	bool going;

	(void)fd;
	(void)events;
	c->reading = true;
	going = read_input(c);
	c->reading = false;
	if (!going || !send_output(c))
		close_connection(c);
}

static bool
begin_events(struct h2_connection *c)
{
	c->readable = event_new(c->server->base, c->wire.fd,
	    EV_READ | EV_PERSIST, on_readable, c);
	c->writable = event_new(c->server->base, c->wire.fd, EV_WRITE,
	    on_writable, c);
	return c->readable != NULL && c->writable != NULL &&
	    event_add(c->readable, NULL) == 0 &&
	    event_add(c->writable, NULL) == 0;
}

/* A host that is gone is noticed within DEAD_MS, and its calls end. */
static void
watch_peer(int fd)
{
	const int one = 1, idle = KEEP_IDLE, interval = KEEP_INTERVAL,
	    count = KEEP_COUNT;
	const unsigned dead = DEAD_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
	    sizeof(interval));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead,
	    sizeof(dead));
}

/* Clients begin no more calls on it; end_leaving() names the last one. */
static void
begin_leaving(struct h2_connection *c)
{
	c->leaving = 1;
	(void)nghttp2_submit_shutdown_notice(c->session);
	event_active(c->writable, EV_WRITE, 0);
}

/* Calls that crossed the notice have come. */
static void
end_leaving(struct h2_connection *c)
{
	(void)nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE,
	    nghttp2_session_get_last_proc_stream_id(c->session),
	    NGHTTP2_NO_ERROR, NULL, 0);
	event_active(c->writable, EV_WRITE, 0);
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd,
    struct sockaddr *from, int n, void *server)
{
	struct h2_connection *c = calloc(1, sizeof(*c));
	struct h2_server *s = server;

	(void)listener;
	(void)from;
	(void)n;
	if (c == NULL ||
	    s->counts.open_connections >= s->options.connections_most ||
	    !wire_open(&c->wire, fd, s->options.tls)) {
		evutil_closesocket(fd);
		free(c);
		return;
	}
	watch_peer(fd);
	c->server = s;
	c->idle = loop_seconds();
	c->next = s->connections;
	c->at = &s->connections;
	if (c->next != NULL)
		c->next->at = &c->next;
	s->connections = c;
	s->counts.connections++;
	s->counts.open_connections++;
	if (!h2_session_make(c) || !begin_events(c))
		close_connection(c);
	else if (s->draining)
		begin_leaving(c);
}

/* false: its client never began. */
static bool
tend_connection(struct h2_connection *c, int64_t now)
{
	const struct h2_options *o = &c->server->options;

	if (!c->greeted && c->idle + GREETING_SECONDS < now)
		return false;
	h2_streams_fade(c, now);
	if (c->leaving > 0 && ++c->leaving == 3)
		end_leaving(c);
	else if (c->leaving == 0 && c->streams == NULL &&
	    c->idle + o->idle < now)
		begin_leaving(c);
	return true;
}

static void
on_second(evutil_socket_t fd, short events, void *server)
{
	struct h2_server *s = server;
	const int64_t now = loop_seconds();
	struct h2_connection *c, *next;

	(void)fd;
	(void)events;
	for (c = s->connections; c != NULL; c = next) {
		next = c->next;
		if (!tend_connection(c, now))
			close_connection(c);
	}
	if (s->listener == NULL)
		return;
	if (s->draining && ++s->drained == 2) {
		evconnlistener_free(s->listener);
		s->listener = NULL;
	} else {
		(void)evconnlistener_enable(s->listener);
	}
}

/* -------------------------------------------------------------- server --- */

static struct evconnlistener *
listen_on(struct h2_server *s, const struct h2_options *options)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = EVUTIL_AI_PASSIVE | EVUTIL_AI_NUMERICHOST };
	struct evconnlistener *listener;
	struct evutil_addrinfo *to;
	const char *host = options->host;
	char port[8];

	snprintf(port, sizeof(port), "%u", options->port);
	if (evutil_getaddrinfo(host == NULL ? "::" : host, port, &hints,
	    &to) != 0) {
		errno = EADDRNOTAVAIL;
		return NULL;
	}
	listener = evconnlistener_new_bind(s->base, on_accept, s,
	    LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC |
	    LEV_OPT_REUSEABLE, BACKLOG, to->ai_addr, (int)to->ai_addrlen);
	evutil_freeaddrinfo(to);
	if (listener != NULL)
		loop_rest(listener);
	return listener;
}

struct h2_server *
h2_listen(struct event_base *base, const struct h2_options *options)
{
	const struct timeval second = { .tv_sec = 1 };
	struct h2_server *s = calloc(1, sizeof(*s));
	struct h2_options any = *options;

	if (s == NULL)
		return NULL;
	s->base = base;
	s->options = *options;
	s->listener = listen_on(s, options);
	/* A host without IPv6. */
	any.host = "0.0.0.0";
	if (s->listener == NULL && options->host == NULL &&
	    errno == EAFNOSUPPORT)
		s->listener = listen_on(s, &any);
	s->second = event_new(base, -1, EV_PERSIST, on_second, s);
	if (s->listener != NULL && h2_callbacks_make(s) && s->second != NULL &&
	    event_add(s->second, &second) == 0)
		return s;
	h2_free(s);
	return NULL;
}

void
h2_set_tls(struct h2_server *s, struct ssl_ctx_st *tls)
{
	s->options.tls = tls;
}

void
h2_drain(struct h2_server *s)
{
	struct h2_connection *c;

	if (s->draining)
		return;
	s->draining = true;
	for (c = s->connections; c != NULL; c = c->next)
		if (c->leaving == 0)
			begin_leaving(c);
}

bool
h2_idle(const struct h2_server *s)
{
	return s->listener == NULL && s->counts.open_streams == 0;
}

const struct h2_counts *
h2_counts(const struct h2_server *s)
{
	return &s->counts;
}

void
h2_free(struct h2_server *s)
{
	if (s == NULL)
		return;
	while (s->connections != NULL)
		close_connection(s->connections);
	if (s->second != NULL)
		event_free(s->second);
	if (s->listener != NULL)
		evconnlistener_free(s->listener);
	nghttp2_session_callbacks_del(s->callbacks);
	nghttp2_option_del(s->option);
	free(s);
}
