/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recover.h - recovery of a region before it is used.
 */
#ifndef KVR_RECOVER_H
#define KVR_RECOVER_H

#include "region.h"

bool recover_other_boot(const struct kvr *k, const unsigned char *boot_id);
int recover_alone(struct kvr *k, const unsigned char *boot_id);
int recover_shared(struct kvr *k, const unsigned char *boot_id, bool wait);
/* The region takes the limits of the options, if they are others. */
int recover_limits(struct kvr *k, const struct kvr_options *o, bool wait);

#endif
