/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - the region: one flat piece of memory that holds an index.
 *
 * THE IDEA. Everything an index knows lies in one contiguous region of a size
 * fixed when it is made. Links inside are 32-bit numbers of cells, never
 * pointers, so the region may be private, shared, or mapped at another
 * address in every process; a stale link still points inside.
 *
 *   +--------+-------+-------+------------+---------+---------+-----------+
 *   | region | slots | names | tournament | nodes'  | entries'| cells     |
 *   | header | 2 x W |   W   |            | buckets | buckets | 64 B each |
 *   +--------+-------+-------+------------+---------+---------+-----------+
 *    durable: options, secret, workers      disposable: a cache of hints
 *
 * CELLS are all of one size, so memory never fragments. A cell is
 *   node    a run of blocks in the radix tree (index.c)
 *   piece   16 hashes of a run, or 16 links to pieces (run.c)
 *   hold    one worker's hold on one node: an "entry" (entry.c)
 *   group   the (stamp, worker) pairs of 6 holds, what a match reads (entry.c)
 *           and, above many groups, pieces of links to them
 *   lease   one request in flight (lease.c)
 * Cell 0 is never used: 0 is "none", and a link out of bounds reads as 0.
 *
 * SLOTS. A worker lives in a slot; there are twice as many slots as workers.
 * Removing or restarting a worker retires its slot at once: the slot's lists
 * are spliced onto a list of the dead and reclaimed little by little; a slot
 * is used again when nothing refers to it any more.
 *
 * This is what a region file holds: whoever changes a struct here raises
 * FORMAT_VERSION in region.c.
 */
#ifndef KVR_FORMAT_H
#define KVR_FORMAT_H

#include "hash.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	CELL = 64,           /* bytes */
	BLOCK_BYTES_MAX = 256 * 1024, /* of a block, in bytes or in tokens */
	PIECE = 16,          /* hashes, or links, in a piece of a run */
	PAIRS = 6,           /* (stamp, word) pairs in a group */
	HOLD_CELLS_MAX = 6, /* of one entry: a group, and links to it */
	RUN_LEVELS = 7,      /* of a run's tree: 16^7 hashes */
	RECORD_MAX = 1 << 27, /* blocks of a prompt: half of such a tree */
	MAGAZINE = 64,       /* cells at hand for the next allocations, */
	MAGAZINE_LOW = 32,   /* and when to fetch more */
	STEPS_MIN = 1 << 18,  /* and for each cell so many: see BROKEN */
	STEPS_PER_CELL = 512,
	CHAIN_USUAL = 64,    /* of a bucket; hardly any is longer */
	CHAIN_MAX = 4096,   /* of a bucket; a keyed hash makes no such chain */
	SLOTS_PER_WORKER = 2
};

/* Never live, whatever the time to live; the stamp of the unconfirmed. */
#define STAMP_NONE INT64_MIN
/* How far ahead of the clock a `now` may be: about three years. */
#define CLOCK_LEAP INT64_C(100000000000000000)
/* No clock shows more: 146 years. Leaves room for sums, and for "none". */
#define CLOCK_MAX (INT64_MAX / 2)
/* A TTL that no clock outlasts. */
#define TTL_NEVER (CLOCK_MAX + 1)

enum cell_kind { CELL_FREE, CELL_TREE, CELL_NODE, CELL_ENTRY, CELL_LEASE };

/*
 * What a match needs of an entry. word: the slot, and two flags. The pair of a
 * node's only entry stands in the node; pairs of several stand in groups.
 */
enum {
	WORD_SLOT = 0x1fff,  /* KVR_WORKERS_MAX * SLOTS_PER_WORKER - 1 */
	WORD_TRIMMED = 0x4000, /* not all of the run: see struct entry */
	WORD_PINNED = 0x8000 /* live whatever the stamp */
};

struct node {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t level;     /* of the run's tree of pieces; 0: one piece */
	uint16_t holders;  /* entries of this node, dead ones too */
	uint64_t end;      /* sequence hash of the last block, all 64 bits */
	uint64_t prev;     /* sequence hash before the first, or the root */
	uint32_t first;    /* low half of the first block's hash */
	uint32_t parent;   /* node, 0: begins at the root */
	uint32_t children; /* how many */
	uint32_t run;      /* topmost piece */
	uint32_t begin;    /* the run is [begin, begin + length) of the tree */
	uint32_t length;   /* blocks; at least 1 */
	uint32_t entries; /* one holder: its entry; more: the groups' topmost */
	uint16_t word;     /* one holder: its pair */
	uint16_t reserved;
	int64_t stamp;
};

struct group {
	int64_t stamp[PAIRS];
	uint16_t word[PAIRS];
	uint32_t reserved;
};

enum entry_flags { ENTRY_LISTED = 1, ENTRY_IDLE = 2, ENTRY_UNCONFIRMED = 4 };

