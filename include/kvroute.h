/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute.h - sends each LLM request to the worker that most likely still
 * holds its prefix in KV cache.
 *
 * The manual is kvroute(7) and the pages of section 3. This file is the
 * contract in short.
 *
 * The rules, to which comments note the exceptions:
 *   errors    functions returning int give KVR_OK (0) or a negative
 *             enum kvr_error. After an error nothing has changed and no
 *             output has been written.
 *   time      `now` is in nanoseconds, of a clock that does not jump
 *             (CLOCK_MONOTONIC). The time of a call is the larger of `now`
 *             and the largest `now` of any earlier writing call, but a `now`
 *             30 days ahead of that is KVR_ECLOCK: see kvr_clock_set. KVR_NOW
 *             stands for the time of CLOCK_MONOTONIC; without it the library
 *             reads no clock for you.
 *   structs   that you fill or receive begin with `size_t size`: set it to
 *             sizeof the struct, or let kvr_*_init(&s, sizeof(s)) set it and
 *             all defaults. Fields beyond your size take their defaults (in)
 *             or are not written (out). A struct of a newer header is
 *             accepted while the fields that this library does not know are
 *             zero; else KVR_ENEWER. `reserved` must be 0. No struct holds a
 *             pointer.
 *   arrays    of structs are passed with the size of one element.
 *   strings   are (pointer, length), need no NUL and may hold any bytes.
 *   ids       of workers and leases are never 0 and never reused. They are of
 *             different kinds: a worker's is never valid as a lease's.
 *   threads   any thread may call any function on a struct kvr, without
 *             external locking, also in private memory; but kvr_free comes
 *             last, and kvr_nowait_set is called alone. A struct kvr_prompt
 *             and your structs are used by one thread at a time.
 *   memory    the library keeps no pointer of yours after a call returns,
 *             except the region memory of kvr_new_at and kvr_attach_at.
 */
#ifndef KVROUTE_H
#define KVROUTE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVR_VERSION_MAJOR 0
#define KVR_VERSION_MINOR 1
#define KVR_VERSION_PATCH 0
#define KVR_VERSION_STRING "0.1.0"

/* Version of the linked library: major << 16 | minor << 8 | patch. */
uint32_t kvr_version(void);
const char *kvr_version_string(void);

enum kvr_error {
	KVR_OK = 0,
	KVR_EINVAL = -1,      /* an argument is NULL, out of range or invalid */
	KVR_ENOMEM = -2,      /* out of memory */
	KVR_ETOOSMALL = -3,   /* region memory is too small for these options */
	KVR_EFORMAT = -4,     /* not a region or saved prompt, or damaged */
	KVR_EVERSION = -5,    /* the same, but of another format version */
	KVR_EMISMATCH = -6,   /* other options (kvr_options_fault names */
	                      /* one), or PID namespace */
	KVR_ECLOCK = -7,      /* `now` is below -1, or 30 days ahead */
	KVR_EWORKER = -8,     /* no such worker: unknown, removed or reset */
	KVR_EEXIST = -9,      /* the worker, or the file, exists already */
	KVR_EFULL = -10,      /* no room for another worker or handle */
	KVR_ELEASE = -11,     /* no such lease: never opened, or ended */
	KVR_ESTATE = -12,     /* the call does not fit the object's state */
	KVR_EEMPTY = -13,     /* the prompt has no tokens */
	KVR_ENOWORKER = -14,  /* no worker is eligible */
	KVR_ENOTALLOWED = -15,/* the pinned worker is not eligible */
	KVR_EPINNEDOVERLOADED = -16, /* the pinned worker is overloaded */
	KVR_EALLOVERLOADED = -17, /* every eligible worker is overloaded */
	KVR_EBUSY = -18,      /* try again: the lock is held (KVR_NOWAIT, */
	                      /* read-only, 30 s), or work is left */
	KVR_ECORRUPT = -19,   /* kvr_check: the index is broken */
	KVR_ESYSTEM = -20,    /* a system call failed: see errno */
	KVR_EPERM = -21,      /* other users own the file or may write it */
	KVR_EREADONLY = -22,  /* the handle is read-only */
	KVR_ENEWER = -23,     /* a struct sets fields unknown to this library */
	KVR_EINEXACT = -24,   /* kvr_check: only figures are wrong */
	KVR_EUNBOUND = -25,   /* no binding: never made, evicted or expired */
	KVR_EAGAIN = -26,     /* the journal has no further record yet */
	KVR_EOVERRUN = -27,   /* records of the journal are lost */
	KVR_EUNKNOWN = -28    /* a text has a name that is not known */
};

/* One sentence about an error; never NULL, even for unknown numbers. */
const char *kvr_strerror(int error);
/* The name of an error: "KVR_EINVAL"; "KVR_E?" for unknown numbers. */
const char *kvr_errname(int error);

enum {
	KVR_SECRET_MIN = 32,        /* of kvr_options.secret_bytes */
	KVR_SECRET_MAX = 256,
	KVR_BOOT_ID_BYTES = 16,
	KVR_NAME_MAX = 253,         /* bytes of a worker's name; at least 1 */
	KVR_WORKERS_MAX = 4096,     /* limit of kvr_options.max_workers */
	KVR_LOAD_SOURCES = 4,       /* of kvr_worker_set_load */
	KVR_PREFERENCES_MAX = 8,
	KVR_EXCLUDED_MAX = 16
};

enum {
	KVR_TTL_ENDLESS = -1, /* a ttl_ns that never expires */
	KVR_NOW = -1, /* as `now` of any call: that of kvr_clock_now */
	KVR_AUTO = 0x7fffffff /* "auto" in comments: the library chooses */
};

/* ---------------------------------------------- routing in eight calls --- */

struct kvr;         /* a handle on one region; process-local */
struct kvr_prompt;  /* the hashes of one request */
struct kvr_options;
struct kvr_worker;
struct kvr_scope;
struct kvr_request;

