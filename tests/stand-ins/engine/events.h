/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events.h - publishes events of an engine's cache, as vLLM and SGLang do.
 *
 *   serving_change -> items -> batch        -> sockets
 *                              event_pack.h    event_socket.h
 *
 * Each rank has sockets and numbers of its own. Each hash is the block's name
 * mixed with a number of the rank's life, so it differs between ranks and
 * lives.
 *
 * The sender needs libzmq and msgpack-c. Without these events_none.c stands in
 * the place of events.c, and there are no events.
 */
#ifndef KVROUTE_ENGINE_EVENTS_H
#define KVROUTE_ENGINE_EVENTS_H

#include "event_pack.h"
#include "serving.h"

#include <event2/event.h>

struct events_facts {
	const char *endpoint;  /* of the first rank; NULL: no events */
	const char *replay;    /* the same; NULL: none */
	const char *topic;
	enum event_form form;
	uint32_t keep;         /* batches, for replays */
	uint32_t lose;         /* one batch in so many; 0: none */
	uint32_t window;       /* of a second group; 0: no second group */
};

struct events_place {
	struct event_base *base;
	void *sockets;         /* of events_begin */
	uint32_t number;       /* of the engine */
	uint32_t ranks;
	uint32_t block_tokens;
	uint64_t seed;
};

/* Sockets of the process. NULL: this program has none, which it has printed. */
void *events_begin(void);
void events_end(void *sockets);

struct events;

/* NULL: no memory. It is closed. */
struct events *events_new(const struct events_facts *facts,
    const struct events_place *place);
void events_free(struct events *e);
/* False: an endpoint cannot be used; which, is in `why`. Nothing if open. */
bool events_open(struct events *e, char *why, size_t room);
/* The engine ends: another life begins when it is opened again. */
void events_close(struct events *e);
/* Publishes the changes of a rank's cache. False: no memory. */
bool events_take(struct events *e, uint32_t rank, struct serving *s,
    bool lost);
/*
 * The cache was emptied. SGLang publishes that at once; with vLLM, and SGLang
 * of old, the next batch begins with it. False: no memory.
 */
bool events_clear(struct events *e, uint32_t rank);
/* The number of the rank's next batch. */
uint64_t events_next(const struct events *e, uint32_t rank);
/* The first rank's tcp://HOST:PORT; false: not there, or another kind. */
bool events_port(const struct events *e, bool replay, char *host, size_t room,
    uint32_t *port);

#endif
