/* SPDX-License-Identifier: BSD-2-Clause */
/* fleet.c - see fleet.h. */
#include "fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = 1)
#include <uthash.h>

struct member {
	uint64_t id;
	uint32_t number;
	int lost; /* not in the table: out of memory */
	UT_hash_handle hh;
};

struct fleet {
	struct member *members; /* [n] by number */
	struct member *by_id;
	uint32_t n;
};

static int
fleet_add(struct fleet *f, struct kvr *k, uint32_t number)
{
	struct member *m = &f->members[number];
	struct kvr_worker facts;
	char name[32];
	int length = snprintf(name, sizeof(name), "worker-%" PRIu32, number);
	int e;

	kvr_worker_init(&facts, sizeof(facts));
	do { /* busy: entries of former workers are being reclaimed */
		e = kvr_worker_add(k, name, (size_t)length, &facts, &m->id);
	} while (e == KVR_EBUSY);
	if (e == KVR_EEXIST) /* an existing region */
		e = kvr_worker_find(k, name, (size_t)length, 0, &m->id);
	if (e != KVR_OK)
		return e;
	m->number = number;
	m->lost = 0;
	HASH_ADD(hh, f->by_id, id, sizeof(m->id), m);
	return m->lost ? KVR_ENOMEM : KVR_OK;
}

int
fleet_join(struct fleet *f, struct kvr *k, uint32_t number)
{
	return fleet_add(f, k, number);
}

int
fleet_leave(struct fleet *f, struct kvr *k, uint32_t number)
{
	struct member *m = &f->members[number];
	int e = kvr_worker_remove(k, m->id);

	if (e != KVR_OK)
		return e;
	HASH_DEL(f->by_id, m);
	m->id = 0;
	return KVR_OK;
}

int
fleet_renew(struct fleet *f, uint32_t number, uint64_t id)
{
	struct member *m = &f->members[number];

	HASH_DEL(f->by_id, m);
	m->id = id;
	m->lost = 0;
	HASH_ADD(hh, f->by_id, id, sizeof(m->id), m);
	return m->lost ? KVR_ENOMEM : KVR_OK;
}

int
fleet_new(struct kvr *k, uint32_t n, struct fleet **out)
{
	struct fleet *f = calloc(1, sizeof(*f));
	uint32_t i;
	int e = KVR_OK;

	if (f == NULL)
		return KVR_ENOMEM;
	f->n = n;
	f->members = calloc(n, sizeof(*f->members));
	if (f->members == NULL)
		e = KVR_ENOMEM;
	for (i = 0; i < n && e == KVR_OK; i++)
		e = fleet_add(f, k, i);
	if (e != KVR_OK) {
		fleet_free(f);
		return e;
	}
	*out = f;
	return KVR_OK;
}

void
fleet_free(struct fleet *f)
{
	if (f == NULL)
		return;
	HASH_CLEAR(hh, f->by_id);
	free(f->members);
	free(f);
}

uint64_t
fleet_id(const struct fleet *f, uint32_t number)
{
	return f->members[number].id;
}

uint32_t
fleet_number(const struct fleet *f, uint64_t id)
{
	const struct member *m;

	HASH_FIND(hh, f->by_id, &id, sizeof(id), m);
	return m == NULL ? UINT32_MAX : m->number;
}