enum kvr_reason {
	KVR_REASON_COST = 0,   /* least cost */
	KVR_REASON_TIE = 1,    /* least cost, shared by several */
	KVR_REASON_SAMPLED = 2,/* drawn by temperature */
	KVR_REASON_PINNED = 3, /* given by the caller */
	KVR_REASON_AFFINITY = 4 /* experimental: by the request's affinity */
};

struct kvr_decision {
	size_t size;
	uint64_t worker;
	uint64_t lease;           /* kvr_lease_open; else, or if there was */
	                          /* no room, 0: no lease */
	uint64_t prompt_tokens;
	uint64_t overlap_tokens;  /* predicted to be cached: those of */
	                          /* overlap_blocks, less those that the */
	                          /* engine cannot use or has likely lost */
	double cost;              /* of the chosen worker; unit: policy's */
	uint32_t prompt_blocks;
	uint32_t overlap_blocks;
	uint32_t recorded_blocks; /* kvr_lease_open; else 0 */
	uint32_t reason;          /* enum kvr_reason */
	uint32_t eligible;        /* workers that could have been chosen */
	uint32_t affinity;        /* experimental: enum kvr_affinity_outcome */
	/* the eligible worker with the most of the prompt on record, and */
	/* the tokens predicted there; the chosen one if these are no more */
	uint64_t best_worker;
	uint64_t best_tokens;
};

/* Makes a region in private memory. options may be NULL: all defaults. */
int kvr_new(const struct kvr_options *options, struct kvr **out);
/* Closes a handle; frees private memory, not yours. NULL is allowed. */
void kvr_free(struct kvr *k);
/* facts may be NULL: all defaults. *id is the id of the new worker. */
int kvr_worker_add(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, uint64_t *id);
/*
 * A prompt holds the hashes of one request, its partial last block, the
 * workers that it may go to, and scratch memory. It can be reused; it needs
 * nothing of the region afterwards and may outlive the handle.
 */
int kvr_prompt_new(const struct kvr *k, struct kvr_prompt **out);
void kvr_prompt_free(struct kvr_prompt *p);
/* Replaces the content of a prompt. scope may be NULL: the empty scope. */
int kvr_prompt_set_tokens(struct kvr_prompt *p, const struct kvr_scope *scope,
    const uint32_t *tokens, size_t n);
/* Chooses a worker; changes nothing. request may be NULL: the defaults. */
int kvr_route(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out);
/*
 * Records that the prompt was sent to this worker: refreshes and extends its
 * path, as lease_open_on, commit and finish at one instant would. When it will
 * end is not known, so it counts as load that fades; not with KVR_ENDED.
 * *recorded_blocks (may be NULL): how much of the prompt there was room for.
 */
int kvr_observe(struct kvr *k, struct kvr_prompt *p, uint64_t worker,
    int64_t now, uint32_t flags, uint32_t *recorded_blocks);

/* ------------------------------------------------- options and handles --- */

enum kvr_unit { KVR_UNIT_TOKENS = 0, KVR_UNIT_BYTES = 1 };

enum kvr_hash_kind {
	KVR_HASH_KEYED = 0,  /* XXH3 under the region's secret; the default */
	KVR_HASH_DYNAMO = 1  /* bit for bit NVIDIA Dynamo's; public seed 1337 */
};

struct kvr_options {
	size_t size;
	uint64_t region_bytes;      /* all memory of the index; 64 MiB */
	int64_t ttl_ns;             /* 120 s; 0 remembers nothing; -1 endless */
	int64_t lease_limit_ns;     /* a lease this old is ended; 7 days */
	int64_t idle_limit_ns;      /* in place of the TTL for workers whose */
	                            /* retention is not by TTL; a day */
	uint32_t unit;              /* enum kvr_unit; tokens */
	uint32_t block_size;        /* units; auto: 16 tokens, 256 bytes */
	uint32_t hash;              /* enum kvr_hash_kind; keyed */
	uint32_t eagle;             /* experimental; 1: windows of */
	                            /* block_size + 1 tokens */
	uint32_t max_workers;       /* 1 to KVR_WORKERS_MAX; 256 */
	uint32_t max_prompt_blocks; /* recorded of a prompt; auto: 1/8 region */
	/*
	 * The key of the hashes: its first secret_bytes bytes. 0: a random one
	 * is drawn. Replicas that compare hashes share a key of 32 bytes or
	 * more; it should be random. The length is part of the key.
	 */
	uint32_t secret_bytes;      /* 0, or KVR_SECRET_MIN to _MAX */
	uint32_t affinity_entries;  /* experimental: bindings of sessions; 0, */
	                            /* or up to KVR_AFFINITY_ENTRIES_MAX */
	unsigned char secret[KVR_SECRET_MAX];
	/*
	 * Identifies the boot of the system on whose clock `now` is read.
	 * A region that another boot wrote is emptied when it is attached,
	 * because the clock began anew. All 0: kvr_open takes the system's, as
	 * in /proc/sys/kernel/random/boot_id; elsewhere it is not compared. A
	 * clock that continues across boots has an id that never changes.
	 */
	unsigned char boot_id[KVR_BOOT_ID_BYTES];
	uint32_t file_mode;         /* kvr_open: of a new file; 0600 */
	uint32_t file_group;        /* kvr_open: of a new file; auto: as is */
	uint64_t journal_bytes;     /* experimental: the journal takes so */
	                            /* much of the region; 0, or a power of */
	                            /* two, KVR_JOURNAL_MIN to _MAX */
	uint64_t event_blocks;      /* experimental: (block, worker) pairs */
	                            /* known by the hashes of events, or 0 */
	uint32_t tenants;           /* experimental: so many share the region */
	                            /* when it is full: kvr_tenant(3); 0, or */
	                            /* up to KVR_TENANTS_MAX */
	uint32_t reserved;
	uint64_t user_bytes;        /* experimental: a part of the region for */
	                            /* the caller: kvr_user_area; up to */
	                            /* KVR_USER_BYTES_MAX; 0: none, and an */
	                            /* existing region may have one */
};

