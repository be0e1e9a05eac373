/* SPDX-License-Identifier: BSD-2-Clause */
/* test_event_pack.c - kvroute-engine publishes the same bytes as engines. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "event_pack.h"
#include "vectors.h"

static const uint64_t vllm[] = { 0x84b146b151d55111, 0xd43b57df56b58fb1,
    0xe6f7a2886960a68a }, sglang[] = { 0xcf97adeedb59e05b,
    0x4ebfa8a1f3c34151 }, salted[] = { 0x339927f491605c4b };
static const uint32_t tokens[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
static const uint32_t others[] = { 9, 10, 11, 151645 };
static const double then = 1700000000;

static void
ck_bytes(const char *hex, const struct packer *p)
{
	unsigned char *bytes;
	size_t n;

	bytes = vector_bytes(hex, &n);
	ck_assert_uint_eq(p->n, n);
	ck_assert_mem_eq(p->bytes, bytes, n);
	free(bytes);
}

static struct event_item
stored(const uint64_t *hashes, size_t n, const uint32_t *of)
{
	struct event_item item = { .kind = ITEM_STORED, .hashes = hashes,
	    .n = n, .tokens = of, .n_tokens = 4 * n, .block = 4 };

	return item;
}

static struct event_item
removed(const uint64_t *hash)
{
	struct event_item item = { .kind = ITEM_REMOVED, .hashes = hash,
	    .n = 1 };

	return item;
}

START_TEST(vllm_maps)
{
	struct event_item items[] = { stored(vllm, 2, tokens),
	    removed(vllm + 1), { .kind = ITEM_CLEARED } };
	struct packer p = { 0 };

	event_pack(&p, FORM_VLLM, then, 0, items, 3);
	ck_bytes(vector_hex("v3"), &p);
	packer_free(&p);
}
END_TEST

START_TEST(vllm_arrays)
{
	struct event_item items[] = { stored(vllm + 2, 1, others),
	    removed(vllm + 1) };
	struct packer p = { 0 };

	items[0].has_parent = true;
	items[0].parent = vllm[1];
	event_pack(&p, FORM_VLLM_ARRAYS, then, 1, items, 2);
	ck_bytes(vector_hex("v2"), &p);
	packer_free(&p);
}
END_TEST

/* An event of a group with a window has all tokens, but not all blocks. */
START_TEST(vllm_window)
{
	struct event_item item = stored(vllm + 2, 1, tokens);
	struct packer p = { 0 };

	item.n_tokens = 12;
	item.window = 5;
	event_pack(&p, FORM_VLLM, then, 0, &item, 1);
	ck_bytes(vector_hex("v5"), &p);
	packer_free(&p);
}
END_TEST

START_TEST(sglang_maps)
{
	struct event_item items[] = { stored(sglang, 2, tokens),
	    removed(sglang + 1) };
	struct packer p = { 0 };

	event_pack(&p, FORM_SGLANG, then, 0, items, 2);
	ck_bytes(vector_hex("v6"), &p);
	packer_free(&p);
}
END_TEST

/* The vector is V8 without a rank, which is its last byte here. */
START_TEST(sglang_arrays)
{
	struct event_item item = stored(salted, 1, tokens);
	const char *hex = vector_hex("v8");
	struct packer p = { 0 };
	unsigned char *bytes;
	size_t n;

	item.salt = "tenant-a";
	event_pack(&p, FORM_SGLANG_ARRAYS, then, 0, &item, 1);
	bytes = vector_bytes(hex, &n);
	ck_assert_uint_eq(p.n, n);
	ck_assert_mem_eq(p.bytes, bytes, n - 1);
	ck_assert_uint_eq(bytes[n - 1], 0xc0);
	ck_assert_int_eq(p.bytes[n - 1], 0);
	free(bytes);
	packer_free(&p);
}
END_TEST

Suite *suite_event_pack(void);

Suite *
suite_event_pack(void)
{
	Suite *s = suite_create("event_pack");
	TCase *c = tcase_create("event_pack");

	tcase_add_test(c, vllm_maps);
	tcase_add_test(c, vllm_arrays);
	tcase_add_test(c, vllm_window);
	tcase_add_test(c, sglang_maps);
	tcase_add_test(c, sglang_arrays);
	suite_add_tcase(s, c);
	return s;
}
