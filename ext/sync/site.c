/* SPDX-License-Identifier: BSD-2-Clause */
/* site.c - see site.h. */
#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <kvroute_replica.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define LOG_EACH (60 * SECOND)
#define WELL_FOR (3 * SECOND)
/* A router takes a daemon that has not beaten for 3 s for dead. */
#define DEAD_FOR (3 * SECOND + MS)

enum { LOG_FRAMES = 20000, LOG_BYTES = 128 << 20, QUEUE_BYTES = 8 << 20 };

/* -------------------------------------------------------------- opening --- */

static bool
take(struct site *s, const char *path)
{
	s->lock = open(path, O_RDONLY | O_CLOEXEC);
	if (s->lock == -1) {
		site_log(s, "%s: %s", path, strerror(errno));
		return false;
	}
	if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	site_log(s, "%s: %s", path, errno == EWOULDBLOCK ?
	    "another kvroute-sync has it" : strerror(errno));
	return false;
}

static bool
attach(struct site *s)
{
	struct kvr_options o = { .size = sizeof(o) };
	int error = kvr_open(s->path, strlen(s->path), KVR_OPEN_ATTACH, NULL,
	    &s->k);

	if (error != KVR_OK) {
		site_log(s, "%s: %s", s->path, error == KVR_ESYSTEM ?
		    strerror(errno) : kvr_strerror(error));
		return false;
	}
	(void)kvr_options_get(s->k, &o);
	if (!s->o->loads && o.journal_bytes == 0) {
		site_log(s, "%s: the region has no journal; --loads needs "
		    "none", s->path);
		return false;
	}
	return kvr_quiet_set(s->k, 1) == KVR_OK;
}

static bool
send_frame(void *context, const unsigned char *bytes, size_t n)
{
	return bus_send(((struct site *)context)->bus, bytes, n);
}

static void
take_frame(void *context, const struct bus_message *message)
{
	late_take(context, message);
}

static bool
join(struct site *s)
{
	char error[BUS_ERROR_MAX];
	struct bus_options o = s->o->bus;

	o.name = s->name;
	o.log_frames = LOG_FRAMES;
	o.log_bytes = LOG_BYTES;
	o.queue_bytes = QUEUE_BYTES;
	o.take = take_frame;
	o.context = s;
	s->bus = bus_open(&o, error, sizeof(error));
	if (s->bus == NULL)
		site_log(s, "%s", error);
	return s->bus != NULL;
}

/*
 * The same for each daemon on this region file until the machine starts again,
 * and of no other machine, also if their hosts have one name.
 */
static uint64_t
site_number(const struct site *s)
{
	static const unsigned char zeros[16];
	const struct siphash_key key = siphash_key(zeros);
	struct {
		char boot[64];
		uint64_t device, file;
	} about;
	unsigned char digest[SIPHASH_BYTES];
	struct stat st;
	uint64_t number;
	ssize_t n;
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(&about, 0, sizeof(about));
	n = fd == -1 ? -1 : read(fd, about.boot, sizeof(about.boot));
	if (fd != -1)
		close(fd);
	if (n <= 0 || fstat(s->lock, &st) != 0)
		return 0;
	about.device = (uint64_t)st.st_dev;
	about.file = (uint64_t)st.st_ino;
	siphash(&key, &about, sizeof(about), digest);
	memcpy(&number, digest, sizeof(number));
	return number;
}

static bool
start(struct site *s, int64_t now)
{
	struct publish_options p = { .roster = &s->roster,
	    .origin = s->origin, .host = s->o->host, .loads = s->o->loads,
	    .site = site_number(s), .send = send_frame, .context = s };
	struct apply_options a = { .roster = &s->roster, .origin = s->origin,
	    .loads = s->o->loads, .orders = s->o->orders, .now = now };

	/* Sums of loads do not hang on hashes. */
	if (!s->o->loads && kvr_rule_get(s->k, &p.rules.rule) != KVR_OK)
		return false;
	if (s->o->secret_bytes > 0) {
		frame_key(&p.rules, s->o->secret, s->o->secret_bytes);
		if (!proof_draw(&s->proof))
			return false;
		p.proof = a.proof = &s->proof;
	}
	a.rules = s->rules = p.rules;
	if (!roster_init(&s->roster, s->k) || !late_open(s, now))
		return false;
	a.chains = p.chains = s->late.chains;
	s->apply = apply_new(&a);
	if (s->apply == NULL)
		return false;
	s->publish = publish_new(&p);
	if (s->publish == NULL || !late_begin(s, now))
		return false;
	/* From now on a process that was stopped with the lock of a region does
	 * not stop the others, nor the bus. */
	return kvr_nowait_set(s->k, 2) == KVR_OK;
}

bool
site_attach(struct site *s, const struct site_options *options, char *name)
{
	char *path = strchr(name, '=');

	memset(s, 0, sizeof(*s));
	s->o = options;
	s->name = path == NULL ? "kvroute" : name;
	s->path = path == NULL ? name : path + 1;
	if (path != NULL)
		*path = '\0';
	return take(s, s->path) && attach(s);
}

bool
site_open(struct site *s, const struct site_options *options, char *name)
{
	int64_t now;

	if (!site_attach(s, options, name))
		return false;
	if (getentropy(&s->origin, sizeof(s->origin)) != 0) {
		site_log(s, "no random number: %s", strerror(errno));
		return false;
	}
	now = kvr_clock_now();
	if (!join(s))
		return false;
	if (start(s, now)) {
		site_log(s, "serves %s as %016" PRIx64, s->path, s->origin);
		return true;
	}
	site_log(s, "no memory, or %s does not answer", s->path);
	return false;
}

