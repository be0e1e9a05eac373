/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_upstream_kvroute_module.c - directives, and the calls of nginx at
 * start, reload and end. kvroute-nginx(7) is the contract.
 *
 *   configuration read   directives; zones requested; balancer set
 *   zones made           region formatted, or found again after a reload
 *   init module          (master) workers of the region = peers of the
 *                        upstream; one line about its capacity
 *   init process         (each nginx worker) attach; end the requests of
 *                        processes that have died
 */
#include "ngx_http_kvroute_conf.h"

#include "endpoint.h"
#include "ngx_http_kvroute_choose.h"
#include "ngx_http_kvroute_early.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_module.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_read.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_salt.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_variables.h"

enum { MAX_BODY = 2 * 1024 * 1024 };
/* Bindings of sessions, if not configured: of 32 bytes each. */
enum { BYTES_PER_BINDING = 512, BINDINGS = 16384, BYTES_PER_WORKER = 2560 };

/* ---------------------------------------------------------- directives --- */

static ngx_conf_enum_t reasonings[] = {
	{ ngx_string("strip"), KVROUTE_STRIP },
	{ ngx_string("keep"), KVROUTE_KEEP },
	{ ngx_null_string, 0 }
};

static ngx_conf_enum_t endpoints[] = {
	{ ngx_string("auto"), KVROUTE_BY_PATH },
	{ ngx_string("chat"), ENDPOINT_CHAT },
	{ ngx_string("completions"), ENDPOINT_COMPLETIONS },
	{ ngx_string("responses"), ENDPOINT_RESPONSES },
	{ ngx_string("messages"), ENDPOINT_MESSAGES },
	{ ngx_string("none"), ENDPOINT_OTHER },
	{ ngx_null_string, 0 }
};

/* A share of the memory that the workers leave, once that is known. */
static void
bindings_size(kvroute_srv_conf_t *up)
{
	uint64_t bytes = up->path.len > 0 ? up->options.region_bytes :
	    up->zone_size;
	uint64_t tables = (uint64_t)up->options.max_workers * BYTES_PER_WORKER;

	if (!up->sized)
		up->options.affinity_entries = bytes <= tables ? 0 :
		    (uint32_t)ngx_min((bytes - tables) / BYTES_PER_BINDING,
		    BINDINGS);
}

/* NULL, or the parameter that another one needs. */
static char *
is_incomplete(ngx_conf_t *cf, const kvroute_srv_conf_t *up)
{
	if ((up->zone_name.len == 0) == (up->path.len == 0))
		return "needs \"zone=NAME:SIZE\" or \"path=FILE\"";
	if (up->path.len == 0 && kvroute_param_given(cf, "size"))
		return "has \"size=\" without \"path=\"";
	if (up->fleet.queue == 0 && kvroute_param_given(cf, "queue_timeout"))
		return "has \"queue_timeout=\" without \"queue=\"";
	if (up->options.journal_bytes == 0)
		return NULL;
	if (up->path.len == 0)
		return "has \"journal=\" without \"path=\": kvroute-sync "
		    "reads a file";
	if (up->options.secret_bytes == 0)
		return "has \"journal=\" without \"secret=\": all machines "
		    "need the same one";
	return NULL;
}

static char *
kvroute_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_srv_conf_t *up = conf;
	kvroute_main_conf_t *main;
	kvroute_srv_conf_t **place;
	ngx_str_t *args = cf->args->elts;
	ngx_uint_t i;
	char *wrong;

	if (up->on)
		return "is duplicate";
	for (i = 1; i < cf->args->nelts; i++) {
		wrong = kvroute_param_read(cf, &args[i], up);
		if (wrong != NGX_CONF_OK)
			return wrong;
	}
	if ((wrong = is_incomplete(cf, up)) != NULL)
		return wrong;
	up->sized = kvroute_param_given(cf, "affinity");
	if (up->shadow != KVROUTE_CHOOSE)
		up->fleet.gray = 0; /* the stock method probes none */
	bindings_size(up);
	up->upstream = ngx_http_conf_get_module_srv_conf(cf,
	    ngx_http_upstream_module);
	if (up->upstream->peer.init_upstream != NULL)
		ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
		    "load balancing method redefined");
	up->upstream->peer.init_upstream = kvroute_init_upstream;
	up->upstream->flags = NGX_HTTP_UPSTREAM_CREATE |
	    NGX_HTTP_UPSTREAM_WEIGHT | NGX_HTTP_UPSTREAM_MAX_CONNS |
	    NGX_HTTP_UPSTREAM_MAX_FAILS | NGX_HTTP_UPSTREAM_FAIL_TIMEOUT |
	    NGX_HTTP_UPSTREAM_DOWN | NGX_HTTP_UPSTREAM_BACKUP;
