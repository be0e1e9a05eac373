/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salt.h - sets `cache_salt` at the top of a JSON body, by which engines
 * separate their caches.
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
 * A client's salt is blanked, and a new member is put at the end. All other
 * bytes stay where they are, so a body in a file needs no second file. An
 * engine may take the first of equal keys or the last, so all of them are
 * blanked. Keys are decoded before they are compared: "cache\u005fsalt" is a
 * salt. Objects within the body are left alone.
 *
 * A body that is not a whole JSON object, is nested deeper than SALT_DEPTH or
 * has more than SALT_SPANS salts is refused: an engine might read it in another
 * way. A byte order mark ahead of the body is passed over.
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
	uint64_t end;           /* offset of the brace at the end */
	bool comma;             /* a member that stays precedes the brace */
	/* used by salt.c */
	bool broken;
	unsigned char mark;     /* bytes of the byte order mark so far */
	bool some;              /* a member has begun */
	bool salty;             /* the current member is a salt */
	bool kept;              /* a member that stays has ended */
	uint64_t lead;          /* the comma behind the last such member */
	size_t run;             /* spans ahead of that comma */
	unsigned char text[JSON_BOUND];
	struct json_reader reader;
};

void salt_begin(struct salt *s);
void salt_data(struct salt *s, const void *data, size_t n);
/* Ends the body; false: it must be refused. */
bool salt_end(struct salt *s);

/* The room that the member of a value of n bytes needs. */
#define SALT_ROOM(n) (6 * (n) + sizeof(",\"cache_salt\":\"\""))

/* Writes the member as JSON and returns its length; 0: it is not UTF-8. */
size_t salt_member(const struct salt *s, const void *value, size_t n,
    unsigned char *to, size_t room);

#endif
