/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit.h - records a path as far as there is room.
 */
#ifndef KVR_FIT_H
#define KVR_FIT_H

#include "index.h"

uint32_t fit_spare(const struct kvr *k);
/* A prompt was sent to a worker whose blocks events name. */
void fit_touch(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    int64_t now);
uint32_t fit_insert(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    const struct insert *how, int64_t now, uint32_t *recorded);

#endif
