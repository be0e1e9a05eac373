/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * h2_in.h - shared by the files of the gRPC server:
 *
 *   h2_stream   calls: the session of nghttp2, its callbacks, and output
 *   h2_server   connections and the listener
 *
 * h2_server.c calls h2_stream.c.
 */
#ifndef KVROUTE_H2_IN_H
#define KVROUTE_H2_IN_H

#include <nghttp2/nghttp2.h>

#include "h2_server.h"
#include "loop.h"
#include "tls_server.h"

struct event;
struct evconnlistener;

struct h2_stream {
	struct h2_connection *connection;
	struct h2_stream *next, **at;
	int32_t id;
	int64_t heard;          /* seconds */
	const struct h2_service *service;
	void *call;
	struct grpc_reader in;
	struct hold out;
	size_t sent;            /* of `out` */
	enum grpc_status status;
	const char *text;       /* of the status */
	bool headed;            /* response headers are submitted */
	bool deferred;          /* there was nothing to send */
	bool ending;            /* trailers follow behind `out` */
	bool trailed;           /* these are submitted */
};

struct h2_connection {
	struct h2_server *server;
	struct h2_connection *next, **at;
	nghttp2_session *session;
	struct wire wire;
	struct event *readable, *writable;
	struct h2_stream *streams;
	struct hold out;
	size_t sent;
	int64_t idle;           /* seconds: since it has no streams */
	unsigned leaving;       /* seconds since its notice, + 1; 0: none */
	bool reading;           /* it sends when all is read */
	bool greeted;           /* the client has sent a frame */
};

struct h2_server {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *second;
	struct h2_options options;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct h2_connection *connections;
	struct h2_counts counts;
	size_t held;            /* bytes of messages that came in part */
	bool draining;
	unsigned drained;       /* seconds since then */
};

/* False: no memory. */
bool h2_callbacks_make(struct h2_server *s);
bool h2_session_make(struct h2_connection *c);
void h2_stream_close(struct h2_stream *stream);
/* Ends calls that are silent for too long. */
void h2_streams_fade(struct h2_connection *c, int64_t now);

#endif
