/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include "region.h"
#include "seat.h"

#include "plain.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* No process is stopped for this long: a call that takes it hangs. */
enum { HANGS_SECONDS = 30, CALLS_PER_ALARM = 64, AIMS = 2000 };

const uint32_t process_length[PROCESS_LENGTHS] =
    { 4, 8, 15, 24, 40, 48, 65, PROCESS_LONGEST };
static const uint32_t parting[PROCESS_FAMILIES] = { 8, 8, 24, 24, 48, 48 };

/* --------------------------------------------------------------- board --- */

static size_t
board_bytes(size_t region_bytes)
{
	return sizeof(struct board) + region_bytes;
}

int
process_attach(struct board *b, struct kvr **k)
{
	if (b->path[0] != '\0')
		return kvr_open(b->path, strlen(b->path), KVR_OPEN_ATTACH,
		    NULL, k);
	return kvr_attach_at(NULL, b->region, b->bytes, k);
}

static int
board_region(struct board *b, struct kvr **k)
{
	struct kvr_options o;
	uint32_t i;
	uint64_t id;
	int rc;

	kvr_options_init(&o, sizeof(o));
	o.block_size = 1;
	o.ttl_ns = PROCESS_TTL;
	o.max_workers = PROCESS_NAMES + 2;
	o.affinity_entries = BINDINGS;
	o.region_bytes = b->bytes;
	if (b->path[0] != '\0')
		rc = kvr_open(b->path, strlen(b->path), KVR_OPEN_CREATE, &o,
		    k);
	else
		rc = kvr_new_at(&o, b->region, b->bytes, k);
	for (i = 0; rc == KVR_OK && i < PROCESS_NAMES; i++)
		rc = process_add(*k, i, &id);
	return rc;
}

