/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - the region: one flat piece of memory that holds an index.
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
 *   hold    one worker's hold on one node: an "entry" (hold.c)
 *   group   the (stamp, worker) pairs of 6 holds, what a match reads (hold.c)
 *           and, above many groups, pieces of links to them
 *   lease   one request in flight (lease.c)
 * Cell 0 is never used: 0 is "none", and a link out of bounds reads as 0.
 *
 * SLOTS. A worker lives in a slot; there are twice as many slots as workers.
 * Removing or restarting a worker retires its slot at once: the slot's lists
 * are spliced onto a list of the dead and reclaimed little by little; a slot
 * is used again when nothing refers to it any more.
 *
 * DIRECTION. Each file may use those before it, never those after it:
 *   hash prompt | region cell run order hold index match | retain survival
 *   rate | worker report lease | policy eligible expect dynamo balanced route |
 *   check call | options recover file | kvroute request stats metrics
 */
#ifndef KVR_INTERNAL_H
#define KVR_INTERNAL_H

#include "hash.h"
#include "set.h"
#include "shared.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	CELL = 64,           /* bytes */
	BLOCK_BYTES_MAX = 256 * 1024, /* of a block, in bytes or in tokens */
	PIECE = 16,          /* hashes, or links, in a piece of a run */
	PAIRS = 6,           /* (stamp, word) pairs in a group */
	HOLD_CELLS_MOST = 6, /* of one hold: a group, and links to it */
	RUN_LEVELS = 7,      /* of a run's tree: 16^7 hashes */
	RECORD_MOST = 1 << 27, /* blocks of a prompt: half of such a tree */
	MAGAZINE = 64,       /* cells at hand for the next allocations, */
	MAGAZINE_LOW = 32,   /* and when to fetch more */
	STEPS_LEAST = 1 << 18,  /* and for each cell so many: see BROKEN */
	STEPS_PER_CELL = 512,
	CHAIN_USUAL = 64,    /* of a bucket; hardly any is longer */
	CHAIN_MOST = 4096,   /* of a bucket; a keyed hash makes no such chain */
	SLOTS_PER_WORKER = 2
};

/* Never live, whatever the time to live; the stamp of the unconfirmed. */
#define STAMP_NONE INT64_MIN
/* How far ahead of the clock a `now` may be: about three years. */
#define CLOCK_LEAP INT64_C(100000000000000000)
/* No clock shows more: 146 years. Leaves room for sums, and for "none". */
#define CLOCK_MOST (INT64_MAX / 2)
/* A life that no clock outlasts. */
#define LIFE_ENDLESS (CLOCK_MOST + 1)

enum cell_kind { CELL_FREE, CELL_TREE, CELL_NODE, CELL_HOLD, CELL_LEASE };

/*
 * What a match needs of a hold. word: the slot, and two flags. The pair of a
 * node's only hold stands in the node; pairs of several stand in groups.
 */
enum {
	WORD_SLOT = 0x1fff,  /* KVR_WORKERS_MAX * SLOTS_PER_WORKER - 1 */
	WORD_TRIMMED = 0x4000, /* not all of the run: see struct hold */
	WORD_PINNED = 0x8000 /* live whatever the stamp */
};

struct node {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t level;     /* of the run's tree of pieces; 0: one piece */
	uint16_t holders;  /* holds on this node, dead ones too */
	uint64_t end;      /* sequence hash of the last block, all 64 bits */
	uint64_t prev;     /* sequence hash before the first, or the root */
	uint32_t first;    /* low half of the first block's hash */
	uint32_t parent;   /* node, 0: begins at the root */
	uint32_t children; /* how many */
	uint32_t run;      /* topmost piece */
	uint32_t begin;    /* the run is [begin, begin + length) of the tree */
	uint32_t length;   /* blocks; at least 1 */
	uint32_t holds;    /* one holder: its hold; more: the groups' topmost */
	uint16_t word;     /* one holder: its pair */
	uint16_t spare;
	int64_t stamp;
};

struct group {
	int64_t stamp[PAIRS];
	uint16_t word[PAIRS];
	uint32_t spare;
};

enum hold_flags { HOLD_LISTED = 1, HOLD_IDLE = 2, HOLD_UNCONFIRMED = 4 };

struct hold {
	uint32_t next;     /* in the bucket */
	uint8_t kind;
	uint8_t flags;     /* enum hold_flags */
	uint16_t slot;
	uint32_t node;
	uint32_t group;    /* where the pair is; 0: in the node */
	uint32_t lane;     /* which of the group */
	uint32_t pins;     /* leases that hold it */
	int64_t stamp;     /* the pair's is a copy */
	uint32_t stamp_prev, stamp_next;     /* HOLD_LISTED */
	uint32_t release_prev, release_next; /* HOLD_IDLE */
	uint32_t gone;     /* of the run's last blocks, given up before the */
	                   /* rest; of node 0: see hold_add_nameless */
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
	uint32_t spare;
	uint32_t node;     /* end of the recorded path; 0: nothing recorded */
	uint32_t blocks;   /* recorded */
	uint32_t private;  /* blocks booked as load though not recorded */
	uint32_t output;   /* generated blocks booked as load */
	uint32_t age_prev, age_next;
};

