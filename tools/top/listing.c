/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listing.c - see listing.h.
 *
 *   Upstream  engines (1 of 2), policy balanced, block 1.0k, ttl 120 s
 *   Workers   5: 4 up, 1 draining, 0 down, 0 overloaded, 1 gray, 0 warming
 *   Requests  35.2/s, 23 open, 0.1/s again, 0/s failed
 *   Prompts   1.2M tokens/s, cached: 88 % best, 83 % predicted, 79 % reported
 *   Choices   80 % overlap, 12 % load
 *   Sessions  512 known, turns: 93 % stayed, 5 % moved, 2 % left gray
 *   Index     34 % of 64M, 120k blocks, 0/s evicted
 *
 *   WORKER          STATE     REQ  WAIT ...
 *   10.0.0.1:8000   up         12     3 ...
 */
#include "listing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_ABOVE = 11, CELL = 64, UNKNOWN = -1 };

enum column {
	WORKER, STATE, REQUESTS, WAITING, BACKLOG, RATE, TOKENS, BEST,
	PREDICTED, REPORTED, CACHE, SPEED, HELD, KEEP, COLUMNS
};

/* Texts are on the left and sorted upwards, numbers on the right and down. */
static const struct {
	const char *name;
	int width;
	enum { TEXT, NUMBER, SHARE, SECONDS } kind;
	const char *meaning;
} columns[COLUMNS] = {
	[WORKER] = { "WORKER", 21, TEXT, "the engine, and its rank" },
	[STATE] = { "STATE", 8, TEXT, "up, draining, down; slow or failing: "
	    "gray; overload; warming" },
	[REQUESTS] = { "REQ", 4, NUMBER, "requests booked on it now" },
	[WAITING] = { "WAIT", 4, NUMBER,
	    "requests that wait, as the engine says" },
	[BACKLOG] = { "BACKLOG", 7, SECONDS,
	    "seconds of prefill booked on it" },
	[RATE] = { "REQ/S", 5, NUMBER, "requests a second" },
	[TOKENS] = { "TOK/S", 5, NUMBER, "tokens of prompts a second" },
	[BEST] = { "BEST%", 5, SHARE,
	    "of the prompts, cached where most was, as predicted" },
	[PREDICTED] = { "PRED%", 5, SHARE,
	    "of the prompts, cached as predicted" },
	[REPORTED] = { "SEEN%", 5, SHARE,
	    "of the prompts, cached as the engine reported" },
	[CACHE] = { "CACHE%", 6, SHARE,
	    "of its cache in use, as the engine says" },
	[SPEED] = { "SPEED", 5, NUMBER,
	    "tokens that it prefills in a second, as learnt" },
	[HELD] = { "HELD", 5, NUMBER, "blocks on record" },
	[KEEP] = { "KEEP", 8, TEXT, "how these are given up" }
};

struct row {
	const struct reading_worker *is;
	double value[COLUMNS]; /* below 0: not known */
};

/* The difference of counters between two readings. */
struct counts {
	double opens, prompt, predicted, best; /* tokens, estimated */
	double usage, cached;                  /* as the engine counts */
};

struct made {
	struct listing_line *line;
	size_t lines, width;
	const struct reading_upstream *is, *was; /* was: NULL, no reading */
	double seconds;
	struct row *row;            /* of each worker */
};

/* ------------------------------------------------------------- numbers --- */

void
listing_number(char to[8], double value)
{
	static const char units[] = " kMGTPE";
	size_t unit = 0;

	if (!(value < 1e21)) {
		strcpy(to, "many");
		return;
	}
	/* 999.5 would become 1000 */
	for (; value >= 999.5 && units[unit + 1] != '\0'; value /= 1000)
		unit++;
	if (unit == 0)
		snprintf(to, 8, value < 9.95 && floor(value) < value ? "%.1f" :
		    "%.0f", value);
	else
		snprintf(to, 8, value < 9.95 ? "%.1f%c" : "%.0f%c", value,
		    units[unit]);
}

static void
cell_number(char *to, double value)
{
	if (value < 0)
		strcpy(to, "-");
	else
		listing_number(to, value);
}

static void
cell_share(char *to, double share)
{
	if (share < 0)
		strcpy(to, "-");
	else
		snprintf(to, CELL, "%.0f", share < 10 ? share * 100 : 999.);
}

