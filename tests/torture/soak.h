/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soak.h - tests that `make check` runs for seconds and `make soak` for hours.
 *
 * $KVR_SOAK names the file that collects the results of a soak, one line each;
 * without it a test is short. For suites only.
 */
#ifndef KVR_SOAK_H
#define KVR_SOAK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

static inline bool
soaking(void)
{
	return getenv("KVR_SOAK") != NULL;
}

/* Amounts for a check (or a share of it under a checker), and for a soak. */
static inline uint64_t
soak_amount(uint64_t check, uint64_t soak)
{
	return soaking() ? test_amount(soak) : test_amount(check);
}

/* A soak reports its progress now and then. */
static inline void
soak_progress(const char *what, uint64_t done, uint64_t all)
{
	uint64_t step = all / 20 + 1;

	if (soaking() && done % step == 0)
		fprintf(stderr, "    %s: %llu of %llu\n", what,
		    (unsigned long long)done, (unsigned long long)all);
}

/* One line of the table at the end of a soak. */
static inline void __attribute__((format(printf, 1, 2)))
soak_row(const char *format, ...)
{
	FILE *table;
	va_list args;

	if (!soaking())
		return;
	table = fopen(getenv("KVR_SOAK"), "a");
	ck_assert_ptr_nonnull(table);
	va_start(args, format);
	vfprintf(table, format, args);
	va_end(args);
	fputc('\n', table);
	ck_assert_int_eq(fclose(table), 0);
}

#endif
