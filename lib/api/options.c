/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - checks options, formats a region by them, and compares them with
 * a region to attach to.
 */
#include "options.h"

#include "journal.h"
#include "rate.h"

#include <unistd.h>

enum {
	BLOCK_TOKENS_MAX = BLOCK_BYTES_MAX / 4,
	MODE_MIN = 0600, /* the creator reads and writes the file */
	MODE_MAX = 0666
};

int
kvr_options_init(struct kvr_options *o, size_t size)
{
	struct kvr_options d;

	memset(&d, 0, sizeof(d));
	d.region_bytes = UINT64_C(64) << 20;
	d.ttl_ns = INT64_C(120) * 1000000000;
	d.lease_limit_ns = INT64_C(3600) * 1000000000;
	d.idle_limit_ns = INT64_C(86400) * 1000000000;
	d.block_size = KVR_AUTO;
	d.max_workers = 256;
	d.max_prompt_blocks = KVR_AUTO;
	d.file_mode = MODE_MIN;
	d.file_group = KVR_AUTO;
	return struct_init(o, size, &d, sizeof(d));
}

static int
options_check(const struct kvr_options *o)
{
	uint32_t most = o->unit == KVR_UNIT_BYTES ? BLOCK_BYTES_MAX
	    : BLOCK_TOKENS_MAX;

	if (o->unit > KVR_UNIT_BYTES || o->hash > KVR_HASH_DYNAMO ||
	    o->eagle > 1 || o->affinity_entries > KVR_AFFINITY_ENTRIES_MAX ||
	    !journal_bytes_ok(o->journal_bytes) ||
	    o->event_blocks > KVR_EVENT_BLOCKS_MAX ||
	    o->tenants > KVR_TENANTS_MAX || o->reserved != 0)
		return KVR_EINVAL;
	if (o->eagle == 1 && o->unit == KVR_UNIT_BYTES)
		return KVR_EINVAL;
	/* there a scope has no tenant */
	if (o->tenants > 0 && o->hash == KVR_HASH_DYNAMO)
		return KVR_EINVAL;
	if (o->event_blocks > 0 &&
	    (o->unit == KVR_UNIT_BYTES || o->eagle == 1))
		return KVR_EINVAL;
	if (o->block_size < 1 || o->block_size > most ||
	    o->max_workers < 1 || o->max_workers > KVR_WORKERS_MAX ||
	    o->max_prompt_blocks < 1 || o->max_prompt_blocks > KVR_AUTO)
		return KVR_EINVAL;
	if (o->ttl_ns < KVR_TTL_ENDLESS || o->lease_limit_ns < 1 ||
	    o->idle_limit_ns < 1)
		return KVR_EINVAL;
	if ((o->file_mode & MODE_MIN) != MODE_MIN ||
	    (o->file_mode & ~(uint32_t)MODE_MAX) != 0 ||
	    o->file_group == UINT32_MAX)
		return KVR_EINVAL;
	return KVR_OK;
}

/* A key of zeros is one that was never set. */
static bool
key_ok(const struct kvr_options *o)
{
	uint32_t i;

	if (o->secret_bytes == 0)
		return true;
	if (o->secret_bytes < KVR_SECRET_MIN ||
	    o->secret_bytes > KVR_SECRET_MAX)
		return false;
	for (i = 0; i < o->secret_bytes; i++)
		if (o->secret[i] != 0)
			return true;
	return false;
}

/* The caller's options over the defaults, checked, block size resolved. */
int
options_get(const struct kvr_options *from, struct kvr_options *o)
{
	int error = KVR_OK;

	(void)kvr_options_init(o, sizeof(*o));
	if (from != NULL)
		error = struct_get(o, sizeof(*o), from);
	if (error == KVR_OK && from != NULL && from->size <
	    offsetof(struct kvr_options, secret) + o->secret_bytes &&
	    o->secret_bytes > 0)
		error = KVR_EINVAL; /* a key that the struct has no room for */
	if (error != KVR_OK)
		return error;
	if (o->block_size == KVR_AUTO)
		o->block_size = o->unit == KVR_UNIT_BYTES ? 256 : 16;
	return key_ok(o) ? options_check(o) : KVR_EINVAL;
}

/* False if the system gave nothing random for a secret. */
static bool
rule_of(const struct kvr_options *o, struct hash_rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	rule->unit = o->unit;
	rule->block_size = o->block_size;
	rule->kind = o->hash;
	rule->eagle = o->eagle;
	if (o->secret_bytes > 0)
		hash_rule_key(rule, o->secret, o->secret_bytes);
	else if (getentropy(rule->secret, sizeof(rule->secret)) != 0)
		return false;
	hash_rule_seal(rule);
	return true;
}

/* Formats memory as a region with fresh random keys, and attaches to it. */
int
options_format(const struct kvr_options *o, void *memory, uint64_t bytes,
    uint32_t kind, struct kvr *k)
{
	struct hash_rule rule;
	uint64_t key[12];
	struct kvr_policy policy;
	const struct region_begin begin = { o, &rule, key, &policy,
	    RATE_FIRST_TOKENS, RATE_FIRST_SECONDS };
	int error;

	if (!rule_of(o, &rule) || getentropy(key, sizeof(key)) != 0)
		return KVR_ESYSTEM;
	(void)kvr_policy_init(&policy, sizeof(policy));
	error = region_format(&begin, memory, bytes, kind);
	return error != KVR_OK ? error : region_attach(memory, bytes, k);
}

/* Do the caller's options match the region? The secret only if given. */
int
options_match(const struct kvr_options *o, const struct kvr *k)
{
	const struct seal *s = &k->region->seal;
	struct hash_rule given;

	if (o->unit != s->rule.unit || o->block_size != s->rule.block_size ||
	    o->hash != s->rule.kind || o->eagle != s->rule.eagle ||
	    o->max_workers != s->max_workers)
		return KVR_EMISMATCH;
	if (o->secret_bytes == 0)
		return KVR_OK;
	hash_rule_key(&given, o->secret, o->secret_bytes);
	return memcmp(given.secret, s->rule.secret, sizeof(given.secret)) == 0
	    ? KVR_OK : KVR_EMISMATCH;
}

int
kvr_options_get(const struct kvr *k, struct kvr_options *out)
{
	struct kvr_options o;
	const struct seal *s;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	s = &k->region->seal;
	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = s->bytes;
	o.ttl_ns = s->ttl;
	o.lease_limit_ns = s->lease_limit;
	o.idle_limit_ns = s->idle_limit;
	o.unit = s->rule.unit;
	o.block_size = s->rule.block_size;
	o.hash = s->rule.kind;
	o.eagle = s->rule.eagle;
	o.max_workers = s->max_workers;
	o.affinity_entries = s->affinity_entries;
	o.journal_bytes = s->journal_bytes;
	o.event_blocks = s->event_blocks;
	o.tenants = (uint32_t)s->tenants;
	o.max_prompt_blocks = s->max_prompt_blocks;
	memcpy(o.boot_id, k->boot_id, sizeof(o.boot_id));
	struct_put(out, out->size, &o, sizeof(o));
	return KVR_OK;
}
