/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args_table.h - a command line as a table.
 *
 * A row has an option's name, its argument, its line of --help, and how its
 * value is read and where it goes in the caller's struct. --help prints usage,
 * introduction and rows; --help and --version have no rows. Values that are
 * invalid end the program, as in args.h.
 */
#ifndef KVROUTE_ARGS_TABLE_H
#define KVROUTE_ARGS_TABLE_H

#include "args.h"

#include <stddef.h>
#include <stdint.h>

/* The type at `at` of a row, and its value. */
enum args_kind {
	ARGS_FLAG,    /* bool: true */
	ARGS_NOTHING, /* nothing is stored */
	ARGS_STRING,  /* const char *: the argument */
	ARGS_UINT16,  /* args_number, from min to max */
	ARGS_UINT32,
	ARGS_UINT64,
	ARGS_FACTOR,  /* double */
	ARGS_SCALED,  /* int64_t: a factor, times max */
	ARGS_PERCENT, /* double: a share */
	ARGS_SIZE,    /* uint64_t */
	ARGS_TTL,     /* int64_t */
	ARGS_SECONDS, /* int64_t: as a TTL, but not endless */
	ARGS_WORD,    /* enum: the index among `max` words */
	ARGS_CHOICE,  /* bool: the index among two words */
	ARGS_CALL,    /* take() stores it */
	ARGS_PROSE    /* no option: `help` is printed as it is */
};

struct args_row {
	const char *name;
	const char *argument; /* NULL: none */
	const char *help;     /* lines; NULL: not in --help */
	enum args_kind kind;
	char letter;          /* a short name; 0: none */
	size_t at;
	uint64_t min, max;
	const char *const *words;
	void (*take)(void *settings, const struct args_row *row,
	    const char *text);
	/*
	 * Column of the help in the rows below prose, instead of the table's.
	 */
	int column;
};

struct args_table {
	const char *program;
	const char *usage;
	const char *introduction;
	int column; /* in which help begins */
	const struct args_row *rows;
	size_t n;
};

/* Stores all options; returns the index of the first argument behind them. */
int args_parse(const struct args_table *t, void *settings, int argc,
    char **argv);
_Noreturn void args_usage(const struct args_table *t);

#endif
