/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * records.h - what a record of the journal costs, beside copying its bytes.
 *
 * A prompt that the index knows is observed again and again, in turns by a
 * quiet handle and by one that leaves records; the difference is the record.
 * What it would cost at least is a memcpy of the hashes, and of two lines
 * before them, to a ring of the same size:
 *
 *	quiet | records | copies | quiet | records | copies | ...
 *
 * CPU time of the thread counts, of 1,000 calls at a time; of all trials the
 * least.
 */
#ifndef KVROUTE_RECORDS_H
#define KVROUTE_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

void records_run(uint32_t trials, bool kv);

#endif
