/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_nats.c - a subject of NATS core, by cnats.
 *
 *   bus_send --> queue --> thread: connect, publish --> server
 *   bus_work <-- queue <-- cnats' threads: arrived() <-- server
 *
 * cnats may wait for a server in any of its calls, so only a thread of ours
 * makes them. It connects, and connects anew, itself: cnats would do that with
 * frames in its buffer that are long stale. Both queues are bounded. An
 * eventfd wakes the caller's poll.
 *
 * There is no log. A question is a message that has a subject for answers, an
 * inbox of the one that asks. No other subject is answered to: else whoever
 * publishes could have frames sent anywhere.
 */
#include "bus_in.h"

#include <kvroute.h>

#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
	CONNECT_MS = 2000,
	WRITE_MS = 500,   /* then the connection counts as broken */
	PING_MS = 1000,
	PINGS_OUT = 3,
	CLOSE_MS = 500,   /* for the server to take the last frames */
	CLOSED_POLL_MS = 100, /* how soon a lost connection is noticed */
	PORT = 4222,
	TURN = 256,       /* frames given to the caller at a time */
	URL_MAX = 300
};

#define MS INT64_C(1000000)
#define INBOX "_INBOX."
/* Stands for the subject of an answer. */
#define ANSWER "!"

struct nats {
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	int fd;
	natsOptions *options;
	/* of the thread alone */
	natsConnection *c;
	natsSubscription *own, *answers;
	int64_t pause, up;
	/* under the mutex */
	unsigned live;    /* that may still call: connection, subscriptions */
	struct bus_queue out, in;
	struct bus_counts counts;
	char error[BUS_ERROR_MAX];
	char inbox[BUS_SUBJECT_MAX];
	bool stop, connected;
	bool deaf;        /* the server forbids the subscription */
	const char *name;
	bool listens;
	size_t take_max, send_max;
};

static struct nats *
in(const struct bus *b)
{
	return b->in;
}

static void
ring(struct nats *s)
{
	const uint64_t one = 1;

	/* It fails only when it has been rung 2^64 times. */
	if (write(s->fd, &one, sizeof(one)) < 0)
		return;
}

/* Waits under the mutex until there is work. */
static void
nap(struct nats *s, int64_t ns)
{
	const int64_t end = kvr_clock_now() + ns;
	const struct timespec at = { .tv_sec = (time_t)(end / (1000 * MS)),
	    .tv_nsec = (long)(end % (1000 * MS)) };

	(void)pthread_cond_timedwait(&s->wake, &s->mutex, &at);
}

static const char *
sentence_of(natsStatus status, const char *text)
{
	if (status == NATS_CONNECTION_AUTH_FAILED)
		return "the server refuses user or password";
	if (status == NATS_SECURE_CONNECTION_REQUIRED)
		return "the server wants TLS: the URL begins with nats+tls";
	if (status == NATS_SECURE_CONNECTION_WANTED)
		return "the server does not use TLS";
	if (status == NATS_SSL_ERROR && strstr(text, ":depth=") != NULL)
		return "the server's certificate is not trusted";
	return natsStatus_GetText(status);
}

/* The latest error of this thread as a sentence, with cnats' own words. */
static void
describe(natsStatus status, char *out, size_t size)
{
	natsStatus last = NATS_OK;
	const char *text = nats_GetLastError(&last);

	if (text == NULL || last != status)
		text = "";
	snprintf(out, size, "nats: %s%s%s", sentence_of(status, text),
	    *text == '\0' ? "" : ": ", text);
}

/* ------------------------------------------------------ cnats' threads --- */

static void
take(struct nats *s, const char *subject, natsMsg *message)
{
	const int n = natsMsg_GetDataLength(message);

	pthread_mutex_lock(&s->mutex);
	if (n < 0 || (size_t)n > s->take_max)
		s->in.drops++;
	else
		(void)bus_queue_push(&s->in, subject, natsMsg_GetData(message),
		    (size_t)n);
	pthread_mutex_unlock(&s->mutex);
	natsMsg_Destroy(message);
	ring(s);
}

static void
arrived(natsConnection *c, natsSubscription *from, natsMsg *message,
    void *closure)
{
	const char *reply = natsMsg_GetReply(message);

	(void)c;
	(void)from;
	take(closure, reply != NULL && strncmp(reply, INBOX,
	    strlen(INBOX)) == 0 ? reply : "", message);
}

static void
answered(natsConnection *c, natsSubscription *from, natsMsg *message,
    void *closure)
{
	(void)c;
	(void)from;
	take(closure, ANSWER, message);
}

