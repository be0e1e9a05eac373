/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.c - regions in files; the only code that opens, maps and locks files.
 *
 * Handles are opened one at a time, and one that finds no other writer is
 * alone: gate.c. A writer can be alone beside readers, which change nothing.
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

#include "gate.h"
#include "lock.h"
#include "options.h"
#include "recover.h"
#include "seat.h"
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
	ATTACHED = 1, /* the byte that writers lock, shared: gate.c */
	LOOKS = 100,  /* at a change that another process makes */
	KINDS = KVR_OPEN_CREATE | KVR_OPEN_ATTACH | KVR_OPEN_READONLY
};

static const unsigned char no_boot[KVR_BOOT_ID_BYTES];

/* One call of kvr_open: its arguments and its progress. */
struct file {
	const char *path;   /* NULL: the caller's descriptor */
	uint32_t flags;     /* enum kvr_open_flags */
	const struct kvr_options *options; /* complete */
	bool given;         /* the caller gave options: they must match */
	int fd;
	bool made;          /* this call created a file at the path, */
	bool fresh;         /* and it is this one */
	bool blank;         /* no region in it, or not examined yet */
	uint64_t bytes;     /* of the file */
	struct entrance gate;   /* unused if there is no path */
};

static bool
has_flag(const struct file *f, uint32_t flag)
{
	return (f->flags & flag) != 0;
}

static int
system_error(void)
{
	return errno == ENOMEM ? KVR_ENOMEM : KVR_ESYSTEM;
}

/* ------------------------------------------------------------- attached --- */

/* Never waits: a lock for writing is not in use. */
static int
attached_set(int fd, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET,
	    .l_start = ATTACHED, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) == 0 ? KVR_OK : KVR_ESYSTEM;
}

/* KVR_EMISMATCH: another handle has locked ATTACHED, too. */
static int
attached_alone(int fd)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = ATTACHED, .l_len = 1 };

	if (fcntl(fd, F_OFD_GETLK, &l) == -1)
		return KVR_ESYSTEM;
	return l.l_type == F_UNLCK ? KVR_OK : KVR_EMISMATCH;
}

/*
 * The region's lock file must be the one that all its open handles use. This
 * handle has locked ATTACHED. Two may come by different lock files at once.
 * Each locks, and then looks at the number: one that writes its own looks at
 * the lock again, so that at most one of them goes on.
 */
static int
attached_check(const struct file *f, struct kvr *k)
{
	uint64_t number = gate_number(&f->gate), before;
	int error;

	atomic_thread_fence(memory_order_seq_cst);
	before = read_once(k->region->gate);
	if (before == number)
		return KVR_OK;
	error = attached_alone(f->fd);
	if (error != KVR_OK)
		return error;
	write_once(k->region->gate, number);
	atomic_thread_fence(memory_order_seq_cst);
	error = attached_alone(f->fd);
	if (error != KVR_OK)
		write_once(k->region->gate, before);
	return error;
}

/* The handle takes a seat. Nothing is known of a descriptor's other users. */
static int
file_sit(struct file *f, struct kvr *k)
{
	uint32_t kind = f->path != NULL ? REGION_FILE : REGION_MEMORY;
	int error;

	if (k->kind != kind)
		return KVR_EMISMATCH;
	error = seat_own(k);
	if (error != KVR_OK || kind == REGION_MEMORY)
		return error != KVR_OK ? error : seat_take(k);
	error = attached_set(f->fd, F_RDLCK);
	if (error == KVR_OK)
		error = attached_check(f, k);
	if (error == KVR_OK && f->gate.alone) {
		seats_reset(k);
		region_lock_reset(k->region);
	}
	return error == KVR_OK ? gate_sit(&f->gate, k) : error;
}

