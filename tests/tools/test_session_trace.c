/* SPDX-License-Identifier: BSD-2-Clause */
/* test_session_trace.c - the reader of recorded sessions. */
#include "alloc.h"
#include "session_trace.h"
#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct session *
read_text(const char *text, char *error)
{
	FILE *f = tmpfile();
	struct session *s;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ne(fputs(text, f), EOF);
	rewind(f);
	s = session_read(f, "s", error);
	fclose(f);
	return s;
}

static struct session *
good(const char *text)
{
	char error[SESSION_ERROR_BYTES];
	struct session *s = read_text(text, error);

	ck_assert_msg(s != NULL, "%s", error);
	ck_assert_str_eq(error, "");
	return s;
}

/*
 * Blocks of 256, so two hash ids are an id. Prompts of 700, 1300 and 600
 * tokens; the second one contains the output of the first.
 */
static const char three[] =
"{\"id\": \"x\", \"block_size\": 256, \"tool_tokens\": 500,"
" \"system_tokens\": 100, \"requests\": ["
"{\"t\": 0, \"type\": \"s\", \"in\": 700, \"out\": 400, \"hash_ids\": [1, 2],"
"  \"think_time\": 0.5, \"api_time\": 2},"
"{\"t\": 9, \"type\": \"n\", \"in\": 1300, \"out\": 30,"
"  \"hash_ids\": [1, 2, 3, 4, 5]},"
"{\"t\": 15.5, \"type\": \"n\", \"in\": 600, \"out\": 0, \"hash_ids\": [1, 9],"
"  \"think_time\": 4}]}";

START_TEST(reads_requests)
{
	struct session *s = good(three);
	const struct session_entry *e = s->entries;
	const uint64_t *a = &s->ids[e[0].first_id], *b = &s->ids[e[1].first_id];

	ck_assert_uint_eq(s->n_talks, 1);
	ck_assert_uint_eq(s->requests, 3);
	ck_assert_uint_eq(s->talks[0].n, 3);
	ck_assert_uint_eq(e[0].input, 700);
	ck_assert_uint_eq(e[0].output, 400);
	ck_assert_int_eq(e[0].after_ns, 500000000);
	/* the entry has no think_time: 9 - (0 + 2) s */
	ck_assert_int_eq(e[1].after_ns, INT64_C(7000000000));
	ck_assert_int_eq(e[2].after_ns, INT64_C(4000000000));
	/* 1100 tokens are known: three ids, those of the next prompt. */
	ck_assert_uint_eq(e[0].known, 400);
	ck_assert_uint_eq(e[0].n_ids, 3);
	ck_assert_mem_eq(a, b, 3 * sizeof(*a));
	ck_assert_uint_eq(e[1].known, 0);
	ck_assert_uint_eq(e[1].n_ids, 3);
	ck_assert(a[0] != a[1] && a[1] != a[2] && a[0] != a[2]);
	/* 600 tokens of tools and system prompt: one complete block. */
	ck_assert_uint_eq(e[0].n_common, 1);
	ck_assert_uint_eq(e[1].n_common, 1);
	ck_assert_uint_eq(e[2].n_common, 0);
	session_free(s);
}
END_TEST

/* The next prompt must be longer by the output, and repeat every id. */
START_TEST(knows_outputs_by_the_next_prompt)
{
	static const struct {
		const char *next;
		uint64_t known;
	} cases[] = {
		{ "\"in\": 1074, \"out\": 1, \"hash_ids\": [7, 8]", 50 },
		{ "\"in\": 1073, \"out\": 1, \"hash_ids\": [7, 8]", 0 },
		{ "\"in\": 1074, \"out\": 1, \"hash_ids\": [7, 9]", 0 },
		{ "\"in\": 600, \"out\": 1, \"hash_ids\": [7]", 0 }
	};
	char text[400];
	struct session *s;

	snprintf(text, sizeof(text), "{\"block_size\": 512, \"requests\": ["
	    "{\"in\": 1024, \"out\": 50, \"hash_ids\": [7, 8]}, {%s}]}",
	    cases[_i].next);
	s = good(text);
	ck_assert_uint_eq(s->entries[0].known, cases[_i].known);
	session_free(s);
}
END_TEST