/* A subscription or a connection will not call any more. */
static void
completed(void *closure)
{
	struct nats *s = closure;

	pthread_mutex_lock(&s->mutex);
	s->live--;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
}

/* cnats calls this from the queue of complain(), after the last complaint. */
static void
closed(natsConnection *c, void *closure)
{
	(void)c;
	completed(closure);
}

/* Nothing would ever come. Without its inbox alone, a bus still has a use. */
static bool
makes_deaf(const struct nats *s, const char *text)
{
	char subject[BUS_SUBJECT_MAX + 2];

	snprintf(subject, sizeof(subject), "\"%s\"", s->name);
	return strstr(text, "ubscription") != NULL &&
	    strstr(text, subject) != NULL;
}

/* The server answers later that it forbids something: no call returns that. */
static void
complain(natsConnection *c, natsSubscription *from, natsStatus status,
    void *closure)
{
	struct nats *s = closure;
	const char *text = NULL;

	(void)from;
	if (natsConnection_GetLastError(c, &text) == NATS_OK || text == NULL)
		text = natsStatus_GetText(status);
	pthread_mutex_lock(&s->mutex);
	s->counts.failures++;
	snprintf(s->error, sizeof(s->error), "nats: %s", text);
	if (status == NATS_NOT_PERMITTED && makes_deaf(s, text)) {
		s->deaf = true;
		s->connected = false;
	}
	pthread_mutex_unlock(&s->mutex);
	ring(s);
}

/* A frame that is too long for the server would end the connection. */
static void
look_at_bound(struct nats *s)
{
	const int64_t most = natsConnection_GetMaxPayload(s->c);

	s->send_max = most <= 0 || most > BUS_FRAME_MAX ? BUS_FRAME_MAX :
	    (size_t)most;
	if (!s->listens && s->send_max < BUS_FRAME_MAX && s->error[0] == '\0')
		snprintf(s->error, sizeof(s->error), "nats: max_payload of the "
		    "server is %zu bytes: frames of up to %d are dropped if "
		    "they are longer", s->send_max, BUS_FRAME_MAX);
}

/* ---------------------------------------------------------- our thread --- */

static void
failed(struct nats *s, natsStatus status)
{
	pthread_mutex_lock(&s->mutex);
	s->counts.failures++;
	s->connected = false;
	describe(status, s->error, sizeof(s->error));
	pthread_mutex_unlock(&s->mutex);
	ring(s);
}

static void
leave(struct nats *s)
{
	natsSubscription_Destroy(s->own);
	natsSubscription_Destroy(s->answers);
	natsConnection_Destroy(s->c);
	s->own = s->answers = NULL;
	s->c = NULL;
	pthread_mutex_lock(&s->mutex);
	while (s->live > 0)
		nap(s, CLOSED_POLL_MS * MS);
	pthread_mutex_unlock(&s->mutex);
}

/* Counts those that call. */
static natsStatus
listen_to(struct nats *s, natsSubscription **out, const char *subject,
    natsMsgHandler handler)
{
	natsStatus status = natsConnection_Subscribe(out, s->c, subject,
	    handler, s);

	if (status != NATS_OK)
		return status;
	pthread_mutex_lock(&s->mutex);
	s->live++;
	pthread_mutex_unlock(&s->mutex);
	status = natsSubscription_SetOnCompleteCB(*out, completed, s);
	if (status != NATS_OK)
		completed(s);
	return status;
}

static natsStatus
subscribe(struct nats *s)
{
	natsInbox *inbox = NULL;
	natsStatus status = listen_to(s, &s->own, s->name, arrived);

	if (status == NATS_OK && !s->listens)
		status = natsInbox_Create(&inbox);
	if (status == NATS_OK && !s->listens)
		status = listen_to(s, &s->answers, inbox, answered);
	/* Until the server has it, frames would pass by. */
	if (status == NATS_OK)
		status = natsConnection_FlushTimeout(s->c, CONNECT_MS);
	if (status == NATS_OK) {
		pthread_mutex_lock(&s->mutex);
		snprintf(s->inbox, sizeof(s->inbox), "%s", inbox == NULL ? "" :
		    inbox);
		s->connected = !s->deaf;
		s->counts.connects++;
		look_at_bound(s);
		pthread_mutex_unlock(&s->mutex);
		s->up = kvr_clock_now();
		ring(s);
	}
	natsInbox_Destroy(inbox);
	return status;
}

