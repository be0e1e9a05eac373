/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_drive.c - see chats_drive.h.
 *
 * A user is one handle of libcurl's multi interface with three states:
 *
 *   waiting --(the pause is over)--> asking --(the response ended)--> waiting
 *      `--(no more requests, or time is over)--> finished
 *
 * Requests are assigned to users in advance, so that the set of requests does
 * not depend on timing: a run with a number of requests has the same texts each
 * time, and its checksum shows whether the responses are the same.
 *
 * A user aborts inside libcurl's callbacks: an error there ends the transfer
 * and closes the connection at once.
 */
#include "chats_drive.h"

#include "args.h"
#include "progress.h"
#include "chats_talk.h"

#include <curl/curl.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { POLL_MS = 100 };

enum phase { WAITING, ASKING, FINISHED };

struct user {
	struct drive *drive;
	CURL *easy;
	struct talk *talk; /* NULL: the same body each time */
	struct chats_answer answer;
	enum phase phase;
	uint64_t left;     /* requests to make */
	int64_t ready;     /* WAITING until then */
	int64_t sent;
	const char *body;
	char *own;         /* a copy of a varying body */
	size_t length;
	size_t given;      /* of the half that is sent */
	size_t place;      /* in `own`, where the number ends; 0: not known */
	enum chats_stage leave; /* CHATS_STAY: no abort */
	bool gone;
	bool counted;
};

struct drive {
	const struct chats_options *o;
	struct chats_count *count;
	struct curl_slist *headers;
	CURLM *multi;
	struct user *users;
	char *url;
	int64_t start;
	int64_t stop;      /* no request begins after it */
	uint64_t number;   /* of requests begun */
	uint64_t done;
	uint32_t finished; /* users */
	bool warm;         /* the warm-up is over */
	struct progress progress;
};

static int64_t
clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static _Noreturn void
no_memory(void)
{
	errx(ARGS_FAILED, "no memory");
}

static void
check(CURLcode e)
{
	if (e != CURLE_OK)
		errx(ARGS_FAILED, "libcurl: %s", curl_easy_strerror(e));
}

static void
check_multi(CURLMcode e)
{
	if (e != CURLM_OK)
		errx(ARGS_FAILED, "libcurl: %s", curl_multi_strerror(e));
}

/* ------------------------------------------------------------ callbacks --- */

/* Ends the transfer if the user aborts here. */
static size_t
taken(struct user *u, enum chats_stage stage, size_t n)
{
	if (u->leave != stage)
		return n;
	u->gone = true;
	return 0;
}

/* A header line of the response; those of interim ones do not count. */
static size_t
on_header(char *data, size_t one, size_t n, void *context)
{
	static const char type[] = "content-type: text/event-stream";
	struct user *u = context;
	long status = 0;

	(void)one;
	if (n >= sizeof(type) - 1 &&
	    strncasecmp(data, type, sizeof(type) - 1) == 0)
		u->answer.stream = true;
	if (n > 2 || curl_easy_getinfo(u->easy, CURLINFO_RESPONSE_CODE,
	    &status) != CURLE_OK || status < 200)
		return n;
	return taken(u, CHATS_HEADERS, n);
}

static size_t
on_data(char *data, size_t one, size_t n, void *context)
{
	struct user *u = context;
	struct chats_answer *a = &u->answer;

	(void)one;
	answer_data(a, data, n, clock_ns());
	if (u->leave == CHATS_FIRST_EVENT && (!a->stream || a->events > 0))
		return taken(u, CHATS_FIRST_EVENT, n);
	if (a->bytes >= u->drive->o->abort_bytes)
		return taken(u, CHATS_BYTES, n);
	return n;
}

/* Half of the body, and then nothing. */
static size_t
on_read(char *data, size_t one, size_t n, void *context)
{
	struct user *u = context;
	size_t part = u->length / 2 - u->given;

	(void)one;
	if (part == 0) {
		u->gone = true;
		return CURL_READFUNC_ABORT;
	}
	if (part > n)
		part = n;
	memcpy(data, &u->body[u->given], part);
	u->given += part;
	return part;
}

static int
on_progress(void *context, curl_off_t total, curl_off_t now,
    curl_off_t upload, curl_off_t uploaded)
{
	struct user *u = context;

	(void)total, (void)now, (void)upload;
	if (u->leave != CHATS_SENT || (size_t)uploaded < u->length)
		return 0;
	u->gone = true;
	return 1;
}

/* --------------------------------------------------------------- asking --- */

/* Options common to all requests of a user. */
static void
set_up(struct user *u)
{
	const struct drive *d = u->drive;

	u->easy = curl_easy_init();
	if (u->easy == NULL || !answer_new(&u->answer))
		no_memory();
	check(curl_easy_setopt(u->easy, CURLOPT_PRIVATE, u));
	check(curl_easy_setopt(u->easy, CURLOPT_URL, d->url));
	check(curl_easy_setopt(u->easy, CURLOPT_POST, 1L));
	check(curl_easy_setopt(u->easy, CURLOPT_HTTPHEADER, d->headers));
	check(curl_easy_setopt(u->easy, CURLOPT_NOSIGNAL, 1L));
	check(curl_easy_setopt(u->easy, CURLOPT_PROXY, ""));
	check(curl_easy_setopt(u->easy, CURLOPT_TIMEOUT_MS,
	    (long)(d->o->timeout_ns / 1000000)));
	check(curl_easy_setopt(u->easy, CURLOPT_HEADERFUNCTION, on_header));
	check(curl_easy_setopt(u->easy, CURLOPT_HEADERDATA, u));
	check(curl_easy_setopt(u->easy, CURLOPT_WRITEFUNCTION, on_data));
	check(curl_easy_setopt(u->easy, CURLOPT_WRITEDATA, u));
	check(curl_easy_setopt(u->easy, CURLOPT_READDATA, u));
	check(curl_easy_setopt(u->easy, CURLOPT_XFERINFOFUNCTION, on_progress));
	check(curl_easy_setopt(u->easy, CURLOPT_XFERINFODATA, u));
}

static void
set_body(struct user *u)
{
	bool half = u->leave == CHATS_HALF_BODY;

	check(curl_easy_setopt(u->easy, CURLOPT_READFUNCTION,
	    half ? on_read : NULL));
	check(curl_easy_setopt(u->easy, CURLOPT_POSTFIELDS,
	    half ? NULL : u->body));
	check(curl_easy_setopt(u->easy, CURLOPT_POSTFIELDSIZE_LARGE,
	    (curl_off_t)u->length));
	check(curl_easy_setopt(u->easy, CURLOPT_NOPROGRESS,
	    u->leave == CHATS_SENT ? 0L : 1L));
}

/* Finds the last run of ten zeros, the place for numbers. */
static void
find_place(struct user *u)
{
	static const char zeros[] = "0000000000";
	const size_t n = sizeof(zeros) - 1;

	u->place = u->length;
	while (u->place >= n && memcmp(&u->own[u->place - n], zeros, n) != 0)
		u->place--;
	if (u->place < n)
		errx(ARGS_FAILED, "--vary: the body has no %s", zeros);
}

static void
vary(struct user *u, uint64_t number)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%010llu",
	    (unsigned long long)(number % 10000000000));

	memcpy(&u->own[u->place - (size_t)n], digits, (size_t)n);
}

static void
ask(struct user *u, int64_t now)
{
	struct drive *d = u->drive;

	u->leave = talk_leaves(u->talk) ? d->o->abort : CHATS_STAY;
	u->gone = false;
	u->counted = d->warm;
	answer_begin(&u->answer, d->o->endpoint);
	if (d->o->vary)
		vary(u, d->number++);
	else if (d->o->body == NULL) {
		u->body = talk_body(u->talk, &u->length);
		if (u->body == NULL)
			no_memory();
	}
	u->given = 0;
	set_body(u);
	u->sent = now;
	u->left--;
	u->phase = ASKING;
	check_multi(curl_multi_add_handle(d->multi, u->easy));
}

/* ------------------------------------------------------------- the end --- */

static enum chats_outcome
outcome_of(struct user *u, CURLcode e)
{
	const struct chats_answer *a = &u->answer;
	long status = 0;

	if (u->gone)
		return CHATS_LEFT;
	if (e == CURLE_COULDNT_CONNECT)
		return CHATS_REFUSED;
	if (e == CURLE_OPERATION_TIMEDOUT)
		return CHATS_TIMEOUT;
	check(curl_easy_getinfo(u->easy, CURLINFO_RESPONSE_CODE, &status));
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

/* After a complete response the chat continues, else another begins. */
static void
ended(struct user *u, CURLcode e, int64_t now)
{
	struct drive *d = u->drive;
	struct chats_answer *a = &u->answer;
	enum chats_outcome outcome;

	if (e == CURLE_OK && !u->gone)
		answer_end(a, now);
	outcome = outcome_of(u, e);
	d->count->outcomes[outcome]++;
	d->done++;
	if (outcome != CHATS_OK)
		talk_abandon(u->talk);
	else if ((d->o->body == NULL &&
	    !talk_answered(u->talk, a->text.data, a->text.length)) ||
	    (u->counted && !chats_count_answer(d->count, a, u->sent, now)))
		no_memory();
	u->phase = WAITING;
	u->ready = now + talk_pause_ns(u->talk);
}

/* True if a transfer ended: then the wait must be computed again. */
static bool
collect(struct drive *d, int64_t now)
{
	struct CURLMsg *m;
	struct user *u = NULL;
	uint64_t before = d->done;
	CURL *easy;
	CURLcode e;
	int more;

	while ((m = curl_multi_info_read(d->multi, &more)) != NULL) {
		if (m->msg != CURLMSG_DONE)
			continue;
		easy = m->easy_handle;
		e = m->data.result;
		check(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &u));
		check_multi(curl_multi_remove_handle(d->multi, easy));
		ended(u, e, now);
	}
	return d->done > before;
}

/* ------------------------------------------------------------ the round --- */

/* Begins due requests; returns the milliseconds until the next. */
static int
begin_due(struct drive *d, int64_t now)
{
	int64_t next = now + (int64_t)POLL_MS * 1000000;
	uint32_t i;

	for (i = 0; i < d->o->chats; i++) {
		struct user *u = &d->users[i];

		if (u->phase != WAITING)
			continue;
		if (u->left == 0 || now >= d->stop) {
			u->phase = FINISHED;
			d->finished++;
			continue;
		}
		if (u->ready <= now) {
			ask(u, now);
			next = now;
		} else if (u->ready < next)
			next = u->ready;
	}
	return (int)((next - now + 999999) / 1000000);
}

static void
warm_up(struct drive *d, int64_t now)
{
	const struct chats_options *o = d->o;

	if (d->warm || now < d->start + o->warm_up_ns)
		return;
	d->warm = true;
	d->count->begin = d->count->end = now;
	d->count->processes = o->n_pids > 0 &&
	    process_use(o->pids, o->n_pids, &d->count->before);
}

static void
show(struct drive *d, int64_t now)
{
	if (d->o->requests != 0)
		progress_show(&d->progress, d->done, d->done);
	else
		progress_show(&d->progress, (uint64_t)(now - d->start),
		    d->done);
}

static void
run(struct drive *d)
{
	int64_t now;
	int running, wait;

	while (d->finished < d->o->chats) {
		now = clock_ns();
		warm_up(d, now);
		wait = begin_due(d, now);
		check_multi(curl_multi_perform(d->multi, &running));
		if (collect(d, clock_ns()))
			wait = 0;
		show(d, now);
		if (wait > 0 && d->finished < d->o->chats)
			check_multi(curl_multi_poll(d->multi, NULL, 0, wait,
			    NULL));
	}
}

/* -------------------------------------------------------------- set up --- */

static void
add_header(struct drive *d, const char *line)
{
	struct curl_slist *longer = curl_slist_append(d->headers, line);

	if (longer == NULL)
		no_memory();
	d->headers = longer;
}

static void
begin(struct drive *d)
{
	const struct chats_options *o = d->o;
	size_t length = strlen(o->url) + strlen(o->path) + 1, i;

	check(curl_global_init(CURL_GLOBAL_NOTHING));
	d->multi = curl_multi_init();
	d->users = calloc(o->chats, sizeof(*d->users));
	d->url = malloc(length);
	if (d->multi == NULL || d->users == NULL || d->url == NULL)
		no_memory();
	snprintf(d->url, length, "%s%s", o->url, o->path);
	check_multi(curl_multi_setopt(d->multi, CURLMOPT_MAXCONNECTS,
	    (long)o->chats));
	add_header(d, "Content-Type: application/json");
	add_header(d, "Expect:");
	for (i = 0; i < o->n_headers; i++)
		add_header(d, o->headers[i]);
	/* Each seed has its own numbers. */
	d->number = (o->seed - 1) * o->requests;
	d->start = clock_ns();
	d->stop = o->run_ns == 0 ? INT64_MAX : d->start + o->run_ns;
	progress_begin(&d->progress, o->quiet, o->requests != 0 ?
	    o->requests : (uint64_t)o->run_ns);
}

static void
begin_user(struct drive *d, uint32_t i, const struct talk_systems *systems,
    char *body, size_t length)
{
	const struct chats_options *o = d->o;
	struct user *u = &d->users[i];

	u->drive = d;
	u->left = o->requests == 0 ? UINT64_MAX : o->requests / o->chats +
	    (i < o->requests % o->chats);
	u->talk = talk_new(o, systems, i);
	if (u->talk == NULL)
		no_memory();
	u->ready = d->start + talk_pause_ns(u->talk);
	u->body = body;
	u->length = length;
	if (o->vary) {
		u->own = malloc(length);
		if (u->own == NULL)
			no_memory();
		memcpy(u->own, body, length);
		u->body = u->own;
		find_place(u);
	}
	set_up(u);
}

static void
end(struct drive *d)
{
	const struct chats_options *o = d->o;
	uint32_t i;

	if (d->count->processes)
		d->count->processes = process_use(o->pids, o->n_pids,
		    &d->count->after);
	progress_end(&d->progress);
	for (i = 0; i < o->chats; i++) {
		talk_free(d->users[i].talk);
		answer_free(&d->users[i].answer);
		free(d->users[i].own);
		curl_easy_cleanup(d->users[i].easy);
	}
	curl_multi_cleanup(d->multi);
	curl_slist_free_all(d->headers);
	curl_global_cleanup();
	free(d->users);
	free(d->url);
}

void
chats_drive(const struct chats_options *o, char *body, size_t length,
    struct chats_count *count)
{
	struct talk_systems *systems = talk_systems_new(o);
	struct drive d = { .o = o, .count = count };
	uint32_t i;

	if (systems == NULL)
		no_memory();
	begin(&d);
	for (i = 0; i < o->chats; i++)
		begin_user(&d, i, systems, body, length);
	run(&d);
	end(&d);
	talk_systems_free(systems);
}
