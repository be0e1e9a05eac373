/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_parse.c - options, policies and facts as text: each name, its limits,
 * and the place and the reason of each error.
 */
#include "kvroute.h"
#include "kvroute_events.h"

#include "test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { OPTIONS, POLICY, WORKER };

/* All three structs; a text is read into one of them. */
struct all {
	struct kvr_options options;
	struct kvr_policy policy;
	struct kvr_worker worker;
};

static struct all
defaults(void)
{
	struct all a;

	ck_assert_int_eq(kvr_options_init(&a.options, sizeof(a.options)),
	    KVR_OK);
	ck_assert_int_eq(kvr_policy_init(&a.policy, sizeof(a.policy)), KVR_OK);
	ck_assert_int_eq(kvr_worker_init(&a.worker, sizeof(a.worker)), KVR_OK);
	return a;
}

/* The text ends where memory does. */
static int
read_text(enum kind kind, struct all *a, const char *text, size_t length,
    size_t *offset, const char **why)
{
	char *copy = malloc(length + 1);
	int error;

	ck_assert_ptr_nonnull(copy);
	memcpy(copy + 1, text, length);
	error = kind == OPTIONS ? kvr_options_parse(&a->options, copy + 1,
	    length, offset, why) : kind == POLICY ?
	    kvr_policy_parse(&a->policy, copy + 1, length, offset, why) :
	    kvr_worker_parse(&a->worker, copy + 1, length, offset, why);
	free(copy);
	return error;
}

static void
ck_read(enum kind kind, struct all *a, const char *text)
{
	size_t offset = 7777;
	const char *why = "untouched";
	int error = read_text(kind, a, text, strlen(text), &offset, &why);

	ck_assert_msg(error == KVR_OK, "\"%s\": %s at %zu: %s", text,
	    kvr_errname(error), offset, why);
	ck_assert_uint_eq(offset, 7777);
	ck_assert_str_eq(why, "untouched");
}

/* Nothing changes; `at` begins where the text has the word `bad`. */
static void
ck_refused(enum kind kind, const char *text, int error, const char *bad,
    const char *reason)
{
	struct all a = defaults(), before = a;
	size_t offset = 7777;
	const char *why = NULL;

	ck_assert_int_eq(read_text(kind, &a, text, strlen(text), &offset,
	    &why), error);
	ck_assert_msg(offset <= strlen(text) &&
	    strncmp(text + offset, bad, strlen(bad)) == 0,
	    "\"%s\": at %zu", text, offset);
	ck_assert_msg(strstr(why, reason) != NULL, "\"%s\": %s", text, why);
	ck_assert_mem_eq(&a, &before, sizeof(a));
	ck_assert_int_eq(read_text(kind, &a, text, strlen(text), NULL, NULL),
	    error);
}

/* ------------------------------------------------------------- options --- */

START_TEST(every_option)
{
	struct all a = defaults(), want = a;
	struct kvr_options *o = &want.options;

	ck_read(OPTIONS, &a, "size=64m block=512 workers=32 ttl=90s\n"
	    "\taffinity=1000 tenants=8 journal=4m unit=bytes\r\n");
	o->region_bytes = 64 << 20;
	o->block_size = 512;
	o->max_workers = 32;
	o->ttl_ns = INT64_C(90000000000);
	o->affinity_entries = 1000;
	o->tenants = 8;
	o->journal_bytes = 4 << 20;
	o->unit = KVR_UNIT_BYTES;
	ck_assert_mem_eq(&a, &want, sizeof(a));
	/* those that are not named stay as they are */
	ck_read(OPTIONS, &a, "unit=tokens events=268435456");
	o->unit = KVR_UNIT_TOKENS;
	o->event_blocks = KVR_EVENT_BLOCKS_MAX;
	ck_assert_mem_eq(&a, &want, sizeof(a));
}
END_TEST