static bool
join(struct nats *s)
{
	natsStatus status = natsConnection_Connect(&s->c, s->options);

	if (status == NATS_OK) {
		pthread_mutex_lock(&s->mutex);
		s->live++;
		s->error[0] = '\0';
		s->deaf = false;
		pthread_mutex_unlock(&s->mutex);
		status = subscribe(s);
	}
	if (status == NATS_OK)
		return true;
	failed(s, status);
	leave(s);
	return false;
}

/* "?" is a question; "" a frame for all; else an answer. */
static natsStatus
publish(struct nats *s, const struct bus_item *item)
{
	const int n = (int)item->n;

	if (item->n > s->send_max)
		return NATS_MAX_PAYLOAD;
	if (strcmp(item->subject, "?") != 0)
		return natsConnection_Publish(s->c, item->subject[0] == '\0' ?
		    s->name : item->subject, item->bytes, n);
	return natsConnection_PublishRequest(s->c, s->name, s->inbox,
	    item->bytes, n);
}

/* One step under the mutex, which it leaves for all that may wait. */
static void
step(struct nats *s)
{
	struct bus_item *item;
	natsStatus status = NATS_OK;
	bool sends;

	item = bus_queue_pop(&s->out);
	if (item == NULL)
		nap(s, CLOSED_POLL_MS * MS);
	pthread_mutex_unlock(&s->mutex);
	if (item != NULL)
		status = publish(s, item);
	else if (natsConnection_IsClosed(s->c))
		status = NATS_CONNECTION_CLOSED;
	sends = item != NULL;
	free(item);
	if (status != NATS_OK && status != NATS_MAX_PAYLOAD) {
		failed(s, status);
		leave(s);
	}
	pthread_mutex_lock(&s->mutex);
	s->counts.sent += sends && status == NATS_OK;
	s->out.drops += sends && status != NATS_OK;
}

static void
stay_away(struct nats *s)
{
	int64_t end = kvr_clock_now(), now = end;

	if (s->up != 0 && end - s->up > BUS_PAUSE_MAX * MS)
		s->pause = 0;
	s->up = 0;
	for (end += bus_pause(&s->pause); !s->stop && now < end;
	    now = kvr_clock_now())
		nap(s, end - now);
}

static void *
run(void *closure)
{
	struct nats *s = closure;

	pthread_mutex_lock(&s->mutex);
	while (!s->stop) {
		pthread_mutex_unlock(&s->mutex);
		(void)join(s);
		pthread_mutex_lock(&s->mutex);
		while (!s->stop && s->c != NULL)
			step(s);
		if (!s->stop)
			stay_away(s);
	}
	pthread_mutex_unlock(&s->mutex);
	/* Frames on their way would be dropped with the connection. */
	if (s->c != NULL && !s->listens)
		(void)natsConnection_FlushTimeout(s->c, CLOSE_MS);
	leave(s);
	return NULL;
}

/* -------------------------------------------------------- the caller's --- */

/* A turn has an end, however fast they come: others are waiting, too. */
static void
nats_work(struct bus *b)
{
	struct nats *s = in(b);
	size_t left = TURN;
	const uint64_t took = b->counts.received;
	struct bus_item *item;
	uint64_t rings;
	bool answer;

	if (read(s->fd, &rings, sizeof(rings)) < 0)
		rings = 0;
	pthread_mutex_lock(&s->mutex);
	while (left-- > 0 && (item = bus_queue_pop(&s->in)) != NULL) {
		pthread_mutex_unlock(&s->mutex);
		answer = strcmp(item->subject, ANSWER) == 0;
		bus_deliver(b, item->bytes, item->n, 0,
		    answer ? NULL : item->subject, answer);
		free(item);
		pthread_mutex_lock(&s->mutex);
	}
	s->counts.received += b->counts.received - took;
	s->counts.take_drops = s->in.drops;
	s->counts.send_drops = s->out.drops;
	b->counts = s->counts;
	b->connected = s->connected;
	memcpy(b->error, s->error, sizeof(b->error));
	if (s->in.first != NULL)
		ring(s);
	pthread_mutex_unlock(&s->mutex);
}

static size_t
nats_fds(const struct bus *b, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ .fd = in(b)->fd, .events = POLLIN };
	return 1;
}

static bool
nats_send(struct bus *b, const char *subject, const void *bytes, size_t n)
{
	struct nats *s = in(b);
	bool taken;

	pthread_mutex_lock(&s->mutex);
	taken = bus_queue_push(&s->out, subject, bytes, n);
	b->counts.send_drops = s->out.drops;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
	return taken;
}

static bool
nats_ask(struct bus *b, const void *bytes, size_t n)
{
	return nats_send(b, "?", bytes, n);
}

