/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c - checks every invariant of a region, in O(everything).
 *
 * The invariants, in the order of the functions below. A check runs only if the
 * earlier ones have passed, so none can be slow or leave the region:
 *   cells    cell 0 is blank; each other is exactly one of: free, a piece of
 *            one run, a node, a group of one node, an entry, a lease, the
 *            claim of a lease; free_cells counts the free ones
 *   nodes    found by their key; as long as their run; end with it; the
 *            parent is a node that ends where this one begins; children are
 *            counted; the way up ends at a root; an heir is a child, and a
 *            node without entries has one; lines are not too long
 *   entries  found by (node, slot); their pair equals them; each covers whole
 *            nodes of a line (cover.c), and another one the node above these,
 *            all of it; pins and stamps do not grow from there down; trimmed
 *            ones have blocks left or pins; anonymous ones are listed
 *   order    stamps ascend along lists by stamp, children precede parents;
 *            entries missing on one are pinned; the tournaments have the
 *            times when the heads are due: check_order.c
 *   tenants  a node has its parent's; the lists of tenants have the entries of
 *            all workers, in their order: check_tenants.c
 *   leases   a lease's node is where its blocks end; the pins of an entry are
 *            the leases through it; loads are those of leases and external
 *   names    each is found by itself and linked with its worker's slot, both
 *            ways; free names are on the free list, once
 *   aliases  the table of aliases is sound, and its blocks are held:
 *            alias_place.c
 *   figures  all that follows from the rest, or is an estimate: counters,
 *            loads, copies for choices, learnt figures: check_figures.c
 *
 * SEVERITY. Figures are no links. Where only they are wrong, the answers may
 * be poor, but the index is sound: KVR_EINEXACT, and check_mend computes them
 * anew. All else is KVR_ECORRUPT, and only emptying helps. An invariant must
 * hold in every region that calls alone have made, also after options of a
 * worker have changed: test_restart.c.
 */
#include "check.h"

#include "alias_place.h"
#include "cell.h"
#include "check_in.h"
#include "cover.h"
#include "entry.h"
#include "id.h"
#include "lease.h"
#include "run.h"
#include "table.h"

#include <stdlib.h>

/* --------------------------------------------------------------- cells --- */

/* Claims the pieces below one that lead to bottom pieces [first, last]. */
static bool
claim_pieces(struct sums *s, uint32_t piece, uint32_t level, uint32_t at,
    uint32_t first, uint32_t last, uint8_t what)
{
	uint32_t low, high, i;

	if (level >= RUN_LEVELS) /* GCOVR_EXCL_BR_LINE: changed meanwhile */
		return false;
	low = at << (4 * level);
	high = low + (UINT32_C(1) << (4 * level)) - 1;
	if (high < first || low > last)
		return true;
	if (!claim(s, piece, what))
		return false;
	s->free_cells += what == SEEN_FREE;
	for (i = 0; level > 0 && i < PIECE; i++)
		if (!claim_pieces(s, cell_at(s->k, piece)->piece[i], level - 1,
		    at * PIECE + i, first, last, what))
			return false;
	return true;
}

/* Cell 0, which reads of links out of bounds give, too. */
static bool
check_none(const struct kvr *k)
{
	static const union cell blank;

	return memcmp(cell_at(k, 0), &blank, sizeof(blank)) == 0;
}

static bool
check_free(struct sums *s)
{
	const struct kvr *k = s->k;
	const struct region *r = k->region;
	uint32_t i;

	if (r->magazine_count > MAGAZINE)
		return false;
	for (i = 0; i < r->magazine_count; i++, s->free_cells++)
		if (!claim(s, r->magazine[(r->magazine_first + i) % MAGAZINE],
		    SEEN_FREE))
			return false;
	for (i = r->free_top; i != 0; i = cell_at(k, i)->tree.next) {
		const struct tree *t = &cell_at(k, i)->tree;

		if (!claim(s, i, SEEN_FREE))
			return false;
		s->free_cells++;
		if (t->kind == CELL_TREE && (t->level >= RUN_LEVELS ||
		    t->first >= t->last))
			return false;
		if (t->kind == CELL_TREE && !claim_pieces(s, t->run, t->level,
		    0, t->first, t->last - 1, SEEN_FREE))
			return false;
	}
	for (i = r->fresh; i < k->layout.cells; i++, s->free_cells++)
		if (!claim(s, i, SEEN_FREE))
			return false;
	return s->free_cells == r->free_cells;
}