/* Writes every default, and `size`, which is sizeof your struct. */
int kvr_options_init(struct kvr_options *options, size_t size);
/* The options in force, with every auto resolved, without the secret. */
int kvr_options_get(const struct kvr *k, struct kvr_options *out);
/*
 * 1: no call on this handle sleeps, as if each had KVR_NOWAIT; a call that
 * would have to wait for the lock is KVR_EBUSY. For event loops. 2: a call
 * waits for a tenth of a second at most, and after one that did so in vain none
 * does until one has got the lock. 0, the default: calls wait. Do not change it
 * while calls on this handle run.
 */
int kvr_nowait_set(struct kvr *k, uint32_t on);
/* Drops all prefixes, leases and loads; keeps workers, options, policy. */
int kvr_clear(struct kvr *k);

/* ------------------------------------------------------------- workers --- */

enum kvr_role { KVR_ROLE_BOTH = 0, KVR_ROLE_PREFILL = 1, KVR_ROLE_DECODE = 2 };

enum kvr_state {
	KVR_STATE_UP = 0,
	KVR_STATE_DRAINING = 1, /* accepts only requests pinned to it */
	KVR_STATE_DOWN = 2 /* accepts none; its entries are kept */
};

/*
 * How long a worker is believed to hold the prefixes sent to it. Auto: by
 * capacity if that is given or learnt and reports do not contradict it, else by
 * feedback once the engine has reported cached tokens, else by TTL;
 * kvr_worker_stats gives the one in force.
 */
enum kvr_retain {
	KVR_RETAIN_AUTO = 0,
	KVR_RETAIN_TTL = 1,      /* until the region's TTL has passed */
	KVR_RETAIN_CAPACITY = 2, /* until its cache needs the room */
	KVR_RETAIN_FEEDBACK = 3, /* as likely as its reports have shown */
	KVR_RETAIN_EVENTS = 4    /* experimental: until its events report */
	                         /* their removal, see kvr_events(3); auto */
	                         /* while the events are not complete */
};

/* Which of the blocks not in use an engine's cache evicts first. */
enum kvr_eviction {
	KVR_EVICT_RELEASED = 0, /* longest released, tails first: vLLM */
	KVR_EVICT_LEAF = 1      /* least recently used, a whole leaf of the */
	                        /* tree at a time: SGLang */
};

/*
 * Experimental: how much of layers that attend to a window only an engine
 * keeps. Without it a prefix cannot be reused though all other layers have it.
 * See kvr_worker(3).
 */
enum kvr_window {
	KVR_WINDOW_FULL = 0,     /* all of it, or there are no such layers */
	KVR_WINDOW_BOUNDARY = 1, /* where prompts ended, and where they part */
	KVR_WINDOW_DENSE = 2,    /* all of it, in the memory of the others */
	KVR_WINDOW_DUAL = 3      /* as BOUNDARY, in memory of its own */
};

/* A worker is one engine, or one data-parallel rank of one. */
struct kvr_worker {
	size_t size;
	uint32_t rank;               /* data-parallel rank; fixed by add */
	uint32_t role;               /* enum kvr_role */
	uint32_t state;              /* enum kvr_state */
	uint32_t retain;             /* enum kvr_retain; auto */
	uint64_t capacity_tokens;    /* of KV cache; 0: not known */
	uint64_t max_batched_tokens; /* of one engine step; 0: not known */
	uint64_t taints;             /* a set of 64 labels, defined by you */
	double prefill_rate;         /* tokens a second; 0: not known */
	double weight;               /* share of the load; 1.0; above 0 */
	uint32_t eviction;           /* enum kvr_eviction; released */
	uint32_t block_tokens;       /* of the engine's blocks; 0: learnt */
	/* experimental: sliding windows */
	uint32_t window_mode;        /* enum kvr_window; full */
	uint32_t window_tokens;      /* of a layer; 0 only if full */
	uint32_t window_align;       /* tokens; prefixes end at multiples; */
	                             /* 0: of the engine's blocks */
	uint32_t window_interval;    /* tokens; kept there too; 0: nowhere */
	uint32_t window_layers;      /* that slide, for one that does not, */
	                             /* in hundredths; up to 10,000 */
	uint32_t window_reserved;
	uint64_t window_capacity;    /* DUAL: tokens in their memory; 0: not */
	                             /* known */
};

/* Load of a worker that no lease of this region accounts for. */
struct kvr_load {
	size_t size;
	uint64_t prefill_tokens; /* not yet prefilled */
	uint64_t active_blocks;  /* index blocks of running requests */
	uint64_t requests;       /* running */
	uint64_t used_blocks;    /* as the engine publishes it; see policy */
};

int kvr_worker_init(struct kvr_worker *facts, size_t size);
int kvr_worker_find(const struct kvr *k, const char *name, size_t name_len,
    uint32_t rank, uint64_t *id);
int kvr_worker_get(const struct kvr *k, uint64_t id, struct kvr_worker *out);
/* Copies up to `capacity` bytes, no NUL; *name_len is the full length. */
int kvr_worker_name(const struct kvr *k, uint64_t id, char *name,
    size_t capacity, size_t *name_len);
int kvr_worker_set(struct kvr *k, uint64_t id, const struct kvr_worker *facts);
/*
 * Replaces the earlier load of one source. A source is a number below
 * KVR_LOAD_SOURCES that you assign. Sources add up with each other and with the
 * leases; of used_blocks the largest counts.
 */
int kvr_worker_set_load(struct kvr *k, uint64_t id, uint32_t source,
    const struct kvr_load *load);
/* *id = the worker after *id in order of slots; 0 begins, 0 is the end. */
int kvr_worker_next(const struct kvr *k, uint64_t *id);
/* O(1). Leases still open on it stay valid ids. */
int kvr_worker_remove(struct kvr *k, uint64_t id);
/*
 * O(1). The engine restarted or dropped its cache: all its entries are void,
 * name and facts stay, *new_id is the id of the new incarnation.
 *
 * kvr_worker_add and this give KVR_EBUSY if so many workers were removed or
 * reset that their entries must be reclaimed first. Each call reclaims some:
 * call again.
 */
int kvr_worker_reset(struct kvr *k, uint64_t id, uint64_t *new_id);
/*
 * Forgets the rates, waiting times and capacities learnt about it. Facts,
 * entries, leases and counters stay. After a reset there is nothing to forget.
 */
