/* SPDX-License-Identifier: BSD-2-Clause */
/* h2_stream.c - see h2_in.h. */
#include "h2_in.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OUTPUT_FACTOR = 2, /* of the longest message: unsent output */
	STREAMS_MAX = 4096, STREAM_WINDOW = 1 << 20,
	CONNECTION_WINDOW = 8 << 20, FRAME_MAX = 1 << 16
};

/* ------------------------------------------------------------- streams --- */

void
h2_stream_close(struct h2_stream *stream)
{
	if (stream->call != NULL)
		stream->service->closed(stream->call);
	*stream->at = stream->next;
	if (stream->next != NULL)
		stream->next->at = stream->at;
	stream->connection->server->counts.open_streams--;
	stream->connection->idle = loop_seconds();
	stream->connection->server->held -= stream->in.held.length;
	grpc_free(&stream->in);
	hold_free(&stream->out);
	free(stream);
}

static struct h2_stream *
open_stream(struct h2_connection *c, int32_t id)
{
	struct h2_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return NULL;
	stream->connection = c;
	stream->id = id;
	stream->heard = loop_seconds();
	stream->in.most = c->server->options.message_most;
	stream->next = c->streams;
	stream->at = &c->streams;
	if (stream->next != NULL)
		stream->next->at = &stream->next;
	c->streams = stream;
	c->server->counts.streams++;
	c->server->counts.open_streams++;
	return stream;
}

#define HEADER(name, value, n) \
	{ (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), \
	    sizeof(name) - 1, (n), NGHTTP2_NV_FLAG_NO_COPY_NAME }

/* grpc-status and grpc-message; returns how many. */
static size_t
make_trailers(const struct h2_stream *stream, nghttp2_nv nv[2],
    char digits[12])
{
	const int n = snprintf(digits, 12, "%d", (int)stream->status);

	nv[0] = (nghttp2_nv)HEADER("grpc-status", digits, (size_t)n);
	if (stream->text == NULL)
		return 1;
	nv[1] = (nghttp2_nv)HEADER("grpc-message", stream->text,
	    strlen(stream->text));
	return 2;
}

static void
submit_trailers(struct h2_stream *stream)
{
	nghttp2_nv nv[2];
	char digits[12];
	const size_t n = make_trailers(stream, nv, digits);

	stream->trailed = true;
	(void)nghttp2_submit_trailer(stream->connection->session, stream->id,
	    nv, n);
}

