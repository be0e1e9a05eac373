/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * site.h - a region of this machine, and the bus that it shares with others.
 */
#ifndef KVROUTE_SITE_H
#define KVROUTE_SITE_H

#include "apply.h"
#include "bus.h"
#include "late.h"
#include "publish.h"

enum { SITE_HOST_MAX = 64, SITE_SAID = 8 };

/* The options of the command line, for all regions. */
struct site_options {
	struct bus_options bus;   /* url and files */
	const char *host;
	const unsigned char *secret;
	size_t secret_bytes;      /* 0: no MACs */
	int64_t replay;           /* ns of a log; -1: since the last daemon */
	bool loads, orders;
};

struct site {
	const struct site_options *o;
	const char *name, *path;
	int lock;                 /* one daemon for a region */
	struct kvr *k;
	struct roster roster;
	struct frame_rules rules;
	struct proof proof;       /* of peers that are there, with a secret */
	struct late late;
	struct publish *publish;
	struct apply *apply;
	struct bus *bus;
	uint64_t origin;
	/* the latest lines of the log */
	bool connected;
	int64_t connected_at;
	char said[SITE_SAID][BUS_ERROR_MAX]; /* of the bus, since then */
	size_t n_said;
	bool replaced;            /* the path is that of another file now */
	uint64_t overruns, unlisted, dropped;
	int64_t logged, peers_logged;
	int64_t looked;           /* at the file of the path */
	size_t peers;
	struct apply_peer peer[APPLY_PEERS_MAX];
};

/* Takes the region, and nothing more. false: it has logged why. */
bool site_attach(struct site *s, const struct site_options *options,
    char *name);
/* false: the same. */
bool site_open(struct site *s, const struct site_options *options, char *name);
/* Ends the leases and loads of peers here. */
void site_close(struct site *s);
/* Works; returns when to call again. */
int64_t site_work(struct site *s);

void site_log(const struct site *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
