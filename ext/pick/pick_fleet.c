/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_fleet.c - see pick_fleet.h. */
#define _GNU_SOURCE /* EAI_NODATA */
#include "pick_fleet.h"

#include <arpa/inet.h>
#include <err.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "kvroute.h"
#include "kvroute_http.h"
#include "name_resolver.h"
#include "pick_check.h"
#include "pick_file.h"

enum { WATCH_SECONDS = 1 };

/* The sources of a server; the first one in this order has its facts. */
enum {
	FROM_API, FROM_FILE,
	FROM_NAMES,         /* + i: name i of the file */
	SOURCES = FROM_NAMES + FLEET_NAMES_MAX
};

struct member {
	char name[CONF_NAME_MAX];
	bool from[SOURCES];
	bool seen;          /* the source at hand still has it */
	bool deleted;       /* by the API, while others have it */
	bool gone;          /* the region was locked: it is removed later */
};

struct fleet_name {
	struct pick_fleet *fleet;
	size_t place;
	char name[CONF_NAME_MAX], facts[CONF_FACTS_MAX];
	bool used, asks;
	bool failed;        /* a warning was printed */
};

struct pick_fleet {
	struct event_base *base;
	struct pick_pool *pool;
	const struct pick_conf *options; /* that are in force */
	struct pick_file file;
	bool listed;        /* the file had servers */
	bool due;           /* the region was locked: it is read again */
	struct event *watch, *resolve;
	struct name_resolver *resolver;
	struct member *members;
	size_t n, room;
	struct fleet_name names[FLEET_NAMES_MAX];
};

/* ------------------------------------------------------------- members --- */

static struct member *
find_member(struct pick_fleet *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (strcmp(f->members[i].name, name) == 0)
			return &f->members[i];
	return NULL;
}

static struct member *
add_member(struct pick_fleet *f, const char *name)
{
	struct member *more;
	size_t room = f->room == 0 ? 16 : 2 * f->room;

	if (strlen(name) >= CONF_NAME_MAX)
		return NULL;
	if (f->n == f->room) {
		more = realloc(f->members, room * sizeof(*more));
		if (more == NULL)
			return NULL;
		f->members = more;
		f->room = room;
	}
	more = &f->members[f->n++];
	memset(more, 0, sizeof(*more));
	strcpy(more->name, name);
	return more;
}

static bool
is_from(const struct member *m, size_t sources)
{
	return memchr(m->from, true, sources) != NULL;
}

static void
count_servers(struct pick_fleet *f)
{
	size_t i;

	f->pool->servers = 0;
	for (i = 0; i < f->n; i++)
		f->pool->servers += !f->members[i].gone &&
		    !f->members[i].deleted;
}

static int
put_member(struct pick_fleet *f, const char *name, const char *facts,
    size_t source, size_t *bad)
{
	struct member *m = find_member(f, name);
	int error;

	if (m != NULL && source != FROM_API &&
	    (m->deleted || is_from(m, source))) {
		m->from[source] = m->seen = true;
		return 0;
	}
	error = kvh_server_put(f->pool->kvh, name, strlen(name), facts,
	    strlen(facts), bad);
	if (error != 0)
		return error;
	if (m == NULL && (m = add_member(f, name)) == NULL) {
		(void)kvh_server_put(f->pool->kvh, name, strlen(name),
		    "state=gone", 10, NULL);
		return KVR_ENOMEM;
	}
	m->from[source] = m->seen = true;
	m->deleted = m->gone = false;
	count_servers(f);
	return 0;
}

/* A server that sources still have is kept on record: it was deleted. */
static void
drop_member(struct pick_fleet *f, struct member *m)
{
	m->gone = kvh_server_put(f->pool->kvh, m->name, strlen(m->name),
	    "state=gone", 10, NULL) == KVR_EBUSY;
	if (!m->gone && !is_from(m, SOURCES))
		*m = f->members[--f->n];
	count_servers(f);
}

/* Removes servers that could not be removed while the region was locked. */
static void
drop_gone(struct pick_fleet *f)
{
	size_t i;

	for (i = f->n; i-- > 0;)
		if (f->members[i].gone)
			drop_member(f, &f->members[i]);
}

static void
forget_seen(struct pick_fleet *f, size_t source)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->members[i].from[source])
			f->members[i].seen = false;
}

