/* SPDX-License-Identifier: BSD-2-Clause */
/* known.c - see known.h: finds servers by name and by worker. */
#include "known.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text_rows.h"

enum { LINE_BYTES = 1000 };

void
fleet_log(const struct fleet *f, void *to, unsigned level,
    const char *format, ...)
{
	char text[LINE_BYTES + 1];
	va_list list;
	int n;

	if (f->log == NULL)
		return;
	va_start(list, format);
	n = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (n > 0)
		f->log(f, to, level, text, n > LINE_BYTES ? LINE_BYTES :
		    (size_t)n);
}

uint32_t
known_ranks(const struct server_facts *facts)
{
	return facts != NULL && facts->ranks > 0 ? facts->ranks : 1;
}

static bool
begins_with(const char *pair, size_t n, const char *name)
{
	const size_t length = strlen(name);

	return n > length && memcmp(pair, name, length) == 0;
}

const char *
known_fact_read(struct server_facts *told, const char *pair, size_t n)
{
	const bool ask = text_is(pair, n, "capacity=auto");
	const char *why = NULL;

	if (begins_with(pair, n, "capacity="))
		told->ask = ask;
	told->evicts |= begins_with(pair, n, "eviction=");
	if (ask)
		told->worker.capacity_tokens = 0;
	else
		(void)kvr_worker_parse(&told->worker, pair, n, NULL, &why);
	return why;
}

const char *
known_windows_fit(struct server_facts *facts)
{
	struct kvr_worker *w = &facts->worker;
	const bool full = w->window_mode == KVR_WINDOW_FULL;

	facts->windows = KVR_WINDOW_FULL;
	if (!full && w->window_tokens == 0 && !facts->ask)
		return "\"window_mode=\" needs \"window=\" or "
		    "\"capacity=auto\"";
	if (full && (w->window_tokens > 0 || w->window_layers > 0 ||
	    w->window_interval > 0 || w->window_capacity > 0))
		return "facts about windows need \"window_mode=boundary\", "
		    "\"dense\" or \"dual\"";
	if (w->window_capacity > 0 && w->window_mode != KVR_WINDOW_DUAL)
		return "\"window_capacity=\" needs \"window_mode=dual\"";
	if (!full && w->window_tokens == 0) {
		facts->windows = w->window_mode;
		w->window_mode = KVR_WINDOW_FULL;
	}
	return NULL;
}

bool
known_is_called(const struct known *known, const void *name, size_t len)
{
	return known->name_len == len && memcmp(known->name, name, len) == 0;
}

size_t
known_find(const struct fleet *f, const void *name, size_t len, size_t n)
{
	size_t i;

	for (i = 0; i < n && !known_is_called(&f->known[i], name, len); i++)
		continue;
	return i;
}

uint32_t
known_ranks_named(const struct fleet *f, const void *name, size_t len)
{
	size_t i = known_find(f, name, len, f->n_known);

	return i < f->n_known ? f->known[i].ranks : 0;
}

size_t
known_of_worker(const struct fleet *f, uint64_t worker, uint32_t *rank)
{
	size_t i;

	for (i = 0; i < f->n_known; i++) {
		for (*rank = 0; *rank < f->known[i].ranks; ++*rank) {
			if (f->known[i].ids[*rank] == worker)
				return i;
		}
	}
	return f->n_known;
}

void
known_ids_due(struct known *known)
{
	uint32_t i;

	for (i = 0; i < known->ranks; i++)
		known->flags[i] |= KNOWN_DUE;
	known->due = known->ranks;
}
