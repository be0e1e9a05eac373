/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_count.h - what became of the requests, added up and printed.
 */
#ifndef KVROUTE_CHATS_COUNT_H
#define KVROUTE_CHATS_COUNT_H

#include "chats.h"
#include "chats_answer.h"
#include "chats_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum chats_outcome {
	CHATS_OK,
	CHATS_REFUSED,    /* nobody took the connection */
	CHATS_BROKEN,     /* it ended before the answer did */
	CHATS_TIMEOUT,
	CHATS_HTTP_4XX,
	CHATS_HTTP_5XX,
	CHATS_FAILED,     /* an error inside an answer of status 200 */
	CHATS_MALFORMED,  /* an answer that is not what it should be */
	CHATS_OUTCOMES,
	CHATS_LEFT = CHATS_OUTCOMES /* the client went away, as it should */
};

struct chats_times { /* nanoseconds */
	int64_t *ns;
	size_t n;
	size_t capacity;
};

struct chats_count {
	uint64_t outcomes[CHATS_OUTCOMES + 1];
	uint64_t counted;       /* of CHATS_OK: after the warm-up */
	uint64_t usages;        /* of them: told their tokens */
	uint64_t cached_known;  /* of them: also the cached ones */
	uint64_t usage_events;
	uint64_t prompt_tokens;
	uint64_t cached_tokens;
	uint64_t answer_bytes;
	uint64_t checksum;      /* of all texts, in whatever order they came */
	struct chats_times first; /* until the first text, or event */
	struct chats_times whole;
	int64_t begin;          /* of what is counted */
	int64_t end;
	struct process_use before;
	struct process_use after;
	bool processes;         /* both could be read */
};

/* An answer that came whole. False: no memory. */
bool chats_count_answer(struct chats_count *c, const struct chats_answer *a,
    int64_t sent, int64_t now);
void chats_count_free(struct chats_count *c);

/* Sorts the times. */
void chats_count_print(FILE *out, const struct chats_options *o,
    struct chats_count *c);
/* Requests that went wrong. */
uint64_t chats_count_errors(const struct chats_count *c);

#endif
