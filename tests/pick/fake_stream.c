/* SPDX-License-Identifier: BSD-2-Clause */
/* fake_stream.c - see fake_stream.h. */
#include "fake_stream.h"

#include <string.h>

struct hold *
h2_output(struct h2_stream *stream)
{
	return &stream->out;
}

void
h2_written(struct h2_stream *stream)
{
	stream->written++;
}

void
h2_finish(struct h2_stream *stream, enum grpc_status status, const char *text)
{
	(void)text;
	if (!stream->finished)
		stream->status = status;
	stream->finished = true;
}

void
fake_headers(struct hold *message, enum ext_kind kind, bool end,
    const char *const *pairs)
{
	struct proto_out out = { message, false };
	const size_t part = proto_open(&out, kind);
	const size_t map = proto_open(&out, 1);
	size_t header;

	for (; *pairs != NULL; pairs += 2) {
		header = proto_open(&out, 1);
		proto_put_text(&out, 1, pairs[0]);
		proto_put_text(&out, 3, pairs[1]);
		proto_close(&out, header);
	}
	proto_close(&out, map);
	if (end)
		proto_put_number(&out, 3, 1);
	proto_close(&out, part);
}

void
fake_body(struct hold *message, enum ext_kind kind, const void *bytes,
    size_t n, bool end)
{
	struct proto_out out = { message, false };
	const size_t part = proto_open(&out, kind);

	proto_put_bytes(&out, 1, bytes, n);
	if (end)
		proto_put_number(&out, 2, 1);
	proto_close(&out, part);
}

void
fake_modes(struct hold *message, unsigned request, unsigned response)
{
	struct proto_out out = { message, false };
	const size_t config = proto_open(&out, 11);

	proto_put_number(&out, 1, request);
	proto_put_number(&out, 2, response);
	proto_close(&out, config);
}

static void
put_value(struct proto_out *out, uint32_t field, const char *text)
{
	const size_t value = proto_open(out, field);

	proto_put_text(out, 3, text);
	proto_close(out, value);
}

static void
put_list(struct proto_out *out, const char *const *texts, size_t n)
{
	const size_t value = proto_open(out, 2);
	const size_t list = proto_open(out, 6);
	size_t i;

	for (i = 0; i < n; i++)
		put_value(out, 1, texts[i]);
	proto_close(out, list);
	proto_close(out, value);
}

void
fake_metadata(struct hold *message, const char *space, const char *key,
    const char *const *texts, size_t n, bool list)
{
	struct proto_out out = { message, false };
	const size_t metadata = proto_open(&out, 8);
	const size_t entry = proto_open(&out, 1);
	size_t fields, field;

	proto_put_text(&out, 1, space);
	fields = proto_open(&out, 2);
	field = proto_open(&out, 1);
	proto_put_text(&out, 1, key);
	if (list)
		put_list(&out, texts, n);
	else
		put_value(&out, 2, texts[0]);
	proto_close(&out, field);
	proto_close(&out, fields);
	proto_close(&out, entry);
	proto_close(&out, metadata);
}

bool
fake_message(const struct h2_stream *s, unsigned i,
    struct proto_in *message)
{
	const unsigned char *bytes = s->out.data;
	size_t n = s->out.length;
	struct grpc_reader r = { .most = SIZE_MAX / 2 };

	do {
		if (grpc_next(&r, &bytes, &n, message) != GRPC_MESSAGE) {
			grpc_free(&r);
			return false;
		}
	} while (i-- > 0);
	return true;
}

struct proto_in
fake_field(struct proto_in message, const unsigned *path)
{
	struct proto_in found = { NULL, NULL, false };
	struct proto_field f;

	if (*path == 0)
		return message;
	while (proto_next(&message, &f))
		if (f.number == *path && f.in.at != NULL)
			found = f.in;
	return found.at == NULL ? found : fake_field(found, path + 1);
}
