/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_ignore.h - the option ignore_line=: a POSIX extended expression. */
#ifndef KVROUTE_POOL_IGNORE_H
#define KVROUTE_POOL_IGNORE_H

#include "pool_in.h"

bool ignore_check(const char *expression);
/* False: no memory. */
bool ignore_begin(struct kvh *h);
void ignore_end(struct kvh *h);
/* A body_line; the context is a regex_t. Of any thread. */
bool ignore_line(void *expression, const char *line, size_t n);

#endif
