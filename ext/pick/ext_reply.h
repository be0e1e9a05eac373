/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ext_reply.h - ProcessingResponses of ext_proc v3, each with the head of gRPC,
 * appended to the output of a stream.
 *
 *   ProcessingResponse
 *     1 request_headers  3 request_body  2, 4 of the response
 *         { 1 CommonResponse { 2 HeaderMutation, 3 BodyMutation,
 *                              5 clear_route_cache } }
 *     5 request_trailers  6 response_trailers
 *     7 immediate_response  8 dynamic_metadata
 *
 * A message with changes is written in this order:
 *
 *   ext_reply_open > (ext_reply_set | ext_reply_remove)* > ext_reply_body?
 *       > ext_reply_targets? > ext_reply_close
 *
 * Functions that return false had no memory; the stream is of no use then.
 */
#ifndef KVROUTE_EXT_REPLY_H
#define KVROUTE_EXT_REPLY_H

#include "ext_proc.h"

#define EXT_DESTINATION "x-gateway-destination-endpoint"
#define EXT_SERVED "x-gateway-destination-endpoint-served"
#define EXT_SUBSET "x-gateway-destination-endpoint-subset"
#define EXT_SPACE "envoy.lb"
#define EXT_SUBSET_SPACE "envoy.lb.subset_hint"

enum { EXT_PIECE_MAX = 62000 }; /* bytes of a piece of a body */

struct ext_reply {
	struct proto_out out;
	size_t frame, part, common, headers; /* where they begin; 0: closed */
};

/* The field of the ProcessingResponse to a part of the request. */
static inline uint32_t
ext_reply_field(enum ext_kind kind)
{
	static const uint32_t fields[] = {
		[EXT_REQUEST_HEADERS] = 1, [EXT_RESPONSE_HEADERS] = 2,
		[EXT_REQUEST_BODY] = 3, [EXT_RESPONSE_BODY] = 4,
		[EXT_REQUEST_TRAILERS] = 5, [EXT_RESPONSE_TRAILERS] = 6
	};

	return fields[kind];
}

void ext_reply_open(struct ext_reply *r, struct hold *to, enum ext_kind kind);
void ext_reply_set(struct ext_reply *r, const char *name, size_t name_len,
    const char *value, size_t value_len);
void ext_reply_remove(struct ext_reply *r, const char *name, size_t name_len);
/* In place of the body that came. */
void ext_reply_body(struct ext_reply *r, const void *bytes, size_t n);
/* Dynamic metadata with the list of targets; clears the cache of routes. */
void ext_reply_targets(struct ext_reply *r, const char *list, size_t n);
bool ext_reply_close(struct ext_reply *r);

/* The answer to any part, which changes nothing. */
bool ext_reply_plain(struct hold *to, enum ext_kind kind);
/* A piece of a body that is FULL_DUPLEX_STREAMED. */
bool ext_reply_piece(struct hold *to, enum ext_kind kind, const void *bytes,
    size_t n, bool end);
/* All of it, in pieces: at least one, if it is the end. */
bool ext_reply_pieces(struct hold *to, enum ext_kind kind, const void *bytes,
    size_t n, bool end);

/* An ImmediateResponse in place of the server's. */
struct ext_refusal {
	uint32_t status;
	uint32_t retry_seconds; /* 0: no Retry-After */
	const char *body;       /* JSON */
	const char *details;    /* for the log of the data plane */
};
bool ext_reply_refuse(struct hold *to, const struct ext_refusal *refusal);

#endif
