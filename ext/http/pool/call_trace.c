/* SPDX-License-Identifier: BSD-2-Clause */
/* call_trace.c - see call_trace.h. */
#include "call_trace.h"

void
trace_keep(struct kvh_call *c)
{
	if (c->h->options.trace)
		trace_line_keep(&c->trace, c->prompt, &c->decision,
		    c->facts.opening, c->h->region.block_size,
		    c->h->options.trace_sample);
}

void
trace_line(struct kvh_call *c)
{
	const struct call_target *to = &c->target[0];

	if (c->line == NULL && c->n_targets > 0)
		c->line = trace_line_write(&c->trace, &c->decision,
		    &c->passing.report, to->server->name, to->server->length,
		    to->rank, &c->line_length);
}
