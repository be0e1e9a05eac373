/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_decode.c - messages of engines: each vector, the fields of each
 * release, dropped events and the reason, malformed messages, and no memory.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "decode.h"
#include "packer.h"
#include "print.h"
#include "vectors.h"

#define A "84b146b151d55111"
#define B "d43b57df56b58fb1"
#define C "e6f7a2886960a68a"
#define SGL_A "cf97adeedb59e05b"
#define SGL_B "4ebfa8a1f3c34151"
#define SALTED "339927f491605c4b"

static struct decode_options options;
static struct decoder *decoder;
static struct event_batch batch;
static struct packer pack;

static void
setup(void)
{
	options = (struct decode_options){ .format = DECODE_ENGINE };
	decoder = NULL;
	packer_begin(&pack);
	alloc_reset();
}

static void
teardown(void)
{
	alloc_reset();
	decoder_free(decoder);
	packer_free(&pack);
}

/* A copy that is exactly as long: reading past it is detected. */
static enum decode_verdict
read_bytes(const void *bytes, size_t n)
{
	unsigned char *exact = malloc(n + (n == 0));
	enum decode_verdict verdict;

	ck_assert_ptr_nonnull(exact);
	memcpy(exact, bytes, n);
	if (decoder == NULL)
		decoder = decoder_new(&options);
	ck_assert_ptr_nonnull(decoder);
	verdict = decoder_read(decoder, exact, n, &batch);
	free(exact);
	return verdict;
}

/* Compares the batch and its dropped events with the tool's output. */
static void
ck_shows(const void *bytes, size_t n, const char *want)
{
	struct decode_counts before = { 0 }, after;
	char *text = NULL;
	size_t length, i;
	FILE *out = open_memstream(&text, &length);

	ck_assert_ptr_nonnull(out);
	if (decoder != NULL)
		before = decoder_counts(decoder);
	ck_assert_int_eq(read_bytes(bytes, n), DECODE_GOOD);
	for (i = 0; i < batch.n; i++) {
		ck_assert_uint_eq(batch.events[i].size, sizeof(struct event));
		print_event(out, &batch, &batch.events[i], true);
	}
	after = decoder_counts(decoder);
	print_dropped(out, &before, &after);
	ck_assert_uint_eq(after.batches, before.batches + 1);
	ck_assert_uint_eq(after.events, before.events + batch.n);
	fclose(out);
	ck_assert_str_eq(text, want);
	free(text);
}

static void
ck_vector(const char *name, const char *want)
{
	unsigned char *bytes;
	size_t n;

	bytes = vector_bytes(vector_hex(name), &n);
	ck_shows(bytes, n, want);
	free(bytes);
}

/* The packer's message: a batch that was begun by begin(). */
static void
ck_packed(const char *want)
{
	packer_end(&pack);
	ck_shows(pack.bytes, pack.n, want);
	packer_begin(&pack);
}

static void
ck_json(const char *text, const char *want)
{
	ck_shows(text, strlen(text), want);
}

/* ----------------------------------------------------------- vectors --- */

START_TEST(v1_arrays)
{
	ck_vector("v1",
	    "  stored " A " " B " parent - block_size 4 tokens 8: "
	    "1 2 3 4 5 6 7 8 tier device rank 0\n"
	    "  removed " B " tier device rank 0\n"
	    "  cleared rank 0\n");
	ck_assert_uint_eq(batch.time, UINT64_C(1700000000000));
}
END_TEST

START_TEST(v2_arrays_of_later_releases)
{
	ck_vector("v2",
	    "  stored " C " parent " B " block_size 4 tokens 4: 9 10 11 151645 "
	    "tier device rank 1 group 0 attention full\n"
	    "  removed " B " tier device rank 1 group 0\n");
}
END_TEST

START_TEST(v3_maps)
{
	ck_vector("v3",
	    "  stored " A " " B " parent - block_size 4 tokens 8: "
	    "1 2 3 4 5 6 7 8 tier device rank 0 group 0 attention full\n"
	    "  removed " B " tier device rank 0 group 0\n"
	    "  cleared rank 0\n");
}
END_TEST

START_TEST(v4_wide_hashes)
{
	ck_vector("v4",
	    "  stored " B " parent " A " block_size 4 tokens 4: 5 6 7 8 "
	    "tier device rank 0\n");
}
END_TEST

START_TEST(v5_a_sliding_group_is_sparse)
{
	ck_vector("v5", "  dropped group 1\n");
	decoder_free(decoder);
	decoder = NULL;
	options.all_groups = true;
	ck_vector("v5",
	    "  moved " C " block_size 4 tier device rank 0 group 1 "
	    "attention sliding window 5\n");
}
END_TEST

static uint64_t
slides_in(const char *name)
{
	unsigned char *bytes;
	size_t n;

	bytes = vector_bytes(vector_hex(name), &n);
	ck_assert_int_eq(read_bytes(bytes, n), DECODE_GOOD);
	free(bytes);
	return batch.sliding;
}

/* A dropped event fixes the window, once and for all, up to a restart. */
START_TEST(windows_that_slide)
{
	ck_assert_uint_eq(slides_in("v1"), 0);
	ck_assert_uint_eq(slides_in("v5"), 5);
	ck_assert_uint_eq(slides_in("v1"), 5);
	decoder_restart(decoder);
	ck_assert_uint_eq(slides_in("v1"), 0);
}
END_TEST

START_TEST(v6_signed_hashes)
{
	ck_vector("v6",
	    "  stored " SGL_A " " SGL_B " parent - block_size 4 tokens 8: "
	    "1 2 3 4 5 6 7 8 tier device rank 0\n"
	    "  removed " SGL_B " tier device rank 0\n");
}
END_TEST

