/* SPDX-License-Identifier: BSD-2-Clause */
/* test_kept_state.c - ids of state that an engine keeps, and where it is. */
#include "life_bed.h"

#include "answer.h"
#include "kept_state.h"

static struct life b;
static struct kept_state s;
static const struct kept_text none, tenant = { "t", 1 };

static void
setup(void)
{
	life_begin(&b);
	memset(&s, 0, sizeof(s));
}

static void
teardown(void)
{
	life_end(&b);
}

static uint64_t
key_of(enum session_kind kind, const char *id)
{
	return session_key(b.k, "t", 1, kind, id, strlen(id));
}

/* ---------------------------------------------------------------- names --- */

static const struct {
	const char *path;
	enum endpoint endpoint;
	bool post, deletes;
	unsigned binds;
	const char *id;      /* or NULL */
	bool ends;
} paths[] = {
	{ "/v1/responses", ENDPOINT_RESPONSES, true, false, SESSION_RESPONSE,
	    NULL, false },
	{ "/v1/responses/r1", ENDPOINT_OTHER, false, false, 0, "r1", false },
	{ "/v1/responses/r1", ENDPOINT_OTHER, false, true, 0, "r1", true },
	{ "/v1/responses/r1/input_items", ENDPOINT_OTHER, false, true, 0, "r1",
	    false },
	{ "/v1/conversations", ENDPOINT_OTHER, true, false,
	    SESSION_CONVERSATION, NULL, false },
	{ "/v1/conversations/c1", ENDPOINT_OTHER, false, true, 0, "c1", true },
	{ "/v1/conversations/c1/items/i", ENDPOINT_OTHER, false, true, 0, "c1",
	    false },
	{ "/v1/models", ENDPOINT_OTHER, false, false, 0, NULL, false }
};
enum { PATHS_ALL = sizeof(paths) / sizeof(paths[0]) };

START_TEST(each_path)
{
	struct session_path of;

	kept_path(&s, paths[_i].endpoint, paths[_i].path,
	    strlen(paths[_i].path), paths[_i].post, paths[_i].deletes, &of);
	ck_assert_uint_eq(s.binds, paths[_i].binds);
	ck_assert_int_eq(s.ends, paths[_i].ends);
	ck_assert_uint_eq(of.length, paths[_i].id == NULL ? 0 :
	    strlen(paths[_i].id));
	if (paths[_i].id != NULL)
		ck_assert(memcmp(of.id, paths[_i].id, of.length) == 0);
}
END_TEST

START_TEST(ids_of_a_body)
{
	const struct kept_text previous = { "r1", 2 }, talk = { "c1", 2 };
	const struct session_path in_path = { SESSION_CONVERSATION, "c2", 2 };
	const struct session_path no_path = { .length = 0 };

	kept_digest(&s, b.k, tenant, &no_path, previous, talk);
	ck_assert_uint_eq(s.state, 0);
	s.binds = SESSION_RESPONSE;
	kept_digest(&s, b.k, tenant, &no_path, previous, talk);
	ck_assert_uint_eq(s.state, key_of(SESSION_RESPONSE, "r1"));
	kept_digest(&s, b.k, tenant, &no_path, none, talk);
	ck_assert_uint_eq(s.state, key_of(SESSION_CONVERSATION, "c1"));
	kept_digest(&s, b.k, tenant, &in_path, previous, talk);
	ck_assert_uint_eq(s.state, key_of(SESSION_CONVERSATION, "c2"));
	/* No tenant reaches the state of another. */
	kept_digest(&s, b.k, none, &in_path, previous, talk);
	ck_assert_uint_ne(s.state, key_of(SESSION_CONVERSATION, "c2"));
}
END_TEST

/* --------------------------------------------------------------- choice --- */

static const struct {
	int error;
	bool there, usable;
	enum reason reason;
	uint32_t affinity;
} verdicts[] = {
	{ KVR_OK, true, true, REASON_AFFINITY, KVR_AFFINITY_HIT },
	{ KVR_OK, true, false, REASON_STATE_BUSY, KVR_AFFINITY_NONE },
	{ KVR_OK, false, false, REASON_STATE_LOST, KVR_AFFINITY_MOVED },
	{ KVR_EWORKER, false, false, REASON_STATE_LOST, KVR_AFFINITY_GONE },
	{ KVR_EUNBOUND, false, false, REASON_COST, KVR_AFFINITY_NEW },
	{ KVR_EBUSY, true, true, REASON_STATE_BUSY, KVR_AFFINITY_NONE }
};
enum { VERDICTS = sizeof(verdicts) / sizeof(verdicts[0]) };

