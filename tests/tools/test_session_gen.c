/* SPDX-License-Identifier: BSD-2-Clause */
/* test_session_gen.c - generated sessions, as the reader understands them. */
#include "alloc.h"
#include "half.h"
#include "session_gen.h"
#include "session_trace.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>

static struct session *
generate(const struct session_gen *o, uint64_t number, uint64_t *digest)
{
	char error[SESSION_ERROR_BYTES];
	FILE *f = tmpfile();
	struct session *s;
	int c;

	ck_assert_int_eq(session_gen_write(f, o, number), 0);
	rewind(f);
	*digest = HALF_CHECKSUM;
	while ((c = getc(f)) != EOF)
		*digest = half_checksum(*digest, (uint64_t)c);
	rewind(f);
	s = session_read(f, "generated", error);
	ck_assert_msg(s != NULL, "%s", error);
	fclose(f);
	return s;
}

/* The same bytes on every platform; other numbers and seeds differ. */
START_TEST(sessions_same_everywhere)
{
	struct session_gen o;
	uint64_t first, other;

	session_gen_defaults(&o);
	session_free(generate(&o, 1, &first));
	ck_assert_msg(first == UINT64_C(0x5dec87767c08818b), "%016" PRIx64,
	    first);
	session_free(generate(&o, 2, &other));
	ck_assert_uint_ne(first, other);
	o.seed = 2;
	session_free(generate(&o, 1, &other));
	ck_assert_uint_ne(first, other);
}
END_TEST

/* 15,000 tokens are 29 common blocks, the 7,500 of sub-agents are 14. */
START_TEST(sessions_have_their_shape)
{
	uint64_t main_requests = 0, known = 0, groups = 0, digest, i;
	struct session_gen o;
	struct session *s;
	size_t k;

	session_gen_defaults(&o);
	for (i = 1; i <= 60; i++) {
		s = generate(&o, i, &digest);
		for (k = 0; k < s->n_entries; k++) {
			const struct session_entry *e = &s->entries[k];
			bool nested = k >= s->talks[0].n;

			if (e->talk != 0) {
				groups += s->entries[k - 1].talk == 0;
				ck_assert(!nested);
				continue;
			}
			ck_assert_uint_eq(e->n_common, nested ? 14 : 29);
			main_requests += !nested;
			known += !nested && e->known > 0;
		}
		session_free(s);
	}
	ck_assert(main_requests > 2000 && main_requests < 4000);
	/* All outputs but the last and those before a summary. */
	ck_assert(known > main_requests * 9 / 10);
	/* One in 20. */
	ck_assert(groups > main_requests / 26 && groups < main_requests / 15);
}
END_TEST

START_TEST(sessions_extremes)
{
	struct session_gen o = { .seed = 0, .prompt = 2, .requests = 1 };
	uint64_t digest, i;
	struct session *s;

	for (i = 1; i <= 20; i++) {
		s = generate(&o, i, &digest);
		ck_assert_uint_eq(s->n_talks, 1);
		session_free(s);
	}
	o.prompt = SESSION_GEN_PROMPT_MAX;
	o.agents = 20;
	o.requests = 10;
	session_free(generate(&o, 1, &digest));
}
END_TEST

START_TEST(sessions_without_memory)
{
	struct session_gen o;
	unsigned long n;
	int result = -1;

	session_gen_defaults(&o);
	for (n = 1; result != 0 && n < 1000; n++) {
		FILE *f = tmpfile();

		alloc_fail_at(n);
		result = session_gen_write(f, &o, 1);
		alloc_reset();
		fclose(f);
	}
	ck_assert(result == 0 && n > 2);
}
END_TEST

Suite *suite_session_gen(void);

Suite *
suite_session_gen(void)
{
	Suite *s = suite_create("session_gen");
	TCase *c = tcase_create("session_gen");

	tcase_add_test(c, sessions_same_everywhere);
	tcase_add_test(c, sessions_have_their_shape);
	tcase_add_test(c, sessions_extremes);
	tcase_add_test(c, sessions_without_memory);
	suite_add_tcase(s, c);
	return s;
}
