/* SPDX-License-Identifier: BSD-2-Clause */
/* region_file.c - see region_file.h. */
#include "region_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "secret_text.h"

/* ---------------------------------------------------------------- fault --- */

/* root may open a file of the user of its processes: root made it. */
static uint32_t
trust_flags(void)
{
	return geteuid() == 0 ? KVR_OPEN_TRUST : 0;
}

/* The option that a region which exists was made without; "" if unknown. */
static const char *
other_option(const struct region_file *f)
{
	const char *name;
	struct kvr *k;

	if (kvr_open(f->path, f->length, KVR_OPEN_READONLY |
	    trust_flags(), NULL, &k) != KVR_OK)
		return "";
	name = kvr_options_fault(k, f->options);
	kvr_free(k);
	return name != NULL ? name : "";
}

/* Always false. */
static bool
fault_set(const struct region_file *f, struct region_fault *why, int error)
{
	const int saved = errno;

	*why = (struct region_fault){ .error = error, .system = saved,
	    .option = error == KVR_EMISMATCH ? other_option(f) : "" };
	return false;
}

static bool
system_fault(const struct region_file *f, struct region_fault *why, int error)
{
	errno = error;
	return fault_set(f, why, KVR_ESYSTEM);
}

/* ----------------------------------------------------------------- open --- */