START_TEST(each_verdict)
{
	uint32_t affinity = KVR_AFFINITY_NONE;

	ck_assert_int_eq(kept_verdict(verdicts[_i].error, verdicts[_i].there,
	    verdicts[_i].usable, &affinity), verdicts[_i].reason);
	ck_assert_uint_eq(affinity, verdicts[_i].affinity);
}
END_TEST

START_TEST(outcomes_are_counted)
{
	kept_count(&b.shared, KVR_AFFINITY_NONE, true);
	kept_count(&b.shared, KVR_AFFINITY_HIT, true);
	kept_count(&b.shared, KVR_AFFINITY_NEW, true);
	kept_count(&b.shared, KVR_AFFINITY_GONE, true);
	kept_count(&b.shared, KVR_AFFINITY_MOVED, false);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY_GRAY], 0);
	kept_count(&b.shared, KVR_AFFINITY_MOVED, true);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY_NEW], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY_GONE], 1);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY_MOVED], 2);
	ck_assert_uint_eq(b.shared.counts[COUNT_AFFINITY_GRAY], 1);
}
END_TEST

/* -------------------------------------------------------------- binding --- */

static struct answer *
answer_of(const char *json)
{
	struct answer *a = answer_new();

	ck_assert_ptr_nonnull(a);
	answer_begin(a, ANSWER_JSON, false);
	answer_data(a, json, strlen(json));
	return a;
}

START_TEST(each_id_of_an_answer_is_given_once)
{
	struct answer *a = answer_of("{\"id\":\"r1\",\"conversation\":{\"id\":"
	    "\"c1\"}}");

	s.binds = SESSION_RESPONSE;
	ck_assert_uint_eq(kept_next(&s, a, false, b.k, tenant),
	    key_of(SESSION_RESPONSE, "r1"));
	ck_assert_uint_eq(kept_next(&s, a, false, b.k, tenant),
	    key_of(SESSION_CONVERSATION, "c1"));
	ck_assert_uint_eq(kept_next(&s, a, false, b.k, tenant), 0);
	/* An answer that is not stored has a conversation alone. */
	s.bound = 0;
	ck_assert_uint_eq(kept_next(&s, a, true, b.k, tenant),
	    key_of(SESSION_CONVERSATION, "c1"));
	s.bound = s.binds = 0;
	ck_assert_uint_eq(kept_next(&s, a, false, b.k, tenant), 0);
	answer_free(a);
}
END_TEST

START_TEST(a_binding_is_made_and_ended)
{
	const uint64_t digest = key_of(SESSION_RESPONSE, "r1");
	uint64_t worker = 0;

	ck_assert(!kept_bind(&b.writes, 0, b.worker[0], 1, false, LIFE_NOW));
	ck_assert(!kept_bind(&b.writes, digest, 0, 1, false, LIFE_NOW));
	ck_assert(!kept_bind(&b.writes, digest, b.worker[0], 0, false,
	    LIFE_NOW));
	/* One that was never bound need not end. */
	ck_assert(!kept_bind(&b.writes, digest, b.worker[0], LIFE_NOW, true,
	    LIFE_NOW));
	ck_assert(kept_bind(&b.writes, digest, b.worker[0], LIFE_NOW, false,
	    LIFE_NOW));
	ck_assert_int_eq(kvr_affinity_find(b.k, digest, LIFE_NOW, &worker),
	    KVR_OK);
	ck_assert_uint_eq(worker, b.worker[0]);
	ck_assert(kept_bind(&b.writes, digest, b.worker[0], LIFE_NOW, true,
	    LIFE_NOW));
	ck_assert_int_eq(kvr_affinity_find(b.k, digest, LIFE_NOW + 2000000,
	    &worker), KVR_EUNBOUND);
}
END_TEST

Suite *suite_kept_state(void);

Suite *
suite_kept_state(void)
{
	Suite *suite = suite_create("kept_state");
	TCase *t = tcase_create("kept_state");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, each_path, 0, PATHS_ALL);
	tcase_add_test(t, ids_of_a_body);
	tcase_add_loop_test(t, each_verdict, 0, VERDICTS);
	tcase_add_test(t, outcomes_are_counted);
	tcase_add_test(t, each_id_of_an_answer_is_given_once);
	tcase_add_test(t, a_binding_is_made_and_ended);
	suite_add_tcase(suite, t);
	return suite;
}
