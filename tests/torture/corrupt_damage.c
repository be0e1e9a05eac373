/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * corrupt_damage.c - damage to a region before it is attached.
 *
 * Random bytes rarely hit a link, and a random link is nearly always out of
 * bounds. So most damage is aimed: a field of a cell in use gets a value that
 * means something (none, the first, the last, one beyond, another cell of some
 * kind, itself), or all cells of a kind get it at once. Only the lock, and the
 * word with its kind, are never damaged.
 */
#include "corrupt.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A field: its offset in a cell, or in the header, and its width. */
struct field {
	uint16_t at, width;
};
#define FIELD(s, f) { offsetof(struct s, f), sizeof(((struct s *)0)->f) }
#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof((a)[0])))

static const struct field node_fields[] = {
	FIELD(node, next), FIELD(node, kind), FIELD(node, level),
	FIELD(node, holders), FIELD(node, end), FIELD(node, prev),
	FIELD(node, first), FIELD(node, parent), FIELD(node, children),
	FIELD(node, heir),
	FIELD(node, run), FIELD(node, begin), FIELD(node, length),
	FIELD(node, entries), FIELD(node, word), FIELD(node, stamp)
};
static const struct field entry_fields[] = {
	FIELD(entry, next), FIELD(entry, kind), FIELD(entry, flags),
	FIELD(entry, slot), FIELD(entry, node), FIELD(entry, group),
	FIELD(entry, blocks), FIELD(entry, pins), FIELD(entry, stamp),
	FIELD(entry, stamp_prev), FIELD(entry, stamp_next),
	FIELD(entry, release_prev), FIELD(entry, release_next),
	FIELD(entry, trimmed), FIELD(entry, anchor), FIELD(entry, released)
};
static const struct field lease_fields[] = {
	FIELD(lease, next), FIELD(lease, kind),
	{ offsetof(struct lease, kind) + 1, 1 }, FIELD(lease, slot),
	FIELD(lease, number), FIELD(lease, owner), FIELD(lease, opened),
	FIELD(lease, claim), FIELD(lease, session), FIELD(lease, node),
	FIELD(lease, blocks),
	FIELD(lease, private), FIELD(lease, output),
	FIELD(lease, age_prev), FIELD(lease, age_next)
};
static const struct field claim_fields[] = {
	FIELD(claim, session), FIELD(claim, kind), FIELD(claim, reserved),
	FIELD(claim, ttl_ms), FIELD(claim, tokens), FIELD(claim, predicted),
	FIELD(claim, prefill), FIELD(claim, ages_end[0]),
	FIELD(claim, ages_end[1]), FIELD(claim, ages), FIELD(claim, overlap),
	FIELD(claim, active), FIELD(claim, ahead), FIELD(claim, tail),
	FIELD(claim, prompt)
};
static const struct field binding_fields[] = {
	FIELD(binding, digest), FIELD(binding, worker),
	FIELD(binding, stamp), FIELD(binding, ttl_ms), FIELD(binding, by_hand)
};
static const struct field alias_fields[] = {
	FIELD(alias, name), FIELD(alias, sequence), FIELD(alias, next),
	FIELD(alias, parent), FIELD(alias, node), FIELD(alias, children),
	FIELD(alias, life), FIELD(alias, worker), FIELD(alias, copies)
};
static const struct field tenant_fields[] = {
	FIELD(tenant, digest), FIELD(tenant, by_stamp.head),
	FIELD(tenant, by_stamp.tail), FIELD(tenant, fill),
	FIELD(tenant, cells), FIELD(tenant, share), FIELD(tenant, evicted)
};
static const struct field slot_fields[] = {
	FIELD(slot, by_stamp.head), FIELD(slot, by_stamp.tail),
	FIELD(slot, by_release.head), FIELD(slot, by_release.tail),
	FIELD(slot, held), FIELD(slot, active), FIELD(slot, output),
	FIELD(slot, ahead), FIELD(slot, anonymous), FIELD(slot, capacity),
	FIELD(slot, retain), FIELD(slot, eviction), FIELD(slot, mode),
	FIELD(slot, own_ttl), FIELD(slot, ttl), FIELD(slot, clock),
	FIELD(slot, outlived), FIELD(slot, filled[0]), FIELD(slot, filled[3]),
	FIELD(slot, stored),
	FIELD(slot, shown), FIELD(slot, block_tokens),
	FIELD(slot, learnt_block), FIELD(slot, common),
	FIELD(slot, common_of),
	FIELD(slot, last_first), FIELD(slot, silent),
	FIELD(slot, completions), FIELD(slot, name),
	FIELD(slot, dp_group), FIELD(slot, reading),
	FIELD(slot, window.mode), FIELD(slot, window.capacity),
	FIELD(slot, window.tokens),
	FIELD(slot, window.clock[0])
};
static const struct field slot_doubles[] = {
	FIELD(slot, weight), FIELD(slot, prefill_rate),
	FIELD(slot, rate_tokens), FIELD(slot, rate_seconds),
	FIELD(slot, completion)
};
static const struct field tree_fields[] = {
	FIELD(tree, next), FIELD(tree, kind), FIELD(tree, level),
	FIELD(tree, run), FIELD(tree, first), FIELD(tree, last)
};
static const struct field header_fields[] = {
	FIELD(region, seq), FIELD(region, workers),
	FIELD(region, name_free), FIELD(region, slot_free),
	FIELD(region, slots_used), FIELD(region, clock),
	FIELD(region, lease_number), FIELD(region, dead.head),
	FIELD(region, dead.tail), FIELD(region, lease_first),
	FIELD(region, lease_last), FIELD(region, free_top),
	FIELD(region, fresh), FIELD(region, free_cells),
	FIELD(region, magazine_count), FIELD(region, magazine[0]),
	FIELD(region, magazine[3]), FIELD(region, counts.leases),
	FIELD(region, counts.nodes), FIELD(region, counts.entries),
	FIELD(region, counts.bindings),
	FIELD(region, node_buckets_used), FIELD(region, entry_buckets_used),
	FIELD(region, alias_free), FIELD(region, alias_fresh),
	FIELD(region, alias_sweep), FIELD(region, alias_life),
	FIELD(region, alias_dead),
	FIELD(region, own_ttl), FIELD(region, inserted),
	FIELD(region, asked), FIELD(region, inserted_since),
	FIELD(region, observed_since), FIELD(region, fleet_tokens),
	FIELD(region, fleet_seconds), FIELD(region, rate_turn),
	FIELD(region, limits.ttl), FIELD(region, limits.lease),
	FIELD(region, limits.idle), FIELD(region, limits.prompt_blocks),
	FIELD(region, policy.balanced_bound),
	FIELD(region, policy.observed_seconds),
	FIELD(region, policy.cost), FIELD(region, policy.overlap_credit),
	FIELD(region, policy.overlap_decay),
	FIELD(region, policy.prefill_scale),
	FIELD(region, policy.request_weight),
	FIELD(region, policy.temperature),
	FIELD(region, policy.overload_prefill_tokens),
	FIELD(region, policy.overload_prefill_fraction),
	FIELD(region, policy.overload_blocks_fraction)
};
static const struct field seal_fields[] = {
	FIELD(seal, magic), FIELD(seal, version), FIELD(seal, byte_order),
	FIELD(seal, bytes), FIELD(seal, max_workers), FIELD(seal, rule.unit),
	FIELD(seal, rule.block_size), FIELD(seal, rule.kind),
	FIELD(seal, rule.eagle), FIELD(seal, rule.id),
	FIELD(seal, affinity_entries), FIELD(seal, layout.bindings),
	FIELD(seal, layout.slots_at), FIELD(seal, layout.cells_at),
	FIELD(seal, layout.end), FIELD(seal, layout.slots),
	FIELD(seal, layout.names), FIELD(seal, layout.leaves),
	FIELD(seal, layout.node_buckets), FIELD(seal, layout.cells)
};