static int
digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The boot that CLOCK_MONOTONIC counts from; zeros if unknown. */
static void
boot_read(unsigned char id[KVR_BOOT_ID_BYTES])
{
	const int fd = open("/proc/sys/kernel/random/boot_id",
	    O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n, i;
	size_t digits = 0;
	int d;

	memset(id, 0, KVR_BOOT_ID_BYTES);
	if (fd == -1)
		return;
	n = read(fd, text, sizeof(text));
	(void)close(fd);
	for (i = 0; i < n && digits < 2 * (size_t)KVR_BOOT_ID_BYTES; i++) {
		d = digit_of(text[i]);
		if (d < 0)
			continue;
		id[digits / 2] = (unsigned char)(id[digits / 2] << 4 | d);
		digits++;
	}
}

int
region_file_open(const struct region_file *f, uint32_t flags, struct kvr **k)
{
	struct kvr_options options = *f->options;

	boot_read(options.boot_id);
	return kvr_open(f->path, f->length, flags, &options, k);
}

int
region_file_make(const struct region_file *f, struct kvr **k)
{
	return region_file_open(f, KVR_OPEN_CREATE | KVR_OPEN_ATTACH |
	    trust_flags(), k);
}

/* -------------------------------------------------------------- as user --- */

/* Does root start processes of another user? */
static bool
hands_over(const struct region_file *f)
{
	return geteuid() == 0 && f->user_name != NULL;
}

/* The groups of root, while it acts for such a process. */
struct root {
	gid_t group, *groups;
	int n;
};

static bool
root_leave(struct root *root, const struct region_file *f)
{
	root->group = getegid();
	root->n = getgroups(0, NULL);
	root->groups = malloc(((size_t)root->n + 1) * sizeof(gid_t));
	if (root->groups == NULL)
		return false;
	root->n = getgroups(root->n, root->groups);
	return setegid(f->group) == 0 &&
	    initgroups(f->user_name, f->group) == 0 && seteuid(f->user) == 0;
}

static bool
root_return(struct root *root)
{
	const bool done = root->groups == NULL || (seteuid(0) == 0 &&
	    setegid(root->group) == 0 &&
	    setgroups((size_t)root->n, root->groups) == 0);

	free(root->groups);
	return done;
}

/*
 * Made by root, used by others. More users may be able to write to the folder:
 * by now the path may be a link of theirs.
 */
static bool
file_hand_over(const struct region_file *f, struct region_fault *why)
{
	bool done;
	int fd;

	if (!hands_over(f))
		return true;
	fd = open(f->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	done = fd != -1 && fchown(fd, f->user, f->group) == 0;
	if (!done) {
		(void)fault_set(f, why, KVR_ESYSTEM);
		why->call = REGION_CHOWN;
	}
	if (fd != -1)
		(void)close(fd);
	return done;
}

/* Opens the file as such a process will. */
static bool
file_try(const struct region_file *f, struct region_fault *why)
{
	int error = KVR_ESYSTEM, saved;
	struct kvr *k = NULL;
	struct root root;
	bool back;

	if (!hands_over(f))
		return true;
	if (root_leave(&root, f))
		error = region_file_open(f, KVR_OPEN_ATTACH, &k);
	saved = errno;
	back = root_return(&root);
	kvr_free(k);
	if (back && error == KVR_OK)
		return true;
	if (back)
		errno = saved;
	(void)fault_set(f, why, back ? error : KVR_ESYSTEM);
	why->call = back ? REGION_OPEN : REGION_ROOT;
	why->theirs = true;
	return false;
}

/* -------------------------------------------------------------- prepare --- */

/* Gives the lock file to the user that now owns the region. */
static bool
lock_hand_over(const struct region_file *f, struct region_fault *why)
{
	struct kvr *k;
	const int error = region_file_make(f, &k);

	if (error != KVR_OK)
		return fault_set(f, why, error);
	kvr_free(k);
	return true;
}

bool
region_file_prepare(const struct region_file *f, struct region_fault *why)
{
	struct kvr *k;
	const int error = region_file_make(f, &k);
	bool done;

	if (error != KVR_OK)
		return fault_set(f, why, error);
	/* While it is open here no other process has to check it. */
	done = file_hand_over(f, why) && lock_hand_over(f, why) &&
	    file_try(f, why);
	kvr_free(k);
	return done;
}

/* ----------------------------------------------------------------- test --- */

/* A start applies other times to the region. */
static bool
is_applied(const struct region_file *f, int error)
{
	const char *option = error == KVR_EMISMATCH ? other_option(f) : "";

	return strcmp(option, "ttl_ns") == 0 ||
	    strcmp(option, "lease_limit_ns") == 0;
}

/* The folder of the file, as a text; NULL: no memory. */
static char *
folder_of(const struct region_file *f)
{
	char *folder = malloc(f->length + 1);
	size_t n = f->length;

	if (folder == NULL)
		return NULL;
	memcpy(folder, f->path, n);
	while (n > 1 && folder[n - 1] != '/')
		n--;
	folder[n > 1 ? n - 1 : n] = '\0';
	return folder;
}

/* 0, or why such a process could not reach the files of the folder. */
static int
folder_try(const struct region_file *f, const char *folder)
{
	struct root root;
	int error = 0;

	if (!hands_over(f))
		return 0;
	if (!root_leave(&root, f) ||
	    faccessat(AT_FDCWD, folder, X_OK, AT_EACCESS) != 0)
		error = errno;
	if (!root_return(&root))
		error = errno;
	return error;
}

/* 0, or why a start could not make a file of that size in the folder. */
static int
folder_fault(const struct region_file *f, bool exists)
{
	char *folder = folder_of(f);
	struct statvfs room;
	int error = 0;

	if (folder == NULL)
		return ENOMEM;
	if (statvfs(folder, &room) != 0 || faccessat(AT_FDCWD, folder,
	    (exists ? 0 : W_OK) | X_OK, AT_EACCESS) != 0)
		error = errno;
	else if (!exists && (uint64_t)room.f_bavail * room.f_frsize <
	    f->options->region_bytes)
		error = ENOSPC;
	else
		error = folder_try(f, folder);
	free(folder);
	return error;
}

/* 0, or why such processes could not open a file that is there. */
static int
file_fault(const struct region_file *f, const struct stat *st)
{
	const mode_t needed = S_IRUSR | S_IWUSR;

	if ((st->st_mode & needed) != needed ||
	    faccessat(AT_FDCWD, f->path, R_OK | W_OK, AT_EACCESS) != 0)
		return EACCES;
	return folder_fault(f, true);
}

/* A start would have to make it. */
static bool
new_file_test(const struct region_file *f, struct region_fault *why)
{
	int error;

	if (kvr_options_fault(NULL, f->options) != NULL)
		return fault_set(f, why, KVR_ETOOSMALL);
	error = folder_fault(f, false);
	return error == 0 || system_fault(f, why, error);
}

bool
region_file_test(const struct region_file *f, struct region_fault *why)
{
	struct stat st;
	struct kvr *k;
	int error;

	if (lstat(f->path, &st) != 0)
		return errno == ENOENT ? new_file_test(f, why) :
		    system_fault(f, why, errno);
	if (S_ISREG(st.st_mode) && st.st_size == 0)
		return new_file_test(f, why);
	error = region_file_open(f, KVR_OPEN_READONLY | trust_flags(), &k);
	if (error == KVR_OK)
		kvr_free(k);
	if (error == KVR_OK || error == KVR_ESTATE || error == KVR_EBUSY ||
	    is_applied(f, error))
		error = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0 ? KVR_EPERM :
		    KVR_OK;
	if (error != KVR_OK)
		return fault_set(f, why, error);
	error = file_fault(f, &st);
	return error == 0 || system_fault(f, why, error);
}

/* --------------------------------------------------------------- secret --- */

static const char *
open_file_read(struct kvr_options *o, int fd, struct secret_file *is)
{
	char text[SECRET_TEXT_ROOM];
	struct stat s;
	ssize_t n;

	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
		return "it is no file";
	is->open = (s.st_mode & (S_IROTH | S_IWOTH)) != 0;
	n = read(fd, text, sizeof(text));
	return secret_text_read(o, text, n < 0 ? 0 : (size_t)n);
}

const char *
secret_file_read(struct kvr_options *o, const char *path,
    struct secret_file *is)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const char *why;

	*is = (struct secret_file){ .error = fd < 0 ? errno : 0 };
	if (fd < 0)
		return "the file cannot be opened";
	why = open_file_read(o, fd, is);
	(void)close(fd);
	return why;
}
