/* SPDX-License-Identifier: BSD-2-Clause */
/* loop.c - see loop.h. */
#include "loop.h"

#include <event2/listener.h>

static void
on_error(struct evconnlistener *listener, void *owner)
{
	(void)owner;
	(void)evconnlistener_disable(listener);
}

void
loop_rest(struct evconnlistener *listener)
{
	evconnlistener_set_error_cb(listener, on_error);
}
