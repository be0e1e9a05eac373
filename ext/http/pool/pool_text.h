/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_text.h - pairs NAME=VALUE of a text, see text_rows.h. */
#ifndef KVROUTE_POOL_TEXT_H
#define KVROUTE_POOL_TEXT_H

#include "text_rows.h"

/*
 * Reads all pairs, which are separated by blanks or ends of lines; a name is
 * given once, and there are at most 32. Returns 0, KVH_ENAME or KVH_EVALUE;
 * then *bad (may be NULL) is the offset of the pair.
 */
int text_read(const struct text_row *rows, size_t n, void *fields,
    const char *text, size_t length, size_t *bad);

#endif