START_TEST(v7_salt_in_the_host)
{
	ck_vector("v7",
	    "  stored " SALTED " parent - block_size 4 tokens 4: 1 2 3 4 "
	    "tier host rank 0 salt tenant-a\n");
}
END_TEST

START_TEST(v8_metadata_where_others_have_an_adapter)
{
	ck_vector("v8",
	    "  stored " SALTED " parent - block_size 4 tokens 4: 1 2 3 4 "
	    "tier device salt tenant-a\n");
}
END_TEST

START_TEST(v9_windows_of_two)
{
	ck_vector("v9",
	    "  stored 0000000000000007 parent - block_size 4 tokens 5: "
	    "1 2 3 4 5 eagle tier device rank 0\n");
}
END_TEST

START_TEST(v10_without_tokens)
{
	ck_vector("v10", "  moved " A " tier host rank 0\n");
}
END_TEST

START_TEST(v11_a_batch_as_map)
{
	ck_vector("v11", "  cleared rank 0\n");
	ck_assert_uint_eq(batch.time, UINT64_C(1700000000000));
}
END_TEST

START_TEST(v12_mooncake)
{
	ck_vector("v12", "  removed 000000000000000b tier host rank 0\n");
	ck_assert_uint_eq(batch.time, UINT64_C(1700000000000));
}
END_TEST

START_TEST(v13_dynamo)
{
	options.format = DECODE_DYNAMO;
	ck_vector("v13",
	    "  stored " A " parent - locals 1: 0000000000000001 "
	    "tier device worker 7 rank 0\n"
	    "  removed " A " tier device worker 7 rank 0\n"
	    "  cleared worker 7 rank 0\n");
}
END_TEST

START_TEST(v14_envelope_and_frame)
{
	options.format = DECODE_DYNAMO;
	ck_vector("v14", "  cleared worker 7 rank 0\n");
	ck_assert_uint_eq(batch.publisher, 7);
	ck_assert_uint_eq(batch.time, UINT64_C(1700000000000));
	ck_vector("v14_frame", "  cleared worker 7 rank 0\n");
	ck_assert_uint_eq(batch.publisher, 7);
}
END_TEST

/* false: it has none; out of the hex of a message. */
static bool
numbers(const char *hex, uint64_t *publisher, uint64_t *sequence)
{
	size_t n;
	unsigned char *bytes = vector_bytes(hex, &n);
	const bool good = decode_dynamo_numbers(bytes, n, publisher, sequence);

	free(bytes);
	return good;
}

/* {publisher_id, sequence}, with numbers in all forms. */
START_TEST(numbers_of_envelopes)
{
#define MAP "82ac7075626c69736865725f6964"
#define SEQ "a873657175656e6365"
	static const char *const none[] = { "", "c0", "90", "80", "07",
	    MAP "07", MAP "07a173" "00", "81" SEQ "00", MAP "ff" SEQ "00",
	    MAP "07" SEQ "c0", MAP "07" SEQ "a130", MAP "07" SEQ "cd01",
	    MAP "07" SEQ "00" "00", MAP "07" SEQ "d001", "01000000ff" MAP "07"
	    SEQ "00" };
	uint64_t p = 0, q = 1;
	size_t i;

	ck_assert(numbers(vector_hex("v14"), &p, &q) && p == 7 && q == 0);
	p = q = 9;
	ck_assert(numbers(vector_hex("v14_frame"), &p, &q) && p == 7 &&
	    q == 0);
	ck_assert(numbers(MAP "cc80" SEQ "cd0102", &p, &q));
	ck_assert(p == 0x80 && q == 0x102);
	ck_assert(numbers(MAP "ce01020304" SEQ "cfffffffffffffffff", &p, &q));
	ck_assert(p == 0x1020304 && q == UINT64_MAX);
	ck_assert(!numbers(vector_hex("v13"), &p, &q));
	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		ck_assert_msg(!numbers(none[i], &p, &q), "%s", none[i]);
#undef MAP
#undef SEQ
}
END_TEST

/* These copies are those that all implementations are held to. */
START_TEST(vectors_are_the_shared_ones)
{
	FILE *in = fopen(test_shared("vectors/kv-events.txt"), "r");
	char line[2048], name[16], *hex;
	size_t found = 0;

	ck_assert_ptr_nonnull(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		if (sscanf(line, "V%14s", name + 1) != 1)
			continue;
		name[0] = 'v';
		if (strstr(line, " frame ") != NULL)
			strcat(name, "_frame");
		line[strcspn(line, "\n")] = '\0';
		hex = strrchr(line, ' ');
		ck_assert_ptr_nonnull(hex);
		ck_assert_str_eq(hex + 1, vector_hex(name));
		found++;
	}
	fclose(in);
	ck_assert_uint_eq(found, 15);
}
END_TEST

/* ------------------------------------------------------------ fields --- */

/* A batch without rank, of n events. */
static void
begin(unsigned n)
{
	packer_array(&pack, 2);
	packer_uint(&pack, 1);
	packer_array(&pack, n);
}

/* The first five elements of a stored event, of blocks of so many tokens. */
static void
stored_in(unsigned size, unsigned elements, unsigned blocks, bool parent)
{
	unsigned i;

	packer_array(&pack, elements);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, blocks);
	for (i = 0; i < blocks; i++)
		packer_uint(&pack, 0x10 + i);
	if (parent)
		packer_uint(&pack, 1);
	else
		packer_nil(&pack);
	packer_array(&pack, size * blocks);
	for (i = 0; i < size * blocks; i++)
		packer_uint(&pack, 100000 + i);
	packer_uint(&pack, size);
}

static void
stored(unsigned elements, unsigned blocks, bool parent)
{
	stored_in(2, elements, blocks, parent);
}

#define ONE "  stored 0000000000000010 parent - block_size 2 tokens 2: " \
	"100000 100001 tier device"

