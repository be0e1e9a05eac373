/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_picker.c - any bytes as a stream of gRPC to the endpoint picker.
 *
 * Four bytes choose how they are read: the options of the pool and the bound of
 * bodies; how the stream is cut; which allocation fails; how the stream ends.
 * The rest is the stream. Whatever the input,
 *
 * - cuts do not change the messages;
 * - all output is well formed, and has answers alone;
 * - no call is left in the pool.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "fake_stream.h"
#include "must.h"
#include "picker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 16, HEAD = 4, FIELD_METADATA = 8 };

struct run {
	struct pick_pool pool;
	struct picker picker;
	struct h2_service service;
	struct h2_stream stream;
	void *call;
	size_t messages;
	uint64_t sum;      /* of all bytes of messages, by their place */
};

/* A message of answers is one of seven, with metadata perhaps. */
static void
look_at_output(const struct h2_stream *s)
{
	struct proto_field f;
	struct proto_in in;
	unsigned i, parts;

	for (i = 0; fake_message(s, i, &in); i++) {
		for (parts = 0; proto_next(&in, &f);) {
			MUST(f.in.at != NULL && f.number <= FIELD_METADATA);
			parts += f.number < FIELD_METADATA;
		}
		MUST(!in.bad && parts == 1);
	}
}

static void
take_message(struct run *r, struct proto_in message)
{
	size_t i;

	r->messages++;
	for (i = 0; i < proto_length(&message); i++)
		r->sum = r->sum * 31 + message.at[i] + 1;
	if (r->call == NULL || r->stream.finished)
		return;
	r->service.message(r->call, message);
	look_at_output(&r->stream);
	r->stream.out.length = 0;
}

/* Each piece is an allocation of its own. */
static void
read_pieces(struct run *r, const uint8_t *bytes, size_t size, size_t cut)
{
	struct grpc_reader reader = { .most = TEXT_MAX };
	enum grpc_next next = GRPC_MORE;
	struct proto_in message;
	const unsigned char *at;
	size_t i, n, left;
	uint8_t *copy;

	for (i = 0; i < size && next == GRPC_MORE; i += n) {
		n = cut == 0 || size - i < cut ? size - i : cut;
		copy = malloc(n);
		MUST(copy != NULL);
		memcpy(copy, bytes + i, n);
		at = copy;
		left = n;
		while ((next = grpc_next(&reader, &at, &left, &message)) ==
		    GRPC_MESSAGE)
			take_message(r, message);
		free(copy);
	}
	grpc_free(&reader);
}

static bool
open_run(struct run *r, uint8_t how)
{
	static const char *const options[] = { "size=2m workers=4 affinity=64",
	    "size=2m workers=4 affinity=64 include_usage=off",
	    "size=2m workers=4 affinity=64 feedback=off",
	    "size=2m workers=4 affinity=64 affinity_key=auto" };
	const char *facts = (how & 4) != 0 ? "max_conns=1" : "";

	memset(r, 0, sizeof(*r));
	if (kvh_open("", 0, options[how & 3], strlen(options[how & 3]), NULL,
	    &r->pool.kvh) != 0)
		return false;
	(void)kvh_server_put(r->pool.kvh, "10.0.0.1:80", 11, facts,
	    strlen(facts), NULL);
	(void)kvh_server_put(r->pool.kvh, "10.0.0.2:80", 11, facts,
	    strlen(facts), NULL);
	r->picker.pool = &r->pool;
	r->picker.body_most = (how & 8) != 0 ? 10 : TEXT_MAX;
	r->picker.held_most = 8 * TEXT_MAX;
	r->service = picker_service(&r->picker);
	return true;
}

static void
close_run(struct run *r, uint8_t end)
{
	uint64_t ended = 0;
	size_t i;

	if (r->call != NULL && (end & 1) != 0)
		r->service.finished(r->call);
	if (r->call != NULL)
		r->service.closed(r->call);
	alloc_reset();
	for (i = 0; i < PICK_HOWS; i++)
		ended += r->pool.ended[i];
	MUST(ended <= 1);
	hold_free(&r->stream.out);
	picker_free(&r->picker);
	kvh_free(r->pool.kvh);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole = { .messages = 0 }, cut = { .messages = 0 };

	if (size < HEAD || size > TEXT_MAX)
		return 0;
	alloc_reset();
	/* Without a call: messages alone. */
	read_pieces(&whole, data + HEAD, size - HEAD, 0);
	read_pieces(&cut, data + HEAD, size - HEAD, data[1]);
	MUST(whole.messages == cut.messages && whole.sum == cut.sum);
	MUST(open_run(&cut, data[0]));
	alloc_fail_from(data[2]);
	cut.call = cut.service.open(&cut.stream, cut.service.context);
	read_pieces(&cut, data + HEAD, size - HEAD, data[1]);
	close_run(&cut, data[3]);
	return 0;
}