/* --------------------------------------------------------------- nodes --- */

static bool
check_groups(struct sums *s, uint32_t node)
{
	const struct node *n = node_at(s->k, node);
	uint32_t holders = read_once(n->holders);
	struct groups at = groups_of(n, holders);
	uint32_t last = (holders + PAIRS - 1u) / PAIRS - 1, i;

	/* a single entry is only bounds-checked here: see check_entry */
	if (holders == 0)
		return at.top == 0 && read_once(n->heir) != 0;
	if (holders == 1)
		return at.top - 1 < s->k->layout.cells - 1;
	if (!claim_pieces(s, at.top, at.level, 0, 0, last, SEEN_GROUP))
		return false;
	for (i = 0; i <= last; i++)
		*child_count(s, links_at(s->k, at.top, at.level, i)) = node;
	return true;
}

static bool
check_parent(struct sums *s, const struct node *n)
{
	const struct node *above = node_at(s->k, n->parent);

	if (n->parent == 0)
		return true;
	if (n->parent >= s->k->layout.cells || above->kind != CELL_NODE)
		return false;
	(*child_count(s, n->parent))++;
	return above->end == n->prev;
}

static bool
check_node(struct sums *s, uint32_t i)
{
	const struct kvr *k = s->k;
	const struct node *n = node_at(k, i);
	uint32_t last = n->begin + n->length - 1;

	if (!claim(s, i, SEEN_NODE) || n->kind != CELL_NODE ||
	    n->length == 0 || n->level >= RUN_LEVELS ||
	    run_level(last + 1) > n->level)
		return false;
	if (!claim_pieces(s, n->run, n->level, 0, n->begin / PIECE,
	    last / PIECE, SEEN_PIECE) || !check_groups(s, i))
		return false;
	if (run_get(k, n, 0) != n->first ||
	    run_get(k, n, n->length - 1) != (uint32_t)n->end)
		return false;
	s->counts.nodes++;
	s->counts.blocks += n->length;
	return check_parent(s, n);
}

/*
 * Every climb from a node ends at a root. Each climb marks its way with its
 * number and ends where another has been, so no node is passed twice.
 */
static bool
check_roots(struct sums *s)
{
	uint32_t i, at, cells = s->k->layout.cells, *mark = s->pins;
	bool good = true;

	for (i = 1; i < cells && good; i++) {
		if (s->seen[i] != SEEN_NODE || mark[i] != 0)
			continue;
		for (at = i; at < cells && s->seen[at] == SEEN_NODE &&
		    mark[at] == 0; at = node_at(s->k, at)->parent)
			mark[at] = i;
		good = at == 0 || (at < cells && mark[at] != 0 &&
		    mark[at] != i);
	}
	memset(mark, 0, cells * sizeof(*mark));
	return good;
}

/* Beyond CHILDREN_MANY they are not counted, also when some have gone. */
static bool
check_children(const struct node *n, uint32_t children)
{
	return n->children == CHILDREN_MANY || n->children == children;
}

static bool
check_heir(const struct sums *s, uint32_t i)
{
	uint32_t heir = node_at(s->k, i)->heir;

	return heir == 0 || (heir < s->k->layout.cells &&
	    seen_as(s, heir) == SEEN_NODE && node_at(s->k, heir)->parent == i);
}

/* No line of heirs is too long. The roots are good, so each has an end. */
static bool
check_lines(const struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i, at, nodes;

	for (i = 1; i < k->layout.cells; i++) {
		at = node_at(k, i)->parent;
		if (seen_as(s, i) != SEEN_NODE ||
		    (at != 0 && node_at(k, at)->heir == i))
			continue;
		for (nodes = 0, at = i; at != 0; at = node_at(k, at)->heir)
			if (++nodes > LINE_MAX)
				return false;
	}
	return true;
}

