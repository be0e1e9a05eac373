/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vectors.h - messages of engines, byte for byte.
 */
#ifndef KVR_VECTORS_H
#define KVR_VECTORS_H

#include <stddef.h>

/* "v1" to "v14", "v14_frame"; aborts for others. */
const char *vector_hex(const char *name);
/* The block has its exact size, so that a read past it is detected. free it. */
unsigned char *vector_bytes(const char *hex, size_t *n);

#endif
