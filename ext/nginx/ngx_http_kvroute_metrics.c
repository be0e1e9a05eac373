/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_metrics.c - all of it as text for Prometheus.
 *
 * kvr_metrics(3) writes of one region, and the format wants all samples of a
 * metric together. The texts of several regions have the same metrics in the
 * same order, so they are merged like sorted lists, and each sample is told
 * whose it is:
 *
 *   # TYPE kvroute_leases gauge            # TYPE kvroute_leases gauge
 *   kvroute_leases 3                  -->  kvroute_leases{upstream="a"} 3
 *   # TYPE kvroute_leases gauge            kvroute_leases{upstream="b"} 5
 *   kvroute_leases 5
 */
#include "ngx_http_kvroute_status.h"

typedef struct {
	ngx_http_kvroute_srv_conf_t *up;
	const char *at, *end; /* what has not been copied */
	ngx_str_t label;      /* upstream="..." */
} text_t;

enum { HEADROOM = 4096, TRIES = 8 };

/* ------------------------------------------------------------- labels --- */

static u_char *
escape(u_char *to, const ngx_str_t *text)
{
	size_t i;

	for (i = 0; i < text->len; i++) {
		if (text->data[i] == '"' || text->data[i] == '\\')
			*to++ = '\\';
		*to++ = text->data[i];
	}
	return to;
}

static bool
label_make(ngx_pool_t *pool, text_t *t)
{
	ngx_str_t *host = &t->up->upstream->host;
	u_char *to = ngx_pnalloc(pool, 2 * host->len +
	    sizeof("upstream=\"\""));

	if (to == NULL)
		return false;
	t->label.data = to;
	to = ngx_cpymem(to, "upstream=\"", sizeof("upstream=\"") - 1);
	to = escape(to, host);
	*to++ = '"';
	t->label.len = (size_t)(to - t->label.data);
	return true;
}

/* ----------------------------------------------------- of the library --- */

/* Memory of the request until the text fits; it may grow meanwhile. */
static bool
text_read(ngx_pool_t *pool, text_t *t)
{
	char *text = NULL;
	size_t room = 0, length = 0;
	int tries, error;

	for (tries = 0; tries < TRIES; tries++) {
		KVROUTE_PATIENTLY(error, kvr_metrics(t->up->kvr, text, room,
		    &length));
		if (error != KVR_OK)
			return false;
		if (length <= room) {
			t->at = text;
			t->end = text + length;
			return true;
		}
		if (text != NULL)
			(void)ngx_pfree(pool, text);
		room = length + HEADROOM;
		text = ngx_palloc(pool, room);
		if (text == NULL)
			return false;
	}
	return false;
}

static const char *
line_end(const text_t *t)
{
	const char *lf = memchr(t->at, '\n', (size_t)(t->end - t->at));

	return lf == NULL ? t->end : lf + 1;
}

static bool
at_head(const text_t *t)
{
	return t->at < t->end && *t->at == '#';
}

/* The lines about a metric; all texts have them, one is enough. */
static void
heads_pass(kvroute_reply_t *o, text_t *t, bool put)
{
	const char *end;

	for (; at_head(t); t->at = end) {
		end = line_end(t);
		if (put)
			kvroute_reply_put(o, t->at, (size_t)(end - t->at));
	}
}

/* NAME{a="b"} 1 or NAME 1, with the label as the first. */
static void
sample_put(kvroute_reply_t *o, const text_t *t, const char *end)
{
	const char *p = t->at;
	bool labels;

	while (p < end && *p != '{' && *p != ' ' && *p != '\n')
		p++;
	labels = p < end && *p == '{';
	kvroute_reply_put(o, t->at, (size_t)(p - t->at));
	kvroute_reply_put(o, "{", 1);
	kvroute_reply_put(o, t->label.data, t->label.len);
	if (labels)
		p++;
	kvroute_reply_text(o, labels ? "," : "}");
	kvroute_reply_put(o, p, (size_t)(end - p));
}

static void
samples_pass(kvroute_reply_t *o, text_t *t)
{
	const char *end;

	for (; t->at < t->end && !at_head(t); t->at = end) {
		end = line_end(t);
		if (end - t->at > 1)
			sample_put(o, t, end);
	}
}

static void
texts_merge(kvroute_reply_t *o, text_t *texts, ngx_uint_t n)
{
	ngx_uint_t i;

	while (n > 0 && texts[0].at < texts[0].end) {
		for (i = 0; i < n; i++)
			heads_pass(o, &texts[i], i == 0);
		for (i = 0; i < n; i++)
			samples_pass(o, &texts[i]);
	}
}

/* ------------------------------------------------------ of the module --- */

