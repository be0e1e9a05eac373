/* SPDX-License-Identifier: BSD-2-Clause */
/* redis_way.c - see redis_way.h. */
#include "redis_way.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 6379, SENTINEL_PORT = 26379 };

static const char decimals[] = "0123456789";

/* Takes "/db", "/" or nothing. */
static bool
take_database(struct redis_way *w, const char *path)
{
	const size_t n = strlen(path);

	if (n == 0)
		return true;
	if (n > sizeof(w->db) - 1 || strspn(path + 1, decimals) != n - 1)
		return false;
	strcpy(w->db, path + 1);
	return true;
}

/* Takes "/MASTER" or "/MASTER/db". */
static bool
take_master(struct redis_way *w, const char *path)
{
	const size_t n = path[0] == '\0' ? 0 : strcspn(path + 1, "/");

	if (n == 0 || n >= sizeof(w->master))
		return false;
	memcpy(w->master, path + 1, n);
	w->master[n] = '\0';
	return take_database(w, path + 1 + n);
}

/* NULL, or the fault. */
static const char *
take_path(struct redis_way *w, const struct bus_url *url)
{
	const char *plus = strchr(url->scheme, '+');

	if (plus != NULL)
		w->kind = strcmp(plus, "+sentinel") == 0 ? WAY_SENTINEL :
		    WAY_CLUSTER;
	if (strcmp(url->scheme, "unix") == 0)
		return url->path[0] != '\0' ? NULL :
		    "the path is that of no socket";
	if (w->kind == WAY_ONE && url->n_hosts > 1)
		return "several hosts are Sentinels, +sentinel, or of a "
		    "Cluster, +cluster";
	if (w->kind == WAY_SENTINEL)
		return take_master(w, url->path) ? NULL :
		    "the path is no /MASTER or /MASTER/database";
	if (!take_database(w, url->path))
		return "the path is that of no database";
	return w->kind == WAY_ONE || w->db[0] == '\0' ? NULL :
	    "a Cluster has no databases";
}

bool
redis_way_begin(struct redis_way *w, const struct bus_url *url, char *error,
    size_t size)
{
	const char *wrong;

	memset(w, 0, sizeof(*w));
	w->url = url;
	wrong = take_path(w, url);
	if (wrong != NULL)
		snprintf(error, size, "URL: %s", wrong);
	return wrong == NULL;
}

bool
redis_way_next(const struct redis_way *w, struct bus_host *out)
{
	const bool sentinel = w->kind == WAY_SENTINEL &&
	    w->node.name[0] == '\0';

	*out = w->node.name[0] != '\0' ? w->node : w->url->hosts[w->at];
	if (out->name[0] == '\0')
		strcpy(out->name, "127.0.0.1");
	if (out->port == 0)
		out->port = sentinel ? SENTINEL_PORT : PORT;
	return sentinel;
}

void
redis_way_found(struct redis_way *w, const char *name, unsigned port)
{
	snprintf(w->node.name, sizeof(w->node.name), "%s", name);
	w->node.port = port;
}

/* Two connections to one host that end count once. */
void
redis_way_lost(struct redis_way *w, const struct bus_host *from)
{
	struct bus_host next;

	(void)redis_way_next(w, &next);
	if (w->kind == WAY_ONE || !bus_host_equal(from, &next))
		return;
	w->node.name[0] = '\0';
	w->asking = false;
	w->at = (w->at + 1) % w->url->n_hosts;
}

/* "MOVED 3999 host:port", "ASK 3999 host:port"; no host: the same one. */
bool
redis_way_moved(struct redis_way *w, const struct bus_host *from,
    const char *error)
{
	const bool ask = strncmp(error, "ASK ", 4) == 0;
	const char *name, *colon;
	size_t n;
	long port;

	if (w->kind != WAY_CLUSTER || (!ask && strncmp(error, "MOVED ",
	    6) != 0))
		return false;
	name = strrchr(error, ' ') + 1;
	colon = strrchr(name, ':');
	port = colon == NULL ? 0 : strtol(colon + 1, NULL, 10);
	if (port <= 0 || port > 65535)
		return false;
	n = (size_t)(colon - name);
	if (n == 0 || (n == 1 && *name == '?')) {
		name = from->name;
		n = strlen(name);
	}
	if (n >= sizeof(w->node.name))
		return false;
	memmove(w->node.name, name, n);
	w->node.name[n] = '\0';
	w->node.port = (unsigned)port;
	w->asking = ask;
	return true;
}

bool
bus_host_equal(const struct bus_host *a, const struct bus_host *b)
{
	return a->port == b->port && strcmp(a->name, b->name) == 0;
}
