/* SPDX-License-Identifier: BSD-2-Clause */
/* shared.c - counters, paths, and the answers to include_usage: shared.h. */
#include "shared.h"

#include <stdatomic.h>
#include <string.h>

enum { REFUSALS = 3, AGAIN_S = 3600 };

/* FNV-1a. */
uint64_t
shared_key(const void *name, size_t n)
{
	const unsigned char *text = name;
	uint64_t key = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < n; i++)
		key = (key ^ text[i]) * UINT64_C(0x100000001b3);
	return key | 1;
}

void
shared_count(struct shared *s, enum count of, uint64_t n)
{
	s->counts[of] += n;
}

void
shared_time(struct shared *s, enum histogram_kind kind, uint64_t ns)
{
	s->times[kind] += ns;
	s->buckets[kind][histogram_bucket(kind, ns)]++;
}

/* ---------------------------------------------------------------- paths --- */

/* As it is shown; returns its length. */
static size_t
path_write(char text[PATH_BYTES], const char *path, size_t n)
{
	size_t i;
	char c;

	if (n > PATH_BYTES)
		n = PATH_BYTES;
	for (i = 0; i < n; i++) {
		c = path[i];
		text[i] = c <= ' ' || c > '~' || c == '"' || c == '\\' ?
		    '?' : c;
	}
	return n;
}

/* Each is counted by itself until all places are taken, the rest together. */
void
shared_path(struct shared *s, const char *path, size_t n)
{
	struct path_place *at = s->paths, *last = &s->paths[PATHS - 1];
	char text[PATH_BYTES];
	uint64_t key, none;

	n = path_write(text, path, n);
	key = shared_key(text, n);
	for (; at < last; at++) {
		none = 0;
		if (at->key == 0 &&
		    atomic_compare_exchange_strong(&at->key, &none, key)) {
			memcpy(at->text, text, n);
			at->length = (uint32_t)n;
		}
		if (at->key == key)
			break;
	}
	at->count++;
}

/* ----------------------------------------------------------------- copy --- */

/* Others may write there: a length is not trusted. */
static void
path_copy(struct counted_path *to, const struct path_place *from)
{
	const size_t length = from->length;

	to->count = from->count;
	to->length = length < PATH_BYTES ? length : PATH_BYTES;
	memcpy(to->text, from->text, to->length);
}

static void
times_copy(struct histogram *to, const struct shared *from)
{
	size_t kind, i;

	for (kind = 0; kind < HISTOGRAMS; kind++) {
		to[kind].sum = from->times[kind];
		for (i = 0; i < HISTOGRAM_BUCKETS; i++)
			to[kind].count[i] = from->buckets[kind][i];
	}
}

void
shared_copy(const struct shared *s, struct counters *to)
{
	size_t i;

	for (i = 0; i < REASONS; i++)
		to->reason[i] = s->reasons[i];
	for (i = 0; i < ENDPOINTS; i++)
		to->endpoint[i] = s->endpoints[i];
	for (i = 0; i < COUNTS; i++)
		to->count[i] = s->counts[i];
	for (i = 0; i < PATHS; i++)
		path_copy(&to->path[i], &s->paths[i]);
	times_copy(to->histogram, s);
}

/* ---------------------------------------------------------------- usage --- */

/* Engines that have taken none, and refused some, are asked once an hour. */
bool
shared_usage_asks(struct shared *s, int64_t now)
{
	uint64_t at = s->asked_at;

	return s->asks_taken > 0 || s->asks_refused < REFUSALS ||
	    (shared_age(at, now) >= AGAIN_S && atomic_compare_exchange_strong(
	    &s->asked_at, &at, (uint64_t)now));
}

bool
shared_usage_answered(struct shared *s, unsigned status, int64_t now)
{
	if (s->asks_taken > 0)
		return false;
	if (status >= 200 && status < 300)
		s->asks_taken = 1;
	if ((status != 400 && status != 422) || s->asks_refused >= REFUSALS)
		return false;
	s->asked_at = (uint64_t)now;
	return s->asks_refused++ == REFUSALS - 1;
}