int kvr_worker_forget(struct kvr *k, uint64_t id);

/*
 * ---------------------------------------------------- scopes and prompts ---
 */

/*
 * Prompts share blocks only if their scopes are equal. Begin with
 * kvr_scope_init (the empty scope) and set parts in any order; an empty text
 * is an absent part. The digests depend on the region's secret. With
 * KVR_HASH_DYNAMO only adapter and salt exist, others are KVR_EMISMATCH.
 */
enum kvr_scope_part {
	KVR_SCOPE_MODEL = 0,
	KVR_SCOPE_ADAPTER = 1,
	KVR_SCOPE_SALT = 2,
	KVR_SCOPE_TENANT = 3
};
struct kvr_scope {
	size_t size;
	uint64_t digest[4]; /* by enum kvr_scope_part */
};
int kvr_scope_init(struct kvr_scope *scope, size_t size);
/* KVR_EINVAL if the struct has no room for this part. */
int kvr_scope_set(const struct kvr *k, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length);

/*
 * begin, then tokens or bytes in pieces of any length, then end. The scope
 * (NULL: empty) is given at begin or, with KVR_HASH_KEYED, at end if it is
 * known only then. After end the prompt can be used; more tokens reopen it, and
 * end closes it again (for kvr_lease_extend).
 */
int kvr_prompt_begin(struct kvr_prompt *p, const struct kvr_scope *scope);
int kvr_prompt_tokens(struct kvr_prompt *p, const uint32_t *tokens, size_t n);
int kvr_prompt_bytes(struct kvr_prompt *p, const void *bytes, size_t n);
/*
 * Hashes of the images (or other media) in block `block`, in any order, before
 * the block is complete. May be called more than once for a block.
 */
int kvr_prompt_media(struct kvr_prompt *p, size_t block,
    const uint64_t *hashes, size_t n);
int kvr_prompt_end(struct kvr_prompt *p, const struct kvr_scope *scope);
/* begin + bytes + end. */
int kvr_prompt_set_bytes(struct kvr_prompt *p, const struct kvr_scope *scope,
    const void *bytes, size_t n);

/*
 * Restricts the choice to these workers until the next begin (all, if never
 * called or n is 0). Ids that are no longer valid are skipped;
 * the id of a lease is KVR_EWORKER.
 */
int kvr_prompt_allow(struct kvr_prompt *p, const uint64_t *workers, size_t n);

struct kvr_prompt_info {
	size_t size;
	uint64_t units;  /* tokens or bytes given */
	uint64_t tokens; /* tokens; in byte mode an estimate */
	uint32_t blocks; /* complete blocks */
	uint32_t tail;   /* units after the last complete block */
};
int kvr_prompt_info_get(const struct kvr_prompt *p,
    struct kvr_prompt_info *out);
/* Hashes of block i, after end: local (of the block), sequence (of all). */
int kvr_prompt_hash(const struct kvr_prompt *p, size_t i, uint64_t *local,
    uint64_t *sequence);

/*
 * -------------------------------------------------- match and candidates ---
 */

/* The leading index blocks of a prompt that a worker is believed to hold. */
struct kvr_overlap {
	uint64_t worker;
	uint32_t blocks;
	uint32_t active_blocks; /* of them, in use by running requests */
	uint32_t tokens;        /* blocks in tokens; in byte mode an estimate */
	uint32_t reserved;
};

/*
 * Overlap of every worker that has any, in no particular order. Writes the
 * first `capacity` of them; *count is how many there are, never more than
 * max_workers. Elements of `out` beyond those are unspecified. Changes and
 * refreshes nothing in the index.
 */
int kvr_match(const struct kvr *k, struct kvr_prompt *p, int64_t now,
    struct kvr_overlap *out, size_t element, size_t capacity, size_t *count);

enum kvr_stage {
	KVR_STAGE_ALL = 0,     /* prefill and decode on one worker */
	KVR_STAGE_PREFILL = 1, /* disaggregated serving, first stage */
	KVR_STAGE_DECODE = 2   /* second stage: by load, see kvr_request(3) */
};

enum kvr_flags {
	KVR_NOWAIT = 1, /* KVR_EBUSY instead of waiting for the lock */
	/* for struct kvr_request: */
	KVR_IGNORE_PREFILL = 2, /* count no prefill tokens */
	KVR_IGNORE_REUSE = 4,   /* count no shared blocks; record no prefix */
	KVR_NO_FIRST_TOKEN = 8, /* the answer comes as a whole */
	/* for kvr_observe: */
	KVR_ENDED = 16 /* the request is over: it is no load */
};

struct kvr_preference {
	uint64_t taints; /* a worker with any of the labels ... */
	double weight;   /* ... is preferred (above 0) or avoided (below 0) */
};

/* A request, without its prompt. kvr_request_init writes the defaults. */
struct kvr_request {
	size_t size;
	uint64_t owner;           /* of the lease, for kvr_owner_reap; 0 */
	uint64_t pinned;          /* id of the worker to use; 0: any */
	uint64_t seed;            /* of a choice with temperature */
	uint64_t required_taints; /* only workers with all the labels */
	double overlap_credit;    /* overrides the policy's; below 0: not */
	double prefill_scale;     /* the same */
	double temperature;       /* the same */
	uint32_t stage;           /* enum kvr_stage */
	uint32_t flags;           /* enum kvr_flags */
	uint32_t n_excluded;
	uint32_t n_preferences;
	uint32_t overlap_blocks;  /* kvr_lease_open_on: believed to be cached */
	                          /* there, in place of the index; auto */
	uint32_t affinity_mode;   /* experimental: enum kvr_affinity_mode */
	uint64_t excluded[KVR_EXCLUDED_MAX]; /* workers not to use: retries */
	struct kvr_preference preferences[KVR_PREFERENCES_MAX];
	uint64_t affinity;        /* experimental: kvr_affinity_key; 0: none */
	int64_t affinity_ttl;     /* experimental: since its last use; at */
	                          /* most 30 days; 0: 600 s */
	uint32_t share;           /* experimental: of the prompt's tenant in */
	                          /* a full region; 0: as it is */
	uint32_t share_reserved;
};
int kvr_request_init(struct kvr_request *request, size_t size);