static void
drop_unseen(struct pick_fleet *f, size_t source)
{
	struct member *m;
	size_t i;

	for (i = f->n; i-- > 0;) {
		m = &f->members[i];
		if (!m->from[source] || m->seen)
			continue;
		m->from[source] = false;
		if (!is_from(m, SOURCES))
			drop_member(f, m);
	}
	count_servers(f);
}

int
fleet_put(struct pick_fleet *f, const char *name, const char *facts,
    size_t *bad)
{
	return put_member(f, name, facts, FROM_API, bad);
}

bool
fleet_has(struct pick_fleet *f, const char *name)
{
	return find_member(f, name) != NULL;
}

bool
fleet_delete(struct pick_fleet *f, const char *name)
{
	struct member *m = find_member(f, name);

	if (m == NULL || m->deleted || m->gone)
		return false;
	m->from[FROM_API] = false;
	m->deleted = is_from(m, SOURCES);
	drop_member(f, m);
	return true;
}

/* --------------------------------------------------------------- names --- */

/* "10.0.0.1:8000" of an address; its port is set. */
static bool
write_address(const struct sockaddr *from, char name[CONF_NAME_MAX])
{
	const struct sockaddr_in6 *six = (const void *)from;
	const struct sockaddr_in *four = (const void *)from;
	char host[INET6_ADDRSTRLEN];

	if (from->sa_family == AF_INET &&
	    inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host)) != NULL)
		snprintf(name, CONF_NAME_MAX, "%s:%u", host,
		    ntohs(four->sin_port));
	else if (from->sa_family == AF_INET6 &&
	    inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host)) != NULL)
		snprintf(name, CONF_NAME_MAX, "[%s]:%u", host,
		    ntohs(six->sin6_port));
	else
		return false;
	return true;
}

/*
 * A name that has no address any more has no servers; one that cannot be asked
 * for keeps those that it had.
 */
static void
take_addresses(void *name, int error, const struct addrinfo *found)
{
	struct fleet_name *n = name;
	char address[CONF_NAME_MAX];

	n->asks = false;
	/* The file may have lost it meanwhile. */
	if (!n->used)
		return;
	if (error != 0 && error != EAI_NONAME && error != EAI_NODATA) {
		if (!n->failed)
			warnx("%s: %s", n->name, gai_strerror(error));
		n->failed = true;
		return;
	}
	n->failed = false;
	forget_seen(n->fleet, FROM_NAMES + n->place);
	for (; found != NULL; found = found->ai_next)
		if (write_address(found->ai_addr, address) &&
		    put_member(n->fleet, address, n->facts,
		    FROM_NAMES + n->place, NULL) != 0)
			warnx("%s: it is not added", address);
	drop_unseen(n->fleet, FROM_NAMES + n->place);
}

static void
ask_name(struct pick_fleet *f, struct fleet_name *n)
{
	char host[CONF_NAME_MAX];
	unsigned port;

	if (!n->used || n->asks || f->resolver == NULL ||
	    !pick_conf_split(n->name, host, &port))
		return;
	n->asks = resolver_ask(f->resolver, n, host, port);
	if (n->asks || n->failed)
		return;
	warnx("%s: there is no memory or no thread to ask for it", n->name);
	n->failed = true;
}

static void
on_resolve(evutil_socket_t fd, short events, void *fleet)
{
	struct pick_fleet *f = fleet;
	size_t i;

	(void)fd;
	(void)events;
	for (i = 0; i < FLEET_NAMES_MAX; i++)
		ask_name(f, &f->names[i]);
}

/* The place of a name; one that is not known yet takes a free one. */
static struct fleet_name *
name_at(struct pick_fleet *f, const char *name)
{
	struct fleet_name *idle = NULL, *n;

	for (n = f->names; n < f->names + FLEET_NAMES_MAX; n++) {
		if (n->used && strcmp(n->name, name) == 0)
			return n;
		if (idle == NULL && !n->used && !n->asks)
			idle = n;
	}
	if (idle != NULL) {
		idle->fleet = f;
		idle->place = (size_t)(idle - f->names);
		idle->failed = false;
		strcpy(idle->name, name);
	}
	return idle;
}

