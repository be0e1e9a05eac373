/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * grpc_frame.h - messages of gRPC in the bytes of a stream, cut anywhere.
 *
 *   00 | 00 00 01 2c | 300 bytes ...      00: it is not compressed
 *
 * A message that lies in one piece is given where it is; any other is gathered.
 */
#ifndef KVROUTE_GRPC_FRAME_H
#define KVROUTE_GRPC_FRAME_H

#include <stddef.h>

#include "proto.h"

enum { GRPC_HEAD = 5 };

/* Codes of grpc-status. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14
};

enum grpc_next {
	GRPC_MESSAGE,    /* here is one: ask again */
	GRPC_MORE,       /* all bytes are taken */
	GRPC_COMPRESSED, /* no compression was offered */
	GRPC_TOO_LARGE,
	GRPC_NO_MEMORY
};

/* All 0 but most: nothing has come yet. */
struct grpc_reader {
	struct hold held;
	size_t most;    /* bytes of a message */
	bool given;     /* `held` is a message that was given */
};

/*
 * Takes bytes from *bytes, *n, and gives a message, which is valid until the
 * next call. After an error the stream is of no use.
 */
enum grpc_next grpc_next(struct grpc_reader *r, const unsigned char **bytes,
    size_t *n, struct proto_in *message);
void grpc_free(struct grpc_reader *r);

/* Bytes that are written between the two are a message of their own. */
size_t grpc_open(struct proto_out *out);
void grpc_close(struct proto_out *out, size_t at);

#endif
