/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proto.h - fields of protobuf messages, read where they lie and written into
 * a buffer.
 *
 *   proto_read(&in, bytes, n);            at = proto_open(&out, 2);
 *   while (proto_next(&in, &f))           proto_put_bytes(&out, 1, "a", 1);
 *           if (f.number == 2) ...        proto_close(&out, at);
 *   if (in.bad) ...                       if (out.failed) ...
 *
 * A reader stops at the first field that is malformed, or reaches beyond its
 * message, and sets `bad`. Fields that a caller does not know are passed over.
 */
#ifndef KVROUTE_PROTO_H
#define KVROUTE_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text_hold.h"

struct proto_in {
	const unsigned char *at, *end;
	bool bad;
};

struct proto_field {
	uint32_t number;
	uint64_t value;     /* of a number */
	struct proto_in in; /* of text and messages; `at` is NULL for numbers */
};

struct proto_out {
	struct hold *to;
	bool failed;        /* there was no memory: the message is not whole */
};

void proto_read(struct proto_in *in, const void *bytes, size_t n);
bool proto_next(struct proto_in *in, struct proto_field *field);
/* Are the bytes of a text those of the word? */
bool proto_is(const struct proto_in *text, const char *word);
size_t proto_length(const struct proto_in *in);

void proto_put_raw(struct proto_out *out, const void *bytes, size_t n);
void proto_put_number(struct proto_out *out, uint32_t field, uint64_t value);
void proto_put_bytes(struct proto_out *out, uint32_t field, const void *bytes,
    size_t n);
void proto_put_text(struct proto_out *out, uint32_t field, const char *text);
/* The tag and length of a field; its n bytes follow by proto_put_raw(). */
void proto_put_head(struct proto_out *out, uint32_t field, size_t n);
/* Bytes that proto_put_head() writes. */
size_t proto_head_length(uint32_t field, size_t n);
/*
 * The fields between proto_open() and proto_close() are a message of their
 * own, whose bytes are moved once if it has more than 127: a body is better
 * written behind a proto_put_head().
 */
size_t proto_open(struct proto_out *out, uint32_t field);
void proto_close(struct proto_out *out, size_t at);

#endif
