/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease.c - requests in flight: their pins and their load.
 *
 *             commit            first token
 *   opened ---------> committed -----------> decoding
 *      |                  |  finish             |  finish
 *      `---- abort ----> (ended) <--------------'
 *
 * A lease pins the path of its prompt. Pinned blocks are live regardless of
 * their stamps, and count as active blocks of the worker once, however many
 * leases share them. Blocks that could not be recorded, and output blocks that
 * were only counted, are the lease's private load. Prefill tokens are booked
 * until the first token. Blocks booked ahead are the expected output, by the
 * worker's average, and the last, partial block of the prompt; they count where
 * a capacity is known.
 *
 * A lease has two cells: its state, and the claim, which has the predictions
 * made when it was opened. When it finishes, the claim is compared with the
 * report (report.c). The output blocks are then idle in the engine's cache like
 * all others, whether their hashes are known (lease_extend) or not.
 *
 * A lease that has the digest of a session binds it to its worker when it is
 * committed, and refreshes the binding afterwards: affinity.c.
 *
 * A lease ends at the node `node`: a split leaves that number to the lower
 * part, and a merge never takes a node in which a lease ends. Leases are linked
 * in a list by age, to find overdue ones, and hashed in the table of entries by
 * number. A number is never reused.
 *
 * When a worker is removed or reset, its leases are orphaned and stay valid.
 * When the slot is reclaimed, they are detached from it (lease_walk.c); only
 * their ids stay valid.
 */
#include "lease.h"

#include "affinity.h"
#include "ages.h"
#include "cell.h"
#include "claim.h"
#include "entry.h"
#include "event_stream.h"
#include "fit.h"
#include "id.h"
#include "index.h"
#include "load.h"
#include "pressure.h"
#include "rate.h"
#include "report.h"
#include "retain.h"
#include "table.h"
#include "trust.h"
#include "window.h"

/* ---------------------------------------------------- table and list --- */

uint32_t
lease_find(const struct kvr *k, uint64_t id)
{
	uint32_t limit = CHAIN_MAX, i;
	uint64_t number;

	if (!id_lease_number(id, &number))
		return 0;
	i = k->entry_buckets[bucket_of_lease(k, number)];
	for (; i != 0 && limit > 0; i = lease_at(k, i)->next, limit--) {
		const struct lease *l = lease_at(k, i);

		if (l->kind == CELL_LEASE && l->number == number)
			return i;
	}
	return 0;
}

static void
lease_link(struct kvr *k, uint32_t lease)
{
	struct region *r = k->region;
	struct lease *l = lease_at(k, lease);
	uint32_t *head;

	entry_table_grow(k);
	head = &k->entry_buckets[bucket_of_lease(k, l->number)];
	write_once(l->next, *head);
	write_once(*head, lease);
	write_once(l->age_prev, r->lease_last);
	write_once(*(r->lease_last != 0 ? &lease_at(k, r->lease_last)->age_next
	    : &r->lease_first), lease);
	put_once(r->lease_last, lease);
	add_once(r->counts.leases, 1);
}

static void
lease_unlink(struct kvr *k, uint32_t lease)
{
	struct region *r = k->region;
	const struct lease *l = lease_at(k, lease);

	bucket_remove(k, &k->entry_buckets[bucket_of_lease(k, l->number)],
	    lease);
	write_once(*(l->age_prev != 0 ? &lease_at(k, l->age_prev)->age_next
	    : &r->lease_first), l->age_next);
	write_once(*(l->age_next != 0 ? &lease_at(k, l->age_next)->age_prev
	    : &r->lease_last), l->age_prev);
	sub_once(r->counts.leases, 1);
}

/* ---------------------------------------------------------------- load --- */

static void
book_private(struct kvr *k, struct lease *l, uint32_t blocks)
{
	struct slot *s = slot_at(k, l->slot);

	add_once(s->output, blocks - (uint64_t)l->private);
	add_once(s->blocks, blocks - (uint64_t)l->private);
	write_once(l->private, blocks);
}

static void
book_output(struct kvr *k, struct lease *l, uint32_t blocks)
{
	struct slot *s = slot_at(k, l->slot);

	add_once(s->output, blocks - (uint64_t)l->output);
	add_once(s->blocks, blocks - (uint64_t)l->output);
	write_once(l->output, blocks);
}

static void
book_prefill(struct kvr *k, const struct lease *l, uint64_t tokens)
{
	struct claim *c = claim_at(k, l->claim);
	struct slot *s = slot_at(k, l->slot);

	add_once(s->prefill, tokens - c->prefill);
	if ((l->flags & LEASE_SILENT) != 0)
		add_once(s->silent, tokens - c->prefill);
	write_once(c->prefill, tokens);
}

static void
book_ahead(struct kvr *k, const struct lease *l, uint32_t blocks)
{
	struct claim *c = claim_at(k, l->claim);

	add_once(slot_at(k, l->slot)->ahead, blocks - (uint64_t)c->ahead);
	write_once(c->ahead, blocks);
}

/* Blocks that were booked ahead now exist. */
static void
unbook_ahead(struct kvr *k, const struct lease *l, uint32_t blocks)
{
	const struct claim *c = claim_at(k, l->claim);
	uint32_t max = c->ahead > c->tail ? c->ahead - c->tail : 0;

	book_ahead(k, l, c->ahead - (blocks < max ? blocks : max));
}

static void
prefill_begin(struct kvr *k, struct lease *l, const struct kvr_prompt *p,
    const struct choice *c, int64_t now)
{
	uint64_t all = prompt_tokens(p);
	uint64_t tokens = c->tokens < all ? all - c->tokens : 0;

	if ((c->flags & KVR_IGNORE_PREFILL) != 0)
		return;
	book_prefill(k, l, tokens);
	if ((l->flags & LEASE_SILENT) != 0)
		rate_book_silent(k, l->slot, tokens, now);
	rate_publish_next(k);
	write_once(l->flags, l->flags | LEASE_PREFILLING);
}

static void
prefill_end(struct kvr *k, struct lease *l)
{
	if ((l->flags & LEASE_PREFILLING) == 0)
		return;
	write_once(l->flags, l->flags & (uint8_t)~LEASE_PREFILLING);
	book_prefill(k, l, 0);
	if ((l->flags & LEASE_SILENT) != 0)
		rate_unbook_silent(k, l->slot, k->region->clock);
}

/* ------------------------------------------------------------- opening --- */

/* Was its worker removed or reset? If so it can only be ended. */
bool
lease_orphaned(const struct kvr *k, const struct lease *l)
{
	return (l->flags & LEASE_DETACHED) != 0 ||
	    slot_at(k, l->slot)->retired != 0;
}

/* Blocks of a prompt to record, if there is room. */
uint32_t
lease_blocks(const struct kvr *k, const struct kvr_prompt *p)
{
	uint64_t max = read_once(k->region->limits.prompt_blocks);

	if (max > RECORD_MAX)
		max = RECORD_MAX; /* it is damaged */
	return p->blocks < max ? p->blocks : (uint32_t)max;
}

/* Expected output. */
static uint32_t
completion_blocks(const struct kvr *k, uint32_t slot)
{
	double blocks = slot_at(k, slot)->completion / trust_ratio(k, slot) /
	    hash_block_tokens(&k->rule) + 0.5;

	return blocks > 0 && blocks < 1e6 ? (uint32_t)blocks : 0;
}

/*
 * Returns 0 if there is no room even for a lease: nearly every cell is pinned,
 * and those spared for leases (fit_spare) are in use.
 */
uint64_t
lease_open(struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct choice *choice, int64_t now,
    uint32_t *recorded)
{
	struct insert how = { .want = lease_blocks(k, p), .share = r->share };
	const uint32_t slot = choice->slot;
	struct slot *s = slot_at(k, slot);
	struct lease *l;
	uint32_t i, claim;

	*recorded = 0;
	retain_make_room(k, now, 2);
	if (k->region->free_cells < 2)
		return 0;
	if (k->region->lease_number >= ID_LEASE_MAX) {
		region_break(k); /* no region lives that long */
		return 0;
	}
	scope_note(k, p->root);
	i = cell_take(k);
	claim = cell_take(k);
	claim_make(k, claim, p, choice, r->affinity_ttl);
	l = lease_at(k, i);
	write_once_zeros(l, sizeof(*l));
	write_once(l->kind, CELL_LEASE);
	write_once(l->flags, (choice_records(choice) ? 0 : LEASE_UNRECORDED) |
	    ((choice->flags & KVR_NO_FIRST_TOKEN) != 0 ? LEASE_SILENT : 0));
	write_once(l->slot, (uint16_t)slot);
	add_once(k->region->lease_number, 1);
	write_once(l->number, k->region->lease_number);
	write_once(l->owner, r->owner);
	write_once(l->opened, now);
	write_once(l->claim, claim);
	write_once(l->session, (uint32_t)(choice->session >> 32));
	if (choice_records(choice))
		write_once(l->node, fit_insert(k, p, slot, &how, now,
		    recorded));
	ages_note(k, claim_at(k, claim), l, *recorded);
	index_pin(k, l->node, slot, 0, now);
	write_once(l->blocks, *recorded);
	lease_link(k, i);
	add_once(s->leases, 1);
	add_once(s->requests, 1);
	add_once(s->reading, claim_at(k, claim)->tokens);
	book_private(k, l, p->blocks - l->blocks);
	book_ahead(k, l, claim_at(k, claim)->tail +
	    completion_blocks(k, slot));
	prefill_begin(k, l, p, choice, now);
	retain_evict_lost(k, slot);
	load_recount(k, slot);
	return id_of_lease(l->number);
}

/* ------------------------------------------------------------- session --- */

static struct affinity_use
session_use(const struct kvr *k, const struct lease *l)
{
	const struct claim *c = claim_at(k, l->claim);
	struct affinity_use use = { (uint64_t)l->session << 32 | c->session,
		l->slot, c->ttl_ms, false };

	return use;
}

static void
session_refresh(struct kvr *k, const struct lease *l, int64_t now)
{
	struct affinity_use use = session_use(k, l);

	affinity_refresh(k, &use, now);
}

/* ----------------------------------------------------------- in flight --- */

/* Dispatched: the whole path is confirmed. */
void
lease_commit(struct kvr *k, uint32_t lease, int64_t now)
{
	struct lease *l = lease_at(k, lease);
	const struct claim *c = claim_at(k, l->claim);
	struct affinity_use use = session_use(k, l);
	const uint64_t filled = c->tokens - c->predicted;
	bool first = (l->flags & LEASE_COMMITTED) == 0;

	write_once(l->flags, l->flags | LEASE_COMMITTED);
	if (lease_orphaned(k, l))
		return; /* its slot may have become another worker's */
	if (first) { /* now it fills the cache */
		if ((l->flags & LEASE_PREFILLING) != 0)
			pressure_add(k, l->slot, filled, c->tokens, now);
		window_fill(k, l->slot, filled);
		affinity_bind(k, &use, now);
	}
	/* events may have removed the end since: only this call marks it */
	window_stamp(k, l->node, l->slot, (first || event_tracks(k, l->slot)) &&
	    l->blocks == c->prompt, now);
}

bool
lease_committed(const struct kvr *k, uint32_t lease)
{
	return (lease_at(k, lease)->flags & LEASE_COMMITTED) != 0;
}

void
lease_first_token(struct kvr *k, uint32_t lease, int64_t now)
{
	struct lease *l = lease_at(k, lease);

	write_once(l->flags, l->flags | LEASE_DECODING);
	if (!lease_orphaned(k, l))
		session_refresh(k, l, now);
	if ((l->flags & LEASE_PREFILLING) == 0)
		return;
	rate_learn(k, l->slot, claim_at(k, l->claim)->prefill, l->opened, now);
	prefill_end(k, l);
	rate_publish_next(k);
	load_recount(k, l->slot);
}

/*
 * Whether p is the lease's prompt, possibly with more at its end. A resumed
 * prompt has no blocks before those it was saved with, and cannot show whether
 * less was recorded.
 */
bool
lease_extends(const struct kvr *k, uint32_t lease, const struct kvr_prompt *p)
{
	const struct lease *l = lease_at(k, lease);
	uint32_t blocks = read_once(l->blocks);

	if (lease_orphaned(k, l))
		return true;
	if (p->blocks < (uint64_t)blocks + l->private)
		return false;
	return blocks == 0 || blocks < p->first ||
	    node_at(k, l->node)->end == *prompt_sequence(p, blocks - 1);
}

/*
 * Appends new whole blocks to the path, pinned and confirmed. Blocks between
 * the recorded ones and the first of a resumed prompt remain a number, and so
 * do all after them.
 */
static void
lease_grow(struct kvr *k, struct lease *l, const struct kvr_prompt *p,
    int64_t now)
{
	struct insert how = { .want = lease_blocks(k, p),
		.in_place = !event_tracks(k, l->slot), .below = l->node,
		.depth = read_once(l->blocks) };
	uint32_t recorded, node, had = l->blocks + l->private;

	if ((l->flags & LEASE_UNRECORDED) == 0 && how.want > how.depth &&
	    how.depth >= p->first) {
		node = fit_insert(k, p, l->slot, &how, now, &recorded);
		if (recorded > l->blocks) {
			index_pin(k, node, l->slot, l->node, now);
			write_once(l->node, node);
			write_once(l->blocks, recorded);
		}
	}
	book_private(k, l, p->blocks - l->blocks);
	unbook_ahead(k, l, p->blocks - had);
	window_stamp(k, l->node, l->slot, false, now);
	retain_evict_lost(k, l->slot);
}

void
lease_extend(struct kvr *k, uint32_t lease, const struct kvr_prompt *p,
    int64_t now)
{
	struct lease *l = lease_at(k, lease);

	if (lease_orphaned(k, l))
		return;
	lease_grow(k, l, p, now);
	load_recount(k, l->slot);
}

/* More output blocks, without their hashes. */
void
lease_output(struct kvr *k, uint32_t lease, uint32_t blocks)
{
	struct lease *l = lease_at(k, lease);

	if ((l->flags & LEASE_DETACHED) != 0)
		return;
	if (blocks > UINT32_MAX - l->output)
		blocks = UINT32_MAX - l->output;
	book_output(k, l, l->output + blocks);
	unbook_ahead(k, l, blocks);
	retain_evict_lost(k, l->slot);
	load_recount(k, l->slot);
}

/* -------------------------------------------------------------- ending --- */

/* Gives up pins, load and the slot, if the lease still has them. */
void
lease_detach(struct kvr *k, struct lease *l)
{
	struct slot *s = slot_at(k, l->slot);

	if ((l->flags & LEASE_DETACHED) != 0)
		return;
	index_unpin(k, l->node, l->slot);
	prefill_end(k, l);
	book_ahead(k, l, 0);
	book_private(k, l, 0);
	book_output(k, l, 0);
	sub_once(s->requests, 1);
	sub_once(s->leases, 1);
	sub_once(s->reading, claim_at(k, l->claim)->tokens);
	retain_evict_lost(k, l->slot);
	load_recount(k, l->slot);
	region_slot_free(k, l->slot);
	write_once(l->flags, l->flags | LEASE_DETACHED);
	write_once(l->node, 0);
	write_once(l->blocks, 0);
}

static void
lease_end(struct kvr *k, uint32_t lease)
{
	lease_detach(k, lease_at(k, lease));
	lease_unlink(k, lease);
	write_once(lease_at(k, lease)->kind, CELL_FREE);
	cell_give(k, lease_at(k, lease)->claim);
	cell_give(k, lease);
}

/*
 * Output tokens as reported; 0 if not reported, or if prompt and output exceed
 * the worker's capacity.
 */
static uint64_t
completion_tokens(const struct kvr *k, const struct lease *l,
    const struct kvr_report *report)
{
	uint64_t capacity = trust_told_room(k, l->slot);
	uint64_t prompt = report != NULL && report->prompt_tokens > 0
	    ? report->prompt_tokens : claim_at(k, l->claim)->tokens;

	return report != NULL && prompt <= capacity &&
	    report->completion_tokens <= capacity - prompt
	    ? report->completion_tokens : 0;
}

/* Whole blocks of prompt and output, which stay cached. */
static uint64_t
completed_blocks(const struct kvr *k, const struct lease *l,
    const struct kvr_report *report)
{
	const struct claim *c = claim_at(k, l->claim);
	uint64_t tokens = completion_tokens(k, l, report);
	uint64_t all = (uint64_t)c->prompt + c->tail + l->output;
	double blocks = ((double)c->tokens +
	    (double)tokens / trust_ratio(k, l->slot)) /
	    hash_block_tokens(&k->rule);

	if (tokens > 0) /* up to 2^64, if the capacity is */
		return blocks < 0x1p63 ? (uint64_t)blocks : UINT64_C(1) << 63;
	return c->tail + l->output > 0 ? all - 1 : all;
}

/* The average output of a worker, over the last hundred or so. */
static void
learn_completion(struct kvr *k, const struct lease *l,
    const struct kvr_report *report)
{
	struct slot *s = slot_at(k, l->slot);
	uint64_t tokens = completion_tokens(k, l, report);
	double share;

	if (tokens == 0)
		return;
	add_once(s->completions, 1);
	share = 1 / (double)s->completions;
	if (share < 0.01)
		share = 0.01;
	add_once(s->completion, ((double)tokens - s->completion) * share);
}

/*
 * Where a capacity is given, the output takes room in it, and so do layers with
 * windows.
 */
static void
cache_completion(struct kvr *k, const struct lease *l,
    const struct kvr_report *report, int64_t now)
{
	const struct claim *c = claim_at(k, l->claim);
	uint64_t all = completed_blocks(k, l, report);

	if (slot_at(k, l->slot)->mode != KVR_RETAIN_CAPACITY ||
	    trust_learnt(k, l->slot))
		return;
	retain_add_anonymous(k, l->slot, window_kept(k, l->slot, c->tokens,
	    c->tokens - c->predicted + completion_tokens(k, l, report)), now);
	if (all > l->blocks)
		retain_add_anonymous(k, l->slot, all - l->blocks, now);
}

/* The prompt and the answer stay cached. */
static void
complete_lease(struct kvr *k, uint32_t lease, const struct kvr_report *report,
    int64_t now)
{
	const struct lease *l = lease_at(k, lease);

	learn_completion(k, l, report);
	report_take(k, l, claim_at(k, l->claim), report);
	/* the output is below the path: it comes first in both orders */
	cache_completion(k, l, report, now);
	lease_commit(k, lease, now);
	session_refresh(k, l, now);
	lease_end(k, lease);
}

void
lease_finish(struct kvr *k, uint32_t lease, const struct kvr_report *report,
    int64_t now)
{
	const struct lease *l = lease_at(k, lease);

	if (lease_orphaned(k, l)) {
		lease_end(k, lease);
		return;
	}
	complete_lease(k, lease, report, now);
}

void
lease_abort(struct kvr *k, uint32_t lease)
{
	lease_end(k, lease);
}

/*
 * The owner will not end it: if dispatched, it counts as finished at an unknown
 * time.
 */
void
lease_reap(struct kvr *k, uint32_t lease, int64_t now)
{
	const struct lease *l = lease_at(k, lease);

	if ((l->flags & LEASE_COMMITTED) == 0 || lease_orphaned(k, l))
		lease_abort(k, lease);
	else
		complete_lease(k, lease, NULL, now);
	add_once(k->region->counts.lease_reaps, 1);
}
