/* SPDX-License-Identifier: BSD-2-Clause */
/* model_events.c - see model_events.h. */
#include "model_in.h"

enum { EVICTED_ENOUGH = 16, EVICTED_SHARE = 64 };
enum { PART = 256 }; /* blocks of the index that are stored at a time */

uint64_t
model_event_name(uint64_t prefix, bool other)
{
	return other ? prefix ^ UINT64_C(0x9d39247e33776d41) : prefix;
}

void
model_events_use(struct model *m, uint64_t aliases, uint32_t block_size,
    bool full)
{
	m->events = true;
	m->full = full;
	m->aliases = aliases;
	m->block_size = block_size;
}

/* -------------------------------------------------------------- names --- */

static struct named *
name_find(const struct stream *s, uint64_t hash)
{
	struct named *n;

	HASH_FIND(hh, s->names, &hash, sizeof(hash), n);
	return n;
}

static void
name_drop(struct stream *s, struct named *n)
{
	HASH_DEL(s->names, n);
	free(n->prefix);
	free(n);
}

static void
names_end(struct stream *s)
{
	struct named *n, *next;

	HASH_ITER(hh, s->names, n, next)
		name_drop(s, n);
	s->tracked = false;
}

static void
name_add(struct stream *s, const struct model_batch *b, uint32_t blocks,
    uint64_t hash, uint64_t parent)
{
	struct named *n = model_take(sizeof(*n));

	n->hash = hash;
	n->parent = parent;
	n->blocks = blocks;
	n->scope = b->scope;
	n->prefix = model_take(blocks * sizeof(*n->prefix));
	memcpy(n->prefix, b->path->prefix, blocks * sizeof(*n->prefix));
	HASH_ADD(hh, s->names, hash, sizeof(n->hash), n);
}

/* Forgets names that have no copies, and none behind them that has. */
static void
names_prune(struct stream *s)
{
	struct named *n, *next, *up;

	for (n = s->names; n != NULL; n = n->hh.next)
		n->known = false;
	for (n = s->names; n != NULL; n = n->hh.next)
		for (up = n->copies > 0 ? n : NULL; up != NULL && !up->known;
		     up = name_find(s, up->parent))
			up->known = true;
	HASH_ITER(hh, s->names, n, next)
		if (!n->known)
			name_drop(s, n);
}

/*
 * Marks the nodes that have names; the others are not held. A path is marked
 * from its end, up to a node that is marked. Returns how many there are.
 */
static uint64_t
names_mark(struct model *m, const struct stream *s, uint64_t id)
{
	struct record *r, *next;
	const struct named *n;
	uint64_t count = 0;
	uint32_t i;

	for (r = m->records; r != NULL; r = r->hh.next)
		if (r->key.worker == id)
			r->named = false;
	for (n = s->names; n != NULL; n = n->hh.next)
		for (i = n->blocks; i-- > 0; count++) {
			r = model_find(m, id, n->prefix[i]);
			if (r->named)
				break;
			r->named = true;
		}
	HASH_ITER(hh, m->records, r, next) {
		if (r->key.worker != id || r->named)
			continue;
		r->confirmed = r->confirmed && m->aliases == 0;
		if (r->pins == 0)
			model_drop(m, r);
	}
	return count;
}

struct prefix {
	uint64_t prefix;
	UT_hash_handle hh;
};

/* Different prefixes of all names, and a root for each scope. */
static uint64_t
aliases_of(const struct stream *s)
{
	struct prefix *set = NULL, *p, *next;
	const struct named *n;
	uint32_t i, scopes = 0;
	uint64_t count;

	for (n = s->names; n != NULL; n = n->hh.next) {
		scopes |= UINT32_C(1) << n->scope;
		for (i = n->blocks; i-- > 0;) {
			HASH_FIND(hh, set, &n->prefix[i], sizeof(p->prefix),
			    p);
			if (p != NULL)
				break;
			p = model_take(sizeof(*p));
			p->prefix = n->prefix[i];
			HASH_ADD(hh, set, prefix, sizeof(p->prefix), p);
		}
	}
	count = HASH_COUNT(set);
	HASH_ITER(hh, set, p, next) {
		HASH_DEL(set, p);
		free(p);
	}
	for (; scopes != 0; scopes &= scopes - 1)
		count++;
	return count;
}

static uint64_t
aliases_used(const struct model *m)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < MODEL_STREAMS; i++)
		sum += aliases_of(&m->streams[i]);
	return sum;
}

