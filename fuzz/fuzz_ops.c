/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_ops.c - operations decoded from the input, library against model.
 *
 * The input first says what world to run in, then which operations, and for
 * each operation which of its allocations fails. Failing memory, hostile
 * sequences and plain use are one target.
 */
#include <stdlib.h>

#include "ops.h"

enum { FUZZ_OPS = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct op ops[FUZZ_OPS];
	struct ops_config c;
	struct ops_source s;
	struct ops_failure f;
	size_t n;

	ops_from_bytes(&s, data, size);
	ops_config_draw(&s, &c);
	n = ops_draw(&s, &c, true, ops, FUZZ_OPS);
	if (ops_run(&c, ops, n, 16, &f) != 0) {
		ops_report(&c, ops, n, &f);
		abort();
	}
	return 0;
}
