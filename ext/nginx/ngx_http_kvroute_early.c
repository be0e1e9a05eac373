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
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_reader.h"

typedef struct {
	ngx_http_request_t *request;
	kvroute_texts_t texts;
} early_t;

KVROUTE_KEPT(early_keep)

static early_t *
early_of(ngx_http_request_t *r)
{
	return kvroute_kept_of(r->main, early_keep);
}

const kvroute_texts_t *
kvroute_early_texts(ngx_http_request_t *r)
{
	early_t *early = early_of(r);

	return early == NULL ? NULL : &early->texts;
}

/* ----------------------------------------------------------------- read --- */

/* All of it is read. */
static void
body_read(ngx_http_request_t *r)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (kvroute_texts_keep(r->pool, &early_of(r)->texts, &reader->facts)) {
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

ngx_int_t
kvroute_early_handler(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
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
	if (early_of(r) != NULL)
		return NGX_DECLINED;
	if (kvroute_kept_make(r, early_keep, sizeof(early_t)) == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	rc = ngx_http_read_client_request_body(r, body_came);
	if (rc >= NGX_HTTP_SPECIAL_RESPONSE)
		return rc;
	ngx_http_finalize_request(r, NGX_DONE);
	return NGX_DONE;
}
