/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.h - regions in files.
 */
#ifndef KVR_FILE_H
#define KVR_FILE_H

#include "region.h"

void file_close(struct kvr *k);

#endif