/* ------------------------------------------------------------- states --- */

static uint64_t
capacity_of(const struct stream *s)
{
	uint64_t most = s->most[0] > s->most[1] ? s->most[0] : s->most[1];

	if (s->evicted[0] < EVICTED_ENOUGH ||
	    s->evicted[0] < s->most[0] / EVICTED_SHARE)
		return 0;
	return most * s->block_tokens;
}

/* With a capacity, the model cannot follow the evictions. */
static void
settle(struct stream *s)
{
	if (s->wanted && !s->tracked && capacity_of(s) > 0)
		s->vague = true;
}

static void
degrade(struct stream *s)
{
	names_end(s);
	if (s->state == KVR_EVENTS_COMPLETE) {
		s->state = KVR_EVENTS_DEGRADED;
		s->uncounted = true;
	}
	settle(s);
}

/* Another engine, maybe with another cache. */
static void
forget(struct stream *s)
{
	names_end(s);
	memset(s->held, 0, sizeof(s->held));
	memset(s->most, 0, sizeof(s->most));
	memset(s->evicted, 0, sizeof(s->evicted));
	s->block_tokens = 0;
	s->uncounted = false;
}

void
model_events_worker(struct model *m, uint64_t id, uint32_t name, bool wanted)
{
	struct worker *w = model_worker_find(m, id);

	if (!m->events || w == NULL)
		return;
	w->stream = &m->streams[name];
	w->stream->wanted = wanted;
	w->stream->vague = false;
	settle(w->stream);
}

void
model_events_retain(struct model *m, uint32_t name, bool wanted)
{
	struct stream *s = &m->streams[name];

	s->wanted = wanted;
	if (s->tracked && !wanted)
		degrade(s);
	settle(s);
}

void
model_events_begin(struct model *m, uint32_t name)
{
	struct stream *s = &m->streams[name];
	bool wanted = s->wanted, vague = s->vague;

	names_end(s);
	memset(s, 0, sizeof(*s));
	s->wanted = wanted;
	s->vague = vague;
}

void
model_events_reset(struct model *m, uint32_t name)
{
	struct stream *s = &m->streams[name];

	if (s->state == KVR_EVENTS_OFF)
		return;
	forget(s);
	s->state = KVR_EVENTS_DEGRADED;
	s->uncounted = true;
}

void
model_events_emptied(struct model *m)
{
	uint32_t i;

	for (i = 0; i < MODEL_STREAMS; i++) {
		if (m->streams[i].tracked)
			degrade(&m->streams[i]);
		m->streams[i].vague = false;
		settle(&m->streams[i]);
	}
}

void
model_events_used(struct model *m, int64_t time)
{
	struct record *r;

	if (!m->full)
		return;
	for (r = m->records; r != NULL; r = r->hh.next)
		if (r->pins > 0 && r->confirmed && r->stamp < time &&
		    model_tracked(m, r->key.worker))
			r->stamp = time;
}

void
model_events_lost(struct model *m, uint32_t name, uint64_t next)
{
	struct stream *s = &m->streams[name];

	names_end(s);
	s->state = KVR_EVENTS_DEGRADED;
	s->uncounted = true;
	if (s->next < next) {
		s->next = next;
		s->last = 0;
	}
	settle(s);
}

void
model_events_off(struct model *m, uint32_t name)
{
	model_events_begin(m, name);
}

void
model_events_seen(struct model *m, const struct model_path *path, uint32_t i)
{
	struct seen_block *b;

	if (!m->events)
		return;
	HASH_FIND(hh, m->seen, &path->sequence[i], sizeof(b->sequence), b);
	if (b != NULL)
		return;
	b = model_take(sizeof(*b));
	b->sequence = path->sequence[i];
	b->before = i > 0 ? path->sequence[i - 1] : 0;
	b->prefix = path->prefix[i];
	b->depth = i;
	HASH_ADD(hh, m->seen, sequence, sizeof(b->sequence), b);
}

uint64_t
model_events_above(const struct model *m, uint64_t sequence, uint32_t depth)
{
	const struct seen_block *b;

	do {
		HASH_FIND(hh, m->seen, &sequence, sizeof(sequence), b);
		sequence = b != NULL ? b->before : 0;
	} while (b != NULL && b->depth > depth);
	return b != NULL ? b->prefix : 0;
}

