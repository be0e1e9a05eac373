/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_ops.c - operations decoded from the input, library against model.
 *
 * The input first says what world to run in, then which operations, and for
 * each operation which of its allocations fails. Failing memory, hostile
 * sequences and plain use are one target.
 *
 * Bounds: 200 operations; kvr_check and all counts after every 16th, or after
 * each where engines say what they hold, and at the end; a region of at most
 * 256 KiB beside what is for events, and of less where the operations cannot
 * fill it, since a check takes as long as the region has cells.
 */
#include <stdlib.h>

#include "ops.h"

enum { FUZZ_OPS = 200, CHECKED = 16 };
enum { CELLS_PER_OP = 24, BLOCKS_PER_CELL = 12, BYTES_PER_CELL = 96 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * A region too small is noticed: the model allows no eviction then. Leases are
 * extended, so that each prompt may contain all those before it.
 */
static uint64_t
room_for(const struct ops_config *c, const struct op *ops, size_t n)
{
	uint64_t blocks = 0, cells = 0, room;
	size_t i, j;

	for (i = 0; i < n; i++) {
		for (j = 0; j < ops[i].segments; j++)
			blocks += ops[i].segment[j].blocks;
		cells += CELLS_PER_OP + blocks / BLOCKS_PER_CELL;
	}
	room = (40 << 10) + c->workers * UINT64_C(1912) +
	    cells * BYTES_PER_CELL;
	return room < c->region_bytes ? room : c->region_bytes;
}

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
	if (!c.full)
		c.region_bytes = room_for(&c, ops, n);
	if (ops_run(&c, ops, n, c.events > 0 ? 1 : CHECKED, &f) != 0) {
		ops_report(&c, ops, n, &f);
		abort();
	}
	return 0;
}
