/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate.h - the lock file of a region in a file: gate.c.
 */
#ifndef KVR_GATE_H
#define KVR_GATE_H

#include "region.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

enum {
	OPEN_AGAIN = 1, /* not an enum kvr_error: begin again with the path */
	OTHERS_WRITE = 0022
};

/* The lock file during one call of kvr_open. */
struct entrance {
	int fd;          /* -1: none */
	bool made;       /* this call made it */
	bool entered;    /* GATE is held, of the file that others find */
	bool read;       /* for a handle that reads only */
	bool trust;      /* its owner and mode are not examined */
	bool alone;      /* no handle that writes is open */
	uid_t user;      /* of the region's file */
	int64_t wait_ns; /* for GATE; then KVR_EBUSY */
	uint64_t device, inode; /* of the lock file */
	char path[PATH_MAX + 8];
};

bool gate_name(struct entrance *g, const char *path);
int gate_enter(struct entrance *g, int region);
void gate_dress(const struct entrance *g, const struct stat *region);
int gate_sit(struct entrance *g, struct kvr *k);
void gate_leave(struct entrance *g, bool failed);
void gate_close(struct kvr *k);
uint64_t gate_number(const struct entrance *g);

#endif
