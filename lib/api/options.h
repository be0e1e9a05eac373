/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * options.h - checked options, and a region formatted by them.
 */
#ifndef KVR_OPTIONS_H
#define KVR_OPTIONS_H

#include "region.h"

int options_get(const struct kvr_options *from, struct kvr_options *o);
int options_format(const struct kvr_options *o, void *memory, uint64_t bytes,
    uint32_t kind, struct kvr *k);
/* KVR_EMISMATCH: the region has other options, and other limits. */
int options_match(const struct kvr_options *o, const struct kvr *k);
int options_match_limits(const struct kvr_options *o, const struct kvr *k);
/* The region takes the limits. */
void options_apply(const struct kvr_options *o, struct kvr *k);

#endif
