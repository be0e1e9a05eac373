/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.c - checks options, formats a region by them, and compares them with
 * a region to attach to.
 *
 * Most of them are FIXED when a region is made: hashes and the layout follow
 * from them. The others are LIMITS, of times and of prompts: those of the
 * handle that was opened last, with options, are in force.
 */
#include "options.h"

#include "journal.h"
#include "load.h"
#include "rate.h"
#include "retain.h"

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
	d.ttl_ns = TTL_USUAL;
	d.lease_limit_ns = LEASE_LIMIT_USUAL;
	d.idle_limit_ns = IDLE_LIMIT_USUAL;
	d.block_size = KVR_AUTO;
	d.max_workers = 256;
	d.max_prompt_blocks = KVR_AUTO;
	d.file_mode = MODE_MIN;
	d.file_group = KVR_AUTO;
	return struct_init(o, size, &d, sizeof(d));
}

/* A key of zeros is one that was never set. */
static bool
key_set(const struct kvr_options *o)
{
	uint32_t i;

	for (i = 0; i < o->secret_bytes; i++)
		if (o->secret[i] != 0)
			return true;
	return o->secret_bytes == 0;
}

/* The first field of the rule of hashes that is not valid; NULL: all are. */
static const char *
find_bad_rule(const struct kvr_options *o)
{
	uint32_t most = o->unit == KVR_UNIT_BYTES ? BLOCK_BYTES_MAX
	    : BLOCK_TOKENS_MAX;

	if (o->unit > KVR_UNIT_BYTES)
		return "unit";
	if (o->block_size < 1 || o->block_size > most)
		return "block_size";
	if (o->hash > KVR_HASH_DYNAMO)
		return "hash";
	if (o->eagle > 1 || (o->eagle == 1 && o->unit == KVR_UNIT_BYTES))
		return "eagle";
	if (o->secret_bytes != 0 && (o->secret_bytes < KVR_SECRET_MIN ||
	    o->secret_bytes > KVR_SECRET_MAX))
		return "secret_bytes";
	return key_set(o) ? NULL : "secret";
}

/* The first field that is not valid; NULL: all are. Autos are resolved. */
static const char *
find_bad(const struct kvr_options *o)
{
	const char *bad = find_bad_rule(o);

	if (bad != NULL)
		return bad;
	if (o->max_workers < 1 || o->max_workers > KVR_WORKERS_MAX)
		return "max_workers";
	if (o->max_prompt_blocks < 1 || o->max_prompt_blocks > KVR_AUTO)
		return "max_prompt_blocks";
	if (o->ttl_ns < KVR_TTL_ENDLESS)
		return "ttl_ns";
	if (o->lease_limit_ns < 1)
		return "lease_limit_ns";
	if (o->idle_limit_ns < 1)
		return "idle_limit_ns";
	if (o->affinity_entries > KVR_AFFINITY_ENTRIES_MAX)
		return "affinity_entries";
	if ((o->file_mode & MODE_MIN) != MODE_MIN ||
	    (o->file_mode & ~(uint32_t)MODE_MAX) != 0)
		return "file_mode";
	if (o->file_group == UINT32_MAX)
		return "file_group";
	if (!journal_bytes_ok(o->journal_bytes))
		return "journal_bytes";
	if (o->event_blocks > KVR_EVENT_BLOCKS_MAX || (o->event_blocks > 0 &&
	    (o->unit == KVR_UNIT_BYTES || o->eagle == 1)))
		return "event_blocks";
	/* with Dynamo's hash a scope has no tenant */
	if (o->tenants > KVR_TENANTS_MAX ||
	    (o->tenants > 0 && o->hash == KVR_HASH_DYNAMO))
		return "tenants";
	if (o->reserved != 0)
		return "reserved";
	return o->user_bytes > KVR_USER_BYTES_MAX ? "user_bytes" : NULL;
}

/* The caller's options over the defaults, with the block size resolved. */
static int
read_options(const struct kvr_options *from, struct kvr_options *o,
    const char **bad)
{
	int error = KVR_OK;

	(void)kvr_options_init(o, sizeof(*o));
	*bad = "size";
	if (from != NULL)
		error = struct_get(o, sizeof(*o), from);
	if (error != KVR_OK)
		return error;
	if (o->block_size == KVR_AUTO)
		o->block_size = o->unit == KVR_UNIT_BYTES ? 256 : 16;
	/* a key that the struct has no room for */
	*bad = from != NULL && o->secret_bytes > 0 && from->size <
	    offsetof(struct kvr_options, secret) + o->secret_bytes
	    ? "secret_bytes" : find_bad(o);
	return *bad == NULL ? KVR_OK : KVR_EINVAL;
}

