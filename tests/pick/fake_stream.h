/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_stream.h - a stream of h2_server.h without a network. */
#ifndef KVROUTE_TEST_STREAM_H
#define KVROUTE_TEST_STREAM_H

#include "ext_proc.h"
#include "h2_server.h"

struct h2_stream {
	struct hold out;           /* since it was last emptied */
	unsigned written;          /* calls of h2_written() */
	bool finished;
	enum grpc_status status;
};

/* Appends a part of a ProcessingRequest to a message. */
void fake_headers(struct hold *message, enum ext_kind kind, bool end,
    const char *const *pairs);
void fake_body(struct hold *message, enum ext_kind kind, const void *bytes,
    size_t n, bool end);
void fake_modes(struct hold *message, unsigned request, unsigned response);
/* metadata_context { SPACE: { KEY: Value } }; n texts, or one if list false. */
void fake_metadata(struct hold *message, const char *space,
    const char *key, const char *const *texts, size_t n, bool list);
/* Message i of the output; false: there are fewer. */
bool fake_message(const struct h2_stream *s, unsigned i,
    struct proto_in *message);
/* The field at a path of numbers, which 0 ends; `at` NULL: it is not there. */
struct proto_in fake_field(struct proto_in message, const unsigned *path);

#endif
