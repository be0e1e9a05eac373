/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame.c - the tables of kvroute-frames(7), a writer and a reader.
 */
#include "frame.h"

#include <string.h>

#include "little.h"

enum { FIELDS_MAX = 14, RECORD_HEAD = 8, WORDS_MAX = FRAME_BYTES_MAX / 8 };
enum { MAC_FOLLOWS = 1 }; /* a flag of the head */

static const unsigned char magic[4] = { 'K', 'V', 'R', 'F' };

/* The part of a record behind its fields. */
enum rest { NOTHING, NUMBERS, TEXT };

struct field {
	unsigned char at;    /* in words of struct frame_record; 0: padding */
	unsigned char bytes; /* on the wire; 0: the end */
};

#define F(name, bytes) { offsetof(struct frame_record, name) / 8, bytes }
#define PAD(bytes) { 0, bytes }

/*
 * Fields in their order. The length of a record is a multiple of 8, and so is
 * that of the fields before numbers. Where text follows, `length` is a field.
 */
static const struct {
	enum rest rest;
	struct field fields[FIELDS_MAX];
} kinds[FRAME_KINDS] = {
	[FRAME_RESERVE] = { NUMBERS, { F(lease, 8), F(parent, 8),
	    F(affinity, 8), F(worker, 2), F(stage, 1), F(flags, 1),
	    F(epoch, 4), F(units, 4), F(overlap_tokens, 4),
	    F(overlap_blocks, 4), F(first_block, 4), F(blocks, 4),
	    F(affinity_ttl, 4) } },
	[FRAME_COMMIT] = { NOTHING, { F(lease, 8) } },
	[FRAME_FIRST] = { NOTHING, { F(lease, 8) } },
	[FRAME_ABORT] = { NOTHING, { F(lease, 8) } },
	[FRAME_OUTPUT] = { NOTHING, { F(lease, 8), F(blocks, 4), PAD(4) } },
	[FRAME_EXTEND] = { NUMBERS, { F(lease, 8), F(parent, 8),
	    F(first_block, 4), F(units, 4) } },
	[FRAME_FINISH] = { NOTHING, { F(lease, 8), F(prompt_tokens, 8),
	    F(cached_tokens, 8), F(completion_tokens, 8), F(report, 1),
	    PAD(1), F(report_flags, 2), F(endpoint, 4) } },
	[FRAME_OBSERVE] = { NUMBERS, { F(parent, 8), F(worker, 2),
	    F(flags, 1), PAD(1), F(epoch, 4), F(units, 4),
	    F(first_block, 4), F(blocks, 4), PAD(4) } },
	[FRAME_BIND] = { NOTHING, { F(affinity, 8), F(worker, 2), PAD(2),
	    F(epoch, 4), F(affinity_ttl, 4), PAD(4) } },
	[FRAME_RESET] = { NOTHING, { F(worker, 2), PAD(2), F(epoch, 4) } },
	[FRAME_CLEAR] = { NOTHING, { { 0, 0 } } },
	[FRAME_LOAD] = { NOTHING, { F(worker, 2), PAD(2), F(requests, 4),
	    F(prefill_tokens, 4), F(active_blocks, 4) } },
	[FRAME_OPEN] = { NUMBERS, { F(least, 8), F(most, 8) } },
	[FRAME_HELLO] = { TEXT, { F(policy, 8), F(block_size, 4),
	    F(workers, 2), F(unit, 1), F(length, 1) } },
	[FRAME_WORKER] = { TEXT, { F(epoch, 4), F(rank, 4), F(worker, 2),
	    F(state, 1), F(length, 1) } },
	[FRAME_ASK] = { NOTHING, { F(peer, 8), F(stamp_age, 8) } },
	[FRAME_SNAPSHOT] = { NOTHING, { F(peer, 8), F(sequence, 8),
	    F(stamp_age, 8), F(worker, 2), PAD(2), F(epoch, 4), F(blocks, 4),
	    PAD(4) } },
	[FRAME_SNAPSHOT_END] = { NOTHING, { F(peer, 8), F(pieces, 8) } },
	[FRAME_CHAIN] = { NUMBERS, { F(peer, 8), F(parent, 8),
	    F(first_block, 4), PAD(4) } },
	[FRAME_SITE] = { NOTHING, { F(site, 8) } },
	[FRAME_CHALLENGE] = { NOTHING, { F(challenge, 8) } },
	[FRAME_PROOF] = { NOTHING, { F(peer, 8), F(challenge, 8) } },
	[FRAME_TENANT] = { NOTHING, { F(parent, 8), F(tenant, 8), F(share, 4),
	    PAD(4) } }
};

static bool
known(uint64_t kind)
{
	return kind >= FRAME_RESERVE && kind < FRAME_KINDS;
}

/* Bytes of all fields of a kind. */
static size_t
fields_bytes(uint64_t kind)
{
	const struct field *f = kinds[kind].fields;
	size_t n = 0;

	for (; f->bytes > 0; f++)
		n += f->bytes;
	return n;
}

