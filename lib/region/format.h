/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - the region: one flat piece of memory that holds an index.
 *
 * THE IDEA. All state of an index is in one contiguous region of fixed size.
 * Internal links are 32-bit cell numbers, never pointers, so the region may be
 * private, shared, or mapped at another address in every process; a stale link
 * still points inside.
 *
 *   +--------+-------+-------+------------+---------+---------+-----------+
 *   | region | slots | names | tournament | nodes'  | entries'| cells     |
 *   | header | 2 x W |   W   | bindings   | buckets | buckets | 64 B each |
 *   | seats  |       |       | aliases    |         |         |           |
 *   |        |       |       | journal    |         |         |           |
 *   |        |       |       | user area  |         |         | tenants   |
 *   +--------+-------+-------+------------+---------+---------+-----------+
 *    durable: options, secret, workers      disposable: a cache of hints
 *
 * Bindings of sessions (affinity.c) are hints too, but need nothing else: they
 * are kept when the rest is emptied after a death. So is the journal, in which
 * others read all changes (journal.c).
 * The user area is the caller's: nothing here reads it. Aliases are the
 * engines' own names of blocks: alias.c. Tenants share a full
 * region: tenant.c.
 *
 * CELLS all have one size, so memory never fragments. A cell is
 *   node    a run of blocks in the radix tree (index.c)
 *   piece   16 hashes of a run, or 16 links to pieces (run.c)
 *   entry   one worker on one node (entry.c); live while it is pinned or its
 *           stamp is younger than the TTL (index.c)
 *   group   the (stamp, worker) pairs of 6 entries, which a match reads
 *           (entry.c), and, above many groups, pieces of links to them
 *   lease   one request in flight (lease.c); a second cell is its claim
 * Cell 0 is never used: 0 is "none", and a link out of bounds reads as 0.
 *
 * SLOTS. A worker occupies a slot; there are twice as many slots as workers.
 * Removing or restarting a worker retires its slot at once: the slot's entries
 * are spliced onto the list of dead ones and reclaimed a few at a time. A slot
 * is reused when nothing refers to it any more.
 *
 * SEATS are the handles that may write: seat.c.
 *
 * READERS do without the lock: a seqlock (seq below) shows whether they have
 * read a consistent state. If not, they retry, and take the lock after a few
 * attempts (txn.c).
 *
 * These structs are the format of a region file: any change to them must raise
 * FORMAT_VERSION in region.c.
 */
#ifndef KVR_FORMAT_H
#define KVR_FORMAT_H

#include "hash.h"

#include <stdatomic.h>

enum {
	CELL = 64,           /* bytes */
	BLOCK_BYTES_MAX = 256 * 1024, /* of a block; also its limit in tokens */
	PIECE = 16,          /* hashes or links per piece of a run */
	PAIRS = 6,           /* (stamp, word) pairs per group */
	ENTRY_CELLS_MAX = 6, /* per entry: a group, and links to it */
	RUN_LEVELS = 7,      /* of a run's tree: 16^7 hashes */
	RECORD_MAX = 1 << 27, /* blocks per prompt: half of such a tree */
	MAGAZINE = 64,       /* cells at hand for the next allocations, */
	MAGAZINE_LOW = 32,   /* and when to refill */
	STEPS_MIN = 1 << 18,  /* steps allowed per writing call, */
	STEPS_PER_CELL = 128, /* plus this per cell: see BROKEN in region.h */
	CHAIN_USUAL = 64,    /* of a bucket; few are longer */
	CHAIN_MAX = 4096,   /* of a bucket; a keyed hash makes no such chain */
	LINE_MAX = 1024,    /* nodes in a line of heirs: cover.c */
	CHILDREN_MANY = 0xffff, /* that many children, or more: no number */
	SLOTS_PER_WORKER = 2
};

