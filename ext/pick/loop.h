/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.h - what both servers need beside libevent: seconds, and a rest. */
#ifndef KVROUTE_PICK_LOOP_H
#define KVROUTE_PICK_LOOP_H

#include <stdint.h>
#include <time.h>

struct evconnlistener;

static inline int64_t
loop_seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/*
 * The listener rests when there is no descriptor left, for it would be called
 * again at once. Its owner enables it once a second.
 */
void loop_rest(struct evconnlistener *listener);

#endif