/* A lag is a difference to it, which must be a number. */
START_TEST(a_time_that_is_none)
{
	static const uint64_t times[] = { 1, UINT64_C(10000000000000),
	    UINT64_C(10000000000001), INT64_MAX, UINT64_MAX };
	size_t i;

	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		packer_array(&pack, 2);
		packer_uint(&pack, times[i]);
		packer_array(&pack, 0);
		ck_packed("");
		ck_assert_uint_eq(batch.time, i < 2 ? times[i] : 0);
	}
	packer_array(&pack, 2);
	packer_double(&pack, 1e11);
	packer_array(&pack, 0);
	ck_packed("");
	ck_assert_uint_eq(batch.time, 0);
}
END_TEST

START_TEST(a_number_for_an_adapter)
{
	begin(1);
	stored(6, 1, false);
	packer_uint(&pack, 12);
	ck_packed(ONE " adapter 12\n");
	ck_assert_uint_eq(batch.events[0].flags, EVENT_ADAPTER_NUMBER);
}
END_TEST

/* Adapter and salt come from extra keys; unknown fields are ignored. */
START_TEST(extra_keys_of_adapter_and_salt)
{
	begin(1);
	stored(14, 2, false);
	packer_uint(&pack, 1);
	packer_text(&pack, "GPU");
	packer_text(&pack, "a name");
	packer_array(&pack, 2);
	packer_array(&pack, 2);
	packer_text(&pack, "a name");
	packer_text(&pack, "s\x1b");
	packer_array(&pack, 1);
	packer_text(&pack, "a name");
	packer_uint(&pack, 0);
	packer_text(&pack, "mla_attention");
	packer_nil(&pack);
	packer_text(&pack, "to come");
	packer_array(&pack, 1);
	packer_nil(&pack);
	ck_packed("  stored 0000000000000010 0000000000000011 parent - "
	    "block_size 2 tokens 4: 100000 100001 100002 100003 tier device "
	    "group 0 attention full adapter a\\x20name salt s\\x1b\n");
}
END_TEST

static void
extra_of_second(unsigned form)
{
	stored(9, 2, false);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_array(&pack, 2);
	packer_nil(&pack);
	packer_array(&pack, 1);
	if (form == 0) {
		packer_text(&pack, "image");
	} else if (form == 1) {
		packer_array(&pack, 2);
		packer_text(&pack, "image");
		packer_uint(&pack, 3);
	} else {
		packer_bin(&pack, "embedding!", 10);
	}
}

START_TEST(contents_end_before_an_image)
{
	begin(1);
	extra_of_second((unsigned)_i);
	ck_packed("  stored 0000000000000010 0000000000000011 parent - "
	    "block_size 2 tokens 2: 100000 100001 opaque tier device\n");
	ck_assert_uint_eq(batch.events[0].tokens.n, 2);
}
END_TEST

/* A text behind a parent is no salt, which only a prompt's first block has. */
START_TEST(a_text_after_a_parent_is_no_salt)
{
	begin(1);
	stored(9, 1, true);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_array(&pack, 1);
	packer_array(&pack, 1);
	packer_text(&pack, "image");
	ck_packed("  stored 0000000000000010 parent 0000000000000001 "
	    "block_size 2 tokens 0 opaque tier device\n");
}
END_TEST

/* Names of later releases, in any order, beside unknown ones. */
START_TEST(maps_of_later_releases)
{
	begin(1);
	packer_map(&pack, 10);
	packer_text(&pack, "ownership");
	packer_map(&pack, 1);
	packer_text(&pack, "type");
	packer_text(&pack, "BlockRemoved");
	packer_text(&pack, "session_id");
	packer_text(&pack, "s-1");
	packer_text(&pack, "locality");
	packer_text(&pack, "LOCAL");
	packer_text(&pack, "medium");
	packer_text(&pack, "FS");
	packer_text(&pack, "block_size");
	packer_uint(&pack, 1);
	packer_text(&pack, "token_ids");
	packer_array(&pack, 1);
	packer_uint(&pack, 5);
	packer_text(&pack, "block_hashes");
	packer_array(&pack, 1);
	packer_uint(&pack, 9);
	packer_text(&pack, "type");
	packer_text(&pack, "BlockStored");
	packer_uint(&pack, 7);
	packer_nil(&pack);
	packer_text(&pack, "parent_block_hash");
	packer_nil(&pack);
	ck_packed("  stored 0000000000000009 parent - block_size 1 tokens 1: 5 "
	    "tier disk session s-1\n");
}
END_TEST

/* Tokens that do not match the number of blocks are ignored. */
START_TEST(too_few_tokens_are_none)
{
	begin(1);
	packer_array(&pack, 5);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, 2);
	packer_uint(&pack, 1);
	packer_uint(&pack, 2);
	packer_nil(&pack);
	packer_array(&pack, 3);
	packer_uint(&pack, 1);
	packer_uint(&pack, 1);
	packer_uint(&pack, 1);
	packer_uint(&pack, 2);
	ck_packed("  moved 0000000000000001 0000000000000002 block_size 2 "
	    "tier device\n");
	ck_assert_uint_eq(batch.events[0].tokens.n, 0);
}
END_TEST

/* ---------------------------------------------------------- dropping --- */

static void
removed(const char *medium, int group)
{
	packer_array(&pack, 4);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	if (medium == NULL)
		packer_nil(&pack);
	else
		packer_text(&pack, medium);
	if (group < 0)
		packer_nil(&pack);
	else
		packer_uint(&pack, (uint64_t)group);
}

static void
stored_by_in(unsigned size, unsigned group, const char *kind)
{
	stored_in(size, 11, 1, false);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_nil(&pack);
	packer_uint(&pack, group);
	packer_text(&pack, kind);
}

static void
stored_by(unsigned group, const char *kind)
{
	stored_by_in(2, group, kind);
}

