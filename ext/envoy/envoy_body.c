/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * envoy_body.c - see envoy_body.h. A request's body lies in two buffers of
 * Envoy's; almost all edits are at its end:
 *
 *   buffered             received
 *   {"model":"m", ...    ... "stream":true} <- ,"stream_options":{...}
 *
 * Envoy drains a buffer from its head, so the one that is edited is rewritten.
 * An edit that begins in the buffered body rewrites both into the last.
 */
#include "envoy_body.h"

#include <stdlib.h>
#include <string.h>

#include "kvroute_http.h"
#include "text_hold.h"

/* -------------------------------------------------------------- pieces --- */

bool
pieces_read(struct envoy_pieces *p, void *envoy, int body)
{
	p->at = p->few;
	p->n = envoy_dynamic_module_callback_http_get_body_chunks_size(envoy,
	    body);
	if (p->n > sizeof(p->few) / sizeof(p->few[0])) {
		p->at = malloc(p->n * sizeof(*p->at));
		if (p->at == NULL)
			return false;
	}
	if (p->n > 0 && !envoy_dynamic_module_callback_http_get_body_chunks(
	    envoy, body, p->at))
		p->n = 0;
	return true;
}

void
pieces_free(struct envoy_pieces *p)
{
	if (p->at != p->few)
		free(p->at);
}

void
body_replace(void *envoy, int body, size_t cut, const void *bytes, size_t n)
{
	if (cut > 0)
		(void)envoy_dynamic_module_callback_http_drain_body(envoy,
		    body, cut);
	if (n > 0)
		(void)envoy_dynamic_module_callback_http_append_body(envoy,
		    body, (struct envoy_text){ bytes, n });
}

/* --------------------------------------------------------------- edits --- */

static bool
append_body(struct hold *to, void *envoy, int body)
{
	struct envoy_pieces p;
	bool done = true;
	size_t i;

	if (!pieces_read(&p, envoy, body))
		return false;
	for (i = 0; i < p.n && done; i++)
		done = hold_append(to, p.at[i].at, p.at[i].n);
	pieces_free(&p);
	return done;
}

/* The place of the first edit of the body; false: the body has no edit. */
static bool
find_edit(struct kvh_call *call, size_t *at)
{
	const char *text;
	int64_t offset;
	uint64_t cut;
	uint32_t i;
	size_t n;

	for (i = 0; kvh_edit(call, i, &offset, &cut, &text, &n) == 0; i++) {
		*at = (size_t)offset;
		if (offset >= 0)
			return true;
	}
	return false;
}

/* `from` begins at byte `base` of the body. */
static bool
apply_edits(struct kvh_call *call, const struct hold *from, size_t base,
    struct hold *to)
{
	const size_t end = base + from->length;
	const char *text;
	size_t at = base, n;
	int64_t offset;
	uint64_t cut;
	uint32_t i;

	for (i = 0; kvh_edit(call, i, &offset, &cut, &text, &n) == 0; i++) {
		if (offset < 0)
			continue;
		if ((uint64_t)offset < at || (uint64_t)offset > end ||
		    cut > end - (uint64_t)offset)
			return false;
		if (!hold_append(to, from->data + (at - base),
		    (size_t)offset - at) || !hold_append(to, text, n))
			return false;
		at = (size_t)offset + cut;
	}
	return hold_append(to, from->data + (at - base), end - at);
}

static size_t
size_of(void *envoy, int body)
{
	return envoy_dynamic_module_callback_http_get_body_size(envoy, body);
}

size_t
body_edit(void *envoy, struct kvh_call *call, int last)
{
	struct hold from = { NULL, 0, 0 }, to = { NULL, 0, 0 };
	size_t first, before = 0, size = 0;
	bool both, done = true;

	if (!find_edit(call, &first))
		return 0;
	if (last == ENVOY_REQUEST_RECEIVED &&
	    !envoy_dynamic_module_callback_http_received_buffered_request_body(
	    envoy))
		before = size_of(envoy, ENVOY_REQUEST_BUFFERED);
	both = first < before;
	if (both)
		done = append_body(&from, envoy, ENVOY_REQUEST_BUFFERED);
	if (done && append_body(&from, envoy, last) &&
	    apply_edits(call, &from, both ? 0 : before, &to)) {
		size = both ? to.length : before + to.length;
		if (both)
			body_replace(envoy, ENVOY_REQUEST_BUFFERED, before,
			    NULL, 0);
		body_replace(envoy, last, size_of(envoy, last), to.data,
		    to.length);
	}
	hold_free(&from);
	hold_free(&to);
	return size;
}