enum kvr_verdict {
	KVR_ELIGIBLE = 0,
	KVR_NOT_ALLOWED = 1, /* not in the allowed set, excluded, not pinned */
	KVR_WRONG_ROLE = 2,
	KVR_NOT_UP = 3,
	KVR_LACKS_TAINT = 4,
	KVR_OVERLOADED = 5,
	KVR_ABOVE_BOUND = 6  /* eligible; but see kvr_policy.balanced_bound */
};

/* All inputs of a decision, for one worker. */
struct kvr_candidate {
	uint64_t worker;
	uint64_t overlap_tokens;
	uint64_t prefill_tokens;  /* booked on it now */
	uint64_t decode_blocks;   /* active on it now */
	uint64_t requests;        /* running on it now */
	int64_t age_ns;           /* since the deepest overlap was stamped; */
	                          /* 0 while pinned, -1 without overlap */
	double cost;
	double backlog;           /* seconds of prefill booked on it now */
	uint32_t overlap_blocks;
	uint32_t new_decode_blocks; /* this request would add */
	uint32_t verdict;         /* enum kvr_verdict */
	uint32_t reserved;
};
/* All workers, eligible or not. capacity and count as in kvr_match. */
int kvr_candidates(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_candidate *out,
    size_t element, size_t capacity, size_t *count);

/* -------------------------------------------------------------- policy --- */

enum kvr_cost {
	KVR_COST_BALANCED = 0, /* seconds, to this request and to others; the */
	                       /* default */
	KVR_COST_DYNAMO = 1    /* the reference's cost function */
};

/* How workers are chosen; lives in the region. See kvr_policy(3). */
struct kvr_policy {
	size_t size;
	uint32_t cost;                /* enum kvr_cost */
	uint32_t reserved;
	double overlap_credit;        /* 1.0 */
	double overlap_decay;         /* 0 */
	double prefill_scale;         /* 1.0 */
	double request_weight;        /* blocks a running request counts; 0 */
	double temperature;           /* 0: least cost */
	double overload_prefill_tokens; /* overloaded above; below 0: */
	                              /* never; -1 */
	double overload_prefill_fraction; /* ... of max_batched_tokens; -1 */
	double overload_blocks_fraction; /* ... of the capacity's blocks; -1 */
	/* of KVR_COST_BALANCED */
	double balanced_bound;        /* no worker runs more than so many */
	                              /* times its share, and 3; 0: no */
	                              /* bound; 2 */
	double observed_seconds;      /* for which a request that is only */
	                              /* observed counts as running, in the */
	                              /* mean; 10 */
};
int kvr_policy_init(struct kvr_policy *policy, size_t size);
int kvr_policy_get(const struct kvr *k, struct kvr_policy *out);
int kvr_policy_set(struct kvr *k, const struct kvr_policy *policy);

/* -------------------------------------------------------------- leases --- */

/* Chooses, and pins the path. Also decides when the region is full. */
int kvr_lease_open(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, int64_t now, struct kvr_decision *out);
/* The same on a given worker, which must exist but need not be eligible. */
int kvr_lease_open_on(struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, uint64_t worker, int64_t now,
    struct kvr_decision *out);
/*
 * The request was dispatched. All calls on a lease accept 0, no lease: then
 * only time passes.
 */
int kvr_lease_commit(struct kvr *k, uint64_t lease, int64_t now,
    uint32_t flags);
/* The first token arrived: prefill is done. Commits, if that was not done. */
int kvr_lease_first_token(struct kvr *k, uint64_t lease, int64_t now,
    uint32_t flags);
/*
 * The output grew: p is the lease's prompt with the generated tokens appended
 * (kvr_prompt_tokens, kvr_prompt_end), or that prompt resumed (see
 * kvr_prompt_resume). New whole blocks join the path. Commits, too.
 */
int kvr_lease_extend(struct kvr *k, uint64_t lease, struct kvr_prompt *p,
    int64_t now, uint32_t flags);
/* Counts generated blocks as load without recording them. */
int kvr_lease_output(struct kvr *k, uint64_t lease, uint32_t blocks,
    int64_t now, uint32_t flags);

enum kvr_report_kind {
	KVR_REPORT_NONE = 0,   /* no usage seen */
	KVR_REPORT_ABSENT = 1, /* usage without a number of cached tokens */
	KVR_REPORT_VALUE = 2
};
enum kvr_report_flags {
	KVR_REPORT_STREAM = 1,     /* the response was an event stream */
	KVR_REPORT_NO_EVIDENCE = 2 /* a retry, an error, logprobs, images */
};
/* The engine's report about a request; see kvr_report(3). */
struct kvr_report {
	size_t size;
	uint64_t prompt_tokens; /* 0: not reported */
	uint64_t cached_tokens; /* with KVR_REPORT_VALUE */
	uint64_t completion_tokens; /* generated; 0: not reported */
	uint32_t kind;          /* enum kvr_report_kind */
	uint32_t flags;         /* enum kvr_report_flags */
	uint32_t endpoint;      /* kind of endpoint: a number you assign */
	uint32_t reserved;
};
/* The request is done. report may be NULL: none. */
int kvr_lease_finish(struct kvr *k, uint64_t lease,
    const struct kvr_report *report, int64_t now, uint32_t flags);
/*
 * It was never dispatched, or failed. If it was not committed, nothing of it
 * stays, but entries that were evicted to make room for it do not come back.
 */
int kvr_lease_abort(struct kvr *k, uint64_t lease, int64_t now,
    uint32_t flags);

/* -------------------------------------------------------------- expiry --- */

/*
 * Reclaims at most `budget` entries that are due; *left (may be NULL) is 1 if
 * more are due. Results are correct without it.
 */
int kvr_expire(struct kvr *k, int64_t now, uint32_t budget, uint32_t *left);
/*
 * *due = when the next entry is due; INT64_MAX if none ever is. Entries of a
 * worker that was removed or reset are due at once.
 */
