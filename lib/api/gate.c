/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gate.c - the lock file of a region in a file.
 *
 * Locks on bytes of a second file, PATH.lock, show which handles are open, and
 * whether their processes live. They are open file description locks:
 * the kernel drops them when the process ends in whatever way, and they mean
 * the same in all containers that see the file.
 *
 *   byte 0       GATE   held while a handle is being opened: exclusive for
 *                       writers, shared for readers
 *   byte 16 + n  seat n held by the handle that has this seat (seat.c)
 *
 *   open --> GATE --> is any seat held?
 *                      | no: alone --> create, or recover (recover.c)
 *                      | yes: the region is in order
 *                      `--> take a seat --> release GATE
 *
 * A process that dies while it holds GATE has no seat, so the next one is alone
 * again and repeats all of it. Handles that only read have no seat: they change
 * nothing and take no lock in the region.
 *
 * WHY A SECOND FILE. To lock a byte a process needs to open the file, and no
 * more: one that may only read a region could keep its writers out for ever.
 * The lock file can be opened only by those that can write the region. It stays
 * where it is when the last handle is closed.
 *
 * A SEAT'S LOCK must not pass to a child by fork: while the child lives, its
 * dead parent would seem to live. So it is not held by a descriptor, but by a
 * mapping that no child gets. It needs a description of its own, as the other
 * one, through which the seats of others are examined, is inherited.
 *
 *   lock file <-- description, locks nothing   <-- descriptor (k->gate)
 *             <-- description, locks byte 16+n <-- mapping, MADV_DONTFORK
 *
 * On a file system that maps another file in its place (overlayfs) the lock
 * would be lost with its descriptor, which is then kept; between processes of
 * one namespace the pid of the seat shows it, too.
 *
 * ONE REGION, TWO LOCK FILES. If a region is reached by two paths (links, a
 * file mounted alone into a container, a file renamed while it is open), each
 * has its own lock file, and each opener would seem to be alone. So writers
 * also hold a shared lock on byte 1 of the region's file, and the region names
 * the lock file used last: file.c refuses another one while that byte is held.
 */
#define _GNU_SOURCE /* F_OFD_SETLK, MADV_DONTFORK */
#include "gate.h"

#include "lock.h"
#include "seat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { GATE = 0, MAKE_TRIES = 100, OWNER_ONLY = S_IRUSR | S_IWUSR };
#define GATE_WAIT_NS INT64_C(300000000000)
#define NAP_NS 1000000

static const char suffix[] = ".lock";

/* Does not wait. */
static int
gate_lock(int fd, off_t byte, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET,
	    .l_start = byte, .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) == 0 ? KVR_OK : KVR_ESYSTEM;
}

/*
 * Another process may recover a large region meanwhile; one that is stopped, or
 * means harm, holds GATE for ever.
 */
static int
gate_wait(const struct entrance *g)
{
	const struct timespec nap = { 0, NAP_NS };
	int64_t since = lock_clock();

	while (gate_lock(g->fd, GATE, g->read ? F_RDLCK : F_WRLCK) != KVR_OK) {
		if (errno != EAGAIN && errno != EACCES)
			return KVR_ESYSTEM;
		if (lock_clock() - since >= g->wait_ns)
			return KVR_EBUSY;
		(void)nanosleep(&nap, NULL);
	}
	return KVR_OK;
}

/* False, with errno, if the path is too long for the suffix. */
bool
gate_name(struct entrance *g, const char *path)
{
	size_t length = strlen(path), last = 0;

	g->fd = -1;
	g->wait_ns = GATE_WAIT_NS;
	while (last < length && path[length - last - 1] != '/')
		last++;
	if (length + sizeof(suffix) > sizeof(g->path) ||
	    last + sizeof(suffix) - 1 > NAME_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	memcpy(g->path, path, length);
	memcpy(g->path + length, suffix, sizeof(suffix));
	return true;
}

/* ----------------------------------------------------------- opening it --- */

static int
gate_open(const struct entrance *g, int more)
{
	int mode = g->read ? O_RDONLY : O_RDWR, fd;

	mode |= O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
	do {
		fd = open(g->path, mode | more, OWNER_ONLY);
	} while (fd == -1 && errno == EINTR);
	return fd;
}

/* An empty file that nothing else can be: root must not give others' away. */
static bool
gate_is_own(const struct entrance *g, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_size == 0 && st->st_nlink == 1 &&
	    (g->made || st->st_uid == geteuid() || st->st_uid == g->user);
}

/*
 * Users that can write the region may read and write the lock file, also after
 * the region was given to another user, or was opened to others for a while.
 * The mode must not apply to another group than the region's. Without the right
 * to do this it stays as it is.
 */
void
gate_dress(const struct entrance *g, const struct stat *region)
{
	mode_t mode = region->st_mode & (S_IWUSR | OTHERS_WRITE);
	struct stat st;

	mode |= mode << 1 | OWNER_ONLY;
	if (fstat(g->fd, &st) == -1 || !gate_is_own(g, &st))
		return;
	if ((st.st_uid != region->st_uid || st.st_gid != region->st_gid) &&
	    fchown(g->fd, region->st_uid, region->st_gid) == -1 &&
	    fchown(g->fd, (uid_t)-1, region->st_gid) == -1)
		return;
	if ((st.st_mode & 07777) != mode)
		(void)fchmod(g->fd, mode);
}

/* Others may make it, or remove it, at the same time. */
static int
gate_make(struct entrance *g)
{
	uint32_t i;

	for (i = 0; i < MAKE_TRIES; i++) {
		g->fd = gate_open(g, 0);
		if (g->fd != -1)
			return KVR_OK;
		if (errno != ENOENT || g->read)
			return KVR_ESYSTEM;
		g->fd = gate_open(g, O_CREAT | O_EXCL);
		g->made = g->fd != -1;
		if (g->made)
			return KVR_OK;
		if (errno != EEXIST)
			return KVR_ESYSTEM;
	}
	return OPEN_AGAIN;
}

/* Is the file still the one that others find, and can it be trusted? */
static int
gate_look(struct entrance *g)
{
	struct stat st;

	if (fstat(g->fd, &st) == -1)
		return KVR_ESYSTEM;
	if (!S_ISREG(st.st_mode))
		return KVR_EINVAL;
	if (st.st_nlink == 0)
		return OPEN_AGAIN;
	if (!g->trust && ((st.st_mode & OTHERS_WRITE) != 0 ||
	    (st.st_uid != geteuid() && st.st_uid != g->user)))
		return KVR_EPERM;
	g->device = (uint64_t)st.st_dev;
	g->inode = (uint64_t)st.st_ino;
	return KVR_OK;
}

/*
 * Opens the lock file, waits for GATE, and finds out whether a seat is held. A
 * reader that may not open the file does without: fd is -1.
 */
int
gate_enter(struct entrance *g, int region)
{
	struct stat st;
	int error, held;

	if (fstat(region, &st) == -1)
		return KVR_ESYSTEM;
	g->user = st.st_uid;
	g->entered = false;
	error = gate_make(g);
	if (error == KVR_OK && !g->read)
		gate_dress(g, &st);
	if (error == KVR_OK)
		error = gate_look(g);
	if (error == KVR_OK)
		error = gate_wait(g);
	if (error == KVR_OK)
		error = gate_look(g);
	if (error != KVR_OK && error != OPEN_AGAIN && error != KVR_EBUSY &&
	    g->read) {
		gate_leave(g, true);
		return KVR_OK;
	}
	if (error != KVR_OK)
		return error;
	g->entered = true;
	held = seat_byte_held(g->fd, 0, SEATS_MAX);
	if (held == -1)
		return KVR_ESYSTEM;
	g->alone = held == 0;
	return KVR_OK;
}

/* The number of this lock file, never 0. */
uint64_t
gate_number(const struct entrance *g)
{
	return (g->inode * UINT64_C(0x9e3779b97f4a7c15) ^ g->device) | 1;
}

/* ----------------------------------------------------------- a seat --- */

/* Opens the same file again. */
static int
seat_open(const struct entrance *g)
{
	int fd = gate_open(g, 0);
	struct stat st;

	if (fd != -1 && fstat(fd, &st) == 0 &&
	    (uint64_t)st.st_ino == g->inode &&
	    (uint64_t)st.st_dev == g->device)
		return fd;
	if (fd != -1)
		(void)close(fd);
	return -1;
}

/* Locks the byte of a seat; its number, or an error. */
static int
seat_lock(int fd, uint32_t seats)
{
	uint32_t i;

	for (i = 0; i < seats; i++) {
		if (gate_lock(fd, SEAT_BYTES + (off_t)i, F_WRLCK) ==
		    KVR_OK)
			return (int)i;
		if (errno != EAGAIN && errno != EACCES)
			return KVR_ESYSTEM;
	}
	return KVR_EFULL;
}

/* Leaves the lock to the mapping alone; false if it has to be kept open. */
static bool
seat_map(const struct entrance *g, struct kvr *k, uint32_t seat)
{
	/* the file may be empty: nothing of it is read */
	k->seat_map = mmap(NULL, 1, PROT_READ, MAP_SHARED, k->seat_fd, 0);
	if (k->seat_map == MAP_FAILED) {
		k->seat_map = NULL;
		return false;
	}
	if (madvise(k->seat_map, 1, MADV_DONTFORK) == -1)
		return false;
	(void)close(k->seat_fd);
	k->seat_fd = -1;
	return seat_byte_held(g->fd, seat, 1) == 1;
}

/* Takes a seat. GATE is held, so nothing competes for the bytes. */
int
gate_sit(struct entrance *g, struct kvr *k)
{
	int seat;

	k->seat_fd = seat_open(g);
	if (k->seat_fd == -1)
		return OPEN_AGAIN;
	seat = seat_lock(k->seat_fd, k->layout.seats);
	if (seat < 0)
		return seat;
	if (!seat_map(g, k, (uint32_t)seat)) {
		if (k->seat_map == NULL)
			return errno == ENOMEM ? KVR_ENOMEM : KVR_ESYSTEM;
		if (k->seat_fd == -1)
			k->seat_fd = seat_open(g);
		if (k->seat_fd == -1 || gate_lock(k->seat_fd,
		    SEAT_BYTES + (off_t)seat, F_WRLCK) != KVR_OK)
			return KVR_ESYSTEM;
	}
	k->gate = g->fd;
	k->gate_inode = g->inode;
	k->gate_device = g->device;
	seat_claim(k, (uint32_t)seat);
	return KVR_OK;
}

/* ------------------------------------------------------------- closing --- */

/*
 * At the end of an open; the descriptor is the handle's if it succeeded. A lock
 * file that this call made is removed only under GATE: another process may have
 * entered by it meanwhile.
 */
void
gate_leave(struct entrance *g, bool failed)
{
	int saved = errno;

	if (g->fd == -1)
		return;
	if (failed && g->made && g->entered)
		(void)unlink(g->path);
	/* a child forked meanwhile shares the open file description */
	(void)gate_lock(g->fd, GATE, F_UNLCK);
	if (failed || g->read) {
		(void)close(g->fd);
		g->fd = -1;
	}
	g->made = g->entered = false;
	errno = saved;
}

/* Gives up the lock of the seat. A child after fork has no mapping of it. */
void
gate_close(struct kvr *k)
{
	if (k->seat_map != NULL && seat_here(k))
		(void)munmap(k->seat_map, 1);
	if (k->seat_fd != -1) {
		if (seat_here(k))
			(void)gate_lock(k->seat_fd, SEAT_BYTES + (off_t)
			    ((k->me & LOCK_SEAT) - 1), F_UNLCK);
		(void)close(k->seat_fd);
	}
	if (k->gate != -1 && seat_gate_known(k))
		(void)close(k->gate);
	k->seat_map = NULL;
	k->gate = k->seat_fd = -1;
}
