/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.h - a limit on the requests of one worker, by those of the others.
 */
#ifndef KVR_BOUND_H
#define KVR_BOUND_H

#include "question.h"

void bound_find(struct question *q);

#endif
