/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_redis.c - a stream of Redis or Valkey, by hiredis.
 *
 *   writer  XADD name MAXLEN ~ n * d frame      up to WINDOW without a reply
 *   reader  TIME, XRANGE first, XRANGE last     after each connection
 *           XREAD BLOCK ... name last-id        for ever
 *
 * Two connections, as a blocked XREAD would keep back what is sent behind it.
 * Both are non-blocking: commands and replies pass through hiredis' buffers,
 * and a short list tells which command each reply is for.
 *
 * A frame stays in the queue until its XADD has been answered, so after a
 * reconnection it is sent again, and may be in the log twice.
 *
 * The log is cut at its beginning by MAXLEN. A reader that comes back, or that
 * was slow, compares the first id of the log with the last that it has read:
 * if that is gone, later ones may be gone too, which is counted as a gap.
 *
 * A question is an entry with a second field, r: a stream for the answers, of
 * the one that asks. Its name is the log's and a number, so that an ACL can
 * tell it; others are not answered to: whoever may publish here writes
 * nowhere else.
 *
 *   asker   XADD name ... d question r name:1f...; XREAD ... name name:1f...
 *   peer    XADD name:1f... MAXLEN ~ n * d frame; EXPIRE name:1f... 60
 *   asker   UNLINK name:1f...                   when it has all
 */
#include "bus_in.h"

#include <kvroute.h>

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	WINDOW = 32,          /* XADDs without a reply */
	ASKED_MAX = 2 * WINDOW + 8, /* an answer has an EXPIRE, too */
	ID_MAX = 48,
	READS_MAX = 256,      /* reads of a socket in one go */
	REPLY_MAX = 16 << 20, /* bytes of one reply */
	REPLY_DIGITS = 16,    /* of the name of a stream for answers */
	MEAN_OF = 256,        /* frames, for the length of the log */
	ARGS_MAX = 12,
	PORT = 6379
};

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BLOCK_MS "1000"
#define CLOCK_EACH (10 * SECOND) /* the server's may be set */
#define COUNT "64"
#define ASK_AGE_MAX (5 * SECOND) /* of a question: then none waits any more */
#define ANSWER_SECONDS "60"

/* What fails as EXTRA or ANSWER may be forbidden; the rest does without. */
enum what { LOGIN, ADD, ANSWER, EXTRA, CLOCK, FIRST, LAST, READ, CHECK,
    TAIL };
enum phase { DOWN, CONNECTING, UP };

struct id {
	uint64_t ms, n;
};

struct link {
	redisContext *c;
	enum phase phase;
	bool welcome;            /* the server has answered */
	int64_t up;              /* since when */
	int64_t next_try, pause; /* while it is down */
	int64_t heard;           /* last sign of the server, or begin of wait */
	enum what asked[ASKED_MAX];
	size_t n_asked;
	size_t unread;           /* bytes since the last whole reply */
};

struct redis {
	struct link writer, reader;
	struct bus_queue out;
	struct id last;          /* of the log, that was read */
	struct id checked;       /* `last` before the frames being checked */
	struct id first, end;    /* of the log, when the reader came up */
	bool has_last;           /* `last` is set ... */
	bool last_was_there;     /* ... and was an entry */
	bool empty;              /* was the log, then */
	char reply[BUS_SUBJECT_MAX]; /* stream of answers; "": none */
	struct id answered;      /* the last one */
	double mean;             /* bytes of a frame of the log; 0: unknown */
	int64_t since;           /* to read again, ns; below 0: not */
	int64_t ahead;           /* the server's clock less ours, ns, */
	int64_t clocked;         /* as of when */
	bool refused;            /* frames, since one was taken last */
};

static struct redis *
in(const struct bus *b)
{
	return b->in;
}

/* --------------------------------------------------------------- links --- */

/* Closes a link, to be opened after a pause. */
static void
down(struct bus *b, struct link *l, const char *why)
{
	const int64_t now = kvr_clock_now();

	snprintf(b->error, sizeof(b->error), "redis: %s", why);
	if (l->c != NULL)
		redisFree(l->c);
	l->c = NULL;
	if (l->welcome && now - l->up > BUS_PAUSE_MAX * MS)
		l->pause = 0;
	l->phase = DOWN;
	l->welcome = false;
	l->n_asked = 0;
	l->unread = 0;
	l->next_try = now + bus_pause(&l->pause);
	if (l == &in(b)->writer)
		in(b)->out.kept = 0;
	b->connected = false;
	b->counts.failures++;
}