/* The second cell of a lease: what was foretold when it was opened. */
struct claim {
	uint64_t head;     /* nothing; the kind of a cell stands here */
	uint64_t tokens;   /* of the prompt */
	uint64_t foretold; /* of them, to be cached */
	uint64_t prefill;  /* the others, booked and not yet prefilled */
	uint64_t volume;   /* of the worker, before this request */
	uint32_t overlap;  /* blocks that the worker was believed to hold, */
	uint32_t active;   /* of them, in use by others already */
	uint32_t ahead;    /* blocks that it will need yet, booked, */
	uint32_t tail;     /* of them, begun by the end of the prompt */
	uint32_t prompt;   /* whole blocks of the prompt */
	uint32_t spare;
};

/* A free cell, or a whole run of pieces under what was its node. */
struct tree {
	uint32_t next;     /* on the stack of the free */
	uint8_t kind;
	uint8_t level;
	uint16_t spare;
	uint32_t run;
	uint32_t first;    /* lowest bottom piece that is left */
	uint32_t last;     /* one past the highest that is left */
	uint32_t pad;
};

union cell {
	struct node node;
	struct group group;
	struct hold hold;
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

/* A doubly linked list of holds, oldest first. */
struct list {
	uint32_t head, tail;
};

/* What reports said, and had been foretold. */
struct calibration {
	uint64_t reports, silent;
	uint64_t reported, foretold, over, under; /* tokens */
	uint64_t purges;
};

/* One worker's place: what those who hold the lock know of it. */
struct slot {
	uint8_t role, state;
	uint8_t busy;        /* above a threshold of prefill tokens */
	uint8_t latch;       /* above the threshold of blocks; see worker.c */
	uint32_t team;       /* of the ranks of one name: its number */
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
	uint64_t load_prefill, load_blocks, load_used; /* from outside */
	uint32_t load_requests;
	uint8_t retain, eviction;
	uint8_t mode;        /* enum kvr_retain in force; readers look too */
	uint8_t unlike;      /* its life is not the TTL; counted */
	uint64_t reserves;

	/* how long blocks stay: retain.c */
	int64_t life;        /* of a hold after its stamp: LIFE_ENDLESS */
	uint64_t volume;     /* tokens that were new here, so far */
	uint64_t ahead;      /* blocks that running requests will need yet */
	uint64_t nameless;   /* blocks of answers, believed to be cached */
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
	uint32_t spare_too;
	uint64_t prompt_tokens, predicted_tokens;

	struct calibration seen;
	double answer;       /* tokens of an answer, on average of the last */
	uint64_t answers;    /* that were told */
	uint64_t common_kinds; /* a bit for each of them, by its hash */

};
_Static_assert(sizeof(struct slot) == 6 * CELL, "a slot is six lines");

/*
 * What a choice reads of every worker, each in a row of its own, so that
 * choosing among thousands runs through as little memory as can be. Copies of
 * what the slots say, made by worker_publish.
 */
struct loads {
	double *prefill;    /* tokens */
	double *blocks;
	uint64_t *id;       /* of the worker; 0: the slot is nobody's */
	uint64_t *identity; /* keyed hash of name and rank: ends ties */
	uint32_t *requests;
	uint32_t *gate;     /* 0: nothing unusual; see enum gate */
	int64_t *life;      /* of a hold after its stamp */
	int64_t *free_at;
	double *waiting;    /* of prefill, tokens that no lease booked */
	double *pace;       /* seconds to prefill a token */
};

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
	GATE_BUSY = 0x100,    /* above a threshold */
	GATE_WEIGHTED = 0x200, /* its weight is not 1 */
	GATE_FREE = 0x400,    /* the slot is nobody's */
	GATE_UNSURE = 0x800   /* not all that it holds will hit: expect.c */
};

/* The ranks of one name: a worker is overloaded if all of them are busy. */
struct team {
	uint32_t ranks; /* 0: the number is free */
	uint32_t calm;  /* of them, not busy; readers look at it too */
};

struct name {
	uint32_t next; /* in the bucket, or the next free one */
	uint16_t slot;
	uint8_t used;
	uint8_t length;
	char text[KVR_NAME_MAX + 1];
};
_Static_assert(sizeof(struct name) == 2 * CELL, "a name is two lines");

/* Sizes and places of everything, made from the options alone. */
struct layout {
	uint64_t slots_at, generations_at, names_at, name_buckets_at;
	uint64_t loads_at, teams_at, survival_at;
	uint64_t oldest_at, eldest_at, winner_at, elder_at;
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
	uint32_t secret_kind, pad;
	struct hash_rule rule;
	uint64_t table_key[12]; /* never leaves the region */
	struct layout layout;
};

struct counts {
	uint64_t nodes, entries, blocks, held, leases;
	struct calibration seen;
	uint64_t outgrown;
	uint64_t observes, reserves, commits, finishes, aborts, reaped;
	uint64_t expired, evicted, voided;
	uint64_t splits, merges, extensions, truncated, clock_back, emptied;
	uint64_t most_steps, most_cells, most_reclaimed;
	uint64_t steps, cells, reclaimed; /* of the writing call under way */
};

