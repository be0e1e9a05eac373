/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nosys.c - each system call of an open fails in turn.
 *
 *   made, attached,    x  open, fstat, fcntl ...  x  the 1st, 2nd, ... of them
 *   alone or not,         with an error, or
 *   read-only             interrupted
 *
 * The open fails, or does without. It leaves no descriptor, no lock, and no
 * half of a file; the region is as it was, and the next open succeeds.
 */
#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>

#include "alloc.h"
#include "seat.h"
#include "storage.h"
#include "sys.h"

enum { CALLS_MAX = 60 };

/* The way an open is tried, and the files before it. */
struct scene {
	uint32_t flags;
	bool there; /* a region with a tree */
	bool shared; /* and another handle */
};

static struct kvr *another;

/* Returns the holder that a dead process of another namespace leaves. */
static uint64_t
mine_holder(uint32_t word)
{
	return (uint64_t)(word >> LOCK_TURN_SHIFT) << HOLDER_TURN_SHIFT |
	    k->process;
}

static int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d) != NULL)
		n++;
	ck_assert_int_eq(closedir(d), 0);
	return n;
}

static void
prepare(const struct scene *s)
{
	(void)unlink(path);
	(void)unlink(path_lock);
	if (s->there)
		made();
	another = NULL;
	if (s->shared)
		ck_assert_int_eq(open_as(ATTACH, &another), KVR_OK);
}

/* An earlier file is still there; else nothing hinders a new one. */
static void
ck_as_before(const struct scene *s, int before)
{
	struct kvr *made_now = NULL;

	ck_assert_int_eq(descriptors(), before);
	kvr_free(another);
	if (s->there)
		ck_assert(!attached());
	ck_assert_int_eq(open_as(s->there ? ATTACH : EITHER, &made_now),
	    KVR_OK);
	k = made_now;
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	if (s->there)
		ck_tree(TREE);
	kvr_free(k);
	ck_assert(!attached());
}

/* Returns whether the n-th call of this kind was made at all. */
static bool
fail_one(const struct scene *s, enum sys_call call, unsigned long n, int error)
{
	struct kvr *opened_now = NULL;
	int before, rc, saved;
	bool failed;

	prepare(s);
	before = descriptors();
	sys_fail_at(call, n, error);
	rc = open_as(s->flags, &opened_now);
	saved = errno;
	failed = sys_reset() > 0;
	ck_assert_int_eq(opened_now != NULL, rc == KVR_OK);
	if (!failed || error == EINTR)
		ck_assert_msg(rc == KVR_OK, "call %d, %lu: %s", call, n,
		    kvr_errname(rc));
	else if (rc != KVR_OK) /* EAGAIN: of a second way that was tried */
		ck_assert_msg(rc == KVR_EBUSY || (rc == KVR_ESYSTEM &&
		    (saved == error || saved == EAGAIN)),
		    "call %d, %lu: %s, %s", call, n, kvr_errname(rc),
		    strerror(saved));
	if (opened_now != NULL && (s->flags & READONLY) == 0)
		ck_assert_int_eq(kvr_check(opened_now), KVR_OK);
	kvr_free(opened_now);
	ck_as_before(s, before);
	return failed;
}

static unsigned long
fail_each(const struct scene *s, enum sys_call call, int error)
{
	unsigned long n = 1;

	while (fail_one(s, call, n, error)) {
		n++;
		ck_assert_uint_lt(n, CALLS_MAX);
	}
	return n - 1;
}

static const struct scene scenes[] = {
	{ CREATE, false, false }, { EITHER, false, false },
	{ ATTACH, true, false }, { ATTACH | TRUST, true, true },
	{ EITHER, true, true }, { READONLY, true, false },
	{ READONLY, true, true },
};

