/* SPDX-License-Identifier: BSD-2-Clause */
/* pack.c - see pack.h. */
#include "pack.h"

#include <string.h>

enum { DEPTH_ROOM = 32 };

static uint64_t
big(const unsigned char *at, size_t n)
{
	uint64_t value = 0;

	while (n-- > 0)
		value = value << 8 | *at++;
	return value;
}

/* Heads 0xc0 to 0xdf: bytes of their length field, and bytes beside it. */
static const struct {
	unsigned char length, more;
} shapes[32] = {
	[0x04] = { 1, 0 }, [0x05] = { 2, 0 }, [0x06] = { 4, 0 }, /* bin */
	[0x07] = { 1, 1 }, [0x08] = { 2, 1 }, [0x09] = { 4, 1 }, /* ext */
	[0x0a] = { 0, 4 }, [0x0b] = { 0, 8 },                    /* float */
	[0x0c] = { 0, 1 }, [0x0d] = { 0, 2 }, [0x0e] = { 0, 4 },
	[0x0f] = { 0, 8 },                                       /* unsigned */
	[0x10] = { 0, 1 }, [0x11] = { 0, 2 }, [0x12] = { 0, 4 },
	[0x13] = { 0, 8 },                                       /* signed */
	[0x14] = { 0, 2 }, [0x15] = { 0, 3 }, [0x16] = { 0, 5 },
	[0x17] = { 0, 9 }, [0x18] = { 0, 17 },                   /* ext */
	[0x19] = { 1, 0 }, [0x1a] = { 2, 0 }, [0x1b] = { 4, 0 }, /* str */
	[0x1c] = { 2, 0 }, [0x1d] = { 4, 0 },                    /* array */
	[0x1e] = { 2, 0 }, [0x1f] = { 4, 0 }                     /* map */
};

static bool
long_head(const unsigned char *at, size_t left, struct pack_head *out)
{
	const unsigned code = *at & 0x1f;
	const size_t length = shapes[code].length;
	uint64_t value;

	if (code == 1 || length >= left)
		return false;
	value = big(at + 1, length);
	out->bytes = 1 + length + shapes[code].more;
	if (code >= 0x1e) {
		out->type = PACK_MAP;
		out->children = 2 * value;
	} else if (code >= 0x1c) {
		out->type = PACK_ARRAY;
		out->children = value;
	} else {
		out->bytes += value;
	}
	return true;
}

bool
pack_head(const unsigned char *at, const unsigned char *end,
    struct pack_head *out)
{
	const size_t left = (size_t)(end - at);

	*out = (struct pack_head){ PACK_OTHER, 0, 1 };
	if (left == 0)
		return false;
	if (*at >= 0xc0 && *at < 0xe0) {
		if (!long_head(at, left, out))
			return false;
	} else if (*at >= 0xa0 && *at < 0xc0) {
		out->bytes += *at & 0x1f;
	} else if (*at >= 0x90 && *at < 0xa0) {
		out->type = PACK_ARRAY;
		out->children = *at & 0x0f;
	} else if (*at >= 0x80 && *at < 0x90) {
		out->type = PACK_MAP;
		out->children = 2 * (*at & 0x0fu);
	}
	return out->bytes <= left && out->children <= left - out->bytes;
}

/* Bytes of an object by its first byte; 0: that does not suffice. */
static size_t
plain_bytes(unsigned char first)
{
	if (first < 0x80 || first >= 0xe0)
		return 1;
	if (first >= 0xc0)
		return shapes[first & 0x1f].length > 0 || first == 0xc1 ? 0 :
		    1 + (size_t)shapes[first & 0x1f].more;
	return first >= 0xa0 ? 1 + (size_t)(first & 0x1f) : 0;
}

/* Most objects are tokens: these take the short way. */
const unsigned char *
pack_skip(const unsigned char *at, const unsigned char *end,
    unsigned depth_max)
{
	uint64_t left[DEPTH_ROOM + 1];
	struct pack_head head;
	unsigned depth = 0;
	size_t n;

	left[0] = 1;
	if (depth_max > DEPTH_ROOM)
		depth_max = DEPTH_ROOM;
	for (;;) {
		while (left[depth] == 0) {
			if (depth-- == 0)
				return at;
		}
		left[depth]--;
		n = at < end ? plain_bytes(*at) : 0;
		if (n > 0 && n <= (size_t)(end - at)) {
			at += n;
			continue;
		}
		if (!pack_head(at, end, &head))
			return NULL;
		at += head.bytes;
		if (head.type == PACK_OTHER)
			continue;
		if (depth == depth_max)
			return NULL;
		left[++depth] = head.children;
	}
}

struct pack_span
pack_next(const unsigned char *at, const unsigned char *end,
    unsigned depth_max)
{
	return (struct pack_span){ at, pack_skip(at, end, depth_max) };
}

bool
pack_is(struct pack_span object, const char *text)
{
	const size_t n = strlen(text);

	return (size_t)(object.end - object.at) == 1 + n &&
	    *object.at == (0xa0 | n) && memcmp(object.at + 1, text, n) == 0;
}

bool
pack_value(struct pack_span map, const char *key, struct pack_span *out)
{
	struct pack_span name;
	struct pack_head head;
	uint64_t i;

	if (!pack_head(map.at, map.end, &head) || head.type != PACK_MAP)
		return false;
	out->end = map.at + head.bytes;
	for (i = 0; i < head.children; i += 2) {
		name = pack_next(out->end, map.end, DEPTH_ROOM);
		if (name.end == NULL)
			return false;
		*out = pack_next(name.end, map.end, DEPTH_ROOM);
		if (out->end == NULL)
			return false;
		if (pack_is(name, key))
			return true;
	}
	return false;
}

bool
pack_unsigned(struct pack_span object, uint64_t *out)
{
	const size_t n = (size_t)(object.end - object.at);

	*out = *object.at;
	if (n == 1)
		return *out < 0x80;
	if (*out < 0xcc || *out > 0xcf)
		return false;
	for (*out = 0; object.at + 1 < object.end; object.at++)
		*out = *out << 8 | object.at[1];
	return true;
}
