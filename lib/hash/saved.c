/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * saved.c - the end of a prompt, to go on there later.
 *
 * A proxy that streams an answer for minutes wants to extend the lease by it in
 * the end, and has thousands of streams. To hash on, it needs little of a
 * prompt:
 *
 *   prompt     | block 0 | block 1 |   ...   | block n - 1 | tail    media n
 *   local           l0        l1                  l[n-1]     |          |
 *   sequence        s0        s1               ,- s[n-1]     |          |
 *                                             |              |          |
 *   saved      scope, units, n, state of the chain,        tail,      media
 *
 *   resumed    ................. first = n ....| new | new | tail
 *   sequence                          [ s[n-1]   s[n]  ... ]    base = n - 1
 *
 * The state of the chain gives s[n-1], by which an extension knows the block
 * where its lease ends. The hashes before it are gone, so calls that walk from
 * the root refuse a resumed prompt (txn_check_prompt).
 *
 * The format is a struct of words and the bytes of the tail, in the byte order
 * of the machine. It comes back through the caller's hands: its length, its
 * version, the rule and every number are checked, and a digest under the
 * region's secret covers all of it. So bytes that were cut, mixed up or
 * overwritten are refused, and a number that a caller could not have made is no
 * danger either: no memory is allocated for blocks that are not new.
 */
#include "prompt.h"

enum { SAVED_VERSION = 1 };

#define SAVED_MAGIC UINT64_C(0x65766173) /* in the upper half of `kind` */

struct saved {
	uint64_t check;     /* of all that follows */
	uint64_t kind;      /* magic and version */
	uint64_t rule;
	uint64_t digest[4]; /* the scope */
	uint64_t units;
	uint64_t state;     /* of the chain */
	uint32_t blocks;
	uint32_t by_locals;
	uint64_t n_media;
	/* struct saved_media [n_media], and the rest: the tail */
};

struct saved_media {
	uint64_t block, hash;
};

/* --------------------------------------------------------------- saving --- */

/* Media of blocks that are complete are in their hashes. */
static size_t
media_left(const struct kvr_prompt *p)
{
	return p->n_media - p->next_media;
}

size_t
kvr_prompt_saved_bytes(const struct kvr_prompt *p)
{
	if (p == NULL || !p->closed || !p->begun)
		return 0;
	return sizeof(struct saved) + media_left(p) *
	    sizeof(struct saved_media) + p->tail_bytes;
}

/* The digest of everything after itself. */
static uint64_t
check_of(const struct hash_rule *rule, const unsigned char *from, size_t bytes)
{
	const size_t after = sizeof(uint64_t);

	return hash_tail(rule, from + after, bytes - after);
}

static void
put_media(const struct kvr_prompt *p, unsigned char *to)
{
	struct saved_media media;
	size_t i;

	for (i = p->next_media; i < p->n_media; i++, to += sizeof(media)) {
		media.block = p->media[i].block;
		media.hash = p->media[i].hash;
		memcpy(to, &media, sizeof(media));
	}
}

int
kvr_prompt_save(const struct kvr_prompt *p, void *out, size_t bytes)
{
	const size_t need = kvr_prompt_saved_bytes(p);
	unsigned char *to = out;
	struct saved s;

	if (p == NULL || out == NULL)
		return KVR_EINVAL;
	if (!p->closed || !p->begun)
		return KVR_ESTATE;
	if (bytes < need)
		return KVR_EINVAL;
	memset(&s, 0, sizeof(s));
	s.kind = SAVED_MAGIC << 32 | SAVED_VERSION;
	s.rule = p->rule.id;
	memcpy(s.digest, p->scope.digest, sizeof(s.digest));
	s.units = p->units;
	s.state = p->chain.state;
	s.blocks = p->blocks;
	s.by_locals = p->by_locals;
	s.n_media = media_left(p);
	memcpy(to, &s, sizeof(s));
	put_media(p, to + sizeof(s));
	memcpy(to + need - p->tail_bytes, p->tail, p->tail_bytes);
	s.check = check_of(&p->rule, to, need);
	memcpy(to, &s.check, sizeof(s.check));
	return KVR_OK;
}

/* ------------------------------------------------------------- resuming --- */

