/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-top - the workers of an index and their load, live.
 *
 *   source.h ---> reading.h ---> listing.h ---> screen.h, or standard output
 */
#include "args_table.h"
#include "screen.h"
#include "source.h"

#include <err.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <bsd/string.h>
#include <curl/curl.h>

enum { HEADERS_MAX = 16, TIMEOUT_MS = 10000, TITLE_MAX = 512 };

static const char usage_text[] =
"usage: kvroute-top [--interval SECONDS] [--batch] [--count N]\n"
"           [--sort COLUMN] [--upstream NAME]\n"
"           [--header LINE ...] URL | FILE\n"
"       kvroute-top --help | --version\n";

struct top {
	int64_t interval;          /* ns */
	bool batch, paused, hint;
	bool again;                /* read without waiting */
	uint64_t count;
	const char *upstream;      /* wanted; NULL: by its place */
	const char *header[HEADERS_MAX];
	size_t headers;
	struct source source;
	struct reading before, now;
	int64_t before_at, now_at; /* ns; now_at 0: nothing was read yet */
	char wrong[sizeof(((struct source *)NULL)->why)]; /* with the last */
	struct listing_view view;
	struct screen screen;
};

/* ------------------------------------------------------------- options --- */

static size_t
column_of(const char *name)
{
	size_t i;

	for (i = 0; i < listing_columns(); i++)
		if (strcasecmp(listing_column(i), name) == 0)
			return i;
	fprintf(stderr, "kvroute-top: --sort %s: not one of", name);
	for (i = 0; i < listing_columns(); i++)
		fprintf(stderr, " %s", listing_column(i));
	fputc('\n', stderr);
	exit(ARGS_USAGE);
}

static void
take_interval(void *top, const struct args_row *row, const char *text)
{
	struct top *t = top;

	t->interval = args_ttl(row->name, text);
	if (t->interval < 100000000 ||
	    t->interval > INT64_C(3600) * 1000000000)
		errx(ARGS_USAGE, "--interval %s: not from 0.1 to 3600", text);
}

static void
take_sort(void *top, const struct args_row *row, const char *text)
{
	(void)row;
	((struct top *)top)->view.sort = column_of(text);
}

static void
add_header(void *top, const struct args_row *row, const char *text)
{
	struct top *t = top;

	if (t->headers == HEADERS_MAX)
		errx(ARGS_USAGE, "--%s: more than %d", row->name, HEADERS_MAX);
	t->header[t->headers++] = text;
}

static const struct args_row option_rows[] = {
	{ "interval", "SECONDS", "between readings (2)", ARGS_CALL,
	    .take = take_interval },
	{ "batch", NULL, "writes text, to a pipe or a file", ARGS_FLAG,
	    .at = offsetof(struct top, batch) },
	{ "count", "N", "readings in batch mode; 0: without end (0)",
	    ARGS_UINT64, .at = offsetof(struct top, count),
	    .max = UINT32_MAX },
	{ "sort", "COLUMN", "as the head of the table names it (WORKER)",
	    ARGS_CALL, .take = take_sort },
	{ "upstream", "NAME", "of several (the first)", ARGS_STRING,
	    .at = offsetof(struct top, upstream) },
	{ "header", "LINE", "to be sent, such as an authorization", ARGS_CALL,
	    .take = add_header },
	{ .kind = ARGS_PROSE, .help =
	    "\nKeys: q quit, space pause, < > column to sort by, r the other "
	    "way around,\nu next upstream, h what the column means, enter read "
	    "now, arrows scroll.\n" }
};

static const struct args_table options = {
	"kvroute-top", usage_text,
	"\nShows the workers of an index and what they do.\n\n"
	"  URL                 of kvroute_status in nginx: "
	"http://127.0.0.1/kvroute\n"
	"  FILE                a region, of kvroute path= in nginx\n",
	22, option_rows, sizeof(option_rows) / sizeof(option_rows[0])
};

/* ------------------------------------------------------------- reading --- */

static int64_t
clock_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
note_failure(struct top *t, const char *why)
{
	strlcpy(t->wrong, why, sizeof(t->wrong));
}

static bool
upstream_find(struct top *t)
{
	size_t i;

	if (t->upstream == NULL)
		return true;
	for (i = 0; i < t->now.upstreams; i++) {
		if (strcmp(t->now.upstream[i].name, t->upstream) == 0) {
			t->view.upstream = i;
			return true;
		}
	}
	return false;
}

/* An answer has come: it is the reading, if it is sound. */
static void
take_answer(struct top *t)
{
	struct reading r;
	const char *why = reading_parse(&r, t->source.text, t->source.n);

	if (why != NULL) {
		reading_free(&r);
		note_failure(t, why);
		return;
	}
	reading_free(&t->before);
	t->before = t->now;
	t->before_at = t->now_at;
	t->now = r;
	t->now_at = clock_ns();
	t->wrong[0] = '\0';
	if (!upstream_find(t))
		note_failure(t, "there is no such upstream");
}

/* True: there is something new to show. */
static bool
settle_answer(struct top *t)
{
	if (t->source.state == SOURCE_HERE)
		take_answer(t);
	else if (t->source.state == SOURCE_FAILED)
		note_failure(t, t->source.why);
	else
		return false;
	t->source.state = SOURCE_IDLE;
	return true;
}

static struct listing_line *
make_table(struct top *t, size_t *lines)
{
	struct listing_line *line = listing_make(t->before_at == 0 ? NULL :
	    &t->before, &t->now, (double)(t->now_at - t->before_at) * 1e-9,
	    &t->view, lines);

	if (line == NULL)
		errx(ARGS_FAILED, "no memory");
	return line;
}

