/* SPDX-License-Identifier: BSD-2-Clause */
/* test_redis_way.c - which server of Redis has the stream. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "redis_way.h"

static struct redis_way way;
static struct bus_url url;
static char error[100];

static bool
begin(const char *text)
{
	ck_assert(bus_url_parse(text, &url, error, sizeof(error)));
	return redis_way_begin(&way, &url, error, sizeof(error));
}

/* "host:port", and " guides" of a Sentinel. */
static const char *
next(void)
{
	static char text[BUS_HOST_MAX + 20];
	struct bus_host host;
	const bool guides = redis_way_next(&way, &host);

	snprintf(text, sizeof(text), "%s:%u%s", host.name, host.port,
	    guides ? " guides" : "");
	return text;
}

static void
lose(void)
{
	struct bus_host host;

	(void)redis_way_next(&way, &host);
	redis_way_lost(&way, &host);
}

START_TEST(paths)
{
	static const struct {
		const char *url, *master, *db, *error;
	} cases[] = {
		{ "redis://a", "", "", NULL },
		{ "redis://a/", "", "", NULL },
		{ "redis://a/12", "", "12", NULL },
		{ "redis://a/x", "", "", "database" },
		{ "redis://a/12345678", "", "", "database" },
		{ "redis://a,b", "", "", "several hosts" },
		{ "unix:///run/redis", "", "", NULL },
		{ "unix://", "", "", "socket" },
		{ "redis+sentinel://a,b/main", "main", "", NULL },
		{ "rediss+sentinel://a,b/main/3", "main", "3", NULL },
		{ "redis+sentinel://a", "", "", "MASTER" },
		{ "redis+sentinel://a/", "", "", "MASTER" },
		{ "redis+sentinel://a//3", "", "", "MASTER" },
		{ "redis+sentinel://a/main/x", "main", "", "MASTER" },
		{ "redis+cluster://a,b", "", "", NULL },
		{ "rediss+cluster://a/", "", "", NULL },
		{ "redis+cluster://a/1", "", "1", "databases" }
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_msg(begin(cases[i].url) == (cases[i].error == NULL),
		    "%s", cases[i].url);
		ck_assert_str_eq(way.master, cases[i].master);
		ck_assert_str_eq(way.db, cases[i].db);
		if (cases[i].error != NULL)
			ck_assert_ptr_nonnull(strstr(error, cases[i].error));
	}
}
END_TEST

START_TEST(one_server_stays)
{
	ck_assert(begin("redis://"));
	ck_assert_str_eq(next(), "127.0.0.1:6379");
	lose();
	ck_assert_str_eq(next(), "127.0.0.1:6379");
	ck_assert(!redis_way_moved(&way, &url.hosts[0], "MOVED 1 a:1"));
	ck_assert_str_eq(next(), "127.0.0.1:6379");
}
END_TEST

START_TEST(sentinels_in_turn)
{
	struct bus_host old;

	ck_assert(begin("redis+sentinel://a,b:5/main"));
	ck_assert_str_eq(next(), "a:26379 guides");
	(void)redis_way_next(&way, &old);
	redis_way_lost(&way, &old);
	/* The other connection to that Sentinel ends, too. */
	redis_way_lost(&way, &old);
	ck_assert_str_eq(next(), "b:5 guides");
	redis_way_found(&way, "m", 7);
	ck_assert_str_eq(next(), "m:7");
	/* The connection to the old master ends late. */
	redis_way_lost(&way, &old);
	ck_assert_str_eq(next(), "m:7");
	lose();
	ck_assert_str_eq(next(), "a:26379 guides");
}
END_TEST

START_TEST(nodes_of_a_cluster)
{
	static const char *const others[] = { "MOVED", "MOVED ", "MOVED 1",
	    "MOVED 1 a", "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "ASK",
	    "ERR MOVED 1 a:1", "ASKING 1 a:1" };
	struct bus_host from = { "here", 1 };
	char text[BUS_HOST_MAX + 30] = "MOVED 1 ";
	size_t i;

	ck_assert(begin("redis+cluster://a,b:5"));
	ck_assert_str_eq(next(), "a:6379");
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!redis_way_moved(&way, &from, others[i]), "%s",
		    others[i]);
	memset(text + 8, 'x', BUS_HOST_MAX);
	strcpy(text + 8 + BUS_HOST_MAX, ":1");
	ck_assert(!redis_way_moved(&way, &from, text));
	ck_assert_str_eq(next(), "a:6379");
	ck_assert(redis_way_moved(&way, &from, "MOVED 3999 c:8"));
	ck_assert_str_eq(next(), "c:8");
	ck_assert(!way.asking);
	ck_assert(redis_way_moved(&way, &from, "ASK 3999 ::1:9"));
	ck_assert_str_eq(next(), "::1:9");
	ck_assert(way.asking);
	/* Without a host it is the one that answers. */
	ck_assert(redis_way_moved(&way, &from, "MOVED 3999 :10"));
	ck_assert_str_eq(next(), "here:10");
	ck_assert(!way.asking);
	ck_assert(redis_way_moved(&way, &from, "MOVED 3999 ?:11"));
	ck_assert_str_eq(next(), "here:11");
	lose();
	ck_assert_str_eq(next(), "b:5");
	lose();
	ck_assert_str_eq(next(), "a:6379");
}
END_TEST

Suite *suite_redis_way(void);

Suite *
suite_redis_way(void)
{
	Suite *s = suite_create("redis_way");
	TCase *t = tcase_create("all");

	tcase_add_test(t, paths);
	tcase_add_test(t, one_server_stays);
	tcase_add_test(t, sentinels_in_turn);
	tcase_add_test(t, nodes_of_a_cluster);
	suite_add_tcase(s, t);
	return s;
}
