/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_recover.c - opening an existing region file: a warm start after an
 * orderly end, recovery after a crash or damage, an empty region after a
 * reboot.
 */
#define _GNU_SOURCE
#include "files.h"

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ------------------------------------------------------------ warm restart */

START_TEST(warm)
{
	uint64_t lease;

	made();
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_int_eq(stats().clock, 20);
	ck_assert_uint_eq(stats().recoveries, 0);
	ck_assert_uint_eq(stats().observes, 2);
	say("abcd");
	ck_assert_uint_eq(overlap(0, 10 + TTL - 1), 4);
	ck_assert_uint_eq(overlap(0, 10 + TTL), 0);
	ck_assert_uint_eq(overlap(1, 20 + TTL - 1), 2);
	ck_assert_uint_eq(overlap(1, 20 + TTL), 0);
	lease = reserve(0, "abcd", 30);
	closed();
	again();
	ck_tree("ab:0!1(cd:0! xy:1)");
	commit(lease, 40);
	finish(lease, 50);
	ck_assert_uint_eq(overlap(0, 50 + TTL - 1), 4);
	closed();
}
END_TEST

/* The region's options are in force, secret and policy too. */
START_TEST(durable)
{
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_options got = { .size = sizeof(got) };
	uint64_t sequence, local, before;

	options.secret_bytes = 0;
	opened(CREATE);
	two_workers();
	say("abcd");
	ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &before), KVR_OK);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.temperature = 0.5;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
	kvr_free(k);
	options.ttl_ns = 5;
	again();
	kvr_prompt_free(p);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	say("abcd");
	ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &sequence), KVR_OK);
	ck_assert_uint_eq(sequence, before);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	ck_assert(policy.temperature > 0.4 && policy.temperature < 0.6);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	ck_assert_int_eq(got.ttl_ns, 5); /* as the last handle wants it */
	ck_assert_uint_eq(got.region_bytes, BYTES);
	closed();
}
END_TEST

START_TEST(other_options)
{
	const struct kvr_options good = options;

	made();
	file_read(image, BYTES);
#define OTHER(change) do { \
	options = good; \
	change; \
	ck_assert_msg(try(EITHER) == KVR_EMISMATCH, #change); \
	ck_assert_int_eq(try(READONLY), KVR_EMISMATCH); \
	file_same(); \
} while (0)
	OTHER(options.block_size++);
	OTHER(options.unit = KVR_UNIT_BYTES);
	OTHER(options.hash = KVR_HASH_DYNAMO);
	OTHER(options.eagle = 1);
	OTHER(options.max_workers++);
	OTHER(options.secret[7]++);
	options = good;
	ck_assert_int_eq(try(ATTACH), KVR_OK);
}
END_TEST

/* ------------------------------------------------- crashes and other damage */

static void
ck_emptied(uint64_t times)
{
	ck_tree("");
	ck_assert_uint_eq(stats().recoveries, times);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_uint_eq(atomic_load(&k->region->seq) & 1, 0);
	observe(0, "abcd", 30);
	observe(1, "abxy", 40);
	ck_tree(TREE);
}

START_TEST(died_in_a_change)
{
	made();
	die_after(change_it);
	again();
	ck_emptied(1);
	closed();
}
END_TEST

START_TEST(died_between_changes)
{
	made();
	die_after(lock_it);
	again();
	ck_tree(TREE);
	ck_assert_uint_eq(stats().recoveries, 0);
	closed();
}
END_TEST

/* Another handle is attached all the time: the lock itself shows the death. */
START_TEST(died_in_company)
{
	static struct kvr *first; /* so that leak checkers find it */

	made();
	again();
	first = k;
	die_after(change_it);
	again();
	ck_emptied(1);
	kvr_free(k);
	k = first;
	ck_tree(TREE);
	die_after(lock_it);
	ck_tree(TREE);
	closed();
}
END_TEST

/* After a power loss the lock has an owner that no longer exists. */
START_TEST(lock_of_nobody)
{
	made();
	again();
	lock_it();
	file_read(image, BYTES);
	region_unlock(k);
	kvr_free(k);
	file_write(image, BYTES);
	again();
	ck_tree(TREE);
	observe(1, "mn", 50);
	closed();
}
END_TEST

