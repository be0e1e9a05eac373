/* SPDX-License-Identifier: BSD-2-Clause */
/* proto.c - see proto.h. */
#include "proto.h"

#include <string.h>

enum {
	VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5, /* types */
	VARINT_MAX = 10
};

void
proto_read(struct proto_in *in, const void *bytes, size_t n)
{
	static const unsigned char none[1];

	in->at = n == 0 ? none : bytes;
	in->end = in->at + n;
	in->bad = false;
}

size_t
proto_length(const struct proto_in *in)
{
	return in->at == NULL ? 0 : (size_t)(in->end - in->at);
}

bool
proto_is(const struct proto_in *text, const char *word)
{
	const size_t n = strlen(word);

	return proto_length(text) == n &&
	    (n == 0 || memcmp(text->at, word, n) == 0);
}

static uint64_t
read_varint(struct proto_in *in)
{
	uint64_t value = 0, part;
	unsigned shift = 0;

	while (in->at < in->end && shift < 64) {
		part = *in->at & 127u;
		if (shift == 63 && part > 1)
			break;
		value |= part << shift;
		if (*in->at++ < 128)
			return value;
		shift += 7;
	}
	in->bad = true;
	return 0;
}

/* The n bytes at hand, as far as there are so many. */
static bool
take_bytes(struct proto_in *in, uint64_t n, struct proto_in *taken)
{
	if (in->bad || n > (uint64_t)(in->end - in->at)) {
		in->bad = true;
		return false;
	}
	taken->at = in->at;
	taken->end = in->at += n;
	taken->bad = false;
	return true;
}

bool
proto_next(struct proto_in *in, struct proto_field *field)
{
	struct proto_in passed;
	uint64_t tag;

	memset(field, 0, sizeof(*field));
	if (in->bad || in->at == in->end)
		return false;
	tag = read_varint(in);
	if (in->bad || tag > UINT32_MAX || tag >> 3 == 0) {
		in->bad = true;
		return false;
	}
	field->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case VARINT:
		field->value = read_varint(in);
		return !in->bad;
	case FIXED_64:
		return take_bytes(in, 8, &passed);
	case FIXED_32:
		return take_bytes(in, 4, &passed);
	case BYTES:
		return take_bytes(in, read_varint(in), &field->in);
	default:
		in->bad = true;
		return false;
	}
}

/* ------------------------------------------------------------- writing --- */

static size_t
write_varint(unsigned char to[VARINT_MAX], uint64_t value)
{
	size_t n = 0;

	for (; value > 127; value >>= 7)
		to[n++] = (unsigned char)(value | 128);
	to[n++] = (unsigned char)value;
	return n;
}

static void
put_varint(struct proto_out *out, uint64_t value)
{
	unsigned char bytes[VARINT_MAX];

	proto_put_raw(out, bytes, write_varint(bytes, value));
}

void
proto_put_raw(struct proto_out *out, const void *bytes, size_t n)
{
	if (!out->failed)
		out->failed = !hold_append(out->to, bytes, n);
}

void
proto_put_number(struct proto_out *out, uint32_t field, uint64_t value)
{
	put_varint(out, (uint64_t)field << 3 | VARINT);
	put_varint(out, value);
}

void
proto_put_head(struct proto_out *out, uint32_t field, size_t n)
{
	put_varint(out, (uint64_t)field << 3 | BYTES);
	put_varint(out, n);
}

size_t
proto_head_length(uint32_t field, size_t n)
{
	unsigned char bytes[VARINT_MAX];

	return write_varint(bytes, (uint64_t)field << 3) +
	    write_varint(bytes, n);
}

void
proto_put_bytes(struct proto_out *out, uint32_t field, const void *bytes,
    size_t n)
{
	proto_put_head(out, field, n);
	proto_put_raw(out, bytes, n);
}

void
proto_put_text(struct proto_out *out, uint32_t field, const char *text)
{
	proto_put_bytes(out, field, text, strlen(text));
}

size_t
proto_open(struct proto_out *out, uint32_t field)
{
	proto_put_head(out, field, 0);
	return out->to->length;
}

/* One byte was left for the length; a longer one moves the message. */
void
proto_close(struct proto_out *out, size_t at)
{
	unsigned char length[VARINT_MAX];
	size_t n, used;

	if (out->failed)
		return;
	n = out->to->length - at;
	used = write_varint(length, n);
	if (used > 1) {
		proto_put_raw(out, length, used - 1);
		if (out->failed)
			return;
		memmove(out->to->data + at + used - 1, out->to->data + at, n);
	}
	memcpy(out->to->data + at - 1, length, used);
}
