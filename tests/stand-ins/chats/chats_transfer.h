/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_transfer.h - one request and its response, and aborts in the middle.
 *
 * Everything here exits when libcurl fails or memory is short.
 */
#ifndef KVROUTE_CHATS_TRANSFER_H
#define KVROUTE_CHATS_TRANSFER_H

#include "chats.h"
#include "chats_answer.h"
#include "chats_count.h"

#include <curl/curl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialized: not made yet. */
struct transfer {
	const struct chats_options *o;
	CURL *easy;
	struct chats_answer answer;
	const char *body;       /* of the next request; the caller's */
	size_t length;
	enum chats_stage leave; /* CHATS_STAY: no abort */
	size_t given;           /* of the half that is sent */
	bool gone;              /* aborted */
};

/* `owner` becomes the handle's CURLINFO_PRIVATE. */
void transfer_make(struct transfer *t, const struct chats_options *o,
    const char *url, void *owner);
/* Afterwards the handle can be added to others. The headers must outlive it. */
void transfer_begin(struct transfer *t, const struct curl_slist *headers);
/* Is called after libcurl ended it with `e`. CHATS_OK: it is complete. */
enum chats_outcome transfer_end(struct transfer *t, CURLcode e, int64_t now);
void transfer_free(struct transfer *t);

int64_t chats_clock(void); /* nanoseconds */
_Noreturn void chats_no_memory(void);
void chats_check(CURLcode e);

#endif