struct region {
	struct seal seal;
	uint64_t checksum;   /* of the seal */
	uint32_t shared;     /* the lock is for processes, and robust */

	/* What readers look at without the lock, in lines of their own. */
	_Alignas(CELL) _Atomic uint64_t version; /* odd: a change goes on */
	int64_t clock;       /* largest now of a writing call; -1: none yet */
	uint32_t slots_used; /* slots beyond this were never in use */
	uint32_t unlike;     /* slots in use whose life is not the TTL */
	double arrivals;     /* tokens to prefill, lately: rate.c */
	int64_t arrivals_at;
	double fleet_tokens, fleet_seconds; /* of prefill, of all workers */
	struct kvr_policy policy;

	/* A line each: locks differ in size, and layouts must not. */
	_Alignas(CELL) pthread_mutex_t lock;
	_Alignas(CELL) _Atomic uint64_t dropped; /* without the lock, */
	                                         /* as the next two */
	_Atomic uint64_t retried;
	_Atomic uint64_t locked;

	/* durable, changed by writers */
	/* the boot of the system under which it was last used, or 0 */
	_Alignas(CELL) unsigned char boot_id[KVR_BOOT_ID_BYTES];
	uint32_t workers;
	uint32_t name_free;  /* list of names, number + 1 */
	uint32_t slot_free;  /* list of slots by their `name`, slot + 1 */

	/* disposable */
	uint32_t spare;
	uint64_t lease_number;
	uint64_t spare_three;
	uint32_t rate_turn;  /* slot whose pace is looked at next */
	uint32_t elders;     /* 1: the second tournament is kept up */
	struct list dead;    /* holds of retired slots, by stamp links */
	uint32_t lease_first, lease_last; /* by age */
	uint32_t free_top;   /* stack of struct tree */
	uint32_t fresh;      /* cells from here on were never used */
	uint32_t free_cells; /* all that are free, wherever */
	uint32_t magazine_first, magazine_count;
	uint32_t magazine[MAGAZINE]; /* a queue that goes round */
	struct counts counts;
};

_Static_assert(sizeof(pthread_mutex_t) <= CELL, "a lock fits a line");

/* A handle: where this process sees the region. */
struct kvr {
	struct region *region;
	struct slot *slots;
	struct loads loads;
	struct team *teams;
	struct survival *survival; /* of names */
	uint32_t *generations; /* of slots; odd: in use */
	struct name *names;
	uint32_t *name_buckets;
	int64_t *oldest, *eldest; /* the tournaments: order.c */
	uint16_t *winner, *elder;
	uint32_t *node_buckets, *entry_buckets;
	union cell *cells;
	struct layout layout;
	int64_t ttl;
	void *owned;        /* memory to free with the handle, or NULL */
	void *mapped;       /* the same of what was mapped: file.c */
	size_t mapped_bytes;
	int fd;             /* of what was mapped; holds its lock; or -1 */
	bool readonly;      /* the memory cannot be written, nor its lock */
	_Atomic bool nowait; /* no call sleeps */
	unsigned char boot_id[KVR_BOOT_ID_BYTES]; /* of the options, or 0 */
	struct hash_rule rule;
	uint64_t table_key[12];
};

/* Every bit of x goes into every bit of the result; one to one. */
static inline uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xbea225f9eb34556d);
	x = (x ^ x >> 29) * UINT64_C(0xbea225f9eb34556d);
	return x ^ x >> 32;
}

/* A link read from the region is used once, through here. */
static inline union cell *
cell_at(const struct kvr *k, uint32_t i)
{
	return &k->cells[i < k->layout.cells ? i : 0];
}

static inline struct node *
node_at(const struct kvr *k, uint32_t i)
{
	return &cell_at(k, i)->node;
}

static inline struct hold *
hold_at(const struct kvr *k, uint32_t i)
{
	return &cell_at(k, i)->hold;
}

static inline struct lease *
lease_at(const struct kvr *k, uint32_t i)
{
	return &cell_at(k, i)->lease;
}

static inline struct claim *
claim_at(const struct kvr *k, uint32_t i)
{
	return &cell_at(k, i)->claim;
}

static inline struct slot *
slot_at(const struct kvr *k, uint32_t i)
{
	return &k->slots[i < k->layout.slots ? i : 0];
}

static inline bool
slot_in_use(const struct kvr *k, uint32_t i)
{
	return i < k->layout.slots && (look(k->generations[i]) & 1) != 0;
}

/* Tokens in a block; in byte mode an estimate, 4 bytes a token. */
static inline double
rule_block_tokens(const struct hash_rule *rule)
{
	return rule->unit == KVR_UNIT_TOKENS ? rule->block_size
	    : rule->block_size / 4.0;
}

/* Slots beyond this were never in use. */
static inline uint32_t
slots_used(const struct kvr *k)
{
	uint32_t used = look(k->region->slots_used);

	return used < k->layout.slots ? used : k->layout.slots;
}

