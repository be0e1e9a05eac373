/* SPDX-License-Identifier: BSD-2-Clause */
/* packer.c - see packer.h. */
#include "packer.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

struct inside {
	msgpack_sbuffer buffer;
	msgpack_packer packer;
};

static msgpack_packer *
of(struct packer *p)
{
	return &((struct inside *)p->inside)->packer;
}

static void
must(int status)
{
	if (status != 0)
		abort();
}

void
packer_begin(struct packer *p)
{
	struct inside *in = p->inside;

	if (in == NULL) {
		p->inside = in = calloc(1, sizeof(*in));
		if (in == NULL)
			abort();
		msgpack_sbuffer_init(&in->buffer);
		msgpack_packer_init(&in->packer, &in->buffer,
		    msgpack_sbuffer_write);
	}
	msgpack_sbuffer_clear(&in->buffer);
}

void
packer_end(struct packer *p)
{
	const struct inside *in = p->inside;

	p->bytes = in->buffer.data;
	p->n = in->buffer.size;
}

void
packer_free(struct packer *p)
{
	struct inside *in = p->inside;

	if (in == NULL)
		return;
	msgpack_sbuffer_destroy(&in->buffer);
	free(in);
	*p = (struct packer){ 0 };
}

void
packer_array(struct packer *p, size_t n)
{
	must(msgpack_pack_array(of(p), n));
}

void
packer_map(struct packer *p, size_t n)
{
	must(msgpack_pack_map(of(p), n));
}

void
packer_uint(struct packer *p, uint64_t value)
{
	must(msgpack_pack_uint64(of(p), value));
}

void
packer_int(struct packer *p, int64_t value)
{
	must(msgpack_pack_int64(of(p), value));
}

void
packer_double(struct packer *p, double value)
{
	must(msgpack_pack_double(of(p), value));
}

void
packer_text(struct packer *p, const char *text)
{
	must(msgpack_pack_str(of(p), strlen(text)));
	must(msgpack_pack_str_body(of(p), text, strlen(text)));
}

void
packer_bin(struct packer *p, const void *bytes, size_t n)
{
	must(msgpack_pack_bin(of(p), n));
	must(msgpack_pack_bin_body(of(p), bytes, n));
}

void
packer_nil(struct packer *p)
{
	must(msgpack_pack_nil(of(p)));
}
