/* SPDX-License-Identifier: BSD-2-Clause */
/* test_region_file.c - the file of a region, made and tested by a master. */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region_file.h"

static char folder[] = "/tmp/region_file_XXXXXX";
static char path[sizeof(folder) + 8];
static struct kvr_options options;
static struct region_file file;
static struct region_fault why;

static void
begin(void)
{
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/index", folder);
	ck_assert_int_eq(kvr_options_init(&options, sizeof(options)), KVR_OK);
	options.region_bytes = 1 << 20;
	options.unit = KVR_UNIT_BYTES;
	options.max_workers = 4;
	file = (struct region_file){ .path = path, .length = strlen(path),
	    .options = &options };
}

static void
end(void)
{
	char command[sizeof(folder) + 16];

	(void)snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(made)
{
	struct stat st;
	struct kvr *k;

	begin();
	ck_assert(region_file_test(&file, &why));
	ck_assert_int_ne(stat(path, &st), 0);
	ck_assert(region_file_prepare(&file, &why));
	ck_assert(region_file_test(&file, &why));
	ck_assert_int_eq(region_file_open(&file, KVR_OPEN_ATTACH, &k), KVR_OK);
	kvr_free(k);
	end();
}
END_TEST

START_TEST(another)
{
	begin();
	ck_assert(region_file_prepare(&file, &why));
	options.max_workers = 8;
	ck_assert(!region_file_test(&file, &why));
	ck_assert_int_eq(why.error, KVR_EMISMATCH);
	ck_assert_str_eq(why.option, "max_workers");
	ck_assert(!region_file_prepare(&file, &why));
	ck_assert_int_eq(why.error, KVR_EMISMATCH);
	/* A start applies another time. */
	options.max_workers = 4;
	options.ttl_ns = 5000000000;
	ck_assert(region_file_test(&file, &why));
	/* Others may write to it. */
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert(!region_file_test(&file, &why));
	ck_assert_int_eq(why.error, KVR_EPERM);
	end();
}
END_TEST

START_TEST(no_folder)
{
	begin();
	ck_assert_int_eq(rmdir(folder), 0);
	ck_assert(!region_file_test(&file, &why));
	ck_assert_int_eq(why.error, KVR_ESYSTEM);
	ck_assert_int_eq(why.system, ENOENT);
	ck_assert(!region_file_prepare(&file, &why));
	ck_assert_int_eq(why.call, REGION_OPEN);
	ck_assert(!why.theirs);
	options.region_bytes = 4096;
	ck_assert(!region_file_test(&file, &why));
	ck_assert_int_eq(why.error, KVR_ETOOSMALL);
}
END_TEST

Suite *suite_region_file(void);

Suite *
suite_region_file(void)
{
	Suite *suite = suite_create("region_file");
	TCase *t = tcase_create("region_file");

	tcase_add_test(t, made);
	tcase_add_test(t, another);
	tcase_add_test(t, no_folder);
	suite_add_tcase(suite, t);
	return suite;
}
