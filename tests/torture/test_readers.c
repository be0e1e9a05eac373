/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_readers.c - choices without the lock, while reports change what can be
 * expected: volumes, survival, TTLs, rates, engine blocks.
 *
 * A reader discards what it met half changed, so no result may be out of
 * bounds; and ThreadSanitizer sees every word that is read without read_once()
 * or written without write_once().
 */
#include "reports.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LENGTH = 600, PROMPTS = 7, CALLS = 4000, CHOICES = 4000 };

static atomic_bool over;
static atomic_uint chosen; /* by expected overlap */

static bool
some_prompt(struct kvr_prompt *of, uint32_t which)
{
	uint32_t token[LENGTH], i;

	for (i = 0; i < LENGTH; i++)
		token[i] = i < LENGTH / 2 ? which / 2 : which;
	return kvr_prompt_set_tokens(of, NULL, token, LENGTH) == KVR_OK;
}

/* Returns the first thing that was wrong, or NULL. */
static void *
choose_on(void *arg)
{
	static char not_asked[] = "no answer", too_much[] = "out of bounds";
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt *own = NULL;
	uint32_t i;
	char *wrong = NULL;

	(void)arg;
	if (kvr_prompt_new(k, &own) != KVR_OK)
		wrong = not_asked;
	for (i = 0; wrong == NULL && !atomic_load(&over); i++) {
		if (!some_prompt(own, i % PROMPTS) ||
		    kvr_route(k, own, NULL, 1, &d) != KVR_OK)
			wrong = not_asked;
		else if (d.overlap_tokens > LENGTH || !(d.cost >= 0))
			wrong = too_much;
		atomic_fetch_add(&chosen, d.overlap_tokens > 0);
	}
	kvr_prompt_free(own);
	atomic_fetch_add(&chosen, CHOICES); /* let no thread wait for more */
	return wrong;
}

/* A request and its report; now and then more changes than that. */
static void
one_more(uint32_t i, int64_t now)
{
	struct kvr_report r = { .size = sizeof(r),
	    .kind = KVR_REPORT_VALUE };
	struct kvr_worker f;
	uint64_t lease;

	must(some_prompt(p, pick(PROMPTS)));
	lease = reserved(i % WORKERS, now);
	must(kvr_lease_commit(k, lease, now, 0) == KVR_OK);
	must(kvr_lease_first_token(k, lease, now + 2000000, 0) == KVR_OK);
	r.cached_tokens = pick(3) == 0 ? 0 : pick(LENGTH / 16) * 16;
	must(kvr_lease_finish(k, lease, &r, now + 2000000, 0) == KVR_OK);
	if (pick(8) == 0)
		must(kvr_observe(k, p, id[pick(WORKERS)], now, 0, NULL) ==
		    KVR_OK);
	if (pick(100) != 0)
		return;
	must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
	f.retain = KVR_RETAIN_TTL + pick(3);
	f.capacity_tokens = 2000;
	f.block_tokens = pick(3);
	must(kvr_worker_set(k, id[0], &f) == KVR_OK);
	must(kvr_worker_reset(k, id[1], &id[1]) == KVR_OK);
	set_mode(1, KVR_RETAIN_FEEDBACK);
}

START_TEST(reports_while_others_choose)
{
	struct kvr_policy y;
	pthread_t reader;
	void *wrong;
	uint32_t i;

	by_chance();
	big_setup();
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = KVR_COST_BALANCED;
	y.purge = 1;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	for (i = 0; i < WORKERS; i++)
		set_mode(i, KVR_RETAIN_FEEDBACK);
	atomic_store(&over, false);
	atomic_store(&chosen, 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, choose_on, NULL), 0);
	for (i = 0; i < CALLS || atomic_load(&chosen) < CHOICES; i++)
		one_more(i, 1 + (int64_t)i * 3000000);
	atomic_store(&over, true);
	ck_assert_int_eq(pthread_join(reader, &wrong), 0);
	ck_assert_msg(wrong == NULL, "%s", (const char *)wrong);
	ck_assert_uint_gt(stats().calibration.purges, 0);
	region_end();
}
END_TEST

Suite *suite_readers(void);

Suite *
suite_readers(void)
{
	Suite *s = suite_create("readers");
	TCase *t = tcase_create("readers");

	suite_add_tcase(s, t);
	tcase_add_test(t, reports_while_others_choose);
	return s;
}