static bool
check_nodes(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t b, i, used = node_table_used(k);

	for (b = 0; b < used; b++)
		for (i = k->node_buckets[b]; i != 0; i = node_at(k, i)->next)
			if (!check_node(s, i) || bucket_of_node(k,
			    node_at(k, i)->prev, node_at(k, i)->first) != b)
				return false;
	for (i = 1; i < k->layout.cells; i++)
		if (s->seen[i] == SEEN_NODE && (!check_heir(s, i) ||
		    !check_children(node_at(k, i), s->children[i])))
			return false;
	return check_roots(s) && check_lines(s);
}

/* ------------------------------------------------------------- entries --- */

/* The pair that a match reads equals the entry. */
static bool
check_pair(const struct sums *s, const struct entry *h)
{
	const struct kvr *k = s->k;
	const struct node *n = node_at(k, h->node);
	uint16_t word = n->word;
	int64_t stamp = n->stamp;

	if ((h->group == 0) != (n->holders == 1) ||
	    (h->group == 0 && entry_lane(h) != 0))
		return false;
	if (h->group != 0) {
		const struct group *g = &cell_at(k, h->group)->group;

		if (entry_lane(h) >= PAIRS || h->group >= k->layout.cells ||
		    seen_as(s, h->group) != SEEN_GROUP ||
		    *child_count(s, h->group) != h->node)
			return false;
		word = g->word[entry_lane(h)];
		stamp = g->stamp[entry_lane(h)];
	}
	return stamp == h->stamp && (word & WORD_SLOT) == h->slot &&
	    ((word & WORD_PINNED) != 0) == (h->pins > 0) &&
	    ((word & WORD_TRIMMED) != 0) == (h->trimmed > 0 && h->pins == 0);
}

/*
 * An entry covers whole nodes, up the line, up to the next entry of its slot.
 * Returns the first of them; 0: it does not.
 */
static uint32_t
cover_top(const struct kvr *k, const struct entry *h)
{
	uint32_t node = h->node, left = h->blocks, above, limit = LINE_MAX;

	/* each line has an end, if none changes meanwhile */
	for (; limit > 0; limit--) { /* GCOVR_EXCL_BR_LINE */
		if (node_at(k, node)->length > left)
			return 0;
		left -= node_at(k, node)->length;
		above = node_at(k, node)->parent;
		if (left == 0)
			return node;
		if (above == 0 || node_at(k, above)->heir != node ||
		    entry_find(k, above, h->slot) != 0)
			return 0;
		node = above;
	}
	return 0;
}

/* THE invariant: index.c. Another entry covers the parent. */
static bool
check_above(const struct kvr *k, const struct entry *h)
{
	uint32_t top = cover_top(k, h), parent = node_at(k, top)->parent, i;
	const struct entry *above;

	if (top == 0 || parent == 0)
		return top != 0;
	i = cover_find(k, parent, h->slot);
	above = entry_at(k, i);
	return i != 0 && above != h && above->pins >= h->pins &&
	    above->stamp >= h->stamp &&
	    (above->trimmed == 0 || above->pins > 0);
}

/*
 * Entries missing on a list are pinned. Unconfirmed ones are pinned and were
 * due when that began. They may not be due any more: the TTL of a worker
 * changes with its facts and with its reports.
 */
static bool
check_flags(struct sums *s, const struct entry *h)
{
	bool pinned = h->pins > 0;
	bool idle = (h->flags & ENTRY_IDLE) != 0 ||
	    slot_at(s->k, h->slot)->retired != 0;

	if (!check_confirmed(h))
		s->inexact = true;
	return pinned || ((h->flags & ENTRY_LISTED) != 0 && idle);
}

static bool
check_entry(struct sums *s, uint32_t i)
{
	const struct kvr *k = s->k;
	const struct entry *h = entry_at(k, i);
	uint32_t length = h->blocks;
	struct slot *mine;

	if (h->trimmed > length || (h->trimmed == length && h->pins == 0))
		return false;
	if ((h->flags & (ENTRY_MARKED | ENTRY_WHOLE)) != 0 && h->trimmed > 0)
		return false;
	length -= h->pins > 0 ? 0 : h->trimmed;
	if (h->slot >= k->layout.slots || h->node >= k->layout.cells ||
	    seen_as(s, h->node) != SEEN_NODE ||
	    entry_find(k, h->node, h->slot) != i)
		return false;
	if (!check_pair(s, h) || !check_above(k, h) || !check_flags(s, h))
		return false;
	mine = slot_sum(s, h->slot);
	mine->entries++;
	mine->held += length;
	mine->active += h->pins > 0 ? length : 0;
	s->entries++;
	s->listed[1] += (h->flags & ENTRY_LISTED) != 0;
	s->listed[0] += (h->flags & ENTRY_IDLE) != 0 &&
	    slot_at(k, h->slot)->retired == 0;
	if (slot_at(k, h->slot)->retired == 0) {
		s->counts.entries++;
		s->counts.held += length;
	}
	return true;
}

