/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_early.c - kvroute_early: the body is read before the
 * upstream is chosen, so that the model can choose it.
 *
 *   PREACCESS   ours, the first: reads the body        $kvroute_model ...
 *               limit_conn, limit_req                  ... is their key
 *   CONTENT     proxy_pass http://$upstream            ... and chooses
 *   peer.init   the prompt, out of the text that was read
 *
 * nginx runs the handlers of a phase from the last that was registered to the
 * first. Modules of its own are registered before those that are loaded.
 *
 * A prompt is hashed for one index, and the index depends on the model, which
 * may stand at the end of the body. So the text of the prompt is held, and
 * hashed at the choice: JSON is read once. The reader of read.c does it, a long
 * body in turns, for an upstream of ours that lends it its spares.
 *
 * Facts stay: a request that is redirected within nginx has its variables, and
 * its body is not read again. Subrequests have the variables of the request.
 */
#include "ngx_http_kvroute_early.h"

#include "body.h"
#include "endpoint.h"
#include "ngx_http_kvroute_path.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_share.h"

typedef struct {
	ngx_http_request_t *request;
	ngx_str_t model;
	ngx_str_t ids[BODY_IDS];
} early_t;

/* The cleanup of a pool is where a struct is found again. */
static void
early_keep(void *data)
{
}

static early_t *
early_of(ngx_http_request_t *r)
{
	return kvroute_kept_of(r->main, early_keep);
}

/* ---------------------------------------------------------------- facts --- */

ngx_str_t
kvroute_early_model(ngx_http_request_t *r)
{
	early_t *early = early_of(r);
	ngx_str_t none = ngx_null_string;

	return early == NULL ? none : early->model;
}

ngx_str_t
kvroute_early_id(ngx_http_request_t *r, ngx_uint_t which)
{
	early_t *early = early_of(r);
	ngx_str_t none = ngx_null_string;

	return early == NULL ? none : early->ids[which];
}

static bool
text_keep(ngx_pool_t *pool, ngx_str_t *to, const char *text, size_t n)
{
	if (n == 0)
		return true;
	to->data = ngx_pnalloc(pool, n);
	if (to->data == NULL)
		return false;
	ngx_memcpy(to->data, text, n);
	to->len = n;
	return true;
}

/* The parser may be given back before they are needed. */
static bool
facts_keep(ngx_http_request_t *r, early_t *early,
    const struct body_facts *facts)
{
	bool kept = text_keep(r->pool, &early->model, facts->model,
	    facts->model_length);
	ngx_uint_t i;

	for (i = 0; kept && i < BODY_IDS; i++)
		kept = text_keep(r->pool, &early->ids[i], facts->id[i],
		    facts->id_length[i]);
	return kept;
}

/* ----------------------------------------------------------------- read --- */

/* All of it is read. */
static void
body_read(ngx_http_request_t *r)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (facts_keep(r, early_of(r), &reader->facts)) {
		kvroute_phases_go_on(r);
		return;
	}
	ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
}

/* All of it is there. */
static void
body_came(ngx_http_request_t *r)
{
	kvroute_srv_conf_t *up = kvroute_lender(r);
	kvroute_reader_t *reader;
	ngx_int_t rc = NGX_ERROR;

	if (kvroute_body_size(r) == 0 || up == NULL) {
		kvroute_phases_go_on(r);
		return;
	}
	reader = kvroute_reader_make(r, up, kvroute_endpoint(r));
	if (reader != NULL) {
		reader->early = true;
		rc = kvroute_read_body(reader, body_read);
	}
	if (rc == NGX_OK)
		body_read(r);
	else if (rc == NGX_ERROR)
		ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
}

static ngx_int_t
preaccess_handler(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	early_t *early;
	ngx_int_t rc;

	/* An error page reads nothing that was not read before. */
	if (!loc->early || r != r->main || r->error_page || r->err_status > 0)
		return NGX_DECLINED;
	/* Another module takes it as it comes: it would be a part. */
	if (r->reading_body)
		return NGX_DECLINED;
	/*
	 * Nothing else runs phases meanwhile. If the body could not be read,
	 * error_page brings the request back here: then it goes on without.
	 */
	early = early_of(r);
	if (early != NULL)
		return NGX_DECLINED;
	early = kvroute_kept_make(r, early_keep,
		    sizeof(early_t));
	if (early == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	rc = ngx_http_read_client_request_body(r, body_came);
	if (rc >= NGX_HTTP_SPECIAL_RESPONSE)
		return rc;
	ngx_http_finalize_request(r, NGX_DONE);
	return NGX_DONE;
}

/* ---------------------------------------------------------------- begin --- */

ngx_int_t
kvroute_early_add(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_core_module);
	char *wrong = kvroute_share_check(main);
	ngx_http_handler_pt *handler;

	if (wrong != NULL) {
		ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s", wrong);
		return NGX_ERROR;
	}
	if (main->needs != NULL && main->upstreams.nelts == 0) {
		ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%s\" needs an "
		    "upstream with \"kvroute\": there is none", main->needs);
		return NGX_ERROR;
	}
	handler = ngx_array_push(
	    &core->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
	if (handler == NULL)
		return NGX_ERROR;
	*handler = preaccess_handler;
	return NGX_OK;
}