static bool
ask(struct bus *b, struct link *l, enum what what, int argc,
    const char **args, const size_t *lengths)
{
	if (l->c == NULL)
		return false;
	if (l->n_asked == ASKED_MAX || redisAppendCommandArgv(l->c, argc, args,
	    lengths) != REDIS_OK) {
		down(b, l, "no memory for a command");
		return false;
	}
	if (l->n_asked == 0)
		l->heard = kvr_clock_now();
	l->asked[l->n_asked++] = what;
	return true;
}

/* A command of words, up to NULL. */
static bool
ask_words(struct bus *b, struct link *l, enum what what,
    const char *const *words)
{
	const char *args[ARGS_MAX];
	int n;

	for (n = 0; words[n] != NULL; n++)
		args[n] = words[n];
	return ask(b, l, what, n, args, NULL);
}
#define ASK(b, l, what, ...) \
	ask_words(b, l, what, (const char *const []){ __VA_ARGS__, NULL })

static void
start_reading(struct bus *b, struct link *l)
{
	(void)(ASK(b, l, CLOCK, "TIME") &&
	    ASK(b, l, FIRST, "XRANGE", b->name, "-", "+", "COUNT", "1") &&
	    ASK(b, l, LAST, "XREVRANGE", b->name, "+", "-", "COUNT", "1"));
}

/* The socket is connected. */
static void
greet(struct bus *b, struct link *l)
{
	const char *db = b->url.path[0] == '/' ? b->url.path + 1 : "";
	const bool tcp = strcmp(b->url.scheme, "unix") != 0;
	bool good = true;
	const int on = 1;

	if (tcp)
		(void)setsockopt(l->c->fd, IPPROTO_TCP, TCP_NODELAY, &on,
		    sizeof(on));
	l->phase = UP;
	if (b->url.user[0] != '\0')
		good = ASK(b, l, LOGIN, "AUTH", b->url.user, b->url.password);
	else if (b->url.password[0] != '\0')
		good = ASK(b, l, LOGIN, "AUTH", b->url.password);
	/* Also without a login, to see whether the server answers. */
	if (good)
		good = ASK(b, l, LOGIN, "SELECT", tcp && *db ? db : "0");
	if (good && l == &in(b)->reader)
		start_reading(b, l);
}

static void
connect_link(struct bus *b, struct link *l)
{
	const int port = b->url.port == 0 ? PORT : (int)b->url.port;
	const char *host = b->url.host[0] == '\0' ? "127.0.0.1" : b->url.host;

	if (kvr_clock_now() < l->next_try)
		return;
	l->c = strcmp(b->url.scheme, "unix") == 0 ?
	    redisConnectUnixNonBlock(b->url.path) :
	    redisConnectNonBlock(host, port);
	if (l->c == NULL || l->c->err != 0) {
		down(b, l, l->c == NULL ? "no memory" : l->c->errstr);
		return;
	}
	l->phase = CONNECTING;
	l->heard = kvr_clock_now();
}

static void
look_connected(struct bus *b, struct link *l)
{
	struct pollfd fd = { .fd = l->c->fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&fd, 1, 0) <= 0)
		return;
	if (getsockopt(l->c->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
		error = errno;
	if (error != 0)
		down(b, l, strerror(error));
	else
		greet(b, l);
}

/* ------------------------------------------------------------- replies --- */

static bool
parse_id(const redisReply *reply, struct id *out)
{
	return reply->type == REDIS_REPLY_STRING && sscanf(reply->str,
	    "%" SCNu64 "-%" SCNu64, &out->ms, &out->n) == 2;
}

static bool
before(const struct id *a, const struct id *b)
{
	return a->ms < b->ms || (a->ms == b->ms && a->n < b->n);
}

static bool
is_array(const redisReply *reply, size_t least)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}

/* Of the first entry of an XRANGE; false: there is none. */
static bool
entry_id(const redisReply *reply, struct id *out)
{
	return is_array(reply, 1) && is_array(reply->element[0], 1) &&
	    parse_id(reply->element[0]->element[0], out);
}

/*
 * The first time it does not wait: a server that forbids it says so before the
 * connection counts.
 */
