/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_siphash.c - SipHash-2-4 against vectors of its authors: message i is
 * the bytes 0 to i - 1, the key the bytes 0 to 15.
 */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "siphash.h"

static const struct {
	size_t n;
	const char *hex;
} vectors[] = {
	{ 0, "a3817f04ba25a8e66df67214c7550293" },
	{ 1, "da87c1d86b99af44347659119b22fc45" },
	{ 2, "8177228da4a45dc7fca38bdef60affe4" },
	{ 3, "9c70b60c5267a94e5f33b6b02985ed51" },
	{ 8, "3b62a9ba6258f5610f83e264f31497b4" },
	{ 15, "5493e99933b0a8117e08ec0f97cfc3d9" },
	{ 63, "5150d1772f50834a503e069a973fbd7c" }
};

START_TEST(reference_vectors)
{
	unsigned char bytes[64], out[SIPHASH_BYTES];
	struct siphash_key key;
	char hex[2 * SIPHASH_BYTES + 1];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)i;
	key = siphash_key(bytes);
	siphash(&key, bytes, vectors[_i].n, out);
	for (i = 0; i < sizeof(out); i++)
		snprintf(hex + 2 * i, 3, "%02x", out[i]);
	ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

/* The length counts, not only the bytes: zeros at the end change the result. */
START_TEST(zeros_count)
{
	const unsigned char zeros[16] = { 0 };
	unsigned char out[17][SIPHASH_BYTES];
	const struct siphash_key key = siphash_key(zeros);
	size_t i, j;

	for (i = 0; i <= 16; i++) {
		siphash(&key, zeros, i, out[i]);
		for (j = 0; j < i; j++)
			ck_assert_mem_ne(out[i], out[j], SIPHASH_BYTES);
	}
}
END_TEST

Suite *suite_siphash(void);

Suite *
suite_siphash(void)
{
	Suite *s = suite_create("siphash");
	TCase *t = tcase_create("all");

	tcase_add_loop_test(t, reference_vectors, 0,
	    (int)(sizeof(vectors) / sizeof(vectors[0])));
	tcase_add_test(t, zeros_count);
	suite_add_tcase(s, t);
	return s;
}
