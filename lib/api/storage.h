/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * storage.h - the content of an open file, room for a region, the boot's id.
 */
#ifndef KVR_STORAGE_H
#define KVR_STORAGE_H

#include "region.h"

/*
 * Whether a file may be made a region: it is empty, was never finished as one,
 * or is zero throughout.
 */
int storage_blank(int fd, bool *blank);
/* Sets the length of a file. */
int storage_cut(int fd, uint64_t bytes);
/* Allocates the first bytes of a file, whatever signals come meanwhile. */
int storage_allocate(int fd, uint64_t bytes);
/* The id of this boot of the system; zeros if the system has none. */
void storage_boot_id(unsigned char id[KVR_BOOT_ID_BYTES]);

#endif
