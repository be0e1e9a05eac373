/* SPDX-License-Identifier: BSD-2-Clause */
#include "scene.h"

#include "route.h"

#include <math.h>
#include <stdio.h>

struct scene scene;

static uint64_t state;

void
scene_seed(uint64_t seed)
{
	state = seed;
}

uint64_t
scene_random(void)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return hash_fold(state, state ^ UINT64_C(0xe7037ed1a0b428db));
}

static void
worker_make(uint32_t i)
{
	struct slot *s = &scene.slots[i];
	struct name *n = &scene.names[i];

	scene.generations[i] = 2 * i + 1;
	s->weight = 1;
	scene.identity[i] = 0x1000 + i;
	s->name = i + 1;
	n->used = 1;
	n->slot = (uint16_t)i;
	n->length = (uint8_t)snprintf(n->text, sizeof(n->text), "w%u", i);
	n->next = scene.name_buckets[0];
	scene.name_buckets[0] = i + 1;
}

void
scene_of(uint32_t workers)
{
	struct scene *s = &scene;
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->k.region = &s->region;
	s->k.slots = s->slots;
	s->k.generations = s->generations;
	s->k.dp_groups = s->dp_groups;
	s->k.loads.prefill = s->prefill;
	s->k.loads.blocks = s->load_blocks;
	s->k.loads.id = s->id;
	s->k.loads.identity = s->identity;
	s->k.loads.requests = s->requests;
	s->k.loads.gate = s->gate;
	s->k.loads.booked = s->booked;
	s->k.loads.pace = s->pace;
	s->k.loads.reading = s->reading;
	s->k.loads.inserted = s->inserted;
	s->k.loads.observed_requests = s->observed_requests;
	s->k.loads.observed_reading = s->observed_reading;
	s->k.loads.silent_until = s->silent_until;
	s->k.loads.observed_until = s->observed_until;
	s->k.names = s->names;
	s->k.name_buckets = s->name_buckets;
	s->k.layout.slots = s->k.layout.names = SCENE_SLOTS;
	s->k.layout.name_buckets = 1;
	s->region.slots_used = workers;
	(void)kvr_policy_init(&s->region.policy, sizeof(s->region.policy));
	s->region.policy.cost = KVR_COST_DYNAMO;
	(void)kvr_request_init(&s->r, sizeof(s->r));
	for (i = 0; i < workers; i++)
		worker_make(i);
	/* stale places of slots without overlap must not matter */
	for (i = 0; i < SCENE_SLOTS; i++)
		s->places[i] = i % 3 == 0 ? 0 : 600 + i;
	s->set.found = s->found;
	s->set.places = s->places;
	s->set.costs = s->costs;
	s->set.base = 600 + SCENE_SLOTS;
	s->p.rule.block_size = 16;
	s->p.closed = 1;
	s->p.sequence = s->sequence;
	s->p.allowed = s->allowed;
	for (i = 0; i < SCENE_BLOCKS; i++)
		s->sequence[i] = 0x9000 + i;
	scene_length(4, 0);
}

void
scene_length(uint32_t blocks, uint32_t tail)
{
	scene.p.blocks = blocks;
	scene.p.units = (uint64_t)blocks * scene.p.rule.block_size + tail;
}

void
scene_load(uint32_t slot, uint64_t prefill, uint64_t blocks,
    uint32_t requests)
{
	scene.slots[slot].prefill = prefill;
	scene.slots[slot].blocks = blocks;
	scene.slots[slot].requests = requests;
}

void
scene_overlap(uint32_t slot, uint32_t blocks, uint32_t active)
{
	struct kvr_overlap *o = &scene.found[scene.set.count];

	scene.places[slot] = scene.set.base + scene.set.count++;
	o->worker = scene_id(slot);
	o->blocks = blocks;
	o->active_blocks = active;
}

uint64_t
scene_id(uint32_t slot)
{
	return id_of_worker(scene.generations[slot], slot);
}

/* The dp_group of a slot is the first slot of the same name, from 1. */
static void
publish_team(uint32_t i)
{
	struct scene *s = &scene;
	uint32_t j;

	for (j = 0; j < i; j++)
		if (strcmp(s->names[j].text, s->names[i].text) == 0)
			break;
	s->slots[i].dp_group = j + 1;
	s->dp_groups[j].ranks++;
	s->dp_groups[j].not_overloaded +=
	    slot_relieves(&s->slots[i]);
}

static void
publish(void)
{
	struct scene *s = &scene;
	uint32_t i;

	memset(s->dp_groups, 0, sizeof(s->dp_groups));
	for (i = 0; i < SCENE_SLOTS; i++) {
		const struct slot *p = &s->slots[i];
		bool busy = p->over_prefill != 0 || p->over_blocks != 0;

		s->prefill[i] = s->booked[i] = (double)p->prefill;
		s->pace[i] = 1.0 / 17000;
		s->load_blocks[i] = (double)p->blocks;
		s->requests[i] = p->requests;
		s->id[i] = s->generations[i] % 2 == 0 ? 0 : scene_id(i);
		s->gate[i] = p->role | (uint32_t)p->state << 4 |
		    (busy ? GATE_OVERLOADED : 0u) |
		    (p->weight != 1 ? GATE_WEIGHTED : 0u) |
		    (s->generations[i] % 2 == 0 ? GATE_FREE : 0u);
		if (i < s->region.slots_used)
			publish_team(i);
	}
}

int
scene_begin(void)
{
	struct scene *s = &scene;

	publish();
	return route_begin(&s->t, &s->k, &s->p, &s->r, &s->set, 0);
}

int
scene_choose(void)
{
	struct scene *s = &scene;

	publish();
	return route_choose(&s->k, &s->p, &s->r, &s->set, 0, &s->c);
}

uint32_t
scene_chosen(void)
{
	return scene_choose() == KVR_OK ? scene.c.slot : UINT32_MAX;
}

double
scene_cost(uint32_t slot)
{
	uint64_t expected;

	return scene_begin() == KVR_OK
	    ? route_cost(&scene.t, slot, &expected) : NAN;
}

uint32_t
scene_verdict(uint32_t slot)
{
	return scene_begin() == KVR_OK ? route_verdict(&scene.t, slot)
	    : UINT32_MAX;
}
