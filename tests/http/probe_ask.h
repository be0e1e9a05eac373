/* SPDX-License-Identifier: BSD-2-Clause */
/* probe_ask.h - gives a probe a response of HTTP, as a fetch of nginx does. */
#ifndef KVROUTE_PROBE_ASK_H
#define KVROUTE_PROBE_ASK_H

#include "probe.h"
#include "response.h"

/* A response to the current path of `probe`; begin it by probe_begin. */
struct asked {
	struct probe *probe;
	struct response response;
};

/* Reads a piece of the connection. */
static inline enum probe_state
asked_data(struct asked *a, const void *bytes, size_t n)
{
	const char *at = bytes, *const end = at + n;
	enum probe_state state = PROBE_MORE;
	struct response_part part;
	enum response_what what;

	do {
		what = response_next(&a->response, &at, end, &part);
		if (what == RESPONSE_BODY)
			state = probe_body(a->probe, a->response.status,
			    part.bytes, part.n);
	} while (what == RESPONSE_BODY && state == PROBE_MORE);
	if (what == RESPONSE_BODY || what == RESPONSE_MORE)
		return state;
	return probe_end(a->probe, what == RESPONSE_BAD ? 0 :
	    a->response.status, what == RESPONSE_END);
}

/* The connection has ended. Never returns PROBE_MORE. */
static inline enum probe_state
asked_close(struct asked *a)
{
	const bool whole = response_close(&a->response);

	return probe_end(a->probe, a->response.status, whole);
}

#endif
