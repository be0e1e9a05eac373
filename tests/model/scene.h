/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scene.h - a struct kvr made by hand, for tests of the choice.
 *
 * There is one scene; scene_of clears it. Slots, loads and overlaps are set at
 * will, also to values that no public call would accept.
 */
#ifndef KVR_SCENE_H
#define KVR_SCENE_H

#include "question.h"

enum { SCENE_SLOTS = 200, SCENE_BLOCKS = 64 };

struct scene {
	struct kvr k;
	struct region region;
	struct slot slots[SCENE_SLOTS];
	double prefill[SCENE_SLOTS], load_blocks[SCENE_SLOTS];
	uint64_t id[SCENE_SLOTS], identity[SCENE_SLOTS];
	uint32_t requests[SCENE_SLOTS];
	double booked[SCENE_SLOTS], pace[SCENE_SLOTS], reading[SCENE_SLOTS];
	double inserted[SCENE_SLOTS];
	double observed_requests[SCENE_SLOTS], observed_reading[SCENE_SLOTS];
	int64_t silent_until[SCENE_SLOTS], observed_until[SCENE_SLOTS];
	_Alignas(8) uint32_t gate[SCENE_SLOTS];
	struct dp_group dp_groups[SCENE_SLOTS];
	uint32_t generations[SCENE_SLOTS];
	struct name names[SCENE_SLOTS];
	uint32_t name_buckets[1];
	struct kvr_prompt p;
	uint64_t sequence[SCENE_BLOCKS];
	uint64_t allowed[2 * SCENE_SLOTS];
	struct kvr_request r;        /* as a caller would give it */
	struct kvr_overlap found[SCENE_SLOTS];
	uint32_t places[SCENE_SLOTS];
	double costs[SCENE_SLOTS];
	struct found_set set;
	struct question t;           /* by scene_begin */
	struct choice c;             /* by scene_choose */
};
extern struct scene scene;

/*
 * Idle workers up, of both roles; a prompt of 4 blocks of 16 tokens. The cost
 * is Dynamo's.
 */
void scene_of(uint32_t workers);
void scene_length(uint32_t blocks, uint32_t tail);
void scene_load(uint32_t slot, uint64_t prefill, uint64_t blocks,
    uint32_t requests);
void scene_overlap(uint32_t slot, uint32_t blocks, uint32_t active);
uint64_t scene_id(uint32_t slot);

/* Publishes the contents of slots and names, and prepares t. */
int scene_begin(void);
int scene_choose(void);
/* The slot chosen; UINT32_MAX after an error. */
uint32_t scene_chosen(void);
/* NAN after an error. */
double scene_cost(uint32_t slot);
/* UINT32_MAX after an error. */
uint32_t scene_verdict(uint32_t slot);

void scene_seed(uint64_t seed);
uint64_t scene_random(void);

#endif
