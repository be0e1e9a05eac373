/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine.h - an engine that stores and removes blocks by chance, as text, and
 * publishes it: holds.h's worker 0 must be believed to have the same.
 *
 * It removes the last blocks of a prefix first, but now and then others: their
 * prefix stays as long as something is behind it, as a hole, see hold.c.
 */
#ifndef KVR_ENGINE_H
#define KVR_ENGINE_H

#include "holds.h"

enum { PREFIXES = 2000, BUCKETS = 4096, LEASES = 4, TRIES = 20 };

/* The prefixes that it has, and their copies. The first one is empty. */
static struct prefix {
	uint64_t name;
	uint32_t length; /* letters; 0: none */
	uint32_t copies, children, parent, next;
	char text[TEXT];
} prefixes[PREFIXES];
static uint32_t buckets[BUCKETS], n_prefixes, living, unused;
static uint32_t text_most, text_period; /* letters: of a prompt, and between */
                                        /* those that are chosen */

static struct {
	uint64_t lease, worker;
	char text[TEXT];
} open_leases[LEASES];

static inline void
engine_begin(void)
{
	memset(prefixes, 0, sizeof(prefixes));
	memset(buckets, 0, sizeof(buckets));
	n_prefixes = 1;
	living = unused = 0;
}

/* Begins an engine with prompts of so many letters. */
static inline void
engine_with(uint32_t most, uint32_t period)
{
	text_most = most;
	text_period = period;
	memset(open_leases, 0, sizeof(open_leases));
	engine_begin();
}

/* Returns the prefix with so many blocks of the text; PREFIXES: not found. */
static inline uint32_t
prefix_find(const char *text, size_t blocks)
{
	uint64_t name = name_of(text, blocks * each);
	uint32_t i;

	if (blocks == 0)
		return 0;
	for (i = buckets[name % BUCKETS]; i != 0; i = prefixes[i].next)
		if (prefixes[i].name == name)
			return i;
	return PREFIXES;
}

static inline uint32_t
prefix_add(const char *text, size_t blocks)
{
	uint32_t i = unused != 0 ? unused : n_prefixes++, *head;
	struct prefix *f = &prefixes[i];

	must(i < PREFIXES);
	unused = unused != 0 ? f->next : 0;
	living++;
	f->length = (uint32_t)(blocks * each);
	f->name = name_of(text, f->length);
	memcpy(f->text, text, f->length);
	f->text[f->length] = '\0';
	f->copies = f->children = 0;
	f->parent = prefix_find(text, blocks - 1);
	must(f->parent < PREFIXES);
	prefixes[f->parent].children++;
	head = &buckets[f->name % BUCKETS];
	f->next = *head;
	*head = i;
	return i;
}

/* Drops it, and those that wait for it. */
static inline void
prefix_drop(uint32_t i)
{
	while (i != 0 && prefixes[i].copies == 0 && prefixes[i].children == 0) {
		struct prefix *f = &prefixes[i];
		uint32_t *at = &buckets[f->name % BUCKETS];

		while (*at != i)
			at = &prefixes[*at].next;
		*at = f->next;
		f->length = 0;
		living--;
		f->next = unused;
		unused = i;
		i = f->parent;
		prefixes[i].children--;
	}
}

/* Blocks of the text that are there, holes too. */
static inline uint32_t
engine_has(const char *text)
{
	uint32_t n = 0;

	while (text[n * each] != '\0' && prefix_find(text, n + 1) < PREFIXES)
		n++;
	return n;
}

static inline void
random_text(char *text)
{
	size_t i, n = (1 + pick(text_most)) / each * each;

	n = n == 0 ? each : n;
	for (i = 0; i < n; i++)
		text[i] = (char)('a' + (i % text_period == text_period - 1
		    ? pick(3) : i % 3));
	text[n] = '\0';
}

/*
 * Stores [from, to) in an event. If the part before is not there, only copies
 * of what is there count.
 */
static inline void
engine_stores(const char *text, uint32_t from, uint32_t to)
{
	uint32_t i, parent = prefix_find(text, from), unknown = 0;
	bool behind;

	event(KVR_EVENT_STORED, pick(2), text, from, to);
	behind = parent < PREFIXES && (from == 0 ||
	    prefixes[parent].copies > 0);
	for (i = from; i < to; i++) {
		uint32_t f = prefix_find(text, i + 1);

		if (f == PREFIXES && !behind) {
			unknown++;
			continue;
		}
		f = f == PREFIXES ? prefix_add(text, i + 1) : f;
		prefixes[f].copies++;
	}
	must(got.orphans == unknown);
}

