/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.c - batches of vLLM, SGLang, TensorRT-LLM's publisher and Mooncake.
 *
 *   batch: [time, [event, ...], rank]      or a map of the same
 *   event: [tag, field, ...]               until 2026, later a map
 *
 * An array has its fields by place. Releases only appended some, so that a
 * missing field has its default. One place has two meanings: vLLM's adapter is
 * text, SGLang's metadata is a map. Maps have fields by name; unknown ones are
 * skipped.
 */
#include "decode_in.h"
#include "pack.h"

#include <string.h>

enum field {
	TAG, HASHES, PARENT, TOKENS, BLOCK_SIZE, LORA_ID, MEDIUM, LORA_NAME,
	EXTRA_KEYS, GROUP, ATTENTION, WINDOW, SALT, SESSION, LOCALITY,
	POSITION, RANK, FIELDS
};

struct fields {
	const msgpack_object *of[FIELDS];
};

static const unsigned char stored_places[] = { TAG, HASHES, PARENT, TOKENS,
    BLOCK_SIZE, LORA_ID, MEDIUM, LORA_NAME, EXTRA_KEYS, GROUP, ATTENTION,
    WINDOW };
static const unsigned char removed_places[] = { TAG, HASHES, MEDIUM, GROUP };

/*
 * If two names mean the same, the first one in a map counts. Lengths are
 * compared first: a map has a dozen keys.
 */
#define NAME(name, field) { name, sizeof(name) - 1, field }
static const struct {
	const char *name;
	size_t n;
	enum field field;
} names[] = {
	NAME("type", TAG), NAME("event_type", TAG),
	NAME("block_hashes", HASHES), NAME("seq_hashes", HASHES),
	NAME("parent_block_hash", PARENT), NAME("parent_hash", PARENT),
	NAME("token_ids", TOKENS), NAME("block_size", BLOCK_SIZE),
	NAME("lora_id", LORA_ID), NAME("medium", MEDIUM),
	NAME("lora_name", LORA_NAME), NAME("extra_keys", EXTRA_KEYS),
	NAME("group_idx", GROUP), NAME("kv_cache_spec_kind", ATTENTION),
	NAME("kv_cache_spec_sliding_window", WINDOW),
	NAME("cache_salt", SALT), NAME("additional_salt", SALT),
	NAME("session_id", SESSION), NAME("locality", LOCALITY),
	NAME("base_block_idx", POSITION), NAME("dp_rank", RANK)
};

static const struct {
	const char *name;
	enum event_kind kind;
} tags[] = {
	{ "BlockStored", EVENT_STORED }, { "stored", EVENT_STORED },
	{ "BlockRemoved", EVENT_REMOVED }, { "removed", EVENT_REMOVED },
	{ "AllBlocksCleared", EVENT_CLEARED }, { "cleared", EVENT_CLEARED }
};

static const struct {
	const char *name;
	enum event_attention attention;
} kinds[] = {
	{ "full_attention", EVENT_FULL }, { "mla_attention", EVENT_FULL },
	{ "sink_full_attention", EVENT_FULL },
	{ "sliding_window", EVENT_SLIDING },
	{ "sliding_window_mla", EVENT_SLIDING },
	{ "chunked_local_attention", EVENT_SLIDING },
	{ "mamba", EVENT_STATE }
};

/* 0: none of them. */
static uint32_t
tag_kind(const msgpack_object *tag)
{
	size_t i;

	for (i = 0; i < sizeof(tags) / sizeof(tags[0]); i++)
		if (object_is(tag, tags[i].name))
			return tags[i].kind;
	return 0;
}

static uint32_t
attention_of(const msgpack_object *name)
{
	size_t i;

	if (object_absent(name))
		return EVENT_ATTENTION_NONE;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (object_is(name, kinds[i].name))
			return kinds[i].attention;
	return EVENT_ATTENTION_OTHER;
}

static void
take(struct fields *f, const msgpack_object *key, const msgpack_object *value)
{
	size_t i;

	if (key->type != MSGPACK_OBJECT_STR)
		return;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (key->via.str.size == names[i].n && memcmp(names[i].name,
		    key->via.str.ptr, names[i].n) == 0) {
			if (f->of[names[i].field] == NULL)
				f->of[names[i].field] = value;
			return;
		}
}

static void
from_map(struct fields *f, const msgpack_object *map)
{
	uint32_t i;

	for (i = 0; i < map->via.map.size; i++)
		take(f, &map->via.map.ptr[i].key, &map->via.map.ptr[i].val);
}

