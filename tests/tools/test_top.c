/* SPDX-License-Identifier: BSD-2-Clause */
/* test_top.c - the output of kvroute-top for one status, and for two. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "reading.h"
#include "listing.h"

/* ------------------------------------------------------------- statuses --- */

#define WORKER(name, state, more) \
	"{\"name\":\"" name "\",\"state\":\"" state "\"," more "}"
#define COUNTED(opens, prompt, best, predicted, usage, cached) \
	"\"lease_opens\":" opens ",\"prompt_tokens\":" prompt \
	",\"best_tokens\":" best ",\"predicted_tokens\":" predicted \
	",\"usage_prompt_tokens\":" usage ",\"usage_cached_tokens\":" cached
#define UPSTREAM(name, more, workers) \
	"{\"name\":\"" name "\",\"attached\":true,\"policy\":\"balanced\"," \
	"\"block\":1024,\"ttl\":120.0,\"region\":{\"bytes\":67108864," \
	"\"cells\":1000,\"cells_free\":750,\"blocks\":12345,\"leases\":7," \
	"\"evicted_region\":" more "},\"retries\":3," \
	"\"aborts\":1,\"workers\":[" workers "]"
#define STATUS(upstreams) "{\"version\":\"1\",\"upstreams\":[" upstreams "]}"

static const char first[] = STATUS(UPSTREAM("a", "5",
    WORKER("b:1", "up", "\"rank\":1," COUNTED("10", "1000", "300", "200", "900",
    "450"))
    "," WORKER("b:1", "up", "\"rank\":0," COUNTED("50", "0", "0", "0", "0",
    "0")))
    ",\"reasons\":{\"cost\":10,\"tie\":5}}");
static const char second[] = STATUS(UPSTREAM("a", "25",
    WORKER("b:1", "draining", "\"rank\":1,\"requests\":3,\"backlog\":0.5,"
    "\"prefill_rate\":12345.0,\"held_blocks\":4096,\"retain\":\"ttl\","
    "\"polled\":{\"running\":4,\"waiting\":2,\"usage\":0.25},"
    COUNTED("30", "3000", "1500", "1200", "1900", "950"))
    "," WORKER("b:1", "up", "\"rank\":0,\"requests\":1,\"overloaded\":true,"
    "\"polled\":null," COUNTED("5", "100", "50", "25", "0", "0")))
    ",\"reasons\":{\"cost\":10,\"tie\":20,\"bound\":5}}");

static struct reading now, before;

static void
read_of(struct reading *r, const char *text)
{
	const char *wrong = reading_parse(r, text, strlen(text));

	ck_assert_msg(wrong == NULL, "%s", wrong == NULL ? "" : wrong);
}

static void
teardown(void)
{
	reading_free(&now);
	reading_free(&before);
}

/* --------------------------------------------------------------- lines --- */

static struct listing_line *line;
static size_t lines;

static void
make(const struct reading *was, double seconds, struct listing_view view)
{
	free(line);
	line = listing_make(was, &now, seconds, &view, &lines);
	ck_assert_ptr_nonnull(line);
}

static void
ck_line(size_t i, const char *text)
{
	ck_assert_uint_lt(i, lines);
	ck_assert_str_eq(line[i].text, text);
}

START_TEST(first_reading)
{
	read_of(&now, first);
	make(NULL, 0, (struct listing_view){ .width = 200 });
	ck_assert_uint_eq(lines, 10);
	ck_line(0, "Upstream  a, policy balanced, block 1.0k bytes, ttl 120 s");
	ck_line(1, "Workers   2: 2 up, 0 draining, 0 down, 0 overloaded");
	ck_line(2, "Requests  7 open");
	ck_line(3, "Prompts   cached: 30 % best, 20 % predicted, "
	    "50 % reported");
	ck_line(4, "Choices   67 % cost, 33 % tie");
	ck_line(5, "Index     25 % of 67M bytes, 12k blocks");
	ck_line(6, "");
	ck_line(8, "b:1@0                 up          0    -    0.00     -"
	    "     -     -     -     -      -     -     0         ");
	ck_line(9, "b:1@1                 up          0    -    0.00     -"
	    "     -    30    20    50      -     -     0         ");
	ck_assert_int_eq(line[7].kind, LISTING_HEAD);
	ck_assert_int_eq(line[9].kind, LISTING_ROW);
}
END_TEST