/* Never live under any TTL; the stamp of unconfirmed entries. */
#define STAMP_NONE INT64_MIN
/* How far ahead of the clock a `now` may be: 30 days. */
#define CLOCK_LEAP (INT64_C(30) * 86400 * 1000000000)
/* The largest clock value: 146 years. Leaves room for sums and for "none". */
#define CLOCK_MAX (INT64_MAX / 2)
/* A TTL that never ends. */
#define TTL_NEVER (CLOCK_MAX + 1)

enum cell_kind { CELL_FREE, CELL_TREE, CELL_NODE, CELL_ENTRY, CELL_LEASE };

/*
 * A match reads only a pair of an entry: its stamp and a word, which has the
 * slot and two flags. The pair of a node's only entry is stored in the node;
 * several pairs are stored in groups.
 */
enum {
	WORD_SLOT = 0x1fff,  /* KVR_WORKERS_MAX * SLOTS_PER_WORKER - 1 */
	WORD_TRIMMED = 0x4000, /* only part of the run: see struct entry */
	WORD_PINNED = 0x8000 /* live regardless of the stamp */
};

struct node {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t level;     /* of the run's tree of pieces; 0: one piece */
	uint16_t holders;  /* entries of this node, also dead ones; not those */
	                   /* further down that cover it: cover.c */
	uint64_t end;      /* sequence hash of the last block, all 64 bits */
	uint64_t prev;     /* sequence hash before the first, or the root */
	uint32_t first;    /* low half of the first block's hash */
	uint32_t parent;   /* node, 0: begins at the root */
	uint32_t heir;     /* child: its holders hold this too; or 0 */
	uint32_t run;      /* topmost piece */
	uint32_t begin;    /* the run is [begin, begin + length) of the tree */
	uint32_t length;   /* blocks; at least 1 */
	uint32_t entries; /* one holder: its entry; more: groups' top */
	uint16_t word;     /* one holder: its pair */
	uint16_t children; /* number of them, or CHILDREN_MANY for good */
	union {
		int64_t stamp;  /* one holder */
		uint64_t slots; /* more: which may be among them: entry.c */
	};
};

struct group {
	int64_t stamp[PAIRS];
	uint16_t word[PAIRS];
	uint32_t reserved;
};

/* Idle: in the list by release, not used since; see order.c. */
enum entry_flags {
	ENTRY_LISTED = 1,
	ENTRY_IDLE = 2,
	ENTRY_UNCONFIRMED = 4,
	ENTRY_MARKED = 8, /* the engine can resume at its end, and */
	ENTRY_WHOLE = 16  /* nothing that goes on behind it was lost: */
	                  /* window.c */
};
enum { ENTRY_LANE = 5 }; /* the lane is above the flags, from this bit on */

struct entry {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t flags;     /* enum entry_flags, and which lane of the group */
	uint16_t slot;
	uint32_t node;     /* where it ends */
	uint32_t group;    /* where the pair is; 0: in the node */
	uint32_t blocks;   /* of the path, up from the node's end: cover.c */
	uint32_t pins;     /* leases that pin it */
	int64_t stamp;     /* the pair's is a copy */
	uint32_t stamp_prev, stamp_next;     /* ENTRY_LISTED */
	uint32_t release_prev, release_next; /* ENTRY_IDLE */
	uint32_t trimmed;  /* of the last of them, evicted before the */
	                   /* rest; if node is 0: see entry_add_anonymous */
	uint32_t anchor;   /* tokens of a prompt that ended here; or 0 */
	uint64_t released; /* worker's clock when it became idle: stack.c */
};

enum lease_flags {
	LEASE_COMMITTED = 1,  /* dispatched; else only opened */
	LEASE_DECODING = 2,   /* its first token has come */
	LEASE_UNRECORDED = 4, /* its prefix must not be recorded */
	LEASE_DETACHED = 8,   /* from its slot: its worker is gone */
	LEASE_PREFILLING = 16, /* its prefill is booked: rate.c */
	LEASE_SILENT = 32     /* no call will report its first token */
};

