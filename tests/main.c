/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - runs all suites or the named ones, and counts.
 *
 *   check [-t file] [suite[,suite ...] ...]
 *   check -l
 *   check -s
 *
 * Each test runs in a process of its own (CK_FORK=no for a debugger). A skip
 * is reported as a failure with a message that begins with SKIP: a message
 * is all that a test's process can return. With -t the three counts are added
 * to a file, for mk/tally.sh. With -l the names of all suites are printed,
 * with -s the seed of random tests.
 */
#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SKIP "SKIP "

/* The list of suites, which the build generates from the file names. */
#define SUITE(name) Suite *suite_##name(void);
#include "suites.h"
#undef SUITE

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define SUITE(name) { #name, suite_##name },
#include "suites.h"
#undef SUITE
	{ NULL, NULL }
};

/* The coverage build has it: mk/coverage.mk. */
void __gcov_dump(void) __attribute__((weak));

void
test_exit(int status)
{
	if (__gcov_dump != NULL)
		__gcov_dump();
	_exit(status);
}

struct counts {
	int passed;
	int failed;
	int skipped;
};

void
test_skip_in(const char *test, const char *why)
{
	size_t length = strlen(test);

	/* Check turns the test NAME into a function NAME_fn. */
	if (length > 3 && strcmp(test + length - 3, "_fn") == 0)
		length -= 3;
	ck_abort_msg(SKIP "%.*s: %s", (int)length, test, why);
	abort();
}

const char *
test_shared_in(const char *test, const char *name)
{
	static char path[1024];
	const char *folder = getenv("KVR_SHARED");

	if (folder == NULL)
		folder = "../shared";
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (access(path, R_OK) != 0)
		test_skip_in(test, "no ../shared beside this tree");
	return path;
}

static uint64_t
number_of(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);
	char *end;
	uint64_t n;

	if (text == NULL || *text == '\0')
		return otherwise;
	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno != 0 || *end != '\0') {
		fprintf(stderr, "%s=%s: not a number\n", variable, text);
		exit(2);
	}
	return n;
}

uint64_t
test_amount(uint64_t full)
{
	uint64_t percent = number_of("KVR_TEST_PERCENT", 100);

	return full == 0 ? 0 : 1 + (full - 1) * percent / 100;
}

uint64_t
test_seed(void)
{
	return number_of("KVR_SEED", TEST_SEED);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns the CPU time of all tests so far, in seconds. */
static double
computed(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void
tell(TestResult *result, struct counts *n)
{
	const char *message = tr_msg(result);

	if (tr_rtype(result) == CK_PASS) {
		n->passed++;
	} else if (tr_rtype(result) == CK_FAILURE &&
	    strncmp(message, SKIP, strlen(SKIP)) == 0) {
		n->skipped++;
		printf("    skipped  %s\n", message + strlen(SKIP));
	} else {
		n->failed++;
		printf("    FAILED   %s:%d: %s: %s%s\n", tr_lfile(result),
		    tr_lno(result), tr_tcname(result),
		    tr_rtype(result) == CK_ERROR ? "after this line: " : "",
		    message);
	}
}

static void
run(const char *name, Suite *(*make)(void), struct counts *sum)
{
	SRunner *runner = srunner_create(make());
	struct counts n = { 0, 0, 0 };
	double start = seconds(), before = computed();
	TestResult **results;
	int i, count;

	fflush(NULL);
	srunner_run_all(runner, CK_SILENT);
	count = srunner_ntests_run(runner);
	results = srunner_results(runner);
	printf("  %-14s %4d tests %7.2f s, %7.2f of a processor\n", name, count,
	    seconds() - start, computed() - before);
	for (i = 0; i < count; i++)
		tell(results[i], &n);
	if (count == 0) {
		n.failed++;
		printf("    FAILED   the suite has no test\n");
	}
	free(results);
	srunner_free(runner);
	fflush(NULL);
	sum->passed += n.passed;
	sum->failed += n.failed;
	sum->skipped += n.skipped;
}

static void
run_named(const char *name, struct counts *sum)
{
	size_t i;

	for (i = 0; suites[i].name != NULL; i++)
		if (strcmp(suites[i].name, name) == 0) {
			run(name, suites[i].make, sum);
			return;
		}
	printf("    FAILED   there is no suite named %s\n", name);
	sum->failed++;
}

static void
run_all(struct counts *sum)
{
	size_t i;

	for (i = 0; suites[i].name != NULL; i++)
		run(suites[i].name, suites[i].make, sum);
}

static void
list_all(void)
{
	size_t i;

	for (i = 0; suites[i].name != NULL; i++)
		puts(suites[i].name);
}

static bool
add_tally(const char *path, const struct counts *n)
{
	FILE *f = fopen(path, "a");
	bool good;

	if (f == NULL)
		return false;
	good = fprintf(f, "%d %d %d\n", n->passed, n->failed, n->skipped) > 0;
	return fclose(f) == 0 && good;
}

int
main(int argc, char **argv)
{
	const char *tally = NULL;
	struct counts n = { 0, 0, 0 };
	bool good = true;
	char *name;
	int c;

	while ((c = getopt(argc, argv, "lst:")) != -1) {
		if (c == 'l') {
			list_all();
			return 0;
		}
		if (c == 's') {
			printf("%" PRIu64 "\n", test_seed());
			return 0;
		}
		if (c != 't')
			return 2;
		tally = optarg;
	}
	/* It ends a test that hangs, also on a machine that is very busy. */
	setenv("CK_DEFAULT_TIMEOUT", "900", 0);
	if (optind == argc)
		run_all(&n);
	for (; optind < argc; optind++)
		for (name = strtok(argv[optind], ", "); name != NULL;
		    name = strtok(NULL, ", "))
			run_named(name, &n);
	if (tally != NULL)
		good &= add_tally(tally, &n);
	else
		printf("%d passed, %d failed, %d skipped\n", n.passed, n.failed,
		    n.skipped);
	return good && n.failed == 0 ? 0 : 1;
}
