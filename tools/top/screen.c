/* SPDX-License-Identifier: BSD-2-Clause */
/* screen.c - see screen.h. */
#include <curses.h>

#include "screen.h"

#include <stdlib.h>
#include <unistd.h>

enum { PAIR_ABSENT = 1, PAIR_TROUBLE };

bool
screen_open(struct screen *s)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	s->terminal = newterm(NULL, stdout, stdin);
	if (s->terminal == NULL)
		return false;
	(void)cbreak();
	(void)noecho();
	(void)nodelay(stdscr, TRUE);
	(void)keypad(stdscr, TRUE);
	(void)curs_set(0);
	if (has_colors() && getenv("NO_COLOR") == NULL) {
		(void)start_color();
		(void)use_default_colors();
		(void)init_pair(PAIR_ABSENT, COLOR_CYAN, -1);
		(void)init_pair(PAIR_TROUBLE, COLOR_RED, -1);
	}
	return true;
}

void
screen_close(struct screen *s)
{
	(void)endwin();
	delscreen(s->terminal);
}

size_t
screen_width(void)
{
	return COLS > 0 ? (size_t)COLS : 0;
}

static attr_t
look_of(enum listing_kind kind)
{
	switch (kind) {
	case LISTING_HEAD:
		return A_REVERSE;
	case LISTING_ABSENT:
		return A_DIM | (attr_t)COLOR_PAIR(PAIR_ABSENT);
	case LISTING_TROUBLE:
		return A_BOLD | (attr_t)COLOR_PAIR(PAIR_TROUBLE);
	default:
		return A_NORMAL;
	}
}

/* One line of the terminal, filled up to its end. */
static void
put_line(int at, const char *text, attr_t look)
{
	(void)attrset((int)look);
	(void)move(at, 0);
	(void)clrtoeol();
	(void)addnstr(text, COLS);
	if ((look & A_REVERSE) != 0)
		(void)chgat(-1, A_REVERSE, 0, NULL);
	(void)attrset(A_NORMAL);
}

/* Lines up to the head stay, those behind it scroll. */
static size_t
head_of(const struct listing_line *line, size_t lines)
{
	size_t i;

	for (i = 0; i < lines; i++)
		if (line[i].kind == LISTING_HEAD)
			return i + 1;
	return lines;
}

static void
first_bound(struct screen *s, size_t room)
{
	size_t last = s->rows > room ? s->rows - room : 0;

	if (s->first > last)
		s->first = last;
}

void
screen_draw(struct screen *s, const char *title,
    const struct listing_line *line, size_t lines, const char *below,
    bool trouble)
{
	size_t head = head_of(line, lines), i;
	int at = 0, room = LINES - 2;

	s->rows = lines - head;
	first_bound(s, room > (int)head ? (size_t)room - head : 1);
	(void)erase();
	put_line(at++, title, A_BOLD);
	for (i = 0; i < lines && at <= room; i++)
		if (i < head || i >= head + s->first)
			put_line(at++, line[i].text, look_of(line[i].kind));
	put_line(LINES - 1, below, trouble ? look_of(LISTING_TROUBLE) : A_DIM);
	(void)refresh();
}

static void
scroll_by(struct screen *s, long rows)
{
	if (rows < 0 && s->first < (size_t)-rows)
		s->first = 0;
	else
		s->first = (size_t)((long)s->first + rows);
}

enum screen_key
screen_key(struct screen *s)
{
	switch (getch()) {
	case ERR:
		return SCREEN_NONE;
	case 'q': case 'Q': case 3:
		return SCREEN_QUIT;
	case ' ':
		return SCREEN_PAUSE;
	case 'u': case '\t':
		return SCREEN_NEXT;
	case '<': case KEY_LEFT:
		return SCREEN_SORT_LEFT;
	case '>': case KEY_RIGHT:
		return SCREEN_SORT_RIGHT;
	case 'r':
		return SCREEN_REVERSE;
	case '\n': case 'g':
		return SCREEN_AGAIN;
	case 'h': case '?':
		return SCREEN_HINT;
	case KEY_UP: case 'k':
		scroll_by(s, -1);
		return SCREEN_MOVED;
	case KEY_DOWN: case 'j':
		scroll_by(s, 1);
		return SCREEN_MOVED;
	case KEY_PPAGE:
		scroll_by(s, -(LINES / 2));
		return SCREEN_MOVED;
	case KEY_NPAGE:
		scroll_by(s, LINES / 2);
		return SCREEN_MOVED;
	case KEY_HOME:
		s->first = 0;
		return SCREEN_MOVED;
	default: /* KEY_RESIZE, too */
		return SCREEN_MOVED;
	}
}
