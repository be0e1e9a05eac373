/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handle.h - what other calls do to workers.
 */
#ifndef KVR_HANDLE_H
#define KVR_HANDLE_H

#include "region.h"

/* Within a transaction: kvr_worker_reset. *fresh: the worker's new slot. */
int handle_reset(struct kvr *k, uint32_t slot, uint32_t *fresh);

#endif