struct board *
process_board(size_t region_bytes, const char *path, struct kvr **k)
{
	struct board *b = mmap(NULL, board_bytes(region_bytes),
	    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (b == MAP_FAILED)
		return NULL;
	b->bytes = region_bytes;
	if (path != NULL)
		(void)snprintf(b->path, sizeof(b->path), "%s", path);
	atomic_store(&b->clock, 1);
	return board_region(b, k) == KVR_OK ? b : NULL;
}

void
process_board_end(struct board *b, struct kvr *k)
{
	kvr_free(k);
	(void)munmap(b, board_bytes(b->bytes));
}

/* ------------------------------------------------------------- workers --- */

static void
name_of(uint32_t name, char text[2])
{
	text[0] = 'w';
	text[1] = (char)('0' + name);
}

int
process_add(struct kvr *k, uint32_t name, uint64_t *id)
{
	char text[2];

	name_of(name, text);
	return kvr_worker_add(k, text, sizeof(text), NULL, id);
}

int
process_find(const struct kvr *k, uint32_t name, uint64_t *id)
{
	char text[2];

	name_of(name, text);
	return kvr_worker_find(k, text, sizeof(text), 0, id);
}

/* Every worker may have the shortest length, which any caller can use. */
uint32_t
process_limit(uint32_t name, uint32_t family)
{
	return process_length[(3 * name + 5 * family) % PROCESS_LENGTHS];
}

uint32_t
process_common(uint32_t family, uint32_t other)
{
	if (family == other)
		return PROCESS_LONGEST;
	return parting[family] < parting[other] ? parting[family]
	    : parting[other];
}

int
process_prompt(struct kvr_prompt *p, uint32_t family, uint32_t n)
{
	uint32_t tokens[PROCESS_LONGEST], i;

	for (i = 0; i < n; i++)
		tokens[i] = i < parting[family] ? i : 1000 + family;
	return kvr_prompt_set_tokens(p, NULL, tokens, n);
}

/* --------------------------------------------------------------- match --- */

/* The greatest depth that a worker can be known for, whatever was recorded. */
static uint32_t
deepest(uint32_t name, uint32_t family, uint32_t n)
{
	uint32_t most = 0, other, blocks;

	for (other = 0; other < PROCESS_FAMILIES; other++) {
		blocks = process_common(family, other);
		if (blocks > process_limit(name, other))
			blocks = process_limit(name, other);
		most = blocks > most ? blocks : most;
	}
	return most < n ? most : n;
}

static bool
in_table(uint32_t blocks)
{
	uint32_t i;

	for (i = 0; i < PROCESS_LENGTHS; i++)
		if (process_length[i] == blocks)
			return true;
	return false;
}

static const char *
overlap_wrong(const struct kvr *k, const struct kvr_overlap *v,
    uint32_t family, uint32_t n, bool whole)
{
	char text[2] = { 0, 0 };
	size_t length = 0;
	int rc;

	if (v->blocks == 0 || v->blocks > n || v->active_blocks > v->blocks ||
	    v->tokens != v->blocks || v->reserved != 0)
		return "an absurd overlap";
	if (whole && (!in_table(v->blocks) || (v->active_blocks != 0 &&
	    !in_table(v->active_blocks))))
		return "a depth that was never recorded";
	rc = kvr_worker_name(k, v->worker, text, sizeof(text), &length);
	if (rc == KVR_EWORKER)
		return NULL; /* removed since */
	if (rc != KVR_OK || length != sizeof(text) || text[0] != 'w' ||
	    text[1] < '0' || text[1] >= '0' + PROCESS_NAMES)
		return "a worker that was never added";
	if (v->blocks > deepest((uint32_t)(text[1] - '0'), family, n))
		return "more than was ever recorded";
	return NULL;
}

const char *
process_match(const struct kvr *k, struct kvr_prompt *p, uint32_t family,
    uint32_t n, int64_t now, bool whole, uint64_t *checked)
{
	struct kvr_overlap v[PROCESS_NAMES + 2];
	const char *wrong = NULL;
	size_t count, i, j;

	if (kvr_match(k, p, now, v, sizeof(v[0]), PROCESS_NAMES + 2,
	    &count) != KVR_OK)
		return "kvr_match failed";
	if (count > PROCESS_NAMES + 2)
		return "more overlaps than workers";
	for (i = 0; i < count && wrong == NULL; i++) {
		wrong = overlap_wrong(k, &v[i], family, n, whole);
		for (j = 0; j < i; j++)
			if (v[j].worker == v[i].worker)
				wrong = "one worker twice";
	}
	*checked += count;
	return wrong;
}

/* ----------------------------------------------------- a process' work --- */

struct open_lease {
	uint64_t number;      /* 0: none */
	uint64_t emptied;     /* how often the index had been emptied, before */
	uint32_t name, family, length;
	uint32_t state;
};

struct work {
	struct board *b;
	struct chair *seat;
	struct kvr *k;
	struct kvr_prompt *p;
	uint64_t chance;
	bool whole;
	uint32_t name, family, n; /* of the current prompt */
	struct open_lease lease[PROCESS_LEASES];
};

static _Noreturn void
give_up(struct work *w, const char *what, int rc)
{
	snprintf(w->seat->wrong, sizeof(w->seat->wrong), "%s: %s", what,
	    kvr_errname(rc));
	_exit(1);
}

static uint32_t
pick(struct work *w, uint32_t n)
{
	return (uint32_t)(plain_random(&w->chance) % n);
}

static int64_t
tick(struct work *w)
{
	return atomic_fetch_add(&w->b->clock, 1);
}

/* A prompt that the worker may have. */
static void
draw(struct work *w)
{
	uint32_t limit;

	w->name = pick(w, PROCESS_NAMES);
	w->family = pick(w, PROCESS_FAMILIES);
	limit = process_limit(w->name, w->family);
	do
		w->n = process_length[pick(w, PROCESS_LENGTHS)];
	while (w->n > limit);
	if (process_prompt(w->p, w->family, w->n) != KVR_OK)
		give_up(w, "a prompt", KVR_ENOMEM);
}

/* The prompt's worker; another process may be replacing it right now. */
static bool
find(struct work *w, uint64_t *id)
{
	int rc = process_find(w->k, w->name, id);

	if (rc == KVR_EWORKER)
		rc = process_add(w->k, w->name, id);
	if (rc != KVR_OK && rc != KVR_EEXIST && rc != KVR_EFULL)
		give_up(w, "find", rc);
	return rc == KVR_OK;
}

static uint64_t
emptied(struct work *w)
{
	struct kvr_stats s = { .size = sizeof(s) };
	int rc = kvr_stats_get(w->k, &s);

	if (rc != KVR_OK)
		give_up(w, "kvr_stats_get", rc);
	return s.recoveries;
}

static void
observe(struct work *w)
{
	uint32_t recorded = 0;
	uint64_t id;
	int rc;

	if (!find(w, &id))
		return;
	rc = kvr_observe(w->k, w->p, id, tick(w), 0, &recorded);
	if (rc != KVR_OK && rc != KVR_EWORKER)
		give_up(w, "kvr_observe", rc);
	if (rc == KVR_OK && w->whole && recorded != w->n)
		give_up(w, "kvr_observe cut short", rc);
}

static void
reserve(struct work *w, struct open_lease *l)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint64_t id;
	int rc;

	kvr_request_init(&r, sizeof(r));
	r.owner = atomic_load(&w->seat->owner);
	r.affinity = 1 + r.owner % 20;
	if (!find(w, &id))
		return;
	l->emptied = emptied(w);
	if (w->n == process_length[0])
		rc = kvr_lease_open(w->k, w->p, &r, tick(w), &d);
	else
		rc = kvr_lease_open_on(w->k, w->p, &r, id, tick(w), &d);
	if (rc == KVR_EWORKER || rc == KVR_ENOWORKER)
		return;
	if (rc != KVR_OK || (d.lease == 0 && w->whole) ||
	    d.overlap_blocks > w->n)
		give_up(w, "kvr_lease_open", rc);
	l->number = d.lease;
	l->name = w->name;
	l->family = w->family;
	l->length = w->n;
	l->state = 0;
}

