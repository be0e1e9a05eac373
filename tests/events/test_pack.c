/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pack.c - the bounds of msgpack: every head, cut anywhere; agreement
 * with msgpack-c itself.
 */
#include "test.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"
#include "rng.h"

/* Skips a value in exactly these bytes; returns its length, or -1. */
static long
skip(const void *bytes, size_t n, unsigned depth)
{
	unsigned char *exact = malloc(n + (n == 0));
	const unsigned char *end;
	long got;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, bytes, n);
	end = pack_skip(exact, exact + n, depth);
	got = end == NULL ? -1 : (long)(end - exact);
	free(exact);
	return got;
}

/* Heads with a length get one of 1, in whatever width. */
static size_t
object_of(unsigned head, unsigned char out[32])
{
	static const unsigned char widths[32] = { [4] = 1, [5] = 2, [6] = 4,
	    [7] = 1, [8] = 2, [9] = 4, [25] = 1, [26] = 2, [27] = 4, [28] = 2,
	    [29] = 4, [30] = 2, [31] = 4 };

	memset(out, 0, 32);
	out[0] = (unsigned char)head;
	if (head >= 0xc0 && head < 0xe0 && widths[head & 31] > 0)
		out[widths[head & 31]] = 1;
	return 32;
}

static bool
library_takes(const unsigned char *bytes, size_t n, size_t *used)
{
	msgpack_unpacked result;
	msgpack_unpack_return r;

	msgpack_unpacked_init(&result);
	*used = 0;
	r = msgpack_unpack_next(&result, (const char *)bytes, n, used);
	msgpack_unpacked_destroy(&result);
	return r == MSGPACK_UNPACK_SUCCESS || r == MSGPACK_UNPACK_EXTRA_BYTES;
}

START_TEST(every_head)
{
	unsigned char bytes[32];
	size_t n = object_of((unsigned)_i, bytes), used;
	long i, end = skip(bytes, n, 16);

	ck_assert_int_eq(end >= 0, library_takes(bytes, n, &used));
	if (end < 0) {
		ck_assert_int_eq(_i, 0xc1);
		return;
	}
	ck_assert_int_eq(end, (long)used);
	for (i = 0; i < end; i++)
		ck_assert_int_eq(skip(bytes, (size_t)i, 16), -1);
	ck_assert_int_eq(skip(bytes, (size_t)end, 16), end);
}
END_TEST

/* Small counts, so that much of it is whole. */
START_TEST(any_bytes)
{
	static const unsigned char heads[] = { 0x90, 0x91, 0x92, 0x93, 0x80,
	    0x81, 0x82, 0xa1, 0xc0, 0xcd, 0xdc, 0xde, 0xc4, 0xd4, 0, 1 };
	const uint64_t seed = test_seed();
	struct rng rng = { seed };
	unsigned char bytes[24];
	uint64_t round, whole = 0;
	size_t i, used;
	long end;

	for (round = test_amount(50000); round > 0; round--) {
		rng_fill(&rng, bytes, sizeof(bytes));
		for (i = 0; i < sizeof(bytes); i++)
			if (bytes[i] % 8 > 0)
				bytes[i] = heads[bytes[i] / 8 % 16];
		end = skip(bytes, sizeof(bytes), 16);
		/* So no accepted value makes the library allocate by count. */
		if (end < 0)
			continue;
		whole++;
		ck_assert_msg(library_takes(bytes, sizeof(bytes), &used) &&
		    (long)used == end, "seed %#llx",
		    (unsigned long long)seed);
	}
	ck_assert_uint_gt(whole, 0);
}
END_TEST

START_TEST(depth)
{
	unsigned char bytes[40];

	memset(bytes, 0x91, sizeof(bytes));
	bytes[4] = 0xc0;
	ck_assert_int_eq(skip(bytes, 5, 4), 5);
	ck_assert_int_eq(skip(bytes, 5, 3), -1);
	bytes[4] = 0x91;
	bytes[39] = 0xc0;
	ck_assert_int_eq(skip(bytes, 40, 100), -1);
	ck_assert_int_eq(skip("\x90", 1, 0), -1);
	ck_assert_int_eq(skip("\x01", 1, 0), 1);
}
END_TEST

/* An array of n, one byte each: n may be all that is left, not one more. */
START_TEST(counts)
{
	unsigned char bytes[3 + 300] = { 0xdc, 300 >> 8, 300 & 0xff };
	struct pack_head head;

	ck_assert(pack_head(bytes, bytes + 303, &head));
	ck_assert_uint_eq(head.children, 300);
	ck_assert(!pack_head(bytes, bytes + 302, &head));
	ck_assert_int_eq(skip(bytes, 303, 16), 303);
	ck_assert_int_eq(skip(bytes, 302, 16), -1);
	bytes[0] = 0xde;
	ck_assert_int_eq(skip(bytes, 303, 16), -1);
	bytes[1] = 0;
	bytes[2] = 150;
	ck_assert_int_eq(skip(bytes, 303, 16), 303);
}
END_TEST

START_TEST(values)
{
	static const unsigned char array[] = "\x91\xa1" "a";
	static const unsigned char map[] =
	    "\x83\xa1" "a\x01\x05\x06\xa1" "b\x07";
	const struct pack_span a = { array, array + 3 };
	const struct pack_span m = { map, map + 9 };
	struct pack_span out;

	ck_assert(pack_value(m, "b", &out) && *out.at == 7);
	ck_assert(pack_value(m, "a", &out) && *out.at == 1);
	ck_assert(!pack_value(m, "c", &out));
	ck_assert(!pack_value(a, "a", &out));
	out = pack_next(array + 1, array + 3, 0);
	ck_assert(pack_is(out, "a"));
	ck_assert(!pack_is(out, "b") && !pack_is(out, "") &&
	    !pack_is(out, "ab"));
	ck_assert_ptr_null(pack_next(array, array + 3, 0).end);
}
END_TEST

Suite *suite_pack(void);

Suite *
suite_pack(void)
{
	Suite *s = suite_create("pack");
	TCase *t = tcase_create("pack");

	tcase_add_loop_test(t, every_head, 0, 256);
	tcase_add_test(t, any_bytes);
	tcase_add_test(t, depth);
	tcase_add_test(t, counts);
	tcase_add_test(t, values);
	suite_add_tcase(s, t);
	return s;
}
