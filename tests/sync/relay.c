/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relay.c - carries frames from one bus to another, badly.
 *
 *   relay seed frames loss twice delay jitter url name url name
 *
 * loss and twice are per cent of the frames, delay and jitter milliseconds:
 * each copy of a frame is late by `delay` and a part of `jitter`, so frames
 * overtake each other. The fate of the i-th frame depends on the seed and i
 * alone. After so many frames (0: never) or SIGTERM it sends the late ones,
 * and prints how many frames it has seen, lost and sent twice.
 */
#include "bus.h"
#include "rng.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, ARGUMENTS = 11, QUEUE = 16 << 20 };

struct late {
	struct late *next;
	int64_t due;
	size_t n;
	unsigned char bytes[];
};

struct relay {
	struct rng rng;
	uint64_t loss, twice, delay, jitter;
	uint64_t seen, lost, doubled, sent;
	struct late *first; /* by due */
	struct bus *from, *to;
};

static volatile sig_atomic_t ended;

static void
end(int number)
{
	(void)number;
	ended = 1;
}

static void
delay(struct relay *r, uint64_t jitter, const struct bus_message *message)
{
	struct late *late = malloc(sizeof(*late) + message->n), **place;

	if (late == NULL)
		errx(1, "no memory");
	late->due = kvr_clock_now() + (int64_t)(r->delay * MS + jitter);
	late->n = message->n;
	memcpy(late->bytes, message->bytes, message->n);
	for (place = &r->first; *place != NULL && (*place)->due <= late->due;
	    place = &(*place)->next)
		continue;
	late->next = *place;
	*place = late;
}

/* Each frame draws as many numbers, whatever becomes of it. */
static void
take(void *context, const struct bus_message *message)
{
	struct relay *r = context;
	const bool lost = rng_between(&r->rng, 1, 100) <= r->loss;
	const bool twice = rng_between(&r->rng, 1, 100) <= r->twice;
	const uint64_t one = rng_between(&r->rng, 0, r->jitter * MS);
	const uint64_t other = rng_between(&r->rng, 0, r->jitter * MS);

	r->seen++;
	r->lost += lost;
	if (lost)
		return;
	delay(r, one, message);
	r->doubled += twice;
	if (twice)
		delay(r, other, message);
}

static void
pass_on(struct relay *r)
{
	const int64_t now = kvr_clock_now();
	struct late *late;

	while ((late = r->first) != NULL && late->due <= now) {
		if (!bus_send(r->to, late->bytes, late->n))
			errx(1, "a frame was dropped");
		r->sent++;
		r->first = late->next;
		free(late);
	}
}

/* Frames that come back on the bus to which it sends are ignored. */
static void
ignore(void *context, const struct bus_message *message)
{
	(void)context;
	(void)message;
}

static struct bus *
open_bus(struct relay *r, bus_take *taken, const char *url, const char *name)
{
	const struct bus_options options = { .url = url, .name = name,
	    .log_frames = 100000, .queue_bytes = QUEUE, .take = taken,
	    .context = r };
	char error[BUS_ERROR_MAX];
	struct bus *b = bus_open(&options, error, sizeof(error));

	if (b == NULL)
		errx(1, "%s", error);
	return b;
}

/* Carries until `frames` have been seen, or for ever if 0. */
static void
carry(struct relay *r, uint64_t frames)
{
	bool ready = false;

	while (!ended && (frames == 0 || r->seen < frames)) {
		bus_wait(r->from, 1);
		pass_on(r);
		bus_wait(r->to, 0);
		if (!ready && bus_connected(r->from) && bus_connected(r->to)) {
			ready = true;
			puts("ready");
			fflush(stdout);
		}
	}
	while (r->first != NULL || bus_counts(r->to).sent < r->sent) {
		pass_on(r);
		bus_wait(r->to, 1);
	}
}

int
main(int argc, char **argv)
{
	struct relay r = { .first = NULL };

	if (argc != ARGUMENTS)
		errx(2, "usage: relay seed frames loss twice delay jitter url "
		    "name url name");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, end);
	r.rng.state = strtoull(argv[1], NULL, 0);
	r.loss = strtoull(argv[3], NULL, 10);
	r.twice = strtoull(argv[4], NULL, 10);
	r.delay = strtoull(argv[5], NULL, 10);
	r.jitter = strtoull(argv[6], NULL, 10);
	r.from = open_bus(&r, take, argv[7], argv[8]);
	r.to = open_bus(&r, ignore, argv[9], argv[10]);
	carry(&r, strtoull(argv[2], NULL, 10));
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r.seen, r.lost,
	    r.doubled);
	bus_close(r.from);
	bus_close(r.to);
	return 0;
}