/* Rank 0 was reset: all it has is new. */
START_TEST(second_reading)
{
	read_of(&before, first);
	read_of(&now, second);
	make(&before, 2, (struct listing_view){ .width = 200 });
	ck_line(1, "Workers   2: 1 up, 1 draining, 0 down, 1 overloaded");
	ck_line(2, "Requests  7 open, 12/s, 0/s again, 0/s failed");
	ck_line(3, "Prompts   1.1k tokens/s, cached: 60 % best, "
	    "49 % predicted, 50 % reported");
	ck_line(4, "Choices   75 % tie, 25 % bound");
	ck_line(5, "Index     25 % of 67M bytes, 12k blocks, 10/s evicted");
	ck_line(7, "WORKER                STATE     REQ WAIT BACKLOG REQ/S"
	    " TOK/S BEST% PRED% SEEN% CACHE% SPEED  HELD KEEP    ");
	ck_line(8, "b:1@0                 overload    1    -    0.00   2.5"
	    "    50    50    25     -      -     -     0         ");
	ck_line(9, "b:1@1                 draining    3    2    0.50    10"
	    "  1.0k    60    50    50     25   12k  4.1k ttl     ");
	ck_assert_int_eq(line[8].kind, LISTING_TROUBLE);
	ck_assert_int_eq(line[9].kind, LISTING_ABSENT);
}
END_TEST

START_TEST(sorting)
{
	read_of(&now, second);
	make(NULL, 0, (struct listing_view){ .width = 80, .sort = 2 });
	ck_assert_ptr_nonnull(strstr(line[8].text, "b:1@1"));
	make(NULL, 0, (struct listing_view){ .width = 80, .sort = 2,
	    .reverse = true });
	ck_assert_ptr_nonnull(strstr(line[8].text, "b:1@0"));
	/* texts go upwards; an invalid column sorts by name */
	make(NULL, 0, (struct listing_view){ .width = 80, .sort = 1 });
	ck_assert_ptr_nonnull(strstr(line[8].text, "b:1@1"));
	make(NULL, 0, (struct listing_view){ .width = 80, .sort = 99 });
	ck_assert_ptr_nonnull(strstr(line[8].text, "b:1@0"));
	ck_assert_str_eq(listing_column(2), "REQ");
	ck_assert_str_eq(listing_column(listing_columns()), "");
}
END_TEST

/* No line is longer, and no cell is cut. */
START_TEST(widths)
{
	size_t width, i, n;

	read_of(&before, first);
	read_of(&now, second);
	for (width = 0; width < 300; width++) {
		make(&before, 1, (struct listing_view){ .width = width });
		n = width < LISTING_WIDTH_MIN ? LISTING_WIDTH_MIN :
		    width > LISTING_WIDTH_MAX ? LISTING_WIDTH_MAX : width;
		for (i = 0; i < lines; i++)
			ck_assert_uint_le(strlen(line[i].text), n);
		ck_assert_uint_eq(strlen(line[7].text), strlen(line[8].text));
		if (n < 39 + 6)
			ck_assert_ptr_null(strstr(line[7].text, "BACK"));
	}
}
END_TEST

