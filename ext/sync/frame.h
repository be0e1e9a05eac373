/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frame.h - the messages of replicas: frames of records.
 *
 *   | head: 48 bytes | record | record | ... | MAC: 16 bytes, or none |
 *
 * kvroute-frames(7) has each field; frame.c has them as tables, from which both
 * the writer and the reader work. A frame is read whole or not at all. Whatever
 * its bytes are, nothing beyond them is read; the caller checks the meaning of
 * the numbers.
 */
#ifndef KVROUTE_FRAME_H
#define KVROUTE_FRAME_H

#include <stdbool.h>

#include "siphash.h"

enum {
	FRAME_MAJOR = 1,
	FRAME_MINOR = 1,
	FRAME_BYTES_MAX = 65536,
	FRAME_HEAD = 48,
	/* A record with so many numbers fits into an empty frame. */
	FRAME_NUMBERS_MAX = (FRAME_BYTES_MAX - FRAME_HEAD - SIPHASH_BYTES -
	    64) / 8,
	FRAME_TEXT_MAX = 255
};

/* Never renumbered. Others are skipped. */
enum frame_kind {
	FRAME_RESERVE = 1,  /* a lease was opened; the chain from first_block */
	FRAME_COMMIT = 2,
	FRAME_FIRST = 3,    /* first token */
	FRAME_ABORT = 4,
	FRAME_OUTPUT = 5,
	FRAME_EXTEND = 6,   /* more of the chain of a lease */
	FRAME_FINISH = 7,
	FRAME_OBSERVE = 8,  /* a prompt was sent to a worker, without a lease */
	FRAME_BIND = 9,     /* a session was bound to a worker */
	FRAME_RESET = 10,
	FRAME_CLEAR = 11,   /* all prefixes and leases were dropped */
	FRAME_LOAD = 12,
	FRAME_OPEN = 13,    /* all open leases with ids from least to most */
	FRAME_HELLO = 14,
	FRAME_WORKER = 15,  /* one that HELLO counts */
	FRAME_ASK = 16,     /* for a snapshot */
	FRAME_SNAPSHOT = 17,/* an entry of one: a worker holds it */
	FRAME_SNAPSHOT_END = 18,
	FRAME_CHAIN = 19,   /* hashes that later records refer to */
	FRAME_SITE = 20,    /* an earlier origin of that site has ended */
	FRAME_TENANT = 21,  /* whose the chains below a root are */
	FRAME_CHALLENGE = 22, /* peers send this number back, as a */
	FRAME_PROOF = 23,
	FRAME_KINDS
};

/* A field that a kind does not have is 0. */
struct frame_record {
	uint64_t kind;           /* enum frame_kind */
	uint64_t age;            /* microseconds, when put into the frame */
	uint64_t lease;
	uint64_t parent;         /* hash before first_block; the root if 0 */
	uint64_t affinity;       /* digest of a session */
	uint64_t affinity_ttl;   /* milliseconds */
	uint64_t worker;         /* its index in the origin's WORKER records */
	uint64_t epoch;          /* of the worker: how often it was reset */
	uint64_t rank;
	uint64_t state;
	uint64_t stage;
	uint64_t flags;
	uint64_t units;          /* of the prompt: tokens or bytes */
	uint64_t overlap_tokens;
	uint64_t overlap_blocks;
	uint64_t first_block;    /* of numbers[0] in its chain */
	uint64_t blocks;         /* of the prompt; OUTPUT: how many more */
	uint64_t report;         /* enum kvr_report_kind, and so on */
	uint64_t report_flags;
	uint64_t endpoint;
	uint64_t prompt_tokens;
	uint64_t cached_tokens;
	uint64_t completion_tokens;
	uint64_t requests;
	uint64_t prefill_tokens;
	uint64_t active_blocks;
	uint64_t least, most;    /* lease ids */
	uint64_t policy;         /* a digest */
	uint64_t unit;
	uint64_t block_size;
	uint64_t workers;        /* WORKER records that belong to a HELLO */
	uint64_t peer;           /* origin that is meant; 0: any */
	uint64_t stamp_age;      /* nanoseconds; ASK: of the oldest wanted */
	uint64_t sequence;       /* of the last block that a worker holds */
	uint64_t pieces;         /* SNAPSHOT records that were sent */
	uint64_t site;           /* of a machine and a region; 0: none */
	uint64_t tenant;         /* digest; of the root that is the parent */
	uint64_t challenge;      /* of the origin; PROOF: of the peer */
	uint64_t share;          /* of that tenant; 0: not given */
	uint64_t length;         /* of text, or of numbers */
	const uint64_t *numbers; /* hashes; OPEN: ids, ascending */
	const char *text;        /* a host or a worker's name; any bytes */
};

/* The rules that replicas share; without a key there are no MACs. */
struct frame_rules {
	uint64_t rule;           /* id of the hash rule */
	bool keyed;
	struct siphash_key key;
};

/* Derives the key of MACs from a secret. */
void frame_key(struct frame_rules *rules, const void *secret, size_t n);

/* ------------------------------------------------------------- writing --- */

enum frame_result {
	FRAME_OK = 0,
	FRAME_FULL = -1,   /* no room: finish this frame, put it in the next */
	FRAME_INVALID = -2 /* no such kind, or a field is too large for it */
};

struct frame_writer {
	struct frame_rules rules;
	uint64_t origin;
	uint64_t number;  /* of the frame being written; the first is 1 */
	size_t n;         /* bytes so far */
	unsigned char bytes[FRAME_BYTES_MAX];
};

void frame_writer_init(struct frame_writer *w, const struct frame_rules *rules,
    uint64_t origin);
/* After an error nothing has changed. */
enum frame_result frame_put(struct frame_writer *w,
    const struct frame_record *record);
bool frame_empty(const struct frame_writer *w);
/*
 * Completes a frame. The bytes are valid until the next frame_put, which begins
 * another one. `sent` is the origin's monotonic clock.
 */
const unsigned char *frame_finish(struct frame_writer *w, int64_t sent,
    size_t *n);

/* ------------------------------------------------------------- reading --- */

enum frame_verdict {
	FRAME_GOOD = 0,
	FRAME_MALFORMED, /* no frame, cut, or a length or number is wrong */
	FRAME_VERSION,   /* another major version */
	FRAME_STRANGER,  /* another hash rule */
	FRAME_FORGED,    /* the MAC is wrong, or one side alone has a key */
	FRAME_VERDICTS
};

struct frame_reader {
	uint64_t origin;
	uint64_t number;
	int64_t sent;
	unsigned minor;
	const unsigned char *at, *end;
	uint64_t numbers[FRAME_NUMBERS_MAX];
};

/* The bytes must stay as they are until the last record has been read. */
enum frame_verdict frame_open(struct frame_reader *r,
    const struct frame_rules *rules, const void *bytes, size_t n);
/*
 * The next record of a known kind, false at the end. The numbers and the text
 * are valid until the next call.
 */
bool frame_next(struct frame_reader *r, struct frame_record *out);

#endif
