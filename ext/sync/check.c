/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.c - see check.h.
 *
 *   question  to all, for a peer that there is not: others ignore it
 *   Redis     comes back, as all that is written; it is answered here, and the
 *             answer comes back, too: that takes each permission there is
 *   NATS      does not come back; forbidden commands come as errors
 */
#include "check.h"

#include <kvroute_replica.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define WAIT (5000 * MS)
#define SETTLE (1000 * MS) /* for errors that come later */

enum { FAILED = 1, QUEUE_BYTES = 1 << 20, LOG_FRAMES = 20000 };

/* A region and its bus that are tried. */
struct trial {
	const struct site *site;
	struct bus *bus;
	uint64_t peer;         /* the one that there is not */
	bool read, answered;
	unsigned char question[256];
	size_t n;
};

/* In some redis:// scheme; the others are NATS. */
static bool
has_log(const struct site *s)
{
	return strncmp(s->o->bus.url, "nats", 4) != 0;
}

static void
take(void *context, const struct bus_message *m)
{
	struct trial *t = context;

	if (m->n != t->n || memcmp(m->bytes, t->question, t->n) != 0)
		return;
	if (m->answer)
		t->answered = true;
	else if (m->reply != NULL)
		t->read = bus_answer(t->bus, m->reply, m->bytes, m->n);
}

static bool
make_question(struct trial *t)
{
	static struct frame_writer w;
	struct frame_rules rules = { .keyed = false };
	struct frame_record r = { .kind = FRAME_ASK };
	const unsigned char *bytes;

	if (getentropy(&t->peer, sizeof(t->peer)) != 0 ||
	    (!t->site->o->loads &&
	    kvr_rule_get(t->site->k, &rules.rule) != KVR_OK))
		return false;
	if (t->site->o->secret_bytes > 0)
		frame_key(&rules, t->site->o->secret,
		    t->site->o->secret_bytes);
	frame_writer_init(&w, &rules, t->peer);
	r.peer = t->peer;
	if (frame_put(&w, &r) != FRAME_OK)
		return false;
	bytes = frame_finish(&w, kvr_clock_now(), &t->n);
	if (t->n > sizeof(t->question))
		return false;
	memcpy(t->question, bytes, t->n);
	return true;
}

/* The bus works until that is so, or for so long. */
static void
work(struct trial *t, const bool *until, int64_t wait)
{
	const int64_t end = kvr_clock_now() + wait;

	while ((until == NULL || !*until) && kvr_clock_now() < end)
		bus_wait(t->bus, 10);
}

static bool
connects(struct trial *t)
{
	const int64_t end = kvr_clock_now() + WAIT;

	while (!bus_connected(t->bus) && kvr_clock_now() < end)
		bus_wait(t->bus, 10);
	return bus_connected(t->bus);
}

/* NULL: all that is needed is allowed. */
static const char *
try_bus(struct trial *t)
{
	if (!connects(t))
		return "it cannot be connected";
	if (!bus_ask(t->bus, t->question, t->n))
		return "no memory";
	if (has_log(t->site)) {
		work(t, &t->read, WAIT);
		if (!t->read)
			return "nothing that is written is read back";
		work(t, &t->answered, SETTLE);
		bus_ask_end(t->bus);
	}
	work(t, NULL, SETTLE);
	if (has_log(t->site) && !t->answered)
		return "no answers, as at a late start, can be had";
	return bus_connected(t->bus) && bus_error(t->bus)[0] == '\0' ? NULL :
	    "it is not well";
}

static bool
check_bus(const struct site *s)
{
	struct trial t = { .site = s };
	struct bus_options o = s->o->bus;
	char error[BUS_ERROR_MAX];
	const char *why;

	o.name = s->name;
	o.log_frames = LOG_FRAMES;
	o.queue_bytes = QUEUE_BYTES;
	o.take = take;
	o.context = &t;
	if (!make_question(&t)) {
		printf("%s: the region does not answer\n", s->name);
		return false;
	}
	t.bus = bus_open(&o, error, sizeof(error));
	if (t.bus == NULL) {
		printf("%s: the bus: %s\n", s->name, error);
		return false;
	}
	why = try_bus(&t);
	if (why == NULL)
		printf("%s: the bus: connected, reads, writes\n", s->name);
	else
		printf("%s: the bus: %s: %s\n", s->name, why,
		    bus_error(t.bus)[0] == '\0' ? "the server says nothing" :
		    bus_error(t.bus));
	bus_close(t.bus);
	return why == NULL;
}

int
check_sites(const struct site_options *options, char **names, size_t n)
{
	static struct site s;
	bool good = true;
	size_t i;

	for (i = 0; i < n; i++) {
		if (site_attach(&s, options, names[i])) {
			/* A daemon may begin meanwhile. */
			(void)flock(s.lock, LOCK_UN);
			printf("%s: %s: attached\n", s.name, s.path);
			good &= check_bus(&s);
		} else {
			good = false;
		}
		site_close(&s);
	}
	return good ? 0 : FAILED;
}