struct entry {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t flags;     /* enum entry_flags */
	uint16_t slot;
	uint32_t node;
	uint32_t group;    /* where the pair is; 0: in the node */
	uint32_t lane;     /* which of the group */
	uint32_t pins;     /* leases that hold it */
	int64_t stamp;     /* the pair's is a copy */
	uint32_t stamp_prev, stamp_next;     /* ENTRY_LISTED */
	uint32_t release_prev, release_next; /* ENTRY_IDLE */
	uint32_t trimmed;  /* of the run's last blocks, given up before the */
	                   /* rest; of node 0: see entry_add_anonymous */
	uint32_t anchor;   /* tokens of a prompt that ended here; or 0 */
	uint64_t released; /* volume of the worker when it became idle */
};

enum lease_flags {
	LEASE_COMMITTED = 1,  /* dispatched; without: merely reserved */
	LEASE_DECODING = 2,   /* its first token came */
	LEASE_UNRECORDED = 4, /* its prefix is not to be recorded */
	LEASE_VOID = 8,       /* its worker has gone */
	LEASE_PREFILLING = 16 /* its prefill is booked: rate.c */
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
	uint32_t reserved;
	uint32_t node;     /* end of the recorded path; 0: nothing recorded */
	uint32_t blocks;   /* recorded */
	uint32_t private;  /* blocks booked as load though not recorded */
	uint32_t output;   /* generated blocks booked as load */
	uint32_t age_prev, age_next;
};

/* The second cell of a lease: what was predicted when it was opened. */
struct claim {
	uint64_t head;     /* nothing; the kind of a cell stands here */
	uint64_t tokens;   /* of the prompt */
	uint64_t predicted; /* of them, to be cached */
	uint64_t prefill;  /* the others, booked and not yet prefilled */
	uint64_t volume;   /* of the worker, before this request */
	uint32_t overlap;  /* blocks that the worker was believed to entry, */
	uint32_t active;   /* of them, in use by others already */
	uint32_t ahead;    /* blocks that it will need yet, booked, */
	uint32_t tail;     /* of them, begun by the end of the prompt */
	uint32_t prompt;   /* whole blocks of the prompt */
	uint32_t reserved;
};

/* A free cell, or a whole run of pieces under what was its node. */
struct tree {
	uint32_t next;     /* on the stack of the free */
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

/* What reports said, and had been predicted. */
struct calibration {
	uint64_t reports, unreported;
	uint64_t reported, predicted, over, under; /* tokens */
	uint64_t purges;
};

/* One worker's place: what those who hold the lock know of it. */
struct slot {
	uint8_t role, state;
	uint8_t over_prefill; /* above a threshold of prefill tokens */
	uint8_t over_blocks;  /* above the threshold of blocks; see worker.c */
	uint32_t dp_group;   /* of the ranks of one name: its number */
	uint64_t taints;     /* readers look at them too */
	uint64_t prefill;    /* tokens: of leases and from outside */
	uint64_t blocks;     /* active, output and private, and outside's */
	double weight;       /* readers look at it too */
	uint32_t requests;   /* leases' and outside's */
	uint32_t name;       /* its number in the names; readers look too */

	struct list by_stamp;
	struct list by_release;
	uint64_t held;       /* blocks */
	uint32_t entries;
	uint32_t leases;
	uint64_t active;     /* blocks pinned by leases, each once */
	uint64_t output;     /* of blocks: output and private */
	uint32_t rank;
	uint32_t retired;    /* removed or reset; still referred to */

	uint64_t capacity, max_batched;
	double prefill_rate;
	uint64_t load_prefill, load_blocks,
	    load_used; /* sums of struct outside */
	uint32_t load_requests;
	uint8_t retain, eviction;
	uint8_t mode;        /* enum kvr_retain in force; readers look too */
	uint8_t own_ttl;     /* its TTL is not the region's; counted */
	uint64_t lease_opens;

	/* how long blocks stay: retain.c */
	int64_t ttl;         /* of an entry after its stamp: TTL_NEVER */
	uint64_t volume;     /* tokens that were new here, so far */
	uint64_t ahead;      /* blocks that running requests will need yet */
	uint64_t anonymous;   /* blocks of answers, believed to be cached */
	uint64_t purge;      /* what was released up to this volume goes */
	uint64_t suspect;    /* the same, if another report says so */
	uint64_t lost;       /* released before this: older than that */
	uint64_t shown;      /* endpoints that have reported cached tokens */
	uint32_t block_tokens, learnt_block; /* of the engine; 0: not known */

	/* how fast it prefills: rate.c */
	int64_t free_at;     /* when it will have prefilled all booked */
	int64_t last_first;  /* when a first token came last */
	double rate_tokens, rate_seconds; /* of prefill seen lately */
	uint32_t prefilling; /* leases before their first token */
	uint32_t common;     /* divisor of the last cached tokens reported, */
	uint32_t common_of;  /* and how many they were */
	uint32_t reserved;
	uint64_t prompt_tokens, predicted_tokens;

