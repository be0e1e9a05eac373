/* SPDX-License-Identifier: BSD-2-Clause */
/* bus_in.h - the calls that a kind of bus provides. Only bus*.c includes it. */
#ifndef KVROUTE_BUS_IN_H
#define KVROUTE_BUS_IN_H

#include "bus.h"
#include "bus_login.h"
#include "bus_queue.h"

struct bus_kind {
	/* Sets b->in. false: b->error has the reason. */
	bool (*open)(struct bus *b);
	void (*close)(struct bus *b);
	/* subject "": the bus' own */
	bool (*send)(struct bus *b, const char *subject, const void *bytes,
	    size_t n);
	void (*work)(struct bus *b);
	size_t (*fds)(const struct bus *b, struct pollfd *fds);
	bool (*since)(struct bus *b, int64_t age); /* NULL: no log */
	bool (*ask)(struct bus *b, const void *bytes, size_t n);
	void (*ask_end)(struct bus *b);
	size_t (*waiting)(const struct bus *b);
};

struct bus {
	const struct bus_kind *kind;
	struct bus_options options; /* name: a copy; no other text */
	struct bus_url url;
	char name[BUS_SUBJECT_MAX];
	struct bus_counts counts;
	uint64_t refused;           /* too long to be sent */
	bool tls, connected;
	char error[BUS_ERROR_MAX];
	void *in;
};

/* A kind that was not linked is NULL: bus.c. */
extern const struct bus_kind bus_redis __attribute__((weak));
extern const struct bus_kind bus_nats __attribute__((weak));

/* How long a frame that comes may be. */
size_t bus_take_max(const struct bus *b);
void bus_deliver(struct bus *b, const void *bytes, size_t n, int64_t age,
    const char *reply, bool answer);
/* How long to pause before the next try, in ns; *pause is the last one. */
int64_t bus_pause(int64_t *pause);

#endif