static struct region *
region_of(const struct corrupt *c)
{
	return (struct region *)(void *)c->w->memory;
}

/* The layout of the region before any damage. */
static const struct layout *
layout_of(const struct corrupt *c)
{
	const struct region *whole = (const void *)c->w->image;

	return &whole->seal.layout;
}

bool
corrupt_is_lock(size_t at)
{
	const size_t lock = offsetof(struct region, lock);

	return at >= lock && at < lock + sizeof(((struct region *)0)->lock);
}

/* Writes where it is allowed. */
static void
write_at(struct corrupt *c, size_t at, const void *from, size_t n)
{
	const unsigned char *bytes = from;
	size_t i;

	for (i = 0; i < n && at + i < c->w->bytes; i++)
		if (!corrupt_is_lock(at + i))
			c->w->memory[at + i] = bytes[i];
}

/* The low bytes of a value, as many as the field has. */
static void
put_number(struct corrupt *c, size_t at, uint64_t value, size_t width)
{
	uint8_t one = (uint8_t)value;
	uint16_t two = (uint16_t)value;
	uint32_t four = (uint32_t)value;

	write_at(c, at, width == 1 ? (void *)&one : width == 2 ? (void *)&two
	    : width == 4 ? (void *)&four : (void *)&value,
	    width > 8 ? 8 : width);
}

