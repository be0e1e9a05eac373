/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test.h - common functions of all suites, besides Check's.
 *
 * A file tests/.../test_NAME.c defines `Suite *suite_NAME(void)` and is found
 * by its name. Other files of tests/ are linked to every suite and to the fuzz
 * harnesses, which have no Check: only suites include this header.
 */
#ifndef KVR_TEST_H
#define KVR_TEST_H

#include <check.h>
#include <stdint.h>

/*
 * Ends the running test as skipped, which is never counted as passed. Only for
 * things that a machine may lack, such as the trace beside the checkout.
 */
#define test_skip(why) test_skip_in(__func__, (why))
_Noreturn void test_skip_in(const char *test, const char *why);

/*
 * The path of a file of ../shared (or of $KVR_SHARED), for instance
 * "traces/conversation_trace.jsonl"; ends the test as skipped without it.
 */
#define test_shared(name) test_shared_in(__func__, (name))
const char *test_shared_in(const char *test, const char *name);

/* As _exit, for a child after fork; its lines count in the coverage. */
_Noreturn void test_exit(int status);

/*
 * How much of a long test to run: `full`, or a share of it where a checker
 * makes everything slow ($KVR_TEST_PERCENT); never rounded down to 0.
 */
uint64_t test_amount(uint64_t full);

/*
 * $KVR_SEED, or TEST_SEED of mk/check.mk: the same in each run. Print it when
 * the test fails.
 */
uint64_t test_seed(void);

#endif