void
model_events_free(struct model *m)
{
	struct seen_block *b, *next;
	uint32_t i;

	for (i = 0; i < MODEL_STREAMS; i++)
		names_end(&m->streams[i]);
	HASH_ITER(hh, m->seen, b, next) {
		HASH_DEL(m->seen, b);
		free(b);
	}
}

bool
model_tracked(const struct model *m, uint64_t worker)
{
	const struct worker *w = m->events ? model_worker_find(m, worker)
	    : NULL;

	return w != NULL && w->stream != NULL && w->stream->tracked;
}

uint32_t
model_event_block(const struct model *m, uint64_t worker)
{
	const struct worker *w = m->events ? model_worker_find(m, worker)
	    : NULL;

	return w != NULL && w->stream != NULL ? w->stream->block_tokens : 0;
}

bool
model_vague(const struct model *m, uint64_t worker)
{
	const struct worker *w = m->events ? model_worker_find(m, worker)
	    : NULL;

	return w != NULL && w->stream != NULL && w->stream->vague;
}

bool
model_any_vague(const struct model *m)
{
	uint32_t i;

	for (i = 0; i < MODEL_STREAMS; i++)
		if (m->streams[i].vague)
			return true;
	return false;
}

bool
model_events_has(const struct model *m, uint32_t name, uint64_t prefix)
{
	const struct named *n = name_find(&m->streams[name],
	    model_event_name(prefix, false));

	return n != NULL && n->copies > 0;
}

void
model_events_stats(const struct model *m, uint32_t name,
    struct model_stream_stats *out)
{
	const struct stream *s = &m->streams[name];

	out->state = s->state;
	out->tracked = s->tracked;
	out->vague = s->vague;
	out->next = s->next;
	out->orphans = s->orphans;
	out->capacity = capacity_of(s);
	out->blocks = aliases_of(s);
}

/* ----------------------------------------------------------- a batch --- */

/* Returns the first event that is not void, and the facts before it. */
static uint32_t
first_valid(const struct model_batch *b, uint32_t *cleared, bool *restarted)
{
	uint32_t i, first = 0;

	*cleared = 0;
	*restarted = false;
	for (i = 0; i < b->n; i++) {
		if (b->event[i].kind == KVR_EVENT_RESTARTED) {
			*restarted = true;
			*cleared = 0;
		} else if (b->event[i].kind == KVR_EVENT_CLEARED) {
			++*cleared;
		} else {
			continue;
		}
		first = i + 1;
	}
	return first;
}

/* Was another batch of this number applied? */
static uint32_t
compare(uint64_t applied, uint64_t digest, uint32_t unknown)
{
	if (applied == 0 || digest == 0)
		return unknown;
	return applied == digest ? KVR_EVENTS_DUPLICATE : KVR_EVENTS_RESTARTED;
}

static uint32_t
outcome_of(const struct stream *s, const struct model_batch *b, bool restarted)
{
	if (restarted)
		return KVR_EVENTS_RESTARTED;
	if (b->seq == s->next)
		return KVR_EVENTS_APPLIED;
	if (b->seq > s->next)
		return KVR_EVENTS_GAP;
	if (b->seq == 0)
		return compare(s->first, b->digest, KVR_EVENTS_RESTARTED);
	if (b->seq + 1 == s->next)
		return compare(s->last, b->digest, KVR_EVENTS_DUPLICATE);
	return KVR_EVENTS_DUPLICATE;
}

void
model_events_judge(const struct model *m, uint32_t name,
    const struct model_batch *b, struct model_result *r)
{
	const struct stream *s = &m->streams[name];
	uint32_t cleared;
	bool restarted, anew;

	memset(r, 0, sizeof(*r));
	(void)first_valid(b, &cleared, &restarted);
	r->outcome = outcome_of(s, b, restarted);
	anew = r->outcome == KVR_EVENTS_RESTARTED ||
	    (r->outcome == KVR_EVENTS_APPLIED && cleared > 0);
	r->resets = r->outcome == KVR_EVENTS_RESTARTED && !b->past;
	r->empties = !r->resets && ((s->wanted && (anew ||
	    (r->outcome == KVR_EVENTS_APPLIED && b->seq == 0))) ||
	    (anew && !b->past));
}

/* Drops the blocks that must be named again to be on record. */
static void
empty(struct model *m, struct stream *s, uint64_t id)
{
	names_end(s);
	s->vague = false;
	(void)names_mark(m, s, id);
}

/* --------------------------------------------------------- its counts --- */

struct sum {
	uint64_t stored[2], removed[2], peak[2];
	uint32_t block_tokens;
	bool uneven;
};

