/* SPDX-License-Identifier: BSD-2-Clause */
/* secret_text.h - the secret of a region: 32 bytes, or their 64 digits. */
#ifndef KVROUTE_SECRET_TEXT_H
#define KVROUTE_SECRET_TEXT_H

#include "kvroute.h"

enum { SECRET_BYTES = 32, SECRET_TEXT_ROOM = 2 * SECRET_BYTES + 3 };

/* The content of its file. NULL, or why it is no secret. */
const char *secret_text_read(struct kvr_options *o, const char *text,
    size_t n);
#endif
