/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_socket.h - one rank's socket for events, and for replays.
 *
 *   PUB     topic | number | batch
 *   ROUTER  address | empty | number
 *           -> for each batch kept from that number on, and an end:
 *           address | empty | [topic] | number | batch
 *
 * Numbers begin with 0 each time that it is opened.
 */
#ifndef KVROUTE_EVENT_SOCKET_H
#define KVROUTE_EVENT_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <event2/event.h>

struct event_socket;

struct event_socket_facts {
	const char *endpoint;
	const char *replay;  /* NULL: none */
	const char *topic;
	bool topic_again;    /* replays have it, too */
	size_t keep;         /* batches, for replays */
};

/* NULL: it failed; errno has the reason, for zmq_strerror. */
struct event_socket *event_socket_open(struct event_base *base, void *context,
    const struct event_socket_facts *facts);
void event_socket_close(struct event_socket *s);
/* The next batch; one that is lost is only kept. False: no memory. */
bool event_socket_send(struct event_socket *s, const void *bytes, size_t n,
    bool lost);
/* The number of the next batch. */
uint64_t event_socket_next(const struct event_socket *s);

#endif