#if (KVROUTE_RESOLVE)
	up->upstream->flags |= NGX_HTTP_UPSTREAM_MODIFY;
#endif
	up->on = true;
	main = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_upstream_kvroute_module);
	place = ngx_array_push(&main->upstreams);
	if (place == NULL)
		return NGX_CONF_ERROR;
	*place = up;
	if ((wrong = kvroute_filters_order(cf)) != NGX_CONF_OK)
		return wrong;
	return kvroute_zone_add(cf, up);
}

/* ADDRESS[:PORT], as peers are named, or a name for later. */
static bool
address_read(ngx_conf_t *cf, ngx_str_t *text, kvroute_server_t *server)
{
	ngx_url_t u;

	ngx_memzero(&u, sizeof(u));
	u.url = *text;
	u.default_port = 80;
	u.no_resolve = 1;
	if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
		ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in \"%V\"",
		    u.err ? u.err : "error", text);
		return false;
	}
	server->text = *text;
	server->file = cf->conf_file->file.name;
	server->line = cf->conf_file->line;
	server->host = u.host;
	server->port = u.port;
	server->ported = !u.no_port;
	if (u.naddrs > 0)
		server->name = u.addrs[0].name;
	return true;
}

static char *
server_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_srv_conf_t *up = conf;
	kvroute_server_t *server;
	ngx_str_t *args = cf->args->elts;
	const char *why;
	ngx_uint_t i;
	char *wrong;

	server = ngx_array_push(&up->servers);
	if (server == NULL)
		return NGX_CONF_ERROR;
	ngx_memzero(server, sizeof(*server));
	(void)kvr_worker_init(&server->told.worker,
	    sizeof(server->told.worker));
	if (!address_read(cf, &args[1], server))
		return NGX_CONF_ERROR;
	for (i = 2; i < cf->args->nelts; i++) {
		wrong = kvroute_param_read(cf, &args[i], server);
		if (wrong != NGX_CONF_OK)
			return wrong;
	}
	up->ranked |= server->told.ranks > 0;
	up->parted |= server->told.worker.role != KVR_ROLE_BOTH;
	why = known_windows_fit(&server->told);
	return why == NULL ? NGX_CONF_OK :
	    kvroute_param_refuse(cf, &args[1], why);
}

static char *
status_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf,
	    ngx_http_core_module);
	kvroute_loc_conf_t *loc = conf;

	if (loc->status == 1)
		return "is duplicate";
	loc->status = 1;
	core->handler = kvroute_status_handler;
	return NGX_CONF_OK;
}

/* A time of a second to an hour, or off. */
static char *
comments_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	ngx_int_t ms = kvroute_word_is(&args[1], "off") ? 0 :
	    ngx_parse_time(&args[1], 0);

	if (loc->comments != NGX_CONF_UNSET_MSEC)
		return "is duplicate";
	if (ms == NGX_ERROR || (ms != 0 && (ms < 1000 || ms > 3600000)) ||
	    (ms == 0 && !kvroute_word_is(&args[1], "off")))
		return kvroute_param_refuse(cf, &args[1], "it is "
		    "\"off\", or the time from one comment to the next, from "
		    "1s to 1h");
	loc->comments = (ngx_msec_t)ms;
	return NGX_CONF_OK;
}

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)
#define OF_LOCATION(field) NGX_HTTP_LOC_CONF_OFFSET, \
	offsetof(kvroute_loc_conf_t, field), NULL

