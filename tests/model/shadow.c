/* SPDX-License-Identifier: BSD-2-Clause */
/* shadow.c - see shadow.h. */
#include "shadow.h"

#include <string.h>

#include "test.h"

void
shadow_begin(struct shadow *s, uint32_t block_size, int64_t ttl,
    int64_t idle_limit)
{
	uint32_t i;

	s->block_size = block_size;
	s->ttl = ttl;
	s->idle_limit = idle_limit;
	s->now = 0;
	s->turn = 0;
	memset(s->lease, 0, sizeof(s->lease));
	for (i = 0; i < SHADOW_WORKERS; i++) {
		s->worker[i].blocks = 0;
		shadow_reset(s, i);
		shadow_facts(s, i, KVR_RETAIN_AUTO, 0, KVR_EVICT_RELEASED);
	}
}

/* -------------------------------------------------------------- blocks --- */

static uint32_t
mode_of(const struct shadow_worker *w)
{
	if (w->retain != KVR_RETAIN_AUTO)
		return w->retain;
	if (w->capacity == 0)
		return KVR_RETAIN_TTL;
	return w->contradicted ? KVR_RETAIN_FEEDBACK : KVR_RETAIN_CAPACITY;
}

static struct shadow_block *
block_add(struct shadow_worker *w)
{
	struct shadow_block *b = &w->block[w->blocks++];

	if (w->blocks > SHADOW_BLOCKS)
		ck_abort_msg("the model has no room for another block");
	memset(b, 0, sizeof(*b));
	return b;
}

static void
block_remove(struct shadow_worker *w, uint32_t i)
{
	w->block[i] = w->block[--w->blocks];
}

/* The block that ends with the first `length` tokens; w->blocks: none. */
static uint32_t
block_number(const struct shadow_worker *w, const char *text, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < w->blocks; i++)
		if (w->block[i].length == length &&
		    memcmp(w->block[i].text, text, length) == 0)
			break;
	return i;
}

static struct shadow_block *
block_of(struct shadow_worker *w, const char *text, uint32_t length)
{
	uint32_t i = block_number(w, text, length);
	struct shadow_block *b = &w->block[i];

	if (i < w->blocks)
		return b;
	b = block_add(w);
	memcpy(b->text, text, length);
	b->length = length;
	return b;
}

static uint64_t
used(const struct shadow_worker *w)
{
	uint64_t sum = w->output + w->ahead;
	uint32_t i;

	for (i = 0; i < w->blocks; i++)
		sum += w->block[i].length > 0 ? 1 : w->block[i].nameless;
	return sum;
}

static uint64_t
excess(const struct shadow *s, uint32_t worker)
{
	const struct shadow_worker *w = &s->worker[worker];
	uint64_t room = w->capacity / s->block_size, has = used(w);

	if (mode_of(w) != KVR_RETAIN_CAPACITY || has <= room)
		return 0;
	return has - room;
}

/* The idle block that was released first. */
static uint32_t
longest_released(const struct shadow_worker *w)
{
	uint32_t i, first = w->blocks;

	for (i = 0; i < w->blocks; i++)
		if (w->block[i].pins == 0 && (first == w->blocks ||
		    w->block[i].released < w->block[first].released))
			first = i;
	return first;
}

/* Evicts one block after another until the rest fits. */
static void
fit(struct shadow *s, uint32_t worker)
{
	struct shadow_worker *w = &s->worker[worker];
	uint32_t i;

	if (w->eviction == KVR_EVICT_LEAF)
		return;
	while (excess(s, worker) > 0) {
		i = longest_released(w);
		if (i == w->blocks)
			return;
		if (w->block[i].nameless > 1)
			w->block[i].nameless--;
		else
			block_remove(w, i);
	}
}

void
shadow_expire(struct shadow *s, int64_t now)
{
	uint32_t worker, i;

	s->now = now;
	for (worker = 0; worker < SHADOW_WORKERS; worker++) {
		struct shadow_worker *w = &s->worker[worker];
		int64_t life = mode_of(w) == KVR_RETAIN_TTL ? s->ttl
		    : s->idle_limit;

		for (i = w->blocks; i-- > 0;) {
			struct shadow_block *b = &w->block[i];

			if (!b->listed || life < 0 || b->stamp > now - life)
				continue;
			if (b->pins > 0)
				b->listed = false;
			else
				block_remove(w, i);
		}
	}
}

/* ------------------------------------------------------------- a path --- */

static void
path_stamp(struct shadow *s, uint32_t worker, const char *text,
    uint32_t length)
{
	struct shadow_worker *w = &s->worker[worker];
	uint32_t end = length / s->block_size * s->block_size;

	/* last to first: ends are evicted before beginnings */
	for (; end > 0; end -= s->block_size) {
		struct shadow_block *b = block_of(w, text, end);

		b->listed = true;
		b->stamp = s->now;
		b->used = b->pins > 0;
		b->released = ++s->turn;
	}
}