#define DAMAGED(change) do { \
	struct kvr *in = in_image(); \
	struct region *r = in->region; \
	const uint64_t emptied = r->counts.recoveries; \
	change; \
	file_write(image, BYTES); \
	again(); \
	ck_emptied(emptied + 1); \
	closed(); \
} while (0)

START_TEST(broken_index)
{
	made();
	DAMAGED(r->fresh += 5);
	DAMAGED(r->free_top = 3);
	DAMAGED(memset(in->cells, 0xff, CELL));
	DAMAGED(memset(in->cells, 0xff, 10 * CELL));
	DAMAGED(memset(in->cells, 0, 10 * CELL));
	DAMAGED(memset(in->entry_buckets, 1, in->layout.entry_buckets * 4));
	DAMAGED(in->due_winner[1] ^= 1);
	DAMAGED(r->clock = -2);
	DAMAGED(r->clock = INT64_MAX);
	DAMAGED(r->name_free = 1);
	DAMAGED(memset(in->name_buckets, 0xff, in->layout.name_buckets * 4));
	DAMAGED(atomic_store(&r->seq, 1));
	DAMAGED(atomic_store(&r->lock, 1); r->gate = 7; r->fresh += 5);
}
END_TEST

#define MENDED(change) do { \
	struct kvr *in = in_image(); \
	struct region *r = in->region; \
	change; \
	file_write(image, BYTES); \
	again(); \
	ck_assert_uint_eq(stats().recoveries, r->counts.recoveries); \
	ck_tree(TREE); \
	region_sound(); \
	closed(); \
} while (0)

/* Counts, loads, estimates, the policy: a wrong one costs no prefix. */
START_TEST(wrong_figures)
{
	struct kvr_policy now = { .size = sizeof(now) }, usual;

	ck_assert_int_eq(kvr_policy_init(&usual, sizeof(usual)), KVR_OK);
	made();
	MENDED(r->counts.nodes++);
	MENDED(r->counts.leases++);
	MENDED((atomic_store(&r->lock, 1), r->gate = 7, r->counts.nodes++));
	MENDED(in->slots[1].held++);
	MENDED(in->slots[0].prefill = 7);
	MENDED(in->loads.requests[1] = 9);
	MENDED(r->workers = 9);
	MENDED(r->inserted = (double)NAN);
	MENDED(in->loads.observed_reading[1] = (double)NAN);
	MENDED((r->counts.entries--, r->policy.cost = 99));
	MENDED(r->policy.cost = 99);
	MENDED(r->policy.temperature = (double)NAN);
	again();
	ck_assert_int_eq(kvr_policy_get(k, &now), KVR_OK);
	ck_assert_mem_eq(&now, &usual, sizeof(now));
	ck_assert_uint_eq(stats().workers, 2);
	closed();
}
END_TEST

/*
 * An entry that is due and pinned again is unconfirmed. When its worker's TTL
 * becomes one under which it is not due, nothing is broken.
 */
START_TEST(pinned_when_due_then_longer_ttl)
{
	struct kvr_worker f;
	uint64_t lease;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.capacity_tokens = 1000000;
	options.idle_limit_ns = TTL / 2;
	opened(CREATE);
	two_workers();
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	observe(0, "abcd", 1);
	observe(1, "wxyz", TTL / 2 - 1);
	lease = reserve(0, "abcd", TTL / 2 + 1);
	region_sound();
	f.capacity_tokens = 0; /* by the TTL from now on */
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	region_sound();
	closed();
	again();
	ck_assert_uint_eq(stats().recoveries, 0);
	ck_assert_uint_eq(stats().leases, 1);
	say("wxyz");
	ck_assert_uint_eq(overlap(1, TTL), 4);
	commit(lease, TTL);
	finish(lease, TTL);
	say("abcd");
	ck_assert_uint_eq(overlap(0, TTL), 4);
	closed();
}
END_TEST

/* Damages any bytes but the seal's; the lock may be among them. */
static void
damage(size_t from, uint32_t bytes)
{
	while (bytes-- > 0)
		image[from + pick(BYTES - (uint32_t)from)] = pick(2) == 0
		    ? (unsigned char)pick(256) : (unsigned char)(pick(2) * 255);
}

