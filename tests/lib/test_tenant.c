/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_tenant.c - the tenant that loses entries when a region is full.
 *
 * The reference scans all cells: to which tenant each belongs, how many that
 * has, which of its entries is the oldest. The other tests are the promises of
 * kvr_tenant(3).
 */
#include "tenant.h"

#include "fit.h"
#include "tenants.h"

/* ------------------------------------------------------- the reference --- */

enum { ROWS = 8 };

struct reference {
	uint64_t cells[ROWS + 1];
	uint32_t oldest[ROWS + 1]; /* entry that is listed; 0: none */
};

/* The tenant of a tree, from its root. */
static uint32_t
owner_of(uint32_t node)
{
	while (node_at(k, node)->parent != 0)
		node = node_at(k, node)->parent;
	return belonging_at(k, node)->tenant;
}

/* At equal stamps the child is the older. */
static bool
older(uint32_t one, uint32_t other)
{
	const struct entry *a = entry_at(k, one), *b = entry_at(k, other);

	return other == 0 || a->stamp < b->stamp;
}

static void
count_entry(struct reference *r, uint32_t i)
{
	const struct entry *h = entry_at(k, i);
	uint32_t t = h->node != 0 ? owner_of(h->node) : 0;

	r->cells[t]++;
	if ((h->flags & ENTRY_LISTED) != 0 && older(i, r->oldest[t]))
		r->oldest[t] = i;
}

static void
scan(struct reference *r)
{
	uint32_t b, i;

	memset(r, 0, sizeof(*r));
	for (b = 0; b < k->region->node_buckets_used; b++)
		for (i = k->node_buckets[b]; i != 0; i = node_at(k, i)->next) {
			const struct node *n = node_at(k, i);

			r->cells[owner_of(i)] += 1 + cell_tree_size(n->begin,
			    n->begin + n->length, n->level) +
			    pairs_cells(n->holders);
		}
	for (b = 0; b < k->region->entry_buckets_used; b++)
		for (i = k->entry_buckets[b]; i != 0; i = entry_at(k, i)->next)
			if (entry_at(k, i)->kind == CELL_ENTRY)
				count_entry(r, i);
}

/* Returns the tenant with most for its share; fractions are compared. */
static uint32_t
fullest(const struct reference *r)
{
	uint32_t t, most = 0;

	for (t = 1; t <= ROWS; t++)
		if (r->oldest[t] != 0 && (r->oldest[most] == 0 ||
		    r->cells[t] * k->tenants[most].share >
		    r->cells[most] * k->tenants[t].share))
			most = t;
	return most;
}

/* One entry more than there is room for: which goes? */
static void
evict_as_reference(int64_t now)
{
	struct reference r;
	uint64_t evicted[ROWS + 1];
	int64_t stamp;
	uint32_t t, victim, entry;

	scan(&r);
	victim = fullest(&r);
	for (t = 0; t <= ROWS; t++) {
		must(k->tenants[t].cells == r.cells[t]);
		evicted[t] = k->tenants[t].evicted;
	}
	must(r.oldest[victim] != 0);
	entry = k->tenants[victim].by_stamp.head;
	stamp = entry_at(k, r.oldest[victim])->stamp;
	must(entry_at(k, entry)->stamp == stamp);
	if (entry_at(k, entry)->pins > 0)
		return; /* it would only leave the list */
	retain_make_room(k, now, k->region->free_cells + 1);
	for (t = 0; t <= ROWS; t++)
		must(k->tenants[t].evicted == evicted[t] + (t == victim));
}

START_TEST(as_the_reference)
{
	uint64_t lease[16] = { 0 };
	uint32_t i, turn;
	int64_t now;

	by_chance();
	shared_by(ROWS);
	for (now = 1; now < 200 + (int64_t)test_amount(3800); now++) {
		char tenant = (char)(pick(6) == 0 ? 0 : 'a' + pick(ROWS - 1));

		say_as(tenant, 1 + pick(pick(20) == 0 ? 2000 : 60), pick(30),
		    pick(40));
		turn = pick(10);
		i = pick(16);
		if (turn < 5 && lease[i] == 0) {
			lease[i] = reserved_for(pick(WORKERS), pick(3) == 0
			    ? 1 + pick(400) : 0, now);
		} else if (turn < 8 && lease[i] != 0) {
			if (pick(2) == 0)
				commit(lease[i], now);
			if (pick(3) != 0)
				finish(lease[i], now);
			else
				give_up(lease[i], now);
			lease[i] = 0;
		} else {
			(void)observed(pick(WORKERS), now);
		}
		if (pick(300) == 0)
			must(kvr_worker_reset(k, id[turn % WORKERS],
			    &id[turn % WORKERS]) == KVR_OK);
		if (now % 16 == 0)
			must(kvr_check(k) == KVR_OK);
		if (now > 100 && pick(4) == 0 && k->region->dead.head == 0)
			evict_as_reference(now);
	}
	must(stats().evicted_region > 0);
	region_end();
}
END_TEST

