/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * star.c - a bad network between replicas, each with a bus name of its own:
 *
 *	star seed loss twice delay jitter late url name name ...
 *
 *	one   <-->  |      |  <-->  two
 *	three <-->  | star |  <-->  four
 *
 * loss and twice are per thousand of the frames on each way from one name to
 * another, delay and jitter milliseconds: each copy is late by `delay` and a
 * part of `jitter`, so frames overtake each other. After SIGUSR1 all are
 * `late` milliseconds later, until SIGUSR2. The fate of a frame depends on the
 * seed and on its number on that way alone.
 *
 * The star hears its own copies too. An origin is at home where it was heard
 * first, and only from there its frames are carried.
 */
#include "bus.h"
#include "little.h"
#include "rng.h"

#include <kvroute.h>

#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, NAMES_MAX = 8, ORIGINS_MAX = 4096, QUEUE = 16 << 20 };
enum { ORIGIN_AT = 16, FRAME_MIN = 48, FIRST_NAME = 8 };

struct late {
	struct late *next;
	int64_t due;
	struct bus *to;
	size_t n;
	unsigned char bytes[];
};

struct star;

struct ray {
	struct star *star;
	struct bus *bus;
	struct rng rng[NAMES_MAX]; /* of the ways from here */
};

struct star {
	uint64_t loss, twice, delay, jitter, late;
	uint64_t seen, lost, doubled;
	struct late *first; /* by due */
	size_t n, origins;
	struct ray rays[NAMES_MAX];
	struct { uint64_t origin; size_t home; } homes[ORIGINS_MAX];
};

static volatile sig_atomic_t ended, is_late;

static void
hear(int number)
{
	if (number == SIGTERM)
		ended = 1;
	else
		is_late = number == SIGUSR1;
}

static size_t
home_of(struct star *s, uint64_t origin, size_t here)
{
	size_t i;

	for (i = 0; i < s->origins; i++)
		if (s->homes[i].origin == origin)
			return s->homes[i].home;
	if (i == ORIGINS_MAX)
		errx(1, "too many origins");
	s->homes[i].origin = origin;
	s->homes[i].home = here;
	s->origins++;
	return here;
}

static void
put(struct star *s, struct bus *to, uint64_t jitter,
    const struct bus_message *message)
{
	struct late *late = malloc(sizeof(*late) + message->n), **place;
	const uint64_t ms = s->delay + (is_late ? s->late : 0);

	if (late == NULL)
		errx(1, "no memory");
	late->due = kvr_clock_now() + (int64_t)(ms * MS + jitter);
	late->to = to;
	late->n = message->n;
	memcpy(late->bytes, message->bytes, message->n);
	for (place = &s->first; *place != NULL && (*place)->due <= late->due;
	    place = &(*place)->next)
		continue;
	late->next = *place;
	*place = late;
}

/* Each frame draws as many numbers, whatever becomes of it. */
static void
carry(struct star *s, struct rng *rng, struct bus *to,
    const struct bus_message *message)
{
	const bool lost = rng_between(rng, 1, 1000) <= s->loss;
	const bool twice = rng_between(rng, 1, 1000) <= s->twice;
	const uint64_t one = rng_between(rng, 0, s->jitter * MS);
	const uint64_t other = rng_between(rng, 0, s->jitter * MS);

	s->seen++;
	s->lost += lost;
	if (lost)
		return;
	put(s, to, one, message);
	s->doubled += twice;
	if (twice)
		put(s, to, other, message);
}

static void
take(void *context, const struct bus_message *message)
{
	struct ray *r = context;
	struct star *s = r->star;
	const size_t here = (size_t)(r - s->rays);
	size_t i;

	if (message->n < FRAME_MIN || home_of(s, little_get(message->bytes +
	    ORIGIN_AT, 8), here) != here)
		return;
	for (i = 0; i < s->n; i++)
		if (i != here)
			carry(s, &r->rng[i], s->rays[i].bus, message);
}

static void
pass_on(struct star *s)
{
	const int64_t now = kvr_clock_now();
	struct late *late;

	while ((late = s->first) != NULL && late->due <= now) {
		if (!bus_send(late->to, late->bytes, late->n))
			warnx("a frame was dropped");
		s->first = late->next;
		free(late);
	}
}

static void
open_rays(struct star *s, uint64_t seed, const char *url, char **names)
{
	char error[BUS_ERROR_MAX];
	struct bus_options options = { .url = url, .log_frames = 100000,
	    .queue_bytes = QUEUE, .take = take };
	size_t i, j;

	for (i = 0; i < s->n; i++) {
		s->rays[i].star = s;
		for (j = 0; j < s->n; j++)
			s->rays[i].rng[j].state = seed + i * NAMES_MAX + j;
		options.name = names[i];
		options.context = &s->rays[i];
		s->rays[i].bus = bus_open(&options, error, sizeof(error));
		if (s->rays[i].bus == NULL)
			errx(1, "%s", error);
	}
}

static void
work(struct star *s)
{
	bool ready = false, all;
	size_t i;

	while (!ended) {
		bus_wait(s->rays[0].bus, 1);
		all = bus_connected(s->rays[0].bus);
		for (i = 1; i < s->n; i++) {
			bus_wait(s->rays[i].bus, 0);
			all = all && bus_connected(s->rays[i].bus);
		}
		pass_on(s);
		if (ready || !all)
			continue;
		ready = true;
		puts("ready");
		fflush(stdout);
	}
}

int
main(int argc, char **argv)
{
	static struct star s;
	size_t i;

	if (argc < FIRST_NAME + 2 || argc > FIRST_NAME + NAMES_MAX)
		errx(2, "usage: star seed loss twice delay jitter late url "
		    "name name ...");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, hear);
	signal(SIGUSR1, hear);
	signal(SIGUSR2, hear);
	s.loss = strtoull(argv[2], NULL, 10);
	s.twice = strtoull(argv[3], NULL, 10);
	s.delay = strtoull(argv[4], NULL, 10);
	s.jitter = strtoull(argv[5], NULL, 10);
	s.late = strtoull(argv[6], NULL, 10);
	s.n = (size_t)(argc - FIRST_NAME);
	open_rays(&s, strtoull(argv[1], NULL, 0), argv[7], &argv[FIRST_NAME]);
	work(&s);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.seen, s.lost,
	    s.doubled);
	for (i = 0; i < s.n; i++)
		bus_close(s.rays[i].bus);
	return 0;
}