static void
seal_again(struct corrupt *c)
{
	struct region *r = region_of(c);

	r->checksum = XXH3_64bits(&r->seal, sizeof(r->seal));
}

/* -------------------------------------------------------------- values --- */

static uint32_t
any_cell(struct corrupt *c)
{
	uint32_t kind = ops_pick(c->s, CELL_LEASE + 2);

	if (kind > CELL_LEASE || c->w->n[kind] == 0)
		return corrupt_pick(c->s, layout_of(c)->cells);
	return c->w->cells[kind][corrupt_pick(c->s, c->w->n[kind])];
}

static uint64_t
bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* Values of a link, a count or a length that may do harm. */
static uint64_t
any_value(struct corrupt *c, uint32_t self)
{
	const struct layout *l = layout_of(c);
	const uint64_t number[] = { 0, 1, 2, 15, 16, 17, 255, 256, l->slots,
		l->slots - 1, l->names, l->cells, l->cells - 1, l->cells + 1,
		INT32_MAX, UINT32_MAX, UINT32_MAX - 1, UINT64_MAX, INT64_MAX,
		(uint64_t)INT64_MAX + 1, 100, 40000, self };

	switch (ops_pick(c->s, 4)) {
	case 0:
		return any_cell(c);
	case 1:
		return ops_pick(c->s, 8) == 0 ? corrupt_word(c->s)
		    : ops_pick(c->s, 256);
	default:
		return number[ops_pick(c->s, COUNT(number))];
	}
}

static uint64_t
any_double(struct corrupt *c)
{
	static const double number[] = { 0, -0.0, 1, -1, 0.5, 1e-300, 1e300,
		-1e300, 1e18, 1e19, 0x1p63, -0x1p63, 1e-9 };
	static const uint64_t odd[] = { UINT64_C(0x7ff0000000000000),
		UINT64_C(0xfff0000000000000), UINT64_C(0x7ff8000000000000) };
	uint32_t i = ops_pick(c->s, COUNT(number) + COUNT(odd));

	return i < COUNT(number) ? bits_of(number[i])
	    : odd[i - COUNT(number)];
}

/* --------------------------------------------------------------- modes --- */

static void
damage_raw(struct corrupt *c)
{
	uint32_t n = 1 + ops_pick(c->s, 40), i, length;
	unsigned char run[64];

	for (; n > 0; n--) {
		/* every other time where slots and names are */
		size_t at = corrupt_pick(c->s, (uint32_t)(ops_pick(c->s, 2)
		    == 0 ? layout_of(c)->node_buckets_at : c->w->bytes));

		length = 1 + ops_pick(c->s, 8);
		if (ops_pick(c->s, 8) == 0)
			length = sizeof(run);
		for (i = 0; i < length; i++)
			run[i] = (unsigned char)ops_pick(c->s, 256);
		if (ops_pick(c->s, 4) == 0)
			memset(run, ops_pick(c->s, 2) == 0 ? 0 : 0xff, length);
		write_at(c, at, run, length);
	}
}