START_TEST(several_upstreams)
{
	read_of(&now, STATUS(UPSTREAM("a", "0", "") "},"
	    "{\"name\":\"b\\n\",\"attached\":false,\"ttl\":-1,"
	    "\"workers\":[]}"));
	make(NULL, 0, (struct listing_view){ .width = 80 });
	ck_line(0, "Upstream  a (1 of 2), policy balanced, block 1.0k bytes, "
	    "ttl 120 s");
	ck_line(3, "Prompts   no requests");
	ck_assert_int_eq(line[1].kind, LISTING_TROUBLE);
	/* beyond the last; a control character is shown */
	make(NULL, 0, (struct listing_view){ .width = 80, .upstream = 9 });
	ck_line(0, "Upstream  b? (2 of 2), policy , block 0 bytes, ttl "
	    "endless");
	ck_line(1, "It has no index; the error log of the proxy says why.");
	ck_assert_uint_eq(lines, 2);
	reading_free(&now);
	read_of(&now, STATUS(""));
	make(NULL, 0, (struct listing_view){ .width = 80 });
	ck_line(0, "No upstream uses kvroute.");
}
END_TEST

/* The second member of this name counts. */
#define JUDGED(name, health, overloaded) \
	WORKER(name, "up", "\"health\":" health ",\"overloaded\":" overloaded)

/* States that keep requests away come first; an unknown word is gray. */
START_TEST(health)
{
	static const struct {
		const char *state;
		enum listing_kind kind;
	} of[] = { { "slow", LISTING_TROUBLE }, { "failing", LISTING_TROUBLE },
	    { "warming", LISTING_ABSENT }, { "overload", LISTING_TROUBLE },
	    { "up", LISTING_ROW }, { "odd?", LISTING_TROUBLE },
	    { "draining", LISTING_ABSENT }, { "up", LISTING_ROW } };
	size_t i;

	read_of(&now, STATUS(UPSTREAM("a", "0",
	    JUDGED("1", "\"slow\"", "true") ","
	    JUDGED("2", "\"failing\"", "false") ","
	    JUDGED("3", "\"warming\"", "false") ","
	    JUDGED("4", "\"warming\"", "true") ","
	    JUDGED("5", "\"good\"", "false") ","
	    JUDGED("6", "\"odd\\t\"", "false") ","
	    WORKER("7", "draining", "\"health\":\"slow\"") ","
	    JUDGED("8", "null", "false")) "}"));
	make(NULL, 0, (struct listing_view){ .width = 120 });
	ck_line(1, "Workers   8: 7 up, 1 draining, 0 down, 2 overloaded, "
	    "4 gray, 2 warming");
	ck_assert_int_eq(line[1].kind, LISTING_TROUBLE);
	ck_assert_uint_eq(lines, 15);
	for (i = 0; i < 8; i++) {
		ck_assert_int_eq(line[7 + i].text[0], (char)('1' + i));
		ck_assert_int_eq(strncmp(line[7 + i].text + 22, of[i].state,
		    strlen(of[i].state)), 0);
		ck_assert_int_eq(line[7 + i].text[22 + strlen(of[i].state)],
		    ' ');
		ck_assert_int_eq(line[7 + i].kind, of[i].kind);
	}
}
END_TEST

#define SESSIONS(hit, moved, gray, gone, bindings) \
	STATUS(UPSTREAM("a", "0,\"affinity_bindings\":" bindings, "") \
	",\"affinity\":{\"hit\":" hit ",\"new\":9,\"moved\":" moved \
	",\"moved_gray\":" gray ",\"gone\":" gone "}}")

