/* SPDX-License-Identifier: BSD-2-Clause */
/* event_name.c - words for people. */
#include "decode.h"

const char *
event_kind_name(uint32_t kind)
{
	static const char *const names[] = { "none", "stored", "removed",
	    "cleared", "moved", "restarted", "lost" };

	return kind <= EVENT_LOST ? names[kind] : "unknown";
}

const char *
event_tier_name(uint32_t tier)
{
	static const char *const names[] = { "none", "device", "host", "disk",
	    "shared" };

	return tier <= EVENT_SHARED ? names[tier] : "unknown";
}

const char *
event_attention_name(uint32_t attention)
{
	static const char *const names[] = { "none", "full", "sliding",
	    "state" };

	return attention <= EVENT_STATE ? names[attention] : "other";
}

const char *
drop_reason_name(enum drop_reason reason)
{
	static const char *const names[DROP_REASONS] = { "none", "malformed",
	    "unknown", "group", "tier", "block_size", "partial", "size",
	    "no_memory" };

	return names[reason];
}
