/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_edit.c - changes to the request, which the proxy makes in its own copy.
 *
 *   Accept-Encoding           identity, because usage is not read from gzip
 *   X-Data-Parallel-Rank      the rank that was chosen, or no such header
 *   X-Prefiller-Host-Port     the server that prefills, or no such header
 *   {... "stream":true ...}   ,"stream_options":{"include_usage":true}
 *                             if feedback is on: usage_ask.h
 *   {... "cache_salt": ...}   the proxy's salt, in place of the client's
 */
#include "pool_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool_count.h"
#include "usage_ask.h"

#define SECOND INT64_C(1000000000)

static const char identity[] = "accept-encoding: identity";
static const char rank_name[] = "x-data-parallel-rank:";
static const char no_prefill[] = "x-prefiller-host-port:";

/* Behind all edits at the same offset, and ahead of later ones. */
static void
edit_add(struct kvh_call *c, int64_t offset, uint64_t cut, const char *text)
{
	struct call_edit *e = &c->edit[c->n_edits];

	for (; e > c->edit && e[-1].offset > offset; e--)
		*e = e[-1];
	*e = (struct call_edit){ offset, cut, text, strlen(text) };
	c->n_edits++;
}

static void
usage_ask(struct kvh_call *c)
{
	const struct pool_options *o = &c->h->options;
	struct usage_ask ask;

	if (!o->feedback || !o->include_usage || c->unedited ||
	    c->opinion != REASON_COST ||
	    !usage_ask_find(&ask, &c->facts, c->endpoint) ||
	    (!c->asked && !shared_usage_asks(c->h->fleet.shared,
	    c->now / SECOND)))
		return;
	edit_add(c, (int64_t)ask.at, ask.cut, ask.text);
	if (!c->asked)
		pool_count(c->h, COUNT_REQUESTED, 1);
	c->asked = true;
}

/* False: no memory. */
static bool
salt_put(struct kvh_call *c)
{
	const size_t room = SALT_ROOM(c->salt.length) + 1;
	size_t i, n;

	if (c->unsalted)
		return true;
	if (c->salt_text == NULL)
		c->salt_text = malloc(room);
	if (c->salt_text == NULL)
		return false;
	for (i = 0; i < c->scan->spans; i++)
		edit_add(c, (int64_t)c->scan->span[i].at,
		    c->scan->span[i].end - c->scan->span[i].at, "");
	n = salt_member(c->scan, c->salt.bytes, c->salt.length,
	    (unsigned char *)c->salt_text, room - 1);
	c->salt_text[n] = '\0';
	edit_add(c, (int64_t)c->scan->end, 0, c->salt_text);
	return true;
}

static void
rank_put(struct kvh_call *c)
{
	const struct call_target *to = &c->target[0];

	if (!to->named)
		return;
	if (to->rank >= 0)
		(void)snprintf(c->rank_text, sizeof(c->rank_text), "%s %d",
		    rank_name, (int)to->rank);
	edit_add(c, KVH_HEADER, 0, to->rank >= 0 ? c->rank_text : rank_name);
}

/* A client's own would have its target ask any address. */
static void
prefill_put(struct kvh_call *c)
{
	if (c->parted)
		edit_add(c, KVH_HEADER, 0, c->prefill_length > 0 ?
		    c->prefill_text : no_prefill);
}

/* False: no memory. */
static bool
edits_make(struct kvh_call *c)
{
	if (c->edited)
		return true;
	c->n_edits = 0;
	if (c->h->options.feedback &&
	    (c->endpoint != ENDPOINT_OTHER || c->keeps.binds != 0))
		edit_add(c, KVH_HEADER, 0, identity);
	rank_put(c);
	prefill_put(c);
	usage_ask(c);
	c->edited = salt_put(c);
	return c->edited;
}

int
kvh_edit(struct kvh_call *c, uint32_t i, int64_t *offset, uint64_t *cut,
    const char **text, size_t *text_len)
{
	const struct call_edit *e;

	if (c == NULL || offset == NULL || cut == NULL || text == NULL ||
	    text_len == NULL)
		return KVR_EINVAL;
	if (c->stage != CALL_SENT)
		return KVH_EORDER;
	if (!edits_make(c))
		return KVR_ENOMEM;
	if (i >= c->n_edits)
		return KVH_EEND;
	e = &c->edit[i];
	*offset = e->offset;
	*cut = e->cut;
	*text = e->text;
	*text_len = e->length;
	return KVR_OK;
}