/* Blanks alone, or nothing, or no text at all. */
START_TEST(nothing_named)
{
	static const char *const texts[] = { "", " ", "\n\t \r\n\v\f" };
	struct all a = defaults(), before = a;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_read(OPTIONS, &a, texts[i]);
		ck_read(POLICY, &a, texts[i]);
		ck_read(WORKER, &a, texts[i]);
	}
	ck_assert_int_eq(kvr_options_parse(&a.options, NULL, 0, NULL, NULL),
	    KVR_OK);
	ck_assert_int_eq(kvr_policy_parse(&a.policy, NULL, 0, NULL, NULL),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_parse(&a.worker, NULL, 0, NULL, NULL),
	    KVR_OK);
	ck_assert_mem_eq(&a, &before, sizeof(a));
}
END_TEST

static const struct {
	const char *text;
	int64_t ns;
} times[] = {
	{ "ttl=1ms", 1000000 },
	{ "ttl=2", INT64_C(2000000000) },
	{ "ttl=2s", INT64_C(2000000000) },
	{ "ttl=0h2s", INT64_C(2000000000) },
	{ "ttl=1m30", INT64_C(90000000000) },
	{ "ttl=1h30m", INT64_C(5400000000000) },
	{ "ttl=1d1h1m1s1ms", INT64_C(90061001000000) },
	{ "ttl=1w", INT64_C(604800000000000) },
	{ "ttl=1M", INT64_C(2592000000000000) },
	{ "ttl=1y", INT64_C(31536000000000000) },
	{ "ttl=365d", INT64_C(31536000000000000) },
	{ "ttl=endless", KVR_TTL_ENDLESS }
};

START_TEST(times_taken)
{
	struct all a = defaults();

	ck_read(OPTIONS, &a, times[_i].text);
	ck_assert_int_eq(a.options.ttl_ns, times[_i].ns);
}
END_TEST

static const struct {
	const char *text;
	uint64_t bytes;
} sizes[] = {
	{ "size=1", 1 }, { "size=007", 7 }, { "size=3k", 3 << 10 },
	{ "size=3K", 3 << 10 }, { "size=3m", 3 << 20 }, { "size=3M", 3 << 20 },
	{ "size=3g", UINT64_C(3) << 30 }, { "size=1048576G", UINT64_C(1) << 50 }
};

START_TEST(sizes_taken)
{
	struct all a = defaults();

	ck_read(OPTIONS, &a, sizes[_i].text);
	ck_assert_uint_eq(a.options.region_bytes, sizes[_i].bytes);
}
END_TEST

/* -------------------------------------------------------------- worker --- */

START_TEST(every_fact)
{
	struct all a = defaults(), want = a;
	struct kvr_worker *w = &want.worker;

	ck_read(WORKER, &a, "capacity=400000 prefill_rate=17000.5 "
	    "block_tokens=16 eviction=leaf window=1024 window_mode=dual "
	    "window_layers=5.25 window_interval=2048 window_capacity=50000");
	w->capacity_tokens = 400000;
	w->prefill_rate = 17000.5;
	w->block_tokens = 16;
	w->eviction = KVR_EVICT_LEAF;
	w->window_tokens = 1024;
	w->window_mode = KVR_WINDOW_DUAL;
	w->window_layers = 525;
	w->window_interval = 2048;
	w->window_capacity = 50000;
	ck_assert_mem_eq(&a, &want, sizeof(a));
	ck_read(WORKER, &a, "state=down role=decode retain=events weight=0.25 "
	    "max_batched=8192 rank=4294967295 eviction=released");
	w->state = KVR_STATE_DOWN;
	w->role = KVR_ROLE_DECODE;
	w->retain = KVR_RETAIN_EVENTS;
	w->weight = 0.25;
	w->max_batched_tokens = 8192;
	w->rank = UINT32_MAX;
	w->eviction = KVR_EVICT_RELEASED;
	ck_assert_mem_eq(&a, &want, sizeof(a));
}
END_TEST

/* The place of a word is its value. */
START_TEST(words_taken)
{
	static const char *const states[] = { "up", "drain", "down" },
	    *const roles[] = { "both", "prefill", "decode" },
	    *const retains[] = { "auto", "ttl", "capacity", "feedback",
		"events" },
	    *const windows[] = { "full", "boundary", "dense", "dual" };
	struct all a = defaults();
	char text[64];
	uint32_t i;

	for (i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "state=%s role=%s retain=%s "
		    "window_mode=%s", states[i % 3], roles[i % 3], retains[i],
		    windows[i % 4]);
		ck_read(WORKER, &a, text);
		ck_assert_uint_eq(a.worker.state, i % 3);
		ck_assert_uint_eq(a.worker.role, i % 3);
		ck_assert_uint_eq(a.worker.retain, i);
		ck_assert_uint_eq(a.worker.window_mode, i % 4);
	}
}
END_TEST