/* Whatever the damage, opening it yields a sound region. */
START_TEST(damaged_anywhere)
{
	const size_t sealed = offsetof(struct region, checksum) + 8;
	uint64_t round, rounds = test_amount(1000);

	by_chance();
	made();
	for (round = 0; round < rounds; round++) {
		file_read(image, BYTES);
		if (pick(2) == 0) /* little but the region's own fields */
			damage(sealed, 1 + pick(60));
		else
			image[sealed + pick((uint32_t)(sizeof(struct region) -
			    sealed))] ^= (unsigned char)(1 + pick(255));
		file_write(image, BYTES);
		must(open_as(EITHER, &k) == KVR_OK);
		region_sound();
		say("abcd");
		/* a name may have changed, and all slots be in use */
		id[0] = 0;
		if (kvr_worker_find(k, "0", 1, 0, &id[0]) != KVR_OK &&
		    kvr_worker_add(k, "0", 1, NULL, &id[0]) != KVR_OK)
			must(kvr_worker_next(k, &id[0]) == KVR_OK && id[0] > 0);
		must(observed(0, k->region->clock + 1) == 4);
		closed();
	}
}
END_TEST

/* Two workers of one name are ambiguous: both are removed, with their ids. */
START_TEST(broken_workers)
{
	uint64_t now[2], gone;
	struct kvr *in;

	made();
	in = in_image();
	in->names[1].text[0] = in->names[0].text[0];
	file_write(image, BYTES);
	again();
	ck_tree("");
	ck_assert_uint_eq(stats().recoveries, 1);
	ck_assert_uint_eq(stats().workers, 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &gone), KVR_EWORKER);
	now[0] = worker_of('0');
	now[1] = worker_of('1');
	ck_assert(now[0] != id[0] && now[0] != id[1]);
	ck_assert(now[1] != id[0] && now[1] != id[1]);
	closed();
}
END_TEST

