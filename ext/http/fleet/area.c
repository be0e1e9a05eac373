/* SPDX-License-Identifier: BSD-2-Clause */
/* area.c - see area.h. */
#include "area.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "blame.h"
#include "health.h"
#include "shared.h"

/* The version changes with the meaning of a field. */
#define MARK (UINT64_C(0x6b766802) << 32)

struct area {
	_Atomic uint64_t mark; /* MARK and the size; 0: new */
	_Atomic uint64_t boot; /* key of the boot's id */
	struct shared shared;
	struct blame blame;
	struct health health[]; /* [max_workers], then as many polled */
};
_Static_assert(sizeof(struct area) % sizeof(uint64_t) == 0 &&
    sizeof(struct health) % _Alignof(struct polled) == 0, "alignment");

size_t
area_bytes(uint32_t workers)
{
	return sizeof(struct area) + workers * (sizeof(struct health) +
	    sizeof(struct polled));
}

/* The key of this boot; never 0. */
static uint64_t
boot_key(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "rbe");
	char id[64];
	size_t n = 0;

	if (file != NULL) {
		n = fread(id, 1, sizeof(id), file);
		(void)fclose(file);
	}
	return shared_key(id, n);
}

/* Other doors may read it meanwhile. */
static void
area_clear(struct area *a, size_t bytes)
{
	uint64_t *word = (uint64_t *)&a->shared;
	uint64_t *const end = (uint64_t *)((char *)a + bytes);

	for (; word < end; word++)
		__atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

/* False: it has another layout. */
static bool
area_claim(struct area *a, size_t bytes)
{
	const uint64_t mark = MARK | (uint32_t)bytes, key = boot_key();
	uint64_t none = 0;

	if (!atomic_compare_exchange_strong(&a->mark, &none, mark) &&
	    none != mark)
		return false;
	if (a->boot != key && a->boot != 0)
		area_clear(a, bytes);
	a->boot = key;
	return true;
}

/* NULL: the region has none that can be written. */
static int
area_find(const struct fleet *f, bool theirs, size_t bytes, struct area **out)
{
	uint64_t cursor = 0, owner;
	void *there = NULL;
	size_t room = 0, n;

	*out = NULL;
	if (kvr_user_area(f->kvr, &there, &room) != KVR_OK ||
	    kvr_owner_list(f->kvr, &cursor, &owner, 1, &n) == KVR_EREADONLY)
		return KVR_OK;
	/* Areas are multiples of 64 bytes. */
	if (room < bytes || room - bytes >= 64 || !area_claim(there, bytes))
		return theirs ? KVR_OK : KVR_EMISMATCH;
	*out = there;
	return KVR_OK;
}

int
area_open(struct fleet *f, bool theirs, void **own)
{
	const uint32_t workers = f->options->max_workers;
	const size_t bytes = area_bytes(workers);
	struct area *a;
	int error = area_find(f, theirs, bytes, &a);

	*own = NULL;
	if (error != KVR_OK)
		return error;
	if (a == NULL)
		a = *own = calloc(1, bytes);
	if (a == NULL)
		return KVR_ENOMEM;
	f->shared = &a->shared;
	f->blame = &a->blame;
	f->health = a->health;
	f->polled = (struct polled *)(a->health + workers);
	return KVR_OK;
}
