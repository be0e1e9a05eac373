/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name_resolver.h - addresses of names by getaddrinfo(), which waits, so that
 * each question has a thread for as long as it takes:
 *
 *   loop     resolver_ask ---> ... other events ... ---> take
 *                  |                                       ^
 *   thread         '--> getaddrinfo --> done list, a byte -'
 */
#ifndef KVROUTE_NAME_RESOLVER_H
#define KVROUTE_NAME_RESOLVER_H

#include <netdb.h>
#include <stdbool.h>

struct event_base;
struct name_resolver;

/* In the loop. error: of getaddrinfo(3); 0: `found` is valid meanwhile. */
typedef void resolver_take(void *asker, int error,
    const struct addrinfo *found);

/* NULL: no memory, or no descriptor. */
struct name_resolver *resolver_new(struct event_base *base,
    resolver_take *take);
/* False: there is no memory or no thread, and nothing will be taken. */
bool resolver_ask(struct name_resolver *r, void *asker, const char *host,
    unsigned port);
/* Answers are not taken any more. NULL is accepted. */
void resolver_free(struct name_resolver *r);

#endif