/* Bytes of the tail by the numbers; SIZE_MAX: the numbers are not valid. */
static size_t
tail_of(const struct hash_rule *rule, const struct saved *s)
{
	const size_t unit = rule->unit == KVR_UNIT_TOKENS ? sizeof(uint32_t)
	    : 1;
	const uint64_t whole = (uint64_t)s->blocks * rule->block_size;
	const uint64_t ahead = rule->eagle && s->blocks > 0;

	if (s->units < whole + ahead ||
	    s->units - whole >= hash_window(rule) / unit)
		return SIZE_MAX;
	/* the token after blocks that were given as hashes is not known */
	if (rule->eagle && s->by_locals)
		return s->units - whole == ahead ? 0 : SIZE_MAX;
	return (size_t)(s->units - whole) * unit;
}

/* Whether kvr_prompt_save wrote the bytes for this rule. */
static int
saved_get(const struct hash_rule *rule, const void *saved, size_t bytes,
    struct saved *s)
{
	size_t tail, media;

	if (bytes < sizeof(*s))
		return KVR_EFORMAT;
	memcpy(s, saved, sizeof(*s));
	if (s->kind >> 32 != SAVED_MAGIC)
		return KVR_EFORMAT;
	if ((uint32_t)s->kind != SAVED_VERSION)
		return KVR_EVERSION;
	if (s->rule != rule->id)
		return KVR_EMISMATCH;
	if (s->check != check_of(rule, saved, bytes) || s->by_locals > 1 ||
	    s->blocks >= UINT32_MAX)
		return KVR_EFORMAT;
	tail = tail_of(rule, s);
	media = bytes - sizeof(*s);
	if (tail > media)
		return KVR_EFORMAT;
	media -= tail;
	return s->n_media == media / sizeof(struct saved_media) &&
	    media % sizeof(struct saved_media) == 0 ? KVR_OK : KVR_EFORMAT;
}

static const unsigned char *
media_get(const unsigned char *from, struct saved_media *media)
{
	memcpy(media, from, sizeof(*media));
	return from + sizeof(*media);
}

/* Media are of blocks that are not complete. */
static bool
media_ok(const struct saved *s, const unsigned char *from)
{
	struct saved_media media;
	uint64_t i;

	for (i = 0; i < s->n_media; i++) {
		from = media_get(from, &media);
		if (media.block < s->blocks || media.block >= UINT32_MAX - 1)
			return false;
	}
	return true;
}

/* Nothing here can fail: the prompt has begun, and has room. */
static void
take_saved(struct kvr_prompt *p, const struct saved *s,
    const unsigned char *from, size_t bytes)
{
	struct saved_media media;
	uint64_t i;

	for (i = 0; i < s->n_media; i++) {
		from = media_get(from, &media);
		(void)kvr_prompt_media(p, (size_t)media.block, &media.hash, 1);
	}
	p->tail_bytes = bytes - sizeof(*s) -
	    (size_t)s->n_media * sizeof(media);
	memcpy(p->tail, from, p->tail_bytes);
	p->resumed = 1;
	p->by_locals = s->by_locals;
	p->units = s->units;
	p->blocks = p->first = s->blocks;
	p->base = s->blocks > 0 ? s->blocks - 1 : 0;
	p->chain.blocks = s->blocks;
	if (s->blocks == 0)
		return;
	p->chain.state = s->state;
	p->local[0] = 0;
	p->sequence[0] = hash_chain_end(&p->rule, &p->chain);
}

int
kvr_prompt_resume(struct kvr_prompt *p, const void *saved, size_t bytes)
{
	const unsigned char *after;
	struct kvr_scope scope;
	struct saved s;
	int e;

	if (p == NULL || saved == NULL)
		return KVR_EINVAL;
	if ((e = saved_get(&p->rule, saved, bytes, &s)) != KVR_OK)
		return e;
	after = (const unsigned char *)saved + sizeof(s);
	kvr_scope_init(&scope, sizeof(scope));
	memcpy(scope.digest, s.digest, sizeof(scope.digest));
	if (!media_ok(&s, after) ||
	    hash_scope_get(&p->rule, &scope, &scope) != KVR_OK)
		return KVR_EFORMAT;
	if ((e = prompt_room(p, 1, (size_t)s.n_media)) != KVR_OK)
		return e;
	(void)kvr_prompt_begin(p, &scope);
	take_saved(p, &s, after, bytes);
	return KVR_OK;
}
