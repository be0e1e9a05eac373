/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_transfer.c - see chats_transfer.h.
 *
 * A user aborts inside libcurl's callbacks: an error there ends the transfer
 * and closes the connection at once.
 */
#include "chats_transfer.h"

#include "args.h"

#include <err.h>
#include <string.h>
#include <strings.h>
#include <time.h>

int64_t
chats_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

_Noreturn void
chats_no_memory(void)
{
	errx(ARGS_FAILED, "no memory");
}

void
chats_check(CURLcode e)
{
	if (e != CURLE_OK)
		errx(ARGS_FAILED, "libcurl: %s", curl_easy_strerror(e));
}

/* ------------------------------------------------------------ callbacks --- */

/* Ends it if the user aborts here. */
static size_t
taken(struct transfer *t, enum chats_stage stage, size_t n)
{
	if (t->leave != stage)
		return n;
	t->gone = true;
	return 0;
}

/* A header line of the response; those of interim ones do not count. */
static size_t
on_header(char *data, size_t one, size_t n, void *context)
{
	static const char type[] = "content-type: text/event-stream";
	struct transfer *t = context;
	long status = 0;

	(void)one;
	if (n >= sizeof(type) - 1 &&
	    strncasecmp(data, type, sizeof(type) - 1) == 0)
		t->answer.stream = true;
	if (n > 2 || curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE,
	    &status) != CURLE_OK || status < 200)
		return n;
	return taken(t, CHATS_HEADERS, n);
}

static size_t
on_data(char *data, size_t one, size_t n, void *context)
{
	struct transfer *t = context;
	struct chats_answer *a = &t->answer;

	(void)one;
	chats_answer_data(a, data, n, chats_clock());
	if (t->leave == CHATS_FIRST_EVENT && (!a->stream || a->events > 0))
		return taken(t, CHATS_FIRST_EVENT, n);
	if (a->bytes >= t->o->abort_bytes)
		return taken(t, CHATS_BYTES, n);
	return n;
}

/* Half of the body, and then nothing. */
static size_t
on_read(char *data, size_t one, size_t n, void *context)
{
	struct transfer *t = context;
	size_t part = t->length / 2 - t->given;

	(void)one;
	if (part == 0) {
		t->gone = true;
		return CURL_READFUNC_ABORT;
	}
	if (part > n)
		part = n;
	memcpy(data, &t->body[t->given], part);
	t->given += part;
	return part;
}

static int
on_progress(void *context, curl_off_t total, curl_off_t now,
    curl_off_t upload, curl_off_t uploaded)
{
	struct transfer *t = context;

	(void)total, (void)now, (void)upload;
	if (t->leave != CHATS_SENT || (size_t)uploaded < t->length)
		return 0;
	t->gone = true;
	return 1;
}

void
transfer_make(struct transfer *t, const struct chats_options *o,
    const char *url, void *owner)
{
	t->o = o;
	t->easy = curl_easy_init();
	if (t->easy == NULL || !chats_answer_new(&t->answer))
		chats_no_memory();
	chats_check(curl_easy_setopt(t->easy, CURLOPT_PRIVATE, owner));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_URL, url));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_POST, 1L));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_PROXY, ""));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS,
	    (long)(o->timeout_ns / 1000000)));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION,
	    on_header));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_data));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_READDATA, t));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION,
	    on_progress));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_XFERINFODATA, t));
}

void
transfer_begin(struct transfer *t, const struct curl_slist *headers)
{
	bool half = t->leave == CHATS_HALF_BODY;

	t->gone = false;
	t->given = 0;
	chats_answer_begin(&t->answer, t->o->endpoint);
	chats_check(curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, headers));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_READFUNCTION,
	    half ? on_read : NULL));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS,
	    half ? NULL : t->body));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
	    (curl_off_t)t->length));
	chats_check(curl_easy_setopt(t->easy, CURLOPT_NOPROGRESS,
	    t->leave == CHATS_SENT ? 0L : 1L));
}

enum chats_outcome
transfer_end(struct transfer *t, CURLcode e, int64_t now)
{
	const struct chats_answer *a = &t->answer;
	long status = 0;

	if (e == CURLE_OK && !t->gone)
		chats_answer_end(&t->answer, now);
	if (t->gone)
		return CHATS_LEFT;
	if (e == CURLE_COULDNT_CONNECT)
		return CHATS_REFUSED;
	if (e == CURLE_OPERATION_TIMEDOUT)
		return CHATS_TIMEOUT;
	chats_check(curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE,
	    &status));
	if (status >= 400)
		return status < 500 ? CHATS_HTTP_4XX : CHATS_HTTP_5XX;
	if (e != CURLE_OK)
		return CHATS_BROKEN;
	if (a->failed)
		return CHATS_FAILED;
	if (a->malformed || status != 200)
		return CHATS_MALFORMED;
	return a->ended ? CHATS_OK : CHATS_BROKEN;
}

void
transfer_free(struct transfer *t)
{
	chats_answer_free(&t->answer);
	curl_easy_cleanup(t->easy);
}