struct lease {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t flags;     /* enum lease_flags */
	uint16_t slot;
	uint64_t number;
	uint64_t owner;
	int64_t opened;
	uint32_t claim;    /* its second cell */
	uint32_t session;  /* upper half of its digest; or 0: see claim */
	uint32_t node;     /* end of the recorded path; 0: nothing recorded */
	uint32_t blocks;   /* recorded */
	uint32_t private;  /* blocks booked as load though not recorded */
	uint32_t output;   /* generated blocks booked as load */
	uint32_t age_prev, age_next;
};

enum { AGE_PARTS = 3 };
/* The second cell of a lease: the predictions when it was opened. */
struct claim {
	uint32_t session;  /* lower half of the session's digest; or 0 */
	uint8_t kind;      /* CELL_FREE: it is in no bucket */
	uint8_t tail;      /* of `ahead`: a block begun by the prompt's end */
	uint16_t reserved;
	uint32_t tokens;   /* of the prompt */
	uint32_t predicted; /* of them, predicted to be cached */
	uint64_t prefill;  /* the others, booked until prefilled */
	uint32_t ages_end[AGE_PARTS - 1]; /* blocks: ages.c */
	uint32_t overlap;  /* blocks the worker was believed to have, */
	uint32_t active;   /* of them, already in use by others */
	uint32_t ahead;    /* booked blocks that it will still need */
	uint32_t ttl_ms;   /* of the session's binding */
	uint32_t prompt;   /* whole blocks of the prompt */
	uint8_t ages[4];   /* of each part: a bin of survival.c */
};

/* A free cell, or a free run: its whole tree of pieces, in the node's cell. */
struct tree {
	uint32_t next;     /* on the stack of free cells */
	uint8_t kind;
	uint8_t level;
	uint16_t reserved;
	uint32_t run;
	uint32_t first;    /* lowest bottom piece that is left */
	uint32_t last;     /* one past the highest that is left */
	uint32_t pad;
};

union cell {
	struct node node;
	struct group group;
	struct entry entry;
	struct lease lease;
	struct claim claim;
	struct tree tree;
	uint32_t piece[PIECE];
	unsigned char bytes[CELL];
};
_Static_assert(sizeof(union cell) == CELL, "a cell is 64 bytes");
_Static_assert(sizeof(struct group) == CELL, "a group fills a cell");
_Static_assert(sizeof(struct node) == CELL, "a node fills a cell");
_Static_assert(sizeof(struct tree) % 8 == 0, "a tree is whole words");

/* A doubly linked list of entries, oldest first. */
struct list {
	uint32_t head, tail;
};

/* Cached tokens: reported against predicted. */
struct calibration {
	uint64_t reports, unreported;
	uint64_t reported, predicted, over, under; /* tokens */
	/* of reports with a number, evidence or not: tokens */
	uint64_t usage_prompt, usage_cached;
};

/* How an engine keeps layers with sliding windows: window.c. */
enum { WINDOW_QUARTERS = 4 };
struct window {
	uint64_t capacity;   /* tokens in memory of their own; or 0 */
	uint32_t tokens, align, interval;
	uint16_t layers;     /* for one without a window, in hundredths */
	uint8_t mode;        /* enum kvr_window */
	uint8_t reserved;
	/* DUAL: tokens of tails since the first of the times, each one a */
	uint64_t filled;     /* quarter of that memory before the next one */
	uint64_t clock[WINDOW_QUARTERS];
};

enum { FILL_QUARTERS = 4 };
/* One worker's slot. Needs the lock, except where noted. */
struct slot {
	uint8_t role, state;
	uint8_t over_prefill; /* above a threshold of prefill tokens */
	uint8_t over_blocks;  /* above the threshold of blocks; see load.c */
	uint32_t dp_group;   /* number of the name's group of ranks */
	uint64_t taints;     /* also read without the lock */
	uint64_t prefill;    /* tokens: leases' and external */
	uint64_t blocks;     /* active, output, private, external */
	double weight;       /* also read without the lock */
	uint32_t requests;   /* leases' and external */
	uint32_t name;       /* of its name; also read without the lock */

