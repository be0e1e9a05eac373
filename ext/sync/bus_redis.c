/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_redis.c - a stream of Redis or Valkey, by hiredis.
 *
 *   writer  XADD name MAXLEN ~ n * d frame      up to WINDOW without a reply
 *   reader  TIME, XRANGE first, XRANGE last     after each connection
 *           XREAD BLOCK ... name last-id        for ever
 *
 * Two connections, as a blocked XREAD would keep back the commands behind it.
 * Both are non-blocking: hiredis connects, formats commands and parses replies,
 * and a short list has the command of each reply. redis_way.c finds the server,
 * which a Sentinel or a node of a Cluster may have to name first.
 *
 * A frame stays in the queue until its XADD has been answered, so after a
 * reconnection it is sent again, and may be in the log twice.
 *
 * The log is cut at its beginning by MAXLEN. A reader that comes back, or that
 * was slow, compares the first id of the log with the last that it has read:
 * if that is gone, later ones may be gone too, which is counted as a gap.
 *
 * A question is an entry with a second field, r: a stream for the answers, of
 * the one that asks. The stream has the log's name and a number, so that an ACL
 * can match it; a question with another name gets no answer: whoever may
 * publish here writes nowhere else. In a Cluster it is {name}:1f..., which has
 * the slot of the log.
 *
 *   asker   XADD name ... d question r name:1f...; XREAD ... name name:1f...
 *   peer    XADD name:1f... MAXLEN ~ n * d frame; EXPIRE name:1f... 60
 *   asker   UNLINK name:1f...                   when it has all
 */
#include "bus_in.h"
#include "redis_way.h"
#include "tls.h"

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
	ASKED_MAX = 2 * WINDOW + 8, /* with EXPIRE behind, or ASKING ahead */
	ID_MAX = 48,
	READS_MAX = 256,      /* reads of a socket in one go, ... */
	READ_BYTES = 16384,   /* ... and of TLS */
	REPLY_MAX = 16 << 20, /* bytes of one reply */
	REPLY_DIGITS = 16,    /* of the name of a stream for answers */
	MEAN_OF = 256,        /* frames, for the length of the log */
	ARGS_MAX = 12,
	TURN_MS = 50          /* before a server that another one named */
};

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BLOCK_MS "1000"
#define CLOCK_EACH (10 * SECOND) /* the server's may be set */
#define COUNT "64"
#define ASK_AGE_MAX (5 * SECOND) /* of a question: then none waits any more */
#define ANSWER_SECONDS "60"

/*
 * EXTRA and ANSWER may be forbidden: the rest does without. Commands
 * behind EXTRA concern the log.
 */
enum what { LOGIN, MASTER, CLOCK, ANSWER, EXTRA, ADD, FIRST, LAST, READ, CHECK,
    TAIL };
enum phase { DOWN, CONNECTING, SHAKING, UP };

struct id {
	uint64_t ms, n;
};

