/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replica.h - a router with the steps of kvroute-sync beside it, without a
 * bus: frames wait in `sent` until a test carries them.
 */
#ifndef KVR_REPLICA_H
#define KVR_REPLICA_H

#include "apply.h"
#include "publish.h"

enum { REPLICA_FRAMES = 4096, REPLICA_WORKERS = 4, REPLICA_BLOCK = 16 };

struct replica_frame {
	unsigned char *bytes;
	size_t n;
	int64_t at;
};

struct replica {
	void *memory;
	struct kvr *k, *quiet;
	struct kvr_prompt *prompt;
	struct roster roster;
	struct chains *chains;
	struct frame_rules rules;
	struct proof proof;
	struct publish *publish;
	struct apply *apply;
	uint64_t origin;
	int64_t now, skew;    /* of this machine's clock */
	struct replica_frame sent[REPLICA_FRAMES];
	size_t n;
};

struct replica_options {
	uint64_t origin;
	unsigned char secret; /* its bytes */
	bool loads, orders, keyed;
	int64_t now, skew;
	uint32_t workers;     /* "a", "b" ...; 0: REPLICA_WORKERS */
	uint64_t site;
	bool backwards;       /* added in reverse: their ids differ */
	size_t journal;       /* bytes; 0: few */
	size_t memory;        /* of the region; 0: 4 MiB */
	uint32_t tenants;     /* that share the region */
};

/* false: something cannot be made. */
bool replica_init(struct replica *r, const struct replica_options *options);
void replica_free(struct replica *r);
/* The daemon dies and another one begins, with another origin. */
bool replica_restart(struct replica *r, const struct replica_options *options);
/* A second or less passes here. */
void replica_run(struct replica *r, int64_t until);
/* Carries frames from..to of one to the other; they come at `now`. */
void replica_carry(const struct replica *from, size_t first, size_t end,
    struct replica *to, int64_t now);
/* All frames that have not been carried, and forgets them. */
void replica_carry_all(struct replica *from, struct replica *to, int64_t now);
/* Prompt number `prompt`, of so many blocks: all those of one share it. */
struct kvr_prompt *replica_prompt(struct replica *r, uint32_t prompt,
    uint32_t blocks);
/* The same of a tenant; 0: of none. */
struct kvr_prompt *replica_prompt_of(struct replica *r, char tenant,
    uint32_t prompt, uint32_t blocks);
/* Returns a tenant's row; all zeros: it has no row. */
struct kvr_tenant replica_tenant(const struct replica *r, char tenant);
uint64_t replica_worker(const struct replica *r, char name);
/* Leading blocks of the prompt that this worker holds. */
uint32_t replica_holds(struct replica *r, uint32_t prompt, uint32_t blocks,
    char worker);
uint64_t replica_leases(const struct replica *r);
/* The requests that run on a worker. */
uint64_t replica_requests(const struct replica *r, char worker);

#endif
