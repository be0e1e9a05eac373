/* SPDX-License-Identifier: BSD-2-Clause */
/* feed.c - see feed.h. */
#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "decode.h"

#define MS INT64_C(1000000)
#define IDLE_MAX (2000 * MS)      /* of a replay */
#define REPLAY_MAX (120000 * MS)

enum { FRAMES_MAX = 4, BURST = 1000 };
enum { HEARTBEAT = 5000, HEARTBEAT_TIMEOUT = 15000, QUEUE = 100000 };
/* Between attempts to connect; the first ones follow each other soon. */
enum { RECONNECT_MAX = 5000 };
enum { STREAMS_A_THREAD = 500, THREADS_MAX = 4 };

struct message {
	zmq_msg_t frames[FRAMES_MAX];
	int n;                /* more than FRAMES_MAX: the rest is dropped */
};

struct feed {
	struct feed_sink sink;
	char *endpoint, *replay, *topic;
	bool dynamo;
	bool own;             /* context */
	void *context, *sub, *monitor;
	void *dealer;         /* NULL: no replay runs */
	struct feed_replays *replays;
	bool met;             /* connected at least once */
	bool connected;
	const char *why;      /* it is not; NULL: not known */
	int64_t asked, heard; /* of the replay */
	uint64_t strange;
};

static int64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

/* ---------------------------------------------------------- messages --- */

static void
message_free(struct message *m)
{
	int i;

	for (i = 0; i < m->n && i < FRAMES_MAX; i++)
		zmq_msg_close(&m->frames[i]);
}

/* A whole message. false: none is there, or errno is not EAGAIN. */
static bool
receive(void *socket, struct message *m)
{
	zmq_msg_t extra, *to;
	int more = 1;

	for (m->n = 0; more; m->n++) {
		to = m->n < FRAMES_MAX ? &m->frames[m->n] : &extra;
		zmq_msg_init(to);
		if (zmq_msg_recv(to, socket, ZMQ_DONTWAIT) == -1) {
			zmq_msg_close(to);
			message_free(m);
			return false;
		}
		more = zmq_msg_more(to);
		if (to == &extra)
			zmq_msg_close(to);
	}
	return true;
}

/* A number of 8 bytes, big endian. */
static bool
number(zmq_msg_t *frame, uint64_t *out)
{
	const unsigned char *at = zmq_msg_data(frame);
	size_t i;

	if (zmq_msg_size(frame) != 8)
		return false;
	for (*out = 0, i = 0; i < 8; i++)
		*out = *out << 8 | at[i];
	return true;
}

static bool
give(const struct feed *f, const struct record_step *step)
{
	return f->sink.step(f->sink.context, step);
}

static bool
wants(const struct feed *f, uint64_t *from)
{
	return f->sink.wants(f->sink.context, from);
}

static bool
deliver(const struct feed *f, struct record_step step, zmq_msg_t *payload)
{
	step.bytes = zmq_msg_data(payload);
	step.n = zmq_msg_size(payload);
	return give(f, &step);
}

/* ----------------------------------------------------------- sockets --- */

static bool
set(void *socket, int option, int value)
{
	return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

/* A message above the bound makes libzmq drop the connection. */
static void *
socket_to(void *context, int type, const char *endpoint)
{
	const int64_t most = (int64_t)DECODE_BYTES_MAX;
	void *socket = zmq_socket(context, type);

	if (socket == NULL)
		return NULL;
	if (set(socket, ZMQ_LINGER, 0) && set(socket, ZMQ_RCVHWM, QUEUE) &&
	    set(socket, ZMQ_IPV6, 1) &&
	    set(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX) &&
	    set(socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT) &&
	    set(socket, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT) &&
	    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof(most)) == 0 &&
	    (endpoint == NULL || zmq_connect(socket, endpoint) == 0))
		return socket;
	zmq_close(socket);
	return NULL;
}

/*
 * The monitor is there before the first connection, so that none is missed. The
 * name is used once: libzmq gives up the name of a closed one some time later.
 */
static bool
subscribe(struct feed *f)
{
	static uint64_t made;
	char name[64];

	snprintf(name, sizeof(name), "inproc://monitor-%" PRIu64, made++);
	f->sub = socket_to(f->context, ZMQ_SUB, NULL);
	if (f->sub == NULL || zmq_setsockopt(f->sub, ZMQ_SUBSCRIBE, f->topic,
	        strlen(f->topic)) != 0 ||
	    zmq_socket_monitor(f->sub, name, ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
	        ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED |
	        ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
	        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
	        ZMQ_EVENT_HANDSHAKE_FAILED_AUTH) != 0)
		return false;
	f->monitor = socket_to(f->context, ZMQ_PAIR, name);
	return f->monitor != NULL && zmq_connect(f->sub, f->endpoint) == 0;
}

