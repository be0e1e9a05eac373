/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trtllm.c - TensorRT-LLM's events in JSON, as /kv_cache_events answers.
 *
 *   [{event_id, window_size, attention_dp_rank, data: {type, ...}}, ...]
 *
 * A scan finds where each event ends, how deep it is and how many objects it
 * has; then json-c gets one at a time. A part that is no JSON within an event
 * costs that event alone.
 *
 * Events are numbered for each rank, those of all windows in one row, so gaps
 * are looked for before anything is dropped.
 */
#include "decode_in.h"

#include <json-c/json.h>
#include <string.h>

enum { HEX_MAX = 128, HEX_KEPT = 16 };

struct scan {
	const char *at, *end;
	size_t objects;       /* of the last value */
};

static void
skip_blanks(struct scan *s)
{
	while (s->at < s->end && strchr(" \t\r\n", *s->at) != NULL &&
	    *s->at != '\0')
		s->at++;
}

static bool
skip_string(struct scan *s)
{
	for (s->at++; s->at < s->end; s->at++) {
		if (*s->at == '"') {
			s->at++;
			return true;
		}
		if (*s->at == '\\' && s->end - s->at > 1)
			s->at++;
	}
	s->at = s->end;
	return false;
}

/* An object or array, up to its end. false: it is cut, or too deep. */
static bool
skip_value(struct scan *s)
{
	unsigned depth = 0;

	s->objects = 0;
	while (s->at < s->end) {
		switch (*s->at) {
		case '"':
			if (!skip_string(s))
				return false;
			continue;
		case '{':
		case '[':
			s->objects++;
			if (++depth > DECODE_DEPTH_MAX)
				return false;
			break;
		case '}':
		case ']':
			if (--depth == 0) {
				s->at++;
				return true;
			}
			break;
		default:
			break;
		}
		s->at++;
	}
	return false;
}

/* ------------------------------------------------------------ fields --- */

/* NULL also for null. */
static json_object *
get(json_object *o, const char *key)
{
	json_object *value;

	return json_object_is_type(o, json_type_object) &&
	    json_object_object_get_ex(o, key, &value) ? value : NULL;
}