static void
read_on(struct bus *b)
{
	const struct redis *r = in(b);
	const char *wait = r->reader.welcome ? "BLOCK" : "COUNT";
	const char *most = r->reader.welcome ? BLOCK_MS : COUNT;
	char id[ID_MAX], answered[ID_MAX];

	if (kvr_clock_now() - r->clocked > CLOCK_EACH &&
	    !ASK(b, &in(b)->reader, CLOCK, "TIME"))
		return;

	snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64, r->last.ms, r->last.n);
	snprintf(answered, sizeof(answered), "%" PRIu64 "-%" PRIu64,
	    r->answered.ms, r->answered.n);
	if (r->reply[0] == '\0')
		(void)ASK(b, &in(b)->reader, READ, "XREAD", "COUNT", COUNT,
		    wait, most, "STREAMS", b->name, id);
	else
		(void)ASK(b, &in(b)->reader, READ, "XREAD", "COUNT", COUNT,
		    wait, most, "STREAMS", b->name, r->reply, id, answered);
}

/*
 * The log began anew, with ids that may be smaller; all of it is news. Perhaps
 * the server's clock was set back: it is asked before the next read.
 */
static void
begin_anew(struct bus *b)
{
	struct redis *r = in(b);

	b->counts.gaps += r->last_was_there;
	r->last = (struct id){ 0, 0 };
	r->last_was_there = false;
	r->clocked = -CLOCK_EACH;
}

/*
 * The log ends before what was read last. If that was no entry but a time, as
 * of a log that is idle, what comes next follows the end.
 */
static void
end_is_before(struct bus *b, const struct id *end)
{
	struct redis *r = in(b);

	if (r->last_was_there)
		begin_anew(b);
	else
		r->last = *end;
}

/* The log's ends are known: where to begin? */
static void
place(struct bus *b)
{
	struct redis *r = in(b);
	const int64_t now = kvr_clock_now() + r->ahead;

	if (r->since >= 0) {
		r->last = (struct id){ r->since >= now ? 0 :
		    (uint64_t)((now - r->since) / MS), 0 };
		r->last_was_there = false;
	} else if (!r->has_last) {
		r->last = r->end;
		r->last_was_there = !r->empty;
	} else if (before(&r->end, &r->last)) {
		end_is_before(b, &r->end);
	} else if (r->last_was_there && before(&r->last, &r->first)) {
		b->counts.gaps++;
	}
	r->has_last = true;
	r->since = -1;
	read_on(b);
}

static void
take_clock(struct redis *r, const redisReply *reply)
{
	uint64_t seconds, micro;

	if (!is_array(reply, 2) || reply->element[0]->type !=
	    REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_STRING)
		return;
	seconds = strtoull(reply->element[0]->str, NULL, 10) % UINT32_MAX;
	micro = strtoull(reply->element[1]->str, NULL, 10) % 1000000;
	r->clocked = kvr_clock_now();
	r->ahead = (int64_t)seconds * SECOND + (int64_t)micro * 1000 -
	    r->clocked;
}

static const redisReply *
string_at(const redisReply *array, size_t at)
{
	return is_array(array, at + 1) && array->element[at]->type ==
	    REDIS_REPLY_STRING ? array->element[at] : NULL;
}

/* A stream for answers is called name:0123456789abcdef. */
static bool
may_answer_to(const struct bus *b, const char *reply)
{
	const size_t n = strlen(b->name);

	return strncmp(reply, b->name, n) == 0 && reply[n] == ':' &&
	    strspn(reply + n + 1, "0123456789abcdef") == REPLY_DIGITS &&
	    reply[n + 1 + REPLY_DIGITS] == '\0';
}

/* All replicas see the same frames, and so cut at about the same length. */
static void
count_mean(struct redis *r, size_t n)
{
	r->mean += r->mean == 0 ? (double)n :
	    ((double)n - r->mean) / (double)MEAN_OF;
}

/*
 * An entry: [id, [d, frame]], or [id, [d, frame, r, stream]]; others are none
 * of ours.
 */
static int64_t
take_entry(struct bus *b, const redisReply *entry)
{
	struct redis *r = in(b);
	const redisReply *frame, *reply;
	struct id id;
	int64_t age;

	if (!is_array(entry, 2) || !parse_id(entry->element[0], &id))
		return 0;
	r->last = id;
	r->last_was_there = true;
	age = kvr_clock_now() + r->ahead -
	    (int64_t)(id.ms % (UINT64_C(1) << 42)) * MS;
	frame = string_at(entry->element[1], 1);
	reply = string_at(entry->element[1], 2);
	if (reply != NULL && strcmp(reply->str, "r") == 0)
		reply = string_at(entry->element[1], 3);
	else
		reply = NULL;
	if (frame == NULL)
		return age;
	count_mean(r, frame->len);
	if (reply == NULL)
		bus_deliver(b, frame->str, frame->len, age, NULL, false);
	else if (may_answer_to(b, reply->str) && age < ASK_AGE_MAX)
		bus_deliver(b, frame->str, frame->len, age, reply->str, false);
	return age;
}