/* A window without a size stays unknown. */
START_TEST(a_state_is_a_window_of_1)
{
	begin(1);
	stored_by(1, "sliding_window");
	ck_packed("  dropped group 1\n");
	ck_assert_uint_eq(batch.sliding, 0);
	begin(1);
	stored_by(2, "mamba");
	ck_packed("  dropped group 1\n");
	ck_assert_uint_eq(batch.sliding, 1);
}
END_TEST

#define GONE "  removed 0000000000000001 tier device"

/* The arrays lose the entries of a dropped event. */
START_TEST(a_dropped_event_leaves_nothing)
{
	unsigned i;

	begin(2);
	for (i = 0; i < 2; i++) {
		stored(8, 1, false);
		packer_nil(&pack);
		packer_text(&pack, i == 0 ? "OBJ" : "GPU");
		packer_text(&pack, "name");
	}
	ck_packed(ONE " adapter name\n  dropped tier 1\n");
	ck_assert_uint_eq(batch.events[0].hashes.at, 0);
	ck_assert_uint_eq(batch.events[0].tokens.at, 0);
	ck_assert_uint_eq(batch.events[0].adapter.at, 0);
}
END_TEST

START_TEST(group_0_until_one_is_learnt_to_be_full)
{
	begin(3);
	removed(NULL, -1);
	removed(NULL, 0);
	removed(NULL, 1);
	ck_packed(GONE "\n" GONE " group 0\n  dropped group 1\n");
	begin(2);
	stored_by(0, "sliding_window");
	removed(NULL, 0);
	ck_packed("  dropped group 2\n");
	begin(3);
	stored_by(1, "sink_full_attention");
	removed(NULL, 0);
	removed(NULL, 1);
	ck_packed(ONE " group 1 attention full\n" GONE " group 1\n"
	    "  dropped group 1\n");
	decoder_restart(decoder);
	begin(2);
	removed(NULL, 0);
	removed(NULL, 1);
	ck_packed(GONE " group 0\n  dropped group 1\n");
}
END_TEST

/* Each block is announced once for each of them: as with a draft model. */
START_TEST(the_first_of_two_full_groups)
{
	begin(4);
	stored_by(2, "full_attention");
	stored_by(1, "full_attention");
	removed(NULL, 2);
	removed(NULL, 1);
	ck_packed(ONE " group 2 attention full\n" GONE " group 2\n"
	    "  dropped group 2\n");
	/* it was of another kind after all */
	begin(4);
	stored_by(2, "sliding_window");
	stored_by(1, "full_attention");
	removed(NULL, 2);
	removed(NULL, 1);
	ck_packed(ONE " group 1 attention full\n" GONE " group 1\n"
	    "  dropped group 2\n");
}
END_TEST

/* A group in blocks of another size is useless. */
START_TEST(of_two_full_groups_the_one_of_the_size)
{
	options.block_size = 2;
	begin(4);
	stored_by_in(8, 0, "full_attention");
	stored_by(1, "full_attention");
	removed(NULL, 0);
	removed(NULL, 1);
	ck_packed(ONE " group 1 attention full\n" GONE " group 1\n"
	    "  dropped group 1\n  dropped block_size 1\n");
	begin(2);
	stored_by_in(8, 0, "full_attention");
	stored_by(1, "full_attention");
	ck_packed(ONE " group 1 attention full\n  dropped group 1\n");
}
END_TEST

START_TEST(tiers_that_others_share)
{
	begin(5);
	removed("CPU", -1);
	removed("OBJ", -1);
	removed("EXTERNAL", -1);
	removed("a moon", -1);
	removed("cpu_pinne", -1);
	ck_packed("  removed 0000000000000001 tier host\n  dropped tier 4\n");
}
END_TEST

/* Only a sanitizer notices a read behind the name. */
START_TEST(a_tier_with_a_zero_inside)
{
	static const char message[] = "\x92\x01\x91\x93\xac" "BlockRemoved"
	    "\x91\x01\xac" "CPU\0########";

	ck_shows(message, sizeof(message) - 1, "  dropped tier 1\n");
}
END_TEST

START_TEST(another_block_size)
{
	options.block_size = (uint32_t)_i;
	begin(1);
	stored(5, 1, false);
	ck_packed(_i == 4 ? "  dropped block_size 1\n" : ONE "\n");
	begin(1);
	packer_array(&pack, 5);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_nil(&pack);
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_uint(&pack, 1);
	ck_packed("  dropped block_size 1\n");
}
END_TEST

/* A bad event of each kind between two good ones. */
START_TEST(a_bad_event_does_not_cost_the_others)
{
	begin(14);
	removed(NULL, -1);
	packer_uint(&pack, 5);
	packer_array(&pack, 0);
	packer_map(&pack, 0);
	packer_array(&pack, 1);
	packer_nil(&pack);
	packer_array(&pack, 1);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 2);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 0);
	packer_array(&pack, 2);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 1);
	packer_text(&pack, "no hash");
	packer_array(&pack, 3);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_uint(&pack, 1);
	removed("GPU", 0x7fffffff);
	packer_array(&pack, 2);
	packer_text(&pack, "BlockRemoved");
	packer_array(&pack, 1);
	packer_bin(&pack, "1234567", 7);
	packer_array(&pack, 5);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_nil(&pack);
	packer_array(&pack, 1);
	packer_uint(&pack, UINT64_C(1) << 32);
	packer_uint(&pack, 1);
	packer_array(&pack, 1);
	packer_text(&pack, "BlockDreamt");
	removed(NULL, -1);
	ck_packed(GONE "\n" GONE "\n"
	    "  dropped malformed 10\n  dropped unknown 1\n  dropped group 1\n");
}
END_TEST

