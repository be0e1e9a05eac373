/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_state.c - what the nginx workers have counted, and the
 * state as JSON. kvroute-nginx(7) defines every member.
 */
#include "ngx_http_kvroute_status.h"

/* ----------------------------------------------------------- counters --- */

#define IN_SHARED(field) offsetof(ngx_http_kvroute_shared_t, field)

/* The same group is the same pointer. */
static const char usage[] = "usage", shadowed[] = "shadowed";

const kvroute_counter_t kvroute_counters[KVROUTE_COUNTERS] = {
	{ NULL, "cut", "Bodies of which only the beginning was a prompt.",
	    IN_SHARED(cut), 0 },
	{ NULL, "retries", "Choices after the first of a request.",
	    IN_SHARED(retries), 0 },
	{ NULL, "aborts", "Requests not taken, or answered with 400 or more.",
	    IN_SHARED(aborts), 0 },
	{ NULL, "refused", "Workers reset because they refused connections.",
	    IN_SHARED(refused), 0 },
	{ NULL, "delayed", "Writes put off because the lock was taken.",
	    IN_SHARED(delayed), 0 },
	{ NULL, "lost", "Leases left to their age limit.",
	    IN_SHARED(lost), 0 },
	{ NULL, "asked", "Requests in which usage was asked for.",
	    IN_SHARED(asked), 0 },
	{ NULL, "stripped", "Usage chunks taken out again.",
	    IN_SHARED(stripped), 0 },
	{ usage, "value", "Answers with a number of cached tokens.",
	    IN_SHARED(values), 0 },
	{ usage, "absent", "Answers with usage that has no such number.",
	    IN_SHARED(usages), IN_SHARED(values) },
	{ usage, "none", "Answers without usage.", IN_SHARED(missing), 0 },
	{ usage, "prompt_tokens", "Prompt tokens of answers with a number of "
	    "cached ones.", IN_SHARED(prompt_tokens), 0 },
	{ usage, "cached_tokens", "Of them, cached by report.",
	    IN_SHARED(cached_tokens), 0 },
	{ usage, "foretold_tokens", "Of them, cached by prediction.",
	    IN_SHARED(foretold_tokens), 0 },
	{ shadowed, "same", "Requests to the worker that kvroute would have "
	    "taken.", IN_SHARED(shadow_same), 0 },
	{ shadowed, "other", "Requests to another worker than kvroute would "
	    "have taken.", IN_SHARED(shadow), IN_SHARED(shadow_same) },
	{ shadowed, "blocks", "Blocks of their prompts.",
	    IN_SHARED(shadow_blocks), 0 },
	{ shadowed, "wanted_blocks", "Of them, predicted to be cached where "
	    "kvroute would have sent them.", IN_SHARED(shadow_wanted), 0 },
	{ shadowed, "taken_blocks", "Of them, predicted to be cached where "
	    "they went.", IN_SHARED(shadow_taken), 0 }
};

static uint64_t
count_at(const ngx_http_kvroute_shared_t *shared, size_t offset)
{
	return *(const ngx_atomic_t *)(const void *)
	    ((const u_char *)shared + offset);
}

/* Others count meanwhile: a part may have become more than the whole was. */
uint64_t
kvroute_count(const ngx_http_kvroute_srv_conf_t *up, size_t i)
{
	const kvroute_counter_t *c = &kvroute_counters[i];
	uint64_t less, n;

	if (up->shared == NULL)
		return 0;
	less = c->less == 0 ? 0 : count_at(up->shared, c->less);
	n = count_at(up->shared, c->offset);
	return n > less ? n - less : 0;
}

bool
kvroute_reason_occurs(ngx_uint_t reason)
{
	return reason != NGX_HTTP_KVROUTE_PINNED;
}

/* --------------------------------------------------------------- JSON --- */

static const char *const costs[] = { "dynamo", "two_tier", "balanced" };
static const char *const states[] = { "up", "draining", "down" };
static const char *const retains[] = { "auto", "ttl", "capacity", "feedback" };
static const char *const shadows[] = { NULL, "least_conn", "round_robin" };

static const char *
name_in(const char *const *names, size_t n, ngx_uint_t i)
{
	return i < n ? names[i] : "?";
}
#define NAME_IN(names, i) name_in(names, sizeof(names) / sizeof(names[0]), i)

const char *
kvroute_state_name(uint32_t state)
{
	return NAME_IN(states, state);
}

