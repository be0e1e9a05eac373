/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_h2.c - any bytes as what a client of kvroute-pick sends, behind the
 * preface of HTTP/2: frames, gRPC, ext_proc, the choice of two servers, waits.
 *
 * Four bytes choose how they are read: the options of the pool and the bound of
 * messages; how the bytes are cut; which allocation fails; how the connection
 * ends, and whether its client reads. Whatever the input,
 *
 * - all output is whole frames, the first one SETTINGS, and no DATA is empty
 *   but at the end of a stream;
 * - each stream is closed, and nothing of a call is left in the pool.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "grpc_health.h"
#include "h2_in.h"
#include "must.h"
#include "picker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* libevent's: output is sent by the loop below. */
void event_active(struct event *event, int what, short n);

enum { BYTES_MAX = 1 << 16, HEAD = 4, FRAME_HEAD = 9 };
/* Bits of the fourth byte. */
enum { READS_LATE = 1, FADES = 2, HEALTH_ENDS = 4 };

static const uint8_t preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct run {
	struct pick_pool pool;
	struct picker picker;
	struct grpc_health health;
	struct h2_service services[3];
	struct h2_server server;
	struct h2_connection connection;
	uint8_t *out;      /* all that was sent */
	size_t sent;
};

void
event_active(struct event *event, int what, short n)
{
	(void)event;
	(void)what;
	(void)n;
}

/* -------------------------------------------------------------- output --- */

static void
look_at_frames(const uint8_t *at, const uint8_t *end)
{
	size_t n, frames;

	for (frames = 0; at < end; at += FRAME_HEAD + n, frames++) {
		MUST(end - at >= FRAME_HEAD);
		n = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
		MUST(n <= (size_t)(end - at) - FRAME_HEAD);
		MUST(at[3] <= NGHTTP2_CONTINUATION);
		MUST(frames > 0 || at[3] == NGHTTP2_SETTINGS);
		MUST(at[3] != NGHTTP2_DATA || n > 0 ||
		    (at[4] & NGHTTP2_FLAG_END_STREAM) != 0);
	}
}

/* false: the session has failed. */
static bool
take_output(struct run *r)
{
	const uint8_t *bytes;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(r->connection.session,
	    &bytes)) > 0) {
		r->out = realloc(r->out, r->sent + (size_t)n);
		MUST(r->out != NULL);
		memcpy(r->out + r->sent, bytes, (size_t)n);
		r->sent += (size_t)n;
	}
	return n == 0;
}

/* --------------------------------------------------------------- input --- */

/* Each piece is an allocation of its own. */
static void
give_pieces(struct run *r, const uint8_t *bytes, size_t size, size_t cut,
    bool reads)
{
	size_t i, n;
	ssize_t taken;
	uint8_t *copy;

	for (i = 0; i < size; i += n) {
		n = cut == 0 || size - i < cut ? size - i : cut;
		copy = malloc(n);
		MUST(copy != NULL);
		memcpy(copy, bytes + i, n);
		taken = nghttp2_session_mem_recv(r->connection.session, copy,
		    n);
		free(copy);
		if (taken < 0)
			return;
		pick_turns(&r->pool);
		if (reads && !take_output(r))
			return;
	}
}

static void
open_pool(struct run *r, uint8_t how)
{
	static const char *const options[] = { "size=2m workers=4 affinity=64",
	    "size=2m workers=4 affinity=64 include_usage=off",
	    "size=2m workers=4 affinity=64 feedback=off queue=4",
	    "size=2m workers=4 affinity=64 affinity_key=auto queue=1" };
	const char *facts = (how & 4) != 0 ? "max_conns=1" : "";

	MUST(kvh_open("", 0, options[how & 3], strlen(options[how & 3]), NULL,
	    &r->pool.kvh) == 0);
	(void)kvh_server_put(r->pool.kvh, "10.0.0.1:80", 11, facts,
	    strlen(facts), NULL);
	(void)kvh_server_put(r->pool.kvh, "10.0.0.2:80", 11, facts,
	    strlen(facts), NULL);
	r->picker.pool = &r->pool;
	r->picker.body_most = (how & 8) != 0 ? 10 : BYTES_MAX;
	r->picker.held_most = 8 * BYTES_MAX;
}

static void
open_server(struct run *r, uint8_t how)
{
	struct h2_options *o = &r->server.options;
	size_t i;

	r->health.ready = true;
	r->services[0] = picker_service(&r->picker);
	r->services[1] = grpc_health_check(&r->health);
	r->services[2] = grpc_health_watch(&r->health);
	for (i = 0; i < 3; i++)
		o->services[i] = &r->services[i];
	o->message_most = (how & 16) != 0 ? 64 : BYTES_MAX;
	o->held_most = (how & 32) != 0 ? 64 : 8 * BYTES_MAX;
	r->connection.server = &r->server;
	/* The loop sends, and no event does. */
	r->connection.reading = true;
	MUST(h2_callbacks_make(&r->server));
	MUST(h2_session_make(&r->connection));
}

/* ----------------------------------------------------------------- end --- */

static void
end_calls(struct run *r, uint8_t end)
{
	if ((end & FADES) != 0)
		h2_streams_fade(&r->connection, INT64_MAX / 2);
	if ((end & HEALTH_ENDS) != 0)
		grpc_health_end(&r->health);
	(void)take_output(r);
}

static void
close_run(struct run *r)
{
	uint64_t ended = 0;
	size_t i;

	while (r->connection.streams != NULL)
		h2_stream_close(r->connection.streams);
	nghttp2_session_del(r->connection.session);
	nghttp2_session_callbacks_del(r->server.callbacks);
	nghttp2_option_del(r->server.option);
	for (i = 0; i < PICK_HOWS; i++)
		ended += r->pool.ended[i];
	MUST(ended <= r->server.counts.streams);
	MUST(r->server.counts.open_streams == 0);
	MUST(r->server.held == 0 && r->picker.held == 0);
	MUST(r->pool.waiting == 0);
	MUST(r->health.watches == NULL);
	look_at_frames(r->out, r->out + r->sent);
	free(r->out);
	picker_free(&r->picker);
	kvh_free(r->pool.kvh);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r;

	if (size < HEAD || size > BYTES_MAX)
		return 0;
	memset(&r, 0, sizeof(r));
	alloc_reset();
	open_pool(&r, data[0]);
	open_server(&r, data[0]);
	give_pieces(&r, preface, sizeof(preface) - 1, 0, true);
	alloc_fail_from(data[2]);
	give_pieces(&r, data + HEAD, size - HEAD, data[1],
	    (data[3] & READS_LATE) == 0);
	end_calls(&r, data[3]);
	alloc_reset();
	close_run(&r);
	return 0;
}
