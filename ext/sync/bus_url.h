/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_url.h - the address of a bus:
 * scheme://[user:password@]host[:port][,host[:port] ...][/path]
 */
#ifndef KVROUTE_BUS_URL_H
#define KVROUTE_BUS_URL_H

#include <stdbool.h>
#include <stddef.h>

enum { BUS_HOST_MAX = 256, BUS_HOSTS_MAX = 8 };

struct bus_host {
	char name[BUS_HOST_MAX]; /* without the brackets of IPv6 */
	unsigned port;           /* 0: none was given */
};

struct bus_url {
	char scheme[18];
	char user[512];     /* or a token */
	char password[256];
	bool colon;         /* behind the user, also of an empty password */
	struct bus_host hosts[BUS_HOSTS_MAX];
	size_t n_hosts;     /* at least 1 */
	char path[256];     /* from the slash on */
};

/* In user and password %XX stands for a byte. false: `error` has the reason. */
bool bus_url_parse(const char *text, struct bus_url *out, char *error,
    size_t size);

/* Is it a subject of NATS, perhaps with wildcards, and not too long? */
bool bus_subject(const char *name);

#endif
