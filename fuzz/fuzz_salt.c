/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_salt.c - any bytes as a body that is salted.
 *
 * The first byte is the length of pieces (0: whole), the second that of the
 * value, which comes next; the rest is the body. Pieces do not matter. What
 * YAJL takes for an object within the bounds is not refused; with the salt it
 * is one again, has this salt and no other, and is the same else. Without it,
 * the client's ones blanked, it is an object, too.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "salts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static bool
same(const struct salt *a, const struct salt *b)
{
	return a->spans == b->spans && a->end == b->end &&
	    a->comma == b->comma &&
	    memcmp(a->span, b->span, a->spans * sizeof(a->span[0])) == 0;
}

static void
look(const struct salts_seen *was, const uint8_t *sent, size_t n,
    const uint8_t *value, size_t n_value)
{
	struct salts_seen is = salts_look(sent, n);

	demand(is.valid && is.salts == 1 && is.rest == was->rest);
	demand(is.n_value == n_value);
	demand(memcmp(is.value, value, n_value) == 0);
}

/* As a mirror gets it that sets no salt. */
static void
look_bare(const struct salts_seen *was, const uint8_t *sent, size_t n)
{
	struct salts_seen is = salts_look(sent, n);

	demand(is.valid && is.salts == 0 && is.rest == was->rest);
}

/* YAJL takes a string without an end for nothing, behind the object. */
static bool
trails(const struct salt *s, const uint8_t *body, size_t n)
{
	return s->end > 0 && memchr(body + s->end, '"', n - s->end) != NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct salts_seen was;
	struct salt one, many;
	size_t n_value, n, length;
	const uint8_t *value, *body;
	unsigned char *sent;
	bool good;

	if (size < 2 || size - 2 < data[1] % 32u)
		return 0;
	n_value = data[1] % 32u;
	value = data + 2;
	body = value + n_value;
	n = size - 2 - n_value;
	good = salts_read(&one, body, n, 0);
	demand(salts_read(&many, body, n, 1u + data[0]) == good);
	was = salts_look(body, n);
	if (!good) {
		demand(!was.valid || was.depth > SALT_DEPTH ||
		    was.salts > SALT_SPANS || trails(&one, body, n));
		return 0;
	}
	demand(same(&one, &many));
	demand(!was.valid || was.salts == one.spans);
	sent = salts_blank(&one, body, n);
	if (was.valid)
		look_bare(&was, sent, n);
	free(sent);
	sent = salts_apply(&one, body, n, value, n_value, &length);
	if (sent != NULL && was.valid)
		look(&was, sent, length, value, n_value);
	free(sent);
	return 0;
}
