/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * longest.h - the eligible worker with the longest overlap.
 */
#ifndef KVR_LONGEST_H
#define KVR_LONGEST_H

#include "question.h"

/* `slot` itself unless more of the overlap of another one can be used. */
uint32_t longest_slot(const struct question *q, uint32_t slot);

#endif
