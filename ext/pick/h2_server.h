/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * h2_server.h - gRPC calls over HTTP/2: nghttp2 on sockets of libevent.
 *
 *   h2_listen > [ open > message* > (finished)? > closed ]* > h2_free
 *                  |  h2_output, h2_written, h2_finish  |
 *
 * A service answers one path. Each of its calls is a stream, and is closed
 * exactly once, however the stream or its connection ends.
 */
#ifndef KVROUTE_H2_SERVER_H
#define KVROUTE_H2_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "grpc_frame.h"
#include "proto.h"

struct event_base;
struct ssl_ctx_st;
struct h2_server;
struct h2_stream;

struct h2_service {
	const char *path;
	/* NULL: no memory. */
	void *(*open)(struct h2_stream *stream, void *context);
	void (*message)(void *call, struct proto_in message);
	/* The client will send no more: it ended its half in order. */
	void (*finished)(void *call);
	/* The stream is gone. */
	void (*closed)(void *call);
	void *context;
	size_t message_most;       /* 0: that of the server */
	bool endless;              /* a call of it may be silent for ever */
};

enum { H2_SERVICES_MAX = 4 };

struct h2_options {
	const char *host;          /* NULL: all addresses */
	uint16_t port;
	size_t message_most;       /* bytes of a message, */
	size_t held_most;          /* and of all that have come in part */
	struct ssl_ctx_st *tls;    /* NULL: plain; may be exchanged */
	uint32_t limit;            /* seconds that a call may be silent, */
	uint32_t idle;             /* and a connection be without calls */
	uint64_t connections_most;
	const struct h2_service *services[H2_SERVICES_MAX];
};

struct h2_counts {
	uint64_t connections, open_connections;
	uint64_t streams, open_streams;
	uint64_t broken;           /* streams that were not understood */
	uint64_t faded;            /* those that were silent for too long */
};

/* NULL: errno is why. */
struct h2_server *h2_listen(struct event_base *base,
    const struct h2_options *options);
/* Connections that come from now on use it. */
void h2_set_tls(struct h2_server *s, struct ssl_ctx_st *tls);
/*
 * Clients learn that it ends. A second later, when those calls have come that
 * they began before, the listener closes, and connections end with their last
 * stream.
 */
void h2_drain(struct h2_server *s);
/* It has drained. */
bool h2_idle(const struct h2_server *s);
const struct h2_counts *h2_counts(const struct h2_server *s);
void h2_free(struct h2_server *s);

/* Messages of gRPC are appended to this, and h2_written() sends them. */
struct hold *h2_output(struct h2_stream *stream);
void h2_written(struct h2_stream *stream);
/* Ends the call, once all is sent. `text` may be NULL; it is kept. */
void h2_finish(struct h2_stream *stream, enum grpc_status status,
    const char *text);

#endif
