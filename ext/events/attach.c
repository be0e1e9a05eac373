/* SPDX-License-Identifier: BSD-2-Clause */
/* attach.c - see attach.h. */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

/*
 * The byte of the region's file that is locked; the library locks byte 1 there,
 * and kvroute-sync none.
 */
enum { BYTE = 64 };

void
attach_init(struct attach *a, const char *path)
{
	memset(a, 0, sizeof(*a));
	a->path = path;
	a->lock = -1;
	a->looked = -1;
}

void
attach_end(struct attach *a)
{
	kvr_free(a->k);
	a->k = NULL;
	if (a->lock != -1)
		close(a->lock);
	a->lock = -1;
}

static bool
failed(struct attach *a, const char *why)
{
	snprintf(a->why, sizeof(a->why), "%s", why);
	attach_end(a);
	return false;
}

bool
attach_due(struct attach *a, int64_t now)
{
	struct stat st;

	if (a->looked >= 0 && now - a->looked < SECOND)
		return false;
	a->looked = now;
	if (stat(a->path, &st) != 0) {
		if (a->k == NULL)
			(void)failed(a, errno == ENOENT ? "it is not there yet"
			    : strerror(errno));
		return false;
	}
	return a->k == NULL || st.st_dev != a->device || st.st_ino != a->file;
}

static bool
take(struct attach *a)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = BYTE, .l_len = 1 };
	struct stat st;

	a->lock = open(a->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (a->lock == -1 || fstat(a->lock, &st) != 0)
		return failed(a, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return failed(a, "it is no file");
	a->device = st.st_dev;
	a->file = st.st_ino;
	if (fcntl(a->lock, F_OFD_SETLK, &l) == 0)
		return true;
	return failed(a, errno == EAGAIN || errno == EACCES ?
	    "another kvroute-events has it" : strerror(errno));
}

/* The name may have come to mean another file between the two. */
static bool
same(const struct attach *a)
{
	struct stat st;

	return stat(a->path, &st) == 0 && st.st_dev == a->device &&
	    st.st_ino == a->file;
}

bool
attach_now(struct attach *a)
{
	int error;

	attach_end(a);
	if (!take(a))
		return false;
	error = kvr_open(a->path, strlen(a->path), KVR_OPEN_ATTACH, NULL,
	    &a->k);
	if (error != KVR_OK) {
		a->k = NULL;
		return failed(a, error == KVR_ESYSTEM ? strerror(errno) :
		    kvr_strerror(error));
	}
	if (!same(a))
		return failed(a, "it has just been replaced");
	a->why[0] = '\0';
	a->times++;
	return true;
}