	struct list by_stamp;
	struct list by_release;
	uint64_t held;       /* blocks */
	uint32_t entries;
	uint32_t leases;
	uint64_t active;     /* blocks pinned by leases, counted once */
	uint64_t output;     /* of blocks: output and private */
	uint32_t rank;
	uint32_t retired;    /* removed or reset, but still referred to */

	uint64_t capacity, max_batched;
	double prefill_rate;
	/* external load: sums of struct outside */
	uint64_t load_prefill, load_blocks, load_used;
	uint32_t load_requests;
	uint8_t retain, eviction;
	uint8_t mode;        /* enum kvr_retain; also read unlocked */
	uint8_t own_ttl;     /* its TTL is not the region's; counted */
	uint64_t lease_opens;

	/* retention: retain.c */
	int64_t ttl;         /* of an entry after its stamp, or TTL_NEVER */
	uint64_t clock;      /* blocks released so far: stack.c */
	uint64_t ahead;      /* blocks that running requests still need */
	uint64_t anonymous;   /* output blocks believed to be cached */
	uint64_t outlived;   /* entries released before this go: event.c */
	uint64_t filled[FILL_QUARTERS]; /* when another quarter of its cache */
	uint64_t stored;     /* had been stored; tokens since the last one */
	uint64_t shown;      /* endpoints that have reported cached tokens */
	uint32_t block_tokens, learnt_block; /* of the engine; 0: unknown */

	/* prefill speed: rate.c */
	int64_t last_first;  /* time of the latest first token */
	double rate_tokens, rate_seconds; /* of recent prefill */
	uint32_t common;     /* divisor of the latest cached tokens, */
	uint32_t common_of;  /* and the number of such reports */
	uint64_t silent;     /* of prefill whose end no lease reports */
	uint64_t prompt_tokens, predicted_tokens;
	uint64_t reading;    /* tokens of the prompts of open leases */

	struct calibration seen;
	double completion;   /* mean tokens of the latest completions */
	uint64_t completions; /* number reported */
	uint64_t common_kinds; /* values in `common`: a bit each, by hash */
	uint64_t best_tokens; /* as predicted_tokens, where there was most */
	/* tokens of prompts by reports, and as the index estimates them */
	double usage_tokens, usage_estimate;
	uint32_t shortest;   /* find above 0, tokens; or 0: numbers.c */
	uint32_t spare;      /* fills the line */

	struct window window; /* also read without the lock */
};
_Static_assert(sizeof(struct slot) == 8 * CELL, "a slot is eight lines");

/*
 * The probability that a block is still cached, by its age: its depth in the
 * LRU stack of its worker, in tokens (stack.c). Hits and misses by age:
 * survival.c.
 */
enum { AGES = 64, ANSWER_KINDS = 64 };
struct survival {
	float hit[AGES], miss[AGES];
	float likely[AGES]; /* S minus its value when nothing is known */

	/* by which capacity the worker goes in AUTO: trust.c */
	float missed;      /* share of its predictions, lately */
	float judged;      /* reports in that share */
	float more;        /* found beyond it, as a share of prompts */
	float pad;
	uint64_t room;     /* learnt capacity in force, tokens; 0: none */

	/* the meaning of a missing number and of a zero: numbers.c */
	uint16_t numbers[ANSWER_KINDS]; /* the latest answers of a kind */
	uint8_t young;     /* the first quarter of ages asked for; or 0 */
	uint8_t doubted;   /* why a given capacity is not believed, or 0 */
	uint16_t zeros;    /* in a row, though more was predicted */

};
_Static_assert(sizeof(struct survival) % 8 == 0, "words follow survivals");

/* Idle blocks by the epoch of their release: stack.c. */
enum { EPOCHS = 64 };
struct stack {
	uint64_t begin[EPOCHS]; /* ascending */
	uint64_t idle[EPOCHS];  /* blocks */
	uint32_t n, pad;
};

