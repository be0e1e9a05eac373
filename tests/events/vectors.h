/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vectors.h - messages of engines, byte for byte.
 */
#ifndef KVR_VECTORS_H
#define KVR_VECTORS_H

#include <stddef.h>

/* "v1" to "v14", "v14_frame"; aborts for others. */
const char *vector_hex(const char *name);
/* Exactly as long as the hex says: reading past them is detected. free them. */
unsigned char *vector_bytes(const char *hex, size_t *n);

#endif
