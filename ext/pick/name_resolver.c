/* SPDX-License-Identifier: BSD-2-Clause */
/* name_resolver.c - see name_resolver.h. */
#include "name_resolver.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 19, HOST_MAX = 256 };

struct question {
	struct name_resolver *resolver;
	struct question *next;  /* in the list of done ones */
	void *asker;
	int error;
	struct addrinfo *found;
	char host[HOST_MAX], service[8];
};

/* Threads may end after the loop: the last user frees it. */
struct name_resolver {
	pthread_mutex_t lock;
	unsigned users;         /* threads, and the loop */
	bool closed;
	struct question *done;
	int fd;                 /* readable if there are some */
	resolver_take *take;
	struct event *readable; /* of the loop */
};

static void
free_question(struct question *q)
{
	if (q->found != NULL)
		freeaddrinfo(q->found);
	free(q);
}

static void
leave_resolver(struct name_resolver *r)
{
	bool last;

	(void)pthread_mutex_lock(&r->lock);
	last = --r->users == 0;
	(void)pthread_mutex_unlock(&r->lock);
	if (!last)
		return;
	(void)pthread_mutex_destroy(&r->lock);
	(void)close(r->fd);
	free(r);
}

/* -------------------------------------------------------------- thread --- */

static void *
find_addresses(void *question)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM };
	struct question *q = question;
	struct name_resolver *r = q->resolver;
	bool closed;

	q->error = getaddrinfo(q->host, q->service, &hints, &q->found);
	if (q->error != 0)
		q->found = NULL;
	(void)pthread_mutex_lock(&r->lock);
	closed = r->closed;
	if (!closed) {
		q->next = r->done;
		r->done = q;
		(void)eventfd_write(r->fd, 1);
	}
	(void)pthread_mutex_unlock(&r->lock);
	if (closed)
		free_question(q);
	leave_resolver(r);
	return NULL;
}

/* Signals are for the loop. */
static bool
begin_thread(struct question *q)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	bool begun;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	(void)pthread_attr_setdetachstate(&attributes,
	    PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	begun = pthread_create(&thread, &attributes, find_addresses, q) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return begun;
}

bool
resolver_ask(struct name_resolver *r, void *asker, const char *host,
    unsigned port)
{
	struct question *q = calloc(1, sizeof(*q));

	if (q == NULL || strlen(host) >= sizeof(q->host)) {
		free(q);
		return false;
	}
	q->resolver = r;
	q->asker = asker;
	strcpy(q->host, host);
	snprintf(q->service, sizeof(q->service), "%u", port);
	(void)pthread_mutex_lock(&r->lock);
	r->users++;
	(void)pthread_mutex_unlock(&r->lock);
	if (begin_thread(q))
		return true;
	leave_resolver(r);
	free(q);
	return false;
}

/* ---------------------------------------------------------------- loop --- */

static void
on_done(evutil_socket_t fd, short events, void *resolver)
{
	struct name_resolver *r = resolver;
	struct question *q, *next;
	eventfd_t n;

	(void)events;
	(void)eventfd_read(fd, &n);
	(void)pthread_mutex_lock(&r->lock);
	q = r->done;
	r->done = NULL;
	(void)pthread_mutex_unlock(&r->lock);
	for (; q != NULL; q = next) {
		next = q->next;
		r->take(q->asker, q->error, q->found);
		free_question(q);
	}
}

struct name_resolver *
resolver_new(struct event_base *base, resolver_take *take)
{
	struct name_resolver *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->users = 1;
	r->take = take;
	r->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&r->lock, NULL);
	if (r->fd != -1)
		r->readable = event_new(base, r->fd, EV_READ | EV_PERSIST,
		    on_done, r);
	if (r->readable != NULL && event_add(r->readable, NULL) == 0)
		return r;
	resolver_free(r);
	return NULL;
}

void
resolver_free(struct name_resolver *r)
{
	struct question *q, *next;

	if (r == NULL)
		return;
	if (r->readable != NULL)
		event_free(r->readable);
	(void)pthread_mutex_lock(&r->lock);
	r->closed = true;
	q = r->done;
	r->done = NULL;
	(void)pthread_mutex_unlock(&r->lock);
	for (; q != NULL; q = next) {
		next = q->next;
		free_question(q);
	}
	leave_resolver(r);
}
