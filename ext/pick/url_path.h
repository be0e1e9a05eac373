/* SPDX-License-Identifier: BSD-2-Clause */
/* url_path.h - the path of a URL, as kvh_begin() takes it. */
#ifndef KVROUTE_URL_PATH_H
#define KVROUTE_URL_PATH_H

#include <stddef.h>

enum { URL_PATH_MAX = 1024 };

/* Without its query, decoded, and cut if it is longer; returns its length. */
size_t url_path(const char *text, size_t n, char path[URL_PATH_MAX]);

#endif
