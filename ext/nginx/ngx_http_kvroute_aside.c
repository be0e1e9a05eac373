/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_aside.c - writes a status in a thread of nginx's pool.
 *
 *   event loop   facts of peers --> task      done --> response
 *   thread                           '--> text --'
 *
 * The text of 4,000 workers takes 200 ms, in which no request would go on. The
 * library may be called from any thread; the facts were copied before. Nothing
 * of nginx's is touched by the thread: its memory comes from malloc.
 */
#include "ngx_http_kvroute_aside.h"

#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_server.h"
#include "status.h"

/* ---------------------------------------------------------------- start --- */

/* At most: servers may have the ranks of others. */
static ngx_uint_t
workers_of(const kvroute_srv_conf_t *up)
{
	const kvroute_server_t *facts = up->servers == NULL ? NULL :
	    up->servers->elts;
	const ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_uint_t i, n = 0;

	for (; peers != NULL; peers = peers->next)
		n += peers->number;
	for (i = 0; facts != NULL && i < up->servers->nelts; i++)
		n += known_ranks(&facts[i].told);
	return n;
}

ngx_int_t
kvroute_aside_prepare(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i, n = 0;

	for (i = 0; i < main->upstreams.nelts; i++)
		n += workers_of(ups[i]);
	if (n < KVROUTE_ASIDE_WORKERS)
		return NGX_OK;
#if (NGX_THREADS)
	return ngx_thread_pool_add(cf, NULL) != NULL ? NGX_OK : NGX_ERROR;
#else
	ngx_log_error(NGX_LOG_WARN, cf->log, 0, "kvroute: this nginx has no "
	    "threads: while a status of %ui workers is written, no request "
	    "goes on", n);
	return NGX_OK;
#endif
}

#if (NGX_THREADS)

enum {
	TRIES = 100,
	WAIT_MS = 20,            /* between them */
	STAY_MS = 60000
};

typedef struct {
	ngx_http_request_t *request;
	struct status status;
	kvroute_write_pt *write;
	const char *type;
	struct hold text;
	bool failed;
	ngx_event_t stay;       /* a process that ends waits for timers only */
} aside_t;

/* --------------------------------------------------------------- thread --- */

/* While the lock of the index is held it waits, as only a thread may. */
static void
aside_write(void *data, ngx_log_t *log)
{
	aside_t *a = data;
	struct writer w;
	ngx_uint_t tries = TRIES;

	(void)log;
	do {
		if (tries < TRIES)
			ngx_msleep(WAIT_MS);
		a->text.length = 0;
		w = hold_out(&a->text);
		a->write(&a->status, &w);
	} while (w.failed && --tries > 0);
	a->failed = w.failed;
}

/* ----------------------------------------------------------- event loop --- */

static void
aside_cleanup(void *data)
{
	aside_t *a = data;

	hold_free(&a->text);
}

static ngx_int_t
aside_answer(aside_t *a)
{
	kvroute_reply_t o;

	if (a->failed)
		return kvroute_blocked_answer(a->request);
	kvroute_reply_begin(&o, a->request);
	kvroute_reply_share(&o, a->text.data, a->text.length);
	return kvroute_reply_send(&o, NGX_HTTP_OK, a->type);
}

static void
aside_stays(ngx_event_t *event)
{
	ngx_add_timer(event, STAY_MS);
}

static void
aside_done(ngx_event_t *event)
{
	aside_t *a = event->data;
	ngx_http_request_t *r = a->request;
	ngx_connection_t *c = r->connection;

	r->main->blocked--;
	ngx_del_timer(&a->stay);
	ngx_http_set_log_request(c->log, r);
	ngx_http_finalize_request(r, c->error ? NGX_ERROR : aside_answer(a));
	ngx_http_run_posted_requests(c);
}

ngx_int_t
kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type)
{
	ngx_str_t name = ngx_string("default");
	ngx_thread_pool_t *pool = ngx_thread_pool_get((ngx_cycle_t *)ngx_cycle,
	    &name);
	ngx_pool_cleanup_t *cln = ngx_pool_cleanup_add(r->pool, 0);
	ngx_thread_task_t *task;
	aside_t *a;

	task = pool == NULL || cln == NULL ? NULL :
	    ngx_thread_task_alloc(r->pool, sizeof(*a));
	if (task == NULL)
		return NGX_DECLINED;
	a = task->ctx;
	ngx_memzero(a, sizeof(*a));
	a->request = r;
	a->status = *s;
	a->write = write;
	a->type = type;
	cln->handler = aside_cleanup;
	cln->data = a;
	task->handler = aside_write;
	task->event.handler = aside_done;
	task->event.data = a;
	if (ngx_thread_task_post(pool, task) != NGX_OK)
		return NGX_DECLINED;
	a->stay.handler = aside_stays;
	a->stay.data = a;
	a->stay.log = r->connection->log;
	ngx_add_timer(&a->stay, STAY_MS);
	r->main->count++;
	r->main->blocked++;
	return NGX_DONE;
}

#else

ngx_int_t
kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type)
{
	(void)r;
	(void)s;
	(void)write;
	(void)type;
	return NGX_DECLINED;
}

#endif