/* The prompt of the lease grows, if the worker may have more of it. */
static int
extend(struct work *w, struct open_lease *l)
{
	uint32_t i, limit = process_limit(l->name, l->family);

	for (i = 0; i < PROCESS_LENGTHS - 1; i++)
		if (process_length[i] == l->length)
			break;
	if (i == PROCESS_LENGTHS - 1 || process_length[i + 1] > limit ||
	    l->length == process_length[0])
		return KVR_OK;
	l->length = process_length[i + 1];
	if (process_prompt(w->p, l->family, l->length) != KVR_OK)
		give_up(w, "a prompt", KVR_ENOMEM);
	return kvr_lease_extend(w->k, l->number, w->p, tick(w), 0);
}

/* The next step of a lease. Only an emptied index loses one. */
static void
go_on(struct work *w, struct open_lease *l)
{
	uint64_t number = l->number;
	uint32_t state = l->state++;
	int rc;

	if (pick(w, 8) == 0) {
		l->number = 0;
		rc = kvr_lease_abort(w->k, number, tick(w), 0);
	} else if (state == 0) {
		rc = kvr_lease_commit(w->k, number, tick(w), 0);
	} else if (state == 1) {
		rc = kvr_lease_first_token(w->k, number, tick(w), 0);
	} else if (state == 2) {
		rc = extend(w, l);
	} else {
		l->number = 0;
		rc = kvr_lease_finish(w->k, number, NULL, tick(w), 0);
	}
	if (rc == KVR_ELEASE && emptied(w) > l->emptied)
		l->number = 0;
	else if (rc != KVR_OK)
		give_up(w, "a lease", rc);
}