/* A change of any sealed byte is an error, and the file is unchanged. */
START_TEST(damaged_seal)
{
	const size_t version = offsetof(struct seal, version);
	size_t i;

	made();
	file_read(image, BYTES);
	for (i = 0; i < offsetof(struct region, checksum) + 8; i++) {
		image[i] ^= 0xff;
		file_write(image, BYTES);
		ck_assert_int_eq(try(EITHER), i - version < 4 ? KVR_EVERSION
		    : KVR_EFORMAT);
		ck_assert_int_eq(try(READONLY), i - version < 4
		    ? KVR_EVERSION : KVR_EFORMAT);
		file_same();
		image[i] ^= 0xff;
	}
	file_write(image, BYTES);
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

static void
ck_refused(int error)
{
	off_t size = file_stat().st_size;

	file_read(image, (size_t)size < BYTES ? (size_t)size : BYTES);
	ck_assert_int_eq(try(EITHER), error);
	ck_assert_int_eq(try(ATTACH), error);
	ck_assert_int_eq(try(READONLY), error);
	ck_assert_int_eq(file_stat().st_size, size);
	file_read(image_then, (size_t)size < BYTES ? (size_t)size : BYTES);
	ck_assert_mem_eq(image, image_then, sizeof(image));
}

static void
reseal(struct region *r)
{
	r->checksum = XXH3_64bits(&r->seal, sizeof(r->seal));
	file_write(image, BYTES);
}

START_TEST(other_formats)
{
	struct region *r = (struct region *)(void *)image;
	uint64_t magic;
	size_t i;

	made();
	file_read(image, BYTES);
	r->seal.version++;
	reseal(r);
	ck_refused(KVR_EVERSION);
	r->seal.version--;
	/* of a machine of the other byte order */
	magic = r->seal.magic;
	for (i = 0; i < 8; i++)
		image[i] = (unsigned char)(magic >> (8 * (7 - i)));
	if (r->seal.magic == magic)
		for (i = 0; i < 8; i++)
			image[i] = (unsigned char)(magic >> (8 * i));
	reseal(r);
	ck_refused(KVR_EFORMAT);
	r->seal.magic = magic;
	r->seal.byte_order = 0x04030201;
	reseal(r);
	ck_refused(KVR_EFORMAT);
	r->seal.byte_order = 0x01020304;
	reseal(r);
	ck_assert_int_eq(try(ATTACH), KVR_OK);
	memset(image, 'x', BYTES); /* a text file */
	file_write(image, BYTES);
	ck_refused(KVR_EFORMAT);
	file_cut(1);
	ck_refused(KVR_EFORMAT);
}
END_TEST

START_TEST(truncated)
{
	off_t bytes;

	for (bytes = BYTES - 1; bytes > 0; bytes -= 1 + bytes / 8) {
		made();
		file_cut(bytes);
		ck_refused(KVR_EFORMAT);
		ck_assert_int_eq(unlink(path), 0);
	}
	made();
	file_cut(BYTES + 100); /* more than it needs */
	again();
	ck_tree(TREE);
	closed();
}
END_TEST

/* -------------------------------------------------------------------- boots */

static void
boot(char name)
{
	memset(options.boot_id, name, KVR_BOOT_ID_BYTES);
}

static void
ck_boot(char name, const char *tree, int64_t clock)
{
	struct kvr_options got = { .size = sizeof(got) };

	boot(name);
	again();
	ck_tree(tree);
	ck_assert_int_eq(stats().clock, clock);
	ck_assert_uint_eq(stats().workers, 2);
	ck_assert_uint_eq(stats().recoveries, 0);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	ck_assert_mem_eq(got.boot_id, options.boot_id, KVR_BOOT_ID_BYTES);
	closed();
}

/* Without an id from the caller that of the system counts. */
START_TEST(boot_of_the_system)
{
	static const unsigned char none[KVR_BOOT_ID_BYTES];
	struct kvr_options got = { .size = sizeof(got) };

	made();
	again();
	ck_tree(TREE);
	ck_assert_int_eq(kvr_options_get(k, &got), KVR_OK);
	closed();
	if (memcmp(got.boot_id, none, sizeof(none)) == 0)
		test_skip("this system has no boot id");
	/* as another boot left it */
	in_image()->region->boot_id[3] ^= 1;
	file_write(image, BYTES);
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	again();
	ck_tree("");
	ck_assert_int_eq(stats().clock, -1);
	ck_assert_mem_eq(k->region->boot_id, got.boot_id, sizeof(none));
	closed();
}
END_TEST

START_TEST(boots)
{
	made();
	/* the previous boot was not known */
	memset(in_image()->region->boot_id, 0, KVR_BOOT_ID_BYTES);
	file_write(image, BYTES);
	ck_boot('x', TREE, 20);
	ck_boot('x', TREE, 20);
	ck_boot('y', "", -1);
	again();
	observe(0, "abcd", 3); /* the clock restarted */
	ck_assert_int_eq(stats().clock, 3);
	closed();
	ck_boot('y', "abcd:0", 3);
	options.boot_id[15]++;
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	again();
	ck_tree("");
	closed();
	ck_assert_int_eq(unlink(path), 0);
	boot('z');
	made();
	ck_boot('z', TREE, 20);
	ck_boot('x', "", -1);
}
END_TEST

static void
ck_area(void)
{
	void *area;
	size_t bytes;

	ck_assert_int_eq(kvr_user_area(k, &area, &bytes), KVR_OK);
	ck_assert_uint_eq(bytes, 5);
	ck_assert_mem_eq(area, "mine!", 5);
}

static void
fill_area(void)
{
	void *area;
	size_t bytes;

	ck_assert_int_eq(kvr_user_area(k, &area, &bytes), KVR_OK);
	memcpy(area, "mine!", bytes);
}

/* The area of the caller outlives handles, deaths, boots and readers. */
START_TEST(user_area_stays)
{
	options.user_bytes = 5;
	boot('x');
	made();
	again();
	fill_area();
	closed();
	die_after(change_it);
	again();
	ck_assert_uint_eq(stats().recoveries, 1);
	ck_area();
	closed();
	boot('y');
	again();
	ck_tree("");
	ck_area();
	closed();
	ck_assert_int_eq(open_as(READONLY, &k), KVR_OK);
	ck_area();
	kvr_free(k);
	k = NULL;
}
END_TEST

/* The handles attached before had no boot id. */
START_TEST(boot_in_company)
{
	struct kvr *first;

	boot('x');
	made();
	again();
	first = k;
	memset(k->region->boot_id, 0, KVR_BOOT_ID_BYTES);
	ck_boot('y', TREE, 20);
	ck_boot('z', "", -1);
	boot('y');
	k = first;
	observe(0, "abcd", 3);
	closed();
	ck_boot('z', "abcd:0", 3);
}
END_TEST

/* In the caller's memory other handles are not visible: lock needed. */
/* An attach at the next boot empties the region, also one left in a change. */
START_TEST(boot_in_memory)
{
	void *memory = aligned_alloc(CELL, BYTES);
	struct kvr *first, *second;

	ck_assert_ptr_nonnull(memory);
	boot('x');
	ck_assert_int_eq(kvr_new_at(&options, memory, BYTES, &k), KVR_OK);
	two_workers();
	observe(0, "abcd", 10);
	first = k;
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &k), KVR_OK);
	ck_tree("abcd:0");
	kvr_free(k);
	boot('y');
	ck_assert_int_eq(region_lock(first, true), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &second),
	    KVR_EBUSY);
	region_unlock(first);
	k = first;
	ck_tree("abcd:0");
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &k), KVR_OK);
	ck_tree("");
	ck_assert_int_eq(stats().clock, -1);
	ck_assert_uint_eq(stats().recoveries, 0);
	kvr_free(k);
	boot('z');
	atomic_fetch_or(&first->region->seq, 1);
	ck_assert_int_eq(kvr_attach_at(&options, memory, BYTES, &k), KVR_OK);
	ck_assert_uint_eq(stats().recoveries, 1);
	region_sound();
	kvr_free(k);
	kvr_free(first);
	free(memory);
}
END_TEST