/* ------------------------------------------------------------ promises --- */

enum { CHATS = 20, FLOOD = 2100, TURN = 24, TURNS = 300 };

/*
 * Short chats of tenant a run beside long prompts of tenant b that do not come
 * again. Returns the share of the chats' earlier tokens that was found.
 */
static double
chats_beside_flood(uint32_t tenants, bool flood)
{
	uint64_t had = 0, found = 0;
	uint32_t length[CHATS] = { 0 }, i;

	shared_by(tenants);
	for (i = 0; i < TURNS; i++) {
		uint32_t chat = i % CHATS, before = length[chat];

		length[chat] += TURN;
		say_as('a', length[chat], 0, chat);
		had += before;
		found += overlap(0, 1 + i);
		ck_assert_uint_eq(observed(0, 1 + i), length[chat]);
		if (!flood)
			continue;
		say_as('b', FLOOD, 0, 100 + 2 * i);
		(void)observed(0, 1 + i);
		say_as('b', FLOOD, 0, 101 + 2 * i);
		(void)observed(0, 1 + i);
	}
	if (flood) /* twenty times the room */
		ck_assert_uint_gt((uint64_t)2 * FLOOD * TURNS,
		    20 * (uint64_t)k->layout.cells * PIECE);
	region_end();
	return (double)found / (double)had;
}

START_TEST(flood_takes_its_share)
{
	double alone = chats_beside_flood(0, false);
	double unshared = chats_beside_flood(0, true);
	double shared = chats_beside_flood(4, true);

	ck_assert(alone > 0.99);
	ck_assert(unshared < 0.5);
	ck_assert(shared > alone - 0.02);
}
END_TEST

START_TEST(by_their_shares)
{
	uint64_t lease;
	double one, other;
	uint32_t i;

	shared_by(4);
	for (i = 0; i < 3000; i++) {
		say_as(i % 2 == 0 ? 'a' : 'b', 50 + i % 100, 0, i);
		lease = reserved_for(0, i % 2 == 0 ? 100 : 300, 1 + i);
		finish(lease, 1 + i);
	}
	one = row_of('a')->cells;
	other = row_of('b')->cells;
	ck_assert(other > 2.8 * one && other < 3.2 * one);
	/* unchanged: a request without a share */
	say_as('b', 10, 0, 0);
	finish(reserved_for(0, 0, 1 + i), 1 + i);
	ck_assert_uint_eq(row_of('b')->share, 300);
	region_end();
}
END_TEST

/* Nothing is kept for a tenant that does not come; a late one gets its part. */
START_TEST(nothing_is_reserved)
{
	uint32_t i, all;

	shared_by(4);
	all = k->layout.cells;
	for (i = 0; i < 1000; i++) {
		say_as('a', 100, 0, i);
		(void)observed(0, 1 + i);
	}
	ck_assert_uint_gt(row_of('a')->cells, all / 10 * 9);
	for (; i < 2000; i++) {
		say_as('b', 100, 0, i);
		(void)observed(0, 1 + i);
	}
	ck_assert_uint_gt(row_of('a')->cells, all / 10 * 4);
	ck_assert_uint_gt(row_of('b')->cells, all / 10 * 4);
	ck_assert_uint_lt(row_of('b')->cells, all / 10 * 6);
	region_end();
}
END_TEST

/* Pinned entries cannot be evicted: then no more are added. */
START_TEST(pins_take_no_more_than_the_share)
{
	uint32_t i, small;

	shared_by(4);
	say_as('a', 500, 0, 0);
	(void)observed(0, 1);
	small = row_of('a')->cells;
	for (i = 1; i < 40; i++) {
		say_as('b', 3000, 0, i);
		(void)reserved_for(0, 0, 1 + i);
	}
	ck_assert_uint_gt(stats().truncated, 0);
	ck_assert_uint_eq(row_of('a')->cells, small);
	say_as('a', 500, 0, 0);
	ck_assert_uint_eq(overlap(0, 300), 500);
	region_end();
}
END_TEST

/* A small prefix of tenant a that is idle, beside much that is in flight. */
static void
all_pinned_but_one(char tenant)
{
	uint32_t i;

	shared_by(4);
	say_as('a', 500, 0, 0);
	(void)observed(0, 1);
	for (i = 1; i < 40; i++) {
		say_as(tenant, 3000, 0, i);
		(void)reserved_for(0, 0, 1 + i);
	}
}