/* Names begin when the loop runs: its configuration is read at once. */
static bool
need_resolver(struct pick_fleet *f)
{
	const struct timeval often = { .tv_sec = RESOLVE_SECONDS };

	if (f->resolver != NULL)
		return true;
	f->resolver = resolver_new(f->base, take_addresses);
	f->resolve = event_new(f->base, -1, EV_PERSIST, on_resolve, f);
	return f->resolver != NULL && f->resolve != NULL &&
	    event_add(f->resolve, &often) == 0;
}

/* ---------------------------------------------------------------- file --- */

/* Adds names of the file, and drops servers of names that have left it. */
static bool
apply_names(struct pick_fleet *f, const struct pick_conf *conf)
{
	bool kept[FLEET_NAMES_MAX] = { false };
	struct fleet_name *n;
	size_t i;

	for (i = 0; i < conf->n; i++) {
		if (pick_conf_is_address(conf->servers[i].name))
			continue;
		n = name_at(f, conf->servers[i].name);
		if (n == NULL || !need_resolver(f))
			return false;
		n->used = kept[n->place] = true;
		strcpy(n->facts, conf->servers[i].facts);
		ask_name(f, n);
	}
	for (i = 0; i < FLEET_NAMES_MAX; i++) {
		if (kept[i] || !f->names[i].used)
			continue;
		f->names[i].used = false;
		forget_seen(f, FROM_NAMES + i);
		drop_unseen(f, FROM_NAMES + i);
	}
	return true;
}

bool
fleet_apply(struct pick_fleet *f, const struct pick_conf *conf,
    char error[CONF_ERROR_MAX])
{
	const struct conf_server *s;
	size_t i, bad = 0;
	int result;

	f->due = false;
	if (conf->n == 0 && f->listed) {
		snprintf(error, CONF_ERROR_MAX,
		    "1: there are no servers; those that were stay");
		return false;
	}
	f->listed = conf->n > 0;
	forget_seen(f, FROM_FILE);
	for (i = 0; i < conf->n; i++) {
		s = &conf->servers[i];
		if (!pick_conf_is_address(s->name))
			continue;
		result = put_member(f, s->name, s->facts, FROM_FILE, &bad);
		if (result == 0)
			continue;
		f->due = result == KVR_EBUSY;
		snprintf(error, CONF_ERROR_MAX, "%u: server %s: %s", s->line,
		    s->name, kvh_strerror(result));
		return false;
	}
	if (!apply_names(f, conf)) {
		snprintf(error, CONF_ERROR_MAX,
		    "1: there are too many names, or no memory");
		return false;
	}
	drop_unseen(f, FROM_FILE);
	return true;
}

void
fleet_reload(struct pick_fleet *f)
{
	char error[CONF_ERROR_MAX];
	struct pick_conf conf;

	f->due = false;
	if (!pick_file_read(f->file.path, &conf, error)) {
		warnx("%s:%s", f->file.path, error);
		return;
	}
	if (pick_check_servers(f->file.path, f->options, &conf) &&
	    !fleet_apply(f, &conf, error) && !f->due)
		warnx("%s:%s", f->file.path, error);
	pick_conf_free(&conf);
}

static void
on_watch(evutil_socket_t fd, short events, void *fleet)
{
	struct pick_fleet *f = fleet;

	(void)fd;
	(void)events;
	drop_gone(f);
	if (pick_file_changed(&f->file) || f->due)
		fleet_reload(f);
}

struct pick_fleet *
fleet_new(struct event_base *base, struct pick_pool *pool, const char *path,
    const struct pick_conf *options)
{
	const struct timeval often = { .tv_sec = WATCH_SECONDS };
	struct pick_fleet *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->base = base;
	f->pool = pool;
	f->options = options;
	pick_file_begin(&f->file, path);
	f->watch = event_new(base, -1, EV_PERSIST, on_watch, f);
	if (f->watch != NULL && event_add(f->watch, &often) == 0)
		return f;
	fleet_free(f);
	return NULL;
}

void
fleet_free(struct pick_fleet *f)
{
	if (f == NULL)
		return;
	if (f->resolve != NULL)
		event_free(f->resolve);
	resolver_free(f->resolver);
	if (f->watch != NULL)
		event_free(f->watch);
	free(f->members);
	free(f);
}
