/* SPDX-License-Identifier: BSD-2-Clause */
/* args_table.c - see args_table.h. */
#include "args_table.h"

#include <kvroute.h>

#include <err.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 64, HELP = 256, VERSION, FIRST_ROW };

void
args_usage(const struct args_table *t)
{
	fputs(t->usage, stderr);
	exit(ARGS_USAGE);
}

/* ----------------------------------------------------------------- help --- */

/* Returns the number of columns. */
static int
print_name(const struct args_row *row)
{
	const char *argument = row->argument == NULL ? "" : row->argument;
	const char *space = row->argument == NULL ? "" : " ";

	if (row->name == NULL)
		return printf("  -%c%s%s", row->letter, space, argument);
	if (row->letter != 0)
		return printf("  -%c, --%s%s%s", row->letter, row->name, space,
		    argument);
	return printf("  --%s%s%s", row->name, space, argument);
}

static void
print_row(const struct args_row *row, int column)
{
	const char *line = row->help;
	int used = print_name(row), n;

	used += printf("%*s", used < column ? column - used : 2, "");
	for (;; line += n + 1) {
		n = (int)strcspn(line, "\n");
		printf("%*s%.*s\n", line == row->help ? 0 : column, "", n,
		    line);
		if (line[n] == '\0')
			break;
	}
}

static _Noreturn void
print_help(const struct args_table *t)
{
	int column = t->column;
	size_t i;

	printf("%s%s", t->usage, t->introduction);
	for (i = 0; i < t->n; i++) {
		const struct args_row *row = &t->rows[i];

		if (row->kind == ARGS_PROSE) {
			fputs(row->help, stdout);
			column = row->column > 0 ? row->column : column;
		} else if (row->help != NULL) {
			print_row(row, column);
		}
	}
	exit(0);
}

/* --------------------------------------------------------------- values --- */

/* From 0 to 100; as a share. */
static double
read_percent(const char *option, const char *text)
{
	int64_t billionths = args_ttl(option, text);

	if (billionths < 0 || billionths > INT64_C(100000000000))
		errx(ARGS_USAGE, "--%s %s: not from 0 to 100", option, text);
	return (double)billionths / 1e11;
}

static void
store_whole(const struct args_row *row, const char *text, void *at)
{
	uint64_t n = args_number(row->name, text, row->min, row->max);

	if (row->kind == ARGS_UINT16)
		*(uint16_t *)at = (uint16_t)n;
	else if (row->kind == ARGS_UINT32)
		*(uint32_t *)at = (uint32_t)n;
	else
		*(uint64_t *)at = n;
}

/* All but whole numbers, and values that take() stores. */
static void
store_other(const struct args_row *row, const char *text, void *at)
{
	size_t n;

	if (row->kind == ARGS_FLAG)
		*(bool *)at = true;
	else if (row->kind == ARGS_STRING)
		*(const char **)at = text;
	else if (row->kind == ARGS_FACTOR)
		*(double *)at = args_factor(row->name, text);
	else if (row->kind == ARGS_SCALED)
		*(int64_t *)at = (int64_t)(args_factor(row->name, text) *
		    (double)row->max);
	else if (row->kind == ARGS_PERCENT)
		*(double *)at = read_percent(row->name, text);
	else if (row->kind == ARGS_SIZE)
		*(uint64_t *)at = args_size(row->name, text);
	else if (row->kind == ARGS_TTL)
		*(int64_t *)at = args_ttl(row->name, text);
	else if (row->kind == ARGS_SECONDS)
		*(int64_t *)at = args_seconds(row->name, text);
	else if (row->kind == ARGS_CHOICE)
		*(bool *)at = args_word(row->name, text, row->words, 2) == 1;
	else if (row->kind == ARGS_WORD) {
		n = args_word(row->name, text, row->words, row->max);
		memcpy(at, &(unsigned){ (unsigned)n }, sizeof(unsigned));
	}
}

static void
store_value(const struct args_row *row, void *settings, const char *text)
{
	void *at = (char *)settings + row->at;

	if (row->kind == ARGS_CALL)
		row->take(settings, row, text);
	else if (row->kind == ARGS_UINT16 || row->kind == ARGS_UINT32 ||
	    row->kind == ARGS_UINT64)
		store_whole(row, text, at);
	else
		store_other(row, text, at);
}

/* -------------------------------------------------------------- parsing --- */

/* Makes the tables that getopt_long reads. */
static void
make_options(const struct args_table *t, struct option *options, char *letters)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++) {
		const struct args_row *row = &t->rows[i];

		if (row->letter != 0)
			*letters++ = row->letter;
		if (row->letter != 0 && row->argument != NULL)
			*letters++ = ':';
		if (row->name == NULL)
			continue;
		if (n == OPTIONS_MAX)
			errx(ARGS_FAILED, "too many options");
		options[n++] = (struct option){ row->name,
		    row->argument == NULL ? no_argument : required_argument,
		    NULL, FIRST_ROW + (int)i };
	}
	*letters = '\0';
	options[n++] = (struct option){ "help", no_argument, NULL, HELP };
	options[n++] = (struct option){ "version", no_argument, NULL,
	    VERSION };
	options[n] = (struct option){ NULL, 0, NULL, 0 };
}

static const struct args_row *
row_of(const struct args_table *t, int option)
{
	size_t i;

	if (option >= FIRST_ROW)
		return &t->rows[option - FIRST_ROW];
	for (i = 0; i < t->n; i++)
		if (t->rows[i].letter == option)
			return &t->rows[i];
	args_usage(t);
}

int
args_parse(const struct args_table *t, void *settings, int argc, char **argv)
{
	struct option options[OPTIONS_MAX + 3];
	char letters[2 * OPTIONS_MAX + 1];
	int option;

	make_options(t, options, letters);
	while ((option = getopt_long(argc, argv, letters, options, NULL)) !=
	    -1) {
		if (option == HELP)
			print_help(t);
		if (option == VERSION) {
			printf("%s %s\n", t->program, kvr_version_string());
			exit(0);
		}
		store_value(row_of(t, option), settings, optarg);
	}
	return optind;
}