START_TEST(reads_agents)
{
	struct session *s = good("{\"requests\": ["
	    "{\"t\": 1, \"in\": 10, \"out\": 1, \"hash_ids\": [],"
	    " \"api_time\": 3},"
	    "{\"t\": 9, \"type\": \"subagent\", \"tool_tokens\": 5,"
	    " \"requests\": [{\"t\": 0, \"in\": 64, \"out\": 1,"
	    " \"hash_ids\": [4], \"think_time\": 0}]},"
	    "{\"t\": 11, \"type\": \"subagent\", \"requests\": ["
	    "  {\"t\": 2, \"type\": \"subagent\", \"requests\": []}]},"
	    "{\"t\": 12, \"in\": 20, \"out\": 1, \"hash_ids\": [],"
	    " \"think_time\": null}]}");

	ck_assert_uint_eq(s->n_talks, 4);
	ck_assert_uint_eq(s->requests, 3);
	ck_assert_uint_eq(s->n_entries, 6);
	ck_assert_uint_eq(s->entries[0].talk, 0);
	ck_assert_uint_eq(s->entries[1].talk, 1);
	ck_assert_uint_eq(s->entries[2].talk, 2);
	/* they follow the response of the request before them */
	ck_assert_int_eq(s->entries[1].after_ns, INT64_C(5000000000));
	ck_assert_int_eq(s->entries[2].after_ns, INT64_C(7000000000));
	ck_assert_int_eq(s->entries[3].after_ns, INT64_C(8000000000));
	ck_assert_uint_eq(s->talks[1].first, 4);
	ck_assert_uint_eq(s->talks[1].tool_tokens, 5);
	ck_assert_uint_eq(s->entries[4].input, 64);
	ck_assert_uint_eq(s->entries[5].talk, 3);
	ck_assert_uint_eq(s->talks[3].n, 0);
	session_free(s);
}
END_TEST

#define ONE(fields) "{\"requests\": [{" fields "}]}"

static const struct {
	const char *text;
	const char *error;
} bad[] = {
	{ "", "s: not JSON" },
	{ "[]", "s: not a JSON object" },
	{ "{} {}", "s: not JSON" },
	{ "{\"requests\": [", "s: not JSON: no complete object" },
	{ "{}", "s: requests is missing" },
	{ "{\"requests\": 1}", "s: requests is not an array" },
	{ "{\"requests\": []}", "s: no requests" },
	{ "{\"requests\": [1]}", "s: an element of requests is not an object" },
	{ "{\"block_size\": 48, \"requests\": []}",
	    "s: block_size does not divide 512" },
	{ "{\"block_size\": 0, \"requests\": []}",
	    "s: block_size does not divide 512" },
	{ "{\"tool_tokens\": -1, \"requests\": []}",
	    "s: tool_tokens is not from 0 to" },
	{ ONE("\"out\": 1, \"hash_ids\": []"), "s: in is missing" },
	{ ONE("\"in\": 0, \"out\": 1, \"hash_ids\": []"), "s: in is 0" },
	{ ONE("\"in\": 1.5, \"out\": 1"), "s: in is not an integer" },
	{ ONE("\"in\": 4194305, \"out\": 1"),
	    "s: in is not from 0 to 4194304" },
	{ ONE("\"in\": 1, \"hash_ids\": []"), "s: out is missing" },
	{ ONE("\"in\": 1, \"out\": 1"), "s: hash_ids is missing" },
	{ ONE("\"in\": 1, \"out\": 1, \"hash_ids\": 3"),
	    "s: hash_ids is not an array" },
	{ ONE("\"in\": 64, \"out\": 1, \"hash_ids\": []"),
	    "s: 0 hash_ids for 64 tokens in blocks of 64" },
	{ ONE("\"in\": 64, \"out\": 1, \"hash_ids\": [-1]"),
	    "s: hash_ids[0] is not an integer" },
	{ ONE("\"in\": 1, \"out\": 1, \"hash_ids\": [], \"think_time\": -1"),
	    "s: think_time is not from 0" },
	{ ONE("\"in\": 1, \"out\": 1, \"hash_ids\": [], \"t\": \"x\""),
	    "s: t is not a number" },
	{ ONE("\"in\": 1, \"out\": 1, \"hash_ids\": [], \"api_time\": 1e9"),
	    "s: api_time is not from 0" },
	{ ONE("\"type\": \"subagent\""), "s: requests is missing" }
};