/* The caller has to recognize late answers. */
static void
nats_ask_end(struct bus *b)
{
	(void)b;
}

static size_t
nats_waiting(const struct bus *b)
{
	struct nats *s = in(b);
	size_t bytes;

	pthread_mutex_lock(&s->mutex);
	bytes = s->out.bytes;
	pthread_mutex_unlock(&s->mutex);
	return bytes;
}

/* ------------------------------------------------------ open and close --- */

static natsStatus
set_options(struct bus *b, struct nats *nats, natsOptions *o)
{
	const struct bus_host *host = &b->url.hosts[0];
	const bool six = strchr(host->name, ':') != NULL;
	natsStatus s;
	char url[URL_MAX];

	snprintf(url, sizeof(url), "nats://%s%s%s:%u", six ? "[" : "",
	    host->name[0] == '\0' ? "127.0.0.1" : host->name, six ? "]" : "",
	    host->port == 0 ? PORT : host->port);
	s = natsOptions_SetURL(o, url);
	if (s == NATS_OK && b->url.colon)
		s = natsOptions_SetUserInfo(o, b->url.user, b->url.password);
	else if (s == NATS_OK && b->url.user[0] != '\0')
		s = natsOptions_SetToken(o, b->url.user);
	if (s == NATS_OK && b->tls)
		s = natsOptions_SetSecure(o, true);
	if (s == NATS_OK && b->tls)
		s = natsOptions_SetExpectedHostname(o, host->name);
	if (s == NATS_OK && b->tls && b->options.ca != NULL)
		s = natsOptions_LoadCATrustedCertificates(o, b->options.ca);
	if (s == NATS_OK && b->tls && b->options.cert != NULL)
		s = natsOptions_LoadCertificatesChain(o, b->options.cert,
		    b->options.key);
	if (s == NATS_OK && b->options.creds != NULL)
		s = natsOptions_SetUserCredentialsFromFiles(o,
		    b->options.creds, NULL);
	if (s == NATS_OK)
		s = natsOptions_SetAllowReconnect(o, false);
	if (s == NATS_OK)
		s = natsOptions_SetNoEcho(o, true);
	if (s == NATS_OK)
		s = natsOptions_SetSendAsap(o, true);
	if (s == NATS_OK)
		s = natsOptions_SetTimeout(o, CONNECT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetWriteDeadline(o, WRITE_MS);
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(o, PING_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxPingsOut(o, PINGS_OUT);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(o, complain, nats);
	if (s == NATS_OK)
		s = natsOptions_SetClosedCB(o, closed, nats);
	return s;
}

static void
discard(struct nats *s)
{
	if (s->fd >= 0)
		(void)close(s->fd);
	natsOptions_Destroy(s->options);
	bus_queue_clear(&s->out);
	bus_queue_clear(&s->in);
	free(s);
}

static bool
start(struct nats *s)
{
	pthread_condattr_t attributes;
	bool good;

	if (pthread_condattr_init(&attributes) != 0)
		return false;
	good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
	    pthread_cond_init(&s->wake, &attributes) == 0;
	pthread_condattr_destroy(&attributes);
	return good && pthread_mutex_init(&s->mutex, NULL) == 0 &&
	    pthread_create(&s->thread, NULL, run, s) == 0;
}

static bool
nats_open(struct bus *b)
{
	struct nats *s;
	natsStatus status;

	if (b->url.n_hosts > 1)
		return snprintf(b->error, sizeof(b->error),
		    "URL: NATS has one host here") < 0;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return snprintf(b->error, sizeof(b->error), "no memory") < 0;
	s->name = b->name;
	s->listens = b->options.listens > 0;
	s->take_max = bus_take_max(b);
	s->out.most = s->in.most = b->options.queue_bytes;
	s->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	status = natsOptions_Create(&s->options);
	if (status == NATS_OK)
		status = set_options(b, s, s->options);
	if (status != NATS_OK)
		describe(status, b->error, sizeof(b->error));
	else if (s->fd < 0 || !start(s))
		snprintf(b->error, sizeof(b->error), "nats: no thread");
	else
		b->in = s;
	if (b->in == NULL)
		discard(s);
	return b->in != NULL;
}

static void
nats_close(struct bus *b)
{
	struct nats *s = in(b);

	pthread_mutex_lock(&s->mutex);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->mutex);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->mutex);
	discard(s);
}

const struct bus_kind bus_nats = {
	.open = nats_open,
	.close = nats_close,
	.send = nats_send,
	.work = nats_work,
	.fds = nats_fds,
	.ask = nats_ask,
	.ask_end = nats_ask_end,
	.waiting = nats_waiting
};
