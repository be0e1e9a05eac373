/* SPDX-License-Identifier: BSD-2-Clause */
/* test_bus_login.c - the login of a bus from a file. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bus_login.h"

static char path[] = "/tmp/kvroute-login-XXXXXX";
static struct bus_url url;
static char error[256];

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
	url = (struct bus_url){ .user = "before", .password = "before" };
	good = bus_login(path, &url, error, sizeof(error));
	ck_assert_int_eq(unlink(path), 0);
	return good;
}

/* A password comes out unchanged, with any bytes in it. */
START_TEST(a_user_and_a_password)
{
	ck_assert(by("me:a:b@c/d%20 \xc3\xa9?#\r\nnot this\n"));
	ck_assert_str_eq(url.user, "me");
	ck_assert_str_eq(url.password, "a:b@c/d%20 \xc3\xa9?#");
	ck_assert(url.colon);
}
END_TEST

START_TEST(a_token)
{
	ck_assert(by("s3cr3t-token"));
	ck_assert_str_eq(url.user, "s3cr3t-token");
	ck_assert_str_eq(url.password, "");
	ck_assert(!url.colon);
}
END_TEST

START_TEST(no_login)
{
	char large[900];

	ck_assert(!by(""));
	ck_assert_ptr_nonnull(strstr(error, "empty"));
	ck_assert(!by("\nme:b\n"));
	ck_assert(!by(":b\n"));
	ck_assert_ptr_nonnull(strstr(error, "no user:password"));
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	ck_assert(!by(large));
	ck_assert_ptr_nonnull(strstr(error, "too long"));
	ck_assert(!bus_login("/tmp/none/at/all", &url, error, sizeof(error)));
	ck_assert_ptr_nonnull(strstr(error, "No such file"));
}
END_TEST

/* Each part at the edge of its room. */
START_TEST(long_parts)
{
	char text[sizeof(url.user) + sizeof(url.password) + 2];
	size_t n;

	for (n = sizeof(url.user) - 1; n <= sizeof(url.user); n++) {
		memset(text, 'u', n);
		text[n] = '\0';
		ck_assert_int_eq(by(text), n < sizeof(url.user));
	}
	for (n = sizeof(url.password) - 1; n <= sizeof(url.password); n++) {
		memset(text, 'p', n + 2);
		text[1] = ':';
		text[n + 2] = '\0';
		ck_assert_int_eq(by(text), n < sizeof(url.password));
	}
}
END_TEST

Suite *suite_bus_login(void);

Suite *
suite_bus_login(void)
{
	Suite *s = suite_create("bus_login");
	TCase *t = tcase_create("bus_login");

	tcase_add_test(t, a_user_and_a_password);
	tcase_add_test(t, a_token);
	tcase_add_test(t, no_login);
	tcase_add_test(t, long_parts);
	suite_add_tcase(s, t);
	return s;
}
