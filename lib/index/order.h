/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order.h - which entry of a worker, and which worker, is due first.
 */
#ifndef KVR_ORDER_H
#define KVR_ORDER_H

#include "region.h"

void order_append(struct kvr *k, uint32_t entry);
bool order_heads(const struct kvr *k, uint32_t entry);
void order_remove(struct kvr *k, uint32_t entry);
void order_release(struct kvr *k, uint32_t entry, uint32_t below);
/* Idle blocks by epochs are compared with the list by release; recounted. */
bool order_stack_sound(const struct kvr *k, uint32_t slot);
void order_stack_mend(struct kvr *k, uint32_t slot);
/* Around a change of an entry's blocks, or of its pins. */
void order_uncount(struct kvr *k, uint32_t entry);
void order_count(struct kvr *k, uint32_t entry);
void order_unrelease(struct kvr *k, uint32_t entry);
void order_copy(struct kvr *k, uint32_t entry, uint32_t older);
void order_settle(struct kvr *k, uint32_t slot);
int64_t order_due(const struct kvr *k, uint32_t slot);
uint32_t order_due_slot(const struct kvr *k);
uint32_t order_stamped_slot(struct kvr *k);
int64_t order_stamped(const struct kvr *k, uint32_t slot);
void order_retire(struct kvr *k, uint32_t slot);

#endif
