/* SPDX-License-Identifier: BSD-2-Clause */
/* envoy_pool.c - see envoy_pool.h. */
#include "envoy_pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "envoy_abi.h"
#include "kvroute.h"
#include "kvroute_http.h"
#include "pick_file.h"
#include "pick_open.h"

#define SECOND_NS INT64_C(1000000000)
#define WAKE_NS INT64_C(10000000) /* at least so long after the last */

struct envoy_pool {
	struct envoy_pool *next;
	size_t users;
	char *text;              /* of the filter: its key */
	size_t n;
	bool is_file;
	struct kvh *kvh;
	struct pick_conf conf;   /* its options are in force */
	struct pick_conf wanted; /* its servers are to be in the pool */
	struct hold put;         /* names of servers that were put */
	struct pick_file file;
	bool due;                /* servers are to be put again */
	bool warned;             /* that one of `wanted` could not be put */
	pthread_t thread;
	pthread_mutex_t lock;    /* of `stops` */
	pthread_cond_t wakes;
	bool stops;
};

static struct envoy_pool *pools;
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER;

/* ------------------------------------------------------- configuration --- */

static const char *
name_of(const struct envoy_pool *p)
{
	return p->is_file ? p->text : "filter_config";
}

/* No request waits in line here, and engines are not asked. */
static bool
check_options(const struct pick_conf *conf, char error[CONF_ERROR_MAX])
{
	static const char *const names[] = { "queue", "queue_timeout", "poll",
		"poll_path" };
	unsigned line = 0;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && line == 0; i++)
		line = pick_conf_option(conf, names[i]);
	if (line > 0)
		(void)snprintf(error, CONF_ERROR_MAX, "%u: queue, "
		    "queue_timeout, poll and poll_path have no effect here",
		    line);
	return line == 0;
}

static bool
has_word(const char *text, const char *word)
{
	size_t n = 0;

	for (; *text != '\0'; text += n) {
		text += strspn(text, " \t");
		n = strcspn(text, " \t");
		if (n == strlen(word) && memcmp(text, word, n) == 0)
			return true;
	}
	return false;
}

/* Envoy's hosts are addresses, and the choice names one of them. */
static bool
check_servers(const struct pick_conf *conf, char error[CONF_ERROR_MAX])
{
	const struct conf_server *s;
	const char *why = NULL;
	size_t i;

	for (i = 0; i < conf->n && why == NULL; i++) {
		s = &conf->servers[i];
		if (!pick_conf_is_address(s->name))
			why = "a server is an address, as Envoy's hosts are";
		else if (has_word(s->facts, "capacity=auto"))
			why = "capacity=auto has no effect here: engines are "
			    "not asked";
		if (why != NULL)
			(void)snprintf(error, CONF_ERROR_MAX,
			    "%u: server %s: %s", s->line, s->name, why);
	}
	if (conf->n == 0)
		(void)snprintf(error, CONF_ERROR_MAX,
		    "1: there are no servers");
	return conf->n > 0 && why == NULL;
}

static bool
read_conf(const struct envoy_pool *p, struct pick_conf *conf,
    char error[CONF_ERROR_MAX])
{
	FILE *in;
	bool done;

	if (p->is_file) {
		done = pick_file_read(p->text, conf, error);
	} else if ((in = fmemopen(p->text, p->n, "r")) != NULL) {
		done = pick_conf_read(conf, in, error);
		fclose(in);
	} else {
		(void)snprintf(error, CONF_ERROR_MAX, " %s", strerror(errno));
		done = false;
	}
	if (done && !(check_options(conf, error) &&
	    check_servers(conf, error))) {
		pick_conf_free(conf);
		done = false;
	}
	return done;
}

static bool
has_server(const struct pick_conf *conf, const char *name)
{
	size_t i;

	for (i = 0; i < conf->n; i++)
		if (strcmp(conf->servers[i].name, name) == 0)
			return true;
	return false;
}

/* ------------------------------------------------------------- servers --- */

/* The first name, or the one behind this one; NULL: there is none. */
static const char *
next_name(const struct hold *names, const char *name)
{
	const char *from = (const char *)names->data;

	if (names->length == 0)
		return NULL;
	if (name == NULL)
		return from;
	name += strlen(name) + 1;
	return name < from + names->length ? name : NULL;
}

static bool
note_name(struct hold *names, const char *name)
{
	const char *one = NULL;

	while ((one = next_name(names, one)) != NULL)
		if (strcmp(one, name) == 0)
			return true;
	return hold_append(names, name, strlen(name) + 1);
}