/*
 * BROKEN. A region may be damaged, by a stray write or by whoever can write to
 * it. Nobody then finds his way, but nobody must walk for ever either: a
 * writing call that has followed so many links that in a whole index there
 * would be nothing left to follow, or that found what cannot be in one, stops
 * where it is, and all is emptied when it ends: call.c.
 */
#define STEPS_BROKEN (UINT64_MAX / 2)

static inline void
region_break(const struct kvr *k)
{
	k->region->counts.steps = STEPS_BROKEN;
}

static inline bool
region_broken(const struct kvr *k)
{
	return k->region->counts.steps >
	    STEPS_LEAST + STEPS_PER_CELL * (uint64_t)k->layout.cells;
}

/*
 * Stamps up to and including the horizon are due at `now`: an entry is live
 * while it is pinned or its stamp is above. Exact for every life: 0 makes all
 * due, an endless one none but the unconfirmed. A life that is none, in a
 * region that is damaged, gives some horizon or other.
 */
static inline int64_t
horizon_of(const struct kvr *k, uint32_t slot, int64_t now)
{
	return (int64_t)((uint64_t)now - (uint64_t)slot_at(k, slot)->life);
}

/* Of workers that go by the region's TTL. */
static inline int64_t
life_by_ttl(const struct kvr *k)
{
	return k->ttl < 0 ? LIFE_ENDLESS : k->ttl;
}

/*
 * Many cells under one: pieces of 16 links, `level` of them one above the
 * other. The number of the i-th cell at the bottom.
 */
static inline uint32_t
links_at(const struct kvr *k, uint32_t top, uint32_t level, uint32_t i)
{
	for (; level > 0; level--)
		top = look(cell_at(k, top)->piece[(i >> (4 * (level - 1))) %
		    PIECE]);
	return top;
}

/* region.c: layout, format, attach, lock */
int region_layout(const struct kvr_options *o, uint64_t bytes,
    struct layout *out);
int region_format(const struct kvr_options *o, const struct hash_rule *rule,
    const uint64_t *table_key, void *memory, uint64_t bytes, bool shared);
int region_attach(void *memory, uint64_t bytes, struct kvr *k);
bool region_blank(const void *head, size_t bytes);
int region_lock_init(struct region *r);
void region_lock_end(struct region *r);
void region_empty(struct kvr *k);
void slot_forgo(struct kvr *k, uint32_t slot);
int region_lock(const struct kvr *k, bool wait);
void region_unlock(const struct kvr *k);
void region_pause(void);

/* cell.c: who gets which cell, and the buckets they hang in */
void cell_fetch(struct kvr *k);
void cell_give(struct kvr *k, uint32_t i);
void cell_give_tree(struct kvr *k, uint32_t node);
void cell_foresee(const struct kvr *k);
uint32_t bucket_of_node(const struct kvr *k, uint64_t prev, uint32_t first);
uint32_t bucket_of_hold(const struct kvr *k, uint32_t node, uint32_t slot);
uint32_t bucket_of_lease(const struct kvr *k, uint64_t number);

/* 0 if there is none; callers make room before they begin a change. */
static inline uint32_t
cell_take(struct kvr *k)
{
	struct region *r = k->region;

	if (r->magazine_count - MAGAZINE_LOW > MAGAZINE - MAGAZINE_LOW)
		cell_fetch(k);
	if (r->magazine_count - 1 >= MAGAZINE)
		return 0;
	r->free_cells--;
	r->counts.cells++;
	r->magazine_count--;
	return r->magazine[r->magazine_first++ % MAGAZINE];
}

/* The same of several, at most MAGAZINE_LOW, or none, into a row of links. */
static inline void
cell_take_row(struct kvr *k, uint32_t *links, uint32_t count)
{
	struct region *r = k->region;
	uint32_t first, i;

	if (r->magazine_count - MAGAZINE_LOW > MAGAZINE - MAGAZINE_LOW)
		cell_fetch(k);
	if (r->magazine_count - count > MAGAZINE - count) {
		region_break(k);
		for (i = 0; i < count; i++)
			put(links[i], 0);
		return;
	}
	first = r->magazine_first;
	for (i = 0; i < count; i++)
		put(links[i], r->magazine[(first + i) % MAGAZINE]);
	r->magazine_first = first + count;
	r->magazine_count -= count;
	r->free_cells -= count;
	r->counts.cells += count;
}

/* run.c: the hashes of a node */
uint32_t run_cells(uint32_t begin, uint32_t end, uint32_t level);
uint32_t run_level(uint32_t end);
uint32_t run_cells_to_append(const struct node *n, uint32_t count);
uint32_t run_get(const struct kvr *k, const struct node *n, uint32_t i);
uint32_t run_common(const struct kvr *k, const struct node *n,
    const uint64_t *hashes, uint32_t limit);
void run_append(struct kvr *k, struct node *n, const uint64_t *hashes,
    uint32_t count);
void run_append_run(struct kvr *k, struct node *n, const struct node *from,
    uint32_t first, uint32_t count);