START_TEST(refuses)
{
	char error[SESSION_ERROR_BYTES];

	ck_assert_ptr_null(read_text(bad[_i].text, error));
	ck_assert_msg(strncmp(error, bad[_i].error, strlen(bad[_i].error)) ==
	    0, "%s", error);
}
END_TEST

/* One more level of sub-agents than allowed. */
START_TEST(refuses_deep_nesting)
{
	char text[2000] = "", error[SESSION_ERROR_BYTES];
	int i;

	for (i = 0; i <= SESSION_NESTED_MAX + 1; i++)
		strcat(text, "{\"type\": \"subagent\", \"requests\": [");
	for (i = 0; i <= SESSION_NESTED_MAX + 1; i++)
		strcat(text, "]}");
	ck_assert_ptr_null(read_text(text, error));
	ck_assert_str_eq(error, "s: sub-agents are nested too deeply");
}
END_TEST

START_TEST(survives_without_memory)
{
	char error[SESSION_ERROR_BYTES];
	struct session *s = NULL;
	unsigned long n;

	for (n = 1; s == NULL && n < 100; n++) {
		alloc_fail_at(n);
		s = read_text(three, error);
		alloc_reset();
		ck_assert(s != NULL || strstr(error, "out of memory") != NULL);
	}
	ck_assert(s != NULL && n > 4);
	session_free(s);
}
END_TEST

/* ------------------------------------------------------------ published --- */

static int
is_json(const struct dirent *d)
{
	return strstr(d->d_name, ".json") != NULL;
}

/* Another program counted the figures of the set. */
START_TEST(published_sessions)
{
	const char *folder = test_shared("traces/agentic");
	uint64_t requests = 0, input = 0, outputs = 0, known = 0, agents = 0;
	char name[600], error[SESSION_ERROR_BYTES];
	struct dirent **names;
	int n = scandir(folder, &names, is_json, alphasort), i;
	struct session *s;
	size_t k;
	FILE *f;

	ck_assert_int_eq(n, 83);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", folder,
		    names[i]->d_name);
		f = fopen(name, "r");
		s = session_read(f, name, error);
		ck_assert_msg(s != NULL, "%s", error);
		fclose(f);
		requests += s->requests;
		agents += s->n_talks - 1;
		for (k = 0; k < s->n_entries; k++) {
			input += s->entries[k].input;
			outputs += s->entries[k].output;
			known += s->entries[k].known;
		}
		session_free(s);
		free(names[i]);
	}
	free(names);
	ck_assert_uint_eq(requests, 4751);
	ck_assert_uint_eq(agents, 5);
	ck_assert_uint_eq(input, 531940786);
	ck_assert_uint_eq(outputs, 2151753);
	/* Most outputs are in the next prompt. */
	ck_assert(known > outputs / 2 && known < outputs);
}
END_TEST

Suite *suite_session_trace(void);

Suite *
suite_session_trace(void)
{
	Suite *s = suite_create("session_trace");
	TCase *c = tcase_create("session_trace");

	tcase_add_test(c, reads_requests);
	tcase_add_loop_test(c, knows_outputs_by_the_next_prompt, 0, 4);
	tcase_add_test(c, reads_agents);
	tcase_add_loop_test(c, refuses, 0,
	    (int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(c, refuses_deep_nesting);
	tcase_add_test(c, survives_without_memory);
	tcase_add_test(c, published_sessions);
	suite_add_tcase(s, c);
	return s;
}