static void
sum_events(const struct model_batch *b, uint32_t first, struct sum *sum)
{
	uint32_t i;

	memset(sum, 0, sizeof(*sum));
	for (i = first; i < b->n; i++) {
		const struct model_event *e = &b->event[i];
		uint64_t *stored = &sum->stored[e->tier];
		uint64_t *removed = &sum->removed[e->tier];

		if (e->kind == KVR_EVENT_REMOVED) {
			*removed += e->to - e->from;
			continue;
		}
		if (e->block_tokens != 0 && sum->block_tokens != 0 &&
		    e->block_tokens != sum->block_tokens) {
			sum->uneven = true;
			continue;
		}
		if (e->block_tokens != 0)
			sum->block_tokens = e->block_tokens;
		*stored += e->to - e->from;
		if (*stored > *removed &&
		    *stored - *removed > sum->peak[e->tier])
			sum->peak[e->tier] = *stored - *removed;
	}
}

/* Only an empty cache may have blocks of another size. */
static bool
same_blocks(struct stream *s, const struct sum *sum)
{
	if (s->block_tokens == 0)
		s->block_tokens = sum->block_tokens;
	if (sum->uneven)
		return false;
	if (sum->block_tokens == 0 || sum->block_tokens == s->block_tokens)
		return true;
	if (s->uncounted || s->held[0] > 0 || s->held[1] > 0 ||
	    s->names != NULL)
		return false;
	memset(s->most, 0, sizeof(s->most));
	memset(s->evicted, 0, sizeof(s->evicted));
	s->block_tokens = sum->block_tokens;
	return true;
}

static void
count(struct stream *s, const struct model_batch *b, const struct sum *sum)
{
	uint32_t t;

	if (!same_blocks(s, sum) || b->full ||
	    s->state != KVR_EVENTS_COMPLETE)
		s->uncounted = true;
	for (t = 0; t < 2 && !s->uncounted; t++) {
		if (s->held[t] + sum->peak[t] > s->most[t])
			s->most[t] = s->held[t] + sum->peak[t];
		s->held[t] += sum->stored[t];
		s->held[t] -= s->held[t] < sum->removed[t] ? s->held[t]
		    : sum->removed[t];
		s->evicted[t] += sum->removed[t];
	}
}

/* --------------------------------------------------------- its blocks --- */

/* The progress of one event. */
struct taking {
	struct model *m;
	struct stream *s;
	const struct model_batch *b;
	const struct model_event *e;
	bool behind; /* it is a later part, which goes on behind another */
	uint64_t id;
	int64_t time;
	struct model_result *r;
};

static uint64_t
prefix_at(const struct model_batch *b, uint32_t engine_block)
{
	return b->path->prefix[(engine_block + 1) * b->each - 1];
}

static struct named *
name_at(const struct taking *t, uint32_t i)
{
	return name_find(t->s, model_event_name(prefix_at(t->b, i),
	    t->e->other_name));
}

static void
orphan(struct taking *t, uint32_t blocks)
{
	t->s->orphans += blocks;
	t->r->orphans += blocks;
}

static void
copy_more(struct taking *t, struct named *n)
{
	if (t->b->full)
		n->copies |= 1u << t->e->tier;
	else
		n->copies++;
}

/* Counts copies of known blocks. */
static void
store_copies(struct taking *t)
{
	struct named *n;
	uint32_t i;

	for (i = t->e->from; i < t->e->to; i++) {
		n = name_at(t, i);
		if (n == NULL)
			orphan(t, 1);
		else
			copy_more(t, n);
	}
}

static bool
held_by_name(const struct taking *t, uint64_t prefix)
{
	const struct record *r = model_find(t->m, t->id, prefix);

	return r != NULL && r->confirmed;
}