static void
from_array(struct fields *f, const msgpack_object *array)
{
	const bool removed = tag_kind(array->via.array.ptr) == EVENT_REMOVED;
	const unsigned char *places = removed ? removed_places : stored_places;
	const size_t most = removed ? sizeof(removed_places) :
	    sizeof(stored_places);
	size_t i;

	for (i = 0; i < array->via.array.size && i < most; i++)
		f->of[places[i]] = &array->via.array.ptr[i];
	/* SGLang's metadata */
	if (f->of[LORA_NAME] != NULL &&
	    f->of[LORA_NAME]->type == MSGPACK_OBJECT_MAP) {
		const msgpack_object *map = f->of[LORA_NAME];

		f->of[LORA_NAME] = NULL;
		f->of[SALT] = object_get(map, "cache_salt");
		f->of[SESSION] = object_get(map, "session_id");
	}
}

/* ------------------------------------------------------------ fields --- */

/* An absent number stays as it is. false: it is there, but no such number. */
static bool
number(const msgpack_object *o, uint32_t *out, uint32_t *flags, uint32_t flag)
{
	uint64_t value;

	if (object_absent(o))
		return true;
	if (!object_unsigned(o, INT32_MAX, &value))
		return false;
	*out = (uint32_t)value;
	*flags |= flag;
	return true;
}

static bool
wide_number(const msgpack_object *o, uint64_t *out, uint32_t *flags,
    uint32_t flag)
{
	if (object_absent(o))
		return true;
	if (!object_unsigned(o, INT64_MAX, out))
		return false;
	*flags |= flag;
	return true;
}

static bool
tier(const struct fields *f, struct event *e)
{
	const msgpack_object *o = f->of[MEDIUM];

	e->tier = EVENT_DEVICE;
	if (!object_absent(o)) {
		if (o->type != MSGPACK_OBJECT_STR)
			return false;
		e->tier = build_tier(o->via.str.ptr, o->via.str.size);
	}
	if (object_is(f->of[LOCALITY], "REMOTE"))
		e->tier = EVENT_SHARED;
	else if (e->tier == EVENT_SHARED && object_is(f->of[LOCALITY], "LOCAL"))
		e->tier = EVENT_DISK;
	return true;
}

static bool
numbers(const struct fields *f, struct event *e)
{
	e->attention = attention_of(f->of[ATTENTION]);
	return tier(f, e) &&
	    number(f->of[BLOCK_SIZE], &e->block_size, &e->flags, 0) &&
	    number(f->of[GROUP], &e->group, &e->flags, EVENT_HAS_GROUP) &&
	    number(f->of[RANK], &e->rank, &e->flags, EVENT_HAS_RANK) &&
	    wide_number(f->of[WINDOW], &e->window, &e->flags, 0) &&
	    wide_number(f->of[POSITION], &e->position, &e->flags,
	        EVENT_HAS_POSITION);
}