/* Output without hashes is of the rest, which may not take from others. */
START_TEST(output_takes_from_none_with_less)
{
	uint32_t taken[4096], n = 0, entries;

	all_pinned_but_one(0);
	entries = slot_at(k, 0)->entries;
	while (k->region->free_cells > 0 && n < 4096)
		taken[n++] = cell_take(k);
	ck_assert_uint_eq(k->region->free_cells, 0);
	retain_add_anonymous(k, 0, 3, 50);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 0);
	ck_assert_uint_eq(row_of('a')->evicted, 0);
	/* once the rest has less for its share than tenant a */
	tenant_set_share(k, 0, 0, KVR_SHARE_MAX);
	retain_add_anonymous(k, 0, 3, 51);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 3);
	ck_assert_uint_eq(row_of('a')->evicted, 1);
	ck_assert_uint_eq(slot_at(k, 0)->entries, entries);
	while (n > 0) {
		cell_at(k, taken[--n])->tree.kind = CELL_FREE;
		cell_give(k, taken[n]);
	}
	region_end();
}
END_TEST

/* Leases that need more than is left to them take it from any tenant. */
START_TEST(leases_take_from_any_in_the_end)
{
	uint32_t i, spare;

	all_pinned_but_one('b');
	spare = k->region->free_cells;
	ck_assert_uint_gt(spare, fit_spare(k) / 2);
	for (i = 0; i < spare / 2; i++) {
		say_as('b', 3000, 0, 100 + i);
		must(reserved_for(0, 0, 100) != 0);
		must(row_of('a')->evicted == 0);
	}
	for (; row_of('a')->evicted == 0; i++) {
		must(i < spare / 2 + 2);
		must(reserved_for(0, 0, 100) != 0);
	}
	ck_assert_uint_eq(row_of('a')->evicted, 1);
	region_end();
}
END_TEST

/* Due entries go first, whichever tenant has most. */
START_TEST(due_before_full)
{
	struct kvr_options o = shared_options(4);

	o.ttl_ns = TTL;
	region_of(&o);
	say_as('a', 100, 0, 1);
	(void)observed(0, 1);
	say_as('b', 1000, 0, 2);
	(void)observed(0, 500);
	retain_make_room(k, 1 + TTL, k->region->free_cells + 1);
	ck_assert_uint_eq(row_of('a')->cells, 0);
	ck_assert_uint_eq(stats().expired, 1);
	ck_assert_uint_eq(row_of('a')->evicted, 0);
	retain_make_room(k, 1 + TTL, k->region->free_cells + 1);
	ck_assert_uint_eq(row_of('b')->evicted, 1);
	region_end();
}
END_TEST

/* ---------------------------------------------------------------- rows --- */

START_TEST(more_tenants_than_rows)
{
	const struct tenant *rest;
	char c;

	shared_by(2);
	for (c = 'a'; c <= 'e'; c++) {
		say_as(c, 32, 0, (uint32_t)c);
		(void)observed(0, 1);
		(void)reserved_for(0, 7, 1); /* changes that of its row alone */
	}
	rest = &k->tenants[0];
	ck_assert_ptr_nonnull(row_of('a'));
	ck_assert_ptr_nonnull(row_of('b'));
	ck_assert_ptr_null(row_of('c'));
	ck_assert_uint_eq(row_of('a')->share, 7);
	ck_assert_uint_eq(rest->share, KVR_SHARE_DEFAULT);
	ck_assert_uint_eq(rest->cells, 3 * row_of('a')->cells);
	/* without a tenant: of the rest, and with a share */
	say_as(0, 32, 0, 0);
	(void)reserved_for(0, 9, 2);
	ck_assert_uint_eq(rest->share, 9);
	ck_assert_uint_gt(rest->cells, 3 * row_of('a')->cells);
	region_end();
}
END_TEST

