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
 * Sessions of agents are a source of requests instead: a user takes the next
 * one that is due, from whatever conversation, and is idle afterwards.
 *
 *   idle --(a request is due)--> asking --(the response ended)--> idle
 */
#include "chats_drive.h"

#include "args.h"
#include "chats_agents.h"
#include "chats_talk.h"
#include "chats_transfer.h"
#include "progress.h"

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLL_MS = 100 };

/* Set by SIGUSR1. */
static volatile sig_atomic_t enough;

enum phase { WAITING, ASKING, FINISHED, IDLE };

struct user {
	struct drive *drive;
	struct transfer transfer;
	struct talk *talk; /* NULL: of sessions */
	enum phase phase;
	uint64_t left;     /* requests to make */
	int64_t ready;     /* WAITING until then */
	int64_t sent;
	char *own;         /* a copy of a varying body */
	size_t place;      /* in `own`, where the number ends; 0: not known */
	bool counted;
	uint64_t ticket;   /* of a request of a session */
	struct curl_slist session; /* its header, and those of all requests */
	char *line;        /* of that header */
	struct user *next_idle;
};

struct drive {
	const struct chats_options *o;
	struct chats_count *count;
	struct curl_slist *headers;
	CURLM *multi;
	struct user *users;
	size_t n_users;
	struct agents *agents; /* NULL: chats */
	struct user *idle;
	size_t asking;
	char *url;
	int64_t start;
	int64_t stop;      /* no request begins after it */
	uint64_t number;   /* of requests begun */
	uint64_t done;
	uint32_t finished; /* users */
	bool warm;         /* the warm-up is over */
	struct progress progress;
};

static void
check_multi(CURLMcode e)
{
	if (e != CURLM_OK)
		errx(ARGS_FAILED, "libcurl: %s", curl_multi_strerror(e));
}

/* --------------------------------------------------------------- asking --- */

/* Finds the last run of ten zeros, the place for numbers. */
static void
find_place(struct user *u)
{
	static const char zeros[] = "0000000000";
	const size_t n = sizeof(zeros) - 1;

	u->place = u->transfer.length;
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
send_request(struct user *u, const struct curl_slist *headers, int64_t now)
{
	struct drive *d = u->drive;

	u->counted = d->warm;
	transfer_begin(&u->transfer, headers);
	u->sent = now;
	u->phase = ASKING;
	d->asking++;
	check_multi(curl_multi_add_handle(d->multi, u->transfer.easy));
}

static void
ask(struct user *u, int64_t now)
{
	struct drive *d = u->drive;

	u->transfer.leave = talk_leaves(u->talk) ? d->o->abort : CHATS_STAY;
	if (d->o->vary)
		vary(u, d->number++);
	else if (d->o->body == NULL) {
		u->transfer.body = talk_body(u->talk, &u->transfer.length);
		if (u->transfer.body == NULL)
			chats_no_memory();
	}
	u->left--;
	send_request(u, d->headers, now);
}

/* All headers of a request of this session. */
static const struct curl_slist *
headers_with(struct user *u, const char *session)
{
	const char *name = u->drive->o->session_header;
	size_t n = name == NULL ? 0 : strlen(name) + AGENTS_ID_BYTES + 2;

	if (name == NULL)
		return u->drive->headers;
	if (u->line == NULL) {
		u->line = malloc(n);
		if (u->line == NULL)
			chats_no_memory();
		u->session = (struct curl_slist){ u->line, u->drive->headers };
	}
	snprintf(u->line, n, "%s: %s", name, session);
	return &u->session;
}

/* The next request of any session. */
static void
ask_for_agent(struct drive *d, int64_t now)
{
	struct user *u = d->idle;
	struct agents_request request;

	if (u == NULL || !agents_take(d->agents, &request))
		chats_no_memory();
	d->idle = u->next_idle;
	if (u->transfer.easy == NULL)
		transfer_make(&u->transfer, d->o, d->url, u);
	u->ticket = request.ticket;
	u->transfer.body = request.body;
	u->transfer.length = request.length;
	send_request(u, headers_with(u, request.session), now);
}

/* ------------------------------------------------------------- the end --- */

/* After a complete response the chat continues, else another begins. */
static void
go_on(struct user *u, bool complete, int64_t now)
{
	const struct chats_answer *a = &u->transfer.answer;

	if (!complete)
		talk_abandon(u->talk);
	else if (u->drive->o->body == NULL &&
	    !talk_answered(u->talk, a->text.data, a->text.length))
		chats_no_memory();
	u->phase = WAITING;
	u->ready = now + talk_pause_ns(u->talk);
}

static void
agent_goes_on(struct user *u, bool complete, int64_t now)
{
	struct drive *d = u->drive;

	if (!agents_ended(d->agents, u->ticket, complete ?
	    &u->transfer.answer : NULL, now - d->start))
		chats_no_memory();
	u->phase = IDLE;
	u->next_idle = d->idle;
	d->idle = u;
}

static void
ended(struct user *u, CURLcode e, int64_t now)
{
	struct drive *d = u->drive;
	enum chats_outcome outcome = transfer_end(&u->transfer, e, now);

	d->count->outcomes[outcome]++;
	d->done++;
	d->asking--;
	if (outcome == CHATS_OK && u->counted &&
	    !chats_count_answer(d->count, &u->transfer.answer, u->sent, now))
		chats_no_memory();
	if (d->agents != NULL)
		agent_goes_on(u, outcome == CHATS_OK, now);
	else
		go_on(u, outcome == CHATS_OK, now);
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
		chats_check(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &u));
		check_multi(curl_multi_remove_handle(d->multi, easy));
		ended(u, e, now);
	}
	return d->done > before;
}