static void
damage_seal(struct corrupt *c)
{
	uint32_t n = 1 + ops_pick(c->s, 2);
	const struct field *f;

	for (; n > 0; n--) {
		f = &seal_fields[ops_pick(c->s, COUNT(seal_fields))];
		put_number(c, offsetof(struct region, seal) + f->at,
		    any_value(c, 0), f->width);
	}
	if (ops_pick(c->s, 8) == 0)
		put_number(c, corrupt_pick(c->s, sizeof(struct seal)),
		    corrupt_word(c->s), 1);
}

struct fields {
	const struct field *field;
	uint32_t n;
};

static struct fields
fields_of(uint32_t kind)
{
	static const struct fields all[CELL_LEASE + 1] = {
		[CELL_FREE] = { tree_fields, COUNT(tree_fields) },
		[CELL_TREE] = { tree_fields, COUNT(tree_fields) },
		[CELL_NODE] = { node_fields, COUNT(node_fields) },
		[CELL_ENTRY] = { entry_fields, COUNT(entry_fields) },
		[CELL_LEASE] = { lease_fields, COUNT(lease_fields) }
	};

	return all[kind];
}

static size_t
cell_offset(const struct corrupt *c, uint32_t cell)
{
	return layout_of(c)->cells_at + (size_t)cell * CELL;
}

/* Gives the field of one cell the value, or that of another of its kind. */
static void
put_field(struct corrupt *c, uint32_t kind, uint32_t cell, struct field f,
    uint64_t value, bool other)
{
	uint32_t from;

	if (!other) {
		put_number(c, cell_offset(c, cell) + f.at, value, f.width);
		return;
	}
	from = c->w->cells[kind][corrupt_pick(c->s, c->w->n[kind])];
	write_at(c, cell_offset(c, cell) + f.at,
	    c->w->image + cell_offset(c, from) + f.at, f.width);
}

/* none: of cell 0, as if it were of the kind. */
static void
damage_cell(struct corrupt *c, bool none)
{
	uint32_t kind = ops_pick(c->s, CELL_LEASE + 1), cell;
	struct fields fields = fields_of(kind);

	if (c->w->n[kind] == 0)
		return;
	cell = c->w->cells[kind][corrupt_pick(c->s, c->w->n[kind])];
	cell = none ? 0 : cell;
	put_field(c, kind, cell, fields.field[ops_pick(c->s, fields.n)],
	    any_value(c, cell), ops_pick(c->s, 4) == 0);
}

/* Damages a prediction made when a lease was opened. */
static void
damage_claim(struct corrupt *c)
{
	const struct lease *l;
	uint32_t n = c->w->n[CELL_LEASE], cell;

	if (n == 0)
		return;
	cell = c->w->cells[CELL_LEASE][corrupt_pick(c->s, n)];
	l = (const void *)(c->w->image + cell_offset(c, cell));
	put_field(c, CELL_LEASE, l->claim, claim_fields[ops_pick(c->s,
	    COUNT(claim_fields))], any_value(c, l->claim), false);
}

/* The external load of a worker by source, or its sums in a slot at `slot`. */
static void
damage_load(struct corrupt *c, size_t slot)
{
	static const struct field sums[] = {
		FIELD(slot, load_prefill), FIELD(slot, load_blocks),
		FIELD(slot, load_used), FIELD(slot, load_requests)
	};
	const uint32_t words = sizeof(struct outside) / sizeof(uint64_t);
	uint32_t what = ops_pick(c->s, 2 * COUNT(sums)), word;

	if (what < COUNT(sums)) {
		put_number(c, slot + sums[what].at, any_value(c, 0),
		    sums[what].width);
		return;
	}
	word = corrupt_pick(c->s, layout_of(c)->names * words);
	put_number(c, layout_of(c)->outside_at + word * sizeof(uint64_t),
	    any_value(c, 0), sizeof(uint64_t));
}

