/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute_replica.h - for programs that keep several routers equal: the
 * journal, prompts by their sequence hashes, lists of leases and entries.
 *
 * All of it is experimental, and may change in any release. The rules at the
 * head of kvroute.h apply.
 */
#ifndef KVROUTE_REPLICA_H
#define KVROUTE_REPLICA_H

#include "kvroute.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The journal is a ring in the region, where each writing call leaves a record
 * of its changes, so that a program can send them to routers on other machines.
 * See kvr_journal(3).
 */
enum {
	KVR_JOURNAL_MIN = 1 << 16, /* of kvr_options.journal_bytes */
	KVR_JOURNAL_MAX = 1 << 30
};

enum kvr_record_kind {
	KVR_RECORD_OPEN = 1,        /* kvr_lease_open, kvr_lease_open_on */
	KVR_RECORD_COMMIT = 2,      /* kvr_lease_commit */
	KVR_RECORD_FIRST_TOKEN = 3, /* kvr_lease_first_token */
	KVR_RECORD_EXTEND = 4,      /* kvr_lease_extend */
	KVR_RECORD_OUTPUT = 5,      /* kvr_lease_output */
	KVR_RECORD_FINISH = 6,      /* kvr_lease_finish; or ended by age or */
	                            /* owner after commit */
	KVR_RECORD_ABORT = 7,       /* kvr_lease_abort; the same before */
	KVR_RECORD_OBSERVE = 8,     /* kvr_observe */
	KVR_RECORD_BIND = 9,        /* kvr_affinity_bind */
	KVR_RECORD_RESET = 10,      /* kvr_worker_reset */
	KVR_RECORD_CLEAR = 11       /* all prefixes and leases were dropped */
};

/* Fields that a kind does not have are 0. */
struct kvr_record {
	size_t size;
	uint64_t position;       /* of the record in the journal */
	uint32_t kind;           /* enum kvr_record_kind, or a later one */
	uint32_t hashes;         /* sequence hashes that it has */
	int64_t at;              /* time of the call */
	uint64_t lease;
	uint64_t owner;          /* of the lease */
	uint64_t worker;         /* RESET: its id until then */
	uint32_t blocks;         /* of the prompt; OUTPUT: how many more */
	uint32_t first_block;    /* of the prompt, that the hashes begin with */
	uint64_t parent;         /* sequence hash before them, or the root */
	uint64_t units;          /* of the prompt: tokens or bytes */
	uint64_t overlap_tokens; /* OPEN: predicted to be cached */
	uint64_t affinity;       /* OPEN, BIND: digest of a session */
	int64_t affinity_ttl;
	uint64_t new_worker;     /* RESET: its id since */
	uint32_t overlap_blocks; /* OPEN: overlap_tokens in blocks, as in */
	                         /* kvr_request */
	uint32_t stage;          /* OPEN: enum kvr_stage */
	uint32_t flags;          /* OPEN: enum kvr_flags of the request; */
	                         /* OBSERVE: of the call, KVR_ENDED */
	uint32_t share;          /* OPEN: as in kvr_request */
	struct kvr_report report; /* FINISH */
	uint64_t tenant;         /* of the prompt: kvr_scope.digest */
};

/*
 * Copies the record at *position and moves *position past it. 0 begins: from
 * now on. At most `capacity` hashes are written; journal_bytes / 32 suffice.
 * Takes no lock. KVR_EAGAIN: no record follows yet, or its writer is not done;
 * a reader waits for that until `now` is 100 ms after the record. KVR_EOVERRUN:
 * records are lost, and *position has moved past them. KVR_ESTATE: the region
 * has no journal.
 */
int kvr_journal_read(const struct kvr *k, uint64_t *position, int64_t now,
    struct kvr_record *out, uint64_t *hashes, size_t capacity);
/* 1: calls on this handle leave no record. 0, the default: they do. */
int kvr_quiet_set(struct kvr *k, uint32_t on);
/* Shows that the journal has a reader: kvr_stats.journal_beat. No lock. */
int kvr_journal_beat(struct kvr *k, int64_t now);
/*
 * *rule = a digest of unit, block size, hash, eagle and secret: where it is
 * equal, equal prompts have equal hashes. It does not give away the secret.
 */
int kvr_rule_get(const struct kvr *k, uint64_t *rule);
/*
 * Replaces the content of p by n sequence hashes, from block `first` on, of a
 * prompt of `units` tokens or bytes. parent: the sequence hash before them, or
 * the root if first is 0. The prompt is closed and cannot be continued; if
 * first is not 0 it is for kvr_lease_extend only.
 */
int kvr_prompt_set_sequences(struct kvr_prompt *p, uint64_t parent,
    uint32_t first, const uint64_t *hashes, size_t n, uint64_t units);
/*
 * Sets the tenant of such a prompt, which its hashes do not contain, and the
 * share of that tenant, unless a request has one. 0: no tenant, or keep the
 * current share.
 */
int kvr_prompt_set_tenant(struct kvr_prompt *p, uint64_t tenant,
    uint32_t share);

enum kvr_lease_state {
	KVR_LEASE_OPENED = 0,
	KVR_LEASE_COMMITTED = 1,
	KVR_LEASE_DECODING = 2 /* its first token has come */
};

/* An open lease. */
struct kvr_lease_info {
	uint64_t lease;
	uint64_t owner;
	uint64_t worker;   /* 0: it was removed or reset */
	int64_t opened;    /* time */
	uint64_t tokens;   /* of the prompt */
	uint32_t blocks;   /* of the prompt, whole ones */
	uint32_t state;    /* enum kvr_lease_state */
};
/*
 * Open leases, the oldest first. Each call examines some; *cursor 0 begins, 0
 * is the end. Leases that are open all the while are visited, maybe again.
 */
int kvr_lease_list(const struct kvr *k, uint64_t *cursor,
    struct kvr_lease_info *out, size_t element, size_t capacity,
    size_t *count);

/* One entry of the index: one worker, one run of blocks. */
struct kvr_entry {
	uint64_t worker;
	uint64_t parent;      /* sequence hash before the run, or the root */
	uint64_t sequence;    /* sequence hash of the run's last block, which */
	                      /* the worker may have lost: see blocks */
	int64_t age_ns;       /* since it was stamped; -1: not committed yet */
	uint32_t first_block; /* position in the prompt */
	uint32_t blocks;
	uint32_t pins;        /* leases that hold it */
	uint32_t reserved;
};
/*
 * Walks the entries that are live at `now`. *cursor 0 begins, 0 is the end.
 * Entries that stay as they are between the calls are visited exactly once.
 */
int kvr_entries(const struct kvr *k, uint64_t *cursor, int64_t now,
    struct kvr_entry *out, size_t element, size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