/* ----------------------------------------------- the content of a file --- */

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
		return OPEN_AGAIN;
	if (!has_flag(f, KVR_OPEN_TRUST) && (st.st_uid != geteuid() ||
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
	if (!has_flag(f, KVR_OPEN_READONLY))
		protection |= PROT_WRITE;
	k->mapped_bytes = (size_t)f->bytes;
	k->mapped = mmap(NULL, k->mapped_bytes, protection, MAP_SHARED, f->fd,
	    0);
	if (k->mapped != MAP_FAILED)
		return KVR_OK;
	k->mapped = NULL;
	return system_error();
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
file_dress(struct file *f)
{
	const struct kvr_options *o = f->options;
	struct stat st;

	if (o->file_group != KVR_AUTO &&
	    fchown(f->fd, (uid_t)-1, (gid_t)o->file_group) == -1)
		return KVR_ESYSTEM;
	if (fchmod(f->fd, (mode_t)o->file_mode) == -1 ||
	    fstat(f->fd, &st) == -1)
		return KVR_ESYSTEM;
	gate_dress(&f->gate, &st);
	return KVR_OK;
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
		error = options_format(f->options, k->mapped, bytes,
		    f->path != NULL ? REGION_FILE : REGION_MEMORY, k);
	return error == KVR_OK ? file_sit(f, k) : error;
}

static int
file_make(struct file *f, struct kvr *k)
{
	uint64_t before = f->path == NULL ? f->bytes : 0, bytes = before;
	int error, saved;

	if (bytes == 0)
		bytes = f->options->region_bytes;
	if (f->path != NULL && !has_flag(f, KVR_OPEN_TRUST) &&
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
	if (error == KVR_OK && f->given && has_flag(f, KVR_OPEN_READONLY))
		error = options_match_limits(f->options, k);
	return error;
}

/* Attaches to an existing region and recovers it if needed. */
static int
file_join(struct file *f, struct kvr *k)
{
	const unsigned char *boot_id = f->options->boot_id;
	int error;

	if (!has_flag(f, KVR_OPEN_ATTACH))
		return KVR_EEXIST;
	error = file_attach(f, k);
	if (error == KVR_OK)
		error = file_sit(f, k);
	if (error != KVR_OK)
		return error;
	error = f->path != NULL && f->gate.alone ? recover_alone(k, boot_id)
	    : recover_shared(k, boot_id, f->path != NULL);
	return error == KVR_OK && f->given ? recover_limits(k, f->options,
	    f->path != NULL) : error;
}

static int
file_write(struct file *f, struct kvr *k)
{
	int error = storage_blank(f->fd, &f->blank);

	if (error != KVR_OK)
		return error;
	if (!f->blank)
		return file_join(f, k);
	return has_flag(f, KVR_OPEN_CREATE) ? file_make(f, k) : KVR_EFORMAT;
}

/*
 * Is the region consistent, or will it be when the change is made that is now
 * in progress? If a reader may not open the lock file it can only watch.
 */
static bool
file_settled(const struct file *f, const struct kvr *k)
{
	const struct timespec nap = { 0, 1000000 };
	uint64_t seq = atomic_load(&k->region->seq);
	uint32_t i;

	if ((seq & 1) == 0 || f->path == NULL)
		return true;
	if (f->gate.fd != -1)
		return !f->gate.alone;
	for (i = 0; i < LOOKS && atomic_load(&k->region->seq) == seq; i++)
		(void)nanosleep(&nap, NULL);
	return i < LOOKS;
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
	return recover_other_boot(k, f->options->boot_id) ||
	    !file_settled(f, k) ? KVR_ESTATE : KVR_OK;
}

/* -------------------------------------------------------------- opening --- */

static bool
open_with(struct file *f, int more)
{
	int mode = has_flag(f, KVR_OPEN_READONLY) ? O_RDONLY : O_RDWR;

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
	if (f->made || has_flag(f, KVR_OPEN_ATTACH | KVR_OPEN_READONLY)) {
		if (open_with(f, 0))
			return KVR_OK;
		if (errno != ENOENT || !has_flag(f, KVR_OPEN_CREATE))
			return system_error();
	}
	f->fresh = open_with(f, O_CREAT | O_EXCL);
	f->made |= f->fresh;
	if (f->fresh)
		return KVR_OK;
	if (errno != EEXIST)
		return system_error();
	return f->made || has_flag(f, KVR_OPEN_ATTACH)
	    ? OPEN_AGAIN : KVR_EEXIST;
}

/* A child forked meanwhile shares the open file description and its lock. */
static void
leave_file(int fd, bool mine)
{
	if (mine)
		(void)attached_set(fd, F_UNLCK);
	(void)close(fd);
}

void
file_close(struct kvr *k)
{
	if (k->mapped == NULL)
		return;
	seat_leave(k);
	gate_close(k);
	(void)munmap(k->mapped, k->mapped_bytes);
	if (k->fd != -1)
		leave_file(k->fd, seat_here(k));
	k->mapped = NULL;
}

/*
 * Undoes the open after an error; keeps errno. Only under GATE is it certain
 * that nothing else has made a region of the empty file meanwhile.
 */
static void
give_up(struct file *f, struct kvr *k)
{
	int saved = errno;

	k->gate = -1; /* the call's own */
	file_close(k);
	seat_disown(k);
	if (f->path != NULL) {
		if (f->fresh && f->blank && f->gate.entered)
			(void)unlink(f->path);
		gate_leave(&f->gate, true);
		leave_file(f->fd, true);
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
	if (has_flag(f, KVR_OPEN_READONLY))
		return file_read(f, k);
	return file_write(f, k);
}

/* A writing handle keeps both files open. */
static int
try_file(struct file *f, struct kvr *k)
{
	int error = open_file(f);

	if (error != KVR_OK)
		return error;
	error = file_look(f);
	if (error == KVR_OK)
		error = gate_enter(&f->gate, f->fd);
	if (error == KVR_OK)
		error = try_inside(f, k);
	if (error != KVR_OK) {
		give_up(f, k);
		return error;
	}
	gate_leave(&f->gate, false);
	if (k->readonly)
		leave_file(f->fd, true);
	else
		k->fd = f->fd;
	return KVR_OK;
}

static int
try_files(struct file *f, struct kvr *k)
{
	uint32_t i;
	int error = OPEN_AGAIN;

	if (!gate_name(&f->gate, f->path))
		return KVR_ESYSTEM;
	f->gate.read = has_flag(f, KVR_OPEN_READONLY);
	f->gate.trust = has_flag(f, KVR_OPEN_TRUST);
	for (i = 0; i < TRIES && error == OPEN_AGAIN; i++)
		error = try_file(f, k);
	return error == OPEN_AGAIN ? KVR_EBUSY : error;
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
		error = has_flag(f, KVR_OPEN_READONLY) ? file_read(f, k)
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
	k->fd = k->gate = k->seat_fd = -1;
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
	return lock_clock();
}