/* [[1, 2], [3, 4]] are no windows of 1, 2, 3. */
START_TEST(windows_that_do_not_overlap)
{
	begin(1);
	packer_array(&pack, 5);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_nil(&pack);
	packer_array(&pack, 2);
	packer_array(&pack, 2);
	packer_uint(&pack, 1);
	packer_uint(&pack, 2);
	packer_array(&pack, 2);
	packer_uint(&pack, 3);
	packer_uint(&pack, 4);
	packer_uint(&pack, 2);
	ck_packed("  dropped malformed 1\n");
}
END_TEST

START_TEST(an_event_above_its_bound)
{
	unsigned i;

	begin(2);
	packer_array(&pack, 5);
	packer_text(&pack, "BlockStored");
	packer_array(&pack, 1);
	packer_uint(&pack, 1);
	packer_nil(&pack);
	packer_array(&pack, DECODE_EVENT_BYTES_MAX);
	for (i = 0; i < DECODE_EVENT_BYTES_MAX; i++)
		packer_uint(&pack, 1);
	packer_uint(&pack, 16);
	removed(NULL, -1);
	ck_packed(GONE "\n  dropped size 1\n");
}
END_TEST

/* ---------------------------------------------------------- refusing --- */

static void
ck_refused(const void *bytes, size_t n, enum decode_verdict want)
{
	const uint64_t before = decoder == NULL ? 0 :
	    decoder_counts(decoder).refused;

	ck_assert_int_eq(read_bytes(bytes, n), want);
	ck_assert_uint_eq(batch.n, 0);
	ck_assert_uint_eq(decoder_counts(decoder).refused, before + 1);
	ck_assert_uint_eq(decoder_counts(decoder).events, 0);
}

/* No prefix of a message is one, nor is one with a byte more. */
START_TEST(cut_messages)
{
	static const char *const names[] = { "v1", "v3", "v9", "v11", "v13",
	    "v14", "v14_frame" };
	const char *name = names[_i];
	unsigned char *bytes, more[1024] = { 0 };
	size_t i, n;

	options.format = _i >= 4 ? DECODE_DYNAMO : DECODE_ENGINE;
	bytes = vector_bytes(vector_hex(name), &n);
	for (i = 0; i < n; i++)
		ck_refused(bytes, i, DECODE_MALFORMED);
	memcpy(more, bytes, n);
	ck_refused(more, n + 1, DECODE_MALFORMED);
	free(bytes);
}
END_TEST

START_TEST(no_batches)
{
	ck_refused("\xc0", 1, DECODE_MALFORMED);
	ck_refused("\x90", 1, DECODE_MALFORMED);
	ck_refused("\x91\x01", 2, DECODE_MALFORMED);
	ck_refused("\x92\x01\x01", 3, DECODE_MALFORMED);
	ck_refused("\x93\x01\x90\xa0", 4, DECODE_MALFORMED);
	ck_refused("\x80", 1, DECODE_MALFORMED);
}
END_TEST

/* Five bytes that ask for 2^32 elements, at each place of a batch. */
START_TEST(counts_beyond_the_bytes)
{
	static const struct {
		const char *bytes;
		size_t n;
	} all[] = {
		{ "\xdd\xff\xff\xff\xff", 5 },
		{ "\x92\x01\xdd\xff\xff\xff\xff", 7 },
		{ "\x92\x01\x91\xdd\xff\xff\xff\xff", 8 },
		{ "\x92\x01\x91\x91\xdf\xff\xff\xff\xff", 9 },
		{ "\x92\x01\x91\x91\xdb\xff\xff\xff\xff", 9 },
		{ "\x92\x01\x91\xdf\x80\x00\x00\x00", 8 }
	};
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_refused(all[i].bytes, all[i].n, DECODE_MALFORMED);
}
END_TEST

START_TEST(too_deep)
{
	char bytes[64] = "\x92\x01";
	char json[64] = "{\"data\":";

	memset(bytes + 2, '\x91', 14);
	bytes[16] = '\x90';
	ck_shows(bytes, 17, "  dropped malformed 1\n");
	memset(bytes + 2, '\x91', 15);
	bytes[17] = '\x90';
	ck_refused(bytes, 18, DECODE_MALFORMED);
	decoder_free(decoder);
	decoder = NULL;
	options.format = DECODE_TRTLLM;
	memset(json + 8, '[', 16);
	memset(json + 24, ']', 16);
	json[40] = '}';
	ck_refused(json, 41, DECODE_MALFORMED);
}
END_TEST

START_TEST(too_large)
{
	static const char byte;

	decoder = decoder_new(&options);
	/* refused before the first byte is read */
	ck_assert_int_eq(decoder_read(decoder, &byte, DECODE_BYTES_MAX + 1,
	    &batch), DECODE_TOO_LARGE);
	ck_assert_uint_eq(batch.n, 0);
}
END_TEST

/* ------------------------------------------------------ TensorRT-LLM --- */

#define TRT(id, window, data) "{\"event_id\":" #id ",\"window_size\":" #window \
	",\"data\":{" data "}}"
#define TOKEN(t) "{\"token_id\":" #t ",\"token_extra_id\":0}"
#define BLOCK(h, tokens, more) "{\"block_hash\":" #h ",\"tokens\":[" tokens \
	"],\"cache_level\":0,\"priority\":35" more "}"
#define STORED(parent, blocks) "\"type\":\"stored\",\"parent_hash\":" parent \
	",\"blocks\":[" blocks "]"
#define TWO_TOKENS TOKEN(1) "," TOKEN(2)

static void
trt(void)
{
	options.format = DECODE_TRTLLM;
}

