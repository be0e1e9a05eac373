/* SPDX-License-Identifier: BSD-2-Clause */
/* ext_reply.c - see ext_reply.h. */
#include "ext_reply.h"

#include <stdio.h>
#include <string.h>

#include "grpc_frame.h"

enum {
	RESPONSE = 1,          /* of HeadersResponse and BodyResponse */
	IMMEDIATE = 7, DYNAMIC_METADATA = 8,
	COMMON_HEADERS = 2, COMMON_BODY = 3, COMMON_CLEAR_ROUTE = 5,
	MUTATION_SET = 1, MUTATION_REMOVE = 2,
	OPTION_HEADER = 1, OPTION_ACTION = 3, OVERWRITE_OR_ADD = 2,
	HEADER_KEY = 1, HEADER_RAW_VALUE = 3,
	BODY_BYTES = 1, BODY_STREAMED = 3,
	STREAMED_BYTES = 1, STREAMED_END = 2,
	IMMEDIATE_STATUS = 1, IMMEDIATE_HEADERS = 2, IMMEDIATE_BODY = 3,
	IMMEDIATE_DETAILS = 5, STATUS_CODE = 1,
	FIELDS = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2,
	VALUE_TEXT = 3, VALUE_STRUCT = 5
};

static void
put_header(struct proto_out *out, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	const size_t option = proto_open(out, MUTATION_SET);
	const size_t header = proto_open(out, OPTION_HEADER);

	proto_put_bytes(out, HEADER_KEY, name, name_len);
	proto_put_bytes(out, HEADER_RAW_VALUE, value, value_len);
	proto_close(out, header);
	proto_put_number(out, OPTION_ACTION, OVERWRITE_OR_ADD);
	proto_close(out, option);
}

void
ext_reply_open(struct ext_reply *r, struct hold *to, enum ext_kind kind)
{
	memset(r, 0, sizeof(*r));
	r->out.to = to;
	r->frame = grpc_open(&r->out);
	r->part = proto_open(&r->out, ext_reply_field(kind));
	r->common = proto_open(&r->out, RESPONSE);
}

static void
open_headers(struct ext_reply *r)
{
	if (r->headers == 0)
		r->headers = proto_open(&r->out, COMMON_HEADERS);
}

static void
close_headers(struct ext_reply *r)
{
	if (r->headers != 0)
		proto_close(&r->out, r->headers);
	r->headers = 0;
}

/* Fields behind these are not of the CommonResponse. */
static void
close_common(struct ext_reply *r)
{
	close_headers(r);
	if (r->common == 0)
		return;
	proto_close(&r->out, r->common);
	proto_close(&r->out, r->part);
	r->common = 0;
}

void
ext_reply_set(struct ext_reply *r, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	open_headers(r);
	put_header(&r->out, name, name_len, value, value_len);
}

void
ext_reply_remove(struct ext_reply *r, const char *name, size_t name_len)
{
	open_headers(r);
	proto_put_bytes(&r->out, MUTATION_REMOVE, name, name_len);
}

void
ext_reply_body(struct ext_reply *r, const void *bytes, size_t n)
{
	close_headers(r);
	proto_put_head(&r->out, COMMON_BODY,
	    proto_head_length(BODY_BYTES, n) + n);
	proto_put_bytes(&r->out, BODY_BYTES, bytes, n);
}

/* { "envoy.lb": { "x-gateway-destination-endpoint": list } } */
void
ext_reply_targets(struct ext_reply *r, const char *list, size_t n)
{
	struct proto_out *out = &r->out;
	size_t all, space, value, fields, entry, text;

	close_headers(r);
	proto_put_number(out, COMMON_CLEAR_ROUTE, 1);
	close_common(r);
	all = proto_open(out, DYNAMIC_METADATA);
	space = proto_open(out, FIELDS);
	proto_put_text(out, ENTRY_KEY, EXT_SPACE);
	value = proto_open(out, ENTRY_VALUE);
	fields = proto_open(out, VALUE_STRUCT);
	entry = proto_open(out, FIELDS);
	proto_put_text(out, ENTRY_KEY, EXT_DESTINATION);
	text = proto_open(out, ENTRY_VALUE);
	proto_put_bytes(out, VALUE_TEXT, list, n);
	proto_close(out, text);
	proto_close(out, entry);
	proto_close(out, fields);
	proto_close(out, value);
	proto_close(out, space);
	proto_close(out, all);
}