static size_t
whole_words(size_t bytes)
{
	return (bytes + 7) / 8 * 8;
}

/*
 * The key is a chain of hashes, one for each 16 bytes of the secret, keyed by
 * them: without all its bytes it is noise.
 */
void
frame_key(struct frame_rules *rules, const void *secret, size_t n)
{
	static const char purpose[] = "kvroute frame MAC";
	unsigned char message[32 + SIPHASH_BYTES], part[SIPHASH_BYTES];
	unsigned char *state = message + 32;
	const unsigned char *at = secret;
	struct siphash_key key;
	size_t i, take;

	memset(message, 0, sizeof(message));
	memcpy(message, purpose, sizeof(purpose));
	little_put(message + 24, n, 8);
	for (i = 0; i < n || i == 0; i += take) {
		take = n - i < sizeof(part) ? n - i : sizeof(part);
		memset(part, 0, sizeof(part));
		if (take > 0)
			memcpy(part, at + i, take);
		key = siphash_key(part);
		siphash(&key, message, sizeof(message), part);
		memcpy(state, part, sizeof(part));
		if (take < sizeof(part))
			break;
	}
	rules->key = siphash_key(state);
	rules->keyed = true;
}

/* ------------------------------------------------------------- writing --- */

void
frame_writer_init(struct frame_writer *w, const struct frame_rules *rules,
    uint64_t origin)
{
	w->rules = *rules;
	w->origin = origin;
	w->number = 1;
	w->n = FRAME_HEAD;
}

bool
frame_empty(const struct frame_writer *w)
{
	return w->n == FRAME_HEAD;
}

static uint64_t
field_get(const struct frame_record *record, const struct field *f)
{
	uint64_t value;

	memcpy(&value, (const char *)record + (size_t)f->at * 8, 8);
	return f->at == 0 ? 0 : value;
}

static bool
ascending(const struct frame_record *r)
{
	uint64_t least = r->least;
	size_t i;

	for (i = 0; i < r->length; i++) {
		if (r->numbers[i] < least || r->numbers[i] > r->most)
			return false;
		if (r->numbers[i] == UINT64_MAX)
			return i + 1 == r->length;
		least = r->numbers[i] + 1;
	}
	return r->least <= r->most;
}

static bool
writable(const struct frame_record *record)
{
	const struct field *f;

	if (!known(record->kind) || record->age > UINT32_MAX)
		return false;
	for (f = kinds[record->kind].fields; f->bytes > 0; f++)
		if (f->bytes < 8 && field_get(record, f) >> 8 * f->bytes != 0)
			return false;
	switch (kinds[record->kind].rest) {
	case NUMBERS:
		return record->length <= FRAME_NUMBERS_MAX &&
		    (record->kind != FRAME_OPEN || ascending(record));
	case TEXT:
		return record->length <= FRAME_TEXT_MAX;
	default:
		return true;
	}
}

/* Behind the fields; `to` has room for them. */
static void
put_rest(unsigned char *to, const struct frame_record *record)
{
	const enum rest rest = kinds[record->kind].rest;
	size_t i;

	if (rest == NUMBERS)
		for (i = 0; i < record->length; i++)
			little_put(to + 8 * i, record->numbers[i], 8);
	else if (rest == TEXT && record->length > 0)
		memcpy(to, record->text, record->length);
}

enum frame_result
frame_put(struct frame_writer *w, const struct frame_record *record)
{
	const size_t mac = w->rules.keyed ? SIPHASH_BYTES : 0;
	unsigned char *at = w->bytes + w->n;
	const struct field *f;
	size_t bytes;

	if (!writable(record))
		return FRAME_INVALID;
	bytes = RECORD_HEAD + fields_bytes(record->kind);
	if (kinds[record->kind].rest == NUMBERS)
		bytes += 8 * record->length;
	else if (kinds[record->kind].rest == TEXT)
		bytes += record->length;
	bytes = whole_words(bytes);
	if (bytes > FRAME_BYTES_MAX - mac - w->n)
		return FRAME_FULL;
	memset(at + bytes - 8, 0, 8);
	little_put(at, record->kind, 2);
	little_put(at + 2, bytes / 8, 2);
	little_put(at + 4, record->age, 4);
	at += RECORD_HEAD;
	for (f = kinds[record->kind].fields; f->bytes > 0; at += f++->bytes)
		little_put(at, field_get(record, f), f->bytes);
	put_rest(at, record);
	w->n += bytes;
	return FRAME_OK;
}

const unsigned char *
frame_finish(struct frame_writer *w, int64_t sent, size_t *n)
{
	unsigned char *head = w->bytes;

	*n = w->n + (w->rules.keyed ? SIPHASH_BYTES : 0);
	memcpy(head, magic, 4);
	little_put(head + 4, FRAME_MAJOR, 2);
	little_put(head + 6, FRAME_MINOR, 2);
	little_put(head + 8, w->rules.rule, 8);
	little_put(head + 16, w->origin, 8);
	little_put(head + 24, w->number++, 8);
	little_put(head + 32, (uint64_t)sent, 8);
	little_put(head + 40, *n, 4);
	little_put(head + 44, w->rules.keyed ? MAC_FOLLOWS : 0, 4);
	if (w->rules.keyed)
		siphash(&w->rules.key, head, w->n, head + w->n);
	w->n = FRAME_HEAD;
	return head;
}

