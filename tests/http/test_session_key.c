/* SPDX-License-Identifier: BSD-2-Clause */
/* test_session_key.c - keys of sessions, and ids in paths. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "session_key.h"

static struct kvr *
region(unsigned char secret)
{
	struct kvr_options o;
	struct kvr *k;

	ck_assert_int_eq(kvr_options_init(&o, sizeof(o)), KVR_OK);
	o.region_bytes = 1 << 20;
	o.max_workers = 4;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, secret, KVR_SECRET_MIN);
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	return k;
}

static uint64_t
key(const struct kvr *k, const char *tenant, enum session_kind kind,
    const char *id)
{
	return session_key(k, tenant, strlen(tenant), kind, id, strlen(id));
}

/* Tenants, kinds and ids differ, however they are divided. */
START_TEST(keys_differ)
{
	static const struct {
		const char *tenant;
		enum session_kind kind;
		const char *id;
	} of[] = { { "", SESSION_KEY, "a" }, { "t", SESSION_KEY, "a" },
	    { "", SESSION_RESPONSE, "a" }, { "", SESSION_CONVERSATION, "a" },
	    { "", SESSION_KEY, "ra" }, { "", SESSION_KEY, "sa" },
	    { "r", SESSION_KEY, "a" }, { "", SESSION_RESPONSE, "sa" },
	    { "s", SESSION_RESPONSE, "a" }, { "", SESSION_KEY, "b" } };
	enum { N = sizeof(of) / sizeof(*of) };
	struct kvr *one = region(1), *same = region(1), *other = region(2);
	uint64_t keys[N];
	size_t i, j;

	for (i = 0; i < N; i++) {
		keys[i] = key(one, of[i].tenant, of[i].kind, of[i].id);
		ck_assert_uint_ne(keys[i], 0);
		for (j = 0; j < i; j++)
			ck_assert_uint_ne(keys[i], keys[j]);
		ck_assert_uint_eq(keys[i], key(same, of[i].tenant, of[i].kind,
		    of[i].id));
		ck_assert_uint_ne(keys[i], key(other, of[i].tenant,
		    of[i].kind, of[i].id));
	}
	kvr_free(one);
	kvr_free(same);
	kvr_free(other);
}
END_TEST

START_TEST(ids_that_are_none)
{
	char id[SESSION_KEY_MAX + 1];
	struct kvr *k = region(1);

	memset(id, 'x', sizeof(id));
	ck_assert_uint_eq(session_key(k, "", 0, SESSION_KEY, id, 0), 0);
	ck_assert_uint_ne(session_key(k, "", 0, SESSION_KEY, id,
	    SESSION_KEY_MAX), 0);
	ck_assert_uint_eq(session_key(k, "", 0, SESSION_KEY, id,
	    SESSION_KEY_MAX + 1), 0);
	ck_assert_uint_ne(session_key(k, NULL, 0, SESSION_KEY, id, 1), 0);
	ck_assert_uint_eq(session_key(k, NULL, 1, SESSION_KEY, id, 1), 0);
	kvr_free(k);
}
END_TEST

enum { GET, POST };
static const struct {
	int method;
	const char *path;
	int kind; /* 0: none */
	const char *id;
} paths[] = {
	{ GET, "/v1/responses/resp_1", SESSION_RESPONSE, "resp_1" },
	{ POST, "/v1/responses/resp_1/cancel", SESSION_RESPONSE, "resp_1" },
	{ GET, "/v1/responses/resp_1/input_items", SESSION_RESPONSE, "resp_1" },
	{ GET, "/a/openai/responses/resp_1", SESSION_RESPONSE, "resp_1" },
	{ GET, "/v1/responses/cancel", SESSION_RESPONSE, "cancel" },
	{ GET, "/v1/responses/v1", SESSION_RESPONSE, "v1" },
	{ POST, "/v1/responses/responses/cancel",
	    SESSION_RESPONSE, "responses" },
	{ POST, "/t/v1/conversations", SESSION_CONVERSATION, "" },
	{ GET, "/v1/conversations/c", SESSION_CONVERSATION, "c" },
	{ GET, "/v1/conversations/items", SESSION_CONVERSATION, "items" },
	{ GET, "/v1/conversations/c/items", SESSION_CONVERSATION, "c" },
	{ GET, "/openai/conversations/c/items/msg_1",
	    SESSION_CONVERSATION, "c" },
	{ GET, "/v1/conversations/items/items", SESSION_CONVERSATION, "items" },
	{ GET, "/v1/responses", 0, "" },
	{ GET, "/v1/responses/", 0, "" },
	{ GET, "/v1/responses//cancel", 0, "" },
	{ GET, "/v1/responses/resp_1/", 0, "" },
	{ GET, "/v1/responses/resp_1/other", 0, "" },
	{ GET, "/v2/responses/resp_1", 0, "" },
	{ GET, "/responses/resp_1", 0, "" },
	{ GET, "v1/responses/resp_1", 0, "" },
	{ GET, "/v1/conversations/", 0, "" },
	{ GET, "/v1/conversations//items", 0, "" },
	{ GET, "/v1/conversations/c/x", 0, "" },
	{ GET, "/v1/conversations/c/items/m/x", 0, "" },
	{ GET, "/conversations", 0, "" },
	{ GET, "/v1/threads/t/conversations", 0, "" },
	{ GET, "/v1/chat/completions", 0, "" },
	/* These operations keep no answer. */
	{ POST, "/v1/responses/compact", 0, "" },
	{ POST, "/v1/responses/input_tokens", 0, "" },
	{ POST, "/v1/responses/resp_1/input_items", 0, "" },
	{ GET, "/v1/responses/resp_1/cancel", 0, "" },
	{ POST, "/v1/conversations/c", SESSION_CONVERSATION, "c" },
	{ POST, "/v1/conversations/c/items", SESSION_CONVERSATION, "c" },
	{ GET, "/v1/conversations", 0, "" },
	{ GET, "/", 0, "" },
	{ GET, "", 0, "" }
};
enum { PATHS = sizeof(paths) / sizeof(*paths) };

/* The path stands in memory of just its length. */
START_TEST(ids_in_paths)
{
	size_t n = strlen(paths[_i].path);
	char *path = malloc(n + (n == 0));
	struct session_path found;
	bool is;

	ck_assert_ptr_nonnull(path);
	memcpy(path, paths[_i].path, n);
	is = session_path(path, n, paths[_i].method == POST, &found);
	ck_assert_int_eq(is, paths[_i].kind != 0);
	if (is) {
		ck_assert_int_eq((int)found.kind, paths[_i].kind);
		ck_assert_uint_eq(found.length, strlen(paths[_i].id));
		ck_assert_mem_eq(found.length == 0 ? path : found.id,
		    found.length == 0 ? path : paths[_i].id, found.length);
	}
	free(path);
}
END_TEST

Suite *suite_session_key(void);

Suite *
suite_session_key(void)
{
	Suite *s = suite_create("session_key");
	TCase *c = tcase_create("session_key");

	tcase_add_test(c, keys_differ);
	tcase_add_test(c, ids_that_are_none);
	tcase_add_loop_test(c, ids_in_paths, 0, PATHS);
	suite_add_tcase(s, c);
	return s;
}