static bool
copy(struct feed *f, const struct feed_options *o)
{
	f->dynamo = o->dynamo;
	f->replays = o->replays;
	f->own = o->context == NULL;
	f->context = f->own ? zmq_ctx_new() : o->context;
	f->endpoint = strdup(o->endpoint);
	f->topic = strdup(o->topic);
	f->replay = o->replay == NULL ? NULL : strdup(o->replay);
	return f->context != NULL && f->endpoint != NULL && f->topic != NULL &&
	    (f->replay != NULL || o->replay == NULL);
}

/* One that looks up a name does nothing else meanwhile. */
static int
threads_for(size_t streams)
{
	const size_t n = 1 + streams / STREAMS_A_THREAD;

	return n < THREADS_MAX ? (int)n : THREADS_MAX;
}

/* Threads cannot be added later. */
void *
feed_context(size_t streams)
{
	struct rlimit files;
	void *context = zmq_ctx_new();

	if (context == NULL)
		return NULL;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)zmq_ctx_set(context, ZMQ_MAX_SOCKETS,
	    zmq_ctx_get(context, ZMQ_SOCKET_LIMIT));
	(void)zmq_ctx_set(context, ZMQ_IO_THREADS, threads_for(streams));
	return context;
}

struct feed *
feed_open(const struct feed_options *options, const struct feed_sink *sink)
{
	struct feed *f = calloc(1, sizeof(*f));
	int error;

	if (f == NULL)
		return NULL;
	f->sink = *sink;
	if (copy(f, options) && subscribe(f))
		return f;
	error = errno;
	feed_close(f);
	errno = error;
	return NULL;
}

static void
close_socket(void **socket)
{
	if (*socket != NULL)
		zmq_close(*socket);
	*socket = NULL;
}

static void
close_replay(struct feed *f)
{
	if (f->dealer != NULL && f->replays != NULL)
		f->replays->n--;
	close_socket(&f->dealer);
}

void
feed_close(struct feed *f)
{
	if (f == NULL)
		return;
	close_replay(f);
	/*
	 * A thread of libzmq waits for ever to reach a monitor that has gone.
	 */
	if (f->sub != NULL)
		(void)zmq_socket_monitor(f->sub, NULL, 0);
	close_socket(&f->monitor);
	close_socket(&f->sub);
	if (f->own && f->context != NULL)
		zmq_ctx_term(f->context);
	free(f->endpoint);
	free(f->replay);
	free(f->topic);
	free(f);
}

bool
feed_connected(const struct feed *f)
{
	return f->connected;
}

const char *
feed_why(const struct feed *f)
{
	return f->connected ? NULL : f->why;
}

uint64_t
feed_strange(const struct feed *f)
{
	return f->strange;
}

/* -------------------------------------------------------------- live --- */

/* topic | number | batch; Dynamo: topic | publisher | number | frame */
static bool
live(struct feed *f, struct message *m)
{
	struct record_step step = { .kind = RECORD_LIVE };
	const int n = f->dynamo ? 4 : 3;

	if (m->n != n || !number(&m->frames[n - 2], &step.seq) ||
	    (f->dynamo && !number(&m->frames[1], &step.publisher))) {
		f->strange++;
		return true;
	}
	return deliver(f, step, &m->frames[n - 1]);
}

static bool
read_live(struct feed *f)
{
	struct message m;
	bool good = true;
	int i;

	for (i = 0; i < BURST && good && receive(f->sub, &m); i++) {
		good = live(f, &m);
		message_free(&m);
	}
	return good;
}

/* Reads the change of the connection; 0: no known one. */
static unsigned
event_of(struct message *m)
{
	uint16_t event = 0;

	if (zmq_msg_size(&m->frames[0]) >= sizeof(event))
		memcpy(&event, zmq_msg_data(&m->frames[0]), sizeof(event));
	return event;
}

/*
 * Notes an event; true: the connection is there. A handshake that fails is
 * tried again, which is no other failure.
 */