/* The count since then; all of it if it began anew. */
static double
count_since(uint64_t now, uint64_t before)
{
	return now >= before ? (double)(now - before) : (double)now;
}

/* Below 0: of nothing. */
static double
share_of(double part, double whole)
{
	return whole > 0 ? part / whole : UNKNOWN;
}

static double
a_second(const struct made *m, double count)
{
	return m->was != NULL && m->seconds > 0 ? count / m->seconds : UNKNOWN;
}

/* ---------------------------------------------------------------- rows --- */

static const struct reading_worker *
same_worker(const struct reading_upstream *was,
    const struct reading_worker *is)
{
	static const struct reading_worker none;
	size_t i;

	for (i = 0; was != NULL && i < was->workers; i++)
		if (was->worker[i].rank == is->rank &&
		    strcmp(was->worker[i].name, is->name) == 0 &&
		    was->worker[i].opens <= is->opens)
			return &was->worker[i];
	return &none;
}

/* The numbers as of now. */
static void
row_begin(struct row *row, const struct reading_worker *is)
{
	memset(row, 0, sizeof(*row));
	row->is = is;
	row->value[REQUESTS] = (double)is->requests;
	row->value[WAITING] = is->waiting;
	row->value[BACKLOG] = is->backlog;
	row->value[SPEED] = is->prefill_rate > 0 ? is->prefill_rate : UNKNOWN;
	row->value[CACHE] = is->usage;
	row->value[HELD] = (double)is->held_blocks;
}

/* Adds the differences to the sums. */
static void
row_since(const struct made *m, struct row *row, struct counts *sum)
{
	const struct reading_worker *is = row->is;
	const struct reading_worker *was = same_worker(m->was, is);
	const struct counts n = {
		count_since(is->opens, was->opens),
		count_since(is->prompt_tokens, was->prompt_tokens),
		count_since(is->predicted_tokens, was->predicted_tokens),
		count_since(is->best_tokens, was->best_tokens),
		count_since(is->usage_prompt, was->usage_prompt),
		count_since(is->usage_cached, was->usage_cached)
	};

	row->value[RATE] = a_second(m, n.opens);
	row->value[TOKENS] = a_second(m, n.prompt);
	row->value[BEST] = share_of(n.best, n.prompt);
	row->value[PREDICTED] = share_of(n.predicted, n.prompt);
	row->value[REPORTED] = share_of(n.cached, n.usage);
	sum->opens += n.opens;
	sum->prompt += n.prompt;
	sum->predicted += n.predicted;
	sum->best += n.best;
	sum->usage += n.usage;
	sum->cached += n.cached;
}

static void
rows_make(struct made *m, struct counts *sum)
{
	size_t i;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; i < m->is->workers; i++) {
		row_begin(&m->row[i], &m->is->worker[i]);
		row_since(m, &m->row[i], sum);
	}
}

/* ------------------------------------------------------------- columns --- */

static bool
is_warming(const struct reading_worker *w)
{
	return strcmp(w->health, "warming") == 0;
}

/* By whatever word: newer proxies may have others. */
static bool
is_gray(const struct reading_worker *w)
{
	return w->health[0] != '\0' && strcmp(w->health, "good") != 0 &&
	    !is_warming(w);
}

/* States that keep requests away come first. */
static const char *
state_of(const struct reading_worker *w)
{
	if (strcmp(w->state, "up") != 0)
		return w->state;
	if (is_gray(w))
		return w->health;
	return w->overloaded ? "overload" : is_warming(w) ? w->health :
	    w->state;
}

size_t
listing_columns(void)
{
	return COLUMNS;
}

const char *
listing_column(size_t i)
{
	return i < COLUMNS ? columns[i].name : "";
}

const char *
listing_meaning(size_t i)
{
	return i < COLUMNS ? columns[i].meaning : "";
}

static const char *
name_of(const struct reading_worker *w, char *to)
{
	if (w->rank < 0)
		return w->name;
	snprintf(to, CELL + READING_NAME, "%s@%d", w->name, (int)w->rank);
	return to;
}