START_TEST(each_call)
{
	unsigned long met[SYS_CALLS] = { 0 };
	size_t i;
	int call;

	options.file_group = (uint32_t)getegid();
	for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		for (call = 0; call < SYS_CALLS; call++)
			met[call] += fail_each(&scenes[i],
			    (enum sys_call)call, EIO);
	for (i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
		ck_assert_uint_gt(fail_each(&scenes[i], SYS_FCNTL, EACCES), 0);
	/* so the build has redirected them */
	for (call = 0; call < SYS_CALLS; call++)
		ck_assert_msg(met[call] > 0 || call == SYS_KILL ||
		    call == SYS_FTRUNCATE, "call %d is never made", call);
}
END_TEST

/* Signals interrupt the call, and do not restart it. */
START_TEST(interrupted)
{
	static const enum sys_call calls[] = { SYS_OPEN, SYS_PREAD,
		SYS_FALLOCATE };
	unsigned long met;
	size_t i, j;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		met = 0;
		for (j = 0; j < sizeof(scenes) / sizeof(scenes[0]); j++)
			met += fail_each(&scenes[j], calls[i], EINTR);
		ck_assert_uint_gt(met, 0);
	}
}
END_TEST

/* All of them from the n-th on: it ends, and leaves nothing. */
START_TEST(all_later_calls)
{
	static const enum sys_call calls[] = { SYS_FSTAT, SYS_FCNTL, SYS_PREAD,
		SYS_MADVISE, SYS_READ, SYS_READLINK, SYS_STAT };
	unsigned long n, failed;
	struct kvr *mine;
	size_t i, j;
	int before;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (j = 0; j < sizeof(scenes) / sizeof(scenes[0]); j++)
			for (n = 1, failed = 1; failed > 0; n++) {
				prepare(&scenes[j]);
				before = descriptors();
				sys_fail_from(calls[i], n, EIO);
				mine = NULL;
				ck_assert_int_le(open_as(scenes[j].flags,
				    &mine), KVR_OK);
				failed = sys_reset();
				kvr_free(mine);
				ck_as_before(&scenes[j], before);
			}
}
END_TEST

/* Something else makes the file each time before this call can. */
START_TEST(never_its_turn)
{
	struct kvr *mine = NULL;
	int before = descriptors();

	sys_fail_from(SYS_OPEN, 1, EEXIST);
	ck_assert_int_eq(open_as(CREATE, &mine), KVR_EEXIST);
	ck_assert_uint_gt(sys_reset(), 0);
	ck_assert_ptr_null(mine);
	ck_assert_int_eq(descriptors(), before);
	ck_assert(!file_there(path) && !file_there(path_lock));
}
END_TEST

/* A seat for each handle on a file; one more is refused, and leaves nothing. */
START_TEST(all_seats)
{
	struct kvr *handle[SEATS_MAX], *more = NULL;
	uint32_t i, seats;
	int before;

	made();
	opened(ATTACH);
	seats = k->layout.seats;
	ck_assert_uint_gt(seats, 1);
	for (i = 1; i < seats; i++)
		ck_assert_int_eq(open_as(ATTACH, &handle[i]), KVR_OK);
	before = descriptors();
	ck_assert_int_eq(open_as(ATTACH, &more), KVR_EFULL);
	ck_assert_ptr_null(more);
	ck_assert_int_eq(descriptors(), before);
	kvr_free(handle[1]);
	ck_assert_int_eq(open_as(ATTACH, &handle[1]), KVR_OK);
	for (i = 1; i < seats; i++)
		kvr_free(handle[i]);
	closed();
	ck_assert(!attached());
}
END_TEST

/*
 * The caller closed all descriptors, and has them used again, or not. A
 * descriptor of another file is no evidence about seats, and stays open.
 */
START_TEST(descriptors_used_again)
{
	struct kvr *mine;
	uint32_t word;
	int gate, round;

	made();
	for (round = 0; round < 2; round++) {
		opened(ATTACH);
		ck_assert_int_eq(open_as(ATTACH, &mine), KVR_OK);
		word = mine->me;
		gate = k->gate;
		ck_assert(seat_alive(k, word));
		kvr_free(mine);
		ck_assert(!seat_alive(k, word));
		atomic_store(&k->seats[(word & LOCK_SEAT) - 1].holder,
		    mine_holder(word));
		ck_assert(!seat_alive(k, word)); /* its byte is free */
		if (round == 0)
			ck_assert_int_eq(dup2(file_fd(), gate), gate);
		else
			ck_assert_int_eq(close(gate), 0);
		ck_assert(seat_alive(k, word)); /* not known */
		kvr_free(k);
		ck_assert_int_eq(fcntl(gate, F_GETFD) == -1, round == 1);
	}
}
END_TEST

/*
 * A child may only free the handle, also where the seat's lock needs an open
 * descriptor. The lock stays its parent's.
 */
