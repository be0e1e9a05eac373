/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * corrupt.h - regions in which anything may have become anything.
 *
 *   a sound region --> damage --> attach --> refused, or every public call
 *   (one of a few,     by the     is it          none of them may crash, read
 *   made once)         source     refused?       outside, hang, or be slow
 *
 *   corrupt.c         the regions, and one whole run
 *   corrupt_damage.c  the damage
 *   corrupt_use.c     the calls
 *
 * A run is decoded from a source, so random tests and the fuzzer share it.
 */
#ifndef TESTS_CORRUPT_H
#define TESTS_CORRUPT_H

#include "prompt.h"
#include "region.h"

#include "ops.h"

enum { CORRUPT_WORLDS = 4, CORRUPT_WORKERS = 16, CORRUPT_NAMES = 64 };

/* The kinds of damage to a region: corrupt_damage.c. */
enum corrupt_mode {
	CORRUPT_NONE,  /* none */
	CORRUPT_RAW,   /* bytes anywhere */
	CORRUPT_SEAL,  /* the words attach checks, under a valid checksum */
	CORRUPT_FIELD, /* single fields, by values that matter */
	CORRUPT_BULK,  /* one field in all cells of a kind */
	CORRUPT_RING,  /* lists that should end become rings */
	CORRUPT_MODES,
	CORRUPT_PEER   /* none before, but a peer writes while calls run */
};

/* A sound region to begin with; `image` is its content each time. */
struct corrupt_world {
	unsigned char *memory, *image;
	size_t bytes;
	struct kvr_prompt *p; /* of this region's rule */
	uint64_t leases;      /* given out so far */
	int64_t now;          /* of the last call that made it */
	/* the cells in use, by kind: numbers of cells of enum cell_kind */
	uint32_t *cells[CELL_LEASE + 1];
	uint32_t n[CELL_LEASE + 1];
};

struct corrupt;

/*
 * Makes events of an engine: `much` blocks of a family of prompts are stored.
 * names, tokens: arrays of CORRUPT_NAMES.
 */
void corrupt_events(const struct kvr_prompt *p, uint32_t much,
    struct kvr_event *e, uint64_t *names, uint32_t *tokens);

/* The callbacks, and the results of all runs. */
struct corrupt_totals {
	/* before each call, and when the peer has gone; may be NULL */
	void (*peer)(struct corrupt *c, bool present);
	/*
	 * If not 0, a walk over entries leaps after so many calls that found
	 * few. Where all chains have merged into one, each place takes as long
	 * as the whole table, and a walk a second.
	 */
	uint32_t dear;
	uint64_t runs, refused, calls;
	uint64_t unseen;  /* kvr_check found no damage before the calls */
	uint64_t emptied; /* regions that a call emptied */
	int64_t slowest;  /* call, in ns of processor time */
	const char *slow; /* its name */
};

struct corrupt {
	struct ops_source *s;
	struct corrupt_world *w;
	enum corrupt_mode mode;
	struct kvr *k;
	struct kvr_prompt *p; /* of the region as it was attached */
	bool peer;            /* writes at present */
	int64_t now;
	int64_t start;        /* end of the last call, in processor time */
	struct corrupt_totals *totals;
	char *why;            /* reason; empty: no failure */
	size_t room;
};

/*
 * Makes one run: a region, damage, calls. Returns false if the library broke a
 * rule; then `why` has the reason. mode CORRUPT_MODES: the source chooses.
 */
bool corrupt_run(struct ops_source *s, enum corrupt_mode mode,
    struct corrupt_totals *totals, char *why, size_t room);

/* corrupt_damage.c */
void corrupt_damage(struct corrupt *c);
/* Is the byte of a region one of its lock, which is never damaged? */
bool corrupt_is_lock(size_t at);

/* corrupt_use.c */
bool corrupt_use(struct corrupt *c);
bool corrupt_fail(struct corrupt *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* corrupt.c */
/* Returns any number below n, from more than one byte. */
uint32_t corrupt_pick(struct ops_source *s, uint32_t n);
uint64_t corrupt_word(struct ops_source *s);
/* A request of a session. */
void corrupt_request(int64_t now, struct kvr_request *r);
/* One of the prompts that the regions were made of, or a similar one. */
int corrupt_say(struct ops_source *s, struct kvr_prompt *p);
void corrupt_peer(struct corrupt *c, bool present);

#endif