/* -------------------------------------------------------------- policy --- */

START_TEST(every_weight)
{
	struct all a = defaults(), want = a;
	struct kvr_policy *p = &want.policy;

	ck_read(POLICY, &a, " dynamo ");
	p->cost = KVR_COST_DYNAMO;
	ck_assert_mem_eq(&a, &want, sizeof(a));
	ck_read(POLICY, &a, "dynamo[credit=2,decay=0.5,prefill=4,request=64,"
	    "temperature=0.1,overload_prefill_tokens=100000,"
	    "overload_prefill_fraction=1.5,overload_blocks_fraction=0.9,"
	    "observed=1m]");
	p->overlap_credit = 2;
	p->overlap_decay = 0.5;
	p->prefill_scale = 4;
	p->request_weight = 64;
	p->temperature = 0.1;
	p->overload_prefill_tokens = 100000;
	p->overload_prefill_fraction = 1.5;
	p->overload_blocks_fraction = 0.9;
	p->observed_seconds = 60;
	ck_assert_mem_eq(&a, &want, sizeof(a));
	ck_read(POLICY, &a, "\tbalanced[bound=3,overload_blocks_fraction=off,"
	    "observed=1ms]\n");
	p->cost = KVR_COST_BALANCED;
	p->balanced_bound = 3;
	p->overload_blocks_fraction = -1;
	p->observed_seconds = 0.001;
	ck_assert_mem_eq(&a, &want, sizeof(a));
}
END_TEST

/* ------------------------------------------------------------- refused --- */

