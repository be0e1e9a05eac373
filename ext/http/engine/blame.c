/* SPDX-License-Identifier: BSD-2-Clause */
/* blame.c - see blame.h. */
#include "blame.h"

#define SECOND INT64_C(1000000000)
#define LATELY (10 * SECOND)

enum { SEVERAL = 2, SEVERAL_TOTAL = 3 };

#define get(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define put(field, value) \
	__atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static bool
is_recent(const struct blame_failure *f, int64_t now)
{
	return get(f->worker) != 0 &&
	    (int64_t)get(f->at) > now - LATELY;
}

static void
failure_note(struct blame *b, uint64_t worker, uint64_t prompt,
    uint64_t client, int64_t now)
{
	uint64_t i = __atomic_fetch_add(&b->next, 1, __ATOMIC_RELAXED);
	struct blame_failure *f = &b->failures[i % BLAME_FAILURES];

	put(f->worker, 0);
	put(f->prompt, prompt);
	put(f->client, client);
	put(f->at, (uint64_t)now);
	put(f->worker, worker);
}

/* Has the prompt failed at another worker, too? */
static bool
fails_elsewhere(const struct blame *b, const struct blame_failure *of,
    int64_t now)
{
	const struct blame_failure *f = b->failures;
	size_t i;

	for (i = 0; i < BLAME_FAILURES; i++, f++)
		if (is_recent(f, now) && get(f->prompt) == get(of->prompt) &&
		    get(f->worker) != get(of->worker))
			return true;
	return false;
}

/* Has the client failed at another worker, too? */
static bool
client_fails_elsewhere(const struct blame *b, uint64_t worker,
    uint64_t client, int64_t now)
{
	const struct blame_failure *f = b->failures;
	size_t i;

	for (i = 0; i < BLAME_FAILURES; i++, f++)
		if (is_recent(f, now) && get(f->client) == client &&
		    get(f->worker) != worker)
			return true;
	return false;
}

/* The distinct prompts and clients that have failed at one worker. */
struct tally {
	uint64_t prompts[SEVERAL_TOTAL], clients[SEVERAL];
	size_t n_prompts, n_clients;
};

static void
value_add(uint64_t *values, size_t *n, size_t most, uint64_t value)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (values[i] == value)
			return;
	if (*n < most)
		values[(*n)++] = value;
}

static void
failures_count(const struct blame *b, uint64_t worker, int64_t now,
    struct tally *t)
{
	const struct blame_failure *f = b->failures;
	size_t i;

	t->n_prompts = t->n_clients = 0;
	for (i = 0; i < BLAME_FAILURES; i++, f++) {
		if (!is_recent(f, now) || get(f->worker) != worker ||
		    fails_elsewhere(b, f, now))
			continue;
		value_add(t->prompts, &t->n_prompts, SEVERAL_TOTAL,
		    get(f->prompt));
		value_add(t->clients, &t->n_clients, SEVERAL, get(f->client));
	}
}

bool
blame_failed(struct blame *b, struct health *const *all, size_t n,
    struct health *of, uint64_t prompt, uint64_t client, int64_t now)
{
	uint64_t worker = get(of->key);
	struct tally t;

	failure_note(b, worker, prompt, client, now);
	health_unanswered(of, now);
	failures_count(b, worker, now, &t);
	if (t.n_prompts >= SEVERAL && t.n_clients >= SEVERAL)
		return true;
	return t.n_prompts >= SEVERAL_TOTAL &&
	    !client_fails_elsewhere(b, worker, client, now) &&
	    health_only_fails(all, n, of, now);
}
