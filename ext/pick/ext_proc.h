/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ext_proc.h - a ProcessingRequest of Envoy's ext_proc v3, as far as an
 * endpoint picker needs it.
 *
 *   ProcessingRequest
 *     2 request_headers   3 response_headers   HttpHeaders { 1 HeaderMap,
 *     4 request_body      5 response_body          3 end_of_stream }
 *     6 request_trailers  7 response_trailers  HttpBody { 1, 2 end_of_stream }
 *     8 metadata_context  Metadata { 1 map of Struct }
 *    11 protocol_config   { 1 request_body_mode, 2 response_body_mode }
 *
 * Everything stays where it lies in the message. Parsers accept any bytes.
 */
#ifndef KVROUTE_EXT_PROC_H
#define KVROUTE_EXT_PROC_H

#include "proto.h"

/* Fields of a ProcessingRequest. */
enum ext_kind {
	EXT_NOTHING = 0,
	EXT_REQUEST_HEADERS = 2,
	EXT_RESPONSE_HEADERS = 3,
	EXT_REQUEST_BODY = 4,
	EXT_RESPONSE_BODY = 5,
	EXT_REQUEST_TRAILERS = 6,
	EXT_RESPONSE_TRAILERS = 7
};

enum ext_mode {
	EXT_NONE = 0,
	EXT_STREAMED = 1,
	EXT_BUFFERED = 2,
	EXT_BUFFERED_PARTIAL = 3,
	EXT_FULL_DUPLEX = 4
};

struct ext_request {
	enum ext_kind kind;
	struct proto_in part;     /* the message of that kind */
	struct proto_in metadata; /* metadata_context */
	bool modes;               /* these came with it: */
	uint32_t request_mode, response_mode;
};

struct ext_header {
	struct proto_in name, value;
};

struct ext_body {
	struct proto_in bytes;
	bool end;
};

/* false: it is malformed. */
bool ext_request_read(struct proto_in message, struct ext_request *request);

/* The headers of HttpHeaders or HttpTrailers, one by one, and its end. */
struct ext_headers {
	struct proto_in map;
	bool end;          /* no body follows */
};
bool ext_headers_read(struct proto_in part, struct ext_headers *headers);
bool ext_headers_next(struct ext_headers *headers, struct ext_header *header);

bool ext_body_read(struct proto_in part, struct ext_body *body);

/*
 * The Value at `key` of the Struct at `space` of a Metadata; false: it is not
 * there.
 */
bool ext_metadata(struct proto_in metadata, const char *space,
    const char *key, struct proto_in *value);
/* The text of a Value that is one; else `at` is NULL. */
struct proto_in ext_value_text(struct proto_in value);
/* Gives `take` the text of a Value, or those of a list. */
void ext_value_texts(struct proto_in value,
    void (*take)(void *context, const char *text, size_t n), void *context);

#endif