/* A field of a binding. */
static void
damage_binding(struct corrupt *c)
{
	struct field f = binding_fields[ops_pick(c->s,
	    COUNT(binding_fields))];
	size_t at = layout_of(c)->bindings_at + sizeof(struct binding) *
	    corrupt_pick(c->s, layout_of(c)->bindings);

	put_number(c, at + f.at, any_value(c, 0), f.width);
}

/* A field of an alias. */
static void
damage_alias(struct corrupt *c)
{
	struct field f = alias_fields[ops_pick(c->s, COUNT(alias_fields))];
	size_t at = layout_of(c)->aliases_at + sizeof(struct alias) *
	    (1 + corrupt_pick(c->s, layout_of(c)->aliases));

	put_number(c, at + f.at, any_value(c, 0), f.width);
}

/* Damages a field of a tenant, a match, or the owner of a cell. */
static void
damage_tenant(struct corrupt *c)
{
	const struct layout *l = layout_of(c);
	struct field f = tenant_fields[ops_pick(c->s, COUNT(tenant_fields))];

	switch (ops_pick(c->s, 3)) {
	case 0:
		put_number(c, l->tenants_at + sizeof(struct tenant) *
		    corrupt_pick(c->s, l->tenant_leaves) + f.at,
		    any_value(c, 0), f.width);
		break;
	case 1:
		put_number(c, l->tenant_winner_at + sizeof(uint16_t) *
		    corrupt_pick(c->s, l->tenant_leaves), any_value(c, 0),
		    sizeof(uint16_t));
		break;
	default:
		put_number(c, l->belonging_at + sizeof(uint32_t) *
		    (2 * any_cell(c) + ops_pick(c->s, 2)), any_value(c, 0),
		    sizeof(uint32_t));
	}
}

/* Damages the record of a worker. */
static void
damage_slot(struct corrupt *c)
{
	size_t at = layout_of(c)->slots_at + sizeof(struct slot) *
	    corrupt_pick(c->s, layout_of(c)->slots);
	struct field f = slot_fields[ops_pick(c->s, COUNT(slot_fields))];
	uint32_t how = ops_pick(c->s, 256);

	if (how % 4 == 0) {
		f = slot_doubles[ops_pick(c->s, COUNT(slot_doubles))];
		put_number(c, at + f.at, any_double(c), f.width);
	} else if (how >= 224) {
		damage_load(c, at);
	} else if (how >= 208 && layout_of(c)->aliases > 0) {
		damage_alias(c);
	} else if (how % 4 == 1 && layout_of(c)->tenants > 0) {
		damage_tenant(c);
	} else if (how >= 192) {
		damage_binding(c);
	} else {
		put_number(c, at + f.at, any_value(c, 0), f.width);
	}
}

/* A word of a group, a piece, a slot, a name, a bucket, a binding ... */
static void
damage_word(struct corrupt *c)
{
	const struct layout *l = layout_of(c);
	size_t from = ops_pick(c->s, 2) == 0 ? l->slots_at : l->cells_at;
	size_t to = from == l->slots_at ? l->cells_at : c->w->bytes;
	size_t at = from + corrupt_pick(c->s, (uint32_t)(to - from) / 4) * 4;

	if (ops_pick(c->s, 6) == 0)
		put_number(c, at & ~(size_t)7, any_double(c), 8);
	else
		put_number(c, at, any_value(c, 0),
		    (size_t)1 << ops_pick(c->s, 4));
}

static void
damage_header(struct corrupt *c)
{
	struct field f = header_fields[ops_pick(c->s, COUNT(header_fields))];

	bool real = f.width == sizeof(double) &&
	    (f.at >= offsetof(struct region, policy) ||
	    f.at == offsetof(struct region, inserted) ||
	    f.at == offsetof(struct region, asked) ||
	    f.at == offsetof(struct region, fleet_tokens) ||
	    f.at == offsetof(struct region, fleet_seconds));

	put_number(c, f.at, real && ops_pick(c->s, 2) == 0
	    ? any_double(c) : any_value(c, 0), f.width);
}

