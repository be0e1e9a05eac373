/* SPDX-License-Identifier: BSD-2-Clause */
/* follow.c - see follow.h. */
#include "follow.h"

#include "say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define PATIENCE (10 * SECOND) /* for a first connection */
#define HINT (3 * SECOND)      /* the same, for an engine that may not listen */
#define LOG_EACH (60 * SECOND)
#define NOTICE (5 * SECOND)    /* until a connection is known to be gone */
#define START (5 * SECOND)     /* of an engine, at least */

#define log_of(f, ...) say((f)->region, &(f)->conf, __VA_ARGS__)

static uint64_t
first_of(const struct conf_stream *conf)
{
	return conf->engine == CONF_MOONCAKE ? 1 : 0;
}

/* ------------------------------------------------------------- lifetime --- */

/* With those of earlier streams and decoders. */
static void
sums(const struct follow *f, struct stream_counts *stream,
    struct decode_counts *decoded)
{
	static const struct decode_counts none;
	struct decode_counts d = none;
	struct stream_state s = { .known = false };

	*stream = f->ended;
	*decoded = f->decoded;
	if (f->stream != NULL)
		s = stream_state(f->stream);
	if (f->decoder != NULL)
		d = decoder_counts(f->decoder);
	tell_add(stream, &s.counts, decoded, &d);
}

static void
end_stream(struct follow *f)
{
	struct decode_counts decoded;

	sums(f, &f->ended, &decoded);
	stream_free(f->stream);
	f->stream = NULL;
}

static void
disconnect(struct follow *f)
{
	struct stream_counts stream;

	if (f->feed != NULL)
		f->counts.strange += feed_strange(f->feed);
	feed_close(f->feed);
	f->feed = NULL;
	f->ranked = false;
	end_stream(f);
	sums(f, &stream, &f->decoded);
	decoder_free(f->decoder);
	f->decoder = NULL;
}

struct follow *
follow_open(const char *region, struct kvr *k, const struct conf_stream *conf,
    struct follow_all *all)
{
	struct follow *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->region = region;
	f->conf = *conf;
	f->all = all;
	f->looked = f->heard = -1;
	target_init(&f->target, k, &f->conf);
	return f;
}

void
follow_close(struct follow *f)
{
	if (f == NULL)
		return;
	disconnect(f);
	target_free(&f->target);
	free(f);
}

void
follow_change(struct follow *f, const struct conf_stream *conf)
{
	conf_change(&f->conf, conf);
	target_scope(&f->target);
}

/* The stream goes on where the region is. */
static bool
rejoin(struct follow *f)
{
	const struct stream_options o = { .replay = f->conf.replay[0] != '\0',
	    .first = first_of(&f->conf), .room = &f->all->room };

	end_stream(f);
	f->stream = stream_new(&o);
	if (f->stream == NULL)
		return false;
	stream_rejoin(f->stream, f->target.next + o.first,
	    f->target.state == KVR_EVENTS_COMPLETE);
	return true;
}

/* -------------------------------------------------------------- batches --- */

static void
note(struct follow *f, const struct event_batch *batch)
{
	f->heard = kvr_clock_now();
	if (!f->replaying)
		f->lag_known = tell_lag(batch->time, &f->lag);
}

/* The feed calls, so it cannot be closed at once. */
static void
absent(struct follow *f)
{
	f->counts.absences++;
	f->gone = true;
}

static void
lost(struct follow *f, uint64_t next, const char *why)
{
	target_lost(&f->target, next, why);
	if (f->target.error == KVR_EWORKER)
		absent(f);
}

/*
 * The region expects another batch. It gets the batches between from a replay;
 * without one, or if that did not help before, they are reported as lost.
 */
static bool
behind(struct follow *f, const struct target_batch *batch)
{
	const bool again = f->stuck && f->rejoined == f->target.next;

	f->counts.rejoins++;
	if (f->conf.replay[0] != '\0' && !again) {
		f->stuck = true;
		f->rejoined = f->target.next;
		f->gone = !rejoin(f);
		return false;
	}
	lost(f, batch->seq, "lost");
	return !f->gone &&
	    target_apply(&f->target, batch) == TARGET_APPLIED;
}

static bool
apply(struct follow *f, const struct target_batch *batch)
{
	switch (target_apply(&f->target, batch)) {
	case TARGET_APPLIED:
		f->stuck = false;
		return true;
	case TARGET_RESTARTED:
		decoder_restart(f->decoder);
		log_of(f, "the engine has restarted");
		return behind(f, batch);
	case TARGET_BEHIND:
		return behind(f, batch);
	case TARGET_ABSENT:
		absent(f);
		return false;
	default:
		lost(f, batch->seq + 1, "refused");
		return true;
	}
}

/*
 * Without a replay nothing shows that an engine has restarted which has come as
 * far as the one before: the next number is no evidence if there was time to
 * publish so many batches.
 */
