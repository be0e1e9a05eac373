/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus.c - what is common to all buses.
 */
#include "bus_in.h"

#include <kvroute.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, PAUSE_MIN_MS = 50 };

static const struct {
	const char *scheme, *library;
	const struct bus_kind *kind;
	bool tls;
} schemes[] = {
	{ "redis", "hiredis", &bus_redis, false },
	{ "rediss", "hiredis", &bus_redis, true },
	{ "valkey", "hiredis", &bus_redis, false },
	{ "valkeys", "hiredis", &bus_redis, true },
	{ "unix", "hiredis", &bus_redis, false },
	{ "nats", "cnats", &bus_nats, false },
	{ "nats+tls", "cnats", &bus_nats, true }
};

static bool
good_name(const char *name)
{
	static const char signs[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:";
	const size_t n = strlen(name);

	return n > 0 && n <= BUS_NAME_MAX && strspn(name, signs) == n &&
	    name[0] != '.' && name[n - 1] != '.' &&
	    strstr(name, "..") == NULL;
}

static bool
set_up(struct bus *b, const struct bus_options *options)
{
	const size_t n = sizeof(schemes) / sizeof(schemes[0]);
	size_t i = 0;

	b->options = *options;
	b->options.url = NULL;
	if (!bus_url_parse(options->url, &b->url, b->error, sizeof(b->error)))
		return false;
	while (i < n && strcmp(schemes[i].scheme, b->url.scheme) != 0)
		i++;
	if (i == n)
		return snprintf(b->error, sizeof(b->error),
		    "URL: no bus is called %s", b->url.scheme) < 0;
	b->kind = schemes[i].kind;
	b->tls = schemes[i].tls;
	if (b->kind == NULL)
		return snprintf(b->error, sizeof(b->error), "%s: this program "
		    "was built without %s", b->url.scheme,
		    schemes[i].library) < 0;
	if (options->listens > 0 && b->kind != &bus_nats)
		return snprintf(b->error, sizeof(b->error),
		    "URL: only NATS is listened to") < 0;
	if (options->listens > 0 ? !bus_subject(options->name) :
	    !good_name(options->name))
		return snprintf(b->error, sizeof(b->error), "the name of the "
		    "stream or subject is not one") < 0;
	b->options.name = strcpy(b->name, options->name);
	if (options->ca != NULL && strlen(options->ca) >= sizeof(b->ca))
		return snprintf(b->error, sizeof(b->error),
		    "the path of the certificates is too long") < 0;
	if (options->ca != NULL)
		b->options.ca = strcpy(b->ca, options->ca);
	return b->kind->open(b);
}

struct bus *
bus_open(const struct bus_options *options, char *error, size_t size)
{
	struct bus *b = calloc(1, sizeof(*b));

	if (b == NULL) {
		snprintf(error, size, "no memory");
		return NULL;
	}
	if (!set_up(b, options)) {
		snprintf(error, size, "%s", b->error);
		free(b);
		return NULL;
	}
	return b;
}

void
bus_close(struct bus *b)
{
	if (b == NULL)
		return;
	b->kind->close(b);
	free(b);
}

bool
bus_send(struct bus *b, const void *bytes, size_t n)
{
	return bus_answer(b, "", bytes, n);
}

bool
bus_answer(struct bus *b, const char *reply, const void *bytes, size_t n)
{
	if (n <= BUS_FRAME_MAX)
		return b->kind->send(b, reply, bytes, n);
	b->refused++;
	return false;
}

bool
bus_since(struct bus *b, int64_t age)
{
	return b->kind->since != NULL && b->kind->since(b, age);
}

bool
bus_ask(struct bus *b, const void *bytes, size_t n)
{
	return n <= BUS_FRAME_MAX && b->kind->ask(b, bytes, n);
}

void
bus_ask_end(struct bus *b)
{
	b->kind->ask_end(b);
}

size_t
bus_waiting(const struct bus *b)
{
	return b->kind->waiting(b);
}

void
bus_work(struct bus *b)
{
	b->kind->work(b);
}

size_t
bus_fds(const struct bus *b, struct pollfd *fds)
{
	return b->kind->fds(b, fds);
}

/* Less than told, as a connection may be due to be tried. */
void
bus_wait(struct bus *b, int milliseconds)
{
	const int64_t end = kvr_clock_now() + (int64_t)milliseconds * MS;
	struct pollfd fds[BUS_FDS_MAX];
	int64_t left;
	size_t n;

	bus_work(b);
	n = bus_fds(b, fds);
	left = (end - kvr_clock_now()) / MS;
	if (left > PAUSE_MIN_MS)
		left = PAUSE_MIN_MS;
	if (left > 0 && poll(fds, n, (int)left) > 0)
		bus_work(b);
}

bool
bus_connected(const struct bus *b)
{
	return b->connected;
}

const char *
bus_error(const struct bus *b)
{
	return b->error;
}

struct bus_counts
bus_counts(const struct bus *b)
{
	struct bus_counts counts = b->counts;

	counts.send_drops += b->refused;
	return counts;
}

/* ------------------------------------------------------- for the kinds --- */

size_t
bus_take_max(const struct bus *b)
{
	return b->options.listens > 0 ? b->options.listens : BUS_FRAME_MAX;
}

void
bus_deliver(struct bus *b, const void *bytes, size_t n, int64_t age,
    const char *reply, bool answer)
{
	const struct bus_message message = { .bytes = bytes, .n = n,
	    .age = age < 0 ? 0 : age,
	    .reply = reply == NULL || *reply == '\0' ? NULL : reply,
	    .answer = answer };

	if (n > bus_take_max(b)) {
		b->counts.take_drops++;
		return;
	}
	b->counts.received++;
	b->options.take(b->options.context, &message);
}

/* Twice as long each time; the clock's last digits part those that wait. */
int64_t
bus_pause(int64_t *pause)
{
	*pause = *pause == 0 ? (int64_t)PAUSE_MIN_MS * MS : *pause * 2;
	if (*pause > (int64_t)BUS_PAUSE_MAX * MS)
		*pause = (int64_t)BUS_PAUSE_MAX * MS;
	return *pause / 2 + kvr_clock_now() / 1000 % (*pause / 2);
}
