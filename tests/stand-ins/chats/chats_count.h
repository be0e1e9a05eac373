/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_count.h - the results of the requests, summed and printed.
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
	CHATS_REFUSED,    /* no connection */
	CHATS_BROKEN,     /* the connection ended early */
	CHATS_TIMEOUT,
	CHATS_HTTP_4XX,
	CHATS_HTTP_5XX,
	CHATS_FAILED,     /* an error inside a response of status 200 */
	CHATS_MALFORMED,  /* a response in the wrong format */
	CHATS_OUTCOMES,
	CHATS_LEFT = CHATS_OUTCOMES /* aborted by the client on purpose */
};

struct chats_times { /* nanoseconds */
	int64_t *ns;
	size_t n;
	size_t capacity;
};

struct chats_count {
	uint64_t outcomes[CHATS_OUTCOMES + 1];
	uint64_t counted;       /* of CHATS_OK: after the warm-up */
	uint64_t usages;        /* of them: with their tokens */
	uint64_t cached_known;  /* of them: also the cached ones */
	uint64_t usage_events;
	uint64_t prompt_tokens;
	uint64_t cached_tokens;
	uint64_t answer_bytes;
	uint64_t checksum;      /* of all texts, independent of their order */
	struct chats_times first; /* until the first text, or event */
	struct chats_times whole;
	int64_t begin;          /* of the counted time */
	int64_t end;
	struct process_use before;
	struct process_use after;
	bool processes;         /* both could be read */
};

/* Adds a complete response. False: no memory. */
bool chats_count_answer(struct chats_count *c, const struct chats_answer *a,
    int64_t sent, int64_t now);
void chats_count_free(struct chats_count *c);

/* Sorts the times. */
void chats_count_print(FILE *out, const struct chats_options *o,
    struct chats_count *c);
/* The number of failed requests. */
uint64_t chats_count_errors(const struct chats_count *c);

#endif
