/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_site.c - site.c on a region file, with a bus that does nothing;
 * test_late.c has the rest.
 */
#include <check.h>
#include <kvroute_replica.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "busy.h"
#include "test.h"

/* test_late.c has a site_log, which is silent. */
#include "site.c"

enum { LOCKS_MAX = 1000 };

static char folder[64], path[80];

struct bus *
bus_open(const struct bus_options *o, char *error, size_t size)
{
	static char bus;

	(void)o, (void)error, (void)size;
	return (struct bus *)(void *)&bus;
}

void
bus_close(struct bus *bus)
{
	(void)bus;
}

bool
bus_send(struct bus *bus, const void *bytes, size_t n)
{
	(void)bus, (void)bytes, (void)n;
	return true;
}

void
bus_work(struct bus *bus)
{
	(void)bus;
}

const char *
bus_error(const struct bus *bus)
{
	(void)bus;
	return "";
}

/* Both ask apply.c about peers. */
void
report(const struct site *s, int64_t now)
{
	(void)now;
	ck_assert_ptr_nonnull(s->apply);
}

void
report_end(const struct site *s, int64_t now)
{
	report(s, now);
}

static void
all_busy(void)
{
	busy_begin(UINT_MAX);
}

static void
region_make(void)
{
	const char *tmp = getenv("TMPDIR");
	struct kvr_options o;
	struct kvr *k;
	uint64_t id;

	(void)snprintf(folder, sizeof(folder), "%.40s/kvroute-test-XXXXXX",
	    tmp == NULL ? "/tmp" : tmp);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/region", folder);
	(void)kvr_options_init(&o, sizeof(o));
	o.region_bytes = 4 << 20;
	o.journal_bytes = KVR_JOURNAL_MIN;
	o.secret_bytes = KVR_SECRET_MIN;
	memset(o.secret, 1, KVR_SECRET_MIN);
	ck_assert_int_eq(kvr_open(path, strlen(path), KVR_OPEN_CREATE, &o, &k),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_add(k, "a", 1, NULL, &id), KVR_OK);
	kvr_free(k);
}

static void
region_remove(void)
{
	char lock[96];

	(void)snprintf(lock, sizeof(lock), "%s.lock", path);
	(void)unlink(path);
	(void)unlink(lock);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* From each attempt to take its lock on, the region is busy. */
START_TEST(a_busy_region_at_the_start)
{
	const struct site_options options = { .replay = -1 };
	struct site *s = malloc(sizeof(*s));
	unsigned n, failed = 0;
	bool good = false;

	ck_assert_ptr_nonnull(s);
	region_make();
	for (n = 1; !good && n < LOCKS_MAX; n++) {
		busy_call(n, all_busy);
		good = site_open(s, &options, path);
		failed += !good;
		site_close(s);
		(void)busy_end();
	}
	busy_call(0, NULL);
	ck_assert(good);
	ck_assert_uint_gt(failed, 0);
	region_remove();
	free(s);
}
END_TEST

Suite *suite_site(void);

Suite *
suite_site(void)
{
	Suite *s = suite_create("site");
	TCase *t = tcase_create("site");

	tcase_add_test(t, a_busy_region_at_the_start);
	suite_add_tcase(s, t);
	return s;
}
