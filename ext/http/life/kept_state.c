/* SPDX-License-Identifier: BSD-2-Clause */
/* kept_state.c - see kept_state.h. */
#include "kept_state.h"

#define ENDED_NS INT64_C(1000000) /* as short as a binding can be */

/* ---------------------------------------------------------------- names --- */

void
kept_path(struct kept_state *s, enum endpoint endpoint, const char *path,
    size_t n, bool post, bool deletes, struct session_path *of)
{
	*of = (struct session_path){ .length = 0 };
	if (endpoint == ENDPOINT_RESPONSES) {
		s->binds = SESSION_RESPONSE;
	} else if (session_path(path, n, post, of)) {
		s->binds = of->length == 0 ? SESSION_CONVERSATION : 0;
		/* not an item of it */
		s->ends = of->length > 0 && deletes &&
		    of->id + of->length == path + n;
	}
}

static uint64_t
key_make(const struct kvr *k, struct kept_text tenant, enum session_kind kind,
    const char *id, size_t n)
{
	return session_key(k, tenant.bytes, tenant.length, kind, id, n);
}

void
kept_digest(struct kept_state *s, const struct kvr *k, struct kept_text tenant,
    const struct session_path *of, struct kept_text previous,
    struct kept_text conversation)
{
	if (of->length > 0)
		s->state = key_make(k, tenant, of->kind, of->id, of->length);
	else if (s->binds == SESSION_RESPONSE)
		s->state = previous.length > 0 ? key_make(k, tenant,
		    SESSION_RESPONSE, previous.bytes, previous.length) :
		    key_make(k, tenant, SESSION_CONVERSATION,
		    conversation.bytes, conversation.length);
}

/* --------------------------------------------------------------- choice --- */

enum reason
kept_verdict(int error, bool there, bool usable, uint32_t *affinity)
{
	if (error == KVR_EBUSY)
		return REASON_STATE_BUSY;
	if (error == KVR_EWORKER || (error == KVR_OK && !there)) {
		*affinity = error == KVR_OK ? KVR_AFFINITY_MOVED :
		    KVR_AFFINITY_GONE;
		return REASON_STATE_LOST;
	}
	if (error != KVR_OK) {
		*affinity = KVR_AFFINITY_NEW;
		return REASON_COST;
	}
	if (!usable)
		return REASON_STATE_BUSY;
	*affinity = KVR_AFFINITY_HIT;
	return REASON_AFFINITY;
}

void
kept_count(struct shared *shared, uint32_t affinity, bool held)
{
	if (affinity != KVR_AFFINITY_NONE)
		shared_count(shared, (enum count)(COUNT_AFFINITY + affinity -
		    KVR_AFFINITY_HIT), 1);
	if (affinity == KVR_AFFINITY_MOVED && held)
		shared_count(shared, COUNT_AFFINITY_GRAY, 1);
}

/* -------------------------------------------------------------- binding --- */

uint64_t
kept_next(struct kept_state *s, const struct answer *a, bool unstored,
    const struct kvr *k, struct kept_text tenant)
{
	enum session_kind kind;
	uint64_t digest = 0;
	const char *id;
	unsigned i;
	size_t n;

	for (i = 0; s->binds != 0 && i < OBJECT_IDS && digest == 0; i++) {
		if ((s->bound >> i & 1) != 0 ||
		    !answer_id(a, (enum object_id)i, &id, &n))
			continue;
		s->bound |= 1u << i;
		kind = i == OBJECT_ID ? (enum session_kind)s->binds :
		    SESSION_CONVERSATION;
		if (kind != SESSION_RESPONSE || !unstored)
			digest = key_make(k, tenant, kind, id, n);
	}
	return digest;
}

bool
kept_bind(struct writes *w, uint64_t digest, uint64_t worker, int64_t ttl,
    bool ends, int64_t now)
{
	const struct write_due one = { .kind = WRITE_BIND, .id = worker,
	    .digest = digest, .ttl = ends ? ENDED_NS : ttl };
	int error;

	if (digest == 0 || worker == 0 || ttl == 0 ||
	    (ends && writes_unbound(w, digest, now)))
		return false;
	error = writes_do(w, &one, now);
	return error == KVR_OK || error == KVR_EBUSY;
}