void
site_close(struct site *s)
{
	const int64_t now = kvr_clock_now();

	if (s->apply != NULL)
		apply_end(s->apply, now);
	if (s->publish != NULL) {
		/* The router need not wait; the next daemon sees the time. */
		(void)kvr_journal_beat(s->k, now < DEAD_FOR ? 0 :
		    now - DEAD_FOR);
	}
	bus_close(s->bus);
	publish_free(s->publish);
	apply_free(s->apply);
	late_close(s);
	roster_free(&s->roster);
	kvr_free(s->k);
	if (s->lock > 0)
		close(s->lock);
	memset(s, 0, sizeof(*s));
}

/* ------------------------------------------------------------------ log --- */

/* Each failure once, until the bus has been well for a while. */
static void
log_failure(struct site *s)
{
	const char *error = bus_error(s->bus);
	size_t i;

	if (*error == '\0')
		return;
	for (i = 0; i < s->n_said; i++)
		if (strcmp(s->said[i], error) == 0)
			return;
	i = s->n_said < SITE_SAID ? s->n_said++ : SITE_SAID - 1;
	snprintf(s->said[i], sizeof(s->said[i]), "%s", error);
	site_log(s, bus_connected(s->bus) ? "the bus: %s" : "the bus cannot be "
	    "used: %s; it is tried again, routing goes on without the others",
	    error);
}

/* A bus that comes and goes with the same failure is not logged as there. */
static void
log_connection(struct site *s, int64_t now)
{
	log_failure(s);
	if (!bus_connected(s->bus)) {
		if (s->connected && s->n_said == 0)
			site_log(s, "the bus is gone; routing goes on without "
			    "the others");
		s->connected = false;
		s->connected_at = 0;
		return;
	}
	if (s->connected_at == 0)
		s->connected_at = now;
	if (s->connected || (s->n_said > 0 &&
	    now - s->connected_at < WELL_FOR))
		return;
	s->connected = true;
	site_log(s, "connected");
	if (bus_error(s->bus)[0] == '\0')
		s->n_said = 0;
}

static const struct apply_peer *
peer_before(const struct site *s, uint64_t origin)
{
	size_t i;

	for (i = 0; i < s->peers; i++)
		if (s->peer[i].origin == origin)
			return &s->peer[i];
	return NULL;
}

/* At most once a second: a peer that is late now and then fills no disk. */
static void
log_peers(struct site *s, int64_t now)
{
	struct apply_peer peers[APPLY_PEERS_MAX];
	const size_t n = apply_peers(s->apply, peers, APPLY_PEERS_MAX);
	const struct apply_peer *before;
	size_t i;

	s->peers_logged = now;
	for (i = 0; i < n; i++) {
		before = peer_before(s, peers[i].origin);
		if (before == NULL || before->state != peers[i].state)
			site_log(s, "peer %016" PRIx64 " is %s, %" PRId64
			    " ms behind its best", peers[i].origin,
			    apply_state_name(peers[i].state),
			    peers[i].excess / MS);
	}
	memcpy(s->peer, peers, n * sizeof(peers[0]));
	s->peers = n;
}

/* Logs losses that should not be, once a minute. */
static void
log_losses(struct site *s, int64_t now)
{
	const struct publish_counts p = publish_counts(s->publish);
	const struct apply_counts c = apply_counts(s->apply);
	const uint64_t dropped = c.unknown_worker + c.no_room + c.refused +
	    c.frames[FRAME_MALFORMED] + c.frames[FRAME_VERSION] +
	    c.frames[FRAME_STRANGER] + c.frames[FRAME_FORGED];

	if (now - s->logged < LOG_EACH && s->logged != 0)
		return;
	s->logged = now;
	if (p.overruns > s->overruns)
		site_log(s, "the journal was overrun %" PRIu64 " times: make "
		    "it larger", p.overruns - s->overruns);
	if (dropped > s->dropped)
		site_log(s, "%" PRIu64 " frames or records were dropped: see "
		    "--status", dropped - s->dropped);
	if (p.unlisted > s->unlisted)
		site_log(s, "%" PRIu64 " lists did not have all open leases: "
		    "others may count what has ended for longer",
		    p.unlisted - s->unlisted);
	s->overruns = p.overruns;
	s->unlisted = p.unlisted;
	s->dropped = dropped;
}

/* While the file is missing, programs that have it open may go on. */
static bool
replaced(const struct site *s)
{
	struct stat had, is;

	if (fstat(s->lock, &had) != 0 || stat(s->path, &is) != 0 ||
	    (had.st_dev == is.st_dev && had.st_ino == is.st_ino))
		return false;
	site_log(s, "%s is another file now: ends, to begin on that one",
	    s->path);
	return true;
}

int64_t
site_work(struct site *s)
{
	int64_t now, next, due;

	/* First, as it sees whether this daemon was stopped meanwhile. */
	apply_work(s->apply, kvr_clock_now());
	bus_work(s->bus);
	now = kvr_clock_now();
	due = late_work(s, now);
	next = publish_work(s->publish, now);
	apply_work(s->apply, now);
	if (apply_met(s->apply))
		publish_hello(s->publish);
	log_connection(s, now);
	if (now - s->peers_logged >= SECOND)
		log_peers(s, now);
	log_losses(s, now);
	if (s->looked == 0 || now - s->looked >= SECOND) {
		s->looked = now;
		s->replaced = replaced(s);
	}
	return due < next ? due : next;
}