/*
 * A region that is full may have room for some of them, and for the rest once
 * others have gone. Returns the first error.
 */
static int
put_servers(struct envoy_pool *p, size_t *done, char error[CONF_ERROR_MAX])
{
	char other[CONF_ERROR_MAX];
	int first = 0, result;
	size_t i;

	*done = 0;
	for (i = 0; i < p->wanted.n; i++) {
		if (!note_name(&p->put, p->wanted.servers[i].name)) {
			(void)snprintf(error, CONF_ERROR_MAX, "1: no memory");
			return KVR_ENOMEM;
		}
		result = pick_put(p->kvh, &p->wanted.servers[i], first == 0 ?
		    error : other);
		*done += result == 0;
		if (first == 0)
			first = result;
		if (result != 0 && result != KVR_EFULL)
			return result;
	}
	return first;
}

/* Removes the servers that are not wanted. false: some are still there. */
static bool
drop_others(struct envoy_pool *p)
{
	struct hold left = { 0 };
	const char *name = NULL;
	bool done = true, noted = true;

	while ((name = next_name(&p->put, name)) != NULL) {
		if (!has_server(&p->wanted, name)) {
			if (kvh_server_put(p->kvh, name, strlen(name),
			    "state=gone", 10, NULL) != KVR_EBUSY)
				continue;
			done = false;
		}
		noted = noted && note_name(&left, name);
	}
	if (!noted) {
		hold_free(&left);
		return false;
	}
	hold_free(&p->put);
	p->put = left;
	return done;
}

static void
log_line(int level, const struct envoy_pool *p, const char *error)
{
	char text[CONF_ERROR_MAX + CONF_REGION_MAX];
	const int n = snprintf(text, sizeof(text), "kvroute: %s:%s",
	    name_of(p), error);

	envoy_dynamic_module_callback_log(level, (struct envoy_text){ text,
	    n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1 });
}

/*
 * Puts the servers that are wanted, and removes others once one of these is
 * there. While the region is locked or full, it is done again a second later.
 */
static int
apply_servers(struct envoy_pool *p, char error[CONF_ERROR_MAX])
{
	size_t done;
	const int result = put_servers(p, &done, error);

	p->due = result == KVR_EBUSY || result == KVR_EFULL;
	if ((result == 0 || result == KVR_EFULL) && done > 0 &&
	    !drop_others(p))
		p->due = true;
	return result;
}

static void
apply_again(struct envoy_pool *p)
{
	char error[CONF_ERROR_MAX];
	const int result = apply_servers(p, error);

	if (result == 0 || result == KVR_EBUSY || p->warned)
		return;
	log_line(ENVOY_WARN, p, error);
	p->warned = true;
}

/* ---------------------------------------------------------------- file --- */

/* A file with one wrong server changes nothing: it is tried elsewhere first. */
static bool
try_servers(const struct envoy_pool *p, const struct pick_conf *conf,
    char error[CONF_ERROR_MAX])
{
	struct kvh *trial;
	size_t i = 0;

	if (!pick_open(&p->conf, "", &trial, error))
		return false;
	while (i < conf->n && pick_put(trial, &conf->servers[i], error) == 0)
		i++;
	kvh_free(trial);
	return i == conf->n;
}

static void
reload_file(struct envoy_pool *p)
{
	char error[CONF_ERROR_MAX];
	struct pick_conf conf;

	if (!read_conf(p, &conf, error)) {
		log_line(ENVOY_WARN, p, error);
		return;
	}
	if (!try_servers(p, &conf, error)) {
		log_line(ENVOY_WARN, p, error);
		pick_conf_free(&conf);
		return;
	}
	pick_conf_free(&p->wanted);
	p->wanted = conf;
	p->warned = false;
	apply_again(p);
}

/* -------------------------------------------------------------- thread --- */

static int64_t
clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Returns false when the pool is to stop. */
static bool
sleep_until(struct envoy_pool *p, int64_t when)
{
	const struct timespec at = { .tv_sec = when / SECOND_NS,
		.tv_nsec = when % SECOND_NS };
	bool stops;

	(void)pthread_mutex_lock(&p->lock);
	while (!p->stops && clock_ns() < when)
		(void)pthread_cond_timedwait(&p->wakes, &p->lock, &at);
	stops = p->stops;
	(void)pthread_mutex_unlock(&p->lock);
	return !stops;
}

