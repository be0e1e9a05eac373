/* SPDX-License-Identifier: BSD-2-Clause */
/* call_session.c - see call_session.h. */
#include "call_session.h"

#include <string.h>

#include "call_look.h"
#include "judge.h"
#include "pool_count.h"
#include "pool_text.h"

/* Headers that clients send of their own accord: kvroute-http(7). */
static const char *const automatic[POOL_AUTO_KEYS] = { "x-session-affinity",
    "x-session-id", "x-claude-code-session-id", "thread-id", "session-id" };
enum { AGENTS_SESSION = 2 }; /* of them; ids of agents count within it */
static const char agent[] = "x-claude-code-agent-id";

static void
text_keep(struct call_text *to, const char *text, size_t n)
{
	if (n == 0 || n > sizeof(to->bytes))
		return;
	memcpy(to->bytes, text, n);
	to->length = n;
}

void
session_path_read(struct kvh_call *c, const char *path, size_t n)
{
	struct session_path of;

	if (c->h->options.responses_ttl == 0 || !c->h->options.feedback)
		return;
	kept_path(&c->keeps, c->endpoint, path, n, c->post, c->deletes, &of);
	c->path_kind = of.kind;
	text_keep(&c->path_id, of.id, of.length);
}

void
session_header(struct kvh_call *c, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	const struct pool_options *o = &c->h->options;
	size_t i;

	for (i = 0; i < o->n_keys; i++)
		if (text_same(name, name_len, o->key[i].bytes,
		    o->key[i].length))
			text_keep(&c->header[i], value, value_len);
	if (!o->auto_keys)
		return;
	for (i = 0; i < POOL_AUTO_KEYS; i++)
		if (text_is(name, name_len, automatic[i]))
			text_keep(&c->header[POOL_KEYS + i], value, value_len);
	if (text_is(name, name_len, agent))
		text_keep(&c->agent, value, value_len);
}

/* --------------------------------------------------------- of a request --- */

static struct kept_text
tenant_of(const struct kvh_call *c)
{
	return (struct kept_text){ c->scope.bytes, c->scope.length };
}

static uint64_t
key_make(const struct kvh_call *c, const void *id, size_t n)
{
	return session_key(c->h->k, c->scope.bytes, c->scope.length,
	    SESSION_KEY, id, n);
}

/* The agents of a session are sessions of their own. */
static void
agent_join(struct kvh_call *c)
{
	struct call_text *of = &c->header[POOL_KEYS + AGENTS_SESSION];

	if (of->length == 0 ||
	    c->agent.length > sizeof(of->bytes) - of->length)
		return;
	memcpy(of->bytes + of->length, c->agent.bytes, c->agent.length);
	of->length += c->agent.length;
}

static void
key_find(struct kvh_call *c, const struct body_facts *ids)
{
	static const enum body_id members[] = { BODY_SESSION, BODY_CACHE_KEY };
	size_t i;

	c->keeps.session = key_make(c, c->session_told.bytes,
	    c->session_told.length);
	agent_join(c);
	for (i = 0; i < POOL_KEYS + POOL_AUTO_KEYS && c->keeps.session == 0;
	    i++)
		c->keeps.session = key_make(c, c->header[i].bytes,
		    c->header[i].length);
	for (i = 0; i < 2 && c->h->options.auto_keys && c->keeps.session == 0;
	    i++)
		c->keeps.session = key_make(c, ids->id[members[i]],
		    ids->id_length[members[i]]);
}

void
session_digest(struct kvh_call *c, const struct body_facts *ids)
{
	const struct session_path of = { .kind = c->path_kind,
	    .id = c->path_id.bytes, .length = c->path_id.length };

	if (c->bypass) {
		c->keeps.binds = 0;
		return;
	}
	if (c->opinion == REASON_COST &&
	    (c->h->region.affinity_entries > 0 ||
	    c->h->options.affinity_mode == KVR_AFFINITY_HASH))
		key_find(c, ids);
	kept_digest(&c->keeps, c->h->k, tenant_of(c), &of,
	    (struct kept_text){ ids->id[BODY_PREVIOUS],
	    ids->id_length[BODY_PREVIOUS] },
	    (struct kept_text){ ids->id[BODY_CONVERSATION],
	    ids->id_length[BODY_CONVERSATION] });
}

/* ----------------------------------------------------------- the choice --- */

/* Takes the server of the worker that keeps the state, if it can be taken. */
static void
state_take(struct kvh_call *c, int error, uint64_t worker)
{
	struct kvh *h = c->h;
	const struct known *known;
	uint32_t rank = 0;
	size_t at;
	bool there;

	pool_lock(h);
	c->wait.wants = 0;
	look_mark(c, true);
	at = error == KVR_OK ? known_of_worker(&h->fleet, worker, &rank) :
	    h->n;
	known = at < h->n ? &h->fleet.known[at] : NULL;
	there = known != NULL && !known->down;
	c->reason = kept_verdict(error, there, there && (known->usable ||
	    known->spared), &c->affinity);
	if (c->reason == REASON_AFFINITY) {
		look_take(c, h->server[at], (int32_t)rank);
		c->kept = true;
		c->worker = worker;
	} else if (c->reason == REASON_STATE_BUSY && there) {
		c->wait.wants = known->key;
		c->wait.wants_at = at;
	}
	pool_unlock(h);
}

bool
session_find(struct kvh_call *c)
{
	uint64_t worker = 0;
	int error = KVR_EBUSY, i;

	if (c->keeps.state == 0)
		return false;
	for (i = 0; i < KEPT_TRIES && error == KVR_EBUSY; i++)
		error = kvr_affinity_find(c->h->k, c->keeps.state, c->now,
		    &worker);
	state_take(c, error, worker);
	if (c->reason != REASON_COST)
		return true;
	c->reason = c->opinion;
	return false;
}

/* It is counted why sessions leave. */
void
session_count(struct kvh_call *c)
{
	bool held = false;

	if (c->affinity == KVR_AFFINITY_MOVED) {
		pool_lock(c->h);
		held = judge_session(&c->h->fleet, c->keeps.session, c->now);
		pool_unlock(c->h);
	}
	kept_count(c->h->fleet.shared, c->affinity, held);
}

/* -------------------------------------------------------------- binding --- */

/* Each rank reaches the state that the engine keeps. */
static uint64_t
taken_worker(const struct kvh_call *c)
{
	const struct pool_server *s = c->target[0].server;
	uint64_t id = c->worker;

	if (id != 0 || c->n_targets == 0)
		return id;
	pool_lock(c->h);
	id = s->ids[0];
	pool_unlock(c->h);
	return id;
}

/* False: it is not. */
static bool
state_bind(struct kvh_call *c, uint64_t digest, bool ends)
{
	return kept_bind(&c->h->writes, digest, taken_worker(c),
	    c->h->options.responses_ttl, ends, c->now);
}

/* The state is there, or the engine would have refused. */
void
session_accepted(struct kvh_call *c)
{
	if (c->keeps.state != 0)
		(void)state_bind(c, c->keeps.state, c->keeps.ends);
}

void
session_answered(struct kvh_call *c)
{
	uint64_t digest;

	while ((digest = kept_next(&c->keeps, c->passing.answer,
	    c->facts.unstored, c->h->k, tenant_of(c))) != 0)
		if (state_bind(c, digest, false))
			pool_count(c->h, COUNT_BOUND, 1);
}
