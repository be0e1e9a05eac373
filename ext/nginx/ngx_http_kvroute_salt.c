/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_salt.c - kvroute_salt: the salt that keeps the caches of
 * tenants apart is set here, whatever the client sends.
 *
 *   ACCESS       the tenant is known by now
 *   PRECONTENT   ours, the last: reads the body, edits it
 *   CONTENT      proxy_pass sends it, kvroute reads it
 *
 * So all that nginx does with a body has the edited one: retries, any upstream,
 * any module that sends requests. The body is checked first, by salt.h, a long
 * one in turns as in read.c. After it
 *
 *   client's salts   are blanked where they are, in memory or in the file
 *   the new one      is put ahead of the last brace, in a buffer of its own
 *
 *   [ in memory or a file, from its start ]  [ ,"cache_salt":"..."} ]
 *
 * The order matters: for a retry nginx sends a file from its first byte, so
 * nothing may be put into the middle of it.
 *
 * THE TRAP. A mirror has its own copy of the request but the same struct of the
 * body. So the struct is copied before it is changed; a blanked salt keeps its
 * length.
 *
 * Isolation must not be bypassed. So a body that cannot be salted is refused,
 * unless it is certainly no JSON: another endpoint, and another type.
 */
#include "ngx_http_kvroute_salt.h"

#include "endpoint.h"
#include "ngx_http_kvroute_edit.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "salt.h"

enum {
	BEHIND_MOST = 4096, /* bytes behind the brace, mostly none */
	SALTS_MOST = 65536  /* bytes of the client's salts, to be blanked */
};

struct kvroute_salt_s {
	ngx_http_request_t *request;
	kvroute_loc_conf_t *loc; /* where */
	ngx_int_t status;  /* NGX_DONE: not yet; NGX_DECLINED: goes on */
	ngx_str_t value;   /* that was set */
	ngx_str_t wanted;
	struct salt scan;
};

typedef struct kvroute_salt_s salt_t;

KVROUTE_KEPT(request_keep)

static salt_t *
salt_of(ngx_http_request_t *r)
{
	return kvroute_kept_of(r, request_keep);
}

ngx_str_t
kvroute_salt_value(ngx_http_request_t *r)
{
	salt_t *s = salt_of(r);
	ngx_str_t none = ngx_null_string;

	return s == NULL ? none : s->value;
}

/* ---------------------------------------------------------------- chain --- */

static bool
file_blank(ngx_file_t *file, off_t at, size_t n)
{
	u_char blanks[4096];
	size_t some;

	ngx_memset(blanks, ' ', sizeof(blanks));
	for (; n > 0; n -= some, at += (off_t)some) {
		some = ngx_min(n, sizeof(blanks));
		if (pwrite(file->fd, blanks, some, at) != (ssize_t)some)
			return false;
	}
	return true;
}

static bool
buf_blank(ngx_buf_t *b, off_t from, size_t n)
{
	if (ngx_buf_in_memory(b))
		ngx_memset(b->pos + from, ' ', n);
	return !b->in_file || file_blank(b->file, b->file_pos + from, n);
}

/* The part of from..end - 1 that is in a buffer of `size` bytes at `at`. */
static size_t
part_of(off_t at, off_t size, off_t *from, off_t end)
{
	off_t last = ngx_min(end, at + size);

	*from = ngx_max(*from, at);
	return last > *from ? (size_t)(last - *from) : 0;
}

static bool
chain_blank(ngx_chain_t *cl, const struct salt_span *span)
{
	off_t at = 0, from;
	size_t n;

	for (; cl != NULL; at += ngx_buf_size(cl->buf), cl = cl->next) {
		from = (off_t)span->at;
		n = part_of(at, ngx_buf_size(cl->buf), &from,
		    (off_t)span->end);
		if (n > 0 && !buf_blank(cl->buf, from - at, n))
			return false;
	}
	return true;
}

static bool
chain_get(ngx_chain_t *cl, u_char *to)
{
	size_t n;

	for (; cl != NULL; to += n, cl = cl->next) {
		n = (size_t)ngx_buf_size(cl->buf);
		if (ngx_buf_in_memory(cl->buf))
			ngx_memcpy(to, cl->buf->pos, n);
		else if (ngx_read_file(cl->buf->file, to, n,
		    cl->buf->file_pos) != (ssize_t)n)
			return false;
	}
	return true;
}

/* ----------------------------------------------------------------- edit --- */

static ngx_int_t
request_refuse(ngx_http_request_t *r, ngx_int_t status, const char *why)
{
	ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
	    "kvroute: no salt can be set, so the request is refused: %s", why);
	kvroute_refusal_keep(r, why);
	return status;
}

