/* SPDX-License-Identifier: BSD-2-Clause */
/* test_pick_conf.c - the configuration of kvroute-pick. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "pick_conf.h"

static struct pick_conf conf;
static char error[CONF_ERROR_MAX];

static bool
read_text(const char *text)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	bool read;

	ck_assert_ptr_nonnull(in);
	error[0] = '\0';
	read = pick_conf_read(&conf, in, error);
	fclose(in);
	return read;
}

START_TEST(all_directives)
{
	ck_assert(read_text("# a comment\n\n"
	    "region /run/kvroute/chat; # another\n"
	    "  kvroute size=256m affinity=65536;\n"
	    "kvroute_include_usage on\r\n"
	    "server 10.0.0.1:8000 capacity=400000 max_conns=8;\n"
	    "server [::1]:8001;\n"
	    "server engines.llm.svc:8000 resolve weight=2 ;"));
	ck_assert_str_eq(conf.region, "/run/kvroute/chat");
	ck_assert_uint_eq(conf.options.length,
	    strlen("size=256m affinity=65536\ninclude_usage=on\n"));
	ck_assert_mem_eq(conf.options.data,
	    "size=256m affinity=65536\ninclude_usage=on\n",
	    conf.options.length);
	ck_assert_uint_eq(pick_conf_option_line(&conf, 0), 4);
	ck_assert_uint_eq(pick_conf_option_line(&conf, 10), 4);
	ck_assert_uint_eq(pick_conf_option_line(&conf, 25), 5);
	ck_assert_uint_eq(conf.n, 3);
	ck_assert_str_eq(conf.servers[0].name, "10.0.0.1:8000");
	ck_assert_str_eq(conf.servers[0].facts, "capacity=400000 max_conns=8");
	ck_assert_uint_eq(conf.servers[0].line, 6);
	ck_assert_str_eq(conf.servers[1].name, "[::1]:8001");
	ck_assert_str_eq(conf.servers[1].facts, "");
	ck_assert_str_eq(conf.servers[2].name, "engines.llm.svc:8000");
	ck_assert_str_eq(conf.servers[2].facts, "weight=2");
	pick_conf_free(&conf);
}
END_TEST

static void
ck_wrong(const char *text, const char *want)
{
	ck_assert(!read_text(text));
	ck_assert_str_eq(error, want);
	ck_assert_ptr_null(conf.servers);
}

START_TEST(errors_have_a_line)
{
	ck_wrong("\nserver", "2: a server is HOST:PORT");
	ck_wrong("server a", "1: a server is HOST:PORT");
	ck_wrong("server a:0", "1: a server is HOST:PORT");
	ck_wrong("server a:65536", "1: a server is HOST:PORT");
	ck_wrong("server :80", "1: a server is HOST:PORT");
	ck_wrong("server a:8x", "1: a server is HOST:PORT");
	ck_wrong("server ::1:80", "1: a server is HOST:PORT");
	ck_wrong("upstream a", "1: there is no such directive");
	ck_wrong("kvroute_gray a b", "1: one value is expected");
	ck_wrong("kvroute_gray", "1: one value is expected");
	ck_wrong("region", "1: one path is expected");
	ck_wrong("region a b", "1: one path is expected");
}
END_TEST

START_TEST(lines_of_options)
{
	ck_assert(read_text("kvroute size=8m queue=10;\nserver a:1;\n"
	    "kvroute_poll 1s;\nkvroute\tgray=4\tpoll_path=/x;\n"));
	ck_assert_uint_eq(pick_conf_option(&conf, "size"), 1);
	ck_assert_uint_eq(pick_conf_option(&conf, "queue"), 1);
	ck_assert_uint_eq(pick_conf_option(&conf, "poll"), 3);
	ck_assert_uint_eq(pick_conf_option(&conf, "poll_path"), 4);
	ck_assert_uint_eq(pick_conf_option(&conf, "queue_timeout"), 0);
	ck_assert_uint_eq(pick_conf_option(&conf, "path"), 0);
	ck_assert_uint_eq(pick_conf_option(&conf, "pol"), 0);
	pick_conf_free(&conf);
	ck_assert(read_text("server a:1 capacity=auto;"));
	ck_assert_uint_eq(pick_conf_option(&conf, "poll"), 0);
	pick_conf_free(&conf);
}
END_TEST

START_TEST(long_lines)
{
	static char text[8192];

	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "kvroute ", 8);
	ck_wrong(text, "1: the line is too long");
	memcpy(text, "server a:1 ", 11);
	text[2000] = '\0';
	ck_wrong(text, "1: the facts are too long");
	memcpy(text, "server ", 7);
	memset(text + 7, 'a', 400);
	memcpy(text + 300, ":80", 4);
	ck_wrong(text, "1: a server is HOST:PORT");
}
END_TEST

START_TEST(addresses)
{
	char host[CONF_NAME_MAX];
	unsigned port;

	ck_assert(pick_conf_split("[::1]:80", host, &port));
	ck_assert_str_eq(host, "::1");
	ck_assert_uint_eq(port, 80);
	ck_assert(!pick_conf_split("[]:80", host, &port));
	ck_assert(pick_conf_is_address("10.0.0.1:1"));
	ck_assert(pick_conf_is_address("[::1]:1"));
	ck_assert(!pick_conf_is_address("a:1"));
	ck_assert(!pick_conf_is_address("10.0.0.1"));
}
END_TEST

START_TEST(without_memory)
{
	unsigned long fail;

	for (fail = 1; fail < 4; fail++) {
		alloc_fail_at(fail);
		ck_assert(!read_text("kvroute size=1m;\nserver a:1;"));
		ck_assert_ptr_nonnull(strstr(error, "no memory"));
	}
	alloc_reset();
}
END_TEST

Suite *suite_pick_conf(void);

Suite *
suite_pick_conf(void)
{
	Suite *s = suite_create("pick_conf");
	TCase *c = tcase_create("pick_conf");

	tcase_add_test(c, all_directives);
	tcase_add_test(c, errors_have_a_line);
	tcase_add_test(c, lines_of_options);
	tcase_add_test(c, long_lines);
	tcase_add_test(c, addresses);
	tcase_add_test(c, without_memory);
	suite_add_tcase(s, c);
	return s;
}