static void
take_log(struct bus *b, const redisReply *entries)
{
	struct redis *r = in(b);
	const bool was_there = r->last_was_there;
	int64_t oldest = 0, age;
	size_t i;

	for (i = 0; i < entries->elements; i++) {
		age = take_entry(b, entries->element[i]);
		oldest = i == 0 ? age : oldest;
	}
	if (oldest > SECOND && was_there)
		(void)ASK(b, &r->reader, CHECK, "XRANGE", b->name, "-", "+",
		    "COUNT", "1");
}

static void
take_answers(struct bus *b, const redisReply *entries)
{
	struct redis *r = in(b);
	const redisReply *frame;
	size_t i;

	for (i = 0; i < entries->elements; i++) {
		if (!is_array(entries->element[i], 2) ||
		    !parse_id(entries->element[i]->element[0], &r->answered))
			continue;
		frame = string_at(entries->element[i]->element[1], 1);
		if (frame != NULL)
			bus_deliver(b, frame->str, frame->len, 0, NULL, true);
	}
}

/*
 * [[name, [entry, ...]], ...], or nil when nothing came in time. Entries with
 * smaller ids do not come either: a log that was removed and made anew has such
 * ids if the clock of the server was set back.
 */
static void
take_entries(struct bus *b, const redisReply *reply)
{
	struct redis *r = in(b);
	const redisReply *stream, *name;
	size_t i;

	r->checked = r->last;
	for (i = 0; is_array(reply, i + 1); i++) {
		stream = reply->element[i];
		name = string_at(stream, 0);
		if (name == NULL || !is_array(stream, 2) ||
		    !is_array(stream->element[1], 1))
			continue;
		if (strcmp(name->str, b->name) == 0)
			take_log(b, stream->element[1]);
		else if (strcmp(name->str, r->reply) == 0)
			take_answers(b, stream->element[1]);
	}
	if (r->reader.c == NULL)
		return;
	if (reply->type == REDIS_REPLY_NIL)
		(void)ASK(b, &r->reader, TAIL, "XREVRANGE", b->name, "+", "-",
		    "COUNT", "1");
	else
		read_on(b);
}

static void
take_tail(struct bus *b, const redisReply *reply)
{
	struct id end;

	if (entry_id(reply, &end) && before(&end, &in(b)->last))
		end_is_before(b, &end);
	read_on(b);
}

static void
added(struct bus *b)
{
	in(b)->refused = false;
	free(bus_queue_pop(&in(b)->out));
	b->counts.sent++;
}

/* true: it concerns nothing else. */
static bool
forbidden(struct bus *b, enum what what, const char *why)
{
	struct redis *r = in(b);

	if (what == ADD)
		r->refused = true;
	if (what == ANSWER) {
		free(bus_queue_pop(&r->out));
		b->counts.send_drops++;
	}
	/* Perhaps the answers: they are done without. */
	if (what == READ)
		r->reply[0] = '\0';
	if (what != ANSWER && what != EXTRA)
		return false;
	snprintf(b->error, sizeof(b->error), "redis: %s", why);
	return true;
}

static void
take_reply(struct bus *b, struct link *l, enum what what,
    const redisReply *reply)
{
	struct redis *r = in(b);
	struct id id;

	/* The server has let us in; the reader may read, the writer write. */
	if (!l->welcome && (l == &r->reader ? what == READ :
	    what == ADD || !r->refused)) {
		l->welcome = true;
		l->up = kvr_clock_now();
		b->counts.connects += l == &r->reader;
	}
	switch (what) {
	case LOGIN:
	case EXTRA:
		break;
	case ADD:
	case ANSWER:
		added(b);
		break;
	case CLOCK:
		take_clock(r, reply);
		break;
	case FIRST:
		r->empty = !entry_id(reply, &r->first);
		break;
	case LAST:
		if (!entry_id(reply, &r->end))
			r->end = (struct id){ 0, 0 };
		place(b);
		break;
	case READ:
		take_entries(b, reply);
		break;
	case CHECK:
		if (!entry_id(reply, &id) || before(&r->checked, &id))
			b->counts.gaps++;
		break;
	case TAIL:
		take_tail(b, reply);
		break;
	}
}

