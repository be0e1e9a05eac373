/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region_file.h - the file of a region that a master makes for processes of
 * another user.
 *
 * Root makes the file and gives it to that user. The library has the lock file
 * follow when root opens the region again. So root opens it as that user,
 * exactly as those processes will: a refusal that they would get ends the
 * start, and not their predictions.
 */
#ifndef KVROUTE_REGION_FILE_H
#define KVROUTE_REGION_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "kvroute.h"

struct region_file {
	const char *path;       /* with its 0 */
	size_t length;
	const struct kvr_options *options;
	/* of the processes that will open it, if root makes it; else NULL */
	const char *user_name;
	uid_t user;
	gid_t group;
};

enum region_call {
	REGION_OPEN,            /* the library's, or `system` alone */
	REGION_CHOWN,
	REGION_ROOT             /* to become root again */
};

struct region_fault {
	int error;              /* of the library */
	int system;             /* errno, if that is KVR_ESYSTEM */
	enum region_call call;
	bool theirs;            /* of the processes, not of the caller */
	const char *option;     /* that another region has, or "" */
};

/* KVR_OK, or an error of kvr_open. */
int region_file_open(const struct region_file *f, uint32_t flags,
    struct kvr **k);
/* The same for a caller that makes it; root trusts the user's file. */
int region_file_make(const struct region_file *f, struct kvr **k);
/* Makes it, and keeps it ready. False: `why`. */
bool region_file_prepare(const struct region_file *f,
    struct region_fault *why);
/*
 * Could it be made? No file is made or changed. One that is there is read; a
 * fault that only a start could mend is none.
 */
bool region_file_test(const struct region_file *f, struct region_fault *why);

/* The file of a secret, which is named in full: see secret_text.h. */
struct secret_file {
	int error;      /* errno, if it cannot be opened; or 0 */
	bool open;      /* other users may read or write it */
};
const char *secret_file_read(struct kvr_options *o, const char *path,
    struct secret_file *is);

#endif