/* Text of a column; in `to` if need be, of CELL + READING_NAME bytes. */
static const char *
text_of(const struct row *r, size_t column, char *to)
{
	const double value = r->value[column];

	switch (column) {
	case WORKER:
		return name_of(r->is, to);
	case STATE:
		return state_of(r->is);
	case KEEP:
		return r->is->retain;
	default:
		break;
	}
	if (columns[column].kind == SHARE)
		cell_share(to, value);
	else if (columns[column].kind == SECONDS)
		snprintf(to, CELL, value < 1e4 ? "%.2f" : "%.0e", value);
	else
		cell_number(to, value);
	return to;
}

/* ------------------------------------------------------------- sorting --- */

static int
by_name(const struct row *a, const struct row *b)
{
	int order = strcmp(a->is->name, b->is->name);

	return order != 0 ? order : (a->is->rank > b->is->rank) -
	    (a->is->rank < b->is->rank);
}

static int
compare_rows(const struct row *a, const struct row *b, size_t column)
{
	char x[CELL + READING_NAME], y[CELL + READING_NAME];
	double v, w;

	if (column == WORKER)
		return by_name(a, b);
	if (columns[column].kind == TEXT)
		return strcmp(text_of(a, column, x), text_of(b, column, y));
	v = a->value[column];
	w = b->value[column];
	return (v < w) - (v > w);
}

/* Few rows, once a second: by insertion, which keeps equal ones in order. */
static void
rows_sort(struct row *row, size_t n, const struct listing_view *view)
{
	size_t column = view->sort < COLUMNS ? view->sort : WORKER, i, j;
	struct row one;
	int order;

	for (i = 1; i < n; i++) {
		one = row[i];
		for (j = i; j > 0; j--) {
			order = compare_rows(&row[j - 1], &one, column);
			if ((view->reverse ? -order : order) <= 0)
				break;
			row[j] = row[j - 1];
		}
		row[j] = one;
	}
}

/* --------------------------------------------------------------- lines --- */

static struct listing_line *
line_begin(struct made *m, enum listing_kind kind)
{
	struct listing_line *line = &m->line[m->lines++];

	line->kind = kind;
	line->text[0] = '\0';
	return line;
}

/* Appends, as far as the width allows. */
__attribute__((format(printf, 3, 4))) static void
put(const struct made *m, struct listing_line *line, const char *format, ...)
{
	size_t n = strlen(line->text);
	va_list arguments;

	va_start(arguments, format);
	if (n < m->width)
		(void)vsnprintf(line->text + n, m->width + 1 - n, format,
		    arguments);
	va_end(arguments);
}

/* A cell and a space ahead of it, if there is room. */
static void
put_cell(const struct made *m, struct listing_line *line, size_t column,
    const char *text)
{
	const int width = columns[column].width;
	size_t room = (size_t)width + (column > 0);

	if (strlen(line->text) + room > m->width)
		return;
	put(m, line, columns[column].kind == TEXT ? "%s%-*.*s" : "%s%*.*s",
	    column > 0 ? " " : "", width, width, text);
}

static void
put_rate(const struct made *m, struct listing_line *line, const char *before,
    double value, const char *unit)
{
	char text[CELL];

	if (value < 0)
		return;
	cell_number(text, value);
	put(m, line, "%s%s%s", before, text, unit);
}

static void
put_share(const struct made *m, struct listing_line *line, const char *before,
    double share, const char *what)
{
	if (share >= 0)
		put(m, line, "%s%.0f %% %s", before, share * 100, what);
}

/* -------------------------------------------------------------- totals --- */

static void
upstream_line(struct made *m, size_t place, size_t upstreams)
{
	struct listing_line *l = line_begin(m, LISTING_PLAIN);
	char block[8];

	listing_number(block, (double)m->is->block);
	put(m, l, "Upstream  %s", m->is->name);
	if (upstreams > 1)
		put(m, l, " (%zu of %zu)", place + 1, upstreams);
	put(m, l, ", policy %s, block %s bytes, ttl ", m->is->policy, block);
	if (m->is->ttl < 0)
		put(m, l, "endless");
	else
		put(m, l, "%g s", m->is->ttl);
}