static void
path_pin(struct shadow *s, uint32_t worker, const char *text, uint32_t from,
    uint32_t length)
{
	struct shadow_worker *w = &s->worker[worker];
	uint32_t end = (from / s->block_size + 1) * s->block_size;

	for (; end <= length; end += s->block_size) {
		struct shadow_block *b = block_of(w, text, end);

		b->used = b->pins > 0 && b->used;
		b->pins++;
	}
}

static void
path_unpin(struct shadow *s, uint32_t worker, const char *text,
    uint32_t length)
{
	struct shadow_worker *w = &s->worker[worker];
	uint32_t end = length / s->block_size * s->block_size;

	for (; end > 0; end -= s->block_size) {
		struct shadow_block *b = block_of(w, text, end);

		if (b->pins == 0)
			ck_abort_msg("a block of a lease has no pins");
		if (--b->pins > 0)
			continue;
		if (b->used) /* else nothing has happened to it */
			b->released = ++s->turn;
		if (!b->listed)
			block_remove(w, (uint32_t)(b - w->block));
	}
}

/* ------------------------------------------------------------- workers --- */

void
shadow_facts(struct shadow *s, uint32_t worker, uint32_t retain,
    uint64_t capacity, uint32_t eviction)
{
	struct shadow_worker *w = &s->worker[worker];

	w->retain = retain;
	w->capacity = capacity;
	w->eviction = eviction;
	fit(s, worker);
}

void
shadow_believe(struct shadow *s, uint32_t worker, bool capacity)
{
	s->worker[worker].contradicted = !capacity;
}

void
shadow_reset(struct shadow *s, uint32_t worker)
{
	struct shadow_worker *w = &s->worker[worker];

	w->contradicted = false;
	w->blocks = 0;
	w->output = w->ahead = 0;
	w->answer = 0;
	w->answers = 0;
	w->life_of++;
}

void
shadow_observe(struct shadow *s, uint32_t worker, const char *text)
{
	path_stamp(s, worker, text, (uint32_t)strlen(text));
	fit(s, worker);
}

/* -------------------------------------------------------------- leases --- */

static bool
is_void(const struct shadow *s, const struct shadow_lease *l)
{
	return s->worker[l->worker].life_of != l->life_of;
}

static uint32_t
tail_of(const struct shadow *s, const struct shadow_lease *l)
{
	return l->asked % s->block_size != 0;
}

void
shadow_reserve(struct shadow *s, uint32_t lease, uint32_t worker,
    const char *text, uint64_t owner)
{
	struct shadow_lease *l = &s->lease[lease];
	struct shadow_worker *w = &s->worker[worker];

	memset(l, 0, sizeof(*l));
	l->open = true;
	l->worker = worker;
	l->life_of = w->life_of;
	l->owner = owner;
	l->opened = ++s->turn;
	l->asked = l->length = (uint32_t)strlen(text);
	memcpy(l->text, text, l->length);
	path_pin(s, worker, text, 0, l->length);
	/* blocks that the engine will still need */
	l->ahead = tail_of(s, l) + (uint32_t)(w->answer / s->block_size + 0.5);
	w->ahead += l->ahead;
	fit(s, worker);
}

void
shadow_commit(struct shadow *s, uint32_t lease)
{
	struct shadow_lease *l = &s->lease[lease];

	l->committed = true;
	if (!is_void(s, l))
		path_stamp(s, l->worker, l->text, l->length);
}

static void
some_has_come(struct shadow *s, struct shadow_lease *l, uint32_t blocks)
{
	uint32_t tail = tail_of(s, l);
	uint32_t most = l->ahead > tail ? l->ahead - tail : 0;
	uint32_t less = blocks < most ? blocks : most;

	l->ahead -= less;
	s->worker[l->worker].ahead -= less;
}

void
shadow_extend(struct shadow *s, uint32_t lease, const char *text)
{
	struct shadow_lease *l = &s->lease[lease];
	uint32_t length = (uint32_t)strlen(text), had = l->length;

	if (is_void(s, l))
		return;
	path_pin(s, l->worker, text, had / s->block_size * s->block_size,
	    length);
	memcpy(l->text, text, length);
	l->length = length;
	some_has_come(s, l, length / s->block_size - had / s->block_size);
	path_stamp(s, l->worker, text, length);
	fit(s, l->worker);
}

void
shadow_output(struct shadow *s, uint32_t lease, uint32_t blocks)
{
	struct shadow_lease *l = &s->lease[lease];

	if (is_void(s, l))
		return;
	l->output += blocks;
	s->worker[l->worker].output += blocks;
	some_has_come(s, l, blocks);
	fit(s, l->worker);
}

