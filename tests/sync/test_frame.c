/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_frame.c - frames: those written are read, byte by byte as in
 * kvroute-frames(7); others are cut, changed, foreign or of later versions.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "frames.h"
#include "little.h"

enum { ORIGIN = 0xabcdef, RULE = 4711 };

static struct frame_writer writer;
static struct frame_reader reader;
static struct frame_rules rules;
static struct frames_room room;
static unsigned char copy[FRAME_BYTES_MAX + 64];

static void
setup(void)
{
	rules = (struct frame_rules){ .rule = RULE };
	frame_writer_init(&writer, &rules, ORIGIN);
}

static void
setup_keyed(void)
{
	setup();
	frame_key(&rules, "0123456789abcdef0123456789abcdef", 32);
	frame_writer_init(&writer, &rules, ORIGIN);
}

static void
put(struct frame_record record)
{
	ck_assert_int_eq(frame_put(&writer, &record), FRAME_OK);
}

/* Into `copy`; the length. */
static size_t
finish(int64_t sent)
{
	size_t n;
	const unsigned char *bytes = frame_finish(&writer, sent, &n);

	memcpy(copy, bytes, n);
	return n;
}

static void
ck_verdict(size_t n, enum frame_verdict want)
{
	/* Exactly as long as the frame: reading past it is detected. */
	unsigned char *exact = malloc(n + (n == 0));
	struct frame_record record;
	enum frame_verdict verdict;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, copy, n);
	verdict = frame_open(&reader, &rules, exact, n);
	ck_assert_int_eq(verdict, want);
	while (verdict == FRAME_GOOD && frame_next(&reader, &record))
		continue;
	free(exact);
}

/* -------------------------------------------------------------- layout --- */

START_TEST(head)
{
	static const unsigned char want[FRAME_HEAD] = "KVRF"
	    "\1\0" "\1\0" "\x67\x12\0\0\0\0\0\0" "\xef\xcd\xab\0\0\0\0\0"
	    "\1\0\0\0\0\0\0\0" "\7\0\0\0\0\0\0\0" "\x30\0\0\0";

	ck_assert_uint_eq(finish(7), FRAME_HEAD);
	ck_assert_mem_eq(copy, want, sizeof(want));
	ck_verdict(FRAME_HEAD, FRAME_GOOD);
	ck_assert_uint_eq(reader.origin, ORIGIN);
	ck_assert_uint_eq(reader.number, 1);
	ck_assert_int_eq(reader.sent, 7);
	ck_assert_uint_eq(finish(8), FRAME_HEAD);
	ck_verdict(FRAME_HEAD, FRAME_GOOD);
	ck_assert_uint_eq(reader.number, 2);
}
END_TEST

/* The sizes promised by spec and page; the head of the record counts. */
START_TEST(sizes)
{
	static const struct {
		uint64_t kind, bytes;
	} want[] = {
		{ FRAME_RESERVE, 64 }, { FRAME_COMMIT, 16 },
		{ FRAME_FIRST, 16 }, { FRAME_ABORT, 16 },
		{ FRAME_OUTPUT, 24 }, { FRAME_EXTEND, 32 },
		{ FRAME_FINISH, 48 }, { FRAME_OBSERVE, 40 },
		{ FRAME_BIND, 32 }, { FRAME_RESET, 16 }, { FRAME_CLEAR, 8 },
		{ FRAME_LOAD, 24 },
		{ FRAME_OPEN, 24 }, { FRAME_HELLO, 24 }, { FRAME_WORKER, 24 },
		{ FRAME_ASK, 24 }, { FRAME_SNAPSHOT, 48 },
		{ FRAME_SNAPSHOT_END, 24 },
		{ FRAME_CHAIN, 32 }, { FRAME_SITE, 16 },
		{ FRAME_TENANT, 32 }, { FRAME_CHALLENGE, 16 },
		{ FRAME_PROOF, 24 }
	};
	size_t i;

	ck_assert_uint_eq(sizeof(want) / sizeof(want[0]), FRAME_KINDS - 1);
	for (i = 0; i < FRAME_KINDS - 1; i++) {
		put((struct frame_record){ .kind = want[i].kind });
		ck_assert_uint_eq(finish(0), FRAME_HEAD + want[i].bytes);
		ck_assert_uint_eq(copy[FRAME_HEAD], want[i].kind);
		ck_assert_uint_eq(copy[FRAME_HEAD + 2], want[i].bytes / 8);
	}
}
END_TEST