/* The body of this request alone. */
static void
body_replace(ngx_http_request_t *r, ngx_http_request_body_t *body,
    ngx_chain_t *bufs, off_t grown)
{
	*body = *r->request_body;
	kvroute_reader_moved(r, body->bufs, bufs, grown);
	body->bufs = bufs;
	r->request_body = body;
}

/* The length is that of this request alone, too. */
static ngx_int_t
member_put(ngx_http_request_t *r, salt_t *s, const ngx_str_t *member)
{
	ngx_http_request_body_t *body = ngx_palloc(r->pool, sizeof(*body));
	ngx_chain_t *bufs = r->request_body->bufs;

	if (body == NULL || !kvroute_chain_splice(r->pool, &bufs,
	    (off_t)s->scan.end, 0, member))
		return NGX_ERROR;
	body_replace(r, body, bufs, (off_t)member->len);
	r->headers_in.content_length_n += (off_t)member->len;
	/* The text of the header is shared with subrequests. */
	r->headers_in.content_length = NULL;
	return NGX_OK;
}

/* The bytes of a body are shared with subrequests: these edit a copy. */
static ngx_int_t
body_copy(ngx_http_request_t *r)
{
	size_t n = kvroute_body_size(r);
	ngx_http_request_body_t *body = ngx_palloc(r->pool, sizeof(*body));
	ngx_chain_t *link = ngx_alloc_chain_link(r->pool);
	ngx_buf_t *b = ngx_create_temp_buf(r->pool, n);

	if (body == NULL || link == NULL || b == NULL ||
	    !chain_get(r->request_body->bufs, b->last))
		return NGX_ERROR;
	b->last += n;
	link->buf = b;
	link->next = NULL;
	body_replace(r, body, link, 0);
	body->temp_file = NULL;
	return NGX_OK;
}