uint32_t run_cells_to_split(const struct node *n, uint32_t at);
void run_split(struct kvr *k, struct node *lower, uint32_t at,
    struct node *upper);

/* order.c: who is oldest */
void order_append(struct kvr *k, uint32_t hold);
bool order_heads(const struct kvr *k, uint32_t hold);
void order_remove(struct kvr *k, uint32_t hold);
void order_release(struct kvr *k, uint32_t hold);
void order_unrelease(struct kvr *k, uint32_t hold);
void order_copy(struct kvr *k, uint32_t hold, uint32_t older);
void order_settle(struct kvr *k, uint32_t slot);
int64_t order_due(const struct kvr *k, uint32_t slot);
uint32_t order_oldest_slot(const struct kvr *k);
uint32_t order_eldest_slot(struct kvr *k);
int64_t order_stamped(const struct kvr *k, uint32_t slot);
void order_bury(struct kvr *k, uint32_t slot);

/* hold.c: the holds of a node */
/* How many there are; no more than there are slots, whatever a node says. */
static inline uint32_t
node_holders(const struct kvr *k, const struct node *n)
{
	uint32_t holders = look(n->holders);

	return holders < k->layout.slots ? holders : k->layout.slots;
}

uint32_t hold_find(const struct kvr *k, uint32_t node, uint32_t slot);
uint32_t hold_add(struct kvr *k, uint32_t node, uint32_t slot);
uint32_t hold_copy(struct kvr *k, uint32_t node, uint32_t from);
void hold_foresee(const struct kvr *k, const struct hold *h);
void hold_remove(struct kvr *k, uint32_t hold);
void hold_stamp(struct kvr *k, uint32_t hold, int64_t now);
void hold_pin(struct kvr *k, uint32_t hold, int64_t now);
void hold_whole(struct kvr *k, uint32_t hold);
void hold_trim(struct kvr *k, uint32_t hold, uint32_t blocks);
uint32_t hold_blocks(const struct kvr *k, const struct hold *h);
uint32_t hold_look(const struct kvr *k, uint32_t node, uint32_t slot);
void hold_add_nameless(struct kvr *k, uint32_t slot, uint32_t blocks,
    int64_t now);
void hold_split(struct kvr *k, uint32_t lower, uint32_t upper);
bool hold_unpin(struct kvr *k, uint32_t hold);
bool hold_same(const struct kvr *k, uint32_t one, uint32_t other);
void slot_hold_blocks(struct kvr *k, uint32_t slot, uint64_t blocks);
void slot_void(struct kvr *k, uint32_t slot);

uint32_t pairs_slot(const struct kvr *k, const struct node *n, uint32_t i);
uint32_t pairs_cells(uint32_t holders);
uint32_t pairs_cells_to_add(uint32_t holders);

/*
 * The groups of a node that has more than one holder, one after the other:
 *	struct groups at = groups_of(n, look(n->holders));
 *	while ((n_pairs = groups_next(k, &at, &g)) > 0)
 *		use(g->word, g->stamp, n_pairs);
 * All that hang from one piece of links are asked for as it is reached.
 */
struct groups {
	uint32_t top, level, i, left;
	const uint32_t *links; /* of 16 groups, the i-th among them */
};

static inline struct groups
groups_of(const struct node *n, uint32_t holders)
{
	struct groups at = { look(n->holds), 0, 0, holders, &n->holds };
	uint32_t groups = (holders + PAIRS - 1) / PAIRS;

	for (; groups > 1; groups = (groups + PIECE - 1) / PIECE)
		at.level++;
	return at;
}

static inline void
groups_ahead(const struct kvr *k, struct groups *at)
{
	uint32_t i;

	at->links = cell_at(k, links_at(k, at->top, at->level - 1,
	    at->i / PIECE))->piece;
	for (i = 0; i < PIECE && i * PAIRS < at->left; i++)
		__builtin_prefetch(cell_at(k, look(at->links[i])));
}

static inline uint32_t
groups_next(const struct kvr *k, struct groups *at, const struct group **g)
{
	uint32_t pairs = at->left < PAIRS ? at->left : PAIRS;

	if (pairs > 0 && at->level > 0 && at->i % PIECE == 0)
		groups_ahead(k, at);
	if (pairs > 0)
		*g = &cell_at(k, look(at->links[at->i % PIECE]))->group;
	at->i++;
	at->left -= pairs;
	return pairs;
}

/* index.c: the radix tree */
struct path {
	uint32_t node;   /* the last one reached; 0: none */
	uint32_t inside; /* blocks matched of it */
	uint32_t depth;  /* blocks matched in all */
	uint32_t nodes;  /* met on the way, the last one too */
	uint32_t steps;  /* links followed to find them */
};
/*
 * What a match finds, or a caller has found: overlaps, each worker's once, and
 * where in the row each slot's is. Places are counted from `base` on, which
 * grows from match to match: what is below is old, and nothing is to be wiped.
 */
