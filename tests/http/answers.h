/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answers.h - feeds a response to answer.c in pieces.
 *
 * Each piece, and each piece of output, is an allocation of exactly its length,
 * freed after the call. AddressSanitizer and valgrind detect reads beyond a
 * piece, or of an earlier one.
 */
#ifndef TESTS_ANSWERS_H
#define TESTS_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "answer.h"
#include "kvroute.h"

#define EVENT(json) "data: " json "\n\n"
#define NAMED(name, json) "event: " name "\ndata: " json "\n\n"
#define DONE EVENT("[DONE]")
#define USAGE "'usage':{'prompt_tokens':5,'prompt_tokens_details':{" \
	"'cached_tokens':4}}"

/* The text with " for ' and another line end for LF; to be freed. */
char *answers_text(const char *text, const char *line_end);

/* Lengths of the first piece and of the others; 0: all the rest. */
struct cut {
	size_t first, then;
};

struct answers_result {
	struct kvr_report report;
	bool started, failed;
	size_t id_length[OBJECT_IDS];
	char id[OBJECT_IDS][OBJECT_ID_MAX];
	size_t started_at;       /* bytes given until it had started, or 0 */
	size_t most_held;        /* after any piece */
	size_t n;
	char *out;               /* output to the client; to be freed */
};

/* Reads n bytes of text with a new or used reader. */
struct answers_result answers_read(struct answer *a, enum answer_kind kind,
    bool strip, const char *text, size_t n, struct cut cut);

#endif
