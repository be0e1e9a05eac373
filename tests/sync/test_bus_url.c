/* SPDX-License-Identifier: BSD-2-Clause */
/* test_bus_url.c - addresses of buses: their parts, and invalid ones. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "bus_queue.h"
#include "bus_url.h"

static struct bus_url parsed;
static char error[100];

static bool
parse(const char *text)
{
	error[0] = '\0';
	return bus_url_parse(text, &parsed, error, sizeof(error));
}

START_TEST(addresses)
{
	static const struct {
		const char *text;
		struct bus_url want;
	} urls[] = {
		{ "redis://a", { .scheme = "redis", .n_hosts = 1,
		    .hosts = { { "a", 0 } } } },
		{ "redis://a:6380/3", { .scheme = "redis", .n_hosts = 1,
		    .hosts = { { "a", 6380 } }, .path = "/3" } },
		{ "unix://:pw@/run/redis.sock", { .scheme = "unix",
		    .password = "pw", .colon = true, .n_hosts = 1,
		    .path = "/run/redis.sock" } },
		{ "nats+tls://u@[::1]:1", { .scheme = "nats+tls", .user = "u",
		    .n_hosts = 1, .hosts = { { "::1", 1 } } } },
		{ "nats://[::1]", { .scheme = "nats", .n_hosts = 1,
		    .hosts = { { "::1", 0 } } } },
		{ "redis://u:p%40%3A%2f%FF@h:65535/", { .scheme = "redis",
		    .user = "u", .password = "p@:/\xff", .colon = true,
		    .n_hosts = 1, .hosts = { { "h", 65535 } }, .path = "/" } },
		{ "redis://u:p@q:r@h", { .scheme = "redis", .user = "u",
		    .password = "p@q:r", .colon = true, .n_hosts = 1,
		    .hosts = { { "h", 0 } } } },
		{ "nats://u:@h", { .scheme = "nats", .user = "u", .colon = true,
		    .n_hosts = 1, .hosts = { { "h", 0 } } } },
		{ "rediss+sentinel://u:p,q@a:1,[::2]:3,b/main/4", {
		    .scheme = "rediss+sentinel", .user = "u", .password = "p,q",
		    .colon = true, .n_hosts = 3, .hosts = { { "a", 1 },
		    { "::2", 3 }, { "b", 0 } }, .path = "/main/4" } },
		{ "redis+cluster://1,2,3,4,5,6,7,8", {
		    .scheme = "redis+cluster", .n_hosts = 8, .hosts = {
		    { "1", 0 }, { "2", 0 }, { "3", 0 }, { "4", 0 }, { "5", 0 },
		    { "6", 0 }, { "7", 0 }, { "8", 0 } } } },
		{ "redis://", { .scheme = "redis", .n_hosts = 1 } }
	};
	size_t i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		ck_assert_msg(parse(urls[i].text), "%s: %s", urls[i].text,
		    error);
		ck_assert_msg(memcmp(&parsed, &urls[i].want,
		    sizeof(parsed)) == 0, "%s", urls[i].text);
	}
}
END_TEST

/* The reason never repeats the password. */
START_TEST(bad)
{
	static const char *const urls[] = { "", "redis", "redis:/a",
	    "redis://a:", "redis://a:0", "redis://a:65536", "redis://a:1x",
	    "redis://a:123456", "redis://[::1", "redis://[::1]x",
	    "redis://u:secret%@a", "redis://u:secret%4@a",
	    "redis://u:secret%4g@a", "redis://u:secret%00@a",
	    "redis://1,2,3,4,5,6,7,8,9", "redis://a,b:x",
	    "redis+cluster://a,,b", "redis+cluster://a,", "nats://,a",
	    "nats://a,:1",
	    "redis://a?db=1", "redis://u:secret@a#x",
	    "averylongschemethatisnone://a" };
	size_t i;

	for (i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		ck_assert_msg(!parse(urls[i]), "%s", urls[i]);
		ck_assert_uint_gt(strlen(error), 4);
		ck_assert_ptr_null(strstr(error, "secret"));
	}
}
END_TEST

/* Each part at the edge of its room. */
START_TEST(long_parts)
{
	static const struct {
		const char *before, *behind;
		size_t room;
	} parts[] = {
		{ "redis://", "@a", sizeof(parsed.user) },
		{ "redis://u:", "@a", sizeof(parsed.password) },
		{ "redis://", "", BUS_HOST_MAX },
		{ "redis://[", "]", BUS_HOST_MAX },
		{ "redis://a/", "", sizeof(parsed.path) - 1 },
		{ "", "://a", sizeof(parsed.scheme) }
	};
	char text[1200], part[600];
	size_t i, n;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (n = parts[i].room - 2; n <= parts[i].room; n++) {
			memset(part, 'x', n);
			part[n] = '\0';
			snprintf(text, sizeof(text), "%s%s%s", parts[i].before,
			    part, parts[i].behind);
			ck_assert_int_eq(parse(text), n < parts[i].room);
		}
}
END_TEST

START_TEST(subjects)
{
	static const char *const good[] = { "a", "a.b", "*", ">", "a.*.b.>",
	    "namespace.ns.component.c.endpoint.generate.kv-events" };
	static const char *const bad_ones[] = { "", ".", "a.", ".a", "a..b",
	    "a*", "a.*b", "a>", ">.a", "a.>.b", "a b", "a\nb", "a\x7f",
	    "\xc3\xa4" };
	char text[BUS_SUBJECT_MAX + 1];
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(bus_subject(good[i]), "%s", good[i]);
	for (i = 0; i < sizeof(bad_ones) / sizeof(bad_ones[0]); i++)
		ck_assert_msg(!bus_subject(bad_ones[i]), "%s", bad_ones[i]);
	memset(text, 'x', sizeof(text));
	text[BUS_SUBJECT_MAX] = '\0';
	ck_assert(!bus_subject(text));
	text[BUS_SUBJECT_MAX - 1] = '\0';
	ck_assert(bus_subject(text));
}
END_TEST

Suite *suite_bus_url(void);

Suite *
suite_bus_url(void)
{
	Suite *s = suite_create("bus_url");
	TCase *t = tcase_create("all");

	tcase_add_test(t, addresses);
	tcase_add_test(t, bad);
	tcase_add_test(t, long_parts);
	tcase_add_test(t, subjects);
	suite_add_tcase(s, t);
	return s;
}
