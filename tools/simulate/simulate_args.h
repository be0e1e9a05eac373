/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_args.h - the command line of kvroute-replay --simulate.
 */
#ifndef KVROUTE_SIMULATE_ARGS_H
#define KVROUTE_SIMULATE_ARGS_H

#include "sessions.h"
#include "simulate.h"

#include <kvroute.h>

enum { POLICIES_MAX = 64, NAME_BYTES = 64 };
enum simulate_format {
	SIMULATE_TEXT, SIMULATE_KV, SIMULATE_JSON, SIMULATE_FORMATS
};

/* A policy as named on the command line. */
struct wanted {
	char name[NAME_BYTES];
	enum simulate_policy policy;
	struct kvr_policy weights;
	enum simulate_index index;
	int64_t ttl_ns;
	bool own_affinity; /* instead of that of all policies, */
	uint32_t affinity; /* as in struct simulate_options */
};

struct settings {
	struct kvr_options region;        /* except the TTL */
	struct simulate_options simulate; /* except policy and index */
	struct wanted wanted[POLICIES_MAX];
	size_t n;
	double speed;
	bool spread;
	enum simulate_format format;
	bool quiet;
	const char *report; /* page to write; NULL: none */
	const char *path; /* NULL: standard input */
	const char *sessions;      /* file or directory; NULL: a trace */
	char *const *more_sessions; /* [n_more_sessions] */
	int n_more_sessions;
	struct sessions_options loop; /* except the seed */
};

/* Exits on errors, --help and --version. */
void simulate_args(struct settings *s, int argc, char **argv);

#endif
