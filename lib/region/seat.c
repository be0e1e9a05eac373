/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * seat.c - which handles use a region, and whether their processes live.
 *
 * Each handle that may write has a seat in the region while it is open. The
 * lock word names its owner by seat and turn (lock.c). A process that waits
 * asks: does the handle with this seat and this turn still have a process?
 *
 *   seat 1   pid 4711  started at 5083  turn 1    a handle
 *   seat 2   pid 4711  started at 5083  turn 7    another one of its process
 *   seat 3   free                       turn 2
 *
 * A seat whose turn has gone on is answered at once: that handle is closed, or
 * its seat was taken over because it was dead. Otherwise it depends on what
 * kind of region it is:
 *
 *   file     The handle holds a lock on its seat's byte of a file that only
 *            writers can open (gate.c). The kernel drops it with the process,
 *            and shows it to each container. Where a child can have inherited
 *            it, the process must live too, as below.
 *   memory   of the caller. The pid must exist, not be a zombie, and have
 *            started at the time in the seat, as pids are used again. Pids mean
 *            something in one PID namespace only: the region keeps the number
 *            of its namespace, and processes of another one are refused.
 *   private  has one seat, whose process lives.
 *
 * In doubt a process counts as alive: /proc may be missing or that of another
 * namespace, and then pids alone count. Where even the namespace is not known,
 * pids mean nothing.
 *
 * AFTER FORK a child has the memory of a handle but not its life: the lock
 * would name its parent, and private memory is a copy that another thread may
 * have been changing. A page of the handle is zero in the child (`own`), and
 * its calls are refused. A page costs no call anything; asking the system for
 * the process would.
 */
#define _GNU_SOURCE /* F_OFD_GETLK, MADV_WIPEONFORK */
#include "seat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	STAT_MAX = 1024,     /* bytes of /proc/pid/stat */
	STAT_THREADS = 17, STAT_START = 19, /* fields after the state */
	PATH_BYTES = 32,
	TURN_MAX = LOCK_OWNER >> LOCK_TURN_SHIFT
};

/* --------------------------------------------------------- a process --- */

/* A process as /proc describes it. */
struct status {
	bool ended;    /* a zombie, all of it */
	uint64_t start; /* low bits of its start time */
};

/* Writes /proc/PID/stat; there is no stdio in the library. */
static void
status_path(char *path, uint32_t pid)
{
	static const char before[] = "/proc/", after[] = "/stat";
	char digits[10];
	size_t n = 0, at = sizeof(before) - 1;

	memcpy(path, before, at);
	do
		digits[n++] = (char)('0' + pid % 10);
	while ((pid /= 10) > 0);
	while (n > 0)
		path[at++] = digits[--n];
	memcpy(path + at, after, sizeof(after));
}

static uint64_t
status_number(const char *text)
{
	uint64_t n = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		n = n * 10 + (uint64_t)(*text - '0');
	return n;
}

/*
 * The text ends in a NUL. The second field is the program's name in
 * parentheses, and may hold anything.
 */
static bool
status_parse(const char *text, size_t length, struct status *s)
{
	uint64_t threads = 0;
	const char *at = text + length;
	uint32_t field;
	char state;

	while (at > text && *at != ')')
		at--;
	if (at == text || at[1] != ' ' || at[2] == '\0')
		return false;
	at += 2;
	state = *at;
	for (field = 0; field < STAT_START; field++) {
		while (*at != ' ')
			if (*at++ == '\0')
				return false;
		at++;
		if (field + 1 == STAT_THREADS)
			threads = status_number(at);
	}
	s->start = status_number(at) & HOLDER_START;
	/* a first thread that ended alone is shown as a zombie too */
	s->ended = state == 'X' || (state == 'Z' && threads <= 1);
	return true;
}

static bool
status_read(uint32_t pid, struct status *s)
{
	char path[PATH_BYTES], text[STAT_MAX];
	ssize_t n;
	int fd;

	status_path(path, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return status_parse(text, (size_t)n, s);
}

/* Is /proc that of this process' PID namespace? */
static bool
status_known(uint32_t pid)
{
	char text[PATH_BYTES];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return status_number(text) == pid;
}

/* The number of this process' PID namespace; 0: not known. */
uint64_t
seat_room(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* A process of this namespace; the holder names one. */
static bool
process_alive(uint64_t holder)
{
	uint64_t start = holder >> HOLDER_START_SHIFT & HOLDER_START;
	uint32_t pid = (uint32_t)(holder & HOLDER_PID);
	struct status s;

	if (kill((pid_t)pid, 0) == -1 && errno == ESRCH)
		return false;
	if (!status_known((uint32_t)getpid()) || !status_read(pid, &s))
		return true;
	return !s.ended && (start == 0 || s.start == start);
}

/* ------------------------------------------------------------- seats --- */

static uint32_t
turn_of(uint64_t holder)
{
	return (uint32_t)(holder >> HOLDER_TURN_SHIFT);
}

/* A byte of the lock file: 1 held, 0 free, -1 not known. */
int
seat_byte_held(int fd, uint32_t seat, uint32_t seats)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET,
	    .l_start = SEAT_BYTES + (off_t)seat, .l_len = (off_t)seats };

	if (fcntl(fd, F_OFD_GETLK, &l) == -1)
		return -1;
	return l.l_type != F_UNLCK;
}

