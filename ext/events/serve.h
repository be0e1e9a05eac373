/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.h - the daemon: each stream of a configuration, into each region that
 * has its worker.
 */
#ifndef KVROUTE_SERVE_H
#define KVROUTE_SERVE_H

#include <signal.h>
#include <stddef.h>

enum { SERVE_REGIONS_MAX = 16 };

struct serve_options {
	const char *conf;      /* a path */
	const char *socket;    /* the same; NULL: none */
	char *const *regions;  /* paths; it takes n */
	size_t n;
	const volatile sig_atomic_t *stop; /* end */
	volatile sig_atomic_t *reload;     /* read `conf` again; set to 0 */
};

/* Serves until a signal stops it. Returns the program's exit status. */
int serve(const struct serve_options *options);

#endif
