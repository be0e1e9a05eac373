/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h - how much an engine keeps of layers with sliding windows.
 */
#ifndef KVR_WINDOW_H
#define KVR_WINDOW_H

#include "index.h"
#include "window_mode.h"

void window_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts);
void window_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts);
void window_mend(struct kvr *k, uint32_t slot);

/*
 * Stamps a path, and marks where the engine will be able to resume. ends: a
 * prompt ends there, and not only the answer to it.
 */
void window_stamp(struct kvr *k, uint32_t node, uint32_t slot, bool ends,
    int64_t now);

/* Events that store blocks, each behind those of the one before. */
struct window_run {
	uint64_t tokens;
	bool begun;   /* some of it is on record */
	bool prompt;  /* it is not the answer to a running request */
	bool goes_on; /* the next event belongs to it */
	bool many;    /* blocks */
};

/* The next event stores so many blocks of so many tokens. */
void window_count(struct window_run *run, uint64_t blocks, uint64_t tokens,
    bool goes_on);
/* Blocks will be recorded at this place: are they a prompt? */
void window_begin(struct kvr *k, uint32_t slot, const struct insert *how,
    struct window_run *run);
/* Stamps them, and marks ends and partings that no lease here has marked. */
void window_store(struct kvr *k, uint32_t node, uint32_t slot,
    const struct window_run *run, int64_t now);

uint64_t window_running(const struct kvr *k, uint32_t slot);
uint32_t window_kept(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t fresh);
void window_fill(struct kvr *k, uint32_t slot, uint64_t fresh);

#endif
