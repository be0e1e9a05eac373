/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salt.h - sets `cache_salt` at the top of a JSON body, which engines keep
 * their caches apart by.
 *
 *   struct salt s;
 *   salt_begin(&s);
 *   salt_data(&s, piece, n);  ...           any pieces, the whole body
 *   if (!salt_end(&s))                      refuse it
 *   for (i = 0; i < s.spans; i++)           blanks instead of s.span[i]
 *   salt_member(&s, value, n, to, room);    goes in at s.end, the last brace
 *
 *   {"cache_salt": "a", "model": "m"}
 *    ------------------ span        ^ end
 *   {                   "model": "m","cache_salt":"b"}
 *
 * What a client has set is blanked, and a new member is put at the end. So
 * everything else stays where it is and as it is, and a body in a file needs no
 * second one. An engine takes the first of equal keys or the last: all of them
 * are blanked. Keys are compared by what they say: "cache\u005fsalt" is one.
 * Those of objects within are left alone.
 *
 * A body that is no JSON, no object or not complete, is nested deeper than
 * SALT_DEPTH or has more than SALT_SPANS salts is refused: engines must not
 * read it in another way. A byte order mark ahead of it is passed over.
 *
 * Nothing is allocated. Time is proportional to the length of the body.
 */
#ifndef KVROUTE_SALT_H
#define KVROUTE_SALT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json_reader.h"

enum { SALT_DEPTH = JSON_DEPTH, SALT_SPANS = 16 };

struct salt_span {
	uint64_t at, end;
};

struct salt {
	struct salt_span span[SALT_SPANS]; /* in order */
	size_t spans;
	uint64_t end;           /* of the brace at the end */
	bool comma;             /* a member that stays precedes it */
	/* inside */
	bool broken;
	unsigned char mark;     /* bytes of the order mark */
	bool some;              /* a member has begun */
	bool salty;             /* the member at hand is a salt */
	bool kept;              /* a member that stays has ended */
	uint64_t lead;          /* the comma behind the last one that did */
	size_t run;             /* spans ahead of that comma */
	unsigned char text[JSON_BOUND];
	struct json_reader reader;
};

void salt_begin(struct salt *s);
void salt_data(struct salt *s, const void *data, size_t n);
/* False: it cannot be salted. */
bool salt_end(struct salt *s);

/* Room for the member of a value of n bytes. */
#define SALT_ROOM(n) (6 * (n) + sizeof(",\"cache_salt\":\"\""))

/* The member as JSON; returns its length. 0: the value is not UTF-8. */
size_t salt_member(const struct salt *s, const void *value, size_t n,
    unsigned char *to, size_t room);

#endif
