/* SPDX-License-Identifier: BSD-2-Clause */
/* grpc_health.c - see grpc_health.h. */
#include "grpc_health.h"

#include <stdlib.h>

enum {
	REQUEST_SERVICE = 1, RESPONSE_STATUS = 1, /* fields */
	SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3,
	REQUEST_BYTES_MAX = 4096
};

/* A call of either method. */
struct health_watch {
	struct grpc_health *health;
	struct h2_stream *stream;
	struct health_watch *next, **at; /* at NULL: it does not watch */
	bool watches;
	bool asked;            /* the message has come */
	bool live, known;      /* the service that it asks for */
};

static void *
open_call(struct h2_stream *stream, struct grpc_health *h, bool watches)
{
	struct health_watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->health = h;
	w->stream = stream;
	w->watches = watches;
	return w;
}

static void *
open_check(struct h2_stream *stream, void *health)
{
	return open_call(stream, health, false);
}

static void *
open_watch(struct h2_stream *stream, void *health)
{
	return open_call(stream, health, true);
}

static void
close_call(void *call)
{
	struct health_watch *w = call;

	if (w->at != NULL) {
		*w->at = w->next;
		if (w->next != NULL)
			w->next->at = w->at;
	}
	free(w);
}

static void
write_status(struct health_watch *w)
{
	struct proto_out out = { h2_output(w->stream), false };
	const size_t frame = grpc_open(&out);
	unsigned status = SERVICE_UNKNOWN;

	if (w->known)
		status = w->live || w->health->ready ? SERVING : NOT_SERVING;
	proto_put_number(&out, RESPONSE_STATUS, status);
	grpc_close(&out, frame);
	if (out.failed)
		h2_finish(w->stream, GRPC_RESOURCE_EXHAUSTED, "no memory");
	else
		h2_written(w->stream);
}

static void
add_watch(struct health_watch *w)
{
	struct grpc_health *h = w->health;

	if (w->at != NULL)
		return;
	w->next = h->watches;
	w->at = &h->watches;
	if (w->next != NULL)
		w->next->at = &w->next;
	h->watches = w;
}

static void
take_message(void *call, struct proto_in message)
{
	struct health_watch *w = call;
	struct proto_in service;
	struct proto_field f;

	proto_read(&service, NULL, 0);
	while (proto_next(&message, &f))
		if (f.number == REQUEST_SERVICE && f.in.at != NULL)
			service = f.in;
	w->asked = true;
	w->live = proto_is(&service, "liveness");
	w->known = w->live || proto_length(&service) == 0 ||
	    proto_is(&service, "readiness") || proto_is(&service,
	        "envoy.service.ext_proc.v3.ExternalProcessor");
	if (!w->known && !w->watches) {
		h2_finish(w->stream, GRPC_NOT_FOUND, "unknown service");
		return;
	}
	write_status(w);
	if (!w->watches)
		h2_finish(w->stream, GRPC_OK, NULL);
	else if (w->health->ended)
		h2_finish(w->stream, GRPC_UNAVAILABLE, "it ends");
	else
		add_watch(w);
}

/* A client that watches has ended its half already. */
static void
finish_call(void *call)
{
	struct health_watch *w = call;

	if (!w->asked)
		h2_finish(w->stream, GRPC_INVALID_ARGUMENT, "no message");
}

struct h2_service
grpc_health_check(struct grpc_health *h)
{
	return (struct h2_service){
		.path = "/grpc.health.v1.Health/Check", .open = open_check,
		.message = take_message, .finished = finish_call,
		.closed = close_call, .context = h,
		.message_most = REQUEST_BYTES_MAX
	};
}

struct h2_service
grpc_health_watch(struct grpc_health *h)
{
	return (struct h2_service){
		.path = "/grpc.health.v1.Health/Watch", .open = open_watch,
		.message = take_message, .finished = finish_call,
		.closed = close_call, .context = h,
		.message_most = REQUEST_BYTES_MAX, .endless = true
	};
}

void
grpc_health_set(struct grpc_health *h, bool ready)
{
	struct health_watch *w;

	if (h->ready == ready)
		return;
	h->ready = ready;
	for (w = h->watches; w != NULL; w = w->next)
		write_status(w);
}

void
grpc_health_end(struct grpc_health *h)
{
	struct health_watch *w;

	h->ended = true;
	grpc_health_set(h, false);
	for (w = h->watches; w != NULL; w = w->next)
		h2_finish(w->stream, GRPC_UNAVAILABLE, "it ends");
}
