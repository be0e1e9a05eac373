/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_end.h - finish or abort, also while the lock is held. */
#ifndef NGX_HTTP_KVROUTE_END_H
#define NGX_HTTP_KVROUTE_END_H

#include "ngx_http_kvroute_conf.h"

typedef enum {
	NGX_HTTP_KVROUTE_FINISH,
	NGX_HTTP_KVROUTE_ABORT,
	NGX_HTTP_KVROUTE_RESET, /* of a worker that refused connections */
	NGX_HTTP_KVROUTE_BIND   /* of a digest to a worker */
} ngx_http_kvroute_write_t;

/* A write that must be done: by a timer, if the lock is held. */
struct ngx_http_kvroute_late_s {
	ngx_queue_t queue;
	ngx_http_kvroute_write_t what;
	uint64_t id;            /* of the lease, or of the worker */
	struct kvr_report report;
	/* NULL, or the prompt with its answer: before FINISH */
	struct kvr_prompt *prompt;
	uint64_t digest;        /* BIND */
	int64_t ttl;
};

/* `taken`: the peer accepted the request with a status below 400. */
void ngx_http_kvroute_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* Now, or, KVR_EBUSY, once the lock is free. */
int ngx_http_kvroute_write(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_kvroute_late_t *write);
void ngx_http_kvroute_late_run(ngx_event_t *event);
bool ngx_http_kvroute_late_write(ngx_http_kvroute_srv_conf_t *up);

#endif