static void
make_title(const struct top *t, char to[TITLE_MAX])
{
	char time_text[16] = "";
	time_t now = time(NULL);
	struct tm parts;

	if (localtime_r(&now, &parts) != NULL)
		(void)strftime(time_text, sizeof(time_text), "%H:%M:%S",
		    &parts);
	(void)snprintf(to, TITLE_MAX, "kvroute-top %s  %s  every %g s%s  %s",
	    kvr_version_string(), time_text, (double)t->interval * 1e-9,
	    t->paused ? ", paused" : "", t->source.where);
}

/* --------------------------------------------------------------- batch --- */

static void
print_reading(struct top *t)
{
	char text[TITLE_MAX];
	struct listing_line *line;
	size_t lines, i;

	line = make_table(t, &lines);
	make_title(t, text);
	puts(text);
	for (i = 0; i < lines; i++)
		puts(line[i].text);
	putchar('\n');
	free(line);
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
}

/* The first reading must work; later ones may fail in between. */
static void
run_batch(struct top *t)
{
	int64_t due = clock_ns();
	uint64_t i;

	t->view.width = LISTING_WIDTH_MAX;
	for (i = 0; t->count == 0 || i < t->count; i++, due += t->interval) {
		if (due < clock_ns()) /* the last one took longer */
			due = clock_ns();
		while (clock_ns() < due)
			source_wait(&t->source, -1,
			    (int)((due - clock_ns()) / 1000000 + 1));
		source_ask(&t->source);
		while (!settle_answer(t))
			source_wait(&t->source, -1, TIMEOUT_MS);
		if (t->wrong[0] == '\0')
			print_reading(t);
		else if (i == 0)
			errx(ARGS_FAILED, "%s", t->wrong);
		else
			warnx("%s", t->wrong);
	}
}

/* ---------------------------------------------------------- interactive --- */

static void
draw_screen(struct top *t)
{
	char text[TITLE_MAX], below[TITLE_MAX];
	struct listing_line *line = NULL;
	size_t lines = 0, sort = t->view.sort;
	const char *order = t->view.reverse ? ", reversed" : "";

	t->view.width = screen_width();
	if (t->now_at != 0)
		line = make_table(t, &lines);
	make_title(t, text);
	if (t->wrong[0] != '\0')
		strlcpy(below, t->wrong, sizeof(below));
	else if (t->hint)
		(void)snprintf(below, sizeof(below), "%s: %s",
		    listing_column(sort), listing_meaning(sort));
	else
		(void)snprintf(below, sizeof(below), "q quit  space pause  "
		    "u upstream  h help  < > r sorted by %s%s",
		    listing_column(sort), order);
	screen_draw(&t->screen, text, line, lines, below,
	    t->wrong[0] != '\0');
	free(line);
}

static void
upstream_next(struct top *t)
{
	t->upstream = NULL;
	t->screen.first = 0;
	if (++t->view.upstream >= t->now.upstreams)
		t->view.upstream = 0;
}

/* False: the end. */
static bool
obey_key(struct top *t, enum screen_key key)
{
	const size_t n = listing_columns();

	if (key == SCREEN_QUIT)
		return false;
	if (key == SCREEN_PAUSE)
		t->paused = !t->paused;
	else if (key == SCREEN_NEXT)
		upstream_next(t);
	else if (key == SCREEN_SORT_LEFT)
		t->view.sort = (t->view.sort + n - 1) % n;
	else if (key == SCREEN_SORT_RIGHT)
		t->view.sort = (t->view.sort + 1) % n;
	else if (key == SCREEN_REVERSE)
		t->view.reverse = !t->view.reverse;
	else if (key == SCREEN_HINT)
		t->hint = !t->hint;
	t->again |= key == SCREEN_AGAIN || (key == SCREEN_PAUSE && !t->paused);
	return true;
}

static void
ask_if_due(struct top *t, int64_t *due)
{
	if (!t->again && (t->paused || clock_ns() < *due))
		return;
	source_ask(&t->source);
	t->again = false;
	*due = clock_ns() + t->interval;
}

static int
wait_ms(const struct top *t, int64_t due)
{
	int64_t ms = (due - clock_ns()) / 1000000 + 1;

	return t->paused || ms > TIMEOUT_MS ? TIMEOUT_MS : ms < 0 ? 0 :
	    (int)ms;
}

static void
run_screen(struct top *t)
{
	enum screen_key key;
	int64_t due = clock_ns();
	bool on = true;

	draw_screen(t);
	while (on) {
		bool changed;

		ask_if_due(t, &due);
		changed = settle_answer(t);
		if (!changed)
			source_wait(&t->source, STDIN_FILENO,
			    wait_ms(t, due));
		while (on && (key = screen_key(&t->screen)) != SCREEN_NONE) {
			on = obey_key(t, key);
			changed = true;
		}
		if (changed)
			draw_screen(t);
	}
}

/* ---------------------------------------------------------------- main --- */

int
main(int argc, char **argv)
{
	struct top t = { .interval = INT64_C(2) * 1000000000 };
	int next = args_parse(&options, &t, argc, argv);

	if (argc - next != 1)
		args_usage(&options);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
	    !source_open(&t.source, argv[next], t.header, t.headers,
	    TIMEOUT_MS))
		errx(ARGS_FAILED, "no memory");
	if (t.batch) {
		run_batch(&t);
	} else {
		if (!screen_open(&t.screen))
			errx(ARGS_FAILED, "no terminal: see --batch");
		run_screen(&t);
		screen_close(&t.screen);
	}
	source_close(&t.source);
	reading_free(&t.before);
	reading_free(&t.now);
	curl_global_cleanup();
	return 0;
}
