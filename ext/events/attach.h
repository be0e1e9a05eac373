/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * attach.h - a region file of this machine: waited for while it is not there,
 * and noticed when another file has its name.
 */
#ifndef KVROUTE_ATTACH_H
#define KVROUTE_ATTACH_H

#include <kvroute.h>

#include <stdbool.h>
#include <sys/types.h>

enum { ATTACH_WHY_MAX = 160 };

struct attach {
	const char *path;
	struct kvr *k;       /* NULL: not attached */
	int lock;            /* one daemon for a region; -1: none */
	dev_t device;
	ino_t file;
	int64_t looked;      /* -1: never */
	uint64_t times;      /* that it was attached */
	char why[ATTACH_WHY_MAX]; /* it is not */
};

void attach_init(struct attach *a, const char *path);
/* All objects that were made with k must be gone before. */
void attach_end(struct attach *a);
/*
 * Once a second: is there a file to attach to, which is not the one that is
 * attached? A file that was only removed is still the router's.
 */
bool attach_due(struct attach *a, int64_t now);
/* Attaches to the file that is there now. false: `why` has the reason. */
bool attach_now(struct attach *a);

#endif