static void
head_put(kvroute_reply_t *o, const char *group, const char *name,
    const char *help)
{
	const char *between = group == NULL ? "" : "_";
	const char *const words[] = { "# HELP kvroute_nginx_",
	    group == NULL ? "" : group, between, name, "_total ", help,
	    "\n# TYPE kvroute_nginx_", group == NULL ? "" : group, between,
	    name, "_total counter\n" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		kvroute_reply_text(o, words[i]);
}

/* With one label more, if `key` is not NULL. */
static void
count_put(kvroute_reply_t *o, const text_t *t, const char *group,
    const char *name, const char *key, const char *value, uint64_t n)
{
	u_char digits[NGX_INT64_LEN + 8], *end;

	kvroute_reply_text(o, "kvroute_nginx_");
	if (group != NULL) {
		kvroute_reply_text(o, group);
		kvroute_reply_text(o, "_");
	}
	kvroute_reply_text(o, name);
	kvroute_reply_text(o, "_total{");
	kvroute_reply_put(o, t->label.data, t->label.len);
	if (key != NULL) {
		kvroute_reply_text(o, ",");
		kvroute_reply_text(o, key);
		kvroute_reply_text(o, "=\"");
		kvroute_reply_text(o, value);
		kvroute_reply_text(o, "\"");
	}
	end = ngx_sprintf(digits, "} %uL\n", n);
	kvroute_reply_put(o, digits, (size_t)(end - digits));
}

static void
reasons_put(kvroute_reply_t *o, const text_t *t, ngx_uint_t n)
{
	const ngx_http_kvroute_shared_t *s;
	ngx_uint_t i, j;

	head_put(o, NULL, "requests", "Choices of a server, by reason.");
	for (i = 0; i < n; i++) {
		s = t[i].up->shared;
		for (j = 0; j < NGX_HTTP_KVROUTE_REASONS; j++) {
			if (s != NULL && kvroute_reason_occurs(j))
				count_put(o, &t[i], NULL, "requests", "reason",
				    (const char *)
				    ngx_http_kvroute_reason_names[j].data,
				    s->requests[j]);
		}
	}
}

static void
endpoints_put(kvroute_reply_t *o, const text_t *t, ngx_uint_t n)
{
	const ngx_http_kvroute_shared_t *s;
	ngx_uint_t i, j;

	head_put(o, NULL, "endpoints", "Requests, by kind of endpoint.");
	for (i = 0; i < n; i++) {
		s = t[i].up->shared;
		for (j = 0; j < ENDPOINTS; j++) {
			if (s != NULL)
				count_put(o, &t[i], NULL, "endpoints",
				    "endpoint",
				    endpoint_name((enum endpoint)j),
				    s->endpoints[j]);
		}
	}
}

static void
counters_put(kvroute_reply_t *o, const text_t *t, ngx_uint_t n)
{
	const kvroute_counter_t *c;
	ngx_uint_t i, j;

	for (j = 0; j < KVROUTE_COUNTERS; j++) {
		c = &kvroute_counters[j];
		head_put(o, c->group, c->name, c->help);
		for (i = 0; i < n; i++)
			count_put(o, &t[i], c->group, c->name, NULL, NULL,
			    kvroute_count(t[i].up, j));
	}
}

/* ----------------------------------------------------------- together --- */

/* Those without an index have counters all the same, and come last. */
static bool
texts_make(ngx_http_request_t *r, const kvroute_upstreams_t *all, text_t *texts,
    ngx_uint_t *with_index)
{
	ngx_uint_t i, first = 0, last = all->n;

	for (i = 0; i < all->n; i++) {
		text_t *t = &texts[all->at[i]->kvr != NULL ? first++ : --last];

		t->up = all->at[i];
		if (!label_make(r->pool, t) ||
		    (t->up->kvr != NULL && !text_read(r->pool, t)))
			return false;
	}
	*with_index = first;
	return true;
}

ngx_int_t
kvroute_metrics_show(ngx_http_request_t *r)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);
	ngx_uint_t i, with_index;
	kvroute_reply_t o;
	text_t *texts;

	if (all.n == 0 && kvroute_argument(r, "upstream").len > 0)
		return kvroute_no_upstream(r);
	for (i = 0; i < all.n; i++) {
		if (kvroute_blocked(all.at[i]))
			return kvroute_blocked_answer(r);
	}
	texts = ngx_pcalloc(r->pool, (all.n + 1) * sizeof(*texts));
	if (texts == NULL || !texts_make(r, &all, texts, &with_index))
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	kvroute_reply_begin(&o, r);
	texts_merge(&o, texts, with_index);
	reasons_put(&o, texts, all.n);
	endpoints_put(&o, texts, all.n);
	counters_put(&o, texts, all.n);
	return kvroute_reply_send(&o, NGX_HTTP_OK,
	    "text/plain; version=0.0.4; charset=utf-8");
}
