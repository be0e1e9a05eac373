/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pack.h - the bounds of msgpack, before a library unpacks it.
 *
 * msgpack-c allocates an array by the count in its head: five bytes can ask for
 * 100 GB. So nothing goes to it before its counts have been held against the
 * bytes that follow. This walks objects without unpacking them: it allocates
 * nothing, does not recur, and takes one step for each object.
 */
#ifndef KVROUTE_PACK_H
#define KVROUTE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pack_type { PACK_OTHER, PACK_ARRAY, PACK_MAP };

struct pack_head {
	enum pack_type type;
	uint64_t children; /* objects that follow: in a map, 2 for each pair */
	size_t bytes;      /* of the head, and of the rest but children */
};

/* false: the bytes end before the head does, or are no head. */
bool pack_head(const unsigned char *at, const unsigned char *end,
    struct pack_head *out);
/* Behind the object at `at`. NULL: it is cut, or deeper than that. */
const unsigned char *pack_skip(const unsigned char *at,
    const unsigned char *end, unsigned depth_max);

struct pack_span {
	const unsigned char *at, *end;
};

/* The object at `at`; its end is NULL if it is cut, or deeper than that. */
struct pack_span pack_next(const unsigned char *at, const unsigned char *end,
    unsigned depth_max);
/* Is the object this text? Only of at most 31 bytes, in their shortest form. */
bool pack_is(struct pack_span object, const char *text);
/*
 * The value of the key in the map that is exactly the bytes, which pack_skip
 * has been through. false: it has none.
 */
bool pack_value(struct pack_span map, const char *key, struct pack_span *out);

/* An unsigned number, in any of its forms. */
bool pack_unsigned(struct pack_span object, uint64_t *out);

#endif