/* Counts of a worker's events, by tier: event_stream.c. */
enum { TIERS = 2 };
enum copies {
	COPIES_NONE,    /* nothing was stored in this life */
	COPIES_COUNTED, /* how often it was stored and not removed */
	COPIES_LISTED   /* a set of tiers: KVR_BATCH_FULL */
};
struct stream {
	uint64_t next;       /* sequence number of the next batch, */
	uint64_t pieces;     /* pieces of it that were applied: */
	                     /* event_piece.c */
	uint64_t begun;      /* if there are any: its digest, or 0, */
	uint64_t cut;        /* and that of its events as they were cut */
	uint64_t first, last; /* digests of batch 0 and of next - 1; or 0 */
	int64_t heard;       /* time of the last batch; -1: none */
	uint64_t held[TIERS]; /* blocks of the engine, */
	uint64_t most[TIERS]; /* the most of them at any time, */
	uint64_t evicted[TIERS]; /* and how many went since it began */
	uint64_t batches, stored, removed, refused;
	uint64_t cleared, restarts, lost, orphans;
	uint64_t unseen;     /* blocks of scopes that no prompt had had */
	uint64_t full;       /* `most` of the GPU when removals set in; or 0 */
	int64_t until;       /* its caller lives until then; 0: it may */
	uint64_t crowded;    /* entries that left a full region */
	uint32_t block_tokens; /* of its blocks; 0: not known */
	uint8_t state;       /* enum kvr_events_state */
	uint8_t uncounted;   /* 1: `held` is not exact */
	uint8_t copies;      /* of its aliases: enum copies */
	uint8_t lacks;       /* 1: in this life, too: not all is held */
	uint32_t life;       /* of its aliases: hold.c; 0: they are void */
	uint32_t aliases;    /* of that life */
	uint32_t cause;      /* enum kvr_events_cause, of `degraded` */
	uint32_t reserved;
};
_Static_assert(sizeof(struct stream) % 8 == 0, "words follow streams");

/* An engine's name of a block: alias.c. A search reads its first fields. */
struct alias {
	uint64_t name;       /* the engine's hash of it */
	uint32_t next;       /* in the bucket, or the next free one */
	uint32_t parent;     /* of the block before; 0: this is a root */
	uint64_t sequence;   /* the index's */
	uint32_t node;       /* which has it, or had: a hint; 0: a root, or */
	                     /* not held: alias_place.c */
	uint32_t children;   /* aliases that have it as parent */
	uint32_t life;       /* of its stream; 0: free */
	uint16_t worker;     /* number of its name */
	uint16_t copies;     /* in the cache; 0: none, or a root */
};
_Static_assert(sizeof(struct alias) == 40, "as kvr_events(3) says");
/* A slot's role, state and conditions in one word. */
enum gate {
	GATE_ROLE = 0x3,      /* enum kvr_role */
	GATE_STATE = 0x30,    /* enum kvr_state << 4 */
	GATE_OVERLOADED = 0x100,    /* above a threshold */
	GATE_WEIGHTED = 0x200, /* its weight is not 1 */
	GATE_FREE = 0x400,    /* the slot has no worker */
	GATE_UNSURE = 0x800,  /* its overlap may not all hit: expect.c */
	GATE_WINDOW = 0x1000  /* nor resume anywhere: window.c */
};

/*
 * The data-parallel group of a name: it is overloaded if all its ranks that are
 * up are.
 */
struct dp_group {
	uint32_t ranks; /* 0: the number is free */
	uint32_t not_overloaded; /* of them, and up; also read unlocked */
};

struct name {
	uint32_t next; /* in the bucket, or the next free one */
	uint16_t slot;
	uint8_t used;
	uint8_t length;
	char text[KVR_NAME_MAX + 1];
};
_Static_assert(sizeof(struct name) % 8 == 0, "names are followed by words");

/* Limits of one source, so that no sum overflows. */
#define LOAD_MAX (UINT64_C(0x3fffffffffffffff) / KVR_LOAD_SOURCES)
#define LOAD_REQUESTS_MAX (UINT32_C(0x7fffffff) / KVR_LOAD_SOURCES)

/* External load of a worker, by source. */
struct outside {
	struct {
		uint64_t prefill; /* tokens */
		uint64_t blocks, requests, used;
	} source[KVR_LOAD_SOURCES];
};