int kvr_next_expiry(const struct kvr *k, int64_t *due);

/* ------------------------------------------------------ shared regions --- */

/*
 * Formats `bytes` bytes at `memory`, which is yours, is aligned to 64 bytes and
 * must outlive every handle. options->region_bytes is ignored. Processes may
 * share the memory.
 */
int kvr_new_at(const struct kvr_options *options, void *memory, size_t bytes,
    struct kvr **out);
/*
 * Attaches to memory that kvr_new_at formatted, here or in another process,
 * at any address. options, if not NULL: KVR_EMISMATCH if the region was made
 * with others; but times and max_prompt_blocks are those given from now on.
 */
int kvr_attach_at(const struct kvr_options *options, void *memory,
    size_t bytes, struct kvr **out);

enum kvr_open_flags {
	KVR_OPEN_CREATE = 1,   /* creates the region if it is missing */
	KVR_OPEN_ATTACH = 2,   /* attaches to an existing one */
	KVR_OPEN_READONLY = 4, /* attaches to read; without the two above */
	KVR_OPEN_TRUST = 8     /* even if others own or may write the file */
};
/*
 * A region in a file, for any number of processes at once; it outlives them.
 * CREATE alone: KVR_EEXIST if the file is there; ATTACH alone: KVR_ESYSTEM
 * (ENOENT) if it is not; both: whichever applies. options: as for kvr_new and
 * kvr_attach_at, but READONLY changes nothing: all must match. A region is made
 * of a file that is empty, zero throughout or left unfinished by a creator that
 * died; any other that is not a region, or is damaged, is KVR_EFORMAT and stays
 * as it is. The first to attach after all
 * others are gone checks the index and empties it if it is broken.
 */
int kvr_open(const char *path, size_t path_len, uint32_t flags,
    const struct kvr_options *options, struct kvr **out);
/*
 * The same on a descriptor of yours, such as a memfd sealed against shrinking;
 * it may be closed afterwards. Owner and mode are not checked. No file lock is
 * taken: creation must be complete before others attach. A file that is not
 * empty keeps its size: region_bytes is ignored.
 */
int kvr_open_fd(int fd, uint32_t flags, const struct kvr_options *options,
    struct kvr **out);
/* CLOCK_MONOTONIC in nanoseconds: the time that KVR_NOW stands for. */
int64_t kvr_clock_now(void);
/*
 * Sets the region's clock, also to a time that is refused as a `now`: ahead, as
 * after a month without calls; or back, after a wrong `now` has stopped time.
 * Going back also drops all prefixes, leases and loads, as kvr_clear does.
 */
int kvr_clock_set(struct kvr *k, int64_t now);

/* --------------------------------------------------- stats and metrics --- */

/* Reports compared with the predictions for the same requests. */
struct kvr_calibration {
	uint64_t reports;           /* that were evidence */
	uint64_t unreported;        /* finished requests without evidence */
	uint64_t reported_tokens;   /* cached, by the reports */
	uint64_t predicted_tokens;  /* cached, by those predictions */
	uint64_t over_tokens;       /* predicted and not reported */
	uint64_t under_tokens;      /* reported and not predicted */
	/* of all reports with a number, evidence or not */
	uint64_t usage_prompt_tokens;
	uint64_t usage_cached_tokens; /* of its tokens */
	uint64_t reserved[4];       /* 0 */
};

struct kvr_stats {
	size_t size;
	uint64_t region_bytes;
	uint64_t cells;             /* of 64 bytes */
	uint64_t cells_free;
	uint64_t workers;
	uint64_t nodes;             /* of the radix tree */
	uint64_t entries;           /* (node, worker) pairs, also due ones */
	uint64_t blocks;            /* distinct blocks in the tree */
	uint64_t held_blocks;       /* (block, worker) pairs */
	uint64_t leases;            /* open */
	int64_t clock;              /* largest `now` of a writing call; or -1 */
	/* from here on: counted since the region was created */
	uint64_t observes;
	uint64_t lease_opens;
	uint64_t lease_commits;
	uint64_t lease_finishes;
	uint64_t lease_aborts;
	uint64_t lease_reaps;       /* leases ended by age or by owner */
	struct kvr_calibration calibration; /* also of removed workers */
	/* entries removed, by cause */
	uint64_t expired;           /* due */
	uint64_t evicted_capacity;  /* their worker's cache was full */
	uint64_t evicted_region;    /* the region was full */
	uint64_t orphaned;          /* their worker was removed or reset */
	uint64_t splits;
	uint64_t merges;
	uint64_t extensions;        /* in place */
	uint64_t truncated;         /* prompts not recorded in full */
	uint64_t clock_back;        /* calls with `now` before an earlier one */
	uint64_t recoveries;        /* times the index was emptied: a writer */
	                            /* died, or it was damaged */
	uint64_t busy_writes;       /* writes that KVR_NOWAIT made fail */
	uint64_t read_retries;      /* reads repeated: a concurrent write */
	uint64_t read_locks;        /* reads that took the lock in the end */
	/*
	 * The most that any one writing call did. Bounds, which depend on the
	 * call's own sizes alone, are in kvroute-cost(7).
	 */
	uint64_t max_steps;         /* links followed from cell to cell */
	uint64_t max_cells;         /* allocated */
	uint64_t max_reclaimed;     /* entries removed, and pinned ones */
	                            /* passed over */
	/* experimental: see kvr_affinity(3) */
	uint64_t affinity_entries;  /* places for bindings */
	uint64_t affinity_bindings; /* taken, also by expired or void ones */
	uint64_t affinity_found;    /* leases opened with a live binding */
	uint64_t affinity_moved;    /* live bindings bound to another worker */
	uint64_t affinity_evicted;  /* live ones that left for room */
	/* experimental: see kvr_journal(3) */
	uint64_t journal_bytes;     /* size of the journal */
	uint64_t journal_written;   /* bytes of all records so far */
	uint64_t journal_overruns;  /* reads that found records lost */
	int64_t journal_beat;       /* the latest kvr_journal_beat; or -1 */
	/* of the leases opened, also of removed workers */
	uint64_t prompt_tokens;
	uint64_t predicted_tokens;  /* of them, predicted to be cached */
	uint64_t best_tokens;       /* the same, had each gone to best_worker */
	                            /* of kvr_decision */
};
int kvr_stats_get(const struct kvr *k, struct kvr_stats *out);