START_TEST(trt_stored_moved_removed)
{
	trt();
	ck_json(" [" TRT(0, 4096, "\"type\":\"created\","
	    "\"num_blocks_per_cache_level\":[10,5]") ",\n"
	    TRT(1, 4096, STORED("null", BLOCK(5, TWO_TOKENS, "") ","
	        BLOCK(18446744073709551615, TWO_TOKENS, ""))) ","
	    TRT(2, 4096, "\"type\":\"updated\",\"block_hash\":5,"
	        "\"cache_level\":{\"type\":\"event_diff\",\"new_value\":1,"
	        "\"old_value\":0},\"priority\":null") ","
	    TRT(3, 4096, "\"type\":\"updated\",\"block_hash\":5,"
	        "\"cache_level\":null,\"priority\":{\"new_value\":1}") ","
	    TRT(4, 4096, "\"type\":\"removed\",\"block_hashes\":[5,-1]")
	    "] \n",
	    "  stored 0000000000000005 ffffffffffffffff parent - block_size 2 "
	    "tokens 4: 1 2 1 2 tier device window 4096\n"
	    "  moved 0000000000000005 tier host from device window 4096\n"
	    "  removed 0000000000000005 ffffffffffffffff window 4096\n"
	    "  dropped unknown 1\n");
}
END_TEST

START_TEST(trt_only_the_largest_window)
{
	trt();
	ck_json("[" TRT(0, 512, "\"type\":\"created\"") ","
	    TRT(1, 4096, "\"type\":\"created\"") ","
	    TRT(2, 512, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    TRT(3, 4096, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    TRT(4, 8192, "\"type\":\"created\"") ","
	    TRT(5, 8192, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    "{\"event_id\":6,\"data\":{\"type\":\"removed\","
	    "\"block_hashes\":[2]}}]",
	    "  removed 0000000000000001 window 4096\n"
	    "  removed 0000000000000002\n"
	    "  dropped group 2\n");
}
END_TEST

static uint64_t
slides(const char *text)
{
	decoder_free(decoder);
	decoder = NULL;
	ck_json(text, "");
	return batch.sliding;
}

/* The largest window is the full one; the next one slides. */
START_TEST(trt_windows_that_slide)
{
	trt();
	ck_assert_uint_eq(slides("[" TRT(0, 512, "\"type\":\"created\"") "]"),
	    0);
	ck_assert_uint_eq(slides("[" TRT(0, 512, "\"type\":\"created\"") ","
	    TRT(1, 512, "\"type\":\"created\"") "]"), 0);
	ck_assert_uint_eq(slides("[" TRT(0, 128, "\"type\":\"created\"") ","
	    TRT(1, 4096, "\"type\":\"created\"") ","
	    TRT(2, 512, "\"type\":\"created\"") "]"), 512);
	ck_assert_uint_eq(slides("[" TRT(0, 4096, "\"type\":\"created\"") ","
	    TRT(1, 512, "\"type\":\"created\"") ","
	    TRT(2, 128, "\"type\":\"created\"") "]"), 512);
}
END_TEST

START_TEST(trt_window_told)
{
	trt();
	options.window = 512;
	ck_json("[" TRT(0, 4096, "\"type\":\"removed\",\"block_hashes\":[1]")
	    "," TRT(1, 512, "\"type\":\"removed\",\"block_hashes\":[1]") "]",
	    "  removed 0000000000000001 window 512\n  dropped group 1\n");
}
END_TEST

/* Blocks that end a prompt are not whole; neither are those behind them. */
START_TEST(trt_partial_blocks)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("7", BLOCK(1, TWO_TOKENS, "") ","
	    BLOCK(2, TOKEN(3), ""))) ","
	    TRT(1, 1, STORED("1", BLOCK(3, TOKEN(3), ""))) "]",
	    "  stored 0000000000000001 parent 0000000000000007 block_size 2 "
	    "tokens 2: 1 2 tier device window 1\n"
	    "  dropped partial 2\n");
}
END_TEST

/* A short prompt comes first: only a block with one behind it is whole. */
START_TEST(trt_the_size_of_a_whole_block)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("null", BLOCK(1, TOKEN(1), ""))) ","
	    TRT(1, 1, STORED("null", BLOCK(2, TWO_TOKENS, "") ","
	        BLOCK(3, TOKEN(3), ""))) ","
	    TRT(2, 1, STORED("2", BLOCK(4, TWO_TOKENS, ""))) "]",
	    "  stored 0000000000000002 parent - block_size 2 tokens 2: 1 2 "
	    "tier device window 1\n"
	    "  stored 0000000000000004 parent 0000000000000002 block_size 2 "
	    "tokens 2: 1 2 tier device window 1\n"
	    "  dropped partial 2\n");
}
END_TEST

#define REMOVED(hashes) "\"type\":\"removed\",\"block_hashes\":[" hashes "]"

/* A block that did not count when it was stored does not count when removed. */
START_TEST(trt_removals_of_partial_blocks)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("null", BLOCK(9, TWO_TOKENS, ""))) ","
	    TRT(1, 1, STORED("null", BLOCK(1, TWO_TOKENS, "") ","
	        BLOCK(2, TOKEN(3), ""))) ","
	    TRT(2, 1, "\"type\":\"updated\",\"block_hash\":2,"
	        "\"cache_level\":{\"new_value\":1,\"old_value\":0}") ","
	    TRT(3, 1, REMOVED("2,1")) "," TRT(4, 1, REMOVED("9")) "]",
	    "  stored 0000000000000001 parent - block_size 2 tokens 2: 1 2 "
	    "tier device window 1\n"
	    "  removed 0000000000000001 window 1\n"
	    "  dropped partial 5\n");
	/* the size is known now, after a malformed message */
	ck_json("[" TRT(5, 1, STORED("null", BLOCK(9, TWO_TOKENS, ""))) ","
	    TRT(6, 1, REMOVED("9,2")) "]",
	    "  stored 0000000000000009 parent - block_size 2 tokens 2: 1 2 "
	    "tier device window 1\n"
	    "  removed 0000000000000009 window 1\n  dropped partial 1\n");
	ck_assert_int_eq(read_bytes("[", 1), DECODE_MALFORMED);
	ck_json(TRT(7, 1, REMOVED("2")),
	    "  removed 0000000000000002 window 1\n");
}
END_TEST