static void
replace(struct work *w)
{
	uint64_t id, fresh;
	int rc;

	if (!find(w, &id))
		return;
	if (pick(w, 2) == 0)
		rc = kvr_worker_remove(w->k, id);
	else
		rc = kvr_worker_reset(w->k, id, &fresh);
	if (rc != KVR_OK && rc != KVR_EWORKER && rc != KVR_EFULL)
		give_up(w, "replace", rc);
}

static void
ask(struct work *w)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t checked = 0;
	const char *wrong = process_match(w->k, w->p, w->family, w->n,
	    tick(w), w->whole, &checked);
	int rc;

	if (wrong != NULL)
		give_up(w, wrong, KVR_ECORRUPT);
	atomic_fetch_add(&w->seat->checked, checked);
	rc = kvr_route(w->k, w->p, NULL, tick(w), &d);
	if (rc != KVR_OK && rc != KVR_ENOWORKER)
		give_up(w, "kvr_route", rc);
	if (rc == KVR_OK && d.overlap_blocks > w->n)
		give_up(w, "kvr_route: an absurd overlap", KVR_ECORRUPT);
}

static void
one_call(struct work *w)
{
	struct open_lease *l = &w->lease[pick(w, PROCESS_LEASES)];
	int rc;

	draw(w);
	switch (pick(w, 16)) {
	case 0: case 1: case 2: case 3: case 4: case 5:
		observe(w);
		break;
	case 6: case 7: case 8: case 9: case 10: case 11:
		if (l->number == 0)
			reserve(w, l);
		else
			go_on(w, l);
		break;
	case 12:
		rc = kvr_expire(w->k, tick(w), pick(w, 100), NULL);
		if (rc != KVR_OK)
			give_up(w, "kvr_expire", rc);
		break;
	case 13:
		if (pick(w, 8) == 0)
			replace(w);
		break;
	default:
		ask(w);
	}
	atomic_fetch_add(&w->seat->calls, 1);
}

static _Noreturn void
work(struct work *w)
{
	uint32_t i;
	int rc = process_attach(w->b, &w->k);

	if (rc != KVR_OK || kvr_prompt_new(w->k, &w->p) != KVR_OK)
		give_up(w, "no handle", rc);
	while (atomic_load(&w->b->leave) == 0) {
		(void)alarm(HANGS_SECONDS);
		for (i = 0; i < CALLS_PER_ALARM; i++)
			one_call(w);
	}
	kvr_prompt_free(w->p);
	kvr_free(w->k);
	_exit(0);
}

pid_t
process_start(struct board *b, uint32_t seat, uint64_t owner, uint64_t seed,
    bool whole)
{
	static struct work w;
	pid_t parent = getpid(), child;

	atomic_store(&b->seat[seat].owner, owner);
	child = fork();
	if (child != 0)
		return child;
	(void)signal(SIGALRM, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(2);
	w.b = b;
	w.seat = &b->seat[seat];
	w.chance = seed;
	w.whole = whole;
	work(&w);
}

/* --------------------------------------------------------- a stop sign --- */

static pid_t
lock_owner(const struct kvr *k)
{
	return (pid_t)seat_pid(k, atomic_load(&k->region->lock));
}

uint64_t
process_version(const struct kvr *k)
{
	return atomic_load(&k->region->seq);
}

int
process_stop(const struct kvr *k, pid_t child, int *status)
{
	if (kill(child, SIGSTOP) != 0 ||
	    waitpid(child, status, WUNTRACED) != child || !WIFSTOPPED(*status))
		return -1;
	return lock_owner(k) == child && (process_version(k) & 1) != 0;
}

int
process_aim(const struct kvr *k, pid_t child, int *status)
{
	uint32_t tries;
	int inside = 0;

	for (tries = 0; inside == 0 && tries < AIMS; tries++) {
		if (tries > 0 && kill(child, SIGCONT) != 0)
			return -1;
		(void)usleep(tries % 50);
		inside = process_stop(k, child, status);
	}
	return inside;
}
