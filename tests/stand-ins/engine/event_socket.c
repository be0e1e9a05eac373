/* SPDX-License-Identifier: BSD-2-Clause */
/* event_socket.c - see event_socket.h. */
#include "event_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

struct kept_batch {
	void *bytes; /* NULL: none */
	size_t n;
};

struct event_socket {
	struct event_socket_facts facts;
	void *pub, *router;
	struct event *readable; /* of the router */
	struct kept_batch *kept; /* [facts.keep]: batch i at i % keep */
	uint64_t next;
};

static void
big_endian(uint64_t value, unsigned char out[8])
{
	int i;

	for (i = 7; i >= 0; i--, value >>= 8)
		out[i] = (unsigned char)value;
}

static uint64_t
of_big_endian(const unsigned char in[8])
{
	uint64_t value = 0;
	int i;

	for (i = 0; i < 8; i++)
		value = value << 8 | in[i];
	return value;
}

static bool
put(void *socket, const void *bytes, size_t n, bool more)
{
	return zmq_send(socket, bytes, n, ZMQ_DONTWAIT |
	    (more ? ZMQ_SNDMORE : 0)) >= 0;
}

/* -------------------------------------------------------------- replays --- */

static bool
reply(struct event_socket *s, const void *who, size_t n_who, uint64_t seq,
    const void *bytes, size_t n)
{
	const char *topic = seq == UINT64_MAX ? "" : s->facts.topic;
	unsigned char number[8];

	big_endian(seq, number);
	return put(s->router, who, n_who, true) &&
	    put(s->router, "", 0, true) && (!s->facts.topic_again ||
	    put(s->router, topic, strlen(topic), true)) &&
	    put(s->router, number, sizeof(number), true) &&
	    put(s->router, bytes, n, false);
}

/* Replays as engines do, from the oldest on if it keeps no more. */
static void
replay(struct event_socket *s, const void *who, size_t n_who, uint64_t from)
{
	uint64_t oldest = s->next > s->facts.keep ? s->next - s->facts.keep :
	    0;
	const struct kept_batch *k;
	uint64_t i;

	for (i = from < oldest ? oldest : from; i < s->next; i++) {
		k = &s->kept[i % s->facts.keep];
		if (!reply(s, who, n_who, i, k->bytes, k->n))
			return;
	}
	(void)reply(s, who, n_who, UINT64_MAX, "", 0);
}

/* Reads one request; others than that of a number are passed over. */
static void
serve(struct event_socket *s)
{
	unsigned char who[256], frame[8];
	int n_who, n = 0, frames = 0, more = 1;
	size_t size = sizeof(more);

	n_who = zmq_recv(s->router, who, sizeof(who), ZMQ_DONTWAIT);
	while (n_who >= 0 && zmq_getsockopt(s->router, ZMQ_RCVMORE, &more,
	    &size) == 0 && more != 0) {
		n = zmq_recv(s->router, frame, sizeof(frame), ZMQ_DONTWAIT);
		frames++;
	}
	if (n_who >= 0 && n_who <= (int)sizeof(who) && frames == 2 && n == 8)
		replay(s, who, (size_t)n_who, of_big_endian(frame));
}

/* libzmq signals changes only, so all is read. */
static void
on_readable(evutil_socket_t fd, short what, void *socket)
{
	struct event_socket *s = socket;
	int events = 0;
	size_t size = sizeof(events);

	(void)fd;
	(void)what;
	while (zmq_getsockopt(s->router, ZMQ_EVENTS, &events, &size) == 0 &&
	    (events & ZMQ_POLLIN) != 0)
		serve(s);
}

/* -------------------------------------------------------------- sockets --- */

static void *
make(void *context, int type, const char *endpoint)
{
	const int none = 0, unlimited = 0; /* 0 in both cases */
	void *socket = zmq_socket(context, type);
	int why;

	if (socket == NULL)
		return NULL;
	if (zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
	    zmq_setsockopt(socket, ZMQ_SNDHWM, &unlimited,
	    sizeof(unlimited)) == 0 && zmq_bind(socket, endpoint) == 0)
		return socket;
	why = errno;
	zmq_close(socket);
	errno = why;
	return NULL;
}

static bool
watch_router(struct event_socket *s, struct event_base *base)
{
	size_t size;
	int fd;

	size = sizeof(fd);
	if (zmq_getsockopt(s->router, ZMQ_FD, &fd, &size) != 0)
		return false;
	s->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable,
	    s);
	if (s->readable == NULL || event_add(s->readable, NULL) != 0)
		return false;
	event_active(s->readable, EV_READ, 0);
	return true;
}

struct event_socket *
event_socket_open(struct event_base *base, void *context,
    const struct event_socket_facts *facts)
{
	struct event_socket *s = calloc(1, sizeof(*s));
	int why;

	if (s == NULL)
		return NULL;
	s->facts = *facts;
	s->kept = calloc(facts->keep, sizeof(s->kept[0]));
	if (s->kept != NULL)
		s->pub = make(context, ZMQ_PUB, facts->endpoint);
	if (s->pub != NULL && facts->replay != NULL)
		s->router = make(context, ZMQ_ROUTER, facts->replay);
	if (s->pub != NULL && (facts->replay == NULL || (s->router != NULL &&
	    watch_router(s, base))))
		return s;
	why = errno;
	event_socket_close(s);
	errno = why;
	return NULL;
}

void
event_socket_close(struct event_socket *s)
{
	size_t i;

	if (s == NULL)
		return;
	if (s->readable != NULL)
		event_free(s->readable);
	if (s->pub != NULL)
		zmq_close(s->pub);
	if (s->router != NULL)
		zmq_close(s->router);
	for (i = 0; s->kept != NULL && i < s->facts.keep; i++)
		free(s->kept[i].bytes);
	free(s->kept);
	free(s);
}

static bool
keep(struct event_socket *s, const void *bytes, size_t n)
{
	struct kept_batch *k = &s->kept[s->next % s->facts.keep];

	free(k->bytes);
	*k = (struct kept_batch){ malloc(n), n };
	if (k->bytes == NULL)
		return false;
	memcpy(k->bytes, bytes, n);
	return true;
}

bool
event_socket_send(struct event_socket *s, const void *bytes, size_t n,
    bool lost)
{
	const char *topic = s->facts.topic;
	unsigned char number[8];

	if (!keep(s, bytes, n))
		return false;
	big_endian(s->next++, number);
	if (!lost && put(s->pub, topic, strlen(topic), true) &&
	    put(s->pub, number, sizeof(number), true))
		(void)put(s->pub, bytes, n, false);
	return true;
}

uint64_t
event_socket_next(const struct event_socket *s)
{
	return s->next;
}