static void
let_go(struct shadow *s, struct shadow_lease *l)
{
	struct shadow_worker *w = &s->worker[l->worker];

	l->open = false;
	if (is_void(s, l))
		return;
	path_unpin(s, l->worker, l->text, l->length);
	w->output -= l->output;
	w->ahead -= l->ahead;
	fit(s, l->worker);
}

/* The output stays, as far as it is whole blocks; its text is unknown. */
static void
leave_answer(struct shadow *s, const struct shadow_lease *l,
    uint64_t completion)
{
	struct shadow_worker *w = &s->worker[l->worker];
	uint64_t room = w->capacity, known = l->length / s->block_size, all;
	struct shadow_block *b;

	all = l->asked / s->block_size + tail_of(s, l) + l->output;
	if (tail_of(s, l) + l->output > 0)
		all--; /* the last one is probably not full */
	if (completion > 0 && l->asked + completion <= room) {
		w->answers++;
		w->answer += ((double)completion - w->answer) *
		    (1.0 / (double)(w->answers < 100 ? w->answers : 100));
		all = (l->asked + completion) / s->block_size;
	}
	if (mode_of(w) != KVR_RETAIN_CAPACITY || all <= known)
		return;
	b = block_add(w);
	b->nameless = (uint32_t)(all - known);
	b->listed = true;
	b->stamp = s->now;
	b->released = ++s->turn;
}

void
shadow_finish(struct shadow *s, uint32_t lease, uint64_t completion)
{
	struct shadow_lease *l = &s->lease[lease];

	if (!is_void(s, l)) {
		leave_answer(s, l, completion);
		shadow_commit(s, lease);
	}
	let_go(s, l);
}

void
shadow_abort(struct shadow *s, uint32_t lease)
{
	let_go(s, &s->lease[lease]);
}

/* The owner's lease that was opened first; SHADOW_LEASES: none is open. */
static uint32_t
oldest_of(const struct shadow *s, uint64_t owner)
{
	uint32_t i, oldest = SHADOW_LEASES;

	for (i = 0; i < SHADOW_LEASES; i++)
		if (s->lease[i].open && s->lease[i].owner == owner &&
		    (oldest == SHADOW_LEASES ||
		    s->lease[i].opened < s->lease[oldest].opened))
			oldest = i;
	return oldest;
}

uint32_t
shadow_reap(struct shadow *s, uint64_t owner)
{
	uint32_t i, ended = 0;

	while ((i = oldest_of(s, owner)) < SHADOW_LEASES) {
		if (s->lease[i].committed)
			shadow_finish(s, i, 0);
		else
			shadow_abort(s, i);
		ended++;
	}
	return ended;
}

/* ------------------------------------------------------------- looking --- */

uint32_t
shadow_overlap(const struct shadow *s, uint32_t worker, const char *text)
{
	const struct shadow_worker *w = &s->worker[worker];
	uint32_t length = (uint32_t)strlen(text), end = s->block_size;

	for (; end <= length; end += s->block_size)
		if (block_number(w, text, end) == w->blocks)
			break;
	return end / s->block_size - 1;
}

uint64_t
shadow_held(const struct shadow *s, uint32_t worker)
{
	const struct shadow_worker *w = &s->worker[worker];
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < w->blocks; i++)
		sum += w->block[i].length > 0;
	return sum;
}

uint64_t
shadow_active(const struct shadow *s, uint32_t worker)
{
	const struct shadow_worker *w = &s->worker[worker];
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < w->blocks; i++)
		sum += w->block[i].pins > 0;
	return sum;
}

uint64_t
shadow_nameless(const struct shadow *s, uint32_t worker)
{
	const struct shadow_worker *w = &s->worker[worker];
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < w->blocks; i++)
		sum += w->block[i].nameless;
	return sum;
}

/* --------------------------------------------------------- whole leaves --- */

/* Nothing evicted was used later than any idle block that stays. */
static bool
by_last_use(const struct shadow_worker *w, const bool *left)
{
	int64_t latest = INT64_MIN, earliest = INT64_MAX;
	uint32_t i;

	for (i = 0; i < w->blocks; i++) {
		const struct shadow_block *b = &w->block[i];

		if (left[i] && b->pins > 0)
			return false;
		if (left[i] && b->stamp > latest)
			latest = b->stamp;
		if (!left[i] && b->pins == 0 && b->stamp < earliest)
			earliest = b->stamp;
	}
	return latest <= earliest;
}

bool
shadow_leaves(struct shadow *s, uint32_t worker, const bool *left)
{
	struct shadow_worker *w = &s->worker[worker];
	bool good = by_last_use(w, left), any = false, full;
	uint32_t i, idle = 0;

	for (i = 0; i < w->blocks; i++) {
		any |= left[i];
		idle += !left[i] && w->block[i].pins == 0;
	}
	full = excess(s, worker) > 0;
	for (i = w->blocks; i-- > 0;)
		if (left[i])
			block_remove(w, i);
	return good && (!any || full) &&
	    (idle == 0 || excess(s, worker) == 0);
}