struct kvr_worker_stats {
	size_t size;
	uint64_t entries;
	uint64_t held_blocks;
	uint64_t requests;          /* running: leases and external load */
	uint64_t prefill_tokens;
	uint64_t active_blocks;     /* prompt blocks, shared ones once */
	uint64_t output_blocks;     /* generated, and prompt blocks not */
	                            /* recorded */
	uint64_t lease_opens;       /* requests routed here, so far */
	uint64_t prompt_tokens;     /* of them */
	uint64_t predicted_tokens;  /* of them, predicted to be cached */
	uint32_t overloaded;        /* 1: above a threshold of the policy */
	uint32_t retain;            /* enum kvr_retain in force; never auto */
	struct kvr_calibration calibration;
	/* learnt from reports; 0: nothing yet */
	uint64_t learnt_capacity;   /* tokens */
	uint32_t learnt_block;      /* tokens of the engine's blocks */
	uint32_t reserved;
	double prefill_rate;        /* tokens a second, current estimate */
	double backlog;             /* seconds of prefill booked, at the */
	                            /* time of the last writing call */
	/* experimental: see kvr_events(3); also of earlier incarnations */
	uint64_t events_batches;    /* applied */
	uint64_t events_stored;     /* blocks of the engine, */
	uint64_t events_removed;    /* by batches that were applied */
	uint64_t events_refused;    /* events that no use was made of */
	uint64_t events_cleared;    /* times that all was dropped */
	uint64_t events_restarts;
	uint64_t events_lost;       /* calls of kvr_events_lost */
	uint64_t events_next;       /* sequence number of the next batch */
	uint64_t events_held;       /* engine blocks that it has now; 0: not */
	                            /* known */
	uint64_t events_capacity;   /* tokens, by counting; 0: not yet */
	uint64_t events_blocks;     /* aliases: blocks known by their names */
	uint64_t events_orphans;    /* engine blocks, behind an unknown one */
	int64_t events_at;          /* time of the last batch; -1: none */
	uint32_t events_state;      /* enum kvr_events_state */
	uint32_t window_mode;       /* enum kvr_window */
	uint64_t best_tokens;       /* of the requests routed here, predicted */
	                            /* to be cached had each gone to */
	                            /* best_worker of kvr_decision */
	uint64_t events_evicted;    /* entries known by events that left a */
	                            /* full region */
	uint64_t events_unseen;     /* engine blocks, of scopes that no */
	                            /* prompt had had */
	int64_t events_until;       /* of kvr_events_until; or 0 */
	uint32_t events_cause;      /* enum kvr_events_cause */
	uint32_t events_reserved;
};
int kvr_worker_stats_get(const struct kvr *k, uint64_t worker,
    struct kvr_worker_stats *out);

/*
 * Both structs as text for Prometheus (format 0.0.4), with one sample per
 * worker for each worker metric. *length is that of the whole text. At most
 * `capacity` bytes are written, without NUL: all of the text or, if it is
 * longer, the lines that fit, padded with newlines. After an error the text is
 * unspecified. O(workers); the lock is held for one worker at a time.
 * KVR_ENOMEM: there is no memory for the numbers of all workers.
 */
int kvr_metrics(const struct kvr *k, char *text, size_t capacity,
    size_t *length);

/*
 * Verifies every invariant, O(everything), under the lock. KVR_EINEXACT: only
 * counts, loads or estimates are wrong, and kvr_open would compute them anew;
 * KVR_ECORRUPT: the index is broken, and kvr_open would empty it.
 */
int kvr_check(const struct kvr *k);

/* -------------------------------------------------------- experimental --- */

/*
 * The rest may change in any release, and so may kvr_options.eagle, all that is
 * named affinity, journal, peer or events, and kvroute_events.h and
 * kvroute_replica.h. The symbols have a version node of their own.
 */

/*
 * kvr_route with the caller's overlaps (from an oracle, engine events, a table
 * of yours) in place of the index. Workers not listed have none.
 */
int kvr_choose(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, const struct kvr_overlap *overlaps,
    size_t element, size_t n, int64_t now, struct kvr_decision *out);

/* n whole blocks by their local hashes instead of their tokens or bytes. */
int kvr_prompt_locals(struct kvr_prompt *p, const uint64_t *hashes, size_t n);

/*
 * Why options are refused, or would be: the name of a field, such as "ttl_ns";
 * NULL: none is wrong. k NULL: one that is not valid, or region_bytes if they
 * are too few. Else also one that is not the region's; a handle opened without
 * options answers after KVR_EMISMATCH.
 */
const char *kvr_options_fault(const struct kvr *k,
    const struct kvr_options *options);

/*
 * Text to struct, in one syntax for all programs: words NAME=VALUE with blanks
 * or newlines between, such as "size=64m block=256 ttl=2m". The names of a
 * policy stand in brackets: "dynamo[credit=2,prefill=4]". Fields that are not
 * named stay as they are: begin with the init function. KVR_EUNKNOWN: a name is
 * not known; programs that have names of their own put blanks in place of their
 * words first. KVR_EINVAL: a value, or a name that comes twice. After an error
 * *offset is where that word begins, and *why a sentence about it, which is
 * never freed; both may be NULL.
 */
int kvr_options_parse(struct kvr_options *options, const char *text,
    size_t length, size_t *offset, const char **why);
int kvr_policy_parse(struct kvr_policy *policy, const char *text,
    size_t length, size_t *offset, const char **why);
int kvr_worker_parse(struct kvr_worker *facts, const char *text, size_t length,
    size_t *offset, const char **why);

