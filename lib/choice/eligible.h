/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * eligible.h - which workers may be chosen.
 */
#ifndef KVR_ELIGIBLE_H
#define KVR_ELIGIBLE_H

#include "question.h"

int eligible_find(struct question *q, uint32_t slots);
enum kvr_verdict eligible_verdict(const struct question *q, uint32_t slot);
int eligible_none(const struct question *q);

#endif
