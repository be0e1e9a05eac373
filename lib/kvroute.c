/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute.c - public calls on handles and workers: check every argument, take
 * the lock, call inward. Those on requests are in request.c, those that look
 * inside in stats.c.
 */
#include "internal.h"

#include <stdlib.h>

#include <bsd/stdlib.h>

enum {
	BLOCK_BYTES_MAX = 256 * 1024,
	BLOCK_TOKENS_MAX = BLOCK_BYTES_MAX / 4
};

/* ------------------------------------------------------------- options --- */

int
kvr_options_init(struct kvr_options *o, size_t size)
{
	struct kvr_options d;

	memset(&d, 0, sizeof(d));
	d.region_bytes = UINT64_C(64) << 20;
	d.ttl_ns = INT64_C(120) * 1000000000;
	d.lease_limit_ns = INT64_C(3600) * 1000000000;
	d.block_size = KVR_AUTO;
	d.max_workers = 256;
	d.max_prompt_blocks = KVR_AUTO;
	return struct_init(o, size, &d, sizeof(d));
}

static int
options_check(const struct kvr_options *o)
{
	uint32_t most = o->unit == KVR_UNIT_BYTES ? BLOCK_BYTES_MAX
	    : BLOCK_TOKENS_MAX;

	if (o->unit > KVR_UNIT_BYTES || o->hash > KVR_HASH_DYNAMO ||
	    o->secret_kind > KVR_SECRET_GIVEN || o->eagle > 1 ||
	    o->reserved != 0)
		return KVR_EINVAL;
	if (o->eagle == 1 && o->unit == KVR_UNIT_BYTES)
		return KVR_EINVAL;
	if (o->block_size < 1 || o->block_size > most ||
	    o->max_workers < 1 || o->max_workers > KVR_WORKERS_MAX ||
	    o->max_prompt_blocks < 1 || o->max_prompt_blocks > KVR_AUTO)
		return KVR_EINVAL;
	if (o->ttl_ns < KVR_TTL_ENDLESS || o->lease_limit_ns < 1)
		return KVR_EINVAL;
	return KVR_OK;
}

/* Zeros are what an unset secret looks like, and XXH3 collides under them. */
static bool
secret_ok(const struct kvr_options *o)
{
	static const unsigned char zeros[KVR_SECRET_BYTES];

	return o->hash != KVR_HASH_KEYED ||
	    o->secret_kind != KVR_SECRET_GIVEN ||
	    memcmp(o->secret, zeros, sizeof(zeros)) != 0;
}

/* The caller's options over the defaults, checked, block size resolved. */
static int
options_get(const struct kvr_options *from, struct kvr_options *o)
{
	(void)kvr_options_init(o, sizeof(*o));
	if (from != NULL && !struct_copy(o, sizeof(*o), from, from->size))
		return KVR_EINVAL;
	if (o->block_size == KVR_AUTO)
		o->block_size = o->unit == KVR_UNIT_BYTES ? 256 : 16;
	return secret_ok(o) ? options_check(o) : KVR_EINVAL;
}

static void
rule_of(const struct kvr_options *o, struct hash_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->unit = o->unit;
	rule->block_size = o->block_size;
	rule->kind = o->hash;
	rule->eagle = o->eagle;
	if (o->secret_kind == KVR_SECRET_GIVEN)
		memcpy(rule->secret, o->secret, sizeof(rule->secret));
	else
		arc4random_buf(rule->secret, sizeof(rule->secret));
	hash_rule_seal(rule);
}

int
kvr_get_options(const struct kvr *k, struct kvr_options *out)
{
	struct kvr_options o;
	const struct seal *s;

	if (k == NULL || out == NULL)
		return KVR_EINVAL;
	s = &k->region->seal;
	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = s->bytes;
	o.ttl_ns = s->ttl;
	o.lease_limit_ns = s->lease_limit;
	o.unit = s->rule.unit;
	o.block_size = s->rule.block_size;
	o.hash = s->rule.kind;
	o.eagle = s->rule.eagle;
	o.max_workers = s->max_workers;
	o.max_prompt_blocks = s->max_prompt_blocks;
	o.secret_kind = s->secret_kind;
	return struct_copy(out, out->size, &o, sizeof(o)) ? KVR_OK
	    : KVR_EINVAL;
}

/* ------------------------------------------------------------- handles --- */

static int
format(const struct kvr_options *o, void *memory, uint64_t bytes, bool shared,
    struct kvr *k)
{
	struct hash_rule rule;
	uint64_t key[12];
	int error;

	rule_of(o, &rule);
	arc4random_buf(key, sizeof(key));
	error = region_format(o, &rule, key, memory, bytes, shared);
	return error != KVR_OK ? error : region_attach(memory, bytes, k);
}

