/* SPDX-License-Identifier: BSD-2-Clause */
/* bodies.c - see bodies.h. */
#include "bodies.h"

#include <stdlib.h>
#include <string.h>

#include "body_yajl.h"
#include "rng.h"

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

struct kvr *
bodies_region(void)
{
	struct kvr_options o;
	struct kvr *k = NULL;

	kvr_options_init(&o, sizeof(o));
	o.region_bytes = 1 << 20;
	o.unit = KVR_UNIT_BYTES;
	o.block_size = 1;
	o.max_workers = 4;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 0x5a, sizeof(o.secret) / 2);
	demand(kvr_new(&o, &k) == KVR_OK);
	return k;
}

static size_t
length_of(const struct pieces *pieces, size_t at, size_t left, struct rng *rng)
{
	size_t n = at == 0 && pieces->first > 0 ? pieces->first : pieces->step;

	if (pieces->random != 0)
		n = (size_t)rng_between(rng, 0, UINT64_C(1) <<
		    rng_between(rng, 0, 11));
	else if (n == 0)
		n = left;
	return n < left ? n : left;
}

static void
give(struct body *b, const unsigned char *text, size_t n,
    const struct pieces *pieces)
{
	struct rng rng = { pieces->random };
	unsigned char *copy;
	size_t at = 0, length;

	while (at < n) {
		length = length_of(pieces, at, n - at, &rng);
		copy = malloc(length == 0 ? 1 : length);
		demand(copy != NULL);
		memcpy(copy, text + at, length);
		body_data(b, copy, length);
		free(copy);
		at += length;
	}
	if (pieces->more)
		body_cut(b);
}

/* Fills in the rest to compare, after the end of the body. */
static void
look(const struct body *b, const struct kvr *k, struct kvr_prompt *p,
    struct taken *out)
{
	struct kvr_prompt_info info;
	uint64_t local;
	size_t i;

	demand(out->facts.model_length <= sizeof(out->name));
	memcpy(out->name, out->facts.model, out->facts.model_length);
	out->facts.model = NULL;
	for (i = 0; i < BODY_IDS; i++) {
		demand(out->facts.id_length[i] <= sizeof(out->id[i]));
		memcpy(out->id[i], out->facts.id[i], out->facts.id_length[i]);
		out->facts.id[i] = NULL;
	}
	kvr_scope_init(&out->scope, sizeof(out->scope));
	demand(body_scope(b, k, &out->scope) == KVR_OK);
	demand(kvr_prompt_end(p, NULL) == KVR_OK);
	info.size = sizeof(info);
	demand(kvr_prompt_info_get(p, &info) == KVR_OK);
	demand(info.units == info.blocks);
	out->units = info.units;
	if (info.units > 0)
		demand(kvr_prompt_hash(p, info.blocks - 1, &local,
		    &out->hash) == KVR_OK);
}

void
bodies_take(struct body *b, const struct kvr *k, struct kvr_prompt *p,
    enum endpoint endpoint, const void *text, size_t n,
    const struct pieces *pieces, struct taken *out)
{
	memset(out, 0, sizeof(*out));
	body_begin(b, pieces->later ? NULL : p, endpoint);
	give(b, text, n, pieces);
	out->outcome = body_end(b, &out->facts);
	if (pieces->later) {
		(void)kvr_prompt_begin(p, NULL);
		out->outcome = body_prompt(b, p);
	}
	look(b, k, p, out);
}

void
bodies_take_yajl(struct body *b, const struct kvr *k, struct kvr_prompt *p,
    enum endpoint endpoint, const void *text, size_t n, bool more,
    struct taken *out)
{
	memset(out, 0, sizeof(*out));
	out->outcome = body_yajl(b, p, endpoint, text, n, more, &out->facts);
	look(b, k, p, out);
}

static bool
same_facts(const struct body_facts *a, const struct body_facts *b)
{
	return a->model_length == b->model_length && a->end == b->end &&
	    a->messages == b->messages && a->bytes == b->bytes &&
	    a->opening == b->opening &&
	    a->ahead == b->ahead && a->cut == b->cut &&
	    a->stream == b->stream &&
	    a->usage == b->usage &&
	    a->several == b->several && a->many == b->many &&
	    a->media == b->media &&
	    a->prompt_logprobs == b->prompt_logprobs &&
	    a->stored == b->stored && a->unstored == b->unstored &&
	    a->extends == b->extends;
}

/* The bytes behind the end of an id are zero in both. */
static bool
same_ids(const struct taken *a, const struct taken *b)
{
	return memcmp(a->facts.id_length, b->facts.id_length,
	    sizeof(a->facts.id_length)) == 0 &&
	    memcmp(a->id, b->id, sizeof(a->id)) == 0;
}

bool
bodies_equal(const struct taken *a, const struct taken *b)
{
	return a->outcome == b->outcome && same_facts(&a->facts, &b->facts) &&
	    same_ids(a, b) &&
	    memcmp(a->name, b->name, a->facts.model_length) == 0 &&
	    memcmp(&a->scope, &b->scope, sizeof(a->scope)) == 0 &&
	    a->units == b->units && a->hash == b->hash;
}

bool
bodies_later(const struct taken *later, const struct taken *now)
{
	if (now->outcome == BODY_PROMPT)
		return bodies_equal(later, now);
	return later->outcome == now->outcome && later->units == 0 &&
	    same_ids(later, now) && later->facts.model_length ==
	    now->facts.model_length;
}

bool
bodies_begins(const struct kvr_prompt *p, const struct taken *other)
{
	uint64_t local, sequence;

	if (other->units == 0)
		return true;
	return kvr_prompt_hash(p, (size_t)other->units - 1, &local,
	    &sequence) == KVR_OK && sequence == other->hash;
}
