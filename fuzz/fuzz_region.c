/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_region.c - a region in which the input has changed anything but the
 * lock; then every public call. See tests/torture/corrupt.h.
 *
 * Work is bounded: one call that takes a second of processor time is a failure
 * here, on a region of at most 256 KiB. The fuzzer's own time limit would find
 * it late.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "corrupt.h"

#define CALL_MAX INT64_C(1000000000)
enum { DEAR = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct corrupt_totals totals = { .slow = "", .dear = DEAR };
	struct ops_source s;
	char why[200];

	ops_from_bytes(&s, data, size);
	if (!corrupt_run(&s, CORRUPT_MODES, &totals, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	if (totals.slowest > CALL_MAX) {
		fprintf(stderr, "%s took %" PRId64 " ms\n", totals.slow,
		    totals.slowest / 1000000);
		abort();
	}
	return 0;
}