START_TEST(fields)
{
	static const unsigned char want[] =
	    "\1\0" "\x09\0" "\x04\3\2\1" /* kind, words, age */
	    "\x11\0\0\0\0\0\0\x10" "\x12\0\0\0\0\0\0\0"
	    "\x13\0\0\0\0\0\0\0" "\xff\x0f" "\2" "\4" "\x14\0\0\0"
	    "\x15\0\0\0" "\x16\0\0\0" "\x17\0\0\0" "\x18\0\0\0"
	    "\x19\0\0\0" "\x1a\0\0\0" "\x08\7\6\5\4\3\2\1";
	const uint64_t hash = 0x0102030405060708;

	put((struct frame_record){ .kind = FRAME_RESERVE, .age = 0x01020304,
	    .lease = 0x1000000000000011, .parent = 0x12, .affinity = 0x13,
	    .worker = 4095, .stage = 2, .flags = 4, .epoch = 0x14,
	    .units = 0x15, .overlap_tokens = 0x16, .overlap_blocks = 0x17,
	    .first_block = 0x18, .blocks = 0x19, .affinity_ttl = 0x1a,
	    .numbers = &hash,
	    .length = 1 });
	ck_assert_uint_eq(finish(0), FRAME_HEAD + sizeof(want) - 1);
	ck_assert_mem_eq(copy + FRAME_HEAD, want, sizeof(want) - 1);
}
END_TEST

START_TEST(fields_of_a_tenant)
{
	static const unsigned char want[] =
	    "\x15\0" "\4\0" "\0\0\0\0" "\x11\0\0\0\0\0\0\x10"
	    "\x12\0\0\0\0\0\0\x20" "\x2c\1\0\0" "\0\0\0\0";

	put((struct frame_record){ .kind = FRAME_TENANT,
	    .parent = 0x1000000000000011, .tenant = 0x2000000000000012,
	    .share = 300 });
	ck_assert_uint_eq(finish(0), FRAME_HEAD + sizeof(want) - 1);
	ck_assert_mem_eq(copy + FRAME_HEAD, want, sizeof(want) - 1);
}
END_TEST

START_TEST(text_is_padded)
{
	memset(writer.bytes, 0xff, sizeof(writer.bytes));
	put((struct frame_record){ .kind = FRAME_WORKER, .text = "gpu-0",
	    .length = 5 });
	ck_assert_uint_eq(finish(0), FRAME_HEAD + 32);
	ck_assert_mem_eq(copy + FRAME_HEAD + 20, "gpu-0\0\0\0\0\0\0\0", 12);
}
END_TEST

/* --------------------------------------------------------- round trips --- */

/* Frames full of random records give them back, in order, and no others. */
START_TEST(what_was_written_is_read)
{
	static struct frame_record records[FRAME_BYTES_MAX / 16];
	static struct frames_room rooms[64];
	const uint64_t seed = test_seed();
	struct rng rng = { seed };
	struct frame_record record;
	uint64_t rounds;
	size_t i, n, length;

	for (rounds = test_amount(200); rounds > 0; rounds--) {
		for (n = 0; n < 64; n++) {
			records[n] = frames_draw(&rng,
			    rng_between(&rng, 1, FRAME_KINDS - 1), 300,
			    &rooms[n]);
			if (frame_put(&writer, &records[n]) != FRAME_OK)
				break;
		}
		length = finish(1);
		ck_assert_int_eq(frame_open(&reader, &rules, copy, length),
		    FRAME_GOOD);
		for (i = 0; i < n; i++) {
			ck_assert(frame_next(&reader, &record));
			ck_assert_msg(frames_equal(&record, &records[i]),
			    "seed %#llx: record %zu of kind %u",
			    (unsigned long long)seed, i,
			    (unsigned)records[i].kind);
		}
		ck_assert(!frame_next(&reader, &record));
	}
}
END_TEST

START_TEST(largest_records_fit)
{
	struct rng rng = { 1 };
	static const uint64_t kinds[] = { FRAME_RESERVE, FRAME_EXTEND,
	    FRAME_OPEN, FRAME_CHAIN };
	struct frame_record r;
	size_t i;

	for (i = 0; i < FRAME_NUMBERS_MAX; i++)
		room.numbers[i] = i;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		r = frames_draw(&rng, kinds[i], 0, &room);
		r.least = 0;
		r.most = kinds[i] == FRAME_OPEN ? UINT64_MAX : 0;
		r.numbers = room.numbers;
		r.length = FRAME_NUMBERS_MAX;
		put(r);
		ck_assert_int_eq(frame_put(&writer, &r), FRAME_FULL);
		ck_verdict(finish(0), FRAME_GOOD);
		r.length++;
		ck_assert_int_eq(frame_put(&writer, &r), FRAME_INVALID);
	}
}
END_TEST

