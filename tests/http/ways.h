/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ways.h - strings read in each way that body_string.c has: as it is compiled
 * here, and without SSE2.
 */
#ifndef KVR_WAYS_H
#define KVR_WAYS_H

#include <stdbool.h>
#include <stddef.h>

#include "body_string.h"

const char *portable_way(void);
size_t portable_plain(const unsigned char *p, size_t n, enum string_stop *why);
size_t portable_decode(const unsigned char *p, size_t n, unsigned char *to,
    size_t room, size_t *written, enum string_stop *why);

/* Do all agree on a string that begins here? */
bool ways_agree(const unsigned char *text, size_t n);

#endif