static void
workers_line(struct made *m)
{
	size_t up = 0, draining = 0, overloaded = 0, gray = 0, warming = 0;
	struct listing_line *l;
	bool judged = false;
	size_t i;

	for (i = 0; i < m->is->workers; i++) {
		const struct reading_worker *w = &m->is->worker[i];

		up += strcmp(w->state, "up") == 0;
		draining += strcmp(w->state, "draining") == 0;
		overloaded += w->overloaded;
		gray += is_gray(w);
		warming += is_warming(w);
		judged |= w->health[0] != '\0';
	}
	l = line_begin(m, up == 0 || gray > 0 ? LISTING_TROUBLE :
	    LISTING_PLAIN);
	put(m, l, "Workers   %zu: %zu up, %zu draining, %zu down, "
	    "%zu overloaded", m->is->workers, up, draining,
	    m->is->workers - up - draining, overloaded);
	if (judged)
		put(m, l, ", %zu gray, %zu warming", gray, warming);
}

static void
requests_line(struct made *m, const struct counts *sum)
{
	const struct reading_upstream *was = m->was;
	struct listing_line *l = line_begin(m, LISTING_PLAIN);

	put(m, l, "Requests  %llu open", (unsigned long long)m->is->leases);
	put_rate(m, l, ", ", a_second(m, sum->opens), "/s");
	if (was == NULL || m->is->reasons == 0)
		return;
	put_rate(m, l, ", ", a_second(m, count_since(m->is->retries,
	    was->retries)), "/s again");
	put_rate(m, l, ", ", a_second(m, count_since(m->is->aborts,
	    was->aborts)), "/s failed");
}

static void
prompts_line(struct made *m, const struct counts *sum)
{
	struct listing_line *l = line_begin(m, LISTING_PLAIN);
	const double rate = a_second(m, sum->prompt);
	const char *comma = rate < 0 ? "" : ", ";

	put(m, l, "Prompts   ");
	put_rate(m, l, "", rate, " tokens/s");
	if (!(sum->prompt > 0))
		put(m, l, "%sno requests", comma);
	put(m, l, "%s", sum->prompt > 0 ? comma : "");
	put_share(m, l, "cached: ", share_of(sum->best, sum->prompt), "best");
	put_share(m, l, ", ", share_of(sum->predicted, sum->prompt),
	    "predicted");
	put_share(m, l, ", ", share_of(sum->cached, sum->usage), "reported");
}

static uint64_t
choices_before(const struct made *m, const char *name)
{
	size_t i;

	for (i = 0; m->was != NULL && i < m->was->reasons; i++)
		if (strcmp(m->was->reason[i].name, name) == 0)
			return m->was->reason[i].choices;
	return 0;
}

/* The largest first. */
static int
reason_order(const void *a, const void *b)
{
	const struct reading_reason *x = a, *y = b;

	return (x->choices < y->choices) - (x->choices > y->choices);
}

static void
choices_line(struct made *m)
{
	struct reading_reason all[READING_REASONS];
	const char *comma = "";
	struct listing_line *l;
	double sum = 0;
	size_t i;

	if (m->is->reasons == 0)
		return;
	l = line_begin(m, LISTING_PLAIN);
	put(m, l, "Choices   ");
	for (i = 0; i < m->is->reasons; i++) {
		all[i] = m->is->reason[i];
		all[i].choices = (uint64_t)count_since(all[i].choices,
		    choices_before(m, all[i].name));
		sum += (double)all[i].choices;
	}
	qsort(all, m->is->reasons, sizeof(all[0]), reason_order);
	for (i = 0; i < m->is->reasons && all[i].choices > 0; i++) {
		put_share(m, l, comma, (double)all[i].choices / sum,
		    all[i].name);
		comma = ", ";
	}
	if (!(sum > 0))
		put(m, l, "none");
}

/* Turns of sessions that had a worker. */
static void
sessions_line(struct made *m)
{
	static const struct reading_upstream none;
	const struct reading_upstream *is = m->is, *was = m->was;
	double stayed, moved, gray, gone, turns;
	struct listing_line *l;
	char text[8];

	if (was == NULL)
		was = &none;
	stayed = count_since(is->session_hits, was->session_hits);
	moved = count_since(is->session_moves, was->session_moves);
	gray = count_since(is->session_grays, was->session_grays);
	gone = count_since(is->session_gone, was->session_gone);
	turns = stayed + moved + gone;
	if (is->sessions == 0 && !(turns > 0))
		return;
	/* counters are not read at one moment */
	gray = gray < moved ? gray : moved;
	l = line_begin(m, LISTING_PLAIN);
	listing_number(text, (double)is->sessions);
	put(m, l, "Sessions  %s known", text);
	put_share(m, l, ", turns: ", share_of(stayed, turns), "stayed");
	put_share(m, l, ", ", share_of(moved - gray, turns), "moved");
	if (gray > 0)
		put_share(m, l, ", ", share_of(gray, turns), "left gray");
	if (gone > 0)
		put_share(m, l, ", ", share_of(gone, turns), "gone");
}

