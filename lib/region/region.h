/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - a handle: this process's view of a region.
 */
#ifndef KVR_REGION_H
#define KVR_REGION_H

#include "format.h"
#include "lock.h"
#include "word.h"

/*
 * The figures of workers that a choice reads, one array per quantity, so that
 * choosing among thousands touches as little memory as possible. load_publish
 * copies them from fields of slots.
 */
struct loads {
	double *prefill;    /* tokens that are booked, */
	double *booked;     /* of them, those whose end will be reported */
	double *blocks;
	uint64_t *id;       /* of the worker; 0: the slot has none */
	uint64_t *identity; /* keyed hash of name and rank: breaks ties */
	uint32_t *requests;
	uint32_t *gate;     /* 0: nothing unusual; see enum gate */
	int64_t *ttl;       /* of an entry after its stamp */
	int64_t *silent_until; /* when the others will be prefilled, and */
	int64_t *observed_until; /* those that were only observed: rate.c */
	double *pace;       /* seconds per token of prefill */
	double *reading;    /* tokens of the prompts of running requests */
	double *inserted;   /* tokens new to the worker: pressure.c */
	double *observed_requests; /* observed.c */
	double *observed_reading;
};

/*
 * The part of a handle that a child finds zero after fork: seat.c.
 */
struct own {
	uint32_t here;         /* 0: another process made the handle */
	_Atomic int64_t asked; /* when it was last asked if an owner lives */
	_Atomic uint64_t looks; /* of one call, at whether BROKEN */
	_Atomic bool gave_up;  /* REGION_BRIEFLY: the last call that waited */
};

/* How long calls of a handle sleep; numbers of kvr_nowait_set. */
enum region_wait {
	REGION_PATIENTLY,   /* LOCK_WAIT_NS, each of them */
	REGION_NEVER,
	REGION_BRIEFLY      /* LOCK_BRIEF_NS, once */
};

/* A handle: this process's view of the region. */
struct kvr {
	struct region *region;
	struct slot *slots;
	struct load_row *load_rows; /* and their members, */
	struct loads loads;        /* each an array of all slots */
	struct dp_group *dp_groups;
	struct outside *outside;   /* [names] */
	struct survival *survival; /* [names] */
	struct stream *streams;    /* [names] */
	struct stack *stacks;      /* [names] */
	uint32_t *generations; /* [slots]; odd: in use */
	struct name *names;
	uint32_t *name_buckets;
	int64_t *due, *stamped; /* the tournaments: order.c */
	uint16_t *due_winner, *stamped_winner;
	struct binding *bindings; /* [bindings] of sessions: affinity.c */
	struct alias *aliases;  /* [aliases + 1], the first blank: alias.c */
	uint32_t *alias_buckets; /* [aliases] */
	uint64_t *journal;  /* the ring; see journal.c */
	struct user_line *user; /* not ours: kvr_user_area */
	uint32_t *node_buckets, *entry_buckets;
	union cell *cells;
	struct tenant *tenants; /* [tenant_leaves], if there is a table */
	uint16_t *tenant_winner;
	union belonging *belonging; /* [cells] */
	struct layout layout;
	void *owned;        /* memory to free with the handle, or NULL */
	void *mapped;       /* mapping to unmap with it, or NULL: file.c */
	size_t mapped_bytes;
	int fd;             /* of the mapping, or -1 */

	/* its seat, and how it sees those of others: seat.c */
	uint32_t kind;      /* enum region_kind */
	uint32_t me;        /* the lock word while it is owner; 0: no seat */
	int64_t wait_ns;    /* LOCK_WAIT_NS */
	struct seat *seats;
	struct own *own;
	uint64_t process, room; /* this process, as in struct seat */
	uint64_t holder;    /* as in its seat */
	int gate;           /* the lock file of the region, or -1: gate.c */
	int seat_fd;        /* holds the lock of its seat, or -1; */
	void *seat_map;     /* or this does, or NULL */
	uint64_t gate_device, gate_inode;

	bool readonly;      /* neither memory nor lock can be written */
	_Atomic uint32_t nowait; /* enum region_wait */
	_Atomic bool quiet;  /* calls leave no record in the journal */
	unsigned char boot_id[KVR_BOOT_ID_BYTES]; /* of the options, or 0 */
	struct hash_rule rule;
	uint64_t table_key[12];
};

/* Every link read from the region is used once, through here. */
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