/* The caller may have closed the descriptor, and have it used again. */
bool
seat_gate_known(const struct kvr *k)
{
	struct stat st;

	return fstat(k->gate, &st) == 0 &&
	    (uint64_t)st.st_ino == k->gate_inode &&
	    (uint64_t)st.st_dev == k->gate_device;
}

static bool
seat_alive_in_file(const struct kvr *k, uint32_t seat, uint64_t holder)
{
	struct seat *s = &k->seats[seat];
	uint64_t room;

	if (!seat_gate_known(k))
		return true;
	if (seat_byte_held(k->gate, seat, 1) == 0)
		return false;
	room = atomic_load(&s->room);
	if (room == 0 || room != k->room || atomic_load(&s->holder) != holder)
		return true;
	return process_alive(holder);
}

/* Does the handle live that this lock word names? */
bool
seat_alive(const struct kvr *k, uint32_t word)
{
	uint32_t seat = (word & LOCK_SEAT) - 1;
	uint64_t holder;

	if ((word & LOCK_OWNER) == k->me)
		return true;
	if (seat >= k->layout.seats || k->kind == REGION_PRIVATE)
		return false;
	holder = atomic_load(&k->seats[seat].holder);
	if ((holder & HOLDER_PID) == 0 ||
	    turn_of(holder) != (word & LOCK_OWNER) >> LOCK_TURN_SHIFT)
		return false;
	return k->kind == REGION_FILE ? seat_alive_in_file(k, seat, holder)
	    : k->room == 0 || process_alive(holder);
}

/* This process, on a turn after that of the holder before. */
static uint64_t
holder_next(const struct kvr *k, uint64_t before)
{
	uint64_t turn = (turn_of(before) + 1) & TURN_MAX;

	return turn << HOLDER_TURN_SHIFT | k->process;
}

static void
seat_is_mine(struct kvr *k, uint32_t seat, uint64_t holder)
{
	k->holder = holder;
	k->me = turn_of(holder) << LOCK_TURN_SHIFT | (seat + 1);
}

/* This handle has locked the seat's byte: no other claims the seat. */
void
seat_claim(struct kvr *k, uint32_t seat)
{
	struct seat *s = &k->seats[seat];
	uint64_t holder = holder_next(k, atomic_load(&s->holder));

	atomic_store(&s->room, 0); /* until all of it is written */
	atomic_store(&s->holder, holder);
	atomic_store(&s->room, k->room);
	seat_is_mine(k, seat, holder);
}

/* Takes a seat that is free, or if `dead` one of a process that died. */
static bool
seat_seize(struct kvr *k, uint32_t seat, bool dead)
{
	struct seat *s = &k->seats[seat];
	uint64_t before = atomic_load(&s->holder);
	uint64_t holder = holder_next(k, before);

	if ((before & HOLDER_PID) != 0 &&
	    (!dead || k->room == 0 || process_alive(before)))
		return false;
	if (!atomic_compare_exchange_strong(&s->holder, &before, holder))
		return false;
	seat_is_mine(k, seat, holder);
	return true;
}

/* Takes a seat, for handles on private memory and on the caller's. */
int
seat_take(struct kvr *k)
{
	uint32_t i;

	if (k->kind == REGION_PRIVATE) {
		k->me = 1;
		return KVR_OK;
	}
	if (k->room != k->region->seal.room)
		return KVR_EMISMATCH;
	for (i = 0; i < 2 * k->layout.seats; i++)
		if (seat_seize(k, i % k->layout.seats, i >= k->layout.seats))
			return KVR_OK;
	return KVR_EFULL;
}

void
seat_leave(struct kvr *k)
{
	uint32_t seat = (k->me & LOCK_SEAT) - 1;
	uint64_t holder = k->holder;

	if (k->me == 0 || k->kind == REGION_PRIVATE || !seat_here(k))
		return;
	(void)atomic_compare_exchange_strong(&k->seats[seat].holder, &holder,
	    holder & ~HOLDER_PID);
}

/* No handle uses the region. Turns go on, as the lock word may be copied. */
void
seats_reset(struct kvr *k)
{
	uint32_t i;

	for (i = 0; i < k->layout.seats; i++)
		(void)atomic_fetch_and(&k->seats[i].holder,
		    ~(uint64_t)HOLDER_PID);
}

/* -------------------------------------------------------- the handle --- */

static void
process_find(struct kvr *k)
{
	uint32_t pid = (uint32_t)getpid();
	struct status s;

	k->room = seat_room();
	k->process = pid & HOLDER_PID;
	if (status_known(pid) && status_read(pid, &s))
		k->process |= s.start << HOLDER_START_SHIFT;
}

/* Before the handle takes a seat. */
int
seat_own(struct kvr *k)
{
	void *page;

	k->wait_ns = LOCK_WAIT_NS;
	process_find(k);
	page = mmap(NULL, sizeof(*k->own), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return KVR_ENOMEM;
	k->own = page;
	if (madvise(page, sizeof(*k->own), MADV_WIPEONFORK) == -1) {
		seat_disown(k);
		return KVR_ESYSTEM;
	}
	k->own->here = 1;
	return KVR_OK;
}

void
seat_disown(struct kvr *k)
{
	if (k->own != NULL)
		(void)munmap(k->own, sizeof(*k->own));
	k->own = NULL;
}
