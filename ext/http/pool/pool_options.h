/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_options.h - the options of a pool; kvroute-http(7) describes each. */
#ifndef KVROUTE_POOL_OPTIONS_H
#define KVROUTE_POOL_OPTIONS_H

#include "pool_in.h"
#include "pool_text.h"

/* The rows of a region come first. */
extern const struct text_row pool_rows[];
extern const size_t pool_rows_all, pool_rows_region;

/* region: does the pool make one? As text_read. */
int pool_options_read(struct pool_options *o, bool region, const char *text,
    size_t length, size_t *bad);

#endif
