/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dynamo.c - NVIDIA Dynamo's event plane.
 *
 *   frame:    01 | length, 4 bytes | envelope        over ZeroMQ
 *   envelope: {publisher_id, sequence, ..., payload} over NATS
 *   payload:  [{worker_id, storage_tier, event: {data, dp_rank}}, ...]
 *
 * Dynamo's publishers have already chosen the events of full attention. Blocks
 * come with hashes of their contents instead of tokens.
 */
#include "decode_in.h"
#include "pack.h"

#include <string.h>

enum { FRAME_VERSION = 1, FRAME_HEAD = 5 };

static enum drop_reason
stored_blocks(const msgpack_object *blocks, struct batch *b)
{
	const msgpack_object *block;
	uint64_t hash, local, clear = UINT64_MAX;
	uint32_t i;

	if (blocks == NULL || blocks->type != MSGPACK_OBJECT_ARRAY)
		return DROP_MALFORMED;
	for (i = 0; i < blocks->via.array.size; i++) {
		block = &blocks->via.array.ptr[i];
		if (!object_hash(object_get(block, "block_hash"), &hash) ||
		    !object_hash(object_get(block, "tokens_hash"), &local))
			return DROP_MALFORMED;
		if (!batch_hash(b, hash) || !batch_local(b, local))
			return DROP_NO_MEMORY;
		if (clear == UINT64_MAX &&
		    !object_absent(object_get(block, "mm_extra_info")))
			clear = i;
	}
	return build_stored(b, clear);
}

static enum drop_reason
stored(const msgpack_object *data, struct batch *b)
{
	const msgpack_object *parent = object_get(data, "parent_hash");
	const msgpack_object *start = object_get(data, "start_position");
	struct event *e = &b->now;

	if (!object_absent(parent)) {
		if (!object_hash(parent, &e->parent))
			return DROP_MALFORMED;
		e->flags |= EVENT_HAS_PARENT;
	}
	if (!object_absent(start)) {
		if (!object_unsigned(start, INT64_MAX, &e->position))
			return DROP_MALFORMED;
		e->flags |= EVENT_HAS_POSITION;
	}
	return stored_blocks(object_get(data, "blocks"), b);
}

static enum drop_reason
from_data(const msgpack_object *data, struct batch *b)
{
	const msgpack_object *what;
	enum drop_reason reason;

	if (object_is(data, "cleared") || object_get(data, "cleared") != NULL) {
		b->now.kind = EVENT_CLEARED;
		b->now.tier = EVENT_TIER_NONE;
		return DROP_NONE;
	}
	if ((what = object_get(data, "stored")) != NULL)
		return stored(what, b);
	if ((what = object_get(data, "removed")) != NULL) {
		b->now.kind = EVENT_REMOVED;
		reason = object_hashes(object_get(what, "block_hashes"), b);
		return reason == DROP_NONE && b->now.hashes.n == 0 ?
		    DROP_MALFORMED : reason;
	}
	return data == NULL ? DROP_MALFORMED : DROP_UNKNOWN;
}

static enum drop_reason
fill(const msgpack_object *o, struct batch *b)
{
	const msgpack_object *tier = object_get(o, "storage_tier");
	const msgpack_object *inner = object_get(o, "event");
	const msgpack_object *rank = object_get(inner, "dp_rank");
	struct event *e = &b->now;
	uint64_t value;

	if (!object_unsigned(object_get(o, "worker_id"), UINT64_MAX,
	    &e->worker))
		return DROP_MALFORMED;
	e->flags |= EVENT_HAS_WORKER;
	if (!object_absent(rank)) {
		if (!object_unsigned(rank, INT32_MAX, &value))
			return DROP_MALFORMED;
		e->rank = (uint32_t)value;
		e->flags |= EVENT_HAS_RANK;
	}
	e->tier = EVENT_DEVICE;
	if (!object_absent(tier))
		e->tier = tier->type != MSGPACK_OBJECT_STR ?
		    EVENT_TIER_UNKNOWN :
		    build_tier(tier->via.str.ptr, tier->via.str.size);
	return from_data(object_get(inner, "data"), b);
}