int
kvr_new(const struct kvr_options *options, struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error;

	if (out == NULL)
		return KVR_EINVAL;
	error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	if (o.region_bytes > PTRDIFF_MAX - CELL)
		return KVR_EINVAL;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	k->owned = malloc((size_t)o.region_bytes + CELL);
	error = KVR_ENOMEM;
	if (k->owned != NULL) {
		size_t over = (uintptr_t)k->owned % CELL;

		error = format(&o, (char *)k->owned + (CELL - over) % CELL,
		    o.region_bytes, false, k);
	}
	if (error != KVR_OK) {
		free(k->owned);
		free(k);
		return error;
	}
	*out = k;
	return KVR_OK;
}

static int
memory_check(const void *memory, size_t bytes, struct kvr **out)
{
	if (memory == NULL || out == NULL || (uintptr_t)memory % CELL != 0)
		return KVR_EINVAL;
	return bytes < sizeof(struct region) ? KVR_ETOOSMALL : KVR_OK;
}

int
kvr_new_at(const struct kvr_options *options, void *memory, size_t bytes,
    struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error = memory_check(memory, bytes, out);

	if (error == KVR_OK)
		error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	error = format(&o, memory, bytes, true, k);
	if (error != KVR_OK) {
		free(k);
		return error;
	}
	*out = k;
	return KVR_OK;
}

/* Do a caller's options say the same as the region? */
static int
options_match(const struct kvr_options *o, const struct kvr *k)
{
	const struct seal *s = &k->region->seal;

	if (o->unit != s->rule.unit || o->block_size != s->rule.block_size ||
	    o->hash != s->rule.kind || o->eagle != s->rule.eagle ||
	    o->max_workers != s->max_workers)
		return KVR_EMISMATCH;
	if (o->secret_kind == KVR_SECRET_GIVEN && memcmp(o->secret,
	    s->rule.secret, sizeof(o->secret)) != 0)
		return KVR_EMISMATCH;
	return KVR_OK;
}

int
kvr_attach_at(const struct kvr_options *options, void *memory, size_t bytes,
    struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error = memory_check(memory, bytes, out);

	if (error == KVR_ETOOSMALL)
		return KVR_EFORMAT;
	if (error == KVR_OK)
		error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	error = region_attach(memory, bytes, k);
	if (error == KVR_OK && options != NULL)
		error = options_match(&o, k);
	if (error != KVR_OK) {
		free(k);
		return error;
	}
	*out = k;
	return KVR_OK;
}

void
kvr_free(struct kvr *k)
{
	if (k == NULL)
		return;
	free(k->owned);
	free(k);
}

int
kvr_clear(struct kvr *k)
{
	struct call c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	region_empty(k);
	return call_written(k, NULL, KVR_OK);
}

int
kvr_set_policy(struct kvr *k, const struct kvr_policy *policy)
{
	struct kvr_policy p;
	struct call c;
	uint32_t i;
	int error;

	if (k == NULL || policy == NULL)
		return KVR_EINVAL;
	(void)kvr_policy_init(&p, sizeof(p));
	if (!struct_copy(&p, sizeof(p), policy, policy->size))
		return KVR_EINVAL;
	error = policy_check(&p);
	if (error == KVR_OK)
		error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	policy_write(k, &p);
	for (i = 0; i < k->region->slots_used; i++)
		worker_recount(k, i);
	return call_written(k, NULL, KVR_OK);
}

int
kvr_get_policy(const struct kvr *k, struct kvr_policy *out)
{
	struct kvr_policy p;
	struct call c;
	int error;

	if (k == NULL || out == NULL)
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	p = k->region->policy;
	error = call_done(k, &c, KVR_OK);
	if (error == KVR_OK && !struct_copy(out, out->size, &p, sizeof(p)))
		error = KVR_EINVAL;
	return error;
}

/* ------------------------------------------------------------- workers --- */

int
kvr_worker_init(struct kvr_worker *w, size_t size)
{
	struct kvr_worker d;

	memset(&d, 0, sizeof(d));
	d.weight = 1.0;
	return struct_init(w, size, &d, sizeof(d));
}

static int
facts_get(const struct kvr_worker *from, struct kvr_worker *w)
{
	(void)kvr_worker_init(w, sizeof(*w));
	if (from != NULL && !struct_copy(w, sizeof(*w), from, from->size))
		return KVR_EINVAL;
	if (w->role > KVR_ROLE_DECODE || w->state > KVR_STATE_DOWN ||
	    w->reserved != 0)
		return KVR_EINVAL;
	/* written so that a NaN fails */
	if (!(w->weight >= 1e-6 && w->weight <= 1e6) ||
	    !(w->prefill_rate >= 0 && w->prefill_rate <= 1e15))
		return KVR_EINVAL;
	return KVR_OK;
}

static bool
name_ok(const char *name, size_t length)
{
	return name != NULL && length > 0 && length <= KVR_NAME_MAX;
}

