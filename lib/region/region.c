/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.c - the memory of an index: its layout and its seal.
 *
 * THE SEQLOCK is a number that is even while the index is consistent and odd
 * while a writer changes it. It serves two purposes:
 *
 *   a writer died    Its lock is taken over (lock.c). Even: it had not begun,
 *                    or was done. Odd: the index is not valid; it is emptied.
 *   a reader reads   without the lock, and accepts the result if the number
 *                    was even before and is unchanged after: txn.c.
 */
#include "region.h"

#include "journal.h"
#include "layout.h"
#include "seat.h"
#include "table.h"
#include "tenant.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC UINT64_C(0x6b76726f75746521) /* "kvroute!" */
#define UNMADE UINT64_C(0x756e6d6164653f3f) /* "unmade??": being formatted */
enum { FORMAT_VERSION = 32, BYTE_ORDER_MARK = 0x01020304, MIN_CELLS = 64,
	LIMITS_LOOKS = 16 };

/* ------------------------------------------------------------- layout --- */

static uint64_t
align_line(uint64_t at)
{
	return (at + (CELL - 1)) & ~(uint64_t)(CELL - 1);
}

static uint32_t
layout_seats(uint64_t bytes)
{
	uint64_t seats = bytes / BYTES_PER_SEAT;

	if (seats < SEATS_MIN)
		return SEATS_MIN;
	return seats < SEATS_MAX ? (uint32_t)seats : SEATS_MAX;
}