/* A frame is filled to its last byte and not beyond. */
START_TEST(full)
{
	const struct frame_record r = { .kind = FRAME_COMMIT, .lease = 1 };
	const size_t mac = rules.keyed ? SIPHASH_BYTES : 0;
	size_t n = 0;

	while (frame_put(&writer, &r) == FRAME_OK)
		n++;
	ck_assert_int_eq(frame_put(&writer, &r), FRAME_FULL);
	ck_assert_uint_eq(n, (FRAME_BYTES_MAX - FRAME_HEAD - mac) / 16);
	ck_assert_uint_eq(finish(0), FRAME_BYTES_MAX);
	ck_verdict(FRAME_BYTES_MAX, FRAME_GOOD);
	ck_assert(frame_empty(&writer));
}
END_TEST

START_TEST(too_large_for_its_field)
{
	static const struct frame_record bad[] = {
		{ .kind = 0 }, { .kind = FRAME_KINDS },
		{ .kind = FRAME_COMMIT, .age = 1ull << 32 },
		{ .kind = FRAME_RESERVE, .worker = 1 << 16 },
		{ .kind = FRAME_RESERVE, .stage = 256 },
		{ .kind = FRAME_RESERVE, .units = 1ull << 32 },
		{ .kind = FRAME_LOAD, .requests = UINT64_MAX },
		{ .kind = FRAME_HELLO, .length = 256 },
		{ .kind = FRAME_OPEN, .least = 2, .most = 1 }
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_int_eq(frame_put(&writer, &bad[i]), FRAME_INVALID);
	ck_assert(frame_empty(&writer));
}
END_TEST

/* ---------------------------------------------------------- bad frames --- */

static size_t
some_frame(void)
{
	struct rng rng = { 7 };
	uint64_t kind;

	for (kind = 1; kind < FRAME_KINDS; kind++)
		put(frames_draw(&rng, kind, 3, &room));
	return finish(5);
}

START_TEST(cut)
{
	const size_t n = some_frame();
	size_t i;

	for (i = 0; i < n; i++)
		ck_verdict(i, FRAME_MALFORMED);
	ck_verdict(n, FRAME_GOOD);
	/* ... and with more behind it */
	ck_verdict(n + 8, FRAME_MALFORMED);
}
END_TEST

/* With the length changed too, a cut is found by the records or the MAC. */
START_TEST(cut_and_relabelled)
{
	size_t n = some_frame(), i, good = 0;

	for (i = FRAME_HEAD; i < n; i++) {
		little_put(copy + 40, i, 4);
		if (frame_open(&reader, &rules, copy, i) == FRAME_GOOD)
			good++;
	}
	/* Only between records; with a MAC nowhere. */
	ck_assert_uint_eq(good, rules.keyed ? 0 : FRAME_KINDS - 1);
}
END_TEST

START_TEST(other_versions)
{
	const size_t n = some_frame();

	copy[6] = 9;
	ck_verdict(n, rules.keyed ? FRAME_FORGED : FRAME_GOOD);
	copy[4] = 2;
	ck_verdict(n, FRAME_VERSION);
	copy[4] = 1;
	copy[8]++;
	ck_verdict(n, FRAME_STRANGER);
	copy[0] = 'k';
	ck_verdict(n, FRAME_MALFORMED);
}
END_TEST

/* A later minor version adds kinds, and fields where nothing follows. */
START_TEST(later_kinds_and_fields)
{
	struct frame_record record;
	size_t n;

	put((struct frame_record){ .kind = FRAME_FINISH, .lease = 1 });
	put((struct frame_record){ .kind = FRAME_ABORT, .lease = 2 });
	n = finish(0);
	copy[FRAME_HEAD] = 200;
	copy[n] = FRAME_RESET;
	memset(copy + n + 1, 0, 31);
	copy[n + 2] = 4;
	copy[n + 8] = 3;
	n += 32;
	little_put(copy + 40, n, 4);
	ck_assert_int_eq(frame_open(&reader, &rules, copy, n), FRAME_GOOD);
	ck_assert(frame_next(&reader, &record));
	ck_assert_uint_eq(record.kind, FRAME_ABORT);
	ck_assert_uint_eq(record.lease, 2);
	ck_assert(frame_next(&reader, &record));
	ck_assert_uint_eq(record.kind, FRAME_RESET);
	ck_assert_uint_eq(record.worker, 3);
	ck_assert(!frame_next(&reader, &record));
}
END_TEST

static void
ck_bad_record(struct frame_record r, size_t at, unsigned value)
{
	size_t n;

	put(r);
	put((struct frame_record){ .kind = FRAME_COMMIT });
	n = finish(0);
	ck_verdict(n, FRAME_GOOD);
	copy[FRAME_HEAD + at] = (unsigned char)value;
	ck_verdict(n, FRAME_MALFORMED);
}

START_TEST(bad_records)
{
	const uint64_t ids[] = { 5, 6 };
	const struct frame_record open = { .kind = FRAME_OPEN, .least = 4,
	    .most = 9, .numbers = ids, .length = 2 };
	const struct frame_record commit = { .kind = FRAME_COMMIT };

	ck_bad_record(commit, 2, 0);   /* no length */
	ck_bad_record(commit, 2, 1);   /* without its field */
	ck_bad_record(commit, 2, 5);   /* past the end */
	ck_bad_record((struct frame_record){ .kind = FRAME_WORKER, .text = "a",
	    .length = 1 }, 19, 9);     /* text past the record's end */
	ck_bad_record(open, 8, 6);     /* not from least to most ... */
	ck_bad_record(open, 16, 5);
	ck_bad_record(open, 24, 6);    /* not ascending */
	ck_bad_record(open, 32, 4);
	finish(0);
	copy[39] = 0x80;               /* sent before the clock began */
	ck_verdict(FRAME_HEAD, FRAME_MALFORMED);
}
END_TEST

/* ----------------------------------------------------------------- MAC --- */

/* No change of one bit anywhere is accepted. */
START_TEST(changed_bits)
{
	const size_t n = some_frame();
	size_t bit;

	for (bit = 0; bit < 8 * n; bit++) {
		copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
		ck_assert_int_ne(frame_open(&reader, &rules, copy, n),
		    FRAME_GOOD);
		copy[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	ck_verdict(n, FRAME_GOOD);
}
END_TEST

START_TEST(one_side_has_a_key)
{
	size_t n = some_frame();

	rules.keyed = false;
	ck_verdict(n, FRAME_FORGED);
	frame_writer_init(&writer, &rules, ORIGIN);
	n = some_frame();
	rules.keyed = true;
	ck_verdict(n, FRAME_FORGED);
	n = FRAME_HEAD;
	little_put(copy + 40, n, 4);
	copy[44] = 1;
	ck_verdict(n, FRAME_FORGED);
}
END_TEST

/* Each byte of the secret, and its length, are part of the key. */
START_TEST(keys_differ)
{
	enum { LONGEST = 70, KEYS = 2 * LONGEST };
	static struct siphash_key keys[KEYS];
	unsigned char secret[LONGEST] = { 0 };
	size_t i, j, n = 0;

	for (i = 1; i <= LONGEST; i++) {
		frame_key(&rules, secret, i);
		keys[n++] = rules.key;
		secret[i - 1] = 1;
		frame_key(&rules, secret, LONGEST);
		secret[i - 1] = 0;
		keys[n++] = rules.key;
	}
	for (i = 0; i < n; i++)
		for (j = 0; j < i; j++)
			ck_assert_mem_ne(&keys[i], &keys[j], sizeof(keys[0]));
}
END_TEST

Suite *suite_frame(void);

Suite *
suite_frame(void)
{
	Suite *s = suite_create("frame");
	TCase *plain = tcase_create("plain"), *keyed = tcase_create("keyed");

	tcase_add_checked_fixture(plain, setup, NULL);
	tcase_add_checked_fixture(keyed, setup_keyed, NULL);
	tcase_add_test(plain, head);
	tcase_add_test(plain, sizes);
	tcase_add_test(plain, fields);
	tcase_add_test(plain, text_is_padded);
	tcase_add_test(plain, fields_of_a_tenant);
	tcase_add_test(plain, too_large_for_its_field);
	tcase_add_test(plain, later_kinds_and_fields);
	tcase_add_test(plain, bad_records);
	tcase_add_test(plain, what_was_written_is_read);
	tcase_add_test(keyed, what_was_written_is_read);
	tcase_add_test(plain, largest_records_fit);
	tcase_add_test(keyed, largest_records_fit);
	tcase_add_test(plain, full);
	tcase_add_test(keyed, full);
	tcase_add_test(plain, cut);
	tcase_add_test(keyed, cut);
	tcase_add_test(plain, cut_and_relabelled);
	tcase_add_test(keyed, cut_and_relabelled);
	tcase_add_test(plain, other_versions);
	tcase_add_test(keyed, other_versions);
	tcase_add_test(keyed, changed_bits);
	tcase_add_test(keyed, one_side_has_a_key);
	tcase_add_test(keyed, keys_differ);
	suite_add_tcase(s, plain);
	suite_add_tcase(s, keyed);
	return s;
}