int
kvr_worker_add(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, uint64_t *id)
{
	struct kvr_worker w;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || !name_ok(name, name_len) || id == NULL)
		return KVR_EINVAL;
	error = facts_get(facts, &w);
	if (error == KVR_OK)
		error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	error = worker_add(k, name, name_len, &w, &slot);
	if (error == KVR_EFULL && k->region->workers < k->layout.names &&
	    lease_void(k))
		error = worker_add(k, name, name_len, &w, &slot);
	if (error == KVR_OK)
		*id = worker_id(k, slot);
	return call_written(k, NULL, error);
}

int
kvr_worker_find(const struct kvr *k, const char *name, size_t name_len,
    uint32_t rank, uint64_t *id)
{
	uint64_t found = 0;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || !name_ok(name, name_len) || id == NULL)
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_find(k, name, name_len, rank, &slot))
		found = worker_id(k, slot);
	error = call_done(k, &c, found != 0 ? KVR_OK : KVR_EWORKER);
	if (error == KVR_OK)
		*id = found;
	return error;
}

int
kvr_worker_get(const struct kvr *k, uint64_t id, struct kvr_worker *out)
{
	struct kvr_worker w;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || out == NULL || out->size < sizeof(size_t))
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_get(k, slot, &w);
	else
		error = KVR_EWORKER;
	error = call_done(k, &c, error);
	if (error == KVR_OK)
		(void)struct_copy(out, out->size, &w, sizeof(w));
	return error;
}

int
kvr_worker_name(const struct kvr *k, uint64_t id, char *name, size_t capacity,
    size_t *name_len)
{
	char whole[KVR_NAME_MAX];
	size_t length = 0;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || name_len == NULL || (name == NULL && capacity > 0))
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		length = worker_name(k, slot, whole);
	error = call_done(k, &c, length > 0 ? KVR_OK : KVR_EWORKER);
	if (error != KVR_OK)
		return error;
	if (capacity > 0)
		memcpy(name, whole, capacity < length ? capacity : length);
	*name_len = length;
	return KVR_OK;
}

int
kvr_worker_set(struct kvr *k, uint64_t id, const struct kvr_worker *facts)
{
	struct kvr_worker w;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || facts == NULL)
		return KVR_EINVAL;
	error = facts_get(facts, &w);
	if (error == KVR_OK)
		error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_set(k, slot, &w);
	else
		error = KVR_EWORKER;
	return call_written(k, NULL, error);
}

int
kvr_worker_set_load(struct kvr *k, uint64_t id, const struct kvr_load *load)
{
	struct kvr_load l;
	struct call c;
	uint32_t slot;
	int error;

	memset(&l, 0, sizeof(l));
	if (k == NULL || load == NULL ||
	    !struct_copy(&l, sizeof(l), load, load->size))
		return KVR_EINVAL;
	if (l.requests > INT32_MAX || l.prefill_tokens > INT64_MAX / 2 ||
	    l.active_blocks > INT64_MAX / 2)
		return KVR_EINVAL;
	error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_set_load(k, slot, &l);
	else
		error = KVR_EWORKER;
	return call_written(k, NULL, error);
}

int
kvr_worker_next(const struct kvr *k, uint64_t *id)
{
	uint64_t next;
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL || id == NULL)
		return KVR_EINVAL;
	error = call_read(k, &c, 0);
	if (error != KVR_OK)
		return error;
	/* the low half of an id is the number of the slot after its own */
	for (slot = (uint32_t)*id; slot < k->region->slots_used; slot++)
		if (slot_in_use(k, slot))
			break;
	next = slot < k->region->slots_used ? worker_id(k, slot) : 0;
	error = call_done(k, &c, KVR_OK);
	if (error == KVR_OK)
		*id = next;
	return error;
}

int
kvr_worker_remove(struct kvr *k, uint64_t id)
{
	struct call c;
	uint32_t slot;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_remove(k, slot);
	else
		error = KVR_EWORKER;
	return call_written(k, NULL, error);
}

int
kvr_worker_reset(struct kvr *k, uint64_t id, uint64_t *new_id)
{
	struct call c;
	uint32_t slot, fresh;
	int error;

	if (k == NULL || new_id == NULL)
		return KVR_EINVAL;
	error = call_write(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, id, &slot))
		error = KVR_EWORKER;
	else
		error = worker_reset(k, slot, &fresh);
	if (error == KVR_EFULL && lease_void(k))
		error = worker_reset(k, slot, &fresh);
	if (error == KVR_OK)
		*new_id = worker_id(k, fresh);
	return call_written(k, NULL, error);
}

/* --------------------------------------------------- scopes and prompts --- */

int
kvr_scope_set(const struct kvr *k, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length)
{
	if (k == NULL || scope == NULL)
		return KVR_EINVAL;
	return hash_scope_set(&k->rule, scope, part, text, length);
}

int
kvr_prompt_new(const struct kvr *k, struct kvr_prompt **out)
{
	if (k == NULL || out == NULL)
		return KVR_EINVAL;
	return prompt_new(&k->rule, out);
}