static void
damage_field(struct corrupt *c)
{
	uint32_t n = 1 + ops_pick(c->s, 24), what;

	for (; n > 0; n--)
		switch (what = ops_pick(c->s, 8)) {
		case 0:
			damage_header(c);
			break;
		case 1:
			damage_word(c);
			break;
		case 2:
			damage_claim(c);
			break;
		case 3: case 4:
			damage_slot(c);
			break;
		default:
			damage_cell(c, what == 7);
		}
}

/* All cells of a kind at once: the worst that one field can do. */
static void
damage_bulk(struct corrupt *c)
{
	uint32_t rounds = 1 + ops_pick(c->s, 5), i;

	for (; rounds > 0; rounds--) {
		uint32_t kind = ops_pick(c->s, CELL_LEASE + 1);
		struct fields fields = fields_of(kind);
		struct field f = fields.field[ops_pick(c->s, fields.n)];
		uint64_t value = any_value(c, 0);
		uint32_t how = ops_pick(c->s, 3), n = c->w->n[kind];

		for (i = 0; i < n; i++)
			put_field(c, kind, c->w->cells[kind][i], f,
			    how == 0 ? c->w->cells[kind][(i + 1) % n] : value,
			    how == 1);
	}
}

/* Every bucket of a table begins with the same cell. */
static void
ring_buckets(struct corrupt *c, uint32_t kind)
{
	const struct layout *l = layout_of(c);
	uint32_t n = kind == CELL_NODE ? l->node_buckets : l->entry_buckets, i;
	uint64_t at = kind == CELL_NODE ? l->node_buckets_at
	    : l->entry_buckets_at;

	for (i = 0; i < n; i++)
		put_number(c, at + i * sizeof(uint32_t), c->w->cells[kind][0],
		    sizeof(uint32_t));
}

/* All cells of a kind in one ring by one link, whatever they were. */
static void
damage_ring(struct corrupt *c)
{
	static const struct ring {
		uint32_t kind;
		struct field link;
	} rings[] = {
		{ CELL_NODE, FIELD(node, next) },
		{ CELL_NODE, FIELD(node, parent) },
		{ CELL_ENTRY, FIELD(entry, next) },
		{ CELL_ENTRY, FIELD(entry, stamp_next) },
		{ CELL_ENTRY, FIELD(entry, release_next) },
		{ CELL_LEASE, FIELD(lease, next) },
		{ CELL_LEASE, FIELD(lease, age_next) },
		{ CELL_TREE, FIELD(tree, next) },
		{ CELL_FREE, FIELD(tree, next) },
	};
	uint32_t which = 1 + corrupt_pick(c->s, 511), i, j;

	for (i = 0; i < COUNT(rings); i++) {
		uint32_t kind = rings[i].kind, n = c->w->n[kind];

		if ((which >> i & 1) == 0)
			continue;
		for (j = 0; j < n; j++)
			put_number(c, cell_offset(c, c->w->cells[kind][j]) +
			    rings[i].link.at, c->w->cells[kind][(j + 1) % n],
			    rings[i].link.width);
		if (n > 0 && (rings[i].link.at == offsetof(struct node, next))
		    && ops_pick(c->s, 2) == 0 && kind >= CELL_NODE)
			ring_buckets(c, kind);
	}
	if (ops_pick(c->s, 2) == 0)
		damage_field(c);
}

static void
damage_none(struct corrupt *c)
{
	(void)c;
}

void
corrupt_damage(struct corrupt *c)
{
	static void (*const modes[])(struct corrupt *) = {
		[CORRUPT_NONE] = damage_none,
		[CORRUPT_RAW] = damage_raw,
		[CORRUPT_SEAL] = damage_seal,
		[CORRUPT_FIELD] = damage_field,
		[CORRUPT_BULK] = damage_bulk,
		[CORRUPT_RING] = damage_ring
	};

	modes[c->mode](c);
	if (c->mode != CORRUPT_NONE && ops_pick(c->s, 8) == 7)
		atomic_fetch_or(&region_of(c)->seq, 1);
	/* nearly always let deeper code see it */
	if (ops_pick(c->s, 16) != 15)
		seal_again(c);
}