static void
put_region(kvroute_reply_t *o, const struct kvr_stats *s)
{
	kvroute_json_object(o, "region");
	kvroute_json_whole(o, "bytes", s->region_bytes);
	kvroute_json_whole(o, "cells", s->cells);
	kvroute_json_whole(o, "cells_free", s->cells_free);
	kvroute_json_whole(o, "blocks", s->blocks);
	kvroute_json_whole(o, "held_blocks", s->held_blocks);
	kvroute_json_whole(o, "leases", s->leases);
	kvroute_json_whole(o, "evicted", s->evicted);
	kvroute_json_whole(o, "truncated", s->truncated);
	kvroute_json_whole(o, "emptied", s->emptied);
	kvroute_json_whole(o, "dropped", s->dropped);
	kvroute_json_whole(o, "reaped", s->reaped);
	kvroute_json_object_end(o);
}

static void
put_counters(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	const char *group = NULL;
	size_t i;

	for (i = 0; i < KVROUTE_COUNTERS; i++) {
		const kvroute_counter_t *c = &kvroute_counters[i];

		if (c->group != group && group != NULL)
			kvroute_json_object_end(o);
		if (c->group != group)
			kvroute_json_object(o, c->group);
		group = c->group;
		kvroute_json_whole(o, c->name, kvroute_count(up, i));
	}
	kvroute_json_object_end(o);
}

static void
put_requests(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	const ngx_http_kvroute_shared_t *s = up->shared;
	ngx_uint_t i;

	kvroute_json_object(o, "reasons");
	for (i = 0; i < NGX_HTTP_KVROUTE_REASONS; i++) {
		if (kvroute_reason_occurs(i))
			kvroute_json_whole(o, (const char *)
			    ngx_http_kvroute_reason_names[i].data,
			    s == NULL ? 0 : s->requests[i]);
	}
	kvroute_json_object_end(o);
	kvroute_json_object(o, "endpoints");
	for (i = 0; i < ENDPOINTS; i++)
		kvroute_json_whole(o, endpoint_name((enum endpoint)i),
		    s == NULL ? 0 : s->endpoints[i]);
	kvroute_json_object_end(o);
}

static void
put_facts(kvroute_reply_t *o, const struct kvr_worker *facts)
{
	kvroute_json_name(o, "state", kvroute_state_name(facts->state));
	kvroute_json_real(o, "weight", facts->weight);
	kvroute_json_whole(o, "capacity", facts->capacity_tokens);
}

static void
put_load(kvroute_reply_t *o, const struct kvr_worker_stats *s)
{
	kvroute_json_bool(o, "busy", s->busy != 0);
	kvroute_json_whole(o, "requests", s->requests);
	kvroute_json_whole(o, "prefill_tokens", s->prefill_tokens);
	kvroute_json_real(o, "backlog", s->backlog);
	kvroute_json_real(o, "prefill_rate", s->prefill_rate);
	kvroute_json_whole(o, "held_blocks", s->held_blocks);
}

static void
put_hits(kvroute_reply_t *o, const struct kvr_worker_stats *s)
{
	kvroute_json_name(o, "retain", NAME_IN(retains, s->retain));
	kvroute_json_whole(o, "reserves", s->reserves);
	kvroute_json_whole(o, "prompt_tokens", s->prompt_tokens);
	kvroute_json_whole(o, "predicted_tokens", s->predicted_tokens);
	kvroute_json_whole(o, "reports", s->reports);
	kvroute_json_whole(o, "silent", s->silent);
	kvroute_json_whole(o, "reported_tokens", s->reported_tokens);
	kvroute_json_whole(o, "foretold_tokens", s->foretold_tokens);
	kvroute_json_whole(o, "learnt_capacity", s->learnt_capacity);
	kvroute_json_whole(o, "learnt_block", s->learnt_block);
}

/* What has gone meanwhile is left out; what could not be read fails it all. */
static bool
went(kvroute_reply_t *o, int error)
{
	if (error == KVR_EBUSY)
		o->failed = true;
	return error == KVR_OK;
}

static int
name_read(const struct kvr *k, uint64_t id, char name[KVR_NAME_MAX],
    size_t *length)
{
	int error;

	KVROUTE_PATIENTLY(error, kvr_worker_name(k, id, name, KVR_NAME_MAX,
	    length));
	return error;
}

