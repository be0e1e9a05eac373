/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answers.h - gives an answer to the reader of answers in pieces.
 *
 * Each piece lies in memory of its own, exactly as long, that is gone after
 * the call; so does each piece of output. A reader that looks beyond a piece,
 * or back at one, is seen by AddressSanitizer and valgrind.
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

/*
 * The text with double quotes where it has single ones, and with other ends of
 * lines where it has LF; to be freed.
 */
char *answers_text(const char *text, const char *line_end);

/* The first piece, and all that follow; 0: all that is left. */
struct cut {
	size_t first, then;
};

struct answers_result {
	struct kvr_report report;
	bool started, failed;
	size_t started_at;       /* bytes given when it had started, or 0 */
	size_t most_held;        /* after any piece */
	size_t n;
	char *out;               /* what went to the client; to be freed */
};

/* Reads n bytes of text with a reader that was used before, or not. */
struct answers_result answers_read(struct answer *a, enum answer_kind kind,
    bool strip, const char *text, size_t n, struct cut cut);

#endif