static void
index_line(struct made *m)
{
	const struct reading_upstream *is = m->is;
	struct listing_line *l = line_begin(m, LISTING_PLAIN);
	char bytes[8], blocks[8];

	listing_number(bytes, (double)is->region_bytes);
	listing_number(blocks, (double)is->blocks);
	put(m, l, "Index     ");
	put_share(m, l, "", share_of((double)is->cells -
	    (double)is->cells_free, (double)is->cells), "of ");
	put(m, l, "%s bytes, %s blocks", bytes, blocks);
	if (m->was != NULL)
		put_rate(m, l, ", ", a_second(m, count_since(is->evicted,
		    m->was->evicted)), "/s evicted");
}

/* --------------------------------------------------------------- table --- */

static void
head_line(struct made *m)
{
	struct listing_line *l = line_begin(m, LISTING_HEAD);
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		put_cell(m, l, i, columns[i].name);
}

static void
row_line(struct made *m, const struct row *r)
{
	struct listing_line *l = line_begin(m,
	    strcmp(r->is->state, "up") != 0 ? LISTING_ABSENT :
	    r->is->overloaded || is_gray(r->is) ? LISTING_TROUBLE :
	    is_warming(r->is) ? LISTING_ABSENT : LISTING_ROW);
	char to[CELL + READING_NAME];
	size_t i;

	for (i = 0; i < COLUMNS; i++)
		put_cell(m, l, i, text_of(r, i, to));
}

static void
upstream_lines(struct made *m, const struct listing_view *view)
{
	struct counts sum;
	size_t i;

	rows_make(m, &sum);
	workers_line(m);
	requests_line(m, &sum);
	prompts_line(m, &sum);
	choices_line(m);
	sessions_line(m);
	index_line(m);
	(void)line_begin(m, LISTING_PLAIN);
	rows_sort(m->row, m->is->workers, view);
	head_line(m);
	for (i = 0; i < m->is->workers; i++)
		row_line(m, &m->row[i]);
}

/* The same upstream; NULL: it was not there. */
static const struct reading_upstream *
same_upstream(const struct reading *was, const struct reading_upstream *is)
{
	size_t i;

	for (i = 0; was != NULL && i < was->upstreams; i++)
		if (was->upstream[i].attached &&
		    strcmp(was->upstream[i].name, is->name) == 0)
			return &was->upstream[i];
	return NULL;
}

static size_t
bound_width(size_t width)
{
	return width < LISTING_WIDTH_MIN ? LISTING_WIDTH_MIN :
	    width > LISTING_WIDTH_MAX ? LISTING_WIDTH_MAX : width;
}

struct listing_line *
listing_make(const struct reading *before, const struct reading *now,
    double seconds, const struct listing_view *view, size_t *lines)
{
	size_t place = view->upstream < now->upstreams ? view->upstream :
	    now->upstreams - 1;
	size_t workers = now->upstreams > 0 ?
	    now->upstream[place].workers : 0;
	struct made m = { .width = bound_width(view->width), .seconds
	    = seconds };

	m.line = calloc(workers + LINES_ABOVE, sizeof(*m.line));
	m.row = calloc(workers + 1, sizeof(*m.row));
	if (m.line == NULL || m.row == NULL) {
		free(m.line);
		free(m.row);
		return NULL;
	}
	if (now->upstreams == 0) {
		put(&m, line_begin(&m, LISTING_TROUBLE), "No upstream uses "
		    "kvroute.");
	} else {
		m.is = &now->upstream[place];
		m.was = same_upstream(before, m.is);
		upstream_line(&m, place, now->upstreams);
		if (m.is->attached)
			upstream_lines(&m, view);
		else
			put(&m, line_begin(&m, LISTING_TROUBLE), "It has no "
			    "index; the error log of the proxy says why.");
	}
	free(m.row);
	*lines = m.lines;
	return m.line;
}
