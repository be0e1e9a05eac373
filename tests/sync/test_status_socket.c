/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_status_socket.c - the place where status_socket.c makes its socket, and
 * the files that it removes there.
 */
#include "status_socket.c"

#include <check.h>

#include "test.h"

static char folder[64], path[80], other[80];

static void
make_folder(void)
{
	strcpy(folder, "/tmp/kvr-status-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(other, sizeof(other), "%s/other", folder);
}

static void
remove_folder(void)
{
	(void)unlink(path);
	(void)unlink(other);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* A file with a word in it, and whether it still has that. */
static void
write_file(const char *name)
{
	FILE *out = fopen(name, "w");

	ck_assert_ptr_nonnull(out);
	fputs("precious", out);
	ck_assert_int_eq(fclose(out), 0);
}

static bool
keeps_file(const char *name)
{
	char word[16] = "";
	FILE *in = fopen(name, "r");

	if (in == NULL)
		return false;
	(void)fgets(word, sizeof(word), in);
	fclose(in);
	return strcmp(word, "precious") == 0;
}

static bool
is_there(const char *name)
{
	struct stat st;

	return lstat(name, &st) == 0;
}

/* Leaves the socket of a daemon that was killed. */
static void
leave_socket(const char *name)
{
	struct status_socket s;

	ck_assert(status_listen(&s, name));
	close(s.fd);
	ck_assert(is_there(name));
}

static void
check_refused(int error)
{
	struct status_socket s;

	errno = 0;
	ck_assert(!status_listen(&s, path));
	ck_assert_int_eq(errno, error);
	ck_assert_int_eq(s.fd, -1);
	status_close(&s);
}

START_TEST(a_file_stays)
{
	make_folder();
	write_file(path);
	check_refused(EEXIST);
	ck_assert(keeps_file(path));
	remove_folder();
}
END_TEST

START_TEST(a_link_stays_and_so_does_its_file)
{
	make_folder();
	write_file(other);
	ck_assert_int_eq(symlink(other, path), 0);
	check_refused(EEXIST);
	ck_assert(is_there(path));
	ck_assert(keeps_file(other));
	ck_assert_int_eq(unlink(other), 0);
	leave_socket(other);
	check_refused(EEXIST);
	ck_assert(is_there(path));
	ck_assert(is_there(other));
	remove_folder();
}
END_TEST

START_TEST(a_pipe_and_a_folder_stay)
{
	make_folder();
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	check_refused(EEXIST);
	ck_assert(is_there(path));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	check_refused(EEXIST);
	ck_assert_int_eq(rmdir(path), 0);
	remove_folder();
}
END_TEST

START_TEST(a_socket_that_is_listened_on_stays)
{
	struct status_socket s;

	make_folder();
	ck_assert(status_listen(&s, path));
	check_refused(EADDRINUSE);
	ck_assert(is_there(path));
	status_close(&s);
	ck_assert(!is_there(path));
	remove_folder();
}
END_TEST

START_TEST(a_socket_that_was_left_is_replaced)
{
	struct status_socket s;

	make_folder();
	leave_socket(path);
	ck_assert(status_listen(&s, path));
	status_close(&s);
	ck_assert(!is_there(path));
	remove_folder();
}
END_TEST

/* Others have put something in its place meanwhile. */
START_TEST(the_end_removes_its_own)
{
	struct status_socket s, next;

	make_folder();
	ck_assert(status_listen(&s, path));
	ck_assert_int_eq(rename(path, other), 0);
	write_file(path);
	status_close(&s);
	ck_assert(keeps_file(path));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(status_listen(&s, path));
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(status_listen(&next, path));
	status_close(&s);
	ck_assert(is_there(path));
	status_close(&next);
	ck_assert(!is_there(path));
	remove_folder();
}
END_TEST

START_TEST(a_folder_that_is_not_there)
{
	make_folder();
	remove_folder();
	check_refused(ENOENT);
}
END_TEST

Suite *suite_status_socket(void);

Suite *
suite_status_socket(void)
{
	Suite *s = suite_create("status_socket");
	TCase *t = tcase_create("status_socket");

	tcase_add_test(t, a_file_stays);
	tcase_add_test(t, a_link_stays_and_so_does_its_file);
	tcase_add_test(t, a_pipe_and_a_folder_stay);
	tcase_add_test(t, a_socket_that_is_listened_on_stays);
	tcase_add_test(t, a_socket_that_was_left_is_replaced);
	tcase_add_test(t, the_end_removes_its_own);
	tcase_add_test(t, a_folder_that_is_not_there);
	suite_add_tcase(s, t);
	return s;
}