/* A tenant with nothing left keeps its row until another wants it. */
START_TEST(rows_are_used_again)
{
	uint32_t row;

	shared_by(2);
	row = tenant_find(k, 77);
	tenant_set_share(k, row, 77, 5);
	ck_assert_uint_eq(tenant_find(k, 77), row);
	ck_assert_uint_eq(k->tenants[row].share, 5);
	ck_assert_uint_ne(tenant_find(k, 88), row);
	/* both had nothing, and neither is free */
	ck_assert_uint_ne(tenant_find(k, 99), 0);
	ck_assert_uint_eq(tenant_find(k, 0), 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert_uint_eq(k->tenants[row].digest, 0);
	region_end();
}
END_TEST

/* In a large table a digest has some rows of its own. */
START_TEST(many_rows)
{
	uint32_t i, row, rows = 400, at[400];

	shared_by(1000);
	for (i = 0; i < rows; i++) {
		at[i] = row = tenant_find(k, 1 + i);
		ck_assert(row != 0 && row <= 1000);
		tenant_charge_cells(k, row, 1);
	}
	for (i = 0; i < rows; i++)
		ck_assert_uint_eq(tenant_find(k, 1 + i), at[i]);
	for (i = 0; i < rows; i++)
		tenant_charge_cells(k, at[i], (uint32_t)-1);
	region_end();
}
END_TEST

/* A whole tree is of the tenant that began it. */
START_TEST(trees_are_of_one_tenant)
{
	uint32_t cells;

	shared_by(4);
	say_as('a', 60, 30, 1);
	(void)observed(0, 1);
	say_as('b', 60, 30, 1);
	(void)observed(0, 1);
	ck_assert_uint_eq(row_of('a')->cells, row_of('b')->cells);
	cells = row_of('b')->cells;
	say_as('a', 60, 30, 2); /* a split, and a branch */
	(void)observed(1, 2);
	ck_assert_uint_gt(row_of('a')->cells, cells);
	ck_assert_uint_eq(row_of('b')->cells, cells);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_OK);
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	(void)expire(3, 100);
	ck_assert_uint_eq(row_of('a')->cells + row_of('b')->cells, 0);
	region_end();
}
END_TEST

/* Sets the prompt of a foreign record: it has hashes, and no tenant. */
static void
as_a_record(void)
{
	uint64_t hash[60], local;
	uint32_t i;

	for (i = 0; i < 60; i++)
		must(kvr_prompt_hash(p, i, &local, &hash[i]) == KVR_OK);
	must(kvr_prompt_set_sequences(p, p->root, 0, hash, 60, 60) == KVR_OK);
}

START_TEST(what_has_no_tenant_goes_on_in_a_tree)
{
	uint32_t cells;

	shared_by(4);
	say_as('a', 60, 0, 1);
	as_a_record();
	(void)observed(0, 1);
	ck_assert_ptr_null(row_of('a'));
	ck_assert_uint_gt(k->tenants[0].cells, 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	say_as('a', 30, 0, 1);
	(void)observed(0, 2);
	cells = row_of('a')->cells;
	say_as('a', 60, 0, 1);
	as_a_record();
	(void)observed(1, 3);
	ck_assert_uint_gt(row_of('a')->cells, cells);
	ck_assert_uint_eq(k->tenants[0].cells, 0);
	region_end();
}
END_TEST

/* A tenant can be set later; a set share gives way to a request's. */
START_TEST(what_is_told_of_a_tenant)
{
	shared_by(4);
	say_as('a', 60, 0, 1);
	as_a_record();
	must(kvr_prompt_set_tenant(p, digest_of('a'), 0) == KVR_OK);
	(void)observed(0, 1);
	ck_assert_uint_eq(k->tenants[0].cells, 0);
	ck_assert_uint_gt(row_of('a')->cells, 0);
	ck_assert_uint_eq(row_of('a')->share, KVR_SHARE_DEFAULT);
	must(kvr_prompt_set_tenant(p, digest_of('a'), 7) == KVR_OK);
	(void)observed(1, 2);
	ck_assert_uint_eq(row_of('a')->share, 7);
	(void)reserved_for(1, 9, 3);
	ck_assert_uint_eq(row_of('a')->share, 9);
	region_end();
}
END_TEST

Suite *suite_tenant(void);

Suite *
suite_tenant(void)
{
	Suite *s = suite_create("tenant");
	TCase *c = tcase_create("tenant");

	tcase_add_test(c, as_the_reference);
	tcase_add_test(c, flood_takes_its_share);
	tcase_add_test(c, by_their_shares);
	tcase_add_test(c, nothing_is_reserved);
	tcase_add_test(c, pins_take_no_more_than_the_share);
	tcase_add_test(c, output_takes_from_none_with_less);
	tcase_add_test(c, leases_take_from_any_in_the_end);
	tcase_add_test(c, due_before_full);
	tcase_add_test(c, more_tenants_than_rows);
	tcase_add_test(c, rows_are_used_again);
	tcase_add_test(c, many_rows);
	tcase_add_test(c, trees_are_of_one_tenant);
	tcase_add_test(c, what_has_no_tenant_goes_on_in_a_tree);
	tcase_add_test(c, what_is_told_of_a_tenant);
	suite_add_tcase(s, c);
	return s;
}
