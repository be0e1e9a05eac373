/* SPDX-License-Identifier: BSD-2-Clause */
/* fronts.c - see fronts.h. */
#include "fronts.h"

#include "shared.h"

enum {
	FIRST = 4,      /* blocks that are looked at: 4, 8, 16, ... */
	LAST = 1024,
	ENOUGH = 2,     /* of them, known by their content alone */
	WINDOW = 64     /* prompts, of which half are parted: a warning */
};

/* Was this hash seen lately? It is now. */
static bool
hash_seen(struct fronts *f, uint64_t hash)
{
	uint32_t *place = &f->seen[hash % FRONTS];
	const uint32_t key = (uint32_t)(hash >> 32) | 1;
	const bool seen = *place == key;

	*place = key;
	return seen;
}

/* How many blocks of it are known, but not behind this front. */
static unsigned
blocks_parted(struct fronts *f, const struct kvr_prompt *p, size_t blocks,
    uint64_t scope)
{
	uint64_t local, sequence;
	unsigned n = 0;
	bool content;
	size_t i;

	for (i = FIRST; i < blocks && i <= LAST; i *= 2) {
		if (kvr_prompt_hash(p, i, &local, &sequence) != KVR_OK)
			break;
		/* The scope is another front, and is meant to be. */
		content = hash_seen(f, local ^ scope);
		n += !hash_seen(f, ~sequence) && content;
	}
	return n;
}

static void
window_end(struct fronts *f, const struct fleet *fleet, void *log)
{
	if (f->parted >= WINDOW / 2 && !f->warned) {
		fleet_log(fleet, log, FLEET_WARN, "%u of the last %u long "
		    "prompts differ from earlier ones at their beginning only, "
		    "so that engines share nothing: does it have a line that "
		    "changes with each request? See ignore_line, or "
		    "kvroute_ignore_line", f->parted, f->looked);
		f->warned = true;
	}
	f->looked = f->parted = 0;
}

void
fronts_look(struct fronts *f, const struct fleet *fleet,
    const struct kvr_prompt *p, const struct kvr_scope *scope, void *log)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };

	if (kvr_prompt_info_get(p, &info) != KVR_OK ||
	    info.blocks <= FIRST * 2)
		return;
	f->looked++;
	if (blocks_parted(f, p, info.blocks, shared_key(scope,
	    sizeof(*scope))) >= ENOUGH) {
		shared_count(fleet->shared, COUNT_PARTED, 1);
		f->parted++;
	}
	if (f->looked == WINDOW)
		window_end(f, fleet, log);
}
