/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_upstream_floor_module.c - what a balancer that reads bodies does in
 * nginx with a stock JSON library: YAJL over the body, with callbacks that do
 * nothing, and the hashing of as many bytes. Then least_conn chooses. kvroute
 * reads bodies by its own code and takes less, see body_floor.c.
 *
 *   upstream engines { least_conn; floor; server ...; }
 *
 * The same in a loop of its own is up to twice as fast, because caches and
 * branch predictors are warm there; here it runs as it would in any nginx. For
 * bench.sh only.
 */
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <kvroute.h>
#include <yajl/yajl_parse.h>

enum { MOST = 1 << 20 };

static ngx_http_upstream_init_pt init_least;
static ngx_http_upstream_init_peer_pt peer_init_least;
static struct kvr *kvr;
static struct kvr_prompt *prompt;

static int
nothing(void *context)
{
	return 1;
}

static int
nothing_of_boolean(void *context, int value)
{
	return 1;
}

static int
nothing_of_text(void *context, const unsigned char *text, size_t n)
{
	return 1;
}

static int
nothing_of_number(void *context, const char *digits, size_t n)
{
	return 1;
}

static const yajl_callbacks callbacks = {
	nothing, nothing_of_boolean, NULL, NULL, nothing_of_number,
	nothing_of_text, nothing, nothing_of_text, nothing, nothing, nothing
};

/* In one piece: a string cut by pieces is scanned twice. */
static size_t
gather(ngx_chain_t *cl, u_char **body)
{
	static u_char room[MOST];
	size_t n = 0, size;

	if (cl != NULL && cl->next == NULL && ngx_buf_in_memory(cl->buf)) {
		*body = cl->buf->pos;
		return (size_t)(cl->buf->last - cl->buf->pos);
	}
	for (; cl != NULL; cl = cl->next) {
		size = (size_t)(cl->buf->last - cl->buf->pos);
		if (!ngx_buf_in_memory(cl->buf) || size > MOST - n)
			break;
		ngx_memcpy(room + n, cl->buf->pos, size);
		n += size;
	}
	*body = room;
	return n;
}

static void
floor_of(ngx_chain_t *cl)
{
	yajl_handle json = yajl_alloc(&callbacks, NULL, NULL);
	u_char *body;
	size_t n = gather(cl, &body);

	if (json == NULL)
		return;
	(void)yajl_parse(json, body, n);
	(void)yajl_complete_parse(json);
	yajl_free(json);
	(void)kvr_prompt_begin(prompt, NULL);
	(void)kvr_prompt_bytes(prompt, body, n);
	(void)kvr_prompt_end(prompt, NULL);
}

static ngx_int_t
peer_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
	if (r->request_body != NULL)
		floor_of(r->request_body->bufs);
	return peer_init_least(r, us);
}

static ngx_int_t
init(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
	if (init_least(cf, us) != NGX_OK)
		return NGX_ERROR;
	peer_init_least = us->peer.init;
	us->peer.init = peer_init;
	return NGX_OK;
}

/* After "least_conn;", which it replaces. */
static char *
floor_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_upstream_srv_conf_t *us = ngx_http_conf_get_module_srv_conf(cf,
	    ngx_http_upstream_module);

	init_least = us->peer.init_upstream;
	if (init_least == NULL)
		return "comes after least_conn";
	us->peer.init_upstream = init;
	return NGX_CONF_OK;
}

static ngx_int_t
process_begin(ngx_cycle_t *cycle)
{
	struct kvr_options options;

	if (kvr_options_init(&options, sizeof(options)) != KVR_OK)
		return NGX_ERROR;
	options.unit = KVR_UNIT_BYTES;
	return kvr_new(&options, &kvr) == KVR_OK &&
	    kvr_prompt_new(kvr, &prompt) == KVR_OK ? NGX_OK : NGX_ERROR;
}

static ngx_command_t commands[] = {
	{ ngx_string("floor"), NGX_HTTP_UPS_CONF | NGX_CONF_NOARGS, floor_set,
	    0, 0, NULL },
	ngx_null_command
};

static ngx_http_module_t context = {
	NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
};

ngx_module_t ngx_http_upstream_floor_module = {
	NGX_MODULE_V1,
	&context,
	commands,
	NGX_HTTP_MODULE,
	NULL,
	NULL,
	process_begin,
	NULL,
	NULL,
	NULL,
	NULL,
	NGX_MODULE_V1_PADDING
};