struct found_set {
	uint32_t count;
	uint32_t room;                   /* of `rows` */
	uint32_t steps;                  /* links that were followed */
	uint32_t base;
	struct kvr_overlap *rows;        /* where a match writes */
	const struct kvr_overlap *found; /* the same, or the caller's */
	uint32_t *places;                /* [slots] */
	uint32_t *next_base;             /* outlives the set */
	struct path path;                /* that a match went; nodes 0: none */
};

/* Nobody is found yet. */
static inline void
found_none(const struct kvr *k, struct found_set *set)
{
	set->count = 0;
	memset(&set->path, 0, sizeof(set->path));
	set->base = *set->next_base;
	*set->next_base += k->layout.slots;
}

static inline bool
found_has(const struct found_set *set, uint32_t slot)
{
	return set->places[slot] >= set->base;
}

/* match.c */
void match_overlaps(const struct kvr *k, const struct kvr_prompt *p,
    int64_t now, struct found_set *set);
/* How a path is to be inserted; zero but for `want`: as it is. */
struct insert {
	uint32_t want;      /* blocks */
	bool in_place;      /* a leaf may grow; new blocks are confirmed */
	uint32_t lease_end; /* where the caller's lease ends, or 0: only this */
	                    /* leaf may grow, and the walk begins behind it, */
	uint32_t depth;     /* so many blocks deep */
};
void index_walk(const struct kvr *k, const struct kvr_prompt *p,
    uint32_t want, const struct insert *how, struct path *path);
uint32_t index_missing(const struct kvr *k, const struct path *path,
    uint32_t slot);
uint32_t index_cells(const struct kvr *k, const struct path *path,
    uint32_t want, uint32_t missing);
uint32_t index_insert(struct kvr *k, const struct kvr_prompt *p,
    const struct path *path, uint32_t want, uint32_t slot,
    const struct insert *how);
void index_stamp(struct kvr *k, uint32_t node, uint32_t slot, int64_t now);
void index_pin(struct kvr *k, uint32_t node, uint32_t slot, uint32_t until,
    int64_t now);
void index_unpin(struct kvr *k, uint32_t node, uint32_t slot);
void index_foresee(const struct kvr *k, uint32_t hold);
void index_drop(struct kvr *k, uint32_t hold);
uint32_t index_position(const struct kvr *k, uint32_t node);
uint32_t index_find(const struct kvr *k, const struct kvr_prompt *p,
    uint32_t block);

/* retain.c: who leaves, and when */
void retain_expire(struct kvr *k, int64_t now, uint32_t budget);
bool retain_due(const struct kvr *k, int64_t now);
bool retain_void(struct kvr *k);
uint32_t retain_spare(const struct kvr *k);
void retain_make_room(struct kvr *k, int64_t now, uint32_t cells);
void retain_outgrown(struct kvr *k, uint32_t slot);
void retain_used(struct kvr *k, uint32_t slot, uint64_t held);
void retain_decide(struct kvr *k, uint32_t slot);
uint32_t retain_insert(struct kvr *k, const struct kvr_prompt *p,
    uint32_t slot, const struct insert *how, int64_t now, uint32_t *recorded);

/* survival.c: how likely an idle block is still cached */
double survival_of(const struct kvr *k, uint32_t slot, uint64_t volume,
    uint64_t released);
/* What a report says of some blocks of one age. */
struct witness {
	uint64_t volume;   /* of the worker when the request came */
	uint64_t lost;     /* of the slot, before the report */
	uint64_t released; /* when the blocks became idle */
	double tokens;     /* of them, weighed */
	bool hit;
};
void survival_note(struct kvr *k, uint32_t slot, const struct witness *w);
/* To be called when all of a report has been noted. */
void survival_conclude(struct kvr *k, uint32_t slot);
void survival_forget(struct kvr *k, uint32_t slot);
uint64_t survival_capacity(const struct kvr *k, uint32_t slot);

/* rate.c: prefill rates and backlogs */
void rate_begin(struct region *r);
void rate_mend(struct kvr *k);
bool rate_sane(const struct kvr *k);
double rate_fleet(const struct kvr *k);
void rate_publish(struct kvr *k, uint32_t slot);
double rate_backlog(const struct kvr *k, uint32_t slot, int64_t now);
double rate_arrivals(const struct kvr *k, int64_t now);
void rate_book(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now);
void rate_unbook(struct kvr *k, uint32_t slot, int64_t now);
void rate_learn(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t opened, int64_t now);

/* worker.c: slots, names, facts, loads */
bool worker_find(const struct kvr *k, const char *name, size_t length,
    uint32_t rank, uint32_t *slot);
int worker_add(struct kvr *k, const char *name, size_t length,
    const struct kvr_worker *facts, uint32_t *slot);
void worker_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts);
void worker_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts);
void worker_set_load(struct kvr *k, uint32_t slot,
    const struct kvr_load *load);
size_t worker_name(const struct kvr *k, uint32_t slot,
    char name[KVR_NAME_MAX]);
void worker_recount(struct kvr *k, uint32_t slot);
uint64_t worker_usable(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t tokens);
bool worker_overloaded(const struct kvr *k, uint32_t slot);
void worker_remove(struct kvr *k, uint32_t slot);
void worker_mend(struct kvr *k);
int worker_reset(struct kvr *k, uint32_t slot, uint32_t *fresh);

