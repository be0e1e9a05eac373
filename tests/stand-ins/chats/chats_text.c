/* SPDX-License-Identifier: BSD-2-Clause */
/* chats_text.c - see chats_text.h. */
#include "chats_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rng
text_stream(uint64_t seed, uint64_t user, uint64_t kind)
{
	struct rng r = { seed };

	r.state = rng_next(&r) + user;
	r.state = rng_next(&r) + kind;
	(void)rng_next(&r);
	return r;
}

/* Makes at most 20 bytes, and a blank. */
static size_t
make_word(struct rng *r, char *out)
{
	static const char begin[] = "bcdfghjklmnprstvwz";
	static const char *const end[] = {
		"a", "e", "i", "o", "u", "an", "er", "is", "on",
		"é", "ü", "ó"
	};
	uint64_t bits = rng_next(r);
	size_t n = 0, syllables = 1 + (bits & 3), i;

	if (bits >> 60 == 0)
		return (size_t)snprintf(out, 22, "%u ",
		    (unsigned)(bits >> 8 & 0xfffff));
	bits >>= 4;
	for (i = 0; i < syllables; i++) {
		const char *s = end[(bits & 15) % 12];

		out[n++] = begin[(bits >> 4 & 31) % 18];
		memcpy(&out[n], s, strlen(s));
		n += strlen(s);
		bits >>= 9;
	}
	out[n++] = ' ';
	return n;
}

char *
text_make(struct rng *r, size_t bytes, const char *tail)
{
	size_t n_tail = strlen(tail);
	char *text = malloc(bytes + n_tail + 1);
	char word[24];
	size_t n = 0, length;

	if (text == NULL)
		return NULL;
	for (;;) {
		length = make_word(r, word);
		if (n + length > bytes)
			break;
		memcpy(&text[n], word, length);
		n += length;
	}
	memset(&text[n], '.', bytes - n);
	memcpy(&text[bytes], tail, n_tail + 1);
	return text;
}

uint32_t
text_pick(struct rng *r, uint32_t n)
{
	double all = 0, at;
	uint32_t i;

	for (i = 0; i < n; i++)
		all += 1.0 / (i + 1);
	at = (double)(rng_next(r) >> 11) * 0x1p-53 * all;
	for (i = 0; i + 1 < n; i++) {
		at -= 1.0 / (i + 1);
		if (at < 0)
			break;
	}
	return i;
}
