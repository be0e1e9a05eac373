/* SPDX-License-Identifier: BSD-2-Clause */
/* test_login.c - the user in a file becomes a part of a bus's address. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus_url.h"
#include "login.h"

static char path[] = "/tmp/kvroute-login-XXXXXX";
static char url[1024], error[256];

static bool
by(const char *text)
{
	int fd;
	bool good;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	good = login_url("nats://h:7", path, url, sizeof(url), error,
	    sizeof(error));
	ck_assert_int_eq(unlink(path), 0);
	return good;
}

/* A password comes out unchanged, with any bytes in it. */
START_TEST(a_user_and_a_password)
{
	struct bus_url parsed;

	ck_assert(by("me:a:b@c/d%20 \xc3\xa9?#\r\nnot this\n"));
	ck_assert(bus_url_parse(url, &parsed, error, sizeof(error)));
	ck_assert_str_eq(parsed.user, "me");
	ck_assert_str_eq(parsed.password, "a:b@c/d%20 \xc3\xa9?#");
	ck_assert_str_eq(parsed.host, "h");
	ck_assert_uint_eq(parsed.port, 7);
}
END_TEST

START_TEST(a_token)
{
	struct bus_url parsed;

	ck_assert(by("s3cr3t-token"));
	ck_assert(bus_url_parse(url, &parsed, error, sizeof(error)));
	ck_assert_str_eq(parsed.user, "s3cr3t-token");
	ck_assert_str_eq(parsed.password, "");
}
END_TEST

START_TEST(no_login)
{
	char large[600];

	ck_assert(!by(""));
	ck_assert_ptr_nonnull(strstr(error, "empty"));
	ck_assert(!by("\nme:b\n"));
	ck_assert(!by(":b\n"));
	ck_assert_ptr_nonnull(strstr(error, "no user:password"));
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	ck_assert(!by(large));
	ck_assert_ptr_nonnull(strstr(error, "too long"));
	ck_assert(!login_url("nats://h:7", "/tmp/none/at/all", url,
	    sizeof(url), error, sizeof(error)));
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
}
END_TEST

START_TEST(no_room)
{
	ck_assert(by("me:password"));
	strcpy(path + sizeof(path) - 7, "XXXXXX");
	ck_assert_int_ge(close(mkstemp(path)), 0);
	ck_assert(!login_url("nats://h:7", path, url, 4, error,
	    sizeof(error)));
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

Suite *suite_login(void);

Suite *
suite_login(void)
{
	Suite *s = suite_create("login");
	TCase *t = tcase_create("login");

	tcase_add_test(t, a_user_and_a_password);
	tcase_add_test(t, a_token);
	tcase_add_test(t, no_login);
	tcase_add_test(t, no_room);
	suite_add_tcase(s, t);
	return s;
}