/* ------------------------------------------------------------ the round --- */

/* Milliseconds, rounded up, of at most POLL_MS. */
static int
wait_until(int64_t next, int64_t now)
{
	if (next > now + (int64_t)POLL_MS * 1000000)
		return POLL_MS;
	return next <= now ? 0 : (int)((next - now + 999999) / 1000000);
}

/* Begins due requests; returns the milliseconds until the next. */
static int
begin_due_of_agents(struct drive *d, int64_t now)
{
	int64_t next;

	if (now >= d->stop)
		return POLL_MS;
	while ((next = agents_next(d->agents)) != AGENTS_NEVER &&
	    d->start + next <= now)
		ask_for_agent(d, now);
	return next == AGENTS_NEVER ? POLL_MS :
	    wait_until(d->start + next, now);
}

static int
begin_due(struct drive *d, int64_t now)
{
	int64_t next = INT64_MAX;
	size_t i;

	if (d->agents != NULL)
		return begin_due_of_agents(d, now);
	for (i = 0; i < d->n_users; i++) {
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
	return wait_until(next, now);
}

static bool
is_over(const struct drive *d, int64_t now)
{
	if (d->agents == NULL)
		return d->finished == d->n_users;
	return agents_done(d->agents) || (now >= d->stop && d->asking == 0);
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
	if (d->agents != NULL || d->o->requests != 0)
		progress_show(&d->progress, d->done, d->done);
	else
		progress_show(&d->progress, (uint64_t)(now - d->start),
		    d->done);
}

static void
begin_no_more(int signal)
{
	(void)signal;
	enough = 1;
}

static void
run(struct drive *d)
{
	int64_t now = d->start;
	int running, wait;

	while (!is_over(d, now)) {
		now = chats_clock();
		if (enough && now < d->stop)
			d->stop = now;
		warm_up(d, now);
		wait = begin_due(d, now);
		check_multi(curl_multi_perform(d->multi, &running));
		if (collect(d, chats_clock()))
			wait = 0;
		show(d, now);
		if (wait > 0 && !is_over(d, now))
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
		chats_no_memory();
	d->headers = longer;
}

static void
begin(struct drive *d)
{
	const struct chats_options *o = d->o;
	size_t length = strlen(o->url) + strlen(o->path) + 1, i;

	signal(SIGUSR1, begin_no_more);
	chats_check(curl_global_init(CURL_GLOBAL_NOTHING));
	d->multi = curl_multi_init();
	d->n_users = o->sessions != 0 ? (size_t)agents_most(o) : o->chats;
	d->users = calloc(d->n_users, sizeof(*d->users));
	d->url = malloc(length);
	if (d->multi == NULL || d->users == NULL || d->url == NULL)
		chats_no_memory();
	snprintf(d->url, length, "%s%s", o->url, o->path);
	check_multi(curl_multi_setopt(d->multi, CURLMOPT_MAXCONNECTS,
	    (long)d->n_users));
	add_header(d, "Content-Type: application/json");
	add_header(d, "Expect:");
	for (i = 0; i < o->n_headers; i++)
		add_header(d, o->headers[i]);
	/* Each seed has its own numbers. */
	d->number = (o->seed - 1) * o->requests;
	if (o->sessions != 0 && (d->agents = agents_new(o)) == NULL)
		chats_no_memory();
	d->start = chats_clock();
	d->stop = o->run_ns == 0 ? INT64_MAX : d->start + o->run_ns;
	progress_begin(&d->progress, o->quiet, d->agents != NULL ?
	    agents_requests(d->agents) : o->requests != 0 ? o->requests :
	    (uint64_t)o->run_ns);
}

static void
begin_agents(struct drive *d)
{
	size_t i;

	for (i = d->n_users; i-- > 0;) {
		d->users[i].drive = d;
		d->users[i].phase = IDLE;
		d->users[i].next_idle = d->idle;
		d->idle = &d->users[i];
	}
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
		chats_no_memory();
	u->ready = d->start + talk_pause_ns(u->talk);
	u->transfer.body = body;
	u->transfer.length = length;
	if (o->vary) {
		u->own = malloc(length);
		if (u->own == NULL)
			chats_no_memory();
		memcpy(u->own, body, length);
		u->transfer.body = u->own;
		find_place(u);
	}
	transfer_make(&u->transfer, o, d->url, u);
}

static void
end(struct drive *d)
{
	const struct chats_options *o = d->o;
	size_t i;

	if (d->count->processes)
		d->count->processes = process_use(o->pids, o->n_pids,
		    &d->count->after);
	progress_end(&d->progress);
	for (i = 0; i < d->n_users; i++) {
		talk_free(d->users[i].talk);
		free(d->users[i].own);
		free(d->users[i].line);
		transfer_free(&d->users[i].transfer);
	}
	curl_multi_cleanup(d->multi);
	curl_slist_free_all(d->headers);
	curl_global_cleanup();
	agents_free(d->agents);
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
		chats_no_memory();
	begin(&d);
	if (d.agents != NULL)
		begin_agents(&d);
	for (i = 0; d.agents == NULL && i < o->chats; i++)
		begin_user(&d, i, systems, body, length);
	run(&d);
	end(&d);
	talk_systems_free(systems);
}