/* A session and its worker: affinity.c. */
enum { BINDINGS = 8 }; /* in a bucket */
struct binding {
	uint64_t digest;   /* of the session; 0: the place is free */
	uint64_t worker;   /* its id: void when that is */
	int64_t stamp;     /* its last use */
	uint32_t ttl_ms;   /* since the last use */
	uint32_t by_hand;  /* 1: not by a lease */
};
_Static_assert(sizeof(struct binding) == 32, "as kvr_affinity(3) says");

/* A line of the area that is the caller's. */
struct user_line {
	unsigned char bytes[CELL];
};

/* Cells are charged to it: tenant.c. Number 0 has all without a row. */
struct tenant {
	uint64_t digest;   /* of its name; 0: it has none */
	struct list by_stamp; /* its entries that are on a list by stamp */
	uint64_t fill;     /* cells for its share; 0: that list is empty */
	uint32_t cells;    /* of its nodes and entries, with all they need */
	uint32_t share;
	uint64_t evicted;  /* entries, from a full region */
};
_Static_assert(sizeof(struct tenant) == 40, "as kvr_tenant(3) says");

/* One for each cell. */
union belonging {
	uint32_t tenant;   /* of a node */
	struct {           /* of an entry, in that list of its tenant */
		uint32_t prev, next;
	} place;
};
_Static_assert(sizeof(union belonging) == 8, "as kvr_tenant(3) says");

/* How a region is shared, which decides how its lock finds dead owners. */
enum region_kind {
	REGION_PRIVATE, /* by the threads of a process */
	REGION_MEMORY,  /* by processes of one PID namespace */
	REGION_FILE     /* by all that open its file */
};

/* A handle that may write: seat.c. */
enum { SEATS_MIN = 16, SEATS_MAX = 1000, BYTES_PER_SEAT = 1024 };
struct seat {
	_Atomic uint64_t holder; /* its process, and the turn of the seat */
	_Atomic uint64_t room;   /* number of its PID namespace; 0: none */
};

/* Sizes and offsets of everything, derived from options and size alone. */
struct layout {
	uint64_t seats_at, slots_at, generations_at, names_at, name_buckets_at;
	uint64_t load_rows_at, dp_groups_at, outside_at, survival_at;
	uint64_t streams_at, stacks_at;
	uint64_t due_at, stamped_at, due_winner_at, stamped_winner_at;
	uint64_t bindings_at, aliases_at, alias_buckets_at;
	uint64_t journal_at, journal_bytes, user_at, user_bytes;
	uint64_t node_buckets_at, entry_buckets_at, cells_at;
	uint64_t tenants_at, tenant_winner_at, belonging_at, end;
	uint32_t slots, names, name_buckets, leaves;
	uint32_t node_buckets, entry_buckets, cells, seats;
	uint32_t bindings, aliases;
	uint32_t tenants;    /* rows but the first; 0: there is no table */
	uint32_t tenant_leaves; /* rows, and those that fill the tournament */
};

/* The rule of hashes, and all that attach checks; sealed by a checksum. */
struct seal {
	uint64_t magic;
	uint32_t version;
	uint32_t byte_order;
	uint64_t bytes;
	uint32_t max_workers;
	uint32_t kind;       /* enum region_kind */
	uint64_t affinity_entries;
	uint64_t room;       /* REGION_MEMORY: number of the PID namespace */
	uint64_t journal_bytes;
	uint64_t event_blocks;
	uint64_t tenants;
	uint64_t user_bytes;
	struct hash_rule rule;
	uint64_t table_key[12]; /* never leaves the region */
	struct layout layout;
};

/* The default limits, in nanoseconds. */
#define TTL_USUAL (INT64_C(120) * 1000000000)
#define LEASE_LIMIT_USUAL (INT64_C(7 * 86400) * 1000000000)
#define IDLE_LIMIT_USUAL (INT64_C(86400) * 1000000000)
/* Options that a handle which opens the region may change: options.c. */
struct limits {
	int64_t ttl, lease, idle;
	uint64_t prompt_blocks;
	uint64_t digest;     /* of the limits: another one is damage */
};

