/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_body.c - any bytes as the body of a request.
 *
 * The first byte is the endpoint (and whether the body is marked incomplete),
 * the second says how the pieces are cut, the third which allocation fails (0:
 * none), the rest is the body. It is read in one piece, in many, with its
 * prompt later, and by YAJL, with the same result; and its strings in each way
 * there is, see ways.h. The prompt must be no larger than the body allows; a
 * failed allocation is BODY_NO_MEMORY or has no effect; and one struct body
 * reads all of these, one after the other. Lines that begin with '-' do not
 * count if the first byte says so.
 */
#include "bodies.h"

#include <stdlib.h>

#include "alloc.h"
#include "ways.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MARKS = 12 }; /* bytes of marks for a byte of JSON, at most */

static struct kvr *region;
static struct kvr_prompt *prompt;
static struct body *body;

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static bool
is_ignored(void *context, const char *line, size_t n)
{
	(void)context;
	return n > 0 && *line == '-';
}

static bool ignores;

static void
lines_choose(struct body *b)
{
	body_ignore(b, ignores ? is_ignored : NULL, NULL);
}

static void
prepare(void)
{
	if (region != NULL)
		return;
	region = bodies_region();
	demand(kvr_prompt_new(region, &prompt) == KVR_OK);
	body = body_new();
	demand(body != NULL);
}

static void
look(const struct taken *t, const uint8_t *text, size_t n)
{
	demand(t->facts.bytes == t->units);
	demand(t->units <= 64 + (uint64_t)n * MARKS);
	demand(t->facts.messages <= n);
	demand(t->facts.cut ? t->facts.end == 0 : t->facts.end < n &&
	    text[t->facts.end] == '}');
	demand(t->outcome != BODY_NO_MEMORY);
	demand((t->outcome == BODY_EMPTY) == (n == 0));
	if (t->outcome == BODY_PROMPT)
		demand(t->units > 0);
}

/* With too little memory, as a body of its own and then another. */
static void
starve(enum endpoint endpoint, const uint8_t *text, size_t n,
    const struct pieces *pieces, unsigned long fails, const struct taken *want)
{
	struct body *b;
	struct taken got;

	alloc_fail_at(fails);
	b = body_new();
	if (b != NULL) {
		lines_choose(b);
		bodies_take(b, region, prompt, endpoint, text, n, pieces,
		    &got);
		demand(got.outcome == BODY_NO_MEMORY ||
		    bodies_equal(&got, want));
		alloc_reset();
		bodies_take(b, region, prompt, endpoint, text, n, pieces,
		    &got);
		demand(bodies_equal(&got, want));
	}
	alloc_reset();
	body_free(b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pieces whole = { 0 }, many = { 0 };
	struct taken one, more;
	enum endpoint endpoint;

	if (size < 3)
		return 0;
	prepare();
	endpoint = 1 + data[0] % (ENDPOINTS - 1);
	ignores = (data[0] & 0x40) != 0;
	lines_choose(body);
	whole.more = many.more = data[0] >= 0x80;
	if (data[1] < 0x40)
		many.step = 1u + data[1];
	else
		many.random = data[1];
	bodies_take(body, region, prompt, endpoint, data + 3, size - 3,
	    &whole, &one);
	look(&one, data + 3, size - 3);
	bodies_take(body, region, prompt, endpoint, data + 3, size - 3,
	    &many, &more);
	demand(bodies_equal(&one, &more));
	many.later = true;
	bodies_take(body, region, prompt, endpoint, data + 3, size - 3,
	    &many, &more);
	demand(bodies_later(&more, &one));
	many.later = false;
	bodies_take_yajl(body, region, prompt, endpoint, data + 3, size - 3,
	    whole.more, &more);
	demand(bodies_equal(&one, &more));
	demand(ways_agree(data + 3, size - 3));
	if (data[2] > 0)
		starve(endpoint, data + 3, size - 3, &many, data[2], &one);
	return 0;
}