/* Of the worker in a slot, if there is one. */
static inline uint64_t
worker_id(const struct kvr *k, uint32_t slot)
{
	return slot < k->layout.slots
	    ? (uint64_t)look(k->generations[slot]) << 32 | (slot + 1) : 0;
}

/* False if the id is not, or no longer, that of a worker. */
static inline bool
worker_slot(const struct kvr *k, uint64_t id, uint32_t *slot)
{
	*slot = (uint32_t)id - 1;
	return *slot < k->layout.slots && look(k->loads.id[*slot]) == id;
}

/* report.c: what engines say */
void report_take(struct kvr *k, const struct lease *l, const struct claim *c,
    const struct kvr_report *report);

/* lease.c: requests in flight */
uint32_t lease_find(const struct kvr *k, uint64_t number);
struct booking {
	uint64_t owner;
	uint32_t slot;
	uint64_t cached;   /* tokens that need no prefill */
	uint32_t overlap, active; /* blocks, as the index says */
	bool count_prefill;
	bool record;       /* the prefix, and share its blocks with others */
};
uint32_t lease_blocks(const struct kvr *k, const struct kvr_prompt *p);
uint64_t lease_open(struct kvr *k, const struct kvr_prompt *p,
    const struct booking *b, int64_t now, uint32_t *recorded);
void lease_commit(struct kvr *k, uint32_t lease, int64_t now);
int lease_first_token(struct kvr *k, uint32_t lease, int64_t now);
int lease_extend(struct kvr *k, uint32_t lease, const struct kvr_prompt *p,
    int64_t now);
void lease_output(struct kvr *k, uint32_t lease, uint32_t blocks);
void lease_finish(struct kvr *k, uint32_t lease,
    const struct kvr_report *report, int64_t now);
void lease_abort(struct kvr *k, uint32_t lease, int64_t now);
void lease_reap_old(struct kvr *k, int64_t now, uint32_t budget);
bool lease_void(struct kvr *k);
uint32_t lease_reap_owner(struct kvr *k, uint64_t owner, int64_t now);
size_t lease_owners(const struct kvr *k, uint64_t *owners, size_t capacity);

/* policy.c: what a choice may be asked for, and what is left open */
int policy_check(const struct kvr_policy *policy);
int policy_check_request(const struct kvr_request *r);
void policy_resolve(const struct kvr_policy *policy, struct kvr_request *r);
void policy_read(const struct kvr *k, struct kvr_policy *policy);
void policy_write(struct kvr *k, const struct kvr_policy *policy);

/* eligible.c, route.c: the choice; reads slots and policy, writes nothing */
/* No cost is more. */
#define COST_MAX 1e300
enum { ROUTE_WORDS = KVR_WORKERS_MAX * SLOTS_PER_WORKER / 64 };
/*
 * One question being answered: what is the same for every worker, and the set
 * of those that may be taken. Lives on the stack of one call, under the lock.
 */
struct route {
	const struct kvr *k;
	struct kvr_policy policy;     /* as it was when the call began */
	const struct kvr_prompt *p;
	struct kvr_request request;   /* resolved */
	const struct found_set *set;
	uint64_t tokens;              /* of the prompt */
	uint64_t whole_blocks;        /* in them; the index may hold fewer */
	uint64_t digest;              /* of the whole prompt: ties, sampling */
	double least_prefill;         /* of the eligible */
	double block;                 /* tokens in a block */
	double per_token;             /* 1 / block where that is exact, or 0 */
	double request_blocks;        /* tokens in blocks, rounded up */
	double decay;                 /* of overlap credit; 0: none */
	double lambda;                /* weight of new prefill: balanced.c */
	int64_t now;
	bool usual;                   /* only the usual parts of a cost */
	bool weighted;                /* somebody's weight is not 1 */
	bool unsure;                  /* somebody's overlap is not certain */
	uint32_t eligible;
	uint32_t overloaded;          /* eligible but for their load */
	uint32_t pinned;              /* slot, if the request pins one */
	uint32_t slots;               /* that were ever in use */
	uint32_t words;               /* of the sets below */
	uint64_t open[ROUTE_WORDS];   /* slots the request does not rule out */
	uint64_t take[ROUTE_WORDS];   /* slots that are eligible */
};
struct choice {
	uint64_t worker;
	uint32_t slot;
	uint32_t reason;   /* enum kvr_reason */
	uint32_t eligible; /* how many could have been taken */
	uint32_t blocks;   /* overlap of the worker taken, */
	uint32_t active;   /* of it, in use there */
	uint64_t tokens;   /* of it, expected to be cached */
	uint32_t flags;    /* of the request, resolved */
	double cost;
};
int eligible_find(struct route *t, uint32_t slots);
enum kvr_verdict eligible_verdict(const struct route *t, uint32_t slot);
int eligible_none(const struct route *t);
uint32_t eligible_fleet(const struct route *t);