static bool
note_event(struct feed *f, unsigned event)
{
	switch (event) {
	case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
		f->connected = true;
		f->why = NULL;
		return true;
	case ZMQ_EVENT_DISCONNECTED:
		f->connected = false;
		break;
	case ZMQ_EVENT_CONNECT_RETRIED:
		if (f->why == NULL)
			f->why = FEED_SILENT;
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
		f->why = "a socket that wants a login answers";
		break;
	case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
	case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
		f->why = "no socket of ZeroMQ answers";
		break;
	default:
		break;
	}
	return false;
}

/* The first connection was not interrupted. */
static bool
read_monitor(struct feed *f)
{
	const struct record_step step = { .kind = RECORD_RECONNECTED };
	struct message m;
	bool good = true, there;

	while (good && receive(f->monitor, &m)) {
		there = note_event(f, event_of(&m));
		message_free(&m);
		if (!there)
			continue;
		if (f->met)
			good = give(f, &step);
		f->met = true;
	}
	return good;
}

/* ------------------------------------------------------------ replay --- */

static bool
end_replay(struct feed *f, bool whole)
{
	const struct record_step step = { .kind = RECORD_END, .seq = whole };

	close_replay(f);
	return give(f, &step);
}

static bool
may_ask(const struct feed *f)
{
	return f->connected && (f->replays == NULL ||
	    f->replays->n < f->replays->most);
}

/*
 * Each has a socket of its own: late answers to an earlier one find no reader.
 * If it cannot be asked, that is as if nothing came.
 */
static bool
ask(struct feed *f, uint64_t from)
{
	const struct record_step step = { .kind = RECORD_ASKED };
	unsigned char bytes[8];
	int i;

	for (i = 7; i >= 0; i--, from >>= 8)
		bytes[i] = (unsigned char)from;
	f->dealer = socket_to(f->context, ZMQ_DEALER, f->replay);
	if (f->dealer == NULL)
		return false;
	if (f->replays != NULL)
		f->replays->n++;
	(void)zmq_send(f->dealer, "", 0, ZMQ_SNDMORE | ZMQ_DONTWAIT);
	(void)zmq_send(f->dealer, bytes, sizeof(bytes), ZMQ_DONTWAIT);
	f->asked = f->heard = now();
	return give(f, &step);
}

/* [empty] number batch, or since vLLM 0.26 [empty] topic number batch */
static bool
replayed(struct feed *f, struct message *m, bool *end)
{
	struct record_step step = { .kind = RECORD_REPLAYED };

	if (m->n < 3 || m->n > FRAMES_MAX || zmq_msg_size(&m->frames[0]) > 0 ||
	    !number(&m->frames[m->n - 2], &step.seq)) {
		f->strange++;
		return true;
	}
	*end = step.seq == UINT64_MAX;
	return *end ? true : deliver(f, step, &m->frames[m->n - 1]);
}

static bool
read_replay(struct feed *f)
{
	bool good = true, end = false;
	struct message m;
	uint64_t from;
	int i;

	for (i = 0; i < BURST && good && !end && receive(f->dealer, &m); i++) {
		good = replayed(f, &m, &end);
		message_free(&m);
		f->heard = now();
		/* The rest of this one is of no use. */
		if (wants(f, &from))
			return good;
	}
	return good && end ? end_replay(f, true) : good;
}

static bool
watch_replay(struct feed *f)
{
	const int64_t t = now();
	uint64_t from;

	if (f->replay == NULL)
		return true;
	if (wants(f, &from)) {
		close_replay(f); /* one that runs is of no use */
		return !may_ask(f) || ask(f, from);
	}
	if (f->dealer != NULL && (t - f->heard > IDLE_MAX ||
	    t - f->asked > REPLAY_MAX))
		return end_replay(f, false);
	return true;
}

size_t
feed_items(const struct feed *f, zmq_pollitem_t items[FEED_ITEMS])
{
	items[0] = (zmq_pollitem_t){ f->monitor, 0, ZMQ_POLLIN, 0 };
	items[1] = (zmq_pollitem_t){ f->sub, 0, ZMQ_POLLIN, 0 };
	items[2] = (zmq_pollitem_t){ f->dealer, 0, ZMQ_POLLIN, 0 };
	return f->dealer == NULL ? 2 : 3;
}

bool
feed_read(struct feed *f)
{
	return read_monitor(f) && read_live(f) &&
	    (f->dealer == NULL || read_replay(f)) && watch_replay(f);
}

bool
feed_work(struct feed *f)
{
	zmq_pollitem_t items[FEED_ITEMS];
	const size_t n = feed_items(f, items);

	if (zmq_poll(items, (int)n, FEED_WAIT) == -1 && errno != EINTR)
		return false;
	return feed_read(f);
}
