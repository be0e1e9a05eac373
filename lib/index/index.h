/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.h - the radix tree.
 */
#ifndef KVR_INDEX_H
#define KVR_INDEX_H

#include "prompt.h"
#include "region.h"

struct path {
	uint32_t node;   /* the last one reached; 0: none */
	uint32_t inside; /* blocks of it that match */
	uint32_t depth;  /* blocks that match in total */
	uint32_t nodes;  /* on the path, including the last */
	uint64_t steps;  /* links followed to find them */
};

/*
 * How to insert a path. Zero but for `want`: from the root, extending nothing.
 */
struct insert {
	uint32_t want;      /* blocks */
	bool in_place;      /* a leaf may grow; new blocks are confirmed */
	bool keep;          /* nothing may be evicted to make room: all of */
	                    /* it is inserted, or nothing */
	uint32_t below;     /* where the walk begins, or 0; only this leaf */
	                    /* may grow; */
	uint32_t inside;    /* behind that many blocks of it; 0: all, as */
	                    /* the end of a lease, which pins it; */
	uint32_t depth;     /* at this depth in blocks */
	uint32_t share;     /* of the prompt's tenant; 0: as it is */
};
void index_walk(const struct kvr *k, const struct kvr_prompt *p,
    uint32_t want, const struct insert *how, struct path *path);
uint32_t index_missing(const struct kvr *k, const struct path *path,
    uint32_t slot);
bool index_line_full(const struct kvr *k, const struct path *path);
uint32_t index_cells(const struct kvr *k, const struct path *path,
    uint32_t want, uint32_t missing);
uint32_t index_insert(struct kvr *k, const struct kvr_prompt *p,
    const struct path *path, uint32_t want, uint32_t slot,
    const struct insert *how);
void index_stamp(struct kvr *k, uint32_t node, uint32_t slot, int64_t now);
/* The same of a path that is held; blocks that it has lost do not come back. */
void index_touch(struct kvr *k, uint32_t node, uint32_t slot, int64_t now);
void index_pin(struct kvr *k, uint32_t node, uint32_t slot, uint32_t until,
    int64_t now);
void index_unpin(struct kvr *k, uint32_t node, uint32_t slot);
uint32_t index_position(const struct kvr *k, uint32_t node);

#endif