static bool
check_lease_cell(struct sums *s, uint32_t i)
{
	const struct lease *l = lease_at(s->k, i);

	s->counts.leases++;
	return claim(s, l->claim, SEEN_CLAIM) && l->slot < s->k->layout.slots &&
	    l->number - 1 < s->k->region->lease_number &&
	    lease_find(s->k, id_of_lease(l->number)) == i;
}

/* Every entry is in its own bucket, once, so that lookups are short. */
static bool
claim_entries(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t b, i, home, used = entry_table_used(k);
	bool entry;

	for (b = 0; b < used; b++)
		for (i = k->entry_buckets[b]; i != 0;
		     i = entry_at(k, i)->next) {
			entry = entry_at(k, i)->kind == CELL_ENTRY;
			if (!entry && entry_at(k, i)->kind != CELL_LEASE)
				return false;
			home = entry ? bucket_of_entry(k, entry_at(k, i)->node,
			    entry_at(k, i)->slot)
			    : bucket_of_lease(k, lease_at(k, i)->number);
			if (home != b ||
			    !claim(s, i, entry ? SEEN_ENTRY : SEEN_LEASE))
				return false;
		}
	return true;
}

static bool
check_entries(struct sums *s)
{
	const struct kvr *k = s->k;
	uint64_t pairs = 0;
	uint32_t i;

	if (!claim_entries(s) || !check_anonymous(s))
		return false;
	for (i = 1; i < k->layout.cells; i++) {
		if ((s->seen[i] == SEEN_ENTRY && entry_at(k, i)->node != 0 &&
		    !check_entry(s, i)) ||
		    (s->seen[i] == SEEN_LEASE && !check_lease_cell(s, i)))
			return false;
		if (s->seen[i] == SEEN_NODE)
			pairs += node_at(k, i)->holders;
	}
	return pairs == s->entries;
}

/* -------------------------------------------------------------- leases --- */

static bool
check_lease(struct sums *s, uint32_t i)
{
	const struct kvr *k = s->k;
	const struct lease *l = lease_at(k, i);
	struct slot *mine = slot_sum(s, l->slot);
	const struct claim *c = claim_at(k, l->claim);
	uint32_t node = l->node, blocks = 0, entry, limit = k->layout.cells;
	uint32_t left = 0;
	bool prefilling = (l->flags & LEASE_PREFILLING) != 0;
	bool silent = prefilling && (l->flags & LEASE_SILENT) != 0;

	if ((c->prefill > 0 && !prefilling) || c->tail > 1)
		s->inexact = true;
	if ((l->flags & LEASE_DETACHED) != 0)
		return node == 0 && l->blocks == 0 && !prefilling &&
		    l->private == 0 && l->output == 0 && c->ahead == 0;
	for (; node != 0; node = node_at(k, node)->parent) {
		if (limit-- == 0 || node >= k->layout.cells ||
		    seen_as(s, node) != SEEN_NODE)
			return false;
		blocks += node_at(k, node)->length;
		if (left == 0) {
			entry = entry_find(k, node, l->slot);
			if (entry == 0)
				return false;
			(*pin_count(s, entry))++;
			left = entry_at(k, entry)->blocks;
		}
		left -= node_at(k, node)->length;
	}
	mine->leases++;
	mine->requests++;
	mine->prefill += prefilling ? c->prefill : 0;
	mine->silent += silent ? c->prefill : 0;
	mine->reading += c->tokens;
	mine->ahead += c->ahead;
	mine->output += (uint64_t)l->private + l->output;
	return blocks == l->blocks;
}

