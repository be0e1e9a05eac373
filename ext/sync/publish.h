/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * publish.h - the actions of a router, as frames.
 *
 *	journal of the region --> records --> one frame --> send()
 *
 * It has neither a clock nor a bus: `now` and the taker of frames are
 * arguments.
 */
#ifndef KVROUTE_PUBLISH_H
#define KVROUTE_PUBLISH_H

#include "chains.h"
#include "frame.h"
#include "proof.h"
#include "roster.h"

struct publish;

/* The bytes are valid until it returns. false: not taken. */
typedef bool publish_send(void *context, const unsigned char *bytes, size_t n);

struct publish_options {
	struct roster *roster;
	struct chains *chains; /* gets the published chains, or NULL */
	struct frame_rules rules;
	const struct proof *proof; /* to be sent, or NULL */
	uint64_t origin;
	const char *host;
	uint64_t site;     /* of machine and region; 0: not known */
	bool loads;        /* sums of loads only: no journal */
	publish_send *send;
	void *context;
};

struct publish_counts {
	uint64_t frames, bytes, records;
	uint64_t unsent;         /* frames that send() did not take */
	uint64_t overruns;       /* times that records were lost */
	uint64_t unknown_worker; /* removed meanwhile */
	uint64_t too_long;       /* chains that were cut */
	uint64_t unsayable;      /* a number is too large for its field */
	uint64_t leases;         /* own open ones, when last listed */
	uint64_t unlisted;       /* lists that do not have all of them */
	double rate;             /* requests a second for each worker */
};

enum { PUBLISH_LEASES_MAX = 65536 };

/* NULL: no memory. */
struct publish *publish_new(const struct publish_options *options);
void publish_free(struct publish *p);
/* Sends all that is due. Returns when to call again, at the latest. */
int64_t publish_work(struct publish *p, int64_t now);
/* A peer is new: it shall soon learn of the workers and open leases. */
void publish_hello(struct publish *p);
struct publish_counts publish_counts(const struct publish *p);

/* A digest of how workers are chosen. */
uint64_t publish_policy(const struct kvr *k);

#endif
