/* SPDX-License-Identifier: BSD-2-Clause */
/* build.c - steps of building an event that several formats share. */
#include "decode_in.h"

#include <string.h>
#include <strings.h>

static const struct {
	const char *name;
	enum event_tier tier;
} tiers[] = {
	{ "GPU", EVENT_DEVICE }, { "device", EVENT_DEVICE },
	{ "CPU", EVENT_HOST }, { "CPU_PINNED", EVENT_HOST },
	{ "host_pinned", EVENT_HOST },
	{ "DISK", EVENT_DISK },
	/* Offloading to these is mostly to stores that all workers mount. */
	{ "STORAGE", EVENT_SHARED }, { "FS", EVENT_SHARED },
	{ "OBJ", EVENT_SHARED }, { "EXTERNAL", EVENT_SHARED },
	{ "REMOTE", EVENT_SHARED }
};

uint32_t
build_tier(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++)
		if (strlen(tiers[i].name) == n &&
		    strncasecmp(tiers[i].name, name, n) == 0)
			return tiers[i].tier;
	return EVENT_TIER_UNKNOWN;
}

/* Keeps the first `clear` blocks; windows of EAGLE need one token more. */
static uint64_t
tokens_of(const struct event *e, uint64_t clear)
{
	const uint64_t n = clear * e->block_size;

	return n > 0 && (e->flags & EVENT_EAGLE) ? n + 1 : n;
}

static bool
has_contents(const struct event *e)
{
	if (e->locals.n > 0)
		return e->locals.n == e->hashes.n;
	return e->tokens.n > 0 && e->tokens.n == tokens_of(e, e->hashes.n);
}

enum drop_reason
build_stored(struct batch *b, uint64_t clear)
{
	struct event *e = &b->now;

	if (e->hashes.n == 0)
		return DROP_MALFORMED;
	e->kind = EVENT_STORED;
	if (!has_contents(e)) {
		batch_cut_tokens(b, 0);
		batch_cut_locals(b, 0);
		e->kind = EVENT_MOVED;
		return DROP_NONE;
	}
	if (clear < e->hashes.n) {
		e->flags |= EVENT_OPAQUE;
		batch_cut_tokens(b, tokens_of(e, clear));
		batch_cut_locals(b, clear);
	}
	return DROP_NONE;
}