static ssize_t
read_output(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
    uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct h2_stream *stream = source->ptr;
	size_t n = stream->out.length - stream->sent;

	(void)session;
	(void)id;
	(void)context;
	if (n == 0 && !stream->ending) {
		stream->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	if (n > room)
		n = room;
	if (n > 0)
		memcpy(to, stream->out.data + stream->sent, n);
	stream->sent += n;
	if (stream->sent < stream->out.length)
		return (ssize_t)n;
	hold_trim(&stream->out);
	stream->out.length = stream->sent = 0;
	if (stream->ending) {
		*flags |= NGHTTP2_DATA_FLAG_EOF |
		    NGHTTP2_DATA_FLAG_NO_END_STREAM;
		submit_trailers(stream);
	}
	return (ssize_t)n;
}

static void
submit_head(struct h2_stream *stream)
{
	const nghttp2_nv nv[] = { HEADER(":status", "200", 3),
		HEADER("content-type", "application/grpc", 16) };
	const nghttp2_data_provider data = { .source.ptr = stream,
		.read_callback = read_output };

	stream->headed = true;
	(void)nghttp2_submit_response(stream->connection->session, stream->id,
	    nv, 2, &data);
}

/* The answer of a call that has no message. */
static void
submit_status(struct h2_stream *stream)
{
	nghttp2_nv nv[4] = { HEADER(":status", "200", 3),
		HEADER("content-type", "application/grpc", 16) };
	char digits[12];
	const size_t n = make_trailers(stream, nv + 2, digits);

	stream->headed = stream->trailed = true;
	(void)nghttp2_submit_response(stream->connection->session, stream->id,
	    nv, 2 + n, NULL);
}

/* Sends at another time, unless that follows anyway. */
static void
send_later(struct h2_connection *c)
{
	if (!c->reading)
		event_active(c->writable, EV_WRITE, 0);
}

struct hold *
h2_output(struct h2_stream *stream)
{
	return &stream->out;
}

/* A peer that sends and does not read would fill the memory. */
static bool
is_stuck(const struct h2_stream *stream)
{
	return stream->out.length - stream->sent >
	    OUTPUT_FACTOR * stream->in.most;
}

void
h2_written(struct h2_stream *stream)
{
	if (stream->trailed)
		return;
	if (is_stuck(stream)) {
		stream->connection->server->counts.broken++;
		stream->ending = stream->trailed = true;
		(void)nghttp2_submit_rst_stream(stream->connection->session,
		    NGHTTP2_FLAG_NONE, stream->id,
		    NGHTTP2_ENHANCE_YOUR_CALM);
		send_later(stream->connection);
		return;
	}
	if (!stream->headed) {
		submit_head(stream);
	} else if (stream->deferred) {
		stream->deferred = false;
		(void)nghttp2_session_resume_data(stream->connection->session,
		    stream->id);
	}
	send_later(stream->connection);
}

void
h2_finish(struct h2_stream *stream, enum grpc_status status, const char *text)
{
	if (stream->ending)
		return;
	stream->ending = true;
	stream->status = status;
	stream->text = text;
	if (!stream->headed && stream->out.length == 0)
		submit_status(stream);
	else if (stream->deferred)
		submit_trailers(stream);
	else if (!stream->headed)
		submit_head(stream);
	send_later(stream->connection);
}

/* ----------------------------------------------------------- callbacks --- */

static const struct h2_service *
find_service(const struct h2_server *s, const uint8_t *path, size_t n)
{
	const struct h2_service *service;
	size_t i;

	for (i = 0; i < H2_SERVICES_MAX; i++) {
		service = s->options.services[i];
		if (service != NULL && strlen(service->path) == n &&
		    memcmp(service->path, path, n) == 0)
			return service;
	}
	return NULL;
}

static int
on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct h2_stream *stream;

	if (frame->hd.type != NGHTTP2_HEADERS ||
	    frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	stream = open_stream(context, frame->hd.stream_id);
	if (stream == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	(void)nghttp2_session_set_stream_user_data(session, stream->id,
	    stream);
	return 0;
}

static int
on_header(nghttp2_session *session, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *context)
{
	struct h2_connection *c = context;
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(
	    session, frame->hd.stream_id);

	(void)flags;
	if (stream != NULL && name_len == 5 && memcmp(name, ":path", 5) == 0)
		stream->service = find_service(c->server, value, value_len);
	return 0;
}

static void
begin_call(struct h2_stream *stream)
{
	if (stream->service == NULL) {
		h2_finish(stream, GRPC_UNIMPLEMENTED, "unknown method");
		return;
	}
	if (stream->service->message_most > 0)
		stream->in.most = stream->service->message_most;
	stream->call = stream->service->open(stream,
	    stream->service->context);
	if (stream->call == NULL)
		h2_finish(stream, GRPC_RESOURCE_EXHAUSTED, "no memory");
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct h2_connection *c = context;
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(
	    session, frame->hd.stream_id);

	c->greeted = true;
	if (stream == NULL || (frame->hd.type != NGHTTP2_HEADERS &&
	    frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin_call(stream);
	if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
	    stream->call != NULL && !stream->ending)
		stream->service->finished(stream->call);
	return 0;
}

static void
refuse_bytes(struct h2_stream *stream, enum grpc_next why)
{
	stream->connection->server->counts.broken++;
	if (why == GRPC_COMPRESSED)
		h2_finish(stream, GRPC_UNIMPLEMENTED,
		    "compression is not supported");
	else
		h2_finish(stream, GRPC_RESOURCE_EXHAUSTED,
		    "the message is too large");
}

static int
on_data(nghttp2_session *session, uint8_t flags, int32_t id,
    const uint8_t *bytes, size_t n, void *context)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(
	    session, id);
	struct h2_server *s = ((struct h2_connection *)context)->server;
	struct proto_in message;
	enum grpc_next next;

	(void)flags;
	if (stream == NULL || stream->call == NULL)
		return 0;
	stream->heard = loop_seconds();
	do {
		if (stream->ending)
			return 0;
		s->held -= stream->in.held.length;
		next = grpc_next(&stream->in, &bytes, &n, &message);
		s->held += stream->in.held.length;
		if (next == GRPC_MORE && s->held > s->options.held_most)
			next = GRPC_TOO_LARGE;
		if (next == GRPC_MESSAGE)
			stream->service->message(stream->call, message);
		else if (next != GRPC_MORE)
			refuse_bytes(stream, next);
	} while (next == GRPC_MESSAGE);
	return 0;
}

static int
on_close(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct h2_stream *stream = nghttp2_session_get_stream_user_data(
	    session, id);

	(void)code;
	(void)context;
	if (stream != NULL)
		h2_stream_close(stream);
	return 0;
}

bool
h2_callbacks_make(struct h2_server *s)
{
	nghttp2_session_callbacks *to;

	if (nghttp2_session_callbacks_new(&s->callbacks) != 0 ||
	    nghttp2_option_new(&s->option) != 0)
		return false;
	to = s->callbacks;
	nghttp2_session_callbacks_set_on_begin_headers_callback(to, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(to, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(to, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(to, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(to, on_close);
	nghttp2_option_set_stream_reset_rate_limit(s->option, UINT32_MAX,
	    UINT32_MAX);
	nghttp2_option_set_no_closed_streams(s->option, 1);
	return true;
}

bool
h2_session_make(struct h2_connection *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME_MAX }
	};

	return nghttp2_session_server_new2(&c->session, c->server->callbacks,
	    c, c->server->option) == 0 &&
	    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings,
	        sizeof(settings) / sizeof(settings[0])) == 0 &&
	    nghttp2_session_set_local_window_size(c->session,
	        NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW) == 0;
}

/* ---------------------------------------------------------------- fade --- */

/*
 * A call that is silent ends as if its client had ended it. If the client does
 * not answer that either, the stream is reset.
 */
static void
fade_stream(struct h2_stream *stream, int64_t now)
{
	if (stream->call != NULL && !stream->ending) {
		stream->connection->server->counts.faded++;
		stream->heard = now;
		stream->service->finished(stream->call);
		return;
	}
	(void)nghttp2_submit_rst_stream(stream->connection->session,
	    NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
	send_later(stream->connection);
}

void
h2_streams_fade(struct h2_connection *c, int64_t now)
{
	struct h2_stream *stream;

	for (stream = c->streams; stream != NULL; stream = stream->next)
		if (stream->heard + c->server->options.limit < now &&
		    (stream->service == NULL || !stream->service->endless))
			fade_stream(stream, now);
}