static void
doubt(struct follow *f, const struct target_batch *batch)
{
	if (f->unsure && batch->seq > 0 && batch->seq == f->target.next)
		lost(f, batch->seq, "reconnect");
	f->unsure = false;
}

/* false: there is no stream any more, or another one. */
static bool
take_batch(struct follow *f, const struct stream_out *out)
{
	const struct decode_counts before = decoder_counts(f->decoder);
	struct target_batch batch = { .seq = out->seq - first_of(&f->conf),
	    .digest = stream_digest(out->bytes, out->n),
	    .past = f->past && f->replaying };
	struct decode_counts after;
	struct event_batch events;

	if (decoder_read(f->decoder, out->bytes, out->n, &events) !=
	    DECODE_GOOD) {
		f->counts.malformed++;
		lost(f, batch.seq + 1, "malformed");
		return !f->gone;
	}
	after = decoder_counts(f->decoder);
	batch.events = &events;
	batch.to = events.n;
	note(f, &events);
	doubt(f, &batch);
	if (f->gone || !apply(f, &batch))
		return false;
	if (tell_unread(&after) > tell_unread(&before)) {
		f->counts.unread++;
		lost(f, batch.seq + 1, "unread");
	}
	return !f->gone;
}

static void
take_ready(struct follow *f)
{
	struct stream_out out;

	while (!f->gone && stream_next(f->stream, &out)) {
		switch (out.what) {
		case STREAM_BATCH:
			if (!take_batch(f, &out))
				return;
			break;
		case STREAM_LOST:
			lost(f, out.last + 1 - first_of(&f->conf), "lost");
			break;
		case STREAM_RESTARTED:
			log_of(f, "the engine has restarted");
			decoder_restart(f->decoder);
			f->target.life = TARGET_NEW;
			break;
		}
	}
}

/* ---------------------------------------------------------------- steps --- */

/* An endpoint that had the worker's rank has another one's after a restart. */
static void
doubt_rank(struct follow *f, uint64_t rank)
{
	log_of(f, "rank %" PRIu64 " is at %s now", rank, f->conf.events);
	lost(f, f->target.next, "rank");
}

/*
 * Two ranks that publish at one endpoint have numbers of their own each, and
 * would be taken for an engine that restarts again and again. One is followed:
 * the worker's, or else the first that comes. Once the worker's was there no
 * other one is: ports of ranks may change hands when they start again.
 */
static bool
is_of_rank(struct follow *f, const struct record_step *s)
{
	uint64_t rank;

	if (!decode_engine_rank(s->bytes, s->n, &rank))
		return true;
	if (f->own_rank && !f->ranked && rank != f->conf.rank)
		doubt_rank(f, rank);
	if ((!f->ranked && !f->own_rank) || rank == f->conf.rank)
		f->rank = rank;
	f->own_rank = f->own_rank || rank == f->conf.rank;
	f->ranked = true;
	if (rank == f->rank)
		return true;
	f->counts.ranks++;
	if (!f->logged.ranks)
		log_of(f, "the ranks %" PRIu64 " and %" PRIu64 " are both at "
		    "%s: the latter is refused, each needs an endpoint of "
		    "its own", f->rank, rank, f->conf.events);
	f->logged.ranks = true;
	return false;
}

static void
step(struct follow *f, const struct record_step *s)
{
	switch (s->kind) {
	case RECORD_LIVE:
		if (is_of_rank(f, s))
			stream_live(f->stream, s->seq, s->bytes, s->n);
		break;
	case RECORD_RECONNECTED:
		f->counts.reconnects++;
		f->ranked = false;
		if (f->conf.replay[0] != '\0')
			stream_reconnected(f->stream);
		else
			f->unsure = target_may_restart(&f->target,
			    f->target.alive - NOTICE, kvr_clock_now());
		break;
	case RECORD_ASKED:
		stream_asked(f->stream);
		break;
	case RECORD_REPLAYED:
		if (is_of_rank(f, s))
			stream_replayed(f->stream, s->seq, s->bytes, s->n);
		break;
	default:
		stream_replay_end(f->stream, s->seq != 0);
	}
}

static bool
on_step(void *context, const struct record_step *s)
{
	struct follow *f = context;

	if (f->gone)
		return false;
	step(f, s);
	f->replaying = s->kind == RECORD_REPLAYED;
	take_ready(f);
	f->replaying = false;
	if (s->kind == RECORD_END && !f->gone &&
	    !stream_state(f->stream).waiting)
		f->past = false;
	return true;
}

static bool
on_wants(void *context, uint64_t *from)
{
	const struct follow *f = context;

	return !f->gone && stream_wants(f->stream, from);
}

/* ----------------------------------------------------------- connecting --- */