/* ------------------------------------------------------------------ reading */

/* Reading leaves no trace, and does not make others attached. */
START_TEST(reader)
{
	struct kvr *reading;

	made();
	file_read(image, BYTES);
	ck_assert_int_eq(open_as(READONLY, &reading), KVR_OK);
	ck_assert(reading->readonly);
	ck_assert(!gate_held() && !attached());
	file_same();
	DAMAGED(r->fresh += 5);
	ck_assert_uint_eq(reading->region->counts.recoveries, 1);
	ck_assert_uint_eq(reading->region->counts.observes, 4);
	kvr_free(reading);
	ck_assert_int_eq(chmod(path, 0400), 0);
	ck_assert_int_eq(try(READONLY), KVR_OK);
}
END_TEST

/* Every call that reads works, and none that writes. */
START_TEST(reader_reads)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_worker_stats of = { .size = sizeof(of) };
	struct kvr_load load = { .size = sizeof(load) };
	struct kvr_stats s = { .size = sizeof(s) };
	struct kvr_lease_info lease;
	struct kvr_candidate c;
	struct kvr_entry e;
	struct kvr *writing;
	uint64_t found = 0, cursor = 0;
	int64_t due;
	size_t n;

	made();
	again();
	writing = k;
	ck_assert_int_eq(open_as(READONLY, &k), KVR_OK);
	say("abxyz");
	ck_assert_uint_eq(overlap(1, 30), 4);
	ck_assert_int_eq(kvr_route(k, p, NULL, 30, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(stats().observes, 2);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 4);
	ck_assert_int_eq(kvr_worker_next(k, &found), KVR_OK);
	ck_assert_uint_eq(found, id[0]);
	ck_assert_int_eq(kvr_worker_find(k, "1", 1, 0, &found), KVR_OK);
	ck_assert_uint_eq(found, id[1]);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	/* these take the lock */
	ck_assert_int_eq(kvr_candidates(k, p, NULL, 30, &c, sizeof(c), 1, &n),
	    KVR_EREADONLY);
	ck_assert_int_eq(kvr_entries(k, &cursor, 30, &e, sizeof(e), 1, &n),
	    KVR_EREADONLY);
	ck_assert_int_eq(kvr_owner_list(k, &cursor, &found, 1, &n),
	    KVR_EREADONLY);
	ck_assert_int_eq(kvr_lease_list(k, &cursor, &lease, sizeof(lease), 1,
	    &n), KVR_EREADONLY);
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_EREADONLY);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 30, 0, NULL),
	    KVR_EREADONLY);
	ck_assert_int_eq(kvr_lease_open(k, p, NULL, 30, &d), KVR_EREADONLY);
	ck_assert_int_eq(kvr_expire(k, 30, 1, NULL), KVR_EREADONLY);
	ck_assert_int_eq(kvr_clear(k), KVR_EREADONLY);
	ck_assert_int_eq(kvr_clock_set(k, 5), KVR_EREADONLY);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_EREADONLY);
	ck_assert_int_eq(kvr_worker_add(k, "z", 1, NULL, &found),
	    KVR_EREADONLY);
	/* in the middle of a change there is nothing to read */
	atomic_fetch_add(&writing->region->seq, 1);
	ck_assert_int_eq(kvr_route(k, p, NULL, 30, &d), KVR_EBUSY);
	ck_assert_int_eq(kvr_match(k, p, 30, NULL, sizeof(struct kvr_overlap),
	    0, &n), KVR_EBUSY);
	ck_assert_int_eq(kvr_stats_get(k, &s), KVR_EBUSY);
	ck_assert_int_eq(kvr_worker_stats_get(k, id[0], &of), KVR_EBUSY);
	ck_assert_int_eq(kvr_worker_next(k, &found), KVR_EBUSY);
	ck_assert_int_eq(kvr_worker_find(k, "1", 1, 0, &found), KVR_EBUSY);
	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_EBUSY);
	ck_assert_int_eq(kvr_worker_get_load(k, id[0], 0, &load), KVR_EBUSY);
	ck_assert_int_eq(kvr_next_expiry(k, &due), KVR_EBUSY);
	ck_assert_int_eq(kvr_check(k), KVR_EBUSY);
	atomic_fetch_add(&writing->region->seq, 1);
	ck_assert_int_eq(kvr_route(k, p, NULL, 30, &d), KVR_OK);
	kvr_free(k);
	k = writing;
	closed();
}
END_TEST