struct link {
	redisContext *c;
	struct tls *tls;         /* NULL: without */
	char *out;               /* bytes that wait for the socket */
	size_t n_out, room;
	struct bus_host host;
	bool guides;             /* it is a Sentinel */
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
	struct redis_way way;
	struct bus_url sentinel; /* its login; user "": that of the server */
	struct ssl_ctx_st *tls;
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

/* Closes a link, to be opened again in so many ns. */
static void
cut(struct bus *b, struct link *l, int64_t pause)
{
	tls_free(l->tls);
	l->tls = NULL;
	free(l->out);
	l->out = NULL;
	l->n_out = l->room = 0;
	if (l->c != NULL)
		redisFree(l->c);
	l->c = NULL;
	l->phase = DOWN;
	l->welcome = false;
	l->n_asked = 0;
	l->unread = 0;
	l->next_try = kvr_clock_now() + pause;
	if (l == &in(b)->writer)
		in(b)->out.kept = 0;
	b->connected = false;
}

/* The same after a failure. */
static void
down(struct bus *b, struct link *l, const char *why)
{
	struct redis *r = in(b);

	if (r->way.kind == WAY_ONE)
		snprintf(b->error, sizeof(b->error), "redis: %s", why);
	else
		snprintf(b->error, sizeof(b->error), "redis: %.100s:%u: %s",
		    l->host.name, l->host.port, why);
	if (l->welcome && kvr_clock_now() - l->up > BUS_PAUSE_MAX * MS)
		l->pause = 0;
	cut(b, l, bus_pause(&l->pause));
	redis_way_lost(&r->way, &l->host);
	b->counts.failures++;
}

/* Adds a command to the bytes that wait for the socket. */
static bool
append(struct link *l, int argc, const char **args, const size_t *lengths)
{
	char *command, *more = l->out;
	const long long n = redisFormatCommandArgv(&command, argc, args,
	    lengths);
	size_t room;

	if (n < 0)
		return false;
	room = l->n_out + (size_t)n;
	if (room > l->room) {
		more = realloc(l->out, 2 * room);
		l->room = more == NULL ? l->room : 2 * room;
	}
	if (more != NULL) {
		l->out = more;
		memcpy(l->out + l->n_out, command, (size_t)n);
		l->n_out = room;
	}
	redisFreeCommand(command);
	return more != NULL;
}

static bool
ask(struct bus *b, struct link *l, enum what what, int argc,
    const char **args, const size_t *lengths)
{
	static const char *asking[] = { "ASKING" };

	if (l->c == NULL || (what > EXTRA && in(b)->way.asking &&
	    !ask(b, l, LOGIN, 1, asking, NULL)))
		return false;
	if (l->n_asked == ASKED_MAX || !append(l, argc, args, lengths)) {
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

/* A user without a colon is a password alone. */
static bool
log_in(struct bus *b, struct link *l)
{
	const struct bus_url *u = l->guides && in(b)->sentinel.user[0] != '\0' ?
	    &in(b)->sentinel : &b->url;

	if (u->colon && u->user[0] != '\0')
		return ASK(b, l, LOGIN, "AUTH", u->user, u->password);
	if (u->colon ? u->password[0] != '\0' : u->user[0] != '\0')
		return ASK(b, l, LOGIN, "AUTH", u->colon ? u->password :
		    u->user);
	return true;
}

/* The server can be asked. */
static void
greet(struct bus *b, struct link *l)
{
	const struct redis_way *way = &in(b)->way;

	l->phase = UP;
	if (!log_in(b, l))
		return;
	if (l->guides)
		(void)ASK(b, l, MASTER, "SENTINEL", "get-master-addr-by-name",
		    way->master);
	/* Also without a login, to see whether the server answers. */
	else if (ASK(b, l, LOGIN, "SELECT", way->db[0] == '\0' ? "0" :
	    way->db) && l == &in(b)->reader)
		start_reading(b, l);
}

static void
connect_link(struct bus *b, struct link *l)
{
	if (kvr_clock_now() < l->next_try)
		return;
	l->guides = redis_way_next(&in(b)->way, &l->host);
	l->c = strcmp(b->url.scheme, "unix") == 0 ?
	    redisConnectUnixNonBlock(b->url.path) :
	    redisConnectNonBlock(l->host.name, (int)l->host.port);
	if (l->c == NULL || l->c->err != 0) {
		down(b, l, l->c == NULL ? "no memory" : l->c->errstr);
		return;
	}
	l->phase = CONNECTING;
	l->heard = kvr_clock_now();
}

/* The socket is connected. */
static void
begin_talk(struct bus *b, struct link *l)
{
	const int on = 1;

	if (strcmp(b->url.scheme, "unix") != 0)
		(void)setsockopt(l->c->fd, IPPROTO_TCP, TCP_NODELAY, &on,
		    sizeof(on));
	if (!b->tls) {
		greet(b, l);
		return;
	}
	l->tls = tls_new(in(b)->tls, l->c->fd, l->host.name);
	if (l->tls == NULL)
		down(b, l, "no memory");
	else
		l->phase = SHAKING;
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
		begin_talk(b, l);
}

static void
shake_hands(struct bus *b, struct link *l)
{
	const int done = tls_handshake(l->tls);

	if (done < 0)
		down(b, l, tls_why(l->tls));
	else if (done > 0)
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

/*
 * Reads the id of the first entry of an XRANGE; false: the reply has no entry.
 */
static bool
entry_id(const redisReply *reply, struct id *out)
{
	return is_array(reply, 1) && is_array(reply->element[0], 1) &&
	    parse_id(reply->element[0]->element[0], out);
}

/*
 * The first time it does not wait: a server that forbids it refuses before the
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
 * The log ends before the place that was read last. If that place was no entry
 * but a time, as of a log that is idle, the next entry follows the end.
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

/* Streams for answers are called so, and 16 digits more. */
static void
answers_begin(const struct bus *b, char out[BUS_SUBJECT_MAX])
{
	snprintf(out, BUS_SUBJECT_MAX, in(b)->way.kind == WAY_CLUSTER ?
	    "{%.*s}:" : "%.*s:", (int)BUS_NAME_MAX, b->name);
}

static bool
may_answer_to(const struct bus *b, const char *reply)
{
	char begin[BUS_SUBJECT_MAX];
	size_t n;

	answers_begin(b, begin);
	n = strlen(begin);
	return strncmp(reply, begin, n) == 0 &&
	    strspn(reply + n, "0123456789abcdef") == REPLY_DIGITS &&
	    reply[n + REPLY_DIGITS] == '\0';
}

/* All replicas see the same frames, and so cut at about the same length. */
static void
count_mean(struct redis *r, size_t n)
{
	r->mean += r->mean == 0 ? (double)n :
	    ((double)n - r->mean) / (double)MEAN_OF;
}

/*
 * An entry: [id, [d, frame]], or [id, [d, frame, r, stream]]; others are not
 * ours.
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

/* An answer is not taken. */
static void
drop_answer(struct bus *b, enum what what)
{
	if (what != ANSWER)
		return;
	free(bus_queue_pop(&in(b)->out));
	b->counts.send_drops++;
}

/* true: it concerns nothing else. */
static bool
forbidden(struct bus *b, enum what what, const char *why)
{
	struct redis *r = in(b);

	if (what == ADD)
		r->refused = true;
	drop_answer(b, what);
	/* Perhaps the answers: they are done without. */
	if (what == READ)
		r->reply[0] = '\0';
	if (what != ANSWER && what != EXTRA)
		return false;
	snprintf(b->error, sizeof(b->error), "redis: %s", why);
	return true;
}

/* A Sentinel names the master: [host, port], or nil. */
static void
take_master(struct bus *b, struct link *l, const redisReply *reply)
{
	struct redis *r = in(b);
	const redisReply *name = string_at(reply, 0);
	const redisReply *port = string_at(reply, 1);
	char why[BUS_HOST_MAX + 40];

	if (name != NULL && port != NULL && name->len < BUS_HOST_MAX) {
		redis_way_found(&r->way, name->str, (unsigned)strtoul(port->str,
		    NULL, 10) & 0xffff);
		cut(b, l, 0);
		return;
	}
	snprintf(why, sizeof(why), "this Sentinel knows no master %s",
	    r->way.master);
	down(b, l, why);
}

static void
take_reply(struct bus *b, struct link *l, enum what what,
    const redisReply *reply)
{
	struct redis *r = in(b);
	struct id id;

	/* The server has let us in; the reader may read, the writer write. */
	if (!l->welcome && !l->guides && (l == &r->reader ? what == READ :
	    what == ADD || !r->refused)) {
		l->welcome = true;
		l->up = kvr_clock_now();
		b->counts.connects += l == &r->reader;
		if (l == &r->reader && r->way.node.name[0] == '\0')
			redis_way_found(&r->way, l->host.name, l->host.port);
	}
	switch (what) {
	case LOGIN:
	case EXTRA:
		break;
	case MASTER:
		take_master(b, l, reply);
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

static bool
begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* An error of the server as a sentence, with its own words. */
static void
explain(char *out, size_t size, const char *error)
{
	static const struct {
		const char *begin, *sentence;
	} known[] = {
		{ "WRONGPASS", "the server refuses user or password" },
		{ "NOAUTH", "the server wants a password" },
		{ "NOPERM", "the user lacks a permission" },
		{ "READONLY", "the server is a replica and takes no frames" },
		{ "MOVED", "the server belongs to a Cluster: the URL begins "
		    "with redis+cluster or rediss+cluster" },
		{ "CLUSTERDOWN", "the Cluster has no node for the stream" },
		{ "LOADING", "the server reads its data first" }
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (begins_with(error, known[i].begin)) {
			snprintf(out, size, "%s: %s", known[i].sentence, error);
			return;
		}
	snprintf(out, size, "%s", error);
}

/*
 * While a slot moves, its old node answers with ASK for each key that it lacks,
 * also for a new one, and the new node with MOVED. The link follows the log
 * alone: an answer is dropped, and reads do without answers.
 */
static bool
stays(struct bus *b, enum what what, const char *error)
{
	struct redis *r = in(b);
	const bool moves = begins_with(error, "ASK ") ||
	    begins_with(error, "TRYAGAIN");

	if (r->way.kind != WAY_CLUSTER)
		return false;
	if (what == READ && r->reply[0] != '\0' && moves) {
		r->reply[0] = '\0';
		read_on(b);
		return true;
	}
	if ((what != ANSWER && what != EXTRA) || (!moves &&
	    !(r->way.asking && begins_with(error, "MOVED "))))
		return false;
	drop_answer(b, what);
	return true;
}

static void
take_error(struct bus *b, struct link *l, enum what what, const char *error)
{
	struct redis *r = in(b);
	char why[BUS_ERROR_MAX - 8];

	/* Sentinels may want no login, or refuse the next command. */
	if (l->guides && what == LOGIN)
		return;
	if (stays(b, what, error))
		return;
	if (redis_way_moved(&r->way, &l->host, error)) {
		cut(b, l, TURN_MS * MS);
		return;
	}
	explain(why, sizeof(why), error);
	if (!forbidden(b, what, why))
		down(b, l, why);
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
		if (reply->type == REDIS_REPLY_ERROR)
			take_error(b, l, what, reply->str);
		else
			take_reply(b, l, what, reply);
		freeReplyObject(reply);
	}
}

/* ---------------------------------------------------------------- work --- */

/* Bytes that the socket took; below 0: the connection is over. */
static ssize_t
write_some(struct link *l)
{
	ssize_t n;

	if (l->tls != NULL)
		return tls_write(l->tls, l->out, l->n_out);
	n = write(l->c->fd, l->out, l->n_out);
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
}

static void
write_out(struct bus *b, struct link *l)
{
	ssize_t n;

	while (l->n_out > 0) {
		n = write_some(l);
		if (n < 0)
			down(b, l, l->tls == NULL ? strerror(errno) :
			    tls_why(l->tls));
		if (n <= 0)
			return;
		l->n_out -= (size_t)n;
		memmove(l->out, l->out + n, l->n_out);
	}
}

/* false: the connection is over. */
static bool
read_some(struct link *l)
{
	char bytes[READ_BYTES];
	ssize_t n;

	if (l->tls == NULL)
		return redisBufferRead(l->c) == REDIS_OK;
	n = tls_read(l->tls, bytes, sizeof(bytes));
	return n == 0 || (n > 0 && redisReaderFeed(l->c->reader, bytes,
	    (size_t)n) == REDIS_OK);
}

static void
read_in(struct bus *b, struct link *l)
{
	size_t i, before_it;

	for (i = 0; i < READS_MAX; i++) {
		before_it = l->c->reader->len;
		if (!read_some(l)) {
			down(b, l, l->tls == NULL ? l->c->errstr :
			    tls_why(l->tls));
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

/* The subject is "", "?" for a question, or the stream for an answer. */
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

/* The other link may have found the stream elsewhere. */
static bool
is_astray(const struct redis *r, const struct link *l)
{
	return r->way.kind != WAY_ONE && l->phase != DOWN && !l->guides &&
	    r->way.node.name[0] != '\0' &&
	    !bus_host_equal(&l->host, &r->way.node);
}

static void
work_link(struct bus *b, struct link *l)
{
	if (is_astray(in(b), l))
		cut(b, l, 0);
	if (l->phase == DOWN)
		connect_link(b, l);
	if (l->phase == CONNECTING)
		look_connected(b, l);
	if (l->phase == SHAKING)
		shake_hands(b, l);
	if (l->phase == UP && l == &in(b)->writer && !l->guides)
		add(b);
	if (l->phase == UP)
		write_out(b, l);
	if (l->phase == UP)
		read_in(b, l);
	if (l->phase == UP)
		take_replies(b, l);
	if (l->phase == UP)
		write_out(b, l);
	if (l->phase != DOWN && (l->n_asked > 0 || l->phase != UP) &&
	    kvr_clock_now() - l->heard > BUS_SILENCE_MAX * MS)
		down(b, l, l->phase != SHAKING ? "the server does not answer" :
		    "the server does not answer to TLS on this port");
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
		    links[i]->n_out > 0 || (links[i]->tls != NULL &&
		    tls_wants_to_write(links[i]->tls)))
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
	size_t n_begin;

	redis_ask_end(b);
	if (getentropy(&random, sizeof(random)) != 0)
		return false;
	answers_begin(b, r->reply);
	n_begin = strlen(r->reply);
	snprintf(r->reply + n_begin, sizeof(r->reply) - n_begin, "%016" PRIx64,
	    random);
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
	in(b)->since = age < 0 ? 0 : age;
	cut(b, &in(b)->reader, 0);
	return true;
}

static void
redis_close(struct bus *b)
{
	struct redis *r = in(b);

	cut(b, &r->writer, 0);
	cut(b, &r->reader, 0);
	tls_rules_free(r->tls);
	bus_queue_clear(&r->out);
	free(r);
}

static bool
redis_open(struct bus *b)
{
	const struct bus_options *o = &b->options;
	struct redis *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return snprintf(b->error, sizeof(b->error), "no memory") < 0;
	if (!redis_way_begin(&r->way, &b->url, b->error, sizeof(b->error)) ||
	    (o->sentinel_login != NULL && !bus_login(o->sentinel_login,
	    &r->sentinel, b->error, sizeof(b->error))) ||
	    (b->tls && (r->tls = tls_rules_new(o->ca, o->cert, o->key, b->error,
	    sizeof(b->error))) == NULL)) {
		free(r);
		return false;
	}
	b->in = r;
	r->out.most = o->queue_bytes;
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
