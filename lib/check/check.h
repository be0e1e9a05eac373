/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - checks every invariant of a region, and mends its figures.
 */
#ifndef KVR_CHECK_H
#define KVR_CHECK_H

#include "region.h"

/* KVR_OK, KVR_EINEXACT, KVR_ECORRUPT or KVR_ENOMEM: see check.c. */
int check_region(const struct kvr *k);
/* The same, but mends inexact figures. For one process that is alone. */
int check_mend(struct kvr *k);

#endif