bool
ext_reply_close(struct ext_reply *r)
{
	close_common(r);
	grpc_close(&r->out, r->frame);
	return !r->out.failed;
}

bool
ext_reply_plain(struct hold *to, enum ext_kind kind)
{
	struct proto_out out = { to, false };
	const size_t frame = grpc_open(&out);

	proto_put_head(&out, ext_reply_field(kind), 0);
	grpc_close(&out, frame);
	return !out.failed;
}

/* -------------------------------------------------------------- pieces --- */

/* Lengths are known from inside out, so that no byte is moved. */
bool
ext_reply_piece(struct hold *to, enum ext_kind kind, const void *bytes,
    size_t n, bool end)
{
	static const uint32_t around[] = { BODY_STREAMED, COMMON_BODY,
	    RESPONSE };
	const uint32_t field = ext_reply_field(kind);
	struct proto_out out = { to, false };
	size_t lengths[4], frame, i;

	lengths[0] = proto_head_length(STREAMED_BYTES, n) + n + (end ? 2 : 0);
	for (i = 0; i < 3; i++)
		lengths[i + 1] = lengths[i] +
		    proto_head_length(around[i], lengths[i]);
	frame = grpc_open(&out);
	proto_put_head(&out, field, lengths[3]);
	for (i = 3; i-- > 0;)
		proto_put_head(&out, around[i], lengths[i]);
	proto_put_bytes(&out, STREAMED_BYTES, bytes, n);
	if (end)
		proto_put_number(&out, STREAMED_END, 1);
	grpc_close(&out, frame);
	return !out.failed;
}

bool
ext_reply_pieces(struct hold *to, enum ext_kind kind, const void *bytes,
    size_t n, bool end)
{
	const unsigned char *at = bytes;
	size_t length;

	if (n == 0)
		return !end || ext_reply_piece(to, kind, "", 0, true);
	for (; n > 0; at += length, n -= length) {
		length = n < EXT_PIECE_MAX ? n : EXT_PIECE_MAX;
		if (!ext_reply_piece(to, kind, at, length,
		    end && length == n))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------ refusals --- */

static void
put_refusal_headers(struct proto_out *out, const struct ext_refusal *refusal)
{
	const size_t headers = proto_open(out, IMMEDIATE_HEADERS);
	char seconds[16];
	int n;

	put_header(out, "content-type", 12, "application/json", 16);
	if (refusal->retry_seconds != 0) {
		n = snprintf(seconds, sizeof(seconds), "%u",
		    refusal->retry_seconds);
		put_header(out, "retry-after", 11, seconds, (size_t)n);
	}
	proto_close(out, headers);
}

bool
ext_reply_refuse(struct hold *to, const struct ext_refusal *refusal)
{
	struct proto_out out = { to, false };
	const size_t frame = grpc_open(&out);
	const size_t immediate = proto_open(&out, IMMEDIATE);
	const size_t status = proto_open(&out, IMMEDIATE_STATUS);

	proto_put_number(&out, STATUS_CODE, refusal->status);
	proto_close(&out, status);
	put_refusal_headers(&out, refusal);
	proto_put_text(&out, IMMEDIATE_BODY, refusal->body);
	proto_put_text(&out, IMMEDIATE_DETAILS, refusal->details);
	proto_close(&out, immediate);
	grpc_close(&out, frame);
	return !out.failed;
}