static bool
worker_read(kvroute_reply_t *o, const struct kvr *k, uint64_t id,
    struct kvr_worker *facts, struct kvr_worker_stats *s)
{
	int error;

	KVROUTE_PATIENTLY(error, kvr_worker_get(k, id, facts));
	if (error == KVR_OK)
		KVROUTE_PATIENTLY(error, kvr_worker_stats(k, id, s));
	return went(o, error);
}

/* The worker behind this one; 0: no more. */
static uint64_t
worker_next(kvroute_reply_t *o, const struct kvr *k, uint64_t id)
{
	int error;

	if (k == NULL)
		return 0;
	KVROUTE_PATIENTLY(error, kvr_worker_next(k, &id));
	return went(o, error) ? id : 0;
}

static void
put_worker(kvroute_reply_t *o, const struct kvr *k, uint64_t id)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_worker_stats s = { .size = sizeof(s) };
	char name[KVR_NAME_MAX];
	size_t length;

	if (!worker_read(o, k, id, &facts, &s) || !went(o, name_read(k, id,
	    name, &length)))
		return;
	kvroute_json_object(o, NULL);
	kvroute_json_text(o, "name", name, length);
	put_facts(o, &facts);
	put_load(o, &s);
	put_hits(o, &s);
	kvroute_json_object_end(o);
}

static void
put_workers(kvroute_reply_t *o, const struct kvr *k)
{
	uint64_t id = 0;

	kvroute_json_array(o, "workers");
	while ((id = worker_next(o, k, id)) != 0)
		put_worker(o, k, id);
	kvroute_json_array_end(o);
}

/* Of all workers that are there, by estimate. */
static void
put_sums(kvroute_reply_t *o, const struct kvr *k)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id = 0, prompt = 0, predicted = 0;

	while ((id = worker_next(o, k, id)) != 0) {
		if (!worker_read(o, k, id, &facts, &s))
			continue;
		prompt += s.prompt_tokens;
		predicted += s.predicted_tokens;
	}
	kvroute_json_whole(o, "prompt_tokens", prompt);
	kvroute_json_whole(o, "predicted_tokens", predicted);
}

static void
put_upstream(kvroute_reply_t *o, const ngx_http_kvroute_srv_conf_t *up)
{
	struct kvr_options options = up->options;
	struct kvr_stats s = { .size = sizeof(s) };
	const char *shadow = NAME_IN(shadows, up->shadow);

	int error;

	ngx_memzero(&s, sizeof(s));
	s.size = sizeof(s);
	if (up->kvr != NULL) {
		KVROUTE_PATIENTLY(error, kvr_stats(up->kvr, &s));
		(void)went(o, error);
		/* A file keeps those that it was made with. */
		KVROUTE_PATIENTLY(error, kvr_get_options(up->kvr, &options));
		(void)went(o, error);
	}
	kvroute_json_object(o, NULL);
	kvroute_json_text(o, "name", up->upstream->host.data,
	    up->upstream->host.len);
	kvroute_json_bool(o, "attached", up->kvr != NULL);
	kvroute_json_name(o, "policy", NAME_IN(costs, up->policy.cost));
	kvroute_json_whole(o, "block", options.block_size);
	kvroute_json_real(o, "ttl", (double)options.ttl_ns / 1e9);
	if (shadow == NULL)
		kvroute_json_null(o, "shadow");
	else
		kvroute_json_name(o, "shadow", shadow);
	put_region(o, &s);
	put_sums(o, up->kvr);
	put_requests(o, up);
	put_counters(o, up);
	put_workers(o, up->kvr);
	kvroute_json_object_end(o);
}

ngx_int_t
kvroute_state_show(ngx_http_request_t *r)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);
	kvroute_reply_t o;
	ngx_uint_t i;

	if (all.n == 0 && kvroute_argument(r, "upstream").len > 0)
		return kvroute_no_upstream(r);
	for (i = 0; i < all.n; i++) {
		if (kvroute_blocked(all.at[i]))
			return kvroute_blocked_answer(r);
	}
	kvroute_json_begin(&o, r);
	kvroute_json_object(&o, NULL);
	kvroute_json_name(&o, "version", kvr_version_string());
	kvroute_json_whole(&o, "time", (uint64_t)ngx_time());
	kvroute_json_array(&o, "upstreams");
	for (i = 0; i < all.n; i++)
		put_upstream(&o, all.at[i]);
	kvroute_json_array_end(&o);
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, NGX_HTTP_OK);
}