static ngx_int_t
body_edit(ngx_http_request_t *r, salt_t *s)
{
	const size_t room = SALT_ROOM(s->wanted.len);
	ngx_str_t member = { 0, ngx_pnalloc(r->pool, room) };
	ngx_int_t rc = NGX_OK;
	uint64_t salts = 0;
	size_t i;

	if (kvroute_body_size(r) - s->scan.end > BEHIND_MOST)
		return request_refuse(r, NGX_HTTP_BAD_REQUEST,
		    "too much white space behind the body");
	for (i = 0; i < s->scan.spans; i++)
		salts += s->scan.span[i].end - s->scan.span[i].at;
	if (salts > SALTS_MOST)
		return request_refuse(r, NGX_HTTP_BAD_REQUEST,
		    "the client's salt is too long");
	if (member.data == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	member.len = salt_member(&s->scan, s->wanted.data, s->wanted.len,
	    member.data, room);
	if (member.len == 0)
		return request_refuse(r, NGX_HTTP_BAD_REQUEST, "the value of "
		    "\"kvroute_salt\" is not UTF-8");
	if (r != r->main && s->scan.spans > 0)
		rc = body_copy(r);
	for (i = 0; rc == NGX_OK && i < s->scan.spans; i++) {
		if (!chain_blank(r->request_body->bufs, &s->scan.span[i]))
			rc = NGX_ERROR;
	}
	if (rc != NGX_OK || member_put(r, s, &member) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	s->value = s->wanted;
	return NGX_DECLINED;
}

/* ----------------------------------------------------------------- read --- */

static ngx_int_t
scan_result(ngx_http_request_t *r, salt_t *s)
{
	if (!salt_end(&s->scan))
		return request_refuse(r, NGX_HTTP_BAD_REQUEST,
		    "the body is not one whole JSON object");
	return body_edit(r, s);
}

/* The scan in turns is over. */
static void
scan_done(ngx_http_request_t *r)
{
	salt_t *s = salt_of(r);

	/* A reader of the prompt, if there is one, is the newest again. */
	kvroute_reader_of(r)->request = NULL;
	s->status = scan_result(r, s);
	kvroute_phases_go_on(r);
}

static ngx_int_t
body_scan(ngx_http_request_t *r, salt_t *s)
{
	kvroute_srv_conf_t *up = kvroute_lender(r);
	kvroute_reader_t *reader = up == NULL ? NULL :
	    kvroute_reader_make(r, up, ENDPOINT_OTHER);

	if (reader == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	salt_begin(&s->scan);
	reader->salt = &s->scan;
	if (kvroute_read_body(reader, scan_done) == NGX_DONE)
		return NGX_DONE;
	reader->request = NULL;
	return scan_result(r, s);
}

/* Has the path a prompt, as it is now or as the client wrote it? */
static bool
has_prompt(ngx_http_request_t *r)
{
	ngx_str_t *uri = &r->unparsed_uri;
	u_char *end = ngx_strlchr(uri->data, uri->data + uri->len, '?');
	size_t n = end == NULL ? uri->len : (size_t)(end - uri->data);

	return kvroute_endpoint(r) != ENDPOINT_OTHER || endpoint_of((const char
	    *)r->uri.data, r->uri.len) != ENDPOINT_OTHER || endpoint_of((const
	    char *)uri->data, n) != ENDPOINT_OTHER;
}

/* Certainly no JSON, so that it may pass without a salt. */
static bool
is_form(ngx_http_request_t *r)
{
	static const char form[] = "multipart/";
	ngx_table_elt_t *type = r->headers_in.content_type;

	return type != NULL && type->value.len >= sizeof(form) - 1 &&
	    ngx_strncasecmp(type->value.data, (u_char *)form,
	    sizeof(form) - 1) == 0 && !has_prompt(r);
}

/* All of the body is there. */
static ngx_int_t
body_salt(ngx_http_request_t *r, salt_t *s)
{
	ngx_table_elt_t *coding = kvroute_header(r, "Content-Encoding");

	if (kvroute_body_size(r) == 0 || is_form(r))
		return NGX_DECLINED;
	if (coding != NULL && (coding->value.len != 8 || ngx_strncasecmp(
	    coding->value.data, (u_char *)"identity", 8) != 0))
		return request_refuse(r, NGX_HTTP_UNSUPPORTED_MEDIA_TYPE,
		    "the body is compressed");
	return body_scan(r, s);
}

static void
body_came(ngx_http_request_t *r)
{
	salt_t *s = salt_of(r);

	s->status = body_salt(r, s);
	if (s->status != NGX_DONE)
		kvroute_phases_go_on(r);
}

static ngx_int_t
salt_start(ngx_http_request_t *r, salt_t *s)
{
	ngx_int_t rc;

	/*
	 * A request without a body needs no salt: a subrequest that authorizes,
	 * for one. The value of the salt would stay for the whole request, also
	 * where it depends on the result of that subrequest.
	 */
	if (r != r->main && kvroute_body_size(r) == 0)
		return NGX_DECLINED;
	if (ngx_http_complex_value(r, s->loc->salt, &s->wanted) != NGX_OK)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	if (s->wanted.len == 0 || kvroute_same(&s->wanted, &s->value))
		return NGX_DECLINED;
	if (r->reading_body)
		return request_refuse(r, NGX_HTTP_INTERNAL_SERVER_ERROR,
		    "another module has begun to read the body");
	if (r != r->main || r->request_body != NULL)
		return body_salt(r, s);
	rc = ngx_http_read_client_request_body(r, body_came);
	if (rc >= NGX_HTTP_SPECIAL_RESPONSE)
		return rc;
	ngx_http_finalize_request(r, NGX_DONE);
	return NGX_AGAIN;
}

/*
 * Once for each location. A request that comes back before it was salted could
 * not be read: error_page has brought it here, and it must not go on.
 */
ngx_int_t
kvroute_salt_set(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	salt_t *s;
	ngx_int_t rc;

	/* Files, such as error pages, are sent without reading a body. */
	if (loc->salt == NULL || r->content_handler == NULL)
		return NGX_DECLINED;
	s = salt_of(r);
	if (s != NULL && s->status == NGX_DONE)
		return NGX_HTTP_BAD_REQUEST;
	if (s != NULL && s->loc == loc)
		return s->status;
	if (s == NULL)
		s = kvroute_kept_make(r, request_keep, sizeof(salt_t));
	if (s == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	s->loc = loc;
	s->status = NGX_DONE;
	rc = salt_start(r, s);
	/* For a body that came at once the rest has been done meanwhile. */
	if (rc == NGX_AGAIN)
		return NGX_DONE;
	if (rc != NGX_DONE)
		s->status = rc;
	return rc;
}

/* ------------------------------------------------------------ directive --- */

char *
kvroute_salt_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	char *wrong = ngx_http_set_complex_value_slot(cf, cmd, conf);
	u_char room[SALT_ROOM(1024)];
	struct salt none;

	if (wrong != NGX_CONF_OK || loc->salt->lengths != NULL)
		return wrong;
	salt_begin(&none);
	if (loc->salt->value.len > 1024)
		return "has a value of more than 1024 bytes";
	if (salt_member(&none, loc->salt->value.data, loc->salt->value.len,
	    room, sizeof(room)) == 0)
		return "has a value that is not UTF-8, which JSON cannot hold";
	return NGX_CONF_OK;
}