struct counts {
	uint64_t nodes, entries, blocks, held, leases;
	struct calibration seen;
	uint64_t observes, lease_opens, lease_commits, lease_finishes;
	uint64_t lease_aborts, lease_reaps;
	uint64_t expired, evicted_capacity, evicted_region, orphaned;
	uint64_t splits, merges, extensions, truncated, clock_back, recoveries;
	uint64_t bindings, bindings_found, bindings_moved, bindings_evicted;
	uint64_t prompt_tokens, predicted_tokens, best_tokens;
	uint64_t max_steps, max_cells, max_reclaimed;
	uint64_t steps, cells, reclaimed; /* of the current writing call; */
	uint64_t gained;     /* blocks that a worker did not have before it */
};

enum { SCOPES = 2048 };      /* bits for those that prompts had */

struct region {
	struct seal seal;
	uint64_t checksum;   /* of the seal */
	uint64_t gate;       /* REGION_FILE: the lock file used last: gate.c */

	/* Read without the lock; in cache lines of its own. */
	_Alignas(CELL) _Atomic uint64_t
	    seq;             /* of the seqlock; odd: a change is in progress */
	int64_t clock;       /* largest now of a writing call; -1: none yet */
	uint32_t slots_used; /* slots beyond this were never in use */
	uint32_t own_ttl;    /* slots in use that have their own TTL */
	uint32_t node_buckets_used, entry_buckets_used; /* table.c */
	double fleet_tokens, fleet_seconds; /* prefill of all workers */
	double inserted, asked; /* by all workers lately: pressure.c, */
	int64_t inserted_since; /* since then; -1: nothing */
	int64_t observed_since; /* observed.c */
	struct kvr_policy policy;

	/* A line each. */
	_Alignas(CELL) _Atomic uint32_t lock; /* lock.c */
	/* counted without the lock */
	_Alignas(CELL) _Atomic uint64_t busy_writes;
	_Atomic uint64_t read_retries;
	_Atomic uint64_t read_locks;
	_Atomic uint64_t journal_overruns;
	_Atomic int64_t journal_beat; /* -1: none */
	/* positions, written under the lock: journal.c */
	_Alignas(CELL) _Atomic uint64_t journal_head;
	_Atomic uint64_t journal_reserved;

	/* durable, changed by writers */
	/* boot id when the region was last used, or 0 */
	_Alignas(CELL) unsigned char boot_id[KVR_BOOT_ID_BYTES];
	struct limits limits;
	uint32_t workers;
	uint32_t name_free;  /* free names: number + 1 */
	uint32_t slot_free;  /* free slots, linked by `name`: slot + 1 */

	/* disposable */
	uint32_t detach_idle; /* leases examined in vain, and the id of */
	uint64_t lease_number;
	uint64_t detach_at;  /* the last one: lease_walk.c */
	uint32_t rate_turn;  /* the last slot to publish its pace */
	uint32_t stamped_kept;     /* 1: the second tournament is current */
	struct list dead;    /* entries of retired slots, linked by stamp */
	uint32_t lease_first, lease_last; /* by age */
	uint32_t free_top;   /* stack of struct tree */
	uint32_t fresh;      /* cells from here on were never used */
	uint32_t free_cells; /* free cells, wherever they are */
	uint32_t magazine_first, magazine_count;
	uint32_t magazine[MAGAZINE]; /* a ring buffer */
	uint32_t alias_life; /* the last one given */
	uint32_t alias_free; /* stack of free aliases */
	uint32_t alias_fresh; /* aliases from here on were never used */
	uint32_t alias_sweep; /* looked at last for dead ones, */
	uint32_t alias_dead; /* so many of them are left */
	int64_t events_due;  /* no `until` is before; 0: there are none */
	uint64_t scopes[SCOPES / 64]; /* bits: a prompt has had them */
	struct counts counts;
};

#endif