static enum drop_reason
adapter(const struct fields *f, struct batch *b)
{
	const msgpack_object *id = f->of[LORA_ID];
	char digits[24];
	int n;

	if (!object_absent(f->of[LORA_NAME]))
		return object_text(f->of[LORA_NAME], b, &b->now.adapter);
	if (object_absent(id))
		return DROP_NONE;
	if (id->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return DROP_MALFORMED;
	b->now.flags |= EVENT_ADAPTER_NUMBER;
	n = snprintf(digits, sizeof(digits), "%llu",
	    (unsigned long long)id->via.u64);
	return batch_text(b, digits, (size_t)n, &b->now.adapter) ?
	    DROP_NONE : DROP_NO_MEMORY;
}

static bool
is_text(const struct batch *b, struct event_span span, const msgpack_object *o)
{
	return o->type == MSGPACK_OBJECT_STR && o->via.str.size == span.n &&
	    span.n > 0 && memcmp(o->via.str.ptr,
	        (const char *)b->text.items + span.at, span.n) == 0;
}

/* -------------------------------------------------------- extra keys --- */

/*
 * Reads the items that are hashed with a block beside its tokens. An adapter is
 * known already; a text in the first block of a prompt is its salt. Anything
 * else, an image above all, cannot be derived from tokens.
 */
static enum drop_reason
plain_key(struct batch *b, uint32_t block, const msgpack_object *key,
    bool *plain)
{
	struct event *e = &b->now;

	*plain = true;
	if (object_absent(key) || is_text(b, e->adapter, key) ||
	    (block == 0 && is_text(b, e->salt, key)))
		return DROP_NONE;
	if (block == 0 && !(e->flags & EVENT_HAS_PARENT) && e->salt.n == 0 &&
	    key->type == MSGPACK_OBJECT_STR)
		return object_text(key, b, &e->salt);
	*plain = false;
	return DROP_NONE;
}

static enum drop_reason
plain_block(struct batch *b, uint32_t block, const msgpack_object *keys,
    bool *plain)
{
	enum drop_reason reason = DROP_NONE;
	uint32_t i;

	*plain = true;
	if (object_absent(keys))
		return DROP_NONE;
	if (keys->type != MSGPACK_OBJECT_ARRAY)
		return plain_key(b, block, keys, plain);
	for (i = 0; i < keys->via.array.size && *plain && reason == DROP_NONE;
	    i++)
		reason = plain_key(b, block, &keys->via.array.ptr[i], plain);
	return reason;
}

/* Counts the first blocks with tokens alone as contents. */
static enum drop_reason
plain_blocks(struct batch *b, const msgpack_object *extra, uint64_t *out)
{
	enum drop_reason reason = DROP_NONE;
	bool plain = true;
	uint32_t i;

	*out = UINT64_MAX;
	if (object_absent(extra))
		return DROP_NONE;
	if (extra->type != MSGPACK_OBJECT_ARRAY)
		return DROP_MALFORMED;
	for (i = 0; i < extra->via.array.size && reason == DROP_NONE; i++) {
		reason = plain_block(b, i, &extra->via.array.ptr[i], &plain);
		if (!plain) {
			*out = i;
			break;
		}
	}
	return reason;
}

/* ------------------------------------------------------------ events --- */

static enum drop_reason
stored(const struct fields *f, struct batch *b)
{
	struct event *e = &b->now;
	enum drop_reason reason;
	uint64_t clear;

	if (!object_absent(f->of[PARENT])) {
		if (!object_hash(f->of[PARENT], &e->parent))
			return DROP_MALFORMED;
		e->flags |= EVENT_HAS_PARENT;
	}
	if ((reason = object_tokens(f->of[TOKENS], b)) != DROP_NONE ||
	    (reason = adapter(f, b)) != DROP_NONE ||
	    (reason = object_text(f->of[SALT], b, &e->salt)) != DROP_NONE ||
	    (reason = object_text(f->of[SESSION], b, &e->session)) !=
	        DROP_NONE ||
	    (reason = plain_blocks(b, f->of[EXTRA_KEYS], &clear)) != DROP_NONE)
		return reason;
	return build_stored(b, clear);
}

/*
 * Groups of sliding windows keep some blocks of a stretch, or no block: their
 * events do not name them.
 */
static enum drop_reason
sparse(struct batch *b)
{
	b->now.kind = EVENT_MOVED;
	return b->now.hashes.n == 0 ? DROP_GROUP : DROP_NONE;
}

static enum drop_reason
fill(const struct fields *f, struct batch *b)
{
	struct event *e = &b->now;
	enum drop_reason reason;

	e->kind = tag_kind(f->of[TAG]);
	if (e->kind == 0)
		return f->of[TAG] != NULL &&
		    f->of[TAG]->type == MSGPACK_OBJECT_STR ?
		    DROP_UNKNOWN : DROP_MALFORMED;
	if (!numbers(f, e))
		return DROP_MALFORMED;
	if (e->kind == EVENT_CLEARED) {
		e->tier = EVENT_TIER_NONE;
		return DROP_NONE;
	}
	reason = object_hashes(f->of[HASHES], b);
	if (reason != DROP_NONE)
		return reason;
	if (e->kind == EVENT_REMOVED)
		return e->hashes.n == 0 ? DROP_MALFORMED : DROP_NONE;
	if (e->attention > EVENT_FULL)
		return sparse(b);
	return stored(f, b);
}

static enum drop_reason
read_event(struct decoder *d, const unsigned char *bytes, size_t n)
{
	struct fields f = { { NULL } };
	enum drop_reason reason;
	msgpack_object o;

	if (n > DECODE_EVENT_BYTES_MAX)
		return DROP_SIZE;
	reason = decode_object(d, bytes, n, &o);
	if (reason != DROP_NONE)
		return reason;
	if (o.type == MSGPACK_OBJECT_MAP)
		from_map(&f, &o);
	else if (o.type == MSGPACK_OBJECT_ARRAY && o.via.array.size > 0)
		from_array(&f, &o);
	else
		return DROP_MALFORMED;
	return fill(&f, &d->batch);
}

/* ------------------------------------------------------------- batch --- */

struct parts {
	struct pack_span time, events, rank;
};

static struct pack_span *
part_named(struct parts *p, struct pack_span key)
{
	if (pack_is(key, "ts"))
		return &p->time;
	if (pack_is(key, "events"))
		return &p->events;
	return pack_is(key, "data_parallel_rank") ? &p->rank : NULL;
}

/*
 * false: the bytes are no whole batch. Time and rank may be missing, but each
 * part that is there is whole.
 */
static bool
find_parts(struct pack_span batch, struct parts *p)
{
	struct pack_span *const order[] = { &p->time, &p->events, &p->rank };
	struct pack_span child, key = { NULL, NULL }, *part;
	struct pack_head head;
	uint64_t i;

	*p = (struct parts){ { NULL, NULL }, { NULL, NULL }, { NULL, NULL } };
	if (!pack_head(batch.at, batch.end, &head) || head.type == PACK_OTHER)
		return false;
	child.end = batch.at + head.bytes;
	for (i = 0; i < head.children; i++) {
		child = pack_next(child.end, batch.end, DECODE_DEPTH_MAX - 1);
		if (child.end == NULL)
			return false;
		if (head.type == PACK_MAP && i % 2 == 0) {
			key = child;
			continue;
		}
		part = head.type == PACK_MAP ? part_named(p, key) :
		    i < 3 ? order[i] : NULL;
		if (part != NULL)
			*part = child;
	}
	return child.end == batch.end && p->events.end != NULL;
}

/* A number: it is not worth unpacking anything longer. */
static bool
scalar(struct decoder *d, struct pack_span part, msgpack_object *out)
{
	const size_t n = (size_t)(part.end - part.at);

	return part.end != NULL && n <= 9 &&
	    decode_object(d, part.at, n, out) == DROP_NONE;
}

/* vLLM and SGLang have seconds, Mooncake milliseconds. */
static uint64_t
milliseconds(struct decoder *d, struct pack_span part)
{
	msgpack_object o;

	if (!scalar(d, part, &o))
		return 0;
	if (o.type == MSGPACK_OBJECT_POSITIVE_INTEGER)
		return o.via.u64;
	if (o.type != MSGPACK_OBJECT_FLOAT64 || !(o.via.f64 > 0) ||
	    o.via.f64 > 1e13)
		return 0;
	return (uint64_t)(o.via.f64 * 1000 + 0.5);
}

/* false: it is there, but no rank. */
static bool
find_rank(struct decoder *d, struct pack_span part, struct event *out)
{
	msgpack_object o;

	*out = (struct event){ 0 };
	return part.end == NULL || (scalar(d, part, &o) &&
	    number(&o, &out->rank, &out->flags, EVENT_HAS_RANK));
}

enum decode_verdict
decode_engine(struct decoder *d, const unsigned char *bytes, size_t n)
{
	const unsigned char *at, *next, *end = bytes + n;
	struct event rank;
	struct pack_head head;
	struct parts parts;

	if (!find_parts((struct pack_span){ bytes, end }, &parts) ||
	    !pack_head(parts.events.at, parts.events.end, &head) ||
	    head.type != PACK_ARRAY || !find_rank(d, parts.rank, &rank))
		return DECODE_MALFORMED;
	d->batch.time = milliseconds(d, parts.time);
	at = parts.events.at + head.bytes;
	for (; at < parts.events.end; at = next) {
		next = pack_skip(at, parts.events.end, DECODE_DEPTH_MAX);
		batch_begin(&d->batch);
		d->batch.now.rank = rank.rank;
		d->batch.now.flags = rank.flags;
		if (!decode_end(d, read_event(d, at, (size_t)(next - at))))
			return DECODE_NO_MEMORY;
	}
	return DECODE_GOOD;
}

bool
decode_engine_rank(const void *bytes, size_t n, uint64_t *rank)
{
	const unsigned char *at = bytes;
	struct parts parts;

	return find_parts((struct pack_span){ at, at + n }, &parts) &&
	    parts.rank.end != NULL && pack_unsigned(parts.rank, rank);
}
