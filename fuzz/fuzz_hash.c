/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_hash.c - a prompt given in pieces, against the same prompt whole.
 *
 * The input begins with a rule (kind, unit, EAGLE, block size); then each
 * byte is a step, followed by the bytes that the step needs: begin, units in
 * one piece or one by one, media, local hashes, end, all in one call, allowed
 * workers, scratch, a wrong unit, a failing allocation. A list of what was
 * given determines the result of each step. Whenever the prompt is closed, its
 * hashes must be those that plain.c computes one by one, and those of a second
 * prompt that got everything at once.
 */
#include "id.h"
#include "prompt.h"

#include "alloc.h"
#include "must.h"
#include "plain.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { UNITS_MAX = 1200, MEDIA_MAX = 64, STEPS_MAX = 80, SCOPES = 4 };

struct input {
	const uint8_t *at;
	size_t left;
};

/* What was given, and so what must come out. */
struct given {
	struct hash_rule rule;
	struct kvr_scope scopes[SCOPES]; /* the first is empty */
	const struct kvr_scope *scope;
	bool begun, closed, by_locals;
	size_t units, blocks;
	uint32_t tokens[UNITS_MAX];      /* or a byte each */
	unsigned char bytes[4 * UNITS_MAX];
	uint64_t local[UNITS_MAX];       /* of blocks that ... */
	bool is_local[UNITS_MAX];        /* ... were given by their hashes */
	struct hash_media media[MEDIA_MAX];
	size_t n_media, n_allowed;
	uint64_t random;
	bool armed;
};

/* One step, so that it can be repeated. */
struct step {
	unsigned what;
	size_t n, block;
	const struct kvr_scope *scope;
	bool wrong_unit;
	uint64_t words[8];
};

static unsigned
next(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void
setup(struct given *g, struct input *in)
{
	static const uint32_t sizes[] = { 16, 32, 64, 256, 8, 60, 61 };
	const unsigned kind = next(in), size = next(in);
	unsigned i;

	memset(g, 0, sizeof(*g));
	g->rule = plain_rule(kind & 1, kind >> 1 & 1, size < 7 ? sizes[size]
	    : size, (kind >> 2 & 1) & ~(kind >> 1), kind >> 3);
	for (i = 0; i < SCOPES; i++) {
		MUST(kvr_scope_init(&g->scopes[i],
		    sizeof(g->scopes[i])) == KVR_OK);
		MUST(hash_scope_set(&g->rule, &g->scopes[i],
		    KVR_SCOPE_ADAPTER, "a", i & 1) == KVR_OK);
		MUST(hash_scope_set(&g->rule, &g->scopes[i], KVR_SCOPE_SALT,
		    "s", i >> 1) == KVR_OK);
	}
}

/* -------------------------------------------------------- whole prompts --- */

static void
put_units(struct given *g, const struct step *s)
{
	const bool in_tokens = g->rule.unit == KVR_UNIT_TOKENS;
	size_t i;

	for (i = g->units; i < g->units + s->n; i++)
		plain_put(g->bytes + (in_tokens ? 4 * i : i), g->tokens[i],
		    in_tokens ? 4 : 1);
	g->units += s->n;
	g->blocks = plain_blocks(&g->rule, g->units);
	if (s->n > 0)
		g->closed = false;
}

/* A second prompt that gets all units in one call after all media. */
static void
at_once(const struct given *g, const uint64_t *local, const uint64_t *sequence)
{
	struct kvr_prompt *p;
	size_t i;

	MUST(prompt_new(&g->rule, &p) == KVR_OK);
	MUST(kvr_prompt_begin(p, g->scope) == KVR_OK);
	for (i = 0; i < g->n_media; i++)
		MUST(kvr_prompt_media(p, g->media[i].block, &g->media[i].hash,
		    1) == KVR_OK);
	if (g->rule.unit == KVR_UNIT_TOKENS)
		MUST(kvr_prompt_tokens(p, g->tokens, g->units) == KVR_OK);
	else
		MUST(kvr_prompt_bytes(p, g->bytes, g->units) == KVR_OK);
	MUST(kvr_prompt_end(p, NULL) == KVR_OK);
	MUST(p->blocks == g->blocks);
	if (p->blocks > 0) {
		MUST(memcmp(p->local, local, p->blocks * 8) == 0);
		MUST(memcmp(p->sequence, sequence, p->blocks * 8) == 0);
	}
	kvr_prompt_free(p);
}

static void
compare_hashes(const struct given *g, const struct kvr_prompt *p)
{
	const struct plain plain = { &g->rule, g->scope, g->bytes, g->units,
	    g->media, g->n_media };
	static uint64_t local[UNITS_MAX], sequence[UNITS_MAX];
	uint64_t l, s;
	size_t i;

	for (i = 0; i < g->blocks; i++)
		local[i] = g->is_local[i] ? g->local[i]
		    : plain_local(&plain, i);
	plain_chain(&g->rule, g->scope, local, g->blocks, sequence);
	MUST(p->root == plain_root(&g->rule, g->scope));
	for (i = 0; i < g->blocks; i++) {
		MUST(kvr_prompt_hash(p, i, &l, &s) == KVR_OK);
		MUST(l == local[i] && s == sequence[i]);
	}
	MUST(kvr_prompt_hash(p, i, &l, &s) == KVR_EINVAL);
	if (!g->by_locals)
		at_once(g, local, sequence);
}

/* Everything that a user can see. */
static void
compare(const struct given *g, const struct kvr_prompt *p)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t l, s;

	MUST(kvr_prompt_info_get(p, &info) == KVR_OK);
	MUST(info.units == g->units && info.blocks == g->blocks);
	MUST(info.tail == g->units - g->blocks * g->rule.block_size);
	MUST(info.tokens == (g->rule.unit == KVR_UNIT_TOKENS ? g->units
	    : (g->units + 3) / 4));
	MUST(p->n_allowed == g->n_allowed);
	MUST(p->closed == g->closed);
	if (!g->closed)
		MUST(kvr_prompt_hash(p, 0, &l, &s) == KVR_ESTATE);
}

