/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.c - regions in files; the only code that opens, maps and locks files.
 *
 * FILE LOCKS are separate from the lock in the region: they tell whether any
 * handle is attached. They are open file description locks (F_OFD_SETLK), so
 * the kernel drops them with the last process that has the handle, however
 * that process ends. Two bytes of the file are locked:
 *
 *   byte 0  GATE       held while a handle is being opened: exclusive for
 *                      writers, shared for readers
 *   byte 1  ATTACHED   shared; held by every writing handle until it is closed
 *
 *   open --> GATE --> is any handle attached?
 *                      | no: alone --> create, or recover (recover.c)
 *                      | yes: the region is in order
 *                      `--> ATTACHED --> release GATE
 *
 * A process that dies while it holds GATE is not attached, so the next one is
 * alone again and repeats all of it. Read-only handles are not attached: they
 * change nothing and take no lock in the region, so a writer can be alone
 * beside them.
 *
 * If the creator fails, it removes the file; openers that waited at the gate
 * then have an unlinked file and open the path again.
 *
 * CREATION. All blocks of the file are allocated at once, so a full disk is an
 * error now and not a signal later. The magic number is written last. A
 * creator that dies leaves an empty file, zeros, or a mark of its own; a file
 * of any other kind is never mistaken for that (storage.c).
 */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "file.h"

#include "options.h"
#include "recover.h"
#include "storage.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	TRIES = 100,
	AGAIN = 1, /* not an enum kvr_error: open the path again */
	GATE = 0, ATTACHED = 1, /* locked bytes of the file */
	KINDS = KVR_OPEN_CREATE | KVR_OPEN_ATTACH | KVR_OPEN_READONLY,
	OTHERS_WRITE = S_IWGRP | S_IWOTH
};

static const unsigned char no_boot[KVR_BOOT_ID_BYTES];

/* One call of kvr_open: its arguments and its progress. */
struct file {
	const char *path;   /* NULL: the caller's descriptor */
	uint32_t flags;     /* enum kvr_open_flags */
	const struct kvr_options *options; /* complete */
	bool given;         /* the caller gave options: they must match */
	int fd;
	bool fresh;         /* this call created the file */
	bool blank;         /* no region in it, or not examined yet */
	bool alone;         /* no writing handle is attached */
	uint64_t bytes;     /* of the file */
};

static bool
may(const struct file *f, uint32_t flag)
{
	return (f->flags & flag) != 0;
}

static int
failed(void)
{
	return errno == ENOMEM ? KVR_ENOMEM : KVR_ESYSTEM;
}

/* ----------------------------------------------------------- the locks --- */

/* Waits for the lock; only GATE is ever contended. */
static int
lock_set(const struct file *f, off_t byte, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET,
	    .l_start = byte, .l_len = 1 };
	int result;

	do {
		result = fcntl(f->fd, F_OFD_SETLKW, &l);
	} while (result == -1 && errno == EINTR);
	return result == 0 ? KVR_OK : KVR_ESYSTEM;
}

/* Takes GATE and finds out whether a handle is attached. */
static int
lock_enter(struct file *f)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = ATTACHED, .l_len = 1 };
	int error = lock_set(f, GATE, may(f, KVR_OPEN_READONLY) ? F_RDLCK
	    : F_WRLCK);

	if (error != KVR_OK)
		return error;
	if (fcntl(f->fd, F_OFD_GETLK, &l) == -1)
		return KVR_ESYSTEM;
	f->alone = l.l_type == F_UNLCK;
	return KVR_OK;
}

/* --------------------------------------------------- what is in a file --- */

/*
 * The file must be regular and, unless trusted, neither owned nor writable by
 * other users.
 */
static int
file_look(struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st) == -1)
		return KVR_ESYSTEM;
	if (!S_ISREG(st.st_mode))
		return KVR_EINVAL;
	f->bytes = (uint64_t)st.st_size;
	if (f->path == NULL)
		return KVR_OK;
	if (st.st_nlink == 0)
		return AGAIN;
	if (!may(f, KVR_OPEN_TRUST) && (st.st_uid != geteuid() ||
	    (st.st_mode & OTHERS_WRITE) != 0))
		return KVR_EPERM;
	return KVR_OK;
}

static int
file_map(const struct file *f, struct kvr *k)
{
	int protection = PROT_READ;

	if (f->bytes < sizeof(struct region) || f->bytes > PTRDIFF_MAX)
		return KVR_EFORMAT;
	if (!may(f, KVR_OPEN_READONLY))
		protection |= PROT_WRITE;
	k->mapped_bytes = (size_t)f->bytes;
	k->mapped = mmap(NULL, k->mapped_bytes, protection, MAP_SHARED, f->fd,
	    0);
	if (k->mapped != MAP_FAILED)
		return KVR_OK;
	k->mapped = NULL;
	return failed();
}

/* --------------------------------------------------------------- making --- */

static int
file_allocate(struct file *f, uint64_t bytes)
{
	int error = KVR_OK;

	if (f->bytes != bytes)
		error = storage_cut(f->fd, 0);
	if (error == KVR_OK)
		error = storage_allocate(f->fd, bytes);
	if (error == KVR_OK)
		f->bytes = bytes;
	return error;
}

/* Group before mode: the mode must never apply to the old group. */
static int
file_dress(const struct file *f)
{
	const struct kvr_options *o = f->options;

	if (o->file_group != KVR_AUTO &&
	    fchown(f->fd, (uid_t)-1, (gid_t)o->file_group) == -1)
		return KVR_ESYSTEM;
	return fchmod(f->fd, (mode_t)o->file_mode) == -1 ? KVR_ESYSTEM
	    : KVR_OK;
}

static int
file_fill(struct file *f, uint64_t bytes, struct kvr *k)
{
	struct layout layout;
	int error;

	if (bytes > PTRDIFF_MAX)
		return KVR_EINVAL;
	error = region_layout(f->options, bytes, &layout);
	if (error == KVR_OK && f->path != NULL)
		error = file_dress(f);
	if (error == KVR_OK)
		error = file_allocate(f, bytes);
	if (error == KVR_OK)
		error = file_map(f, k);
	if (error == KVR_OK)
		error = options_format(f->options, k->mapped, bytes, true, k);
	return error;
}

static int
file_make(struct file *f, struct kvr *k)
{
	uint64_t before = f->path == NULL ? f->bytes : 0, bytes = before;
	int error, saved;

	if (bytes == 0)
		bytes = f->options->region_bytes;
	if (f->path != NULL && !may(f, KVR_OPEN_TRUST) &&
	    (f->options->file_mode & OTHERS_WRITE) != 0)
		return KVR_EPERM; /* the next open would refuse it */
	error = file_fill(f, bytes, k);
	if (error == KVR_OK)
		return KVR_OK;
	saved = errno;
	(void)storage_cut(f->fd, before);
	errno = saved;
	return error;
}

/* ------------------------------------------------------------ attaching --- */

static int
file_attach(const struct file *f, struct kvr *k)
{
	int error = file_map(f, k);

	if (error == KVR_OK)
		error = region_attach(k->mapped, f->bytes, k);
	if (error == KVR_OK && f->given)
		error = options_match(f->options, k);
	return error;
}

/* Attaches to an existing region and recovers it if needed. */
static int
file_join(const struct file *f, struct kvr *k)
{
	const unsigned char *boot_id = f->options->boot_id;
	int error;

	if (!may(f, KVR_OPEN_ATTACH))
		return KVR_EEXIST;
	error = file_attach(f, k);
	if (error != KVR_OK)
		return error;
	return f->alone ? recover_alone(k, boot_id)
	    : recover_shared(k, boot_id, f->path != NULL);
}

static int
file_write(struct file *f, struct kvr *k)
{
	int error = storage_blank(f->fd, &f->blank);

	if (error != KVR_OK)
		return error;
	if (!f->blank)
		return file_join(f, k);
	return may(f, KVR_OPEN_CREATE) ? file_make(f, k) : KVR_EFORMAT;
}

/* A region that a writer would recover first is KVR_ESTATE. */
static int
file_read(struct file *f, struct kvr *k)
{
	int error = storage_blank(f->fd, &f->blank);

	if (error == KVR_OK && f->blank)
		error = KVR_EFORMAT;
	if (error == KVR_OK)
		error = file_attach(f, k);
	if (error != KVR_OK)
		return error;
	k->readonly = true;
	if (recover_other_boot(k, f->options->boot_id) ||
	    (f->alone && (atomic_load(&k->region->seq) & 1) != 0))
		return KVR_ESTATE;
	return KVR_OK;
}

/* -------------------------------------------------------------- opening --- */

static bool
open_with(struct file *f, int more)
{
	int mode = may(f, KVR_OPEN_READONLY) ? O_RDONLY : O_RDWR;

	mode |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	do {
		f->fd = open(f->path, mode | more, S_IRUSR | S_IWUSR);
	} while (f->fd == -1 && errno == EINTR);
	return f->fd != -1;
}

static int
open_file(struct file *f)
{
	f->fresh = false;
	f->blank = true;
	if (may(f, KVR_OPEN_ATTACH | KVR_OPEN_READONLY)) {
		if (open_with(f, 0))
			return KVR_OK;
		if (errno != ENOENT || !may(f, KVR_OPEN_CREATE))
			return failed();
	}
	f->fresh = open_with(f, O_CREAT | O_EXCL);
	if (f->fresh)
		return KVR_OK;
	if (errno != EEXIST)
		return failed();
	return may(f, KVR_OPEN_ATTACH) ? AGAIN : KVR_EEXIST;
}

void
file_close(struct kvr *k)
{
	if (k->mapped == NULL)
		return;
	(void)munmap(k->mapped, k->mapped_bytes);
	if (k->fd != -1)
		(void)close(k->fd);
	k->mapped = NULL;
}

/* Unlocks first: a child forked meanwhile shares the open file description. */
static void
leave(const struct file *f)
{
	(void)lock_set(f, GATE, F_UNLCK);
	(void)lock_set(f, ATTACHED, F_UNLCK);
	(void)close(f->fd);
}

/* Undoes the open after an error; keeps errno. */
static void
give_up(const struct file *f, struct kvr *k)
{
	int saved = errno;

	file_close(k);
	if (f->path != NULL) {
		if (f->fresh && f->blank)
			(void)unlink(f->path);
		leave(f);
	}
	errno = saved;
}

/* GATE is held. */
static int
try_inside(struct file *f, struct kvr *k)
{
	int error = file_look(f);

	if (error != KVR_OK)
		return error;
	if (may(f, KVR_OPEN_READONLY))
		return file_read(f, k);
	error = file_write(f, k);
	return error == KVR_OK ? lock_set(f, ATTACHED, F_RDLCK) : error;
}

/* A writing handle keeps the file open, and ATTACHED with it. */
static int
try_file(struct file *f, struct kvr *k)
{
	int error = open_file(f);

	if (error != KVR_OK)
		return error;
	error = file_look(f);
	if (error == KVR_OK)
		error = lock_enter(f);
	if (error == KVR_OK)
		error = try_inside(f, k);
	if (error == KVR_OK && !k->readonly)
		error = lock_set(f, GATE, F_UNLCK);
	if (error != KVR_OK)
		give_up(f, k);
	else if (k->readonly)
		leave(f);
	else
		k->fd = f->fd;
	return error;
}

static int
try_files(struct file *f, struct kvr *k)
{
	uint32_t i;
	int error = AGAIN;

	for (i = 0; i < TRIES && error == AGAIN; i++)
		error = try_file(f, k);
	return error == AGAIN ? KVR_EBUSY : error;
}

/*
 * Takes no file lock: processes that inherited the descriptor share one open
 * file description, which owns its locks.
 */
static int
try_descriptor(struct file *f, struct kvr *k)
{
	int error = file_look(f);

	if (error == KVR_OK)
		error = may(f, KVR_OPEN_READONLY) ? file_read(f, k)
		    : file_write(f, k);
	if (error != KVR_OK)
		give_up(f, k);
	return error;
}

static bool
flags_ok(uint32_t flags)
{
	uint32_t kind = flags & KINDS;

	return (flags & ~(uint32_t)(KINDS | KVR_OPEN_TRUST)) == 0 &&
	    kind != 0 && (kind == KVR_OPEN_READONLY ||
	    (kind & KVR_OPEN_READONLY) == 0);
}

static int
open_handle(struct file *f, const struct kvr_options *options,
    struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error;

	if (out == NULL || !flags_ok(f->flags))
		return KVR_EINVAL;
	error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	if (memcmp(o.boot_id, no_boot, sizeof(no_boot)) == 0)
		storage_boot_id(o.boot_id);
	f->options = &o;
	f->given = options != NULL;
	k->fd = -1;
	error = f->path != NULL ? try_files(f, k) : try_descriptor(f, k);
	if (error != KVR_OK) {
		free(k);
		return error;
	}
	memcpy(k->boot_id, o.boot_id, sizeof(k->boot_id));
	*out = k;
	return KVR_OK;
}

int
kvr_open(const char *path, size_t path_len, uint32_t flags,
    const struct kvr_options *options, struct kvr **out)
{
	char name[PATH_MAX];
	struct file f = { .path = name, .flags = flags, .fd = -1 };

	if (path == NULL || path_len == 0 || path_len >= sizeof(name) ||
	    memchr(path, '\0', path_len) != NULL)
		return KVR_EINVAL;
	memcpy(name, path, path_len);
	name[path_len] = '\0';
	return open_handle(&f, options, out);
}

int
kvr_open_fd(int fd, uint32_t flags, const struct kvr_options *options,
    struct kvr **out)
{
	struct file f = { .flags = flags, .fd = fd };

	if (fd < 0)
		return KVR_EINVAL;
	return open_handle(&f, options, out);
}

int64_t
kvr_clock_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
