/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * redis_way.h - which server has the stream.
 *
 *   one       the host of the URL
 *   Sentinel  a host of the URL is asked for the address of the master; after
 *             each loss the next one is
 *   Cluster   a host of the URL answers with MOVED and the address of the node
 *             that has the key; after each loss the next one does
 */
#ifndef KVROUTE_REDIS_WAY_H
#define KVROUTE_REDIS_WAY_H

#include "bus_url.h"

enum redis_way_kind { WAY_ONE, WAY_SENTINEL, WAY_CLUSTER };

struct redis_way {
	enum redis_way_kind kind;
	const struct bus_url *url;
	char master[BUS_HOST_MAX]; /* its name at the Sentinels */
	char db[8];
	struct bus_host node;      /* the server; name "": unknown */
	size_t at;                 /* the host of the URL that is next */
	bool asking;               /* the node is about to get the key */
};

/* Looks at scheme and path, too. false: `error` gives the reason. */
bool redis_way_begin(struct redis_way *w, const struct bus_url *url,
    char *error, size_t size);
/* Where to connect; true: that is a Sentinel. */
bool redis_way_next(const struct redis_way *w, struct bus_host *out);
/* The server was found there. */
void redis_way_found(struct redis_way *w, const char *name, unsigned port);
/* A connection to that host ended. */
void redis_way_lost(struct redis_way *w, const struct bus_host *from);
/* Is this error of that host an address to go to? */
bool redis_way_moved(struct redis_way *w, const struct bus_host *from,
    const char *error);

bool bus_host_equal(const struct bus_host *a, const struct bus_host *b);

#endif