/*
 * The part of the region that is the caller's own, of kvr_options.user_bytes,
 * at a multiple of 64 bytes; all that open the region share it. It is zero in a
 * new region, and the library never reads or writes it again: it stays as it is
 * when the region is cleared, emptied or recovered. *area is valid until the
 * handle is freed, and must not be written by a read-only handle. KVR_ESTATE:
 * the region has no such part.
 */
enum { KVR_USER_BYTES_MAX = 1 << 30 };
int kvr_user_area(const struct kvr *k, void **area, size_t *bytes);

/* These write the defaults, which are 0, and `size`. */
int kvr_decision_init(struct kvr_decision *decision, size_t size);
int kvr_load_init(struct kvr_load *load, size_t size);
int kvr_report_init(struct kvr_report *report, size_t size);

/* kvr_worker_add; or, if it exists, kvr_worker_set. *id is its id. */
int kvr_worker_put(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, uint64_t *id);
/*
 * Removes all workers but these; *removed (may be NULL) counts them.
 * KVR_EWORKER: one of them was removed or reset; then nothing has changed.
 */
int kvr_worker_keep(struct kvr *k, const uint64_t *ids, size_t n,
    uint32_t *removed);

/* The load that a source has set by kvr_worker_set_load, as in force. */
int kvr_worker_get_load(const struct kvr *k, uint64_t id, uint32_t source,
    struct kvr_load *out);

/*
 * Saves the end of a prompt, after kvr_prompt_end, to go on there later: for
 * callers that extend a lease when its answer has passed, and would have to
 * keep the whole prompt until then. About a hundred bytes and the incomplete
 * last block, which is text; no hash but one, no pointer, no allowed workers.
 * Valid where the prompt is; for this machine.
 */
/* The bytes of kvr_prompt_save; 0 if p is NULL or not closed. */
size_t kvr_prompt_saved_bytes(const struct kvr_prompt *p);
/* `bytes`, the room at `out`, is at least that. */
int kvr_prompt_save(const struct kvr_prompt *p, void *out, size_t bytes);
/*
 * Replaces the content of p: as if begun, and given all that the saved one
 * had, but without the hashes of its blocks. More tokens or bytes follow, then
 * end. Such a prompt can be saved again and is for kvr_lease_extend only; calls
 * that need all of a prompt (kvr_match, kvr_lease_open, ...) are KVR_ESTATE.
 * `bytes` is the number of kvr_prompt_saved_bytes. Damaged or cut: KVR_EFORMAT;
 * of a region that hashes in another way: KVR_EMISMATCH.
 */
int kvr_prompt_resume(struct kvr_prompt *p, const void *saved, size_t bytes);

/*
 * Owners of open leases, those with the oldest leases first, to find those that
 * died. *cursor 0 begins, 0 is the end; each call examines some leases. Writes
 * at most `capacity`, *count of them, maybe none; each once in a call.
 */
int kvr_owner_list(const struct kvr *k, uint64_t *cursor, uint64_t *owners,
    size_t capacity, size_t *count);
/*
 * Ends the leases of a dead owner, a few in each call: *cursor 0 begins, 0 is
 * the end. *ended (may be NULL) counts those of this call.
 */
int kvr_owner_reap(struct kvr *k, uint64_t owner, int64_t now,
    uint64_t *cursor, uint32_t *ended);

/*
 * Affinity keeps the requests of a session together where their text does not.
 * A session is a digest, which a request carries; a table in the region binds
 * it to the worker that it was sent to last. See kvr_affinity(3).
 */
enum { KVR_AFFINITY_ENTRIES_MAX = 1 << 24 };

enum kvr_affinity_mode {
	KVR_AFFINITY_HARD = 0, /* the bound worker, while it is eligible and */
	                       /* below the bound of the balanced cost */
	KVR_AFFINITY_HASH = 1  /* no table: the same by a hash of the key, */
	                       /* the same in all routers */
};

/* The outcome of the affinity of a request. */
enum kvr_affinity_outcome {
	KVR_AFFINITY_NONE = 0, /* the request has none, or it does not count */
	KVR_AFFINITY_HIT = 1,  /* the bound worker was taken */
	KVR_AFFINITY_NEW = 2,  /* there is no binding */
	KVR_AFFINITY_MOVED = 3,/* another than the bound worker was taken */
	KVR_AFFINITY_GONE = 4  /* the same: it was removed or reset */
};

/*
 * The digest of a key, within a tenant; keyed by the region's secret, and never
 * 0. A key without a tenant has tenant_len 0.
 */
int kvr_affinity_key(const struct kvr *k, const void *tenant,
    size_t tenant_len, const void *key, size_t key_len, uint64_t *out);
/*
 * Binds without a lease, as for the id of an answer. ttl: as of a request.
 * KVR_ESTATE: the region has no table.
 */
int kvr_affinity_bind(struct kvr *k, uint64_t affinity, uint64_t worker,
    int64_t ttl, int64_t now, uint32_t flags);
/*
 * The worker that is bound, which may be ineligible. KVR_EUNBOUND: none;
 * KVR_EWORKER: it was removed or reset.
 */
int kvr_affinity_find(const struct kvr *k, uint64_t affinity, int64_t now,
    uint64_t *worker);

/*
 * The tenants of a region, which are those of the scopes of prompts, share it
 * when it is full: the one that has most of it for its share loses its oldest
 * prefixes first. See kvr_tenant(3).
 */
enum {
	KVR_TENANTS_MAX = 1024, /* kvr_options.tenants */
	KVR_SHARE_DEFAULT = 100,
	KVR_SHARE_MAX = 10000   /* kvr_request.share */
};

struct kvr_tenant {
	uint64_t digest;   /* of KVR_SCOPE_TENANT; 0: the rest */
	uint64_t bytes;    /* of the region */
	uint64_t evicted;  /* entries lost because the region was full */
	uint32_t share;
	uint32_t reserved;
};
/*
 * Tenants that have a part of the region, or lost some. *cursor 0 begins, 0 is
 * the end; at most `capacity`, *count of them. KVR_ESTATE: the region is not
 * shared.
 */
int kvr_tenant_list(const struct kvr *k, uint64_t *cursor,
    struct kvr_tenant *out, size_t element, size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
