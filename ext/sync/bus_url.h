/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bus_url.h - the address of a bus: scheme://[user:password@]host[:port][/path]
 */
#ifndef KVROUTE_BUS_URL_H
#define KVROUTE_BUS_URL_H

#include <stdbool.h>
#include <stddef.h>

struct bus_url {
	char scheme[16];
	char user[512];     /* or a token */
	char password[256];
	bool colon;         /* behind the user, also of an empty password */
	char host[256];     /* without the brackets of IPv6 */
	char path[256];     /* from the slash on */
	unsigned port;      /* 0: none was given */
};

/* In user and password %XX stands for a byte. false: `error` says why. */
bool bus_url_parse(const char *text, struct bus_url *out, char *error,
    size_t size);

/* Is it a subject of NATS, perhaps with wildcards, and not too long? */
bool bus_subject(const char *name);

#endif
