/* SPDX-License-Identifier: BSD-2-Clause */
/* events_none.c - events.h without libzmq or msgpack-c. */
#include "events.h"

#include <err.h>

void *
events_begin(void)
{
	warnx("--events: this program was built without libzmq or msgpack-c");
	return NULL;
}

void
events_end(void *sockets)
{
	(void)sockets;
}

struct events *
events_new(const struct events_facts *facts, const struct events_place *place)
{
	(void)facts;
	(void)place;
	return NULL;
}

void
events_free(struct events *e)
{
	(void)e;
}

bool
events_open(struct events *e, char *why, size_t room)
{
	(void)e;
	(void)why;
	(void)room;
	return true;
}

void
events_close(struct events *e)
{
	(void)e;
}

bool
events_take(struct events *e, uint32_t rank, struct serving *s, bool lost)
{
	(void)e;
	(void)rank;
	(void)s;
	(void)lost;
	return true;
}

bool
events_clear(struct events *e, uint32_t rank)
{
	(void)e;
	(void)rank;
	return true;
}

uint64_t
events_next(const struct events *e, uint32_t rank)
{
	(void)e;
	(void)rank;
	return 0;
}

bool
events_port(const struct events *e, bool replay, char *host, size_t room,
    uint32_t *port)
{
	(void)e;
	(void)replay;
	(void)host;
	(void)room;
	(void)port;
	return false;
}