/* dynamo.c: the reference's cost, of one worker, and the least of all */
void dynamo_simplify(struct route *t);
double dynamo_cost(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held);
void dynamo_take_usual(const struct route *t, struct choice *out);

/* expect.c: how much of an overlap an engine can be expected to find */
double expect_usable(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o);
double expect_surviving(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o);

/* What the caller has found himself is not doubted. */
static inline bool
expect_sure(const struct route *t, uint32_t slot)
{
	return t->set->path.nodes == 0 ||
	    (look(t->k->loads.gate[slot]) & GATE_UNSURE) == 0;
}

/* Blocks of the overlap that the engine could have, however unlikely. */
static inline double
expect_most(const struct route *t, uint32_t slot, const struct kvr_overlap *o)
{
	return expect_sure(t, slot) || o->blocks == 0 ? o->blocks
	    : expect_usable(t, slot, o);
}

/* May some of those have been lost? */
static inline bool
expect_doubtful(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o)
{
	return !expect_sure(t, slot) && o->active_blocks < o->blocks &&
	    look(slot_at(t->k, slot)->mode) == KVR_RETAIN_FEEDBACK;
}

/* Blocks of the overlap that can be expected. */
static inline double
expect_blocks(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o)
{
	return expect_doubtful(t, slot, o) ? expect_surviving(t, slot, o)
	    : expect_most(t, slot, o);
}

/* balanced.c: the cost in seconds */
void balanced_begin(struct route *t);
double balanced_cost(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held);

/* KVR_EEMPTY, or KVR_EWORKER if the pinned worker does not exist. */
int route_begin(struct route *t, const struct kvr *k,
    const struct kvr_prompt *p, const struct kvr_request *r,
    const struct found_set *set, int64_t now);
/* These two are of a slot in use; the cost also of one not eligible. */
enum kvr_verdict route_verdict(const struct route *t, uint32_t slot);
double route_cost(const struct route *t, uint32_t slot);
int route_take(const struct route *t, struct choice *out);
/* begin and take. */
int route_choose(const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set, int64_t now,
    struct choice *out);
double route_disliking(const struct kvr_request *r, uint64_t taints);
uint64_t route_expected(const struct route *t, uint32_t slot);
uint32_t route_new_blocks(const struct kvr_prompt *p,
    const struct kvr_request *r, const struct kvr_overlap *o);

/* What was found for a slot; a zero overlap if nothing was. */
static inline const struct kvr_overlap *
found_of(const struct found_set *set, uint32_t slot)
{
	static const struct kvr_overlap none;

	return found_has(set, slot)
	    ? &set->found[set->places[slot] - set->base] : &none;
}

/* The other way round. */
static inline uint32_t
found_slot(const struct kvr_overlap *o)
{
	return (uint32_t)o->worker - 1;
}

/* check.c: every invariant */
int check_region(const struct kvr *k);
bool check_fleet(const struct kvr *k, struct team *counted); /* check_fleet.c */

/*
 * call.c: what every public call on a region does first and last.
 *
 *	error = call_write(k, &call, now, flags);
 *	if (error != KVR_OK)
 *		return error;
 *	... look, check, change; with call.now as the time ...
 *	return call_written(k, &call, error);
 *
 * Without the lock; what is done between the two may be done again, and may
 * meet words of different moments:
 *
 *	struct call call = { 0 };
 *	do {
 *		error = call_look(k, &call, now, flags);
 *		if (error != KVR_OK)
 *			return error;
 *		... read with look() ...
 *	} while (!call_looked(k, &call));
 *
 * And with it: call_read, then error = call_done(k, &call, error).
 */
struct call {
	int64_t now;      /* the time of the call */
	uint64_t version; /* of the region, when a reader began */
	uint32_t looks;   /* a reader's, so far */
	uint32_t budget;  /* entries to reclaim at the end */
	bool locked;
	bool backward;    /* the caller's was before an earlier one */
};
int call_look(const struct kvr *k, struct call *c, int64_t now,
    uint32_t flags);
bool call_looked(const struct kvr *k, const struct call *c);
int call_read(const struct kvr *k, struct call *c, int64_t now);
int call_done(const struct kvr *k, const struct call *c, int error);
int call_write(struct kvr *k, struct call *c, int64_t now, uint32_t flags);
int call_written(struct kvr *k, const struct call *c, int error);
void call_mend(struct kvr *k);
int call_prompt(const struct kvr *k, const struct kvr_prompt *p);

/* options.c: complete and checked ones, and a region made by them */
int options_get(const struct kvr_options *from, struct kvr_options *o);
int options_format(const struct kvr_options *o, void *memory, uint64_t bytes,
    bool shared, struct kvr *k);
int options_match(const struct kvr_options *o, const struct kvr *k);

/* recover.c: what whoever attaches puts in order before anybody uses it */
bool recover_other_boot(const struct kvr *k, const unsigned char *boot_id);
int recover_alone(struct kvr *k, const unsigned char *boot_id);
int recover_shared(struct kvr *k, const unsigned char *boot_id, bool wait);

/* file.c: regions in files */
void file_close(struct kvr *k);

#endif