static bool
check_leases(struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i, prev = 0;
	uint64_t left = s->counts.leases;

	for (i = k->region->lease_first; i != 0;
	    i = lease_at(k, i)->age_next, left--) {
		if (left == 0 || i >= k->layout.cells ||
		    seen_as(s, i) != SEEN_LEASE ||
		    lease_at(k, i)->age_prev != prev ||
		    (prev != 0 && lease_at(k, i)->opened <
		    lease_at(k, prev)->opened) || !check_lease(s, i))
			return false;
		prev = i;
	}
	if (left != 0 || k->region->lease_last != prev)
		return false;
	for (i = 1; i < k->layout.cells; i++)
		if (s->seen[i] == SEEN_ENTRY &&
		    s->pins[i] != entry_at(k, i)->pins)
			return false;
	return true;
}

/* ---------------------------------------------------------------- slots --- */

/* Cells that nothing claimed are lost. A slot is free when nothing is left. */
static bool
check_slots(const struct sums *s)
{
	const struct kvr *k = s->k;
	uint32_t i;

	for (i = 1; i < k->layout.cells; i++)
		if (s->seen[i] == 0)
			return false;
	for (i = 0; i < k->layout.slots; i++) {
		const struct slot *sum = &s->slots[i];
		bool left = sum->entries + sum->leases > 0;

		if (slot_at(k, i)->retired != (left && !slot_in_use(k, i)))
			return false;
	}
	return true;
}

/* The clock is in its range; stamps come from it. */
static bool
check_clock(const struct kvr *k)
{
	return k->region->clock >= -1 && k->region->clock <= CLOCK_MAX &&
	    k->region->lease_number < ID_LEASE_MAX;
}

static bool
sums_begin(struct sums *s, const struct kvr *k)
{
	memset(s, 0, sizeof(*s));
	s->k = k;
	s->seen = calloc(k->layout.cells, sizeof(*s->seen));
	s->children = calloc(k->layout.cells, sizeof(*s->children));
	s->pins = calloc(k->layout.cells, sizeof(*s->pins));
	s->slots = calloc(k->layout.slots, sizeof(*s->slots));
	s->dp_groups = calloc(k->layout.names, sizeof(*s->dp_groups));
	s->alias_children = calloc(k->layout.aliases + (size_t)1,
	    sizeof(*s->alias_children));
	s->alias_places = calloc(k->layout.aliases + (size_t)1,
	    sizeof(*s->alias_places));
	s->tenant_cells = calloc(k->layout.tenants + (size_t)1,
	    sizeof(*s->tenant_cells));
	return s->seen != NULL && s->children != NULL && s->pins != NULL &&
	    s->slots != NULL && s->dp_groups != NULL &&
	    s->alias_children != NULL && s->alias_places != NULL &&
	    s->tenant_cells != NULL;
}

static void
sums_end(struct sums *s)
{
	free(s->seen);
	free(s->children);
	free(s->pins);
	free(s->slots);
	free(s->dp_groups);
	free(s->alias_children);
	free(s->alias_places);
	free(s->tenant_cells);
}

static int
check_sums(struct sums *s)
{
	const struct kvr *k = s->k;

	if (!check_clock(k) || !tables_sound(k) || !check_none(k) ||
	    !check_free(s) || !check_nodes(s) || !check_entries(s) ||
	    !check_order(s) || !check_tenants(s) || !check_leases(s) ||
	    !check_names(k) || !check_groups_of_ranks(k) || !check_slots(s))
		return KVR_ECORRUPT;
	s->lost = !alias_sound(k, s->alias_children) ||
	    !alias_places_sound(k, s->alias_places);
	return !s->inexact && !s->lost && check_figures(s) ? KVR_OK
	    : KVR_EINEXACT;
}

int
check_region(const struct kvr *k)
{
	struct sums s;
	int error = sums_begin(&s, k) ? check_sums(&s) : KVR_ENOMEM;

	sums_end(&s);
	return error;
}

int
check_mend(struct kvr *k)
{
	struct sums s;
	int error = sums_begin(&s, k) ? check_sums(&s) : KVR_ENOMEM;

	if (error == KVR_EINEXACT) {
		mend_figures(&s, k);
		error = KVR_OK;
	}
	sums_end(&s);
	return error;
}