/* A region has only their number. */
START_TEST(sessions)
{
	read_of(&before, SESSIONS("10", "4", "1", "0", "3"));
	read_of(&now, SESSIONS("18", "5", "2", "1", "12345"));
	make(&before, 1, (struct listing_view){ .width = 80 });
	ck_line(4, "Sessions  12k known, turns: 80 % stayed, 0 % moved, "
	    "10 % left gray, 10 % gone");
	make(NULL, 1, (struct listing_view){ .width = 120 });
	ck_line(4, "Sessions  12k known, turns: 75 % stayed, 12 % moved, "
	    "8 % left gray, 4 % gone");
	reading_free(&now);
	read_of(&now, SESSIONS("0", "0", "0", "0", "1"));
	make(NULL, 1, (struct listing_view){ .width = 80 });
	ck_line(4, "Sessions  1 known");
	reading_free(&now);
	/* counters that were read at different moments */
	read_of(&now, SESSIONS("1", "1", "3", "0", "0"));
	make(NULL, 1, (struct listing_view){ .width = 120 });
	ck_line(4, "Sessions  0 known, turns: 50 % stayed, 0 % moved, "
	    "50 % left gray");
	reading_free(&now);
	read_of(&now, SESSIONS("0", "0", "0", "0", "0"));
	make(NULL, 1, (struct listing_view){ .width = 80 });
	ck_line(4, "Index     25 % of 67M bytes, 12k blocks");
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		double value;
		const char *text;
	} of[] = { { 0, "0" }, { 0.04, "0.0" }, { 0.25, "0.2" }, { 9, "9" },
	    { 9.94, "9.9" }, { 9.96, "10" }, { 999.4, "999" },
	    { 999.6, "1.0k" }, { 9949, "9.9k" }, { 9951, "10k" },
	    { 123456, "123k" }, { 999600, "1.0M" }, { 1.8e19, "18E" },
	    { 9.9e20, "990E" }, { 1e22, "many" } };
	size_t i;
	char to[8];

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		listing_number(to, of[i].value);
		ck_assert_str_eq(to, of[i].text);
		ck_assert_uint_le(strlen(to), 5);
	}
}
END_TEST

/* --------------------------------------------------------------- errors --- */

START_TEST(no_status)
{
	static const char *const texts[] = { "", "x", "{", "[]", "{}", "null",
	    "{\"upstreams\":1}", "{\"upstreams\":{}}", "1" };
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ck_assert_ptr_nonnull(reading_parse(&now, texts[i],
		    strlen(texts[i])));
		reading_free(&now);
	}
}
END_TEST

/* A value of another kind than expected counts as absent. */
START_TEST(other_kinds)
{
	read_of(&now, "{\"upstreams\":[{\"name\":1,\"region\":[],\"workers\":"
	    "[{\"name\":{},\"requests\":\"7\",\"polled\":3,\"rank\":true,"
	    "\"prompt_tokens\":-5},4,null],\"reasons\":7,\"attached\":true},"
	    "5]}");
	ck_assert_uint_eq(now.upstreams, 2);
	ck_assert_uint_eq(now.upstream[0].workers, 3);
	ck_assert_uint_eq(now.upstream[0].worker[0].requests, 0);
	ck_assert_uint_eq(now.upstream[0].worker[0].prompt_tokens, 0);
	make(NULL, 0, (struct listing_view){ .width = 80 });
	ck_assert_uint_eq(lines, 10);
}
END_TEST

START_TEST(without_memory)
{
	struct listing_view view = { .width = 80 };
	unsigned long i;

	for (i = 1; i <= 2; i++) {
		read_of(&now, second);
		alloc_fail_at(i);
		ck_assert_ptr_null(listing_make(NULL, &now, 0, &view, &lines));
		alloc_reset();
		reading_free(&now);
		alloc_fail_at(i);
		ck_assert_str_eq(reading_parse(&now, second, strlen(second)),
		    "no memory");
		alloc_reset();
		reading_free(&now);
	}
}
END_TEST

Suite *suite_top(void);

Suite *
suite_top(void)
{
	Suite *s = suite_create("top");
	TCase *t = tcase_create("text");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, first_reading);
	tcase_add_test(t, second_reading);
	tcase_add_test(t, sorting);
	tcase_add_test(t, widths);
	tcase_add_test(t, several_upstreams);
	tcase_add_test(t, health);
	tcase_add_test(t, sessions);
	tcase_add_test(t, numbers);
	tcase_add_test(t, no_status);
	tcase_add_test(t, other_kinds);
	tcase_add_test(t, without_memory);
	suite_add_tcase(s, t);
	return s;
}