START_TEST(freed_by_a_child)
{
	int round, status;
	pid_t child;

	made();
	for (round = 0; round < 2; round++) {
		if (round == 1)
			sys_fail_at(SYS_MADVISE, 2, EINVAL);
		opened(ATTACH);
		ck_assert_uint_eq(sys_reset(), (unsigned long)round);
		ck_assert_int_eq(k->seat_fd != -1, round == 1);
		child = fork();
		if (child == 0) {
			if (kvr_clear(k) != KVR_ESTATE ||
			    region_lock(k, true) != KVR_ESTATE)
				test_exit(1);
			kvr_free(k);
			test_exit(0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert_int_eq(status, 0);
		ck_assert(attached());
		ck_tree(TREE);
		closed();
		ck_assert(!attached());
	}
}
END_TEST

/* A file with the contents that kvr_new_at makes is refused and unchanged. */
START_TEST(memory_in_a_file)
{
	struct kvr_options o = options;

	memset(image, 0, BYTES);
	ck_assert_int_eq(kvr_new_at(&o, image, BYTES, &k), KVR_OK);
	kvr_free(k);
	file_write(image, BYTES);
	ck_assert_int_eq(try(ATTACH), KVR_EMISMATCH);
	file_same();
	ck_assert_int_eq(try(ATTACH), KVR_EMISMATCH);
}
END_TEST

static int
workers(void)
{
	uint64_t worker = 0;
	int n = -1;

	do {
		n++;
		ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
	} while (worker != 0);
	return n;
}

/*
 * Each allocation of an open that recovers fails in turn; then the next open
 * recovers. After a death in the middle of a change the workers remain; figures
 * that are wrong are mended.
 */
static bool
recover_without(unsigned long n, bool died)
{
	struct kvr *mine = NULL;
	bool failed;
	int rc;

	(void)unlink(path);
	made();
	if (died)
		(void)atomic_fetch_or(&in_image()->region->seq, 1);
	else
		in_image()->slots[0].held++;
	file_write(image, BYTES);
	alloc_fail_at(n);
	rc = open_as(ATTACH, &mine);
	failed = alloc_count() >= n;
	alloc_reset();
	ck_assert_int_eq(rc, failed ? KVR_ENOMEM : KVR_OK);
	ck_assert_int_eq(mine != NULL, !failed);
	if (!failed)
		ck_assert_int_eq(kvr_check(mine), KVR_OK);
	kvr_free(mine);
	opened(ATTACH);
	ck_assert_int_eq(workers(), 2);
	if (died)
		ck_tree("");
	else if (!failed)
		ck_tree(TREE);
	closed();
	return failed;
}

START_TEST(no_memory_to_recover)
{
	unsigned long n = 1, m = 1;

	while (recover_without(n, true))
		n++;
	while (recover_without(m, false))
		m++;
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_gt(m, n);
}
END_TEST

/* A reader checks a copy; there may be no room for one. */
START_TEST(no_memory_to_check)
{
	made();
	opened(READONLY);
	alloc_fail_at(1);
	ck_assert_int_eq(kvr_check(k), KVR_ENOMEM);
	alloc_reset();
	ck_assert_int_eq(kvr_check(k), KVR_OK);
	kvr_free(k);
}
END_TEST

/* A cut that is interrupted is made again; one that fails is reported. */
START_TEST(cutting)
{
	int fd = file_fd();

	sys_fail_at(SYS_FTRUNCATE, 1, EINTR);
	ck_assert_int_eq(storage_cut(fd, 4096), KVR_OK);
	ck_assert_uint_eq(sys_reset(), 1);
	ck_assert_int_eq(file_stat().st_size, 4096);
	sys_fail_at(SYS_FTRUNCATE, 1, EIO);
	ck_assert_int_eq(storage_cut(fd, 0), KVR_ESYSTEM);
	ck_assert_uint_eq(sys_reset(), 1);
	ck_assert_int_eq(file_stat().st_size, 4096);
	close(fd);
}
END_TEST

/* 32 hexadecimal digits of any case but capitals, or the id is not known. */
START_TEST(boot_ids)
{
	static const struct {
		const char *text;
		bool known;
	} line[] = {
		{ "01234567-89ab-cdef-0123-456789abcdef\n", true },
		{ "0123456789abcdef0123456789abcdef", true },
		{ "01234567-89AB-cdef-0123-456789abcdef\n", false },
		{ "01234567-89ab-cdef-0123-456789abcdeg\n", false },
		{ "01234567/89ab-cdef-0123-456789abcdef\n", false },
		{ "01234567-89ab-cdef-0123-456789abcde", false },
		{ "", false },
	};
	static const unsigned char bytes[] = { 0x01, 0x23, 0x45, 0x67, 0x89,
		0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd,
		0xef };
	static const unsigned char none[KVR_BOOT_ID_BYTES];
	unsigned char got[KVR_BOOT_ID_BYTES];
	size_t i;

	for (i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		sys_say(SYS_PREAD, line[i].text);
		storage_boot_id(got);
		ck_assert_uint_gt(sys_reset(), 0);
		ck_assert_mem_eq(got, line[i].known ? bytes : none,
		    sizeof(got));
	}
	sys_fail_from(SYS_PREAD, 1, EIO);
	storage_boot_id(got);
	ck_assert_uint_gt(sys_reset(), 0);
	ck_assert_mem_eq(got, none, sizeof(got));
}
END_TEST

/* /proc shows the process in a seat as dead without doubt, or not. */
START_TEST(what_proc_says)
{
#define AFTER " 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 "
	static const struct {
		const char *text;
		bool alive;
	} line[] = {
		{ "7 (a) X" AFTER "1 0 1 ", false },
		{ "7 (a) Z" AFTER "1 0 1 ", false },
		{ "7 (a) Z" AFTER "2 0 1 ", false }, /* another start */
		{ "7 (a)", true }, { "7 (a) ", true }, { "", true },
		{ "7 (a)S" AFTER "1 0 1 ", true }, { "7 a S", true },
		{ "7 (a) S 1 1 1", true },
	};
	void *memory = aligned_alloc(CELL, BYTES);
	struct kvr *second;
	size_t i;

	ck_assert_ptr_nonnull(memory);
	memset(memory, 0, BYTES);
	ck_assert_int_eq(kvr_new_at(&options, memory, BYTES, &k), KVR_OK);
	ck_assert_int_eq(kvr_attach_at(NULL, memory, BYTES, &second), KVR_OK);
	for (i = 0; i < sizeof(line) / sizeof(line[0]); i++) {
		sys_say(SYS_READ, line[i].text);
		ck_assert_msg(seat_alive(k, second->me) == line[i].alive,
		    "%s", line[i].text);
		ck_assert_uint_gt(sys_reset(), 0);
	}
	/* not known: it lives */
	sys_fail_from(SYS_OPEN, 1, EMFILE);
	ck_assert(seat_alive(k, second->me));
	ck_assert_uint_eq(sys_reset(), 1);
	sys_fail_from(SYS_READLINK, 1, EACCES);
	ck_assert(seat_alive(k, second->me));
	ck_assert_uint_eq(sys_reset(), 1);
	sys_say(SYS_READLINK, "1000000");
	ck_assert(seat_alive(k, second->me));
	ck_assert_uint_eq(sys_reset(), 1);
	/* another user's process cannot be sent a signal, but it is there */
	sys_fail_from(SYS_KILL, 1, EPERM);
	ck_assert(seat_alive(k, second->me));
	ck_assert_uint_eq(sys_reset(), 1);
	sys_fail_from(SYS_KILL, 1, ESRCH);
	ck_assert(!seat_alive(k, second->me));
	ck_assert_uint_eq(sys_reset(), 1);
	kvr_free(second);
	kvr_free(k);
	free(memory);
}
END_TEST

Suite *suite_nosys(void);

Suite *
suite_nosys(void)
{
	Suite *s = suite_create("nosys");
	TCase *t = files_case(s, "system calls");

	tcase_add_test(t, each_call);
	tcase_add_test(t, interrupted);
	tcase_add_test(t, all_later_calls);
	tcase_add_test(t, never_its_turn);
	tcase_add_test(t, all_seats);
	tcase_add_test(t, descriptors_used_again);
	tcase_add_test(t, freed_by_a_child);
	tcase_add_test(t, memory_in_a_file);
	tcase_add_test(t, no_memory_to_recover);
	tcase_add_test(t, no_memory_to_check);
	tcase_add_test(t, cutting);
	tcase_add_test(t, boot_ids);
	tcase_add_test(t, what_proc_says);
	return s;
}
