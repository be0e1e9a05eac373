/* SPDX-License-Identifier: BSD-2-Clause */
/* bus.c - the part that all buses share. */
#include "bus_in.h"

#include <kvroute.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000, PAUSE_MIN_MS = 50 };

#define HIREDIS "hiredis and OpenSSL"

static const struct {
	const char *scheme, *library;
	const struct bus_kind *kind;
	bool tls;
} schemes[] = {
	{ "redis", HIREDIS, &bus_redis, false },
	{ "rediss", HIREDIS, &bus_redis, true },
	{ "redis+sentinel", HIREDIS, &bus_redis, false },
	{ "rediss+sentinel", HIREDIS, &bus_redis, true },
	{ "redis+cluster", HIREDIS, &bus_redis, false },
	{ "rediss+cluster", HIREDIS, &bus_redis, true },
	{ "valkey", HIREDIS, &bus_redis, false },
	{ "valkeys", HIREDIS, &bus_redis, true },
	{ "unix", HIREDIS, &bus_redis, false },
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
find_kind(struct bus *b)
{
	const size_t n = sizeof(schemes) / sizeof(schemes[0]);
	size_t i = 0;

	while (i < n && strcmp(schemes[i].scheme, b->url.scheme) != 0)
		i++;
	if (i == n)
		return snprintf(b->error, sizeof(b->error),
		    "URL: no bus is called %s", b->url.scheme) < 0;
	b->kind = schemes[i].kind;
	b->tls = schemes[i].tls;
	return b->kind != NULL || snprintf(b->error, sizeof(b->error),
	    "%s: this program was built without %s", b->url.scheme,
	    schemes[i].library) < 0;
}

/* NULL, or the fault. */
static const char *
look_at_options(const struct bus *b, const struct bus_options *o)
{
	const bool nats = b->kind == &bus_nats;

	if (o->listens > 0 && !nats)
		return "URL: only NATS is listened to";
	if (o->listens > 0 ? !bus_subject(o->name) : !good_name(o->name))
		return "the name of the stream or subject is not one";
	if ((o->cert == NULL) != (o->key == NULL))
		return "a certificate and its key are given together";
	if (!b->tls && (o->ca != NULL || o->cert != NULL))
		return nats ? "certificates need a URL with nats+tls://" :
		    "certificates need a URL with rediss";
	if (o->sentinel_login != NULL &&
	    strstr(b->url.scheme, "+sentinel") == NULL)
		return "a login of Sentinels needs a URL with +sentinel";
	return o->creds == NULL || nats ? NULL :
	    "credentials of NATS are for no other bus";
}

static bool
set_up(struct bus *b, const struct bus_options *options)
{
	const char *wrong;

	b->options = *options;
	b->options.url = NULL;
	if (!bus_url_parse(options->url, &b->url, b->error,
	    sizeof(b->error)) || !find_kind(b))
		return false;
	wrong = look_at_options(b, options);
	if (wrong != NULL)
		return snprintf(b->error, sizeof(b->error), "%s", wrong) < 0;
	b->options.name = strcpy(b->name, options->name);
	return (options->login == NULL || bus_login(options->login, &b->url,
	    b->error, sizeof(b->error))) && b->kind->open(b);
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

/* Less than the argument, as a connection may be due to be tried. */
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
