/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handle.h - a reset of a worker, for other calls.
 */
#ifndef KVR_HANDLE_H
#define KVR_HANDLE_H

#include "region.h"

/* Within a transaction: kvr_worker_reset. *fresh: the worker's new slot. */
int handle_reset(struct kvr *k, uint32_t slot, uint32_t *fresh);
/* For readers of the journal: its entries have been dropped, its id stays. */
void handle_reset_note(struct kvr *k, uint32_t slot);

#endif