/* ------------------------------------------------------------- reading --- */

/* Without a hint at the first byte that differs. */
static bool
same_mac(const unsigned char *a, const unsigned char *b)
{
	unsigned differ = 0;
	size_t i;

	for (i = 0; i < SIPHASH_BYTES; i++)
		differ |= (unsigned)(a[i] ^ b[i]);
	return differ == 0;
}

/* Is the MAC as the rules want it? *n becomes the length that it covers. */
static bool
authentic(const struct frame_rules *rules, const unsigned char *bytes,
    size_t *n)
{
	const bool has = little_get(bytes + 44, 4) & MAC_FOLLOWS;
	unsigned char mac[SIPHASH_BYTES];

	if (has != rules->keyed)
		return false;
	if (!has)
		return true;
	if (*n < FRAME_HEAD + SIPHASH_BYTES)
		return false;
	*n -= SIPHASH_BYTES;
	siphash(&rules->key, bytes, *n, mac);
	return same_mac(mac, bytes + *n);
}

static size_t
record_bytes(const unsigned char *at)
{
	return (size_t)little_get(at + 2, 2) * 8;
}

/* Reads the record at `at`; all its `bytes` are there. false: malformed. */
static bool
decode(const unsigned char *at, size_t bytes, struct frame_record *out,
    uint64_t *numbers)
{
	const unsigned char *end = at + bytes;
	const struct field *f;
	uint64_t value;
	size_t i;

	memset(out, 0, sizeof(*out));
	out->kind = little_get(at, 2);
	out->age = little_get(at + 4, 4);
	if (bytes < RECORD_HEAD + fields_bytes(out->kind))
		return false;
	at += RECORD_HEAD;
	for (f = kinds[out->kind].fields; f->bytes > 0; at += f++->bytes) {
		value = little_get(at, f->bytes);
		if (f->at != 0)
			memcpy((char *)out + (size_t)f->at * 8, &value, 8);
	}
	switch (kinds[out->kind].rest) {
	case NUMBERS:
		out->length = (size_t)(end - at) / 8;
		if (out->length > FRAME_NUMBERS_MAX)
			return false;
		for (i = 0; i < out->length; i++)
			numbers[i] = little_get(at + 8 * i, 8);
		out->numbers = numbers;
		return out->kind != FRAME_OPEN || ascending(out);
	case TEXT:
		out->text = (const char *)at;
		return out->length <= (size_t)(end - at);
	default:
		return true;
	}
}

/* Is each record whole and, if its kind is known, well formed? */
static bool
records_good(struct frame_reader *r)
{
	const unsigned char *at = r->at;
	struct frame_record record;
	size_t bytes;

	for (; at < r->end; at += bytes) {
		if (r->end - at < RECORD_HEAD)
			return false;
		bytes = record_bytes(at);
		if (bytes == 0 || bytes > (size_t)(r->end - at))
			return false;
		if (known(little_get(at, 2)) &&
		    !decode(at, bytes, &record, r->numbers))
			return false;
	}
	return true;
}

enum frame_verdict
frame_open(struct frame_reader *r, const struct frame_rules *rules,
    const void *bytes, size_t n)
{
	const unsigned char *head = bytes;

	if (n < FRAME_HEAD || n > FRAME_BYTES_MAX ||
	    memcmp(head, magic, sizeof(magic)) != 0)
		return FRAME_MALFORMED;
	/* The rest is as this version has it. */
	if (little_get(head + 4, 2) != FRAME_MAJOR)
		return FRAME_VERSION;
	if (little_get(head + 40, 4) != n)
		return FRAME_MALFORMED;
	if (little_get(head + 8, 8) != rules->rule)
		return FRAME_STRANGER;
	if (!authentic(rules, head, &n))
		return FRAME_FORGED;
	r->minor = (unsigned)little_get(head + 6, 2);
	r->origin = little_get(head + 16, 8);
	r->number = little_get(head + 24, 8);
	r->at = head + FRAME_HEAD;
	r->end = head + n;
	if (little_get(head + 32, 8) > INT64_MAX || !records_good(r)) {
		r->at = r->end;
		return FRAME_MALFORMED;
	}
	r->sent = (int64_t)little_get(head + 32, 8);
	return FRAME_GOOD;
}

bool
frame_next(struct frame_reader *r, struct frame_record *out)
{
	const unsigned char *at;

	while (r->at < r->end) {
		at = r->at;
		r->at += record_bytes(at);
		if (known(little_get(at, 2)))
			return decode(at, record_bytes(at), out, r->numbers);
	}
	return false;
}
