/* SPDX-License-Identifier: BSD-2-Clause */
/* secret_text.h - the secret of a region: 32 bytes, or their 64 digits. */
#ifndef KVROUTE_SECRET_TEXT_H
#define KVROUTE_SECRET_TEXT_H

#include <stdbool.h>

#include "kvroute.h"

enum { SECRET_BYTES = 32, SECRET_TEXT_ROOM = 2 * SECRET_BYTES + 3 };

/* The content of its file. NULL, or why it is no secret. */
const char *secret_text_read(struct kvr_options *o, const char *text,
    size_t n);
/* Its file, which is named in full. */
struct secret_file {
	int error;      /* errno, if it cannot be opened; or 0 */
	bool open;      /* other users may read or write it */
};
const char *secret_file_read(struct kvr_options *o, const char *path,
    struct secret_file *is);

#endif