/* The same is read when there is memory again. */
START_TEST(trt_no_memory)
{
	static const char text[] = "[" TRT(0, 1, REMOVED("5")) ","
	    TRT(1, 1, STORED("null", BLOCK(5, TOKEN(1), ""))) ","
	    TRT(2, 1, REMOVED("5,6")) "]";
	unsigned long i;

	trt();
	for (i = 1;; i++) {
		decoder_free(decoder);
		decoder = decoder_new(&options);
		ck_assert_ptr_nonnull(decoder);
		alloc_fail_at(i);
		if (decoder_read(decoder, text, sizeof(text) - 1, &batch) ==
		    DECODE_GOOD)
			break;
		alloc_reset();
		ck_json(text, "  removed 0000000000000005 window 1\n"
		    "  removed 0000000000000006 window 1\n"
		    "  dropped partial 2\n");
	}
	ck_assert_uint_gt(i, 2);
}
END_TEST

START_TEST(trt_a_larger_block)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("null", BLOCK(1, TOKEN(1), "") ","
	    BLOCK(2, TWO_TOKENS, ""))) ","
	    TRT(1, 1, STORED("null", BLOCK(3, TWO_TOKENS, ""))) "]",
	    "  stored 0000000000000001 parent - block_size 1 tokens 1: 1 "
	    "tier device window 1\n"
	    "  dropped block_size 1\n  dropped partial 1\n");
}
END_TEST

START_TEST(trt_other_contents)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("null", BLOCK(1, TWO_TOKENS,
	    ",\"cache_salt\":\"s\"") "," BLOCK(2, "{\"token_id\":1,"
	    "\"token_extra_id\":9}," TOKEN(2), ""))) ","
	    TRT(1, 1, STORED("null", BLOCK(3, TWO_TOKENS,
	        ",\"mm_keys\":[{\"hash\":1}]"))) "]",
	    "  stored 0000000000000001 0000000000000002 parent - block_size 2 "
	    "tokens 2: 1 2 opaque tier device window 1 salt s\n"
	    "  stored 0000000000000003 parent - block_size 2 tokens 0 opaque "
	    "tier device window 1\n");
}
END_TEST

START_TEST(trt_hashes_in_hex)
{
	trt();
	ck_json(TRT(0, 1, "\"type\":\"removed\",\"block_hashes\":"
	    "[\"CF97adeedb59e05bfd73a2b4c2a88857\"]"),
	    "  removed " SGL_A " window 1\n");
	ck_json(TRT(1, 1, "\"type\":\"removed\",\"block_hashes\":"
	    "[\"cf97adeedb59e05g\"]"), "  dropped malformed 1\n");
	ck_json(TRT(2, 1, "\"type\":\"removed\",\"block_hashes\":"
	    "[\"cf97adeedb59e05\"]"), "  dropped malformed 1\n");
}
END_TEST