/* ---------------------------------------------------------------- steps --- */

enum {
	BEGIN, UNITS, ONE_BY_ONE, MEDIA, LOCALS, END, SET, ALLOW, SCRATCH,
	FAIL, WHATS
};

/* The next units, in place; few different ones, so that some repeat. */
static size_t
draw_units(struct given *g, size_t from, size_t n)
{
	size_t i;

	if (n > UNITS_MAX - from)
		n = UNITS_MAX - from;
	for (i = from; i < from + n; i++) {
		g->tokens[i] = (uint32_t)(plain_random(&g->random) % 3);
		if (g->rule.unit == KVR_UNIT_TOKENS && i % 2 == 1)
			g->tokens[i] *= 0x01020304;
	}
	return n;
}

static struct step
draw(struct given *g, struct input *in)
{
	struct step s = { .what = next(in) % WHATS };
	const unsigned size = next(in);
	size_t i;

	s.n = size;
	s.scope = size % 5 == 4 ? NULL : &g->scopes[size % 5];
	s.wrong_unit = (s.what == UNITS || s.what == SET) && size == 255;
	if (s.what == UNITS)
		s.n = draw_units(g, g->units, size);
	if (s.what == ONE_BY_ONE)
		s.n = draw_units(g, g->units, size % 32);
	if (s.what == SET)
		s.n = size * 3 < UNITS_MAX ? size * 3 : UNITS_MAX;
	if (s.what == MEDIA || s.what == LOCALS || s.what == ALLOW) {
		s.block = g->blocks + size / 8 % 8;
		s.block -= s.block > 0 ? 1 : 0;
		s.n = size % 8;
		if (s.what == MEDIA && s.n > MEDIA_MAX - g->n_media)
			s.n = MEDIA_MAX - g->n_media;
		if (s.what == LOCALS && (g->blocks + s.n + 1) *
		    g->rule.block_size >= UNITS_MAX)
			s.n = 0;
		for (i = 0; i < s.n; i++)
			s.words[i] = plain_random(&g->random) % 4;
	}
	return s;
}

static int
give(struct kvr_prompt *p, const struct given *g, size_t from, size_t n,
    bool wrong_unit)
{
	unsigned char bytes[UNITS_MAX];
	size_t i;

	if ((g->rule.unit == KVR_UNIT_TOKENS) != wrong_unit)
		return kvr_prompt_tokens(p, g->tokens + from, n);
	for (i = 0; i < n; i++)
		bytes[i] = (unsigned char)g->tokens[from + i];
	return kvr_prompt_bytes(p, bytes, n);
}

static int
set(struct kvr_prompt *p, struct given *g, const struct step *s)
{
	static struct given fresh;
	unsigned char bytes[UNITS_MAX];
	size_t i;

	/* Units are drawn anew, but the same when the step is repeated. */
	fresh.rule = g->rule;
	fresh.random = s->n;
	draw_units(&fresh, 0, s->n);
	if ((g->rule.unit == KVR_UNIT_TOKENS) != s->wrong_unit)
		return kvr_prompt_set_tokens(p, s->scope, fresh.tokens, s->n);
	for (i = 0; i < s->n; i++)
		bytes[i] = (unsigned char)fresh.tokens[i];
	return kvr_prompt_set_bytes(p, s->scope, bytes, s->n);
}

static int
take(struct kvr_prompt *p, struct given *g, const struct step *s)
{
	switch (s->what) {
	case BEGIN:
		return kvr_prompt_begin(p, s->scope);
	case UNITS:
	case ONE_BY_ONE:
		return give(p, g, g->units, s->n, s->wrong_unit);
	case MEDIA:
		return kvr_prompt_media(p, s->block, s->words, s->n);
	case LOCALS:
		return kvr_prompt_locals(p, s->words, s->n);
	case END:
		return kvr_prompt_end(p, s->scope);
	case SET:
		return set(p, g, s);
	case ALLOW:
		return kvr_prompt_allow(p, s->words, s->n);
	default:
		return prompt_scratch(p, s->n * 100) != NULL ? KVR_OK
		    : KVR_ENOMEM;
	}
}

