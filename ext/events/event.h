/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - an engine's events about its KV cache, without their wire format.
 *
 * A batch is events and four arrays that these refer to by place and number:
 *
 *   events  | stored | removed | ...
 *              |  |  '----------------.
 *              |  '------------.      |  texts: adapter, salt, session
 *   hashes  | h0 h1 | h2 |     |      |
 *   tokens  | t0 t1 t2 t3 ... |       |
 *   locals  |                         |
 *   text    | tenant-a ... <----------'
 *
 * So an event holds no pointer, and can be copied, kept, and given to a
 * library that has none in its structs.
 *
 * Hashes are the engine's own and opaque: they mean something within one rank
 * of one engine until that restarts. Wider hashes keep 64 bits.
 */
#ifndef KVROUTE_EVENT_H
#define KVROUTE_EVENT_H

#include <stddef.h>
#include <stdint.h>

/* Never renumbered. */
enum event_kind {
	EVENT_STORED = 1,
	EVENT_REMOVED = 2,   /* one copy of each block */
	EVENT_CLEARED = 3,   /* all blocks of the rank, in all tiers */
	EVENT_MOVED = 4,     /* blocks stored before: also in `tier` now, and no
	                        longer in from_tier, if that is a tier */
	EVENT_RESTARTED = 5, /* earlier events of this rank are void */
	EVENT_LOST = 6       /* of this rank, some before this one */
};

enum event_tier {
	EVENT_TIER_NONE = 0,
	EVENT_DEVICE = 1,
	EVENT_HOST = 2,
	EVENT_DISK = 3,
	EVENT_SHARED = 4,    /* remote: other workers see it too */
	EVENT_TIER_UNKNOWN = 5
};

/* The kind of layers that a group of KV caches has. */
enum event_attention {
	EVENT_ATTENTION_NONE = 0, /* not given */
	EVENT_FULL = 1,           /* with MLA and sink attention */
	EVENT_SLIDING = 2,        /* with chunked local attention */
	EVENT_STATE = 3,          /* Mamba */
	EVENT_ATTENTION_OTHER = 4
};

enum event_flag {
	EVENT_HAS_PARENT = 1,
	/* The tokens of blocks overlap: n positions are n + 1 tokens. */
	EVENT_EAGLE = 2,
	/* Tokens or locals end before a block with other contents: an image. */
	EVENT_OPAQUE = 4,
	EVENT_HAS_RANK = 8,
	EVENT_HAS_GROUP = 16,
	EVENT_HAS_POSITION = 32,
	EVENT_HAS_WORKER = 64,
	/* No name came, only a number: the adapter's text is its digits. */
	EVENT_ADAPTER_NUMBER = 128
};

/* A place in an array of the batch, and how many. */
struct event_span {
	uint64_t at, n;
};

struct event {
	size_t size;         /* sizeof(struct event) */
	uint32_t kind;       /* enum event_kind */
	uint32_t flags;      /* enum event_flag */
	uint32_t tier;       /* enum event_tier */
	uint32_t from_tier;
	uint32_t rank;
	uint32_t block_size; /* tokens; 0: not given */
	uint32_t group;
	uint32_t attention;  /* enum event_attention */
	uint64_t window;     /* tokens; 0: not given, or no window */
	uint64_t parent;     /* hash of the block before hashes[0] */
	uint64_t position;   /* of hashes[0] in its prompt, in blocks */
	uint64_t worker;     /* where one stream has several */
	struct event_span hashes;
	struct event_span tokens; /* of the first blocks of `hashes` */
	struct event_span locals; /* instead: content hashes, one a block */
	struct event_span adapter, salt, session; /* of the text */
};

struct event_batch {
	uint64_t time;       /* milliseconds of the epoch; 0: not given */
	uint64_t publisher;  /* Dynamo's envelope */
	uint64_t sequence;   /* the same */
	uint64_t sliding;    /* tokens of the largest window of layers that
	                        slide, as far as the engine reports; 0 */
	size_t n;
	const struct event *events;
	const uint64_t *hashes;
	const uint32_t *tokens;
	const uint64_t *locals;
	const char *text;
};

/* For people: "stored", "device" ... */
const char *event_kind_name(uint32_t kind);
const char *event_tier_name(uint32_t tier);
const char *event_attention_name(uint32_t attention);

#endif
