/* SPDX-License-Identifier: BSD-2-Clause */
/* errand.c - see errand.h. */
#include "errand.h"

#include <string.h>

void
errand_begin(struct errand *e, const struct errand_calls *calls,
    struct fleet *f, const struct known *known)
{
	memset(e, 0, sizeof(*e));
	e->calls = calls;
	e->fleet = f;
	e->name_len = known->name_len;
	memcpy(e->name, known->name, known->name_len);
}

enum errand_state
errand_data(struct errand *e, unsigned status, const void *bytes, size_t n,
    int64_t now, void *log)
{
	return e->open ? e->calls->data(e, status, bytes, n, now, log) :
	    ERRAND_OVER;
}

enum errand_state
errand_end(struct errand *e, unsigned status, bool whole, int64_t now,
    void *log)
{
	return e->open ? e->calls->end(e, status, whole, now, log) :
	    ERRAND_OVER;
}

void
errand_failed(struct errand *e, const char *why, int64_t now, void *log)
{
	if (e->open)
		e->calls->failed(e, why, now, log);
}

void
errand_leave(struct errand *e)
{
	if (e->open)
		e->calls->leave(e);
	e->open = false;
}
