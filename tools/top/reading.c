/* SPDX-License-Identifier: BSD-2-Clause */
/* reading.c - see reading.h. */
#include "reading.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include <bsd/string.h>

/* ------------------------------------------------------------- members --- */

static json_object *
find_member(json_object *of, const char *name)
{
	json_object *found = NULL;

	return json_object_object_get_ex(of, name, &found) ? found : NULL;
}

static uint64_t
read_whole(json_object *of, const char *name)
{
	json_object *found = find_member(of, name);

	return json_object_is_type(found, json_type_int)
	    ? json_object_get_uint64(found) : 0;
}

/* `other` if it is no number. */
static double
read_real(json_object *of, const char *name, double other)
{
	json_object *found = find_member(of, name);

	return json_object_is_type(found, json_type_int) ||
	    json_object_is_type(found, json_type_double)
	    ? json_object_get_double(found) : other;
}

static bool
read_truth(json_object *of, const char *name)
{
	json_object *found = find_member(of, name);

	return json_object_is_type(found, json_type_boolean) &&
	    json_object_get_boolean(found);
}

/* Bytes that a terminal would obey are shown as '?'. */
static void
clean_text(char *to, size_t size, const char *from)
{
	strlcpy(to, from, size);
	for (; *to != '\0'; to++)
		if (*to < ' ' || *to > '~')
			*to = '?';
}

static void
read_word(json_object *of, const char *name, char *to, size_t size)
{
	json_object *found = find_member(of, name);

	if (json_object_is_type(found, json_type_string))
		clean_text(to, size, json_object_get_string(found));
}

/* The length; 0: it is no list. */
static size_t
read_length(json_object *list)
{
	return json_object_is_type(list, json_type_array)
	    ? json_object_array_length(list) : 0;
}

/* ------------------------------------------------------------ upstream --- */

static void
worker_read(struct reading_worker *w, json_object *of)
{
	json_object *polled = find_member(of, "polled");

	read_word(of, "name", w->name, sizeof(w->name));
	read_word(of, "state", w->state, sizeof(w->state));
	read_word(of, "health", w->health, sizeof(w->health));
	read_word(of, "retain", w->retain, sizeof(w->retain));
	w->rank = find_member(of, "rank") == NULL ? -1 :
	    (int64_t)(read_whole(of, "rank") & INT32_MAX);
	w->overloaded = read_truth(of, "overloaded");
	w->requests = read_whole(of, "requests");
	w->prefill_tokens = read_whole(of, "prefill_tokens");
	w->backlog = read_real(of, "backlog", 0);
	w->prefill_rate = read_real(of, "prefill_rate", 0);
	w->held_blocks = read_whole(of, "held_blocks");
	w->opens = read_whole(of, "lease_opens");
	w->prompt_tokens = read_whole(of, "prompt_tokens");
	w->predicted_tokens = read_whole(of, "predicted_tokens");
	w->best_tokens = read_whole(of, "best_tokens");
	w->usage_prompt = read_whole(of, "usage_prompt_tokens");
	w->usage_cached = read_whole(of, "usage_cached_tokens");
	w->running = read_real(polled, "running", -1);
	w->waiting = read_real(polled, "waiting", -1);
	w->usage = read_real(polled, "usage", -1);
}

static void
reasons_read(struct reading_upstream *up, json_object *of)
{
	struct reading_reason *r;

	if (!json_object_is_type(of, json_type_object))
		return;
	json_object_object_foreach(of, name, value) {
		if (up->reasons == READING_REASONS)
			return;
		r = &up->reason[up->reasons++];
		clean_text(r->name, sizeof(r->name), name);
		r->choices = json_object_get_uint64(value);
	}
}

/* False: no memory. */
static bool
workers_read(struct reading_upstream *up, json_object *list)
{
	size_t n = read_length(list), i;

	up->worker = calloc(n + 1, sizeof(*up->worker));
	if (up->worker == NULL)
		return false;
	for (i = 0; i < n; i++)
		worker_read(&up->worker[i], json_object_array_get_idx(list,
		    i));
	up->workers = n;
	return true;
}

static bool
upstream_read(struct reading_upstream *up, json_object *of)
{
	json_object *region = find_member(of, "region");
	json_object *affinity = find_member(of, "affinity");

	read_word(of, "name", up->name, sizeof(up->name));
	read_word(of, "policy", up->policy, sizeof(up->policy));
	up->attached = read_truth(of, "attached");
	up->block = read_whole(of, "block");
	up->ttl = read_real(of, "ttl", -1);
	up->region_bytes = read_whole(region, "bytes");
	up->cells = read_whole(region, "cells");
	up->cells_free = read_whole(region, "cells_free");
	up->blocks = read_whole(region, "blocks");
	up->leases = read_whole(region, "leases");
	up->evicted = read_whole(region, "evicted_region");
	up->sessions = read_whole(region, "affinity_bindings");
	up->retries = read_whole(of, "retries");
	up->aborts = read_whole(of, "aborts");
	up->session_hits = read_whole(affinity, "hit");
	up->session_moves = read_whole(affinity, "moved");
	up->session_grays = read_whole(affinity, "moved_gray");
	up->session_gone = read_whole(affinity, "gone");
	reasons_read(up, find_member(of, "reasons"));
	return workers_read(up, find_member(of, "workers"));
}

/* ------------------------------------------------------------- reading --- */

static const char *
status_read(struct reading *r, json_object *status)
{
	json_object *list = find_member(status, "upstreams");
	size_t n = read_length(list);

	if (!json_object_is_type(list, json_type_array))
		return "it is JSON, but not the status of kvroute";
	r->upstream = calloc(n + 1, sizeof(*r->upstream));
	if (r->upstream == NULL)
		return "no memory";
	for (; r->upstreams < n; r->upstreams++)
		if (!upstream_read(&r->upstream[r->upstreams],
		    json_object_array_get_idx(list, r->upstreams)))
			return "no memory";
	return NULL;
}

const char *
reading_parse(struct reading *r, const char *text, size_t n)
{
	struct json_tokener *tokener = json_tokener_new();
	json_object *status;
	const char *wrong;

	memset(r, 0, sizeof(*r));
	if (tokener == NULL || n > INT32_MAX) {
		if (tokener != NULL)
			json_tokener_free(tokener);
		return tokener == NULL ? "no memory" : "it is too long";
	}
	status = json_tokener_parse_ex(tokener, text, (int)n);
	wrong = status == NULL ? "it is not JSON" : status_read(r, status);
	json_object_put(status);
	json_tokener_free(tokener);
	return wrong;
}

void
reading_free(struct reading *r)
{
	size_t i;

	for (i = 0; r->upstream != NULL && i <= r->upstreams; i++)
		free(r->upstream[i].worker);
	free(r->upstream);
	memset(r, 0, sizeof(*r));
}