static enum drop_reason
read_event(struct decoder *d, const unsigned char *bytes, size_t n)
{
	enum drop_reason reason;
	msgpack_object o;

	if (n > DECODE_EVENT_BYTES_MAX)
		return DROP_SIZE;
	reason = decode_object(d, bytes, n, &o);
	return reason == DROP_NONE ? fill(&o, &d->batch) : reason;
}

static enum decode_verdict
payload(struct decoder *d, const unsigned char *at, const unsigned char *end)
{
	const unsigned char *next;
	struct pack_head head;

	if (pack_skip(at, end, DECODE_DEPTH_MAX) != end ||
	    !pack_head(at, end, &head) || head.type != PACK_ARRAY)
		return DECODE_MALFORMED;
	for (at += head.bytes; at < end; at = next) {
		next = pack_skip(at, end, DECODE_DEPTH_MAX);
		batch_begin(&d->batch);
		if (!decode_end(d, read_event(d, at, (size_t)(next - at))))
			return DECODE_NO_MEMORY;
	}
	return DECODE_GOOD;
}

/* A number of the envelope, 0 without. */
static uint64_t
envelope_number(struct decoder *d, struct pack_span envelope, const char *key)
{
	struct pack_span part;
	msgpack_object o;
	uint64_t value;

	return pack_value(envelope, key, &part) && part.end - part.at <= 9 &&
	    decode_object(d, part.at, (size_t)(part.end - part.at), &o) ==
	        DROP_NONE && object_unsigned(&o, UINT64_MAX, &value) ?
	    value : 0;
}

static enum decode_verdict
envelope(struct decoder *d, struct pack_span whole)
{
	struct pack_span part;
	struct pack_head head;
	const unsigned char *at;
	msgpack_object o;

	if (pack_skip(whole.at, whole.end, DECODE_DEPTH_MAX) != whole.end ||
	    !pack_value(whole, "payload", &part) ||
	    !pack_head(part.at, part.end, &head) || head.type != PACK_OTHER ||
	    decode_object(d, part.at, (size_t)(part.end - part.at), &o) !=
	        DROP_NONE || o.type != MSGPACK_OBJECT_BIN)
		return DECODE_MALFORMED;
	d->batch.publisher = envelope_number(d, whole, "publisher_id");
	d->batch.sequence = envelope_number(d, whole, "sequence");
	d->batch.time = envelope_number(d, whole, "published_at");
	at = (const unsigned char *)o.via.bin.ptr;
	return payload(d, at, at + o.via.bin.size);
}

/*
 * Takes the content out of a frame, if there is one. false: its length is
 * wrong.
 */
static bool
unframe(struct pack_span *m)
{
	const unsigned char *at = m->at;
	const size_t n = (size_t)(m->end - at);
	uint64_t length;

	if (n < FRAME_HEAD || at[0] != FRAME_VERSION)
		return true;
	length = (uint64_t)at[1] << 24 | (uint64_t)at[2] << 16 |
	    (uint64_t)at[3] << 8 | at[4];
	m->at += FRAME_HEAD;
	return length == n - FRAME_HEAD;
}

enum decode_verdict
decode_dynamo(struct decoder *d, const unsigned char *bytes, size_t n)
{
	struct pack_span m = { bytes, bytes + n };
	struct pack_head head;

	if (!unframe(&m) || !pack_head(m.at, m.end, &head))
		return DECODE_MALFORMED;
	return head.type == PACK_MAP ? envelope(d, m) :
	    payload(d, m.at, m.end);
}

static bool
number(struct pack_span map, const char *key, uint64_t *out)
{
	struct pack_span part;

	return pack_value(map, key, &part) && pack_unsigned(part, out);
}

bool
decode_dynamo_numbers(const void *bytes, size_t n, uint64_t *publisher,
    uint64_t *sequence)
{
	struct pack_span m = { bytes, (const unsigned char *)bytes + n };
	struct pack_head head;

	return n <= DECODE_BYTES_MAX && unframe(&m) &&
	    pack_skip(m.at, m.end, DECODE_DEPTH_MAX) == m.end &&
	    pack_head(m.at, m.end, &head) && head.type == PACK_MAP &&
	    number(m, "publisher_id", publisher) &&
	    number(m, "sequence", sequence);
}
