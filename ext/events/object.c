/* SPDX-License-Identifier: BSD-2-Clause */
/* object.c - msgpack objects as fields of events. */
#include "decode_in.h"

#include <string.h>

enum { HASH_BYTES_MIN = 8, HASH_BYTES_MAX = 64 };

bool
object_absent(const msgpack_object *o)
{
	return o == NULL || o->type == MSGPACK_OBJECT_NIL;
}

bool
object_is(const msgpack_object *o, const char *text)
{
	return o != NULL && o->type == MSGPACK_OBJECT_STR &&
	    o->via.str.size == strlen(text) &&
	    memcmp(o->via.str.ptr, text, o->via.str.size) == 0;
}

const msgpack_object *
object_get(const msgpack_object *map, const char *key)
{
	uint32_t i;

	if (map == NULL || map->type != MSGPACK_OBJECT_MAP)
		return NULL;
	for (i = 0; i < map->via.map.size; i++)
		if (object_is(&map->via.map.ptr[i].key, key))
			return &map->via.map.ptr[i].val;
	return NULL;
}

bool
object_unsigned(const msgpack_object *o, uint64_t most, uint64_t *out)
{
	if (o == NULL || o->type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
	    o->via.u64 > most)
		return false;
	*out = o->via.u64;
	return true;
}

bool
object_hash(const msgpack_object *o, uint64_t *out)
{
	const unsigned char *at;
	int i;

	if (o == NULL)
		return false;
	switch (o->type) {
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		*out = o->via.u64;
		return true;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		*out = (uint64_t)o->via.i64;
		return true;
	case MSGPACK_OBJECT_BIN:
		if (o->via.bin.size < HASH_BYTES_MIN ||
		    o->via.bin.size > HASH_BYTES_MAX)
			return false;
		at = (const unsigned char *)o->via.bin.ptr + o->via.bin.size -
		    HASH_BYTES_MIN;
		for (*out = 0, i = 0; i < HASH_BYTES_MIN; i++)
			*out = *out << 8 | at[i];
		return true;
	default:
		return false;
	}
}

enum drop_reason
object_hashes(const msgpack_object *o, struct batch *b)
{
	uint64_t hash;
	uint32_t i;

	if (o == NULL || o->type != MSGPACK_OBJECT_ARRAY)
		return DROP_MALFORMED;
	for (i = 0; i < o->via.array.size; i++) {
		if (!object_hash(&o->via.array.ptr[i], &hash))
			return DROP_MALFORMED;
		if (!batch_hash(b, hash))
			return DROP_NO_MEMORY;
	}
	return DROP_NONE;
}

/*
 * Windows of two tokens; each begins with the second token of the one before:
 * [[1, 2], [2, 3]] are the tokens 1, 2, 3.
 */
static enum drop_reason
pairs(const msgpack_object *o, uint32_t n, struct batch *b)
{
	uint64_t first, second = 0, last;
	uint32_t i;

	for (i = 0; i < n; i++) {
		last = second;
		if (o[i].type != MSGPACK_OBJECT_ARRAY ||
		    o[i].via.array.size != 2 ||
		    !object_unsigned(&o[i].via.array.ptr[0], UINT32_MAX,
		        &first) ||
		    !object_unsigned(&o[i].via.array.ptr[1], UINT32_MAX,
		        &second) || (i > 0 && first != last))
			return DROP_MALFORMED;
		if (!batch_token(b, (uint32_t)first))
			return DROP_NO_MEMORY;
	}
	b->now.flags |= EVENT_EAGLE;
	return batch_token(b, (uint32_t)second) ? DROP_NONE : DROP_NO_MEMORY;
}

enum drop_reason
object_tokens(const msgpack_object *o, struct batch *b)
{
	const msgpack_object *items;
	uint32_t i, n, *to;

	if (object_absent(o))
		return DROP_NONE;
	if (o->type != MSGPACK_OBJECT_ARRAY)
		return DROP_MALFORMED;
	items = o->via.array.ptr;
	n = o->via.array.size;
	if (n > 0 && items[0].type == MSGPACK_OBJECT_ARRAY)
		return pairs(items, n, b);
	/* They are all there: this is no count that a stranger has sent. */
	to = n == 0 ? NULL : batch_tokens(b, n);
	if (n > 0 && to == NULL)
		return DROP_NO_MEMORY;
	for (i = 0; i < n; i++) {
		if (items[i].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
		    items[i].via.u64 > UINT32_MAX)
			return DROP_MALFORMED;
		to[i] = (uint32_t)items[i].via.u64;
	}
	return DROP_NONE;
}

enum drop_reason
object_text(const msgpack_object *o, struct batch *b, struct event_span *span)
{
	if (object_absent(o))
		return DROP_NONE;
	if (o->type != MSGPACK_OBJECT_STR)
		return DROP_MALFORMED;
	return batch_text(b, o->via.str.ptr, o->via.str.size, span) ?
	    DROP_NONE : DROP_NO_MEMORY;
}

bool
decode_end(struct decoder *d, enum drop_reason reason)
{
	msgpack_zone_clear(&d->zone);
	if (reason == DROP_NONE)
		reason = drop_judge(&d->drop, &d->options, &d->batch.now);
	if (reason == DROP_NO_MEMORY)
		return false;
	if (reason != DROP_NONE) {
		d->counts.dropped[reason]++;
		batch_drop(&d->batch);
		return true;
	}
	d->counts.events++;
	return batch_end(&d->batch);
}

enum drop_reason
decode_object(struct decoder *d, const unsigned char *bytes, size_t n,
    msgpack_object *out)
{
	size_t at = 0;

	switch (msgpack_unpack((const char *)bytes, n, &at, &d->zone, out)) {
	case MSGPACK_UNPACK_SUCCESS:
		return DROP_NONE;
	case MSGPACK_UNPACK_NOMEM_ERROR:
		return DROP_NO_MEMORY;
	default:
		return DROP_MALFORMED;
	}
}