/* All replies that have come. */
static void
take_replies(struct bus *b, struct link *l)
{
	redisReply *reply;
	enum what what;

	while (l->c != NULL) {
		if (redisGetReplyFromReader(l->c, (void **)&reply) !=
		    REDIS_OK) {
			down(b, l, l->c->errstr);
			return;
		}
		if (reply == NULL)
			return;
		l->unread = l->c->reader->len - l->c->reader->pos;
		what = LOGIN;
		if (l->n_asked > 0) {
			what = l->asked[0];
			memmove(l->asked, l->asked + 1,
			    --l->n_asked * sizeof(l->asked[0]));
		}
		if (reply->type != REDIS_REPLY_ERROR)
			take_reply(b, l, what, reply);
		else if (!forbidden(b, what, reply->str))
			down(b, l, reply->str);
		freeReplyObject(reply);
	}
}

/* ---------------------------------------------------------------- work --- */

static void
write_out(struct bus *b, struct link *l)
{
	int done = 0;

	while (l->c != NULL && !done) {
		const size_t left = sdslen(l->c->obuf);

		if (redisBufferWrite(l->c, &done) != REDIS_OK)
			down(b, l, l->c->errstr);
		else if (sdslen(l->c->obuf) == left)
			return;
	}
}

static void
read_in(struct bus *b, struct link *l)
{
	size_t i, before_it;

	for (i = 0; i < READS_MAX; i++) {
		before_it = l->c->reader->len;
		if (redisBufferRead(l->c) != REDIS_OK) {
			down(b, l, l->c->errstr);
			return;
		}
		if (l->c->reader->len == before_it)
			break;
		l->unread += l->c->reader->len - before_it;
		l->heard = kvr_clock_now();
	}
	if (l->unread > REPLY_MAX) {
		in(b)->has_last = false;
		b->counts.gaps++;
		down(b, l, "an entry of the stream is too large: remove it");
	}
}

/* How many frames the log may have. */
static uint64_t
log_length(const struct bus *b)
{
	const uint64_t frames = b->options.log_frames;
	const double fit = in(b)->mean == 0 ? 0 :
	    (double)b->options.log_bytes / in(b)->mean;

	return fit == 0 || fit >= (double)frames ? frames : (uint64_t)fit + 1;
}

/* Its subject is "", "?" for a question, or the stream for an answer. */
static bool
add_item(struct bus *b, const struct bus_item *item, const char *most)
{
	struct redis *r = in(b);
	const bool question = strcmp(item->subject, "?") == 0;
	const bool answer = item->subject[0] != '\0' && !question;
	const char *stream = answer ? item->subject : b->name;
	const char *args[] = { "XADD", stream, "MAXLEN", "~", most, "*", "d",
	    (const char *)item->bytes, "r", r->reply };
	const size_t lengths[] = { 4, strlen(stream), 6, 1, strlen(most), 1, 1,
	    item->n, 1, strlen(r->reply) };

	if (!ask(b, &r->writer, answer ? ANSWER : ADD, question ? 10 : 8, args,
	    lengths))
		return false;
	r->out.kept++;
	return !answer || ASK(b, &r->writer, EXTRA, "EXPIRE", stream,
	    ANSWER_SECONDS);
}

static void
add(struct bus *b)
{
	struct redis *r = in(b);
	const struct bus_item *item = r->out.first;
	char most[24];
	size_t i;

	for (i = 0; i < r->out.kept && item != NULL; i++)
		item = item->next;
	snprintf(most, sizeof(most), "%" PRIu64, log_length(b));
	for (; item != NULL && r->out.kept < WINDOW; item = item->next)
		if (!add_item(b, item, most))
			return;
}

static void
work_link(struct bus *b, struct link *l)
{
	if (l->phase == DOWN)
		connect_link(b, l);
	if (l->phase == CONNECTING)
		look_connected(b, l);
	if (l->phase == UP && l == &in(b)->writer)
		add(b);
	if (l->phase == UP)
		write_out(b, l);
	if (l->phase == UP)
		read_in(b, l);
	if (l->phase == UP)
		take_replies(b, l);
	if (l->phase == UP)
		write_out(b, l);
	if (l->phase != DOWN && (l->n_asked > 0 || l->phase == CONNECTING) &&
	    kvr_clock_now() - l->heard > BUS_SILENCE_MAX * MS)
		down(b, l, "the server does not answer");
}