START_TEST(reader_of_an_unfinished_change)
{
	struct kvr *reading;

	made();
	die_after(change_it);
	file_read(image, BYTES);
	ck_assert_int_eq(try(READONLY), KVR_ESTATE);
	file_same();
	/* with a writer attached the change may be its own, and nearly done */
	again();
	lock_it();
	atomic_fetch_add(&k->region->seq, 1);
	ck_assert_int_eq(open_as(READONLY, &reading), KVR_OK);
	ck_assert_int_eq(kvr_check(reading), KVR_EBUSY);
	atomic_fetch_add(&k->region->seq, 1);
	region_unlock(k);
	ck_assert_int_eq(kvr_check(reading), KVR_OK);
	/* and a writer may damage the seal at any time */
	k->region->seal.bytes -= BYTES;
	ck_assert_int_eq(kvr_check(reading), KVR_ECORRUPT);
	k->region->seal.bytes += BYTES;
	k->region->checksum++;
	ck_assert_int_eq(kvr_check(reading), KVR_ECORRUPT);
	k->region->checksum--;
	kvr_free(reading);
	closed();
}
END_TEST

/* ------------------------------------------------------------------- suite */

Suite *suite_recover(void);

Suite *
suite_recover(void)
{
	Suite *s = suite_create("recover");
	TCase *t;

	t = files_case(s, "again");
	tcase_add_test(t, warm);
	tcase_add_test(t, durable);
	tcase_add_test(t, other_options);
	t = files_case(s, "damage");
	tcase_add_test(t, died_in_a_change);
	tcase_add_test(t, died_between_changes);
	tcase_add_test(t, user_area_stays);
	tcase_add_test(t, died_in_company);
	tcase_add_test(t, lock_of_nobody);
	tcase_add_test(t, broken_index);
	tcase_add_test(t, wrong_figures);
	tcase_add_test(t, pinned_when_due_then_longer_ttl);
	tcase_add_test(t, damaged_anywhere);
	tcase_add_test(t, broken_workers);
	tcase_add_test(t, damaged_seal);
	tcase_add_test(t, other_formats);
	tcase_add_test(t, truncated);
	t = files_case(s, "boot");
	tcase_add_test(t, boot_of_the_system);
	tcase_add_test(t, boots);
	tcase_add_test(t, boot_in_company);
	tcase_add_test(t, boot_in_memory);
	t = files_case(s, "reading");
	tcase_add_test(t, reader);
	tcase_add_test(t, reader_reads);
	tcase_add_test(t, reader_of_an_unfinished_change);
	return s;
}
