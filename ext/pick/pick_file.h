/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick_file.h - a file with a configuration: it is looked at once a second, and
 * read when it has changed and then stayed as it is until the next look.
 */
#ifndef KVROUTE_PICK_FILE_H
#define KVROUTE_PICK_FILE_H

#include <sys/stat.h>

#include "pick_conf.h"

struct pick_file {
	const char *path;
	struct stat read;
	struct stat seen;    /* by the last look */
};

void pick_file_begin(struct pick_file *f, const char *path);
/* true: it is to be read. */
bool pick_file_changed(struct pick_file *f);
/* false: `error` is why, to be put behind the path and a colon. */
bool pick_file_read(const char *path, struct pick_conf *conf,
    char error[CONF_ERROR_MAX]);

#endif
