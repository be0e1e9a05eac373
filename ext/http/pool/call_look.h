/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_look.h - the servers as they are for a request, which are written in the
 * fleet: those that it may be sent to, those that are full, those held back.
 */
#ifndef KVROUTE_CALL_LOOK_H
#define KVROUTE_CALL_LOOK_H

#include "pool_in.h"

enum { LOOK_NO_RANK = -1 };

/* A list of serials that grows; false: no memory. */
bool serials_add(uint64_t **list, size_t *n, size_t *room, uint64_t serial);
/* A choice begins: brings the facts of servers up to date. */
void look_begin(struct kvh_call *c);
/* Counts requests of other processes too, once a choice. */
void look_count(struct kvh_call *c);

/* With the pool's lock. out: those that have failed lately, too. */
void look_mark(struct kvh_call *c, bool out);
/* The same, but these only if there is no other. */
void look_mark_best(struct kvh_call *c);
/*
 * As for a request that may go anywhere; returns for how many there is room,
 * also beside the requests of other processes as they were counted last.
 */
size_t look_room(struct kvh *h, int64_t now);
/* Has the request failed at server i, or may it not go there? */
bool look_has_tried(const struct kvh_call *c, size_t i);
/* Copies the first n of fleet.allowed to c->some; false: no memory. */
bool call_some(struct kvh_call *c, size_t n);
/*
 * The workers that the library may choose from: n in c->some. *splits: another
 * one may prefill for the server that is chosen.
 */
int workers_allow(struct kvh_call *c, size_t *n, bool *splits);
/* Has it room by now? */
bool server_takes(const struct pool_server *s);
/* It has the request from now on. */
void look_take(struct kvh_call *c, struct pool_server *s, int32_t rank);

#endif
