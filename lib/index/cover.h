/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cover.h - which nodes of a path an entry is for.
 */
#ifndef KVR_COVER_H
#define KVR_COVER_H

#include "region.h"

/* Links that a search may follow still, and its result. */
struct cover {
	uint32_t links;
	uint32_t beyond; /* blocks of the entry further down than the node */
};
#define COVER_ANY { 16 * LINE_MAX, 0 }

uint32_t cover_seek(const struct kvr *k, uint32_t node, uint32_t slot,
    struct cover *at);
uint32_t cover_find(const struct kvr *k, uint32_t node, uint32_t slot);
bool cover_part_above(struct kvr *k, uint32_t slot, uint32_t node,
    uint32_t blocks);
uint32_t cover_make(struct kvr *k, uint32_t node, uint32_t slot);
uint32_t cover_above(const struct kvr *k, uint32_t entry);
bool cover_same(const struct kvr *k, uint32_t one, uint32_t other);
bool cover_absorb(struct kvr *k, uint32_t above, uint32_t below);
void cover_rise(struct kvr *k, uint32_t entry);
bool cover_adopt(struct kvr *k, uint32_t node, uint32_t child,
    uint32_t *line, uint32_t spare);
uint32_t cover_line_below(const struct kvr *k, uint32_t node);
void cover_cut(struct kvr *k, uint32_t node);
bool cover_line_full(const struct kvr *k, uint32_t node);

#endif
