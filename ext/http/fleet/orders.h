/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * orders.h - the orders of an operator to a worker: ADDRESS is all ranks of a
 * server, ADDRESS@RANK is one.
 *
 *   drain, up   its state                 forget   its record
 *   reset       as if its engine had started anew; its requests stay load
 */
#ifndef KVROUTE_ORDERS_H
#define KVROUTE_ORDERS_H

#include "known.h"

enum order {
	ORDER_NONE,
	ORDER_DRAIN,
	ORDER_UP,
	ORDER_FORGET,
	ORDER_RESET
};

/* NONE: there is no such order. */
enum order order_named(const char *text, size_t n);
/*
 * Returns KVR_OK, and the facts afterwards; KVR_EWORKER; or KVR_EBUSY, after
 * some ten milliseconds in which the region was locked.
 */
int order_obey(struct fleet *f, enum order what, const char *name, size_t n,
    int64_t now, struct kvr_worker *facts);

#endif