int
options_get(const struct kvr_options *from, struct kvr_options *o)
{
	const char *bad;

	return read_options(from, o, &bad);
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

/* ------------------------------------------------- of another region --- */

static bool
same_secret(const struct kvr_options *o, const struct seal *s)
{
	struct hash_rule given;

	if (o->secret_bytes == 0)
		return true;
	hash_rule_key(&given, o->secret, o->secret_bytes);
	return memcmp(given.secret, s->rule.secret, sizeof(given.secret)) == 0;
}

/*
 * The first option that a region was made with and the caller's are not; NULL:
 * all are equal. Memory of the caller has the size that it has.
 */
static const char *
find_fixed(const struct kvr_options *o, const struct kvr *k)
{
	const struct seal *s = &k->region->seal;
	const struct {
		const char *name;
		uint64_t wanted, have;
	} fixed[] = {
		{ "unit", o->unit, s->rule.unit },
		{ "block_size", o->block_size, s->rule.block_size },
		{ "hash", o->hash, s->rule.kind },
		{ "eagle", o->eagle, s->rule.eagle },
		{ "secret", same_secret(o, s), 1 },
		{ "region_bytes", k->kind == REGION_FILE ? o->region_bytes
		    : s->bytes, s->bytes },
		{ "max_workers", o->max_workers, s->max_workers },
		{ "affinity_entries", o->affinity_entries,
		    s->affinity_entries },
		{ "journal_bytes", o->journal_bytes, s->journal_bytes },
		{ "event_blocks", o->event_blocks, s->event_blocks },
		{ "tenants", o->tenants, s->tenants },
		{ "user_bytes", o->user_bytes == 0 ? s->user_bytes
		    : o->user_bytes, s->user_bytes }
	};
	size_t i;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (fixed[i].wanted != fixed[i].have)
			return fixed[i].name;
	return NULL;
}

/*
 * The first limit that is another one; NULL: all are equal. Limits that cannot
 * be read are others.
 */
static const char *
find_limit(const struct kvr_options *o, const struct kvr *k)
{
	struct limits want = region_limits(o, &k->layout), have;

	return !region_limits_get(k, &have) || want.ttl != have.ttl ? "ttl_ns"
	    : want.lease != have.lease ? "lease_limit_ns"
	    : want.idle != have.idle ? "idle_limit_ns"
	    : want.prompt_blocks != have.prompt_blocks ? "max_prompt_blocks"
	    : NULL;
}

int
options_match(const struct kvr_options *o, const struct kvr *k)
{
	return find_fixed(o, k) == NULL ? KVR_OK : KVR_EMISMATCH;
}

int
options_match_limits(const struct kvr_options *o, const struct kvr *k)
{
	return find_limit(o, k) == NULL ? KVR_OK : KVR_EMISMATCH;
}

/* The time to live of each worker follows. */
void
options_apply(const struct kvr_options *o, struct kvr *k)
{
	struct limits l = region_limits(o, &k->layout);
	uint32_t i;

	write_once_words(&k->region->limits, &l, sizeof(l));
	for (i = 0; i < slots_used(k); i++) {
		if (slot_in_use(k, i))
			retain_decide(k, i);
		load_recount(k, i);
	}
}

const char *
kvr_options_fault(const struct kvr *k, const struct kvr_options *options)
{
	struct kvr_options o;
	struct layout layout;
	const char *name;

	if (options == NULL || read_options(options, &o, &name) != KVR_OK)
		return options == NULL ? NULL : name;
	if (k == NULL)
		return o.region_bytes > PTRDIFF_MAX - CELL ||
		    region_layout(&o, o.region_bytes, &layout) != KVR_OK
		    ? "region_bytes" : NULL;
	name = find_fixed(&o, k);
	return name != NULL ? name : find_limit(&o, k);
}

int
kvr_options_get(const struct kvr *k, struct kvr_options *out)
{
	struct kvr_options o;
	const struct seal *s;
	struct limits l;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	s = &k->region->seal;
	(void)region_limits_get(k, &l);
	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = s->bytes;
	o.ttl_ns = l.ttl;
	o.lease_limit_ns = l.lease;
	o.idle_limit_ns = l.idle;
	o.unit = s->rule.unit;
	o.block_size = s->rule.block_size;
	o.hash = s->rule.kind;
	o.eagle = s->rule.eagle;
	o.max_workers = s->max_workers;
	o.affinity_entries = (uint32_t)s->affinity_entries;
	o.journal_bytes = s->journal_bytes;
	o.event_blocks = s->event_blocks;
	o.tenants = (uint32_t)s->tenants;
	o.user_bytes = s->user_bytes;
	o.max_prompt_blocks = (uint32_t)l.prompt_blocks;
	memcpy(o.boot_id, k->boot_id, sizeof(o.boot_id));
	struct_put(out, out->size, &o, sizeof(o));
	return KVR_OK;
}