static const struct {
	enum kind kind;
	const char *text;
	int error;
	const char *bad, *reason;
} refused[] = {
	{ OPTIONS, "block=16 colour=red", KVR_EUNKNOWN, "colour=",
	    "the names are size, unit, block" },
	{ OPTIONS, "block=16 block", KVR_EUNKNOWN, "block", "the names are" },
	{ OPTIONS, "=1", KVR_EUNKNOWN, "=1", "the names are" },
	{ OPTIONS, "Block=16", KVR_EUNKNOWN, "Block", "the names are" },
	{ OPTIONS, "block =16", KVR_EUNKNOWN, "block =16", "the names are" },
	{ OPTIONS, "capacity=16", KVR_EUNKNOWN, "capacity", "the names are" },
	{ OPTIONS, "block=16 ttl=1m block=16", KVR_EINVAL, "block=16",
	    "it is named twice" },
	{ OPTIONS, "block=", KVR_EINVAL, "block=",
	    "it is the units of a block, from 1 to 262144" },
	{ OPTIONS, "block=0", KVR_EINVAL, "block=0", "from 1 to" },
	{ OPTIONS, "block=262145", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block=4294967312", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block=18446744073709551632", KVR_EINVAL, "block=", "" },
	{ OPTIONS, "block=1k", KVR_EINVAL, "block=1k", "from 1 to" },
	{ OPTIONS, "block=+1", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block=-1", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block=0x10", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block=1.0", KVR_EINVAL, "block=", "from 1 to" },
	{ OPTIONS, "block==1", KVR_EINVAL, "block==", "from 1 to" },
	{ OPTIONS, "workers=4097", KVR_EINVAL, "workers", "from 1 to 4096" },
	{ OPTIONS, "affinity=16777217", KVR_EINVAL, "affinity",
	    "from 0 to 16777216" },
	{ OPTIONS, "tenants=0", KVR_EINVAL, "tenants", "from 1 to 1024" },
	{ OPTIONS, "unit=words", KVR_EINVAL, "unit", ": tokens or bytes" },
	{ OPTIONS, "unit=or", KVR_EINVAL, "unit", ": tokens or bytes" },
	{ OPTIONS, "unit=", KVR_EINVAL, "unit", ": tokens or bytes" },
	{ OPTIONS, "unit=token", KVR_EINVAL, "unit", ": tokens or bytes" },
	{ OPTIONS, "size=0", KVR_EINVAL, "size", "from 1 to 1048576g" },
	{ OPTIONS, "size=1048577g", KVR_EINVAL, "size", "from 1 to 1048576g" },
	{ OPTIONS, "size=k", KVR_EINVAL, "size", "from 1" },
	{ OPTIONS, "size=1t", KVR_EINVAL, "size", "from 1" },
	{ OPTIONS, "size=1kk", KVR_EINVAL, "size", "from 1" },
	{ OPTIONS, "size=18014398509481985k", KVR_EINVAL, "size", "from 1" },
	{ OPTIONS, "journal=3m", KVR_EINVAL, "journal", "a power of two" },
	{ OPTIONS, "journal=32k", KVR_EINVAL, "journal", "from 64k to 1g" },
	{ OPTIONS, "journal=0", KVR_EINVAL, "journal", "from 64k to 1g" },
	{ OPTIONS, "ttl=0", KVR_EINVAL, "ttl", "from 1ms to 365d, or endless" },
	{ OPTIONS, "ttl=366d", KVR_EINVAL, "ttl", "from 1ms to 365d" },
	{ OPTIONS, "ttl=-1", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=m", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=1m1h", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=1s1s", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=1s1", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=1.5s", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=1us", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=endless1", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=600000000000y", KVR_EINVAL, "ttl", "from 1ms" },
	{ OPTIONS, "ttl=584y213d23h34m33s999999999999ms", KVR_EINVAL, "ttl",
	    "from 1ms" },
	{ WORKER, "ranks=4", KVR_EUNKNOWN, "ranks=4",
	    "the names are capacity" },
	{ WORKER, "state=draining", KVR_EINVAL, "state",
	    ": up or drain or down" },
	{ WORKER, "capacity=0", KVR_EINVAL, "capacity",
	    "it is the tokens of KV cache, from 1" },
	{ WORKER, "capacity=auto", KVR_EINVAL, "capacity", "from 1" },
	{ WORKER, "window_layers=100.01", KVR_EINVAL, "window_layers",
	    "from 0 to 100" },
	{ WORKER, "window_layers=1.001", KVR_EINVAL, "window_layers", "" },
	{ WORKER, "window_layers=1.", KVR_EINVAL, "window_layers", "" },
	{ WORKER, "window_layers=.5", KVR_EINVAL, "window_layers", "" },
	{ WORKER, "weight=0", KVR_EINVAL, "weight", "from 0.000001 to" },
	{ WORKER, "weight=0.0000001", KVR_EINVAL, "weight", "from 0.000001" },
	{ WORKER, "weight=nan", KVR_EINVAL, "weight", "from 0.000001 to" },
	{ WORKER, "weight=1e3", KVR_EINVAL, "weight", "from 0.000001 to" },
	{ WORKER, "weight=1.2.3", KVR_EINVAL, "weight", "from 0.000001 to" },
	{ WORKER, "prefill_rate=99999999999999999", KVR_EINVAL,
	    "prefill_rate", "from 1 to" },
	{ WORKER, "rank=4294967296", KVR_EINVAL, "rank", "from 0" },
	{ POLICY, "lmetric", KVR_EUNKNOWN, "lmetric",
	    "the policies are balanced and dynamo" },
	{ POLICY, " [credit=1]", KVR_EUNKNOWN, "[credit", "the policies" },
	{ POLICY, "cost=dynamo", KVR_EUNKNOWN, "cost=", "the policies" },
	{ POLICY, "dynamo balanced", KVR_EINVAL, "balanced",
	    "it follows a policy" },
	{ POLICY, "dynamo[credit=1", KVR_EINVAL, "[credit", "no ] at its end" },
	{ POLICY, "dynamo[credit=1]]", KVR_EINVAL, "[credit", "no ] at" },
	{ POLICY, "dynamo[credit=1 ,decay=2]", KVR_EINVAL, "[credit", "no ]" },
	{ POLICY, "dynamo[]", KVR_EUNKNOWN, "]", "the names are credit" },
	{ POLICY, "dynamo[credit=1,]", KVR_EUNKNOWN, "]", "the names are" },
	{ POLICY, "dynamo[,credit=1]", KVR_EUNKNOWN, ",credit", "the names" },
	{ POLICY, "dynamo[credit=1,credit=1]", KVR_EINVAL, "credit=1]",
	    "it is named twice" },
	{ POLICY, "dynamo[bound=2]", KVR_EUNKNOWN, "bound=2]", "the names" },
	{ POLICY, "balanced[credit=2]", KVR_EUNKNOWN, "credit=2]",
	    "the names are bound" },
	{ POLICY, "balanced[observed=0]", KVR_EINVAL, "observed", "from 1ms" },
	{ POLICY, "dynamo[credit=1000000.5]", KVR_EINVAL, "credit", "from 0" },
	{ POLICY, "dynamo[overload_prefill_tokens=-1]", KVR_EINVAL,
	    "overload_prefill_tokens", ", or off" }
};

START_TEST(texts_refused)
{
	ck_refused(refused[_i].kind, refused[_i].text, refused[_i].error,
	    refused[_i].bad, refused[_i].reason);
}
END_TEST

/* A byte of this value in a name, in a value, and behind it. */
static void
try_byte(int byte)
{
	struct all a = defaults();
	char text[] = "block=16 ttl=1m";
	bool blank = byte == ' ' || (byte >= '\t' && byte <= '\r');
	bool digit = byte >= '0' && byte <= '9';
	size_t at;
	int error;

	for (at = 0; at < sizeof(text) - 1; at++) {
		const char had = text[at];

		text[at] = (char)byte;
		error = read_text(OPTIONS, &a, text, sizeof(text) - 1, NULL,
		    NULL);
		ck_assert(error == KVR_OK || error == KVR_EINVAL ||
		    error == KVR_EUNKNOWN);
		if (byte < ' ' && !blank)
			ck_assert_int_ne(error, KVR_OK);
		text[at] = had;
	}
	text[8] = (char)byte;
	error = read_text(OPTIONS, &a, text, 9, NULL, NULL);
	ck_assert_int_eq(error, blank || digit ? KVR_OK : KVR_EINVAL);
}

START_TEST(any_byte)
{
	int byte;

	for (byte = 0; byte < 256; byte++)
		try_byte(byte);
}
END_TEST

/* --------------------------------------------------------------- names --- */

/* Each name of the list that an unknown one is answered with is known. */
static void
ck_list(enum kind kind, const char *before, const char *after)
{
	struct all a = defaults();
	char text[128], name[64];
	const char *why = NULL;
	size_t offset, n, names = 0;

	snprintf(text, sizeof(text), "%snone=1%s", before, after);
	ck_assert_int_eq(read_text(kind, &a, text, strlen(text), &offset,
	    &why), KVR_EUNKNOWN);
	why += strlen("the names are ");
	for (; *why != '\0'; why += strspn(why, ", "), names++) {
		n = strcspn(why, ", ");
		snprintf(name, sizeof(name), "%.*s", (int)n, why);
		why += n;
		if (strncmp(why, " and ", 5) == 0)
			why += 5;
		snprintf(text, sizeof(text), "%s%s=%s", before, name, after);
		ck_assert_int_eq(read_text(kind, &a, text, strlen(text), NULL,
		    NULL), KVR_EINVAL);
	}
	ck_assert_uint_gt(names, 5);
}

START_TEST(lists_of_names)
{
	ck_list(OPTIONS, "", "");
	ck_list(WORKER, "", "");
	ck_list(POLICY, "dynamo[", "]");
	ck_list(POLICY, "balanced[", "]");
}
END_TEST

/* Each value that a text may have is valid in its struct. */
START_TEST(extremes_are_valid)
{
	struct all a = defaults();
	struct kvr *k;
	uint64_t id;

	ck_read(OPTIONS, &a, "size=4m unit=bytes block=262144 workers=1 "
	    "ttl=endless affinity=0 tenants=1024");
	ck_assert_int_eq(kvr_new(&a.options, &k), KVR_OK);
	ck_read(POLICY, &a, "dynamo[credit=1000000,decay=1000000,"
	    "prefill=1000000,request=1000000,temperature=1000000,"
	    "overload_prefill_tokens=1000000000000,observed=11d]");
	ck_assert_int_eq(kvr_policy_set(k, &a.policy), KVR_OK);
	ck_read(POLICY, &a, "balanced[bound=1000000,temperature=0,"
	    "observed=1ms]");
	ck_assert_int_eq(kvr_policy_set(k, &a.policy), KVR_OK);
	ck_read(WORKER, &a, "capacity=1000000000000 weight=0.000001 "
	    "prefill_rate=1000000000000 window=1073741824 window_mode=dual "
	    "window_layers=100 window_interval=1073741824 "
	    "window_capacity=1000000000000 block_tokens=1048576");
	ck_assert_int_eq(kvr_worker_add(k, "w", 1, &a.worker, &id), KVR_OK);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
}
END_TEST

/* ------------------------------------------------------------- structs --- */

/* A shorter struct lacks the name; the end of a longer one is kept. */
START_TEST(other_sizes)
{
	struct { struct kvr_options o; uint64_t more[4]; } newer;
	struct all a = defaults();
	const char *why = NULL;

	memset(&newer, 0, sizeof(newer));
	ck_assert_int_eq(kvr_options_init(&newer.o, sizeof(newer)), KVR_OK);
	ck_assert_int_eq(kvr_options_parse(&newer.o, "tenants=5", 9, NULL,
	    NULL), KVR_OK);
	ck_assert_uint_eq(newer.o.size, sizeof(newer));
	ck_assert_uint_eq(newer.o.tenants, 5);
	newer.more[3] = 1;
	ck_assert_int_eq(kvr_options_parse(&newer.o, "tenants=6", 9, NULL,
	    &why), KVR_ENEWER);
	ck_assert_str_eq(why, kvr_strerror(KVR_ENEWER));
	ck_assert_uint_eq(newer.o.tenants, 5);
	a.options.size = offsetof(struct kvr_options, tenants);
	ck_assert_int_eq(kvr_options_parse(&a.options, "tenants=5", 9, NULL,
	    NULL), KVR_EUNKNOWN);
	a.options.size = offsetof(struct kvr_options, tenants) + 4;
	ck_assert_int_eq(kvr_options_parse(&a.options, "tenants=5", 9, NULL,
	    NULL), KVR_OK);
	ck_assert_uint_eq(a.options.tenants, 5);
	a.policy.size = sizeof(size_t);
	ck_assert_int_eq(kvr_policy_parse(&a.policy, "dynamo", 6, NULL, NULL),
	    KVR_EUNKNOWN);
}
END_TEST

START_TEST(wrong_arguments)
{
	struct all a = defaults();
	size_t offset = 9;
	const char *why = NULL;

	ck_assert_int_eq(kvr_options_parse(NULL, "", 0, &offset, &why),
	    KVR_EINVAL);
	ck_assert_uint_eq(offset, 0);
	ck_assert_str_eq(why, kvr_strerror(KVR_EINVAL));
	ck_assert_int_eq(kvr_policy_parse(NULL, "", 0, NULL, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_parse(NULL, "", 0, NULL, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_worker_parse(&a.worker, NULL, 1, NULL, NULL),
	    KVR_EINVAL);
	a.worker.size = 1;
	ck_assert_int_eq(kvr_worker_parse(&a.worker, "", 0, NULL, NULL),
	    KVR_EINVAL);
}
END_TEST

Suite *suite_parse(void);

Suite *
suite_parse(void)
{
	Suite *s = suite_create("parse");
	TCase *t = tcase_create("text");

	tcase_add_test(t, every_option);
	tcase_add_test(t, nothing_named);
	tcase_add_loop_test(t, times_taken, 0,
	    sizeof(times) / sizeof(times[0]));
	tcase_add_loop_test(t, sizes_taken, 0,
	    sizeof(sizes) / sizeof(sizes[0]));
	tcase_add_test(t, every_fact);
	tcase_add_test(t, words_taken);
	tcase_add_test(t, every_weight);
	tcase_add_loop_test(t, texts_refused, 0,
	    sizeof(refused) / sizeof(refused[0]));
	tcase_add_test(t, any_byte);
	tcase_add_test(t, lists_of_names);
	tcase_add_test(t, extremes_are_valid);
	tcase_add_test(t, other_sizes);
	tcase_add_test(t, wrong_arguments);
	suite_add_tcase(s, t);
	return s;
}
