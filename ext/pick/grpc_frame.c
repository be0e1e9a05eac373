/* SPDX-License-Identifier: BSD-2-Clause */
/* grpc_frame.c - see grpc_frame.h. */
#include "grpc_frame.h"

static size_t
read_length(const unsigned char *head)
{
	return (size_t)head[1] << 24 | (size_t)head[2] << 16 |
	    (size_t)head[3] << 8 | head[4];
}

static enum grpc_next
check_head(const struct grpc_reader *r, const unsigned char *head)
{
	if (head[0] != 0)
		return GRPC_COMPRESSED;
	return read_length(head) > r->most ? GRPC_TOO_LARGE : GRPC_MESSAGE;
}

/* Moves bytes into `held`, up to `length` there. */
static bool
gather_bytes(struct grpc_reader *r, const unsigned char **bytes, size_t *n,
    size_t length)
{
	const size_t wanted = length - r->held.length;
	const size_t taken = *n < wanted ? *n : wanted;

	if (!hold_append(&r->held, *bytes, taken))
		return false;
	*bytes += taken;
	*n -= taken;
	return true;
}

static enum grpc_next
gather_message(struct grpc_reader *r, const unsigned char **bytes, size_t *n,
    struct proto_in *message)
{
	enum grpc_next head;
	size_t length;

	if (r->held.length < GRPC_HEAD &&
	    !gather_bytes(r, bytes, n, GRPC_HEAD))
		return GRPC_NO_MEMORY;
	if (r->held.length < GRPC_HEAD)
		return GRPC_MORE;
	head = check_head(r, r->held.data);
	if (head != GRPC_MESSAGE)
		return head;
	length = GRPC_HEAD + read_length(r->held.data);
	if (!gather_bytes(r, bytes, n, length))
		return GRPC_NO_MEMORY;
	if (r->held.length < length)
		return GRPC_MORE;
	proto_read(message, r->held.data + GRPC_HEAD, length - GRPC_HEAD);
	r->given = true;
	return GRPC_MESSAGE;
}

enum grpc_next
grpc_next(struct grpc_reader *r, const unsigned char **bytes, size_t *n,
    struct proto_in *message)
{
	enum grpc_next head;
	size_t length;

	if (r->given) {
		hold_trim(&r->held);
		r->held.length = 0;
		r->given = false;
	}
	if (r->held.length > 0 || *n < GRPC_HEAD)
		return *n == 0 ? GRPC_MORE :
		    gather_message(r, bytes, n, message);
	head = check_head(r, *bytes);
	if (head != GRPC_MESSAGE)
		return head;
	length = read_length(*bytes);
	if (length > *n - GRPC_HEAD)
		return gather_message(r, bytes, n, message);
	proto_read(message, *bytes + GRPC_HEAD, length);
	*bytes += GRPC_HEAD + length;
	*n -= GRPC_HEAD + length;
	return GRPC_MESSAGE;
}

void
grpc_free(struct grpc_reader *r)
{
	hold_free(&r->held);
}

size_t
grpc_open(struct proto_out *out)
{
	static const unsigned char head[GRPC_HEAD];

	proto_put_raw(out, head, GRPC_HEAD);
	return out->to->length;
}

void
grpc_close(struct proto_out *out, size_t at)
{
	unsigned char *head;
	size_t n;

	if (out->failed)
		return;
	n = out->to->length - at;
	head = out->to->data + at - GRPC_HEAD;
	head[1] = (unsigned char)(n >> 24);
	head[2] = (unsigned char)(n >> 16);
	head[3] = (unsigned char)(n >> 8);
	head[4] = (unsigned char)n;
}