static bool
integer(json_object *o, uint64_t most, uint64_t *out)
{
	if (!json_object_is_type(o, json_type_int) ||
	    json_object_get_int64(o) < 0)
		return false;
	*out = json_object_get_uint64(o);
	return *out <= most;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first 8 bytes of a key in hex: its publisher sends these too. */
static bool
hex_hash(json_object *o, uint64_t *out)
{
	const char *text = json_object_get_string(o);
	const int n = json_object_get_string_len(o);
	int i, digit;

	if (n < HEX_KEPT || n > HEX_MAX)
		return false;
	for (*out = 0, i = 0; i < n; i++) {
		if ((digit = hex_digit(text[i])) < 0)
			return false;
		if (i < HEX_KEPT)
			*out = *out << 4 | (uint64_t)digit;
	}
	return true;
}

static bool
hash(json_object *o, uint64_t *out)
{
	if (json_object_is_type(o, json_type_string))
		return hex_hash(o, out);
	if (!json_object_is_type(o, json_type_int))
		return false;
	*out = json_object_get_int64(o) < 0 ?
	    (uint64_t)json_object_get_int64(o) : json_object_get_uint64(o);
	return true;
}

static uint32_t
level_tier(json_object *o)
{
	uint64_t level;

	if (o == NULL)
		return EVENT_DEVICE;
	if (!integer(o, 2, &level))
		return EVENT_TIER_UNKNOWN;
	return level == 0 ? EVENT_DEVICE : level == 1 ? EVENT_HOST : EVENT_DISK;
}

/* ------------------------------------------------------------ stored --- */

static size_t
length(json_object *o)
{
	return json_object_is_type(o, json_type_array) ?
	    json_object_array_length(o) : 0;
}

static size_t
tokens_of(json_object *blocks, size_t i)
{
	return length(get(json_object_array_get_idx(blocks, i), "tokens"));
}

/*
 * Blocks of fewer tokens than the others end their prompts. One with another
 * behind it shows how many a whole one has, unless the caller gives that. 0:
 * not known yet.
 */
static uint32_t
whole_block(struct decoder *d, json_object *blocks)
{
	if (d->options.block_size != 0)
		return d->options.block_size;
	if (d->drop.block_size == 0 && length(blocks) > 1 &&
	    tokens_of(blocks, 0) <= INT32_MAX)
		d->drop.block_size = (uint32_t)tokens_of(blocks, 0);
	return d->drop.block_size;
}

/* *plain becomes false if a block is more than its tokens. */
static enum drop_reason
put_tokens(struct batch *b, json_object *tokens, bool *plain)
{
	json_object *token;
	uint64_t id, extra;
	size_t i;

	for (i = 0; i < length(tokens); i++) {
		token = json_object_array_get_idx(tokens, i);
		extra = 0;
		if (!integer(get(token, "token_id"), UINT32_MAX, &id) ||
		    (get(token, "token_extra_id") != NULL &&
		        !integer(get(token, "token_extra_id"), UINT64_MAX,
		            &extra)))
			return DROP_MALFORMED;
		if (extra != 0)
			*plain = false;
		if (!batch_token(b, (uint32_t)id))
			return DROP_NO_MEMORY;
	}
	return DROP_NONE;
}

static enum drop_reason
put_block(struct decoder *d, json_object *block, bool *plain)
{
	json_object *salt = get(block, "cache_salt");
	struct batch *b = &d->batch;
	uint64_t value;

	if (!hash(get(block, "block_hash"), &value))
		return DROP_MALFORMED;
	if (!batch_hash(b, value))
		return DROP_NO_MEMORY;
	partial_take(&d->partial, value);
	if (length(get(block, "mm_keys")) > 0)
		*plain = false;
	if (b->now.salt.n == 0 && json_object_is_type(salt, json_type_string) &&
	    !batch_text(b, json_object_get_string(salt),
	        (size_t)json_object_get_string_len(salt), &b->now.salt))
		return DROP_NO_MEMORY;
	return put_tokens(b, get(block, "tokens"), plain);
}

/* Blocks from this one on are not stored; nor are they removed, then. */
static enum drop_reason
drop_blocks(struct decoder *d, json_object *blocks, size_t i)
{
	uint64_t value;

	for (; i < length(blocks); i++) {
		if (!hash(get(json_object_array_get_idx(blocks, i),
		    "block_hash"), &value))
			return DROP_MALFORMED;
		if (!partial_add(&d->partial, value))
			return DROP_NO_MEMORY;
	}
	return DROP_NONE;
}

/* All blocks of an event come to be in one tier. */
static enum drop_reason
put_blocks(struct decoder *d, json_object *blocks)
{
	struct batch *b = &d->batch;
	enum drop_reason reason = DROP_NONE;
	uint64_t clear = UINT64_MAX;
	json_object *block;
	bool plain = true;
	size_t i, size = whole_block(d, blocks);

	if (!json_object_is_type(blocks, json_type_array))
		return DROP_MALFORMED;
	b->now.block_size = (uint32_t)size;
	if (size > 0 && length(blocks) > 0 && tokens_of(blocks, 0) > size)
		return DROP_BLOCK_SIZE;
	for (i = 0; i < length(blocks) && reason == DROP_NONE; i++) {
		block = json_object_array_get_idx(blocks, i);
		if (size == 0 || tokens_of(blocks, i) != size) {
			reason = drop_blocks(d, blocks, i);
			if (i == 0 && reason == DROP_NONE)
				return DROP_PARTIAL;
			d->counts.dropped[DROP_PARTIAL] += reason == DROP_NONE;
			break;
		}
		if (i == 0)
			b->now.tier = level_tier(get(block, "cache_level"));
		reason = put_block(d, block, &plain);
		if (!plain && clear == UINT64_MAX)
			clear = i;
	}
	return reason == DROP_NONE ? build_stored(b, clear) : reason;
}

static enum drop_reason
stored(struct decoder *d, json_object *data)
{
	json_object *parent = get(data, "parent_hash");
	struct event *e = &d->batch.now;

	if (parent != NULL) {
		if (!hash(parent, &e->parent))
			return DROP_MALFORMED;
		e->flags |= EVENT_HAS_PARENT;
	}
	return put_blocks(d, get(data, "blocks"));
}

static enum drop_reason
removed(struct decoder *d, json_object *hashes)
{
	struct batch *b = &d->batch;
	bool partial = false;
	uint64_t value;
	size_t i;

	if (length(hashes) == 0)
		return DROP_MALFORMED;
	b->now.kind = EVENT_REMOVED;
	b->now.tier = EVENT_TIER_NONE;
	for (i = 0; i < length(hashes); i++) {
		if (!hash(json_object_array_get_idx(hashes, i), &value))
			return DROP_MALFORMED;
		if (partial_has(&d->partial, value))
			partial = true;
		else if (!batch_hash(b, value))
			return DROP_NO_MEMORY;
	}
	if (b->now.hashes.n == 0)
		return DROP_PARTIAL;
	d->counts.dropped[DROP_PARTIAL] += partial;
	return DROP_NONE;
}

/* Priorities do not change the cache. */
static enum drop_reason
updated(struct decoder *d, json_object *data)
{
	json_object *level = get(data, "cache_level");
	struct batch *b = &d->batch;
	uint64_t value;

	if (level == NULL)
		return DROP_UNKNOWN;
	if (get(level, "old_value") == NULL ||
	    get(level, "new_value") == NULL ||
	    !hash(get(data, "block_hash"), &value))
		return DROP_MALFORMED;
	if (partial_has(&d->partial, value))
		return DROP_PARTIAL;
	b->now.kind = EVENT_MOVED;
	b->now.from_tier = level_tier(get(level, "old_value"));
	b->now.tier = level_tier(get(level, "new_value"));
	return batch_hash(b, value) ? DROP_NONE : DROP_NO_MEMORY;
}

/* ------------------------------------------------------------ events --- */

static bool
is_type(json_object *data, const char *name)
{
	json_object *type = get(data, "type");

	return json_object_is_type(type, json_type_string) &&
	    strcmp(json_object_get_string(type), name) == 0;
}

static enum drop_reason
from_data(struct decoder *d, json_object *data)
{
	if (is_type(data, "stored"))
		return stored(d, data);
	if (is_type(data, "removed"))
		return removed(d, get(data, "block_hashes"));
	if (is_type(data, "updated"))
		return updated(d, data);
	return json_object_is_type(get(data, "type"), json_type_string) ?
	    DROP_UNKNOWN : DROP_MALFORMED;
}

static bool
say(struct decoder *d, enum event_kind kind, uint32_t rank)
{
	batch_begin(&d->batch);
	d->batch.now.kind = kind;
	d->batch.now.rank = rank;
	d->batch.now.flags = EVENT_HAS_RANK;
	return decode_end(d, DROP_NONE);
}

/* Judges the number of the next event. false: no memory. */
static bool
follow(struct decoder *d, uint32_t rank, uint64_t id)
{
	struct event_ids *of;
	uint64_t next = 0;
	size_t i;

	for (i = 0; i < d->n_ids && d->ids[i].rank != rank; i++)
		continue;
	if (i == DECODE_RANKS_MAX)
		return true;
	of = &d->ids[i];
	if (i < d->n_ids)
		next = of->next;
	else
		d->n_ids++;
	*of = (struct event_ids){ rank, id + 1 };
	if (id < next) {
		d->drop = (struct drop){ 0 };
		next = 0;
		if (!say(d, EVENT_RESTARTED, rank))
			return false;
	}
	return id == next || say(d, EVENT_LOST, rank);
}

static bool
one(struct decoder *d, json_object *o)
{
	json_object *data = get(o, "data");
	uint64_t rank = 0, id, window = 0;
	struct event *e = &d->batch.now;

	if (!json_object_is_type(data, json_type_object) ||
	    (get(o, "attention_dp_rank") != NULL &&
	        !integer(get(o, "attention_dp_rank"), INT32_MAX, &rank)) ||
	    (get(o, "window_size") != NULL &&
	        !integer(get(o, "window_size"), INT64_MAX, &window)))
		return decode_end(d, DROP_MALFORMED);
	if (integer(get(o, "event_id"), INT64_MAX, &id) &&
	    !follow(d, (uint32_t)rank, id))
		return false;
	if (is_type(data, "created")) {
		drop_announce(&d->drop, window);
		return true;
	}
	batch_begin(&d->batch);
	e->window = window;
	e->rank = (uint32_t)rank;
	e->flags = get(o, "attention_dp_rank") != NULL ? EVENT_HAS_RANK : 0;
	return decode_end(d, from_data(d, data));
}

static bool
parse(struct decoder *d, const char *at, size_t n, size_t objects)
{
	json_tokener *tokener;
	json_object *o;
	bool good;

	if (n > DECODE_EVENT_BYTES_MAX || objects > DECODE_OBJECTS_MAX)
		return decode_end(d, DROP_SIZE);
	tokener = json_tokener_new_ex(DECODE_DEPTH_MAX + 1);
	if (tokener == NULL)
		return false;
	o = json_tokener_parse_ex(tokener, at, (int)n);
	good = json_object_is_type(o, json_type_object) ? one(d, o) :
	    decode_end(d, DROP_MALFORMED);
	json_object_put(o);
	json_tokener_free(tokener);
	return good;
}

static enum decode_verdict
value(struct decoder *d, struct scan *s)
{
	const char *began = s->at;

	if (s->at == s->end || *s->at != '{' || !skip_value(s))
		return DECODE_MALFORMED;
	batch_begin(&d->batch);
	return parse(d, began, (size_t)(s->at - began), s->objects) ?
	    DECODE_GOOD : DECODE_NO_MEMORY;
}

/* Reads the values behind '[', up to its end. */
static enum decode_verdict
values(struct decoder *d, struct scan *s)
{
	enum decode_verdict verdict;

	skip_blanks(s);
	if (s->at < s->end && *s->at == ']') {
		s->at++;
		return DECODE_GOOD;
	}
	for (;;) {
		skip_blanks(s);
		verdict = value(d, s);
		if (verdict != DECODE_GOOD)
			return verdict;
		skip_blanks(s);
		if (s->at == s->end || (*s->at != ',' && *s->at != ']'))
			return DECODE_MALFORMED;
		if (*s->at++ == ']')
			return DECODE_GOOD;
	}
}

enum decode_verdict
decode_trtllm(struct decoder *d, const unsigned char *bytes, size_t n)
{
	struct scan s = { (const char *)bytes, (const char *)bytes + n, 0 };
	enum decode_verdict verdict;

	skip_blanks(&s);
	if (s.at < s.end && *s.at == '[') {
		s.at++;
		verdict = values(d, &s);
	} else {
		verdict = value(d, &s);
	}
	skip_blanks(&s);
	return verdict == DECODE_GOOD && s.at != s.end ? DECODE_MALFORMED :
	    verdict;
}