static ngx_command_t commands[] = {
	{ ngx_string("kvroute"), NGX_HTTP_UPS_CONF | NGX_CONF_1MORE,
	    kvroute_set, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_server"), NGX_HTTP_UPS_CONF | NGX_CONF_2MORE,
	    server_set, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_max_body"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_conf_set_size_slot, OF_LOCATION(max_body) },
	{ ngx_string("kvroute_endpoint"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET,
	    offsetof(kvroute_loc_conf_t, endpoint), endpoints },
	{ ngx_string("kvroute_ignore_line"), ANYWHERE | NGX_CONF_1MORE,
	    kvroute_ignore_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_model"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_set_complex_value_slot, OF_LOCATION(model) },
	{ ngx_string("kvroute_scope"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_set_complex_value_slot, OF_LOCATION(scope) },
	{ ngx_string("kvroute_feedback"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(feedback) },
	{ ngx_string("kvroute_include_usage"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(include_usage) },
	{ ngx_string("kvroute_affinity"), ANYWHERE | NGX_CONF_1MORE,
	    kvroute_affinity_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_responses"), ANYWHERE | NGX_CONF_TAKE1,
	    kvroute_responses_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_reasoning"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET,
	    offsetof(kvroute_loc_conf_t, reasoning), reasonings },
	{ ngx_string("kvroute_early"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(early) },
	{ ngx_string("kvroute_server_header"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(server_header) },
	{ ngx_string("kvroute_comments"), ANYWHERE | NGX_CONF_TAKE1,
	    comments_set, OF_LOCATION(comments) },
	{ ngx_string("kvroute_salt"), ANYWHERE | NGX_CONF_TAKE1,
	    kvroute_salt_command, OF_LOCATION(salt) },
	{ ngx_string("kvroute_share"), ANYWHERE | NGX_CONF_TAKE1,
	    kvroute_share_command, OF_LOCATION(share) },
	{ ngx_string("kvroute_bypass"), ANYWHERE | NGX_CONF_1MORE,
	    ngx_http_set_predicate_slot, OF_LOCATION(bypass) },
	{ ngx_string("kvroute_trace"), ANYWHERE | NGX_CONF_TAKE12,
	    kvroute_trace_set, OF_LOCATION(trace) },
	{ ngx_string("kvroute_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS,
	    status_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	ngx_null_command
};

/* ------------------------------------------------------- configuration --- */

static void *
main_create(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = ngx_pcalloc(cf->pool, sizeof(*main));

	if (main == NULL ||
	    ngx_array_init(&main->upstreams, cf->pool, 2, sizeof(void *)) !=
	    NGX_OK)
		return NULL;
	return main;
}

/* A line of the fleet, into a log of nginx's. */
static void
line_log(const struct fleet *f, void *to, unsigned level,
    const char *text, size_t n)
{
	static const ngx_uint_t levels[] = {
		[FLEET_INFO] = NGX_LOG_INFO, [FLEET_NOTICE] = NGX_LOG_NOTICE,
		[FLEET_WARN] = NGX_LOG_WARN, [FLEET_ERROR] = NGX_LOG_ERR };
	kvroute_srv_conf_t *up = f->proxy;

	if ((level & FLEET_OF_REQUEST) != 0) {
		ngx_log_error(levels[level & ~FLEET_OF_REQUEST],
		    (ngx_log_t *)to, 0, "kvroute: %*s", n, text);
		return;
	}
	ngx_log_error(levels[level], (ngx_log_t *)to, 0, "kvroute of upstream "
	    "\"%V\": %*s", &up->upstream->host, n, text);
}

static void *
srv_create(ngx_conf_t *cf)
{
	kvroute_srv_conf_t *up = ngx_pcalloc(cf->pool, sizeof(*up));

	if (up == NULL || ngx_array_init(&up->servers, cf->pool, 4,
	    sizeof(kvroute_server_t)) != NGX_OK)
		return NULL;
	(void)kvr_options_init(&up->options, sizeof(up->options));
	(void)kvr_policy_init(&up->policy, sizeof(up->policy));
	up->options.unit = KVR_UNIT_BYTES;
	up->options.region_bytes = 8 << 20;
	up->options.block_size = 256;
	up->cycle = cf->cycle;
	up->fleet.proxy = up;
	up->fleet.log = line_log;
	up->fleet.options = &up->options;
	up->waits.line.places.fleet = &up->fleet;
	kvroute_param_defaults("kvroute", up);
	return up;
}

static void *
loc_create(ngx_conf_t *cf)
{
	kvroute_loc_conf_t *loc = ngx_pcalloc(cf->pool, sizeof(*loc));

	if (loc == NULL)
		return NULL;
	loc->max_body = NGX_CONF_UNSET_SIZE;
	loc->endpoint = NGX_CONF_UNSET_UINT;
	loc->ignored = NGX_CONF_UNSET_PTR;
	loc->feedback = NGX_CONF_UNSET;
	loc->include_usage = NGX_CONF_UNSET;
	loc->reasoning = NGX_CONF_UNSET_UINT;
	loc->bypass = NGX_CONF_UNSET_PTR;
	loc->early = NGX_CONF_UNSET;
	loc->server_header = NGX_CONF_UNSET;
	loc->comments = NGX_CONF_UNSET_MSEC;
	loc->trace = NGX_CONF_UNSET_PTR;
	loc->affinity = NGX_CONF_UNSET_PTR;
	loc->responses_ttl = NGX_CONF_UNSET;
	return loc;
}

#define NEEDS_UPSTREAM(directive) "\"" directive "\" needs an upstream with " \
	"\"kvroute\": there is none"

static char *
loc_merge(ngx_conf_t *cf, void *parent, void *child)
{
	kvroute_loc_conf_t *of = parent, *loc = child;
	kvroute_main_conf_t *main = kvroute_main(cf);
	char *wrong;

	ngx_conf_merge_size_value(loc->max_body, of->max_body, MAX_BODY);
	ngx_conf_merge_uint_value(loc->endpoint, of->endpoint, KVROUTE_BY_PATH);
	ngx_conf_merge_ptr_value(loc->ignored, of->ignored, NULL);
	ngx_conf_merge_value(loc->feedback, of->feedback, 1);
	ngx_conf_merge_value(loc->include_usage, of->include_usage, 1);
	ngx_conf_merge_uint_value(loc->reasoning, of->reasoning, KVROUTE_STRIP);
	ngx_conf_merge_ptr_value(loc->bypass, of->bypass, NULL);
	ngx_conf_merge_ptr_value(loc->trace, of->trace, NULL);
	if (loc->affinity == NGX_CONF_UNSET_PTR) {
		loc->affinity_mode = of->affinity_mode;
		loc->affinity_ttl = of->affinity_ttl;
	}
	ngx_conf_merge_ptr_value(loc->affinity, of->affinity, NULL);
	if (loc->responses_ttl == NGX_CONF_UNSET)
		loc->responses_ttl = of->responses_ttl;
	if (loc->responses_ttl == NGX_CONF_UNSET)
		kvroute_param_defaults("kvroute_responses", loc);
	if (loc->model == NULL)
		loc->model = of->model;
	if (loc->scope == NULL)
		loc->scope = of->scope;
	if (loc->salt == NULL)
		loc->salt = of->salt;
	ngx_conf_merge_value(loc->early, of->early, 0);
	ngx_conf_merge_value(loc->server_header, of->server_header, 0);
	ngx_conf_merge_msec_value(loc->comments, of->comments, 0);
	kvroute_location_advise(cf);
	if (loc->early)
		main->needs = NEEDS_UPSTREAM("kvroute_early");
	if (loc->salt != NULL)
		main->needs = NEEDS_UPSTREAM("kvroute_salt");
	wrong = kvroute_share_merge(cf, loc, of);
	if (wrong == NULL)
		return NGX_CONF_OK;
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", wrong);
	return NGX_CONF_ERROR;
}

/* -------------------------------------------------------------- phases --- */

/* A request that is salted comes again. */
static ngx_int_t
precontent_handler(ngx_http_request_t *r)
{
	ngx_int_t rc = kvroute_salt_set(r);

	return rc != NGX_DECLINED ? rc : kvroute_read_ahead(r);
}

/* nginx runs the handlers of a phase from the last to the first. */
static ngx_int_t
handler_add(ngx_conf_t *cf, ngx_http_phases phase, ngx_http_handler_pt handler,
    bool runs_last)
{
	ngx_http_core_main_conf_t *core = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_core_module);
	ngx_array_t *all = &core->phases[phase].handlers;
	ngx_http_handler_pt *place = ngx_array_push(all), *first = all->elts;

	if (place == NULL)
		return NGX_ERROR;
	if (runs_last) {
		ngx_memmove(first + 1, first,
		    (all->nelts - 1) * sizeof(*first));
		place = first;
	}
	*place = handler;
	return NGX_OK;
}

/* NULL, or what the configuration lacks. */
static const char *
lack_of(const kvroute_main_conf_t *main)
{
	return main->needs != NULL && main->upstreams.nelts == 0 ? main->needs :
	    kvroute_share_check(main);
}

static ngx_int_t
phases_add(ngx_conf_t *cf)
{
	const char *lack = lack_of(kvroute_main(cf));

	if (lack != NULL) {
		ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s", lack);
		return NGX_ERROR;
	}
	if (kvroute_upstreams_advise(cf) != NGX_OK ||
	    kvroute_aside_prepare(cf) != NGX_OK)
		return NGX_ERROR;
	kvroute_filters_add();
	kvroute_read_add();
	return handler_add(cf, NGX_HTTP_PRECONTENT_PHASE, precontent_handler,
	    true) == NGX_OK && handler_add(cf, NGX_HTTP_PREACCESS_PHASE,
	    kvroute_early_handler, false) == NGX_OK ? handler_add(cf,
	    NGX_HTTP_LOG_PHASE, kvroute_trace_handler, false) : NGX_ERROR;
}

static ngx_http_module_t context = {
	kvroute_variables_add,
	phases_add,
	main_create,
	NULL,
	srv_create,
	NULL,
	loc_create,
	loc_merge
};

ngx_module_t ngx_http_upstream_kvroute_module = {
	NGX_MODULE_V1,
	&context,
	commands,
	NGX_HTTP_MODULE,
	NULL,
	kvroute_regions_prepare,
	kvroute_regions_attach,
	NULL,
	NULL,
	kvroute_regions_leave,
	NULL,
	NGX_MODULE_V1_PADDING
};
