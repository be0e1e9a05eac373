/* SPDX-License-Identifier: BSD-2-Clause */
/* plane.c - see plane.h. */
#include "plane.h"

#include "bus.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE INT64_C(10000000000)

struct publisher {
	struct hub_publisher of; /* its id */
	struct stream *stream;
	struct decoder *decoder;
	int64_t heard;
};

struct plane {
	struct hub hub;
	struct conf_stream conf;
	struct feed *feed;
	struct bus *bus;         /* one of the two */
	struct publisher *publishers;
	size_t n, room;
	int64_t opened;
	struct stream_counts ended;
	struct decode_counts decoded;
	uint64_t malformed, strange;
	bool connected;          /* as logged */
	const char *why;         /* the same */
	char error[BUS_ERROR_MAX];
};

bool
plane_connected(const struct plane *p)
{
	return p->bus != NULL ? bus_connected(p->bus) :
	    feed_connected(p->feed);
}

static void
publisher_end(struct plane *p, struct publisher *of)
{
	struct stream_state s = stream_state(of->stream);
	struct decode_counts d = decoder_counts(of->decoder);

	tell_add(&p->ended, &s.counts, &p->decoded, &d);
	stream_free(of->stream);
	decoder_free(of->decoder);
}

/* A place: a new one, or that of the publisher silent for longest. */
static struct publisher *
place(struct plane *p)
{
	struct publisher *more, *oldest;
	const size_t room = p->room == 0 ? 16 : p->room * 2;
	size_t i;

	if (p->n < p->room)
		return &p->publishers[p->n++];
	more = room > PLANE_PUBLISHERS_MAX ? NULL :
	    realloc(p->publishers, room * sizeof(*more));
	if (more != NULL) {
		p->publishers = more;
		p->room = room;
		return &p->publishers[p->n++];
	}
	if (p->n == 0)
		return NULL;
	oldest = &p->publishers[0];
	for (i = 1; i < p->n; i++)
		if (p->publishers[i].heard < oldest->heard)
			oldest = &p->publishers[i];
	publisher_end(p, oldest);
	return oldest;
}

/* NULL: no memory. */
static struct publisher *
publisher_of(struct plane *p, uint64_t id)
{
	const struct stream_options o = { .replay = false };
	const struct decode_options d = { .format = DECODE_DYNAMO };
	struct publisher made = { .of.id = id }, *to;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (p->publishers[i].of.id == id)
			return &p->publishers[i];
	made.stream = stream_new(&o);
	made.decoder = decoder_new(&d);
	to = made.stream == NULL || made.decoder == NULL ? NULL : place(p);
	if (to == NULL) {
		stream_free(made.stream);
		decoder_free(made.decoder);
		return NULL;
	}
	*to = made;
	return to;
}

static void
take(struct plane *p, struct publisher *from)
{
	const struct decode_counts before = decoder_counts(from->decoder);
	struct decode_counts after;
	struct event_batch batch;
	struct stream_out out;

	while (stream_next(from->stream, &out)) {
		if (out.what == STREAM_LOST) {
			hub_lost(&p->hub, &from->of);
			continue;
		}
		if (out.what == STREAM_RESTARTED) {
			decoder_restart(from->decoder);
			hub_restarted(&p->hub, &from->of);
			continue;
		}
		if (decoder_read(from->decoder, out.bytes, out.n, &batch) !=
		    DECODE_GOOD) {
			p->malformed++;
			hub_lost(&p->hub, &from->of);
			continue;
		}
		hub_batch(&p->hub, &from->of, &batch);
	}
	after = decoder_counts(from->decoder);
	if (tell_unread(&after) > tell_unread(&before))
		hub_lost(&p->hub, &from->of);
}

/* The numbers show the losses of a broken connection. */
static bool
on_step(void *context, const struct record_step *step)
{
	struct plane *p = context;
	struct publisher *from;

	if (step->kind != RECORD_LIVE ||
	    (from = publisher_of(p, step->publisher)) == NULL)
		return true;
	from->heard = kvr_clock_now();
	stream_live(from->stream, step->seq, step->bytes, step->n);
	take(p, from);
	return true;
}

static bool
on_wants(void *context, uint64_t *from)
{
	(void)context;
	(void)from;
	return false;
}

/* Without an envelope a loss would not be seen. */
static void
on_message(void *context, const struct bus_message *m)
{
	struct record_step step = { .kind = RECORD_LIVE, .bytes = m->bytes,
	    .n = m->n };
	struct plane *p = context;

	if (decode_dynamo_numbers(m->bytes, m->n, &step.publisher, &step.seq))
		(void)on_step(p, &step);
	else
		p->strange++;
}