static void
store(struct taking *t)
{
	const struct model_event *e = t->e;
	uint32_t i, unknown = e->from, blocks = e->to * t->b->each, more = 0;
	uint64_t parent = 0;
	struct named *n;

	while (unknown < e->to && name_at(t, unknown) != NULL)
		unknown++;
	for (i = e->from; i < e->to; i++)
		more += name_at(t, i) == NULL ? t->b->each : 0;
	/* a root and all new names must fit */
	if (!e->contents || (unknown == e->to && !t->m->full) ||
	    e->block_tokens != t->b->each * t->m->block_size ||
	    (!t->m->full && aliases_used(t->m) + more + (e->from == 0) >
	    t->m->aliases)) {
		store_copies(t);
		return;
	}
	if (e->from > 0) {
		parent = model_event_name(prefix_at(t->b, e->from - 1),
		    t->behind && e->other_name);
		n = name_find(t->s, parent);
		if (n == NULL || n->copies == 0) {
			store_copies(t);
			return;
		}
	}
	/* it is too long, or has two names for what is one to the index */
	if (blocks > t->b->room || (!t->m->full &&
	    held_by_name(t, prefix_at(t->b, unknown)))) {
		store_copies(t);
		return;
	}
	for (i = 0; i < blocks; i++)
		model_stamp(t->m, t->id, t->b->path, i, t->time);
	for (i = e->from; i < e->to; i++) {
		n = name_at(t, i);
		if (n == NULL) {
			name_add(t->s, t->b, (i + 1) * t->b->each,
			    model_event_name(prefix_at(t->b, i),
			    e->other_name), parent);
			n = name_at(t, i);
		}
		copy_more(t, n);
		parent = n->hash;
	}
}

/*
 * A long event is taken as several, each behind the last block of the one
 * before. So the first may have copies alone, with the new blocks behind it.
 */
static void
store_parts(const struct taking *all)
{
	const uint32_t step = PART / all->b->each, end = all->e->to;
	struct model_event part = *all->e;
	struct taking t = *all;

	t.e = &part;
	for (; part.from < end && t.s->tracked; part.from = part.to) {
		part.to = end - part.from < step ? end : part.from + step;
		t.behind = part.from > all->e->from;
		store(&t);
	}
}

static void
take_away(struct taking *t)
{
	struct named *n;
	uint32_t i;

	for (i = t->e->to; i-- > t->e->from;) {
		n = name_at(t, i);
		if (n == NULL || n->copies == 0)
			continue;
		if (t->b->full)
			n->copies &= ~(1u << t->e->tier);
		else
			n->copies--;
	}
	names_prune(t->s);
	(void)names_mark(t->m, t->s, t->id);
}

static bool
understood(struct stream *s, const struct model_batch *b)
{
	enum stream_copies said = b->full ? SAID_TIERS : SAID_EACH;

	if (s->copies != SAID_NOTHING && s->copies != said)
		return false;
	s->copies = said;
	return true;
}

static void
take_events(struct taking *t, uint32_t first)
{
	uint32_t i;

	if (first < t->b->n && (!understood(t->s, t->b) ||
	    t->s->block_tokens % t->m->block_size != 0)) {
		degrade(t->s);
		return;
	}
	for (i = first; i < t->b->n && t->s->tracked; i++) {
		t->e = &t->b->event[i];
		if (t->e->from == t->e->to)
			continue;
		if (t->e->kind == KVR_EVENT_REMOVED)
			take_away(t);
		else if (t->e->block_tokens == 0 ||
		    t->e->block_tokens == t->s->block_tokens)
			store_parts(t);
		else
			orphan(t, t->e->to - t->e->from);
	}
}

void
model_events_take(struct model *m, uint32_t name, uint64_t id,
    const struct model_batch *b, int64_t time, struct model_result *r)
{
	struct stream *s = &m->streams[name];
	struct taking t = { m, s, b, NULL, false, id, time, r };
	uint32_t cleared, first;
	struct sum sum;
	bool restarted;

	first = first_valid(b, &cleared, &restarted);
	if (r->resets)
		s->vague = false;
	if (r->empties)
		empty(m, s, id);
	if (r->outcome == KVR_EVENTS_GAP ||
	    r->outcome == KVR_EVENTS_DUPLICATE)
		return;
	if (r->outcome == KVR_EVENTS_RESTARTED) {
		forget(s);
		s->next = s->first = s->last = 0;
		s->state = KVR_EVENTS_DEGRADED;
		if (b->seq != 0 && !restarted)
			return;
	}
	if (b->seq == 0 || cleared > 0) {
		names_end(s);
		s->state = KVR_EVENTS_COMPLETE;
		s->tracked = s->wanted;
		s->copies = SAID_NOTHING;
	}
	s->first = b->seq == 0 ? b->digest : s->first;
	s->last = b->digest;
	s->next = b->seq + 1;
	if (cleared > 0) {
		memset(s->held, 0, sizeof(s->held));
		s->uncounted = false;
	}
	sum_events(b, first, &sum);
	count(s, b, &sum);
	r->applied = true;
	if (s->tracked)
		take_events(&t, first);
	settle(s);
}
