/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_files.h - loads recorded sessions: files, and all *.json files of
 * directories, in the order of their names.
 */
#ifndef KVROUTE_SESSION_FILES_H
#define KVROUTE_SESSION_FILES_H

#include <stddef.h>

struct session;

enum { SESSION_FILES_MAX = 100000 };

/* Zero-initialized: empty. */
struct session_files {
	struct session **list;
	size_t n;
	size_t capacity;
};

/* Exits with a message if something cannot be read. */
void session_files_add(struct session_files *f, const char *path);
void session_files_free(struct session_files *f);

#endif