static inline struct entry *
entry_at(const struct kvr *k, uint32_t i)
{
	return &cell_at(k, i)->entry;
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

/* Can a caller have set the load of this source? */
static inline bool
outside_sound(const struct outside *o, uint32_t source)
{
	return o->source[source].prefill <= LOAD_MAX &&
	    o->source[source].blocks <= LOAD_MAX &&
	    o->source[source].requests <= LOAD_REQUESTS_MAX;
}

/* By the number of a name, which a slot has; from 1. */
static inline struct outside *
outside_at(const struct kvr *k, uint32_t name)
{
	return &k->outside[name - 1 < k->layout.names ? name - 1 : 0];
}

static inline struct stream *
stream_at(const struct kvr *k, uint32_t name)
{
	return &k->streams[name - 1 < k->layout.names ? name - 1 : 0];
}

static inline bool
slot_in_use(const struct kvr *k, uint32_t i)
{
	return i < k->layout.slots && (read_once(k->generations[i]) & 1) != 0;
}

static inline bool
slot_overloaded(const struct slot *s)
{
	return s->over_prefill != 0 || s->over_blocks != 0;
}

/*
 * Whether a rank keeps its group from being overloaded. One that is draining or
 * down takes no requests from the others.
 */
static inline bool
slot_relieves(const struct slot *s)
{
	return s->state == KVR_STATE_UP && !slot_overloaded(s);
}

/* Slots beyond this were never in use. */
static inline uint32_t
slots_used(const struct kvr *k)
{
	uint32_t used = read_once(k->region->slots_used);

	return used < k->layout.slots ? used : k->layout.slots;
}

/*
 * BROKEN. A region may be damaged, by a stray write or by a process with write
 * access to it. Traversal of a damaged region is bounded: a writing call that
 * has followed more links than a whole index contains, or has found something
 * that cannot be in one, stops where it is, and the region is emptied when the
 * call ends: txn.c. The count of links is in the region, where a peer can hold
 * it down while it bends the links; so each handle counts its looks at it too.
 */
#define STEPS_BROKEN (UINT64_MAX / 2)

/* A call without the lock has shares of this, and stops there, too. */
static inline uint64_t
steps_most(const struct kvr *k)
{
	return STEPS_MIN + STEPS_PER_CELL * (uint64_t)k->layout.cells;
}

static inline void
looks_set(const struct kvr *k, uint64_t looks)
{
	atomic_store_explicit(&k->own->looks, looks, memory_order_relaxed);
}

static inline void
region_break(const struct kvr *k)
{
	put_once(k->region->counts.steps, STEPS_BROKEN);
	looks_set(k, STEPS_BROKEN);
}

static inline bool
region_broken(const struct kvr *k)
{
	uint64_t most = steps_most(k);
	uint64_t looks = 1 + atomic_load_explicit(&k->own->looks,
	    memory_order_relaxed);

	looks_set(k, looks);
	return k->region->counts.steps > most || looks > most;
}

/*
 * Stamps up to and including the horizon are due at `now`: an entry is live
 * while it is pinned or its stamp is above. Exact for every TTL: with 0 all are
 * due, with an endless one only the unconfirmed. An invalid TTL, in a damaged
 * region, gives an arbitrary horizon.
 */
static inline int64_t
horizon_of(const struct kvr *k, uint32_t slot, int64_t now)
{
	return (int64_t)((uint64_t)now - (uint64_t)slot_at(k, slot)->ttl);
}

/* A limit of time; one that no call can have set never ends. */
static inline int64_t
bounded_time(int64_t ns)
{
	return ns < 0 || ns > TTL_NEVER ? TTL_NEVER : ns;
}

/* The TTL of workers without one of their own. */
static inline int64_t
region_ttl(const struct kvr *k)
{
	return bounded_time(read_once(k->region->limits.ttl));
}

/* The TTL of workers that are retained by something better than time. */
static inline int64_t
region_idle(const struct kvr *k)
{
	return bounded_time(read_once(k->region->limits.idle));
}

/*
 * Follows a tree of links: `level` levels of pieces of 16 links below `top`.
 * Returns the number of the i-th cell at the bottom.
 */
static inline uint32_t
links_at(const struct kvr *k, uint32_t top, uint32_t level, uint32_t i)
{
	for (; level > 0; level--)
		top = read_once(
		    cell_at(k, top)->piece[(i >> (4 * (level - 1))) % PIECE]);
	return top;
}

int region_layout(const struct kvr_options *o, uint64_t bytes,
    struct layout *out);
/* The limits that a region of this layout has by such options. */
struct limits region_limits(const struct kvr_options *o,
    const struct layout *layout);
/* Reads without the lock; false: they are damaged, or a writer stopped. */
bool region_limits_get(const struct kvr *k, struct limits *l);
bool region_limits_sound(const struct kvr *k);
/* Damaged limits give way to the default ones. */
void region_limits_recover(struct kvr *k);
/*
 * The contents of a new region, complete and checked: see options.c. rule: with
 * its secret.
 */
struct region_begin {
	const struct kvr_options *options;
	const struct hash_rule *rule;
	const uint64_t *table_key; /* [12] */
	const struct kvr_policy *policy;
	double fleet_tokens, fleet_seconds; /* of prefill: rate.h */
};
int region_format(const struct region_begin *b, void *memory, uint64_t bytes,
    uint32_t kind);
int region_attach(void *memory, uint64_t bytes, struct kvr *k);
void region_view(const struct kvr *k, struct kvr *view);
bool region_unmade(const void *head, size_t bytes);
void region_empty(struct kvr *k);
void region_slot_free(struct kvr *k, uint32_t slot);

#endif