/* Prefills a prompt: missing blocks are stored, in pieces. */
static inline void
engine_runs(const char *text)
{
	uint32_t n = (uint32_t)strlen(text) / each;
	uint32_t at = engine_has(text), to;

	if (living + n >= PREFIXES)
		return;
	if (at > 0 && pick(4) == 0)
		at -= 1 + pick(at); /* copies */
	if (at + 2 < n && pick(9) == 0)
		at++;               /* an event was lost */
	for (; at < n; at = to) {
		to = at + 1 + pick(n - at);
		engine_stores(text, at, to);
	}
}

/*
 * Copies of the last blocks of a prefix go, up to so many; sometimes before
 * those behind.
 */
static inline void
engine_evicts(uint32_t most)
{
	uint32_t i = 0, f, from, to, tries = TRIES;
	bool hole = pick(40) == 0;
	char text[TEXT];

	while (tries-- > 0 && (prefixes[i].length == 0 || (!hole &&
	    prefixes[i].copies <= 1 && prefixes[i].children > 0)))
		i = pick(n_prefixes);
	if (tries > TRIES)
		return;
	memcpy(text, prefixes[i].text, sizeof(text));
	to = from = prefixes[i].length / each;
	for (f = i; from > 0 && to - from < most; f = prefixes[f].parent,
	     from--)
		if (f != i && (prefixes[f].children > 1 || pick(30) == 0))
			break;
	event(KVR_EVENT_REMOVED, pick(2), text, from, to);
	for (; to > from; to--) {
		f = prefix_find(text, to);
		if (f == PREFIXES || prefixes[f].copies == 0)
			continue;
		if (--prefixes[f].copies == 0)
			prefix_drop(f);
	}
}

/* It clears its cache, or starts again. */
static inline void
engine_ends(void)
{
	struct kvr_event e;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_RESTARTED;
	if (pick(2) == 0) {
		cleared();
	} else {
		seq = 0;
		must(apply_to(0, &e, 1, NULL, 0, NULL, 0, 1) == KVR_OK);
	}
	engine_begin();
}

/* A request begins on its worker, or ends. */
static inline void
lease_step(void)
{
	struct kvr_decision d = { .size = sizeof(d) };
	size_t i = pick(LEASES);

	if (open_leases[i].lease != 0) {
		must((pick(3) == 0
		    ? kvr_lease_abort(k, open_leases[i].lease, 1, 0)
		    : kvr_lease_finish(k, open_leases[i].lease, NULL, 1, 0)) ==
		    KVR_OK);
		open_leases[i].lease = 0;
		return;
	}
	random_text(open_leases[i].text);
	say(open_leases[i].text);
	must(kvr_lease_open_on(k, p, NULL, id[0], 1, &d) == KVR_OK);
	if (pick(2) == 0)
		must(kvr_lease_commit(k, d.lease, 1, 0) == KVR_OK);
	open_leases[i].lease = d.lease;
	open_leases[i].worker = id[0];
}

static inline uint32_t
common(const char *a, const char *b)
{
	uint32_t n = 0;

	while (a[n] != '\0' && a[n] == b[n])
		n++;
	return n;
}

/* Letters that the text has in common with a request that runs there. */
static inline uint32_t
running_has(const char *text)
{
	uint32_t i, n, most = 0;

	for (i = 0; i < LEASES; i++) {
		n = open_leases[i].lease == 0 ||
		    open_leases[i].worker != id[0] ? 0
		    : common(text, open_leases[i].text);
		most = n > most ? n : most;
	}
	return most;
}

/* Something happens. */
static inline void
engine_steps(uint32_t evicts)
{
	char text[TEXT];

	random_text(text);
	if (pick(3) == 0)
		engine_runs(text);
	else if (pick(8) == 0)
		lease_step();
	else if (pick(12) == 0)
		must(kvr_observe(k, say(text), id[2], 1, 0, NULL) == KVR_OK);
	else if (pick(300) == 0)
		engine_ends();
	else if (pick(2) == 0 || living > PREFIXES / 2)
		engine_evicts(evicts);
	must(got.state == KVR_EVENTS_COMPLETE);
}

#endif