static void
redis_work(struct bus *b)
{
	struct redis *r = in(b);
	const uint64_t drops = r->out.drops;

	work_link(b, &r->writer);
	work_link(b, &r->reader);
	b->counts.send_drops += r->out.drops - drops;
	if (!b->connected && r->writer.welcome && r->reader.welcome)
		b->error[0] = '\0';
	b->connected = r->writer.welcome && r->reader.welcome;
}

static size_t
redis_fds(const struct bus *b, struct pollfd *fds)
{
	const struct link *links[] = { &in(b)->writer, &in(b)->reader };
	size_t i, n = 0;

	for (i = 0; i < 2; i++) {
		if (links[i]->c == NULL)
			continue;
		fds[n] = (struct pollfd){ .fd = links[i]->c->fd,
		    .events = POLLIN };
		if (links[i]->phase == CONNECTING ||
		    sdslen(links[i]->c->obuf) > 0)
			fds[n].events |= POLLOUT;
		n++;
	}
	return n;
}

/* ------------------------------------------------------ open and close --- */

static bool
redis_send(struct bus *b, const char *subject, const void *bytes, size_t n)
{
	struct bus_queue *out = &in(b)->out;
	const uint64_t drops = out->drops;
	const bool taken = bus_queue_push(out, subject, bytes, n);

	b->counts.send_drops += out->drops - drops;
	return taken;
}

/* If it may not be removed, it expires. */
static void
redis_ask_end(struct bus *b)
{
	struct redis *r = in(b);

	if (r->reply[0] != '\0' && r->writer.phase == UP &&
	    r->writer.n_asked < ASKED_MAX)
		(void)ASK(b, &r->writer, EXTRA, "UNLINK", r->reply);
	r->reply[0] = '\0';
}

static bool
redis_ask(struct bus *b, const void *bytes, size_t n)
{
	struct redis *r = in(b);
	uint64_t random;

	redis_ask_end(b);
	if (getentropy(&random, sizeof(random)) != 0)
		return false;
	snprintf(r->reply, sizeof(r->reply), "%.*s:%016" PRIx64,
	    (int)BUS_NAME_MAX, b->name, random);
	r->answered = (struct id){ 0, 0 };
	return redis_send(b, "?", bytes, n);
}

static size_t
redis_waiting(const struct bus *b)
{
	return in(b)->out.bytes;
}

/* Replies that are on their way would be read twice: a new connection. */
static bool
redis_since(struct bus *b, int64_t age)
{
	struct link *l = &in(b)->reader;

	in(b)->since = age < 0 ? 0 : age;
	if (l->c != NULL)
		redisFree(l->c);
	l->c = NULL;
	l->phase = DOWN;
	l->welcome = false;
	l->n_asked = 0;
	l->unread = 0;
	l->next_try = 0;
	return true;
}

static void
redis_close(struct bus *b)
{
	struct redis *r = in(b);

	if (r->writer.c != NULL)
		redisFree(r->writer.c);
	if (r->reader.c != NULL)
		redisFree(r->reader.c);
	r->out.kept = 0;
	bus_queue_clear(&r->out);
	free(r);
}

static bool
redis_open(struct bus *b)
{
	const char *path = b->url.path;
	struct redis *r;

	if (b->tls)
		return snprintf(b->error, sizeof(b->error), "%s: there is no "
		    "TLS to Redis here (hiredis %d.%d.%d): use a tunnel, see "
		    "kvroute-sync(8)", b->url.scheme, HIREDIS_MAJOR,
		    HIREDIS_MINOR, HIREDIS_PATCH) < 0;
	if (strcmp(b->url.scheme, "unix") == 0 ? path[0] == '\0' :
	    path[0] != '\0' && (strspn(path + 1, "0123456789") !=
	    strlen(path + 1) || strlen(path) > 6))
		return snprintf(b->error, sizeof(b->error), "URL: the path is "
		    "that of no %s", strcmp(b->url.scheme, "unix") == 0 ?
		    "socket" : "database") < 0;
	b->in = r = calloc(1, sizeof(*r));
	if (r == NULL)
		return snprintf(b->error, sizeof(b->error), "no memory") < 0;
	r->out.most = b->options.queue_bytes;
	r->since = -1;
	return true;
}

const struct bus_kind bus_redis = {
	.open = redis_open,
	.close = redis_close,
	.send = redis_send,
	.work = redis_work,
	.fds = redis_fds,
	.since = redis_since,
	.ask = redis_ask,
	.ask_end = redis_ask_end,
	.waiting = redis_waiting
};