static void *
run_pool(void *pool)
{
	struct envoy_pool *p = pool;
	int64_t now = clock_ns(), watch = now + SECOND_NS, next = watch;

	while (sleep_until(p, next < watch ? next : watch)) {
		now = clock_ns();
		next = watch;
		(void)kvh_tick(p->kvh, now, &next);
		if (next < now + WAKE_NS)
			next = now + WAKE_NS;
		if (now < watch)
			continue;
		watch = now + SECOND_NS;
		if (p->is_file && pick_file_changed(&p->file))
			reload_file(p);
		else if (p->due)
			apply_again(p);
	}
	return NULL;
}

/* Signals are for Envoy's own threads. */
static bool
start_thread(struct envoy_pool *p)
{
	pthread_condattr_t attribute;
	sigset_t all, before;
	bool done;

	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_condattr_init(&attribute);
	(void)pthread_condattr_setclock(&attribute, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&p->wakes, &attribute);
	(void)pthread_condattr_destroy(&attribute);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	done = pthread_create(&p->thread, NULL, run_pool, p) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return done;
}

static void
stop_thread(struct envoy_pool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	p->stops = true;
	(void)pthread_cond_signal(&p->wakes);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->thread, NULL);
}

/* --------------------------------------------------------------- pools --- */

static void
free_pool(struct envoy_pool *p)
{
	kvh_free(p->kvh);
	pick_conf_free(&p->conf);
	pick_conf_free(&p->wanted);
	hold_free(&p->put);
	free(p->text);
	free(p);
}

static bool
begin_pool(struct envoy_pool *p, char error[CONF_ERROR_MAX])
{
	int result;

	pick_file_begin(&p->file, p->text);
	if (!read_conf(p, &p->conf, error) ||
	    !pick_open(&p->conf, p->conf.region, &p->kvh, error) ||
	    !read_conf(p, &p->wanted, error))
		return false;
	result = apply_servers(p, error);
	if (result != 0 && result != KVR_EBUSY)
		return false;
	if (start_thread(p))
		return true;
	(void)snprintf(error, CONF_ERROR_MAX, "1: there is no thread for it");
	return false;
}

static struct envoy_pool *
open_pool(const char *text, size_t n, char error[CONF_ERROR_MAX])
{
	struct envoy_pool *p = calloc(1, sizeof(*p));
	char why[CONF_ERROR_MAX];

	(void)snprintf(error, CONF_ERROR_MAX, "no memory");
	if (p == NULL || (p->text = malloc(n + 1)) == NULL) {
		free(p);
		return NULL;
	}
	memcpy(p->text, text, n);
	p->text[n] = '\0';
	p->n = n;
	p->users = 1;
	p->is_file = text[0] == '/';
	if (begin_pool(p, why))
		return p;
	(void)snprintf(error, CONF_ERROR_MAX, "%.512s:%.1024s", name_of(p),
	    why);
	free_pool(p);
	return NULL;
}

struct envoy_pool *
envoy_pool_take(const char *text, size_t n, char error[CONF_ERROR_MAX])
{
	struct envoy_pool *p;

	if (n == 0 || memchr(text, '\0', n) != NULL) {
		(void)snprintf(error, CONF_ERROR_MAX, "filter_config is to be "
		    "a StringValue: a configuration, or the path of one");
		return NULL;
	}
	(void)pthread_mutex_lock(&pools_lock);
	for (p = pools; p != NULL; p = p->next)
		if (p->n == n && memcmp(p->text, text, n) == 0)
			break;
	if (p != NULL) {
		p->users++;
	} else if ((p = open_pool(text, n, error)) != NULL) {
		p->next = pools;
		pools = p;
	}
	(void)pthread_mutex_unlock(&pools_lock);
	return p;
}

void
envoy_pool_leave(struct envoy_pool *p)
{
	struct envoy_pool **at = &pools;
	bool last;

	(void)pthread_mutex_lock(&pools_lock);
	last = --p->users == 0;
	while (last && *at != p)
		at = &(*at)->next;
	if (last)
		*at = p->next;
	(void)pthread_mutex_unlock(&pools_lock);
	if (!last)
		return;
	stop_thread(p);
	(void)pthread_cond_destroy(&p->wakes);
	(void)pthread_mutex_destroy(&p->lock);
	free_pool(p);
}

struct kvh *
envoy_pool_kvh(struct envoy_pool *p)
{
	return p->kvh;
}
