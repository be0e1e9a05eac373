/* SPDX-License-Identifier: BSD-2-Clause */
/* ways.c - see ways.h. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

struct way_of {
	size_t (*plain)(const unsigned char *, size_t, enum string_stop *);
	size_t (*decode)(const unsigned char *, size_t, unsigned char *,
	    size_t, size_t *, enum string_stop *);
};

static const struct way_of ways[] = {
	{ string_plain, string_decode },
	{ portable_plain, portable_decode }
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

struct said {
	size_t plain, read, length;
	enum string_stop plain_why, why;
	unsigned char *text;
};

/* All of it in `room`, more than once if it is full. */
static void
say(const struct way_of *way, const unsigned char *text, size_t n,
    size_t room, struct said *s)
{
	size_t written;

	s->plain = way->plain(text, n, &s->plain_why);
	s->read = s->length = 0;
	do {
		s->read += way->decode(text + s->read, n - s->read,
		    s->text + s->length, room, &written, &s->why);
		s->length += written;
		if (written > room)
			abort();
	} while (s->why == STRING_FULL);
}

bool
ways_agree(const unsigned char *text, size_t n)
{
	struct said one = { .text = malloc(n + 1024) }, other = one;
	bool agree = true;
	size_t i;

	other.text = malloc(n + 1024);
	if (one.text == NULL || other.text == NULL)
		abort();
	say(&ways[0], text, n, n + 1024, &one);
	for (i = 0; i < 2 * WAYS; i++) {
		say(&ways[i / 2], text, n, i % 2 == 0 ? n + 1024 : 300,
		    &other);
		agree = agree && one.plain == other.plain &&
		    one.plain_why == other.plain_why &&
		    one.read == other.read && one.why == other.why &&
		    one.length == other.length &&
		    memcmp(one.text, other.text, one.length) == 0;
	}
	free(one.text);
	free(other.text);
	return agree;
}