/* The next array of the layout l; `at` is where the one before ends. */
#define LAY(name, type, count, align, begin) \
	if (LAYOUT_##align == LAYOUT_LINE) \
		at = align_line(at); \
	l->name##_at = at; \
	at += (uint64_t)(count) * sizeof(type);

/* Lays out all that does not depend on the number of cells; returns its end. */
static uint64_t
layout_fixed(struct layout *l, const struct kvr_options *o, uint64_t bytes)
{
	uint64_t at = sizeof(struct region);

	l->slots = o->max_workers * SLOTS_PER_WORKER;
	l->names = l->name_buckets = o->max_workers;
	for (l->leaves = 2; l->leaves < l->slots; l->leaves *= 2)
		continue;
	l->seats = layout_seats(bytes);
	l->bindings = (o->affinity_entries + (BINDINGS - 1u)) / BINDINGS *
	    BINDINGS;
	l->aliases = (uint32_t)o->event_blocks;
	l->tenants = o->tenants;
	for (l->tenant_leaves = 2; l->tenant_leaves <= l->tenants;
	    l->tenant_leaves *= 2)
		continue;
	l->journal_bytes = o->journal_bytes;
	l->user_bytes = o->user_bytes;
	LAYOUT_FIXED(LAY)
	return at;
}

static uint64_t
layout_cells(struct layout *l, uint64_t at)
{
	LAYOUT_CELLS(LAY)
	return at;
}

/*
 * One bucket per 8 cells in each of the two tables: in the worst case, every
 * run one block long, that is less than 3 nodes per bucket. A cell is counted
 * with its byte of the tables. The buckets that are not full, and the padding
 * of both tables, are at most 127 bytes: less than the two cells left out. The
 * tenants of cells follow the cells, in a line of their own anyway.
 */
int
region_layout(const struct kvr_options *o, uint64_t bytes, struct layout *out)
{
	struct layout l;
	uint64_t at, cells, owned = 0;
	const uint64_t spare = 2 * CELL;

	memset(&l, 0, sizeof(l));
	at = layout_fixed(&l, o, bytes);
	if (l.tenants > 0)
		owned = sizeof(union belonging);
	if (bytes < at + spare)
		return KVR_ETOOSMALL;
	cells = (bytes - at - spare) / (CELL + 1 + owned);
	if (cells > INT32_MAX)
		cells = INT32_MAX;
	if (cells < MIN_CELLS)
		return KVR_ETOOSMALL;
	l.cells = (uint32_t)cells;
	l.node_buckets = l.entry_buckets = (l.cells + 7) / 8;
	l.end = layout_cells(&l, at);
	*out = l;
	return KVR_OK;
}

/* ------------------------------------------------------ format, attach --- */

static uint64_t
seal_checksum(const struct seal *s)
{
	return XXH3_64bits(s, sizeof(*s));
}

static void
loads_open(struct kvr *k)
{
	struct loads *l = &k->loads;
	uint32_t slots = k->layout.slots;

	l->prefill = (double *)(void *)k->load_rows;
	l->booked = l->prefill + slots;
	l->blocks = l->booked + slots;
	l->id = (uint64_t *)(void *)(l->blocks + slots);
	l->identity = l->id + slots;
	l->requests = (uint32_t *)(void *)(l->identity + slots);
	l->gate = l->requests + slots;
	l->ttl = (int64_t *)(void *)(l->gate + slots);
	l->silent_until = l->ttl + slots;
	l->observed_until = l->silent_until + slots;
	l->pace = (double *)(void *)(l->observed_until + slots);
	l->reading = l->pace + slots;
	l->inserted = l->reading + slots;
	l->observed_requests = l->inserted + slots;
	l->observed_reading = l->observed_requests + slots;
}

#define OPEN(name, type, count, align, begin) \
	k->name = (type *)(void *)(base + l->name##_at);

/* The seal is the caller's copy, which no other process can change. */
static void
handle_open(struct kvr *k, struct region *r, const struct seal *seal)
{
	char *base = (char *)r;
	const struct layout *l = &seal->layout;

	k->region = r;
	k->layout = *l;
	k->kind = seal->kind;
	LAYOUT_FIXED(OPEN)
	LAYOUT_CELLS(OPEN)
	loads_open(k);
	k->rule = seal->rule;
	memcpy(k->table_key, seal->table_key, sizeof(k->table_key));
}

/*
 * Another handle of the region, for a change by a call that has its own as
 * const. It has no seat, and nothing of it is to be freed. Not a copy: other
 * threads may be setting the atomic members.
 */
void
region_view(const struct kvr *k, struct kvr *view)
{
	struct seal seal;

	memset(&seal, 0, sizeof(seal));
	seal.layout = k->layout;
	seal.kind = k->kind;
	seal.rule = k->rule;
	memcpy(seal.table_key, k->table_key, sizeof(seal.table_key));
	memset(view, 0, sizeof(*view));
	view->own = k->own;
	handle_open(view, k->region, &seal);
}

/* Names are allocated from a free list, the only state of the durable part. */
static void
names_init(struct kvr *k)
{
	uint32_t i, n = k->layout.names;

	for (i = 0; i < n; i++)
		k->names[i].next = i + 1 < n ? i + 2 : 0;
	k->region->name_free = 1;
}

struct limits
region_limits(const struct kvr_options *o, const struct layout *layout)
{
	struct limits l = { o->ttl_ns, o->lease_limit_ns, o->idle_limit_ns,
		o->max_prompt_blocks == KVR_AUTO ? layout->cells / 8 * PIECE
		: o->max_prompt_blocks, 0 };

	if (l.prompt_blocks > RECORD_MAX)
		l.prompt_blocks = RECORD_MAX;
	l.digest = XXH3_64bits(&l, offsetof(struct limits, digest));
	return l;
}

/* A mixture of two writes has another digest: then the reader looks again. */
bool
region_limits_get(const struct kvr *k, struct limits *l)
{
	uint32_t looks = LIMITS_LOOKS;

	do
		read_once_words(l, &k->region->limits, sizeof(*l));
	while (l->digest != XXH3_64bits(l, offsetof(struct limits, digest)) &&
	    --looks > 0);
	return looks > 0;
}

bool
region_limits_sound(const struct kvr *k)
{
	struct limits l;

	return region_limits_get(k, &l);
}

void
region_limits_recover(struct kvr *k)
{
	const struct kvr_options o = { .ttl_ns = TTL_USUAL,
		.lease_limit_ns = LEASE_LIMIT_USUAL,
		.idle_limit_ns = IDLE_LIMIT_USUAL,
		.max_prompt_blocks = KVR_AUTO };
	struct limits l = region_limits(&o, &k->layout);

	if (!region_limits_sound(k))
		write_once_words(&k->region->limits, &l, sizeof(l));
}

static void
seal_fill(struct seal *s, const struct kvr_options *o, const uint64_t *key)
{
	s->version = FORMAT_VERSION;
	s->byte_order = BYTE_ORDER_MARK;
	s->max_workers = o->max_workers;
	s->affinity_entries = o->affinity_entries;
	s->journal_bytes = o->journal_bytes;
	s->event_blocks = o->event_blocks;
	s->tenants = o->tenants;
	s->user_bytes = o->user_bytes;
	memcpy(s->table_key, key, sizeof(s->table_key));
}

/*
 * The magic number is written last: if the process dies before that, the memory
 * is known not to be a region yet.
 */
static void
seal_close(struct region *r)
{
	struct seal seal = r->seal;

	seal.magic = MAGIC;
	r->checksum = seal_checksum(&seal);
	atomic_thread_fence(memory_order_seq_cst);
	write_once(*(volatile uint64_t *)&r->seal.magic, MAGIC);
}

#define CLEAR(name, type, count, align, begin) \
	if (LAYOUT_##begin == LAYOUT_CLEAR) \
		memset(k->name, 0, (size_t)(count) * sizeof(type));

static void
arrays_clear(struct kvr *k)
{
	const struct layout *l = &k->layout;

	LAYOUT_FIXED(CLEAR)
}

int
region_format(const struct region_begin *b, void *memory, uint64_t bytes,
    uint32_t kind)
{
	struct region *r = memory;
	struct layout layout;
	struct own own = { 0 };
	struct kvr k;
	uint32_t i;
	int error = region_layout(b->options, bytes, &layout);

	if (error != KVR_OK)
		return error;
	write_once(*(volatile uint64_t *)&r->seal.magic, UNMADE);
	atomic_thread_fence(memory_order_seq_cst);
	memset((char *)r + sizeof(r->seal.magic), 0,
	    sizeof(*r) - sizeof(r->seal.magic));
	r->seal.kind = kind;
	r->seal.room = kind == REGION_MEMORY ? seat_room() : 0;
	r->seal.bytes = bytes;
	r->seal.rule = *b->rule;
	r->seal.layout = layout;
	seal_fill(&r->seal, b->options, b->table_key);
	memcpy(r->boot_id, b->options->boot_id, sizeof(r->boot_id));
	r->limits = region_limits(b->options, &layout);
	r->clock = -1;
	r->journal_beat = -1;
	r->journal_head = JOURNAL_FIRST;
	r->journal_reserved = JOURNAL_FIRST;
	r->alias_fresh = 1;
	r->policy = *b->policy;
	r->fleet_tokens = b->fleet_tokens;
	r->fleet_seconds = b->fleet_seconds;
	memset(&k, 0, sizeof(k));
	k.own = &own;
	handle_open(&k, r, &r->seal);
	arrays_clear(&k);
	if (layout.aliases > 0)
		memset(k.aliases, 0, sizeof(struct alias));
	for (i = 0; i < layout.slots; i++)
		k.loads.gate[i] = GATE_FREE;
	names_init(&k);
	region_empty(&k);
	seal_close(r);
	return KVR_OK;
}

/* Has a process that died while it formatted left such a beginning? */
bool
region_unmade(const void *head, size_t bytes)
{
	uint64_t magic = 0;

	if (bytes >= sizeof(magic))
		memcpy(&magic, head, sizeof(magic));
	return magic == UNMADE;
}

/* Whether the hash rule is one that options can express. */
static bool
seal_sound(const struct seal *s)
{
	struct hash_rule rule = s->rule;

	hash_rule_seal(&rule);
	return rule.id == s->rule.id && rule.unit <= KVR_UNIT_BYTES &&
	    rule.kind <= KVR_HASH_DYNAMO && rule.eagle <= 1 &&
	    rule.block_size >= 1 && rule.block_size <= BLOCK_BYTES_MAX &&
	    hash_stride(&rule) <= BLOCK_BYTES_MAX &&
	    s->kind <= REGION_FILE;
}

/* Is the layout the one that follows from the options? */
static bool
layout_sound(const struct seal *s)
{
	struct kvr_options o;
	struct layout layout;

	if (s->max_workers < 1 || s->max_workers > KVR_WORKERS_MAX ||
	    s->affinity_entries > KVR_AFFINITY_ENTRIES_MAX ||
	    !journal_bytes_ok(s->journal_bytes) ||
	    s->event_blocks > KVR_EVENT_BLOCKS_MAX ||
	    s->tenants > KVR_TENANTS_MAX ||
	    s->user_bytes > KVR_USER_BYTES_MAX)
		return false;
	memset(&o, 0, sizeof(o));
	o.max_workers = s->max_workers;
	o.affinity_entries = (uint32_t)s->affinity_entries;
	o.journal_bytes = s->journal_bytes;
	o.event_blocks = s->event_blocks;
	o.tenants = (uint32_t)s->tenants;
	o.user_bytes = s->user_bytes;
	return region_layout(&o, s->bytes, &layout) == KVR_OK &&
	    memcmp(&layout, &s->layout, sizeof(layout)) == 0;
}

/*
 * The magic number, which region_format writes last, is read first. The seal is
 * not trusted before its checksum is verified. It is read once: a writer may
 * change it after it has been found good.
 */
int
region_attach(void *memory, uint64_t bytes, struct kvr *k)
{
	struct region *r = memory;
	struct seal seal;

	if (bytes < sizeof(*r))
		return KVR_EFORMAT;
	if (read_once(r->seal.magic) != MAGIC)
		return KVR_EFORMAT;
	atomic_thread_fence(memory_order_acquire);
	read_once_words(&seal, &r->seal, sizeof(seal));
	if (seal.version != FORMAT_VERSION)
		return KVR_EVERSION;
	if (seal.byte_order != BYTE_ORDER_MARK || seal.bytes > bytes ||
	    read_once(r->checksum) != seal_checksum(&seal) ||
	    !seal_sound(&seal) || !layout_sound(&seal))
		return KVR_EFORMAT;
	handle_open(k, r, &seal);
	return KVR_OK;
}

/* --------------------------------------------------------------- empty --- */

/* Frees a retired slot once nothing refers to it. */
void
region_slot_free(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);

	if (slot >= k->layout.slots || s->retired == 0 || s->entries > 0 ||
	    s->leases > 0)
		return;
	put_once(s->retired, 0);
	write_once(s->name, k->region->slot_free);
	put_once(k->region->slot_free, slot + 1);
}

static void
slot_empty(struct slot *s)
{
	write_once_zeros(&s->by_stamp, sizeof(s->by_stamp));
	write_once_zeros(&s->by_release, sizeof(s->by_release));
	put_once(s->entries, 0);
	put_once(s->requests, 0);
	put_once(s->prefill, 0);
	put_once(s->blocks, 0);
	put_once(s->held, 0);
	put_once(s->active, 0);
	put_once(s->output, 0);
	put_once(s->leases, 0);
	put_once(s->load_requests, 0);
	put_once(s->ahead, 0);
	put_once(s->anonymous, 0);
	put_once(s->outlived, 0);
	put_once(s->last_first, 0);
	put_once(s->silent, 0);
	put_once(s->reading, 0);
	put_once(s->load_prefill, 0);
	put_once(s->load_used, 0);
	put_once(s->load_blocks, 0);
	put_once(s->over_prefill, 0);
	put_once(s->over_blocks, 0);
}

/* Resets the figures of a slot that choices read. */
static void
load_empty(struct kvr *k, uint32_t slot)
{
	write_once_double(&k->loads.prefill[slot], 0);
	write_once_double(&k->loads.blocks[slot], 0);
	write_once_double(&k->loads.booked[slot], 0);
	write_once(k->loads.silent_until[slot], INT64_C(0));
	write_once(k->loads.observed_until[slot], INT64_C(0));
	write_once(k->loads.requests[slot], 0);
	write_once_double(&k->loads.reading[slot], 0);
	write_once_double(&k->loads.inserted[slot], 0);
	write_once_double(&k->loads.observed_requests[slot], 0);
	write_once_double(&k->loads.observed_reading[slot], 0);
	write_once(k->loads.gate[slot],
	    k->loads.gate[slot] & ~(uint32_t)GATE_OVERLOADED);
}

/* No slot is due; every match is won by its first leaf: order.c. */
static void
tournament_empty(struct kvr *k)
{
	uint32_t i, leaves = k->layout.leaves;

	put_once(k->region->stamped_kept, 0);
	for (i = 0; i < leaves; i++)
		write_once(k->due[i], INT64_MAX);
	for (i = leaves; --i > 0;)
		write_once(k->due_winner[i], 2 * i >= leaves
		    ? (uint16_t)(2 * i - leaves) : k->due_winner[2 * i]);
}

/* No rank is overloaded any more. */
static void
groups_empty(struct kvr *k)
{
	uint32_t i, group;

	for (i = 0; i < k->layout.names; i++)
		write_once(k->dp_groups[i].not_overloaded, 0);
	for (i = 0; i < k->layout.slots; i++) {
		group = k->slots[i].dp_group - 1;
		if (group < k->layout.names && slot_relieves(&k->slots[i]))
			write_once(k->dp_groups[group].not_overloaded,
			    k->dp_groups[group].not_overloaded + 1);
	}
}

/*
 * Empties the disposable part: prefixes, leases, loads. Workers stay, and so do
 * the clock and the next lease number, so that no number is ever reused.
 */
void
region_empty(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t i;

	tables_empty(k);
	write_once_zeros(k->cells, sizeof(union cell));
	write_once(r->dead.head, 0);
	put_once(r->dead.tail, 0);
	put_once(r->lease_first, 0);
	put_once(r->lease_last, 0);
	put_once(r->detach_idle, 0);
	put_once(r->detach_at, 0);
	put_once(r->free_top, 0);
	put_once(r->magazine_first, 0);
	put_once(r->magazine_count, 0);
	put_once(r->fresh, 1);
	put_once(r->free_cells, k->layout.cells - 1);
	put_once(r->counts.nodes, 0);
	put_once(r->counts.entries, 0);
	put_once(r->counts.blocks, 0);
	put_once(r->counts.held, 0);
	put_once(r->counts.leases, 0);
	write_once_double(&r->inserted, 0);
	write_once_double(&r->asked, 0);
	put_once(r->inserted_since, -1);
	write_once(r->observed_since, INT64_C(-1));
	write_once_zeros(k->stacks, k->layout.names * sizeof(*k->stacks));
	for (i = 0; i < k->layout.slots; i++) {
		slot_empty(&k->slots[i]);
		load_empty(k, i);
		region_slot_free(k, i);
	}
	write_once_zeros(k->outside, k->layout.names * sizeof(*k->outside));
	groups_empty(k);
	tournament_empty(k);
	tenant_empty(k);
}