static bool
make(struct follow *f)
{
	const struct feed_options o = { .endpoint = f->conf.events,
	    .replay = f->conf.replay[0] != '\0' ? f->conf.replay : NULL,
	    .topic = f->conf.topic, .context = f->all->context,
	    .replays = &f->all->replays };
	const struct feed_sink sink = { f, on_step, on_wants };
	const struct decode_options d = { .format = DECODE_ENGINE,
	    .block_size = f->conf.block_size, .window = f->conf.window };

	f->decoder = decoder_new(&d);
	if (f->decoder == NULL || !rejoin(f))
		return false;
	f->feed = feed_open(&o, &sink);
	return f->feed != NULL;
}

/* Once a second, while the region has no such worker. */
static void
look(struct follow *f, int64_t now)
{
	if (f->looked >= 0 && now - f->looked < SECOND)
		return;
	f->looked = now;
	if (!target_find(&f->target)) {
		if (!f->logged.absent)
			log_of(f, "%s", f->target.error == KVR_EWORKER ?
			    "the region has no such worker yet" :
			    kvr_strerror(f->target.error));
		f->logged.absent = true;
		return;
	}
	f->logged.absent = f->gone = false;
	f->past = f->target.state == KVR_EVENTS_OFF;
	f->unsure = f->conf.replay[0] == '\0' && f->target.alive >= 0 &&
	    now - f->target.alive > START &&
	    target_may_restart(&f->target, f->target.alive, now);
	f->opened = now;
	if (make(f))
		return;
	if (!f->logged.wrong)
		log_of(f, "%s: %s", f->conf.events, zmq_strerror(errno));
	f->logged.wrong = true;
	disconnect(f);
}

/* ------------------------------------------------------------------ log --- */

static void
log_connection(struct follow *f, int64_t now)
{
	const bool connected = feed_connected(f->feed);
	const char *why = feed_why(f->feed);

	if (why == NULL && !connected && (f->logged.connected ||
	    f->logged.why != NULL || now - f->opened > PATIENCE))
		why = FEED_SILENT;
	if (connected && !f->logged.connected)
		log_of(f, "connected to %s", f->conf.events);
	else if (!connected && f->logged.connected) {
		log_of(f, "%s has gone; it is tried again", f->conf.events);
		f->logged.why = why;
	}
	say_why(f->region, &f->conf, f->conf.events, &f->logged.why, why);
	f->logged.connected = connected;
}

/* Once, unless it has been connected by then. */
static void
log_hint(struct follow *f, int64_t now)
{
	const char *hint = conf_hint(&f->conf);

	if (f->logged.hint || now - f->opened < HINT)
		return;
	f->logged.hint = true;
	if (!feed_connected(f->feed) && hint != NULL)
		log_of(f, "%s", hint);
}

/* At most once a minute: a link that loses much fills no disk. */
static void
log_losses(struct follow *f, int64_t now)
{
	const uint64_t all = f->target.counts.lost + f->counts.malformed +
	    f->counts.unread;

	if (all == f->logged.lost || (f->logged.lost_at != 0 &&
	    now - f->logged.lost_at < LOG_EACH))
		return;
	log_of(f, "%" PRIu64 " batches were lost or could not be read",
	    all - f->logged.lost);
	f->logged.lost = all;
	f->logged.lost_at = now;
}

static void
look_at_use(struct follow *f)
{
	struct stream_counts stream;
	struct decode_counts decoded;

	sums(f, &stream, &decoded);
	tell_use(&f->use, &f->target, &decoded);
}

/* It is followed, or a replay will fill the gap. */
static bool
is_followed(const struct follow *f)
{
	return feed_connected(f->feed) || f->conf.replay[0] != '\0';
}

static void
log_all(struct follow *f, int64_t now)
{
	target_alive(&f->target, is_followed(f), now);
	log_connection(f, now);
	log_hint(f, now);
	log_losses(f, now);
	say_pages(f->region, &f->conf, &f->target);
	look_at_use(f);
	say_state(f->region, &f->conf, &f->logged.state,
	    tell_state(&f->target, &f->use));
}

void
follow_work(struct follow *f, int64_t now)
{
	if (f->feed == NULL) {
		look(f, now);
		return;
	}
	if (!feed_read(f->feed) || f->gone) {
		disconnect(f);
		return;
	}
	log_all(f, now);
}

size_t
follow_items(const struct follow *f, zmq_pollitem_t items[FEED_ITEMS])
{
	return f->feed == NULL ? 0 : feed_items(f->feed, items);
}

static const char *
phase(const struct follow *f)
{
	if (f->feed == NULL)
		return "absent";
	if (!feed_connected(f->feed))
		return "connecting";
	return stream_state(f->stream).waiting ? "replaying" : "live";
}

void
follow_row(const struct follow *f, struct tell_row *row)
{
	*row = (struct tell_row){ .region = f->region, .conf = &f->conf,
	    .target = &f->target, .use = &f->use, .counts = f->counts,
	    .phase = phase(f),
	    .connected = f->feed != NULL && feed_connected(f->feed),
	    .heard = f->heard, .lag = f->lag, .lag_known = f->lag_known };
	sums(f, &row->stream, &row->decoded);
	if (f->feed != NULL)
		row->counts.strange += feed_strange(f->feed);
}
