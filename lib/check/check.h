/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - checks every invariant of a region.
 */
#ifndef KVR_CHECK_H
#define KVR_CHECK_H

#include "region.h"

int check_region(const struct kvr *k);

#endif