static bool
media_ahead(const struct given *g, size_t n)
{
	size_t i;

	for (i = 0; i < g->n_media; i++)
		if (g->media[i].block >= g->blocks &&
		    g->media[i].block < g->blocks + n)
			return true;
	return false;
}

static bool
names_a_lease(const struct step *s)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (id_is_lease(s->words[i]))
			return true;
	return false;
}

/* What the header says a step returns. */
static int
due(const struct given *g, const struct step *s)
{
	const bool dynamo = g->rule.kind == KVR_HASH_DYNAMO;
	const size_t tail = g->units - g->blocks * g->rule.block_size;

	if (s->wrong_unit)
		return KVR_EINVAL;
	if (s->what == BEGIN || s->what == SET || s->what == SCRATCH)
		return KVR_OK;
	if (!g->begun)
		return KVR_ESTATE;
	if (s->what == MEDIA)
		return s->block < g->blocks ? KVR_ESTATE : KVR_OK;
	if (s->what == ALLOW)
		return names_a_lease(s) ? KVR_EWORKER : KVR_OK;
	if (s->what == END)
		return dynamo && s->scope != NULL ? KVR_EINVAL : KVR_OK;
	if (s->what == LOCALS && (media_ahead(g, s->n) ||
	    (tail > 0 && !(g->rule.eagle && g->by_locals))))
		return KVR_ESTATE;
	if ((s->what == UNITS || s->what == ONE_BY_ONE) && g->rule.eagle &&
	    g->by_locals)
		return KVR_ESTATE;
	return KVR_OK;
}

static void
forget(struct given *g, const struct kvr_scope *scope)
{
	g->scope = scope != NULL ? scope : &g->scopes[0];
	g->begun = true;
	g->closed = g->by_locals = false;
	g->units = g->blocks = g->n_media = g->n_allowed = 0;
	memset(g->is_local, 0, sizeof(g->is_local));
}

static void
note_locals(struct given *g, const struct step *s)
{
	size_t i;

	if (s->n == 0)
		return;
	for (i = 0; i < s->n; i++) {
		g->is_local[g->blocks] = true;
		g->local[g->blocks++] = s->words[i];
	}
	g->units = g->blocks * g->rule.block_size + g->rule.eagle;
	g->by_locals = true;
	g->closed = false;
}

/* The step succeeded: updates what was given. */
static void
note(struct given *g, const struct step *s)
{
	size_t i;

	if (s->what == BEGIN || s->what == SET)
		forget(g, s->scope);
	if (s->what == SET) {
		uint64_t random = g->random;

		g->random = s->n;
		draw_units(g, 0, s->n);
		g->random = random;
	}
	if (s->what == UNITS || s->what == ONE_BY_ONE || s->what == SET)
		put_units(g, s);
	for (i = 0; s->what == MEDIA && i < s->n; i++) {
		g->media[g->n_media].block = (uint32_t)s->block;
		g->media[g->n_media++].hash = s->words[i];
	}
	if (s->what == LOCALS)
		note_locals(g, s);
	if (s->what == END && s->scope != NULL)
		g->scope = s->scope;
	if (s->what == END || s->what == SET)
		g->closed = true;
	if (s->what == ALLOW)
		g->n_allowed = s->n;
}

/*
 * Takes the step; if memory failed, nothing has changed, and it is repeated
 * with memory. Hashes are compared only where needed: it is slow.
 */
static void
carry_out(struct kvr_prompt *p, struct given *g, const struct step *s)
{
	const int want = due(g, s);
	int e = take(p, g, s);

	if (e == KVR_ENOMEM) {
		MUST(g->armed && want == KVR_OK);
		alloc_reset();
		g->armed = false;
		compare(g, p);
		if (g->closed)
			compare_hashes(g, p);
		e = take(p, g, s);
	}
	MUST(e == want);
	if (e == KVR_OK)
		note(g, s);
	compare(g, p);
	if (g->closed && (s->what == END || s->what == SET || e != KVR_OK)) {
		alloc_reset();
		g->armed = false;
		compare_hashes(g, p);
	}
}

static void
one_by_one(struct kvr_prompt *p, struct given *g, struct step *s)
{
	size_t n = s->n;

	for (s->n = 1; n > 0; n--)
		carry_out(p, g, s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct given g;
	struct input in = { data, size };
	struct kvr_prompt *p;
	struct step s;
	unsigned i;

	alloc_reset();
	setup(&g, &in);
	MUST(prompt_new(&g.rule, &p) == KVR_OK);
	for (i = 0; i < STEPS_MAX && in.left > 0; i++) {
		s = draw(&g, &in);
		if (s.what == FAIL) {
			(s.n & 64 ? alloc_fail_from : alloc_fail_at)(s.n % 4);
			g.armed = s.n % 4 != 0;
		} else if (s.what == ONE_BY_ONE) {
			one_by_one(p, &g, &s);
		} else {
			carry_out(p, &g, &s);
		}
	}
	alloc_reset();
	kvr_prompt_free(p);
	return 0;
}
