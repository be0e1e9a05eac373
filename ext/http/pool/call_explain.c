/* SPDX-License-Identifier: BSD-2-Clause */
/* call_explain.c - see call_explain.h. */
#include "call_explain.h"

#include <stdlib.h>

#include "status_explain.h"

static bool
text_write(void *context, const void *bytes, size_t n)
{
	return hold_append(context, bytes, n);
}

static void *
text_alloc(void *context, size_t size)
{
	(void)context;
	return malloc(size);
}

static void
text_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

int
call_explain(struct kvh_call *c)
{
	static const struct writer_calls calls = { .write = text_write,
	    .alloc = text_alloc, .free = text_free };
	struct writer w = { .calls = &calls, .context = &c->explained };
	struct explain e = { .upstream = c->h->options.name.bytes,
	    .upstream_length = c->h->options.name.length,
	    .endpoint = c->endpoint, .facts = &c->facts,
	    .model = c->model.bytes, .model_length = c->model.length,
	    .outcome = c->opinion, .kvr = c->h->k, .prompt = c->prompt,
	    .info = { .size = sizeof(e.info) }, .scope = c->prompt_scope,
	    .now = c->now };

	if (c->stage != CALL_READY)
		return KVH_EORDER;
	if (c->opinion == REASON_COST && (c->prompt == NULL ||
	    kvr_prompt_info_get(c->prompt, &e.info) != KVR_OK))
		e.outcome = REASON_FAILED;
	c->explained.length = 0;
	status_explain(&e, &w);
	if (!w.failed)
		return KVR_OK;
	return w.busy > 0 ? KVR_EBUSY : KVR_ENOMEM;
}