	struct calibration seen;
	double completion;   /* tokens of one, mean of the latest */
	uint64_t completions; /* that were reported */
	uint64_t common_kinds; /* a bit for each of them, by its hash */

};
_Static_assert(sizeof(struct slot) == 6 * CELL, "a slot is six lines");

/*
 * How likely a block is still there when so many tokens have been prefilled on
 * its worker since it became idle: hits and misses by age: survival.c.
 */
enum { AGES = 64 };
struct survival {
	float hit[AGES], miss[AGES];
	float likely[AGES]; /* S, less what it is when nothing is known */
	float later_hit, later_due; /* of what is older than something lost */
};

/* Role, state and the rest of a slot in one word. */
enum gate {
	GATE_ROLE = 0x3,      /* enum kvr_role */
	GATE_STATE = 0x30,    /* enum kvr_state << 4 */
	GATE_OVERLOADED = 0x100,    /* above a threshold */
	GATE_WEIGHTED = 0x200, /* its weight is not 1 */
	GATE_FREE = 0x400,    /* the slot is nobody's */
	GATE_UNSURE = 0x800   /* not all that it holds will hit: expect.c */
};

/* The ranks of one name: a worker is overloaded if all of them are busy. */
struct dp_group {
	uint32_t ranks; /* 0: the number is free */
	uint32_t not_overloaded; /* of them; read without the lock too */
};

struct name {
	uint32_t next; /* in the bucket, or the next free one */
	uint16_t slot;
	uint8_t used;
	uint8_t length;
	char text[KVR_NAME_MAX + 1];
};
_Static_assert(sizeof(struct name) % 8 == 0, "names are followed by words");

/* What runs on a worker beside its leases, by who said so. */
struct outside {
	struct {
		uint64_t prefill; /* tokens */
		uint64_t blocks, requests, used;
	} source[KVR_LOAD_SOURCES];
};

/* Sizes and places of everything, made from the options alone. */
struct layout {
	uint64_t slots_at, generations_at, names_at, name_buckets_at;
	uint64_t loads_at, dp_groups_at, outside_at, survival_at;
	uint64_t due_at, stamped_at, due_winner_at, stamped_winner_at;
	uint64_t node_buckets_at, entry_buckets_at, cells_at, end;
	uint32_t slots, names, name_buckets, leaves;
	uint32_t node_buckets, entry_buckets, cells, pad;
};

/* What makes hashes comparable; what attach checks; sealed by a checksum. */
struct seal {
	uint64_t magic;
	uint32_t version;
	uint32_t byte_order;
	uint64_t bytes;
	int64_t ttl, lease_limit, idle_limit;
	uint32_t max_workers, max_prompt_blocks;
	struct hash_rule rule;
	uint64_t table_key[12]; /* never leaves the region */
	struct layout layout;
};

struct counts {
	uint64_t nodes, entries, blocks, held, leases;
	struct calibration seen;
	uint64_t observes, lease_opens, lease_commits, lease_finishes;
	uint64_t lease_aborts, lease_reaps;
	uint64_t expired, evicted_capacity, evicted_region, orphaned;
	uint64_t splits, merges, extensions, truncated, clock_back, recoveries;
	uint64_t max_steps, max_cells, max_reclaimed;
	uint64_t steps, cells, reclaimed; /* of the writing call under way */
};

struct region {
	struct seal seal;
	uint64_t checksum;   /* of the seal */
	uint32_t shared;     /* the lock is for processes, and robust */

	/* What readers look at without the lock, in lines of their own. */
	_Alignas(CELL) _Atomic uint64_t
	    seq;             /* of the seqlock; odd: a change goes on */
	int64_t clock;       /* largest now of a writing call; -1: none yet */
	uint32_t slots_used; /* slots beyond this were never in use */
	uint32_t own_ttl;    /* slots in use whose TTL is their own */
	double arrivals;     /* tokens to prefill, lately: rate.c */
	int64_t arrivals_at;
	double fleet_tokens, fleet_seconds; /* of prefill, of all workers */
	struct kvr_policy policy;

	/* A line each: locks differ in size, and layouts must not. */
	_Alignas(CELL) pthread_mutex_t lock;
	_Alignas(CELL) _Atomic uint64_t busy_writes; /* without the lock, */
	                                         /* as the next two */
	_Atomic uint64_t read_retries;
	_Atomic uint64_t read_locks;

	/* durable, changed by writers */
	/* the boot of the system under which it was last used, or 0 */
	_Alignas(CELL) unsigned char boot_id[KVR_BOOT_ID_BYTES];
	uint32_t workers;
	uint32_t name_free;  /* list of names, number + 1 */
	uint32_t slot_free;  /* list of slots by their `name`, slot + 1 */

	/* disposable */
	uint32_t reserved;
	uint64_t lease_number;
	uint64_t reserved_2;
	uint32_t rate_turn;  /* slot whose pace is looked at next */
	uint32_t stamped_kept;     /* 1: the second tournament is kept up */
	struct list dead;    /* entries of retired slots, by stamp links */
	uint32_t lease_first, lease_last; /* by age */
	uint32_t free_top;   /* stack of struct tree */
	uint32_t fresh;      /* cells from here on were never used */
	uint32_t free_cells; /* all that are free, wherever */
	uint32_t magazine_first, magazine_count;
	uint32_t magazine[MAGAZINE]; /* a queue that goes round */
	struct counts counts;
};

_Static_assert(sizeof(pthread_mutex_t) <= CELL, "a lock fits a line");

#endif
