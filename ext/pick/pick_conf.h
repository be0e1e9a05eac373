/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick_conf.h - the configuration of kvroute-pick, with nginx's names:
 *
 *	region /run/kvroute/chat;            # shared with other processes
 *	kvroute size=256m affinity=65536;
 *	kvroute_include_usage on;            # as kvroute include_usage=on
 *	server 10.0.0.1:8000 capacity=400000;
 *	server engines.llm.svc:8000 max_conns=64;
 *
 * A directive is a line; "#" begins a comment, and ";" at the end may be there.
 */
#ifndef KVROUTE_PICK_CONF_H
#define KVROUTE_PICK_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "text_hold.h"

enum {
	CONF_NAME_MAX = 256, CONF_FACTS_MAX = 1024, CONF_SERVERS_MAX = 4096,
	CONF_ERROR_MAX = 2048, CONF_REGION_MAX = 1024
};

struct conf_server {
	char name[CONF_NAME_MAX];    /* address, or host, and port */
	char facts[CONF_FACTS_MAX];
	unsigned line;
};

struct pick_conf {
	char region[CONF_REGION_MAX]; /* "": private memory */
	struct hold options;          /* text for kvh_open(3) */
	struct hold lines;            /* unsigned: where each of them is from */
	struct conf_server *servers;
	size_t n, room;
};

/* false: `error` is why, with the line. */
bool pick_conf_read(struct pick_conf *c, FILE *in, char error[CONF_ERROR_MAX]);
/* The line of the file that has byte `at` of the options. */
unsigned pick_conf_option_line(const struct pick_conf *c, size_t at);
/* The line of the option with that name; 0: it is not there. */
unsigned pick_conf_option(const struct pick_conf *c, const char *name);
void pick_conf_free(struct pick_conf *c);

/* Splits "host:port", "[v6]:port"; false: it is neither. */
bool pick_conf_split(const char *name, char host[CONF_NAME_MAX],
    unsigned *port);
/* Is the host of that name an address? */
bool pick_conf_is_address(const char *name);

#endif
