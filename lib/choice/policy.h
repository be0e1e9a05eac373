/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h - checks and resolves policies and requests.
 */
#ifndef KVR_POLICY_H
#define KVR_POLICY_H

#include "region.h"

int policy_check(const struct kvr_policy *policy);
int policy_check_request(const struct kvr_request *r);
void policy_resolve(const struct kvr_policy *policy, struct kvr_request *r);
void policy_read(const struct kvr *k, struct kvr_policy *policy);
void policy_write(struct kvr *k, const struct kvr_policy *policy);
/* Can a call have set the region's policy? */
bool policy_sound(const struct kvr *k);
/* If not, it gives way to the default one. */
void policy_recover(struct kvr *k);

#endif