/* A dropped event counts in the numbers, too; each rank counts alone. */
START_TEST(trt_gaps_and_restarts)
{
	trt();
	ck_json("[" TRT(0, 2, "\"type\":\"created\"") ","
	    TRT(1, 1, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    TRT(3, 1, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    "{\"event_id\":4,\"attention_dp_rank\":2,\"data\":{"
	    "\"type\":\"removed\",\"block_hashes\":[8]}}]",
	    "  lost rank 0\n  lost rank 2\n"
	    "  removed 0000000000000008 rank 2\n  dropped group 2\n");
	ck_json("[" TRT(4, 2, "\"type\":\"removed\",\"block_hashes\":[1]") ","
	    TRT(0, 1, "\"type\":\"created\"") ","
	    TRT(1, 1, "\"type\":\"removed\",\"block_hashes\":[1]") "]",
	    "  removed 0000000000000001 window 2\n  restarted rank 0\n"
	    "  removed 0000000000000001 window 1\n");
}
END_TEST

/* They are rejected also when the block size to compare with is known. */
START_TEST(trt_blocks_that_are_no_list)
{
	trt();
	ck_json("[" TRT(0, 1, STORED("null", BLOCK(1, TWO_TOKENS, "") ","
	    BLOCK(2, TWO_TOKENS, ""))) "]", "  stored 0000000000000001 "
	    "0000000000000002 parent - block_size 2 tokens 4: 1 2 1 2 tier "
	    "device window 1\n");
	ck_json("[" TRT(1, 1, "\"type\":\"stored\"") ","
	    TRT(2, 1, "\"type\":\"stored\",\"blocks\":{}") ","
	    TRT(3, 1, "\"type\":\"stored\",\"blocks\":7") "]",
	    "  dropped malformed 3\n");
}
END_TEST

START_TEST(trt_bad_events)
{
	trt();
	ck_json("[{},{\"data\":1},{\"data\":{}},{\"data\":{\"type\":\"x\"}},"
	    "{\"data\" 1},{\"a\":\"\\\"}]\"},{[]},"
	    "{\"data\":{\"type\":\"stored\"}},"
	    "{\"data\":{\"type\":\"removed\",\"block_hashes\":[1.5]}},"
	    "{\"data\":{\"type\":\"removed\",\"block_hashes\":[1]}}]",
	    "  removed 0000000000000001\n"
	    "  dropped malformed 8\n  dropped unknown 1\n");
	ck_json(" [ ] ", "");
}
END_TEST

START_TEST(trt_no_messages)
{
	static const char *const all[] = { "", " ", "[", "[{}", "[{},", "[{},]",
	    "[1]", "{", "{}}", "[]]", "\"a\"", "{\"a\":\"", "{\"a\":\"\\",
	    "]", "[{}{}]" };
	size_t i;

	trt();
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		ck_refused(all[i], strlen(all[i]), DECODE_MALFORMED);
}
END_TEST

/* json-c takes hundreds of bytes for each. */
START_TEST(trt_too_many_objects)
{
	const size_t n = 3 * DECODE_OBJECTS_MAX + 8;
	char *text = malloc(n);
	size_t i, at;

	ck_assert_ptr_nonnull(text);
	trt();
	at = (size_t)sprintf(text, "{\"a\":[{}");
	for (i = 2; i < DECODE_OBJECTS_MAX; i++, at += 3)
		memcpy(text + at, ",{}", 3);
	memcpy(text + at, "]}", 2);
	ck_shows(text, at + 2, "  dropped size 1\n");
	free(text);
}
END_TEST

/* ------------------------------------------------------------ memory --- */

/* Every allocation of the decoder fails in turn: all of a batch, or nothing. */
START_TEST(no_memory)
{
	static const char *const names[] = { "v1", "v7", "v13" };
	unsigned char *bytes;
	unsigned long i;
	size_t n;

	options.format = _i == 2 ? DECODE_DYNAMO : DECODE_ENGINE;
	bytes = vector_bytes(vector_hex(names[_i]), &n);
	for (i = 1;; i++) {
		decoder_free(decoder);
		alloc_fail_at(i);
		decoder = decoder_new(&options);
		if (decoder == NULL)
			continue;
		if (decoder_read(decoder, bytes, n, &batch) == DECODE_GOOD)
			break;
		ck_assert_uint_eq(batch.n, 0);
		ck_assert_uint_eq(decoder_counts(decoder).events, 0);
		ck_assert_uint_eq(decoder_counts(decoder).refused, 1);
		alloc_reset();
		ck_assert_int_eq(decoder_read(decoder, bytes, n, &batch),
		    DECODE_GOOD);
		ck_assert_uint_gt(batch.n, 0);
	}
	ck_assert_uint_gt(i, 3);
	free(bytes);
}
END_TEST

Suite *suite_decode(void);

Suite *
suite_decode(void)
{
	Suite *s = suite_create("decode");
	TCase *t = tcase_create("decode");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, v1_arrays);
	tcase_add_test(t, v2_arrays_of_later_releases);
	tcase_add_test(t, v3_maps);
	tcase_add_test(t, v4_wide_hashes);
	tcase_add_test(t, v5_a_sliding_group_is_sparse);
	tcase_add_test(t, windows_that_slide);
	tcase_add_test(t, v6_signed_hashes);
	tcase_add_test(t, v7_salt_in_the_host);
	tcase_add_test(t, v8_metadata_where_others_have_an_adapter);
	tcase_add_test(t, v9_windows_of_two);
	tcase_add_test(t, v10_without_tokens);
	tcase_add_test(t, v11_a_batch_as_map);
	tcase_add_test(t, v12_mooncake);
	tcase_add_test(t, v13_dynamo);
	tcase_add_test(t, v14_envelope_and_frame);
	tcase_add_test(t, numbers_of_envelopes);
	tcase_add_test(t, vectors_are_the_shared_ones);
	tcase_add_test(t, a_time_that_is_none);
	tcase_add_test(t, a_number_for_an_adapter);
	tcase_add_test(t, extra_keys_of_adapter_and_salt);
	tcase_add_loop_test(t, contents_end_before_an_image, 0, 3);
	tcase_add_test(t, a_text_after_a_parent_is_no_salt);
	tcase_add_test(t, maps_of_later_releases);
	tcase_add_test(t, too_few_tokens_are_none);
	tcase_add_test(t, a_state_is_a_window_of_1);
	tcase_add_test(t, a_dropped_event_leaves_nothing);
	tcase_add_test(t, group_0_until_one_is_learnt_to_be_full);
	tcase_add_test(t, the_first_of_two_full_groups);
	tcase_add_test(t, of_two_full_groups_the_one_of_the_size);
	tcase_add_test(t, tiers_that_others_share);
	tcase_add_test(t, a_tier_with_a_zero_inside);
	tcase_add_loop_test(t, another_block_size, 2, 3);
	tcase_add_loop_test(t, another_block_size, 4, 5);
	tcase_add_loop_test(t, another_block_size, 0, 1);
	tcase_add_test(t, a_bad_event_does_not_cost_the_others);
	tcase_add_test(t, windows_that_do_not_overlap);
	tcase_add_test(t, an_event_above_its_bound);
	tcase_add_loop_test(t, cut_messages, 0, 7);
	tcase_add_test(t, no_batches);
	tcase_add_test(t, counts_beyond_the_bytes);
	tcase_add_test(t, too_deep);
	tcase_add_test(t, too_large);
	tcase_add_test(t, trt_stored_moved_removed);
	tcase_add_test(t, trt_blocks_that_are_no_list);
	tcase_add_test(t, trt_only_the_largest_window);
	tcase_add_test(t, trt_windows_that_slide);
	tcase_add_test(t, trt_window_told);
	tcase_add_test(t, trt_partial_blocks);
	tcase_add_test(t, trt_the_size_of_a_whole_block);
	tcase_add_test(t, trt_removals_of_partial_blocks);
	tcase_add_test(t, trt_no_memory);
	tcase_add_test(t, trt_a_larger_block);
	tcase_add_test(t, trt_other_contents);
	tcase_add_test(t, trt_hashes_in_hex);
	tcase_add_test(t, trt_gaps_and_restarts);
	tcase_add_test(t, trt_bad_events);
	tcase_add_test(t, trt_no_messages);
	tcase_add_test(t, trt_too_many_objects);
	tcase_add_loop_test(t, no_memory, 0, 3);
	suite_add_tcase(s, t);
	return s;
}