static bool
listen_to(struct plane *p)
{
	const struct bus_options o = { .url = p->conf.events,
	    .login = p->conf.login[0] == '\0' ? NULL : p->conf.login,
	    .name = p->conf.topic, .listens = DECODE_BYTES_MAX,
	    .queue_bytes = STREAM_BYTES_MAX, .take = on_message,
	    .context = p };

	p->bus = bus_open(&o, p->error, sizeof(p->error));
	if (p->bus != NULL)
		return true;
	say(p->conf.events, NULL, "%s", p->error);
	errno = EPROTONOSUPPORT;
	return false;
}

struct plane *
plane_open(const struct conf_stream *conf, void *context)
{
	struct plane *p = calloc(1, sizeof(*p));
	struct feed_options o = { .endpoint = conf->events, .dynamo = true,
	    .topic = conf->topic, .context = context };

	if (p == NULL)
		return NULL;
	p->conf = *conf;
	p->hub.ids = true;
	p->opened = kvr_clock_now();
	if (conf_nats(conf) ? listen_to(p) : (p->feed = feed_open(&o,
	    &(struct feed_sink){ p, on_step, on_wants })) != NULL)
		return p;
	free(p);
	return NULL;
}

void
plane_close(struct plane *p)
{
	size_t i;

	if (p == NULL)
		return;
	feed_close(p->feed);
	bus_close(p->bus);
	for (i = 0; i < p->n; i++)
		publisher_end(p, &p->publishers[i]);
	free(p->publishers);
	hub_free(&p->hub);
	free(p);
}

struct hub *
plane_hub(struct plane *p)
{
	return &p->hub;
}

size_t
plane_items(const struct plane *p, zmq_pollitem_t items[FEED_ITEMS])
{
	struct pollfd fds[BUS_FDS_MAX];
	size_t i, n;

	if (p->bus == NULL)
		return feed_items(p->feed, items);
	n = bus_fds(p->bus, fds);
	for (i = 0; i < n; i++)
		items[i] = (zmq_pollitem_t){ .fd = fds[i].fd,
		    .events = ZMQ_POLLIN };
	return n;
}

/* Logs an error of a server of NATS, once. */
static void
log_error(struct plane *p)
{
	const char *error = bus_error(p->bus);

	if (*error != '\0' && strcmp(error, p->error) != 0)
		say(p->conf.events, NULL, "%s; it is tried again", error);
	snprintf(p->error, sizeof(p->error), "%s", error);
}

void
plane_work(struct plane *p, int64_t now)
{
	const bool connected = plane_connected(p);
	const char *why = p->feed == NULL ? NULL : feed_why(p->feed);

	hub_look(&p->hub, connected, now);
	if (p->bus != NULL) {
		bus_work(p->bus);
		log_error(p);
	} else {
		(void)feed_read(p->feed);
	}
	/* A server that refuses has a line of its own. */
	if (p->bus != NULL && p->error[0] != '\0')
		why = p->why;
	else if (why == NULL && !connected && (p->connected || p->why != NULL ||
	    now - p->opened > PATIENCE))
		why = FEED_SILENT;
	if (connected != p->connected) {
		say(p->conf.events, NULL, connected ? "connected" :
		    "it has gone; it is tried again");
		p->why = why;
	}
	say_why(p->conf.events, NULL, p->conf.events, &p->why, why);
	p->connected = connected;
}

void
plane_row(const struct plane *p, const struct hub_target *t,
    struct tell_row *row)
{
	*row = (struct tell_row){ .region = t->region, .conf = &t->conf,
	    .target = &t->target, .use = &t->use, .counts = t->counts,
	    .phase = t->target.id == 0 ? "absent" : plane_connected(p) ?
	        "live" : "connecting", .connected = plane_connected(p),
	    .stream = p->ended, .decoded = p->decoded, .heard = t->heard,
	    .lag = t->lag, .lag_known = t->lag_known };
	struct stream_state s;
	struct decode_counts d;
	struct bus_counts c;
	size_t i;

	for (i = 0; i < p->n; i++) {
		s = stream_state(p->publishers[i].stream);
		d = decoder_counts(p->publishers[i].decoder);
		tell_add(&row->stream, &s.counts, &row->decoded, &d);
	}
	row->counts.malformed = p->malformed;
	row->counts.strange = p->strange;
	if (p->bus == NULL) {
		row->counts.strange = feed_strange(p->feed);
		return;
	}
	c = bus_counts(p->bus);
	row->counts.reconnects = c.connects > 0 ? c.connects - 1 : 0;
	row->stream.refused += c.take_drops;
}
