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

#include "ngx_http_kvroute_answer.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_peer.h"
#include "ngx_http_kvroute_phases.h"
#include "ngx_http_kvroute_poll.h"
#include "ngx_http_kvroute_queue.h"
#include "ngx_http_kvroute_ranks.h"
#include "ngx_http_kvroute_region.h"
#include "ngx_http_kvroute_salt.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_session_conf.h"
#include "ngx_http_kvroute_share.h"
#include "ngx_http_kvroute_status.h"
#include "ngx_http_kvroute_trace.h"
#include "ngx_http_kvroute_variables.h"
#include "ngx_http_kvroute_zone.h"

#include <kvroute_replica.h>

enum { MAX_BODY = 2 * 1024 * 1024, BLOCK = 256, FILE_SIZE = 8 * 1024 * 1024 };
/* Bindings of sessions, if not configured: of 40 bytes each. */
enum { BYTES_PER_BINDING = 512, BINDINGS = 16384, BYTES_PER_WORKER = 2560 };

/* ---------------------------------------------------------- directives --- */

typedef struct {
	const char *name;
	uint32_t value;
} choice_t;

static const choice_t costs[] = {
	{ "balanced", KVR_COST_BALANCED },
	{ "dynamo", KVR_COST_DYNAMO },
	{ NULL, 0 }
};

static const choice_t retains[] = {
	{ "auto", KVR_RETAIN_AUTO },
	{ "ttl", KVR_RETAIN_TTL },
	{ "capacity", KVR_RETAIN_CAPACITY },
	{ "feedback", KVR_RETAIN_FEEDBACK },
	{ NULL, 0 }
};

static const choice_t shadows[] = {
	{ "least_conn", NGX_HTTP_KVROUTE_LEAST_CONN },
	{ "round_robin", NGX_HTTP_KVROUTE_ROUND_ROBIN },
	{ NULL, 0 }
};

static const choice_t evictions[] = {
	{ "released", KVR_EVICT_RELEASED },
	{ "leaf", KVR_EVICT_LEAF },
	{ NULL, 0 }
};

static const choice_t windows[] = {
	{ "full", KVR_WINDOW_FULL },
	{ "boundary", KVR_WINDOW_BOUNDARY },
	{ "dense", KVR_WINDOW_DENSE },
	{ "dual", KVR_WINDOW_DUAL },
	{ NULL, 0 }
};

static ngx_conf_enum_t reasonings[] = {
	{ ngx_string("strip"), NGX_HTTP_KVROUTE_STRIP },
	{ ngx_string("keep"), NGX_HTTP_KVROUTE_KEEP },
	{ ngx_null_string, 0 }
};

static bool
choice_read(const choice_t *choices, ngx_str_t *text, uint32_t *value)
{
	const choice_t *c;

	for (c = choices; c->name != NULL; c++) {
		if (text->len == ngx_strlen(c->name) &&
		    ngx_strncmp(text->data, c->name, text->len) == 0) {
			*value = c->value;
			return true;
		}
	}
	return false;
}

/* Is `arg` NAME=...? Then *value is the rest. */
static bool
is_named(ngx_str_t *arg, const char *name, ngx_str_t *value)
{
	size_t n = ngx_strlen(name);

	if (arg->len <= n || ngx_strncmp(arg->data, name, n) != 0 ||
	    arg->data[n] != '=')
		return false;
	value->data = arg->data + n + 1;
	value->len = arg->len - n - 1;
	return true;
}

static bool
number_read(ngx_str_t *text, ngx_int_t least, ngx_int_t most, ngx_int_t *value)
{
	*value = ngx_atoi(text->data, text->len);
	return *value != NGX_ERROR && *value >= least && *value <= most;
}

enum { DECIMALS = 6, WINDOW_MOST = 1 << 30, BOUND_MOST = 1000000 };

/* A decimal from 0 with a few places. */
static bool
decimal_read(ngx_str_t *text, double most, double *value)
{
	ngx_int_t n = ngx_atofp(text->data, text->len, DECIMALS);

	*value = (double)n / 1e6;
	return n != NGX_ERROR && *value <= most;
}

static char *
parameter_refuse(ngx_conf_t *cf, ngx_str_t *arg)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "invalid parameter \"%V\"", arg);
	return NGX_CONF_ERROR;
}

static char *
refuse_because(ngx_conf_t *cf, ngx_str_t *arg, const char *why)
{
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "invalid parameter \"%V\": %s", arg, why);
	return NGX_CONF_ERROR;
}

/* zone=NAME:SIZE */
static bool
zone_named(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up, ngx_str_t *text)
{
	u_char *colon = (u_char *)ngx_strlchr(text->data,
	    text->data + text->len, ':');
	ngx_str_t size;
	ssize_t bytes;

	if (colon == NULL || colon == text->data)
		return false;
	size.data = colon + 1;
	size.len = (size_t)(text->data + text->len - size.data);
	bytes = ngx_parse_size(&size);
	if (bytes == NGX_ERROR || bytes <= 0)
		return false;
	up->zone_name.data = text->data;
	up->zone_name.len = (size_t)(colon - text->data);
	up->zone_size = (size_t)bytes;
	return true;
}

static bool
file_named(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up, ngx_str_t *text)
{
	up->path = *text;
	return text->len > 0 && ngx_conf_full_name(cf->cycle, &up->path, 0) ==
	    NGX_OK;
}

/* What is wrong, or NULL. */
static const char *
journal_sized(ngx_http_kvroute_srv_conf_t *up, ngx_str_t *text)
{
	off_t bytes = ngx_parse_offset(text);

	if (bytes < KVR_JOURNAL_MIN || bytes > KVR_JOURNAL_MAX ||
	    (bytes & (bytes - 1)) != 0)
		return "the size is a power of two from 64k to 1g";
	up->options.journal_bytes = (uint64_t)bytes;
	return NULL;
}

static bool
parameter_read(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up, ngx_str_t *arg)
{
	ngx_str_t value;
	ngx_int_t n;
	uint32_t shadow;

	if (is_named(arg, "zone", &value))
		return zone_named(cf, up, &value);
	if (is_named(arg, "path", &value))
		return file_named(cf, up, &value);
	if (is_named(arg, "size", &value)) {
		ssize_t bytes = ngx_parse_size(&value);

		up->options.region_bytes = bytes > 0 ? (uint64_t)bytes : 0;
		return bytes > 0;
	}
	if (is_named(arg, "block", &value) &&
	    number_read(&value, 16, 1 << 20, &n)) {
		up->options.block_size = (uint32_t)n;
		return true;
	}
	if (is_named(arg, "workers", &value) &&
	    number_read(&value, 1, KVR_WORKERS_MAX, &n)) {
		up->options.max_workers = (uint32_t)n;
		return true;
	}
	if (is_named(arg, "ttl", &value)) {
		ngx_int_t ms = ngx_parse_time(&value, 0);

		up->options.ttl_ns = (int64_t)ms * 1000000;
		return ms != NGX_ERROR && ms > 0;
	}
	if (is_named(arg, "affinity", &value) &&
	    number_read(&value, 0, KVR_AFFINITY_ENTRIES_MAX, &n)) {
		up->options.affinity_entries = (uint32_t)n;
		up->sized = true;
		return true;
	}
	if (is_named(arg, "tenants", &value) &&
	    number_read(&value, 1, KVR_TENANTS_MAX, &n)) {
		up->options.tenants = (uint32_t)n;
		return true;
	}
	if (is_named(arg, "policy", &value))
		return choice_read(costs, &value, &up->policy.cost);
	if (is_named(arg, "balanced_bound", &value))
		return decimal_read(&value, BOUND_MOST,
		    &up->policy.balanced_bound);
	if (is_named(arg, "retain", &value))
		return choice_read(retains, &value, &up->retain);
	if (is_named(arg, "shadow", &value) &&
	    choice_read(shadows, &value, &shadow)) {
		up->shadow = shadow;
		return true;
	}
	return false;
}

/* One of the parameters that say what is wrong with them? */
static bool
parameter_explained(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up,
    ngx_str_t *arg, const char **why)
{
	ngx_str_t value;

	if (is_named(arg, "rank_header", &value))
		*why = ngx_http_kvroute_rank_header_set(up, &value);
	else if (is_named(arg, "secret", &value))
		*why = ngx_http_kvroute_secret_read(cf, up, &value);
	else if (is_named(arg, "journal", &value))
		*why = journal_sized(up, &value);
	else if (is_named(arg, "poll", &value))
		*why = ngx_http_kvroute_poll_set(up, &value);
	else if (is_named(arg, "poll_path", &value))
		*why = ngx_http_kvroute_poll_path_set(up, &value);
	else if (is_named(arg, "gray", &value))
		*why = ngx_http_kvroute_gray_set(up, &value);
	else if (is_named(arg, "slow_start", &value))
		*why = ngx_http_kvroute_slow_start_set(up, &value);
	else if (is_named(arg, "queue", &value))
		*why = ngx_http_kvroute_queue_set(up, &value);
	else if (is_named(arg, "queue_timeout", &value))
		*why = ngx_http_kvroute_queue_timeout_set(up, &value);
	else
		return false;
	return true;
}

/* A share of what the workers leave of the region, once that is known. */
static void
bindings_size(ngx_http_kvroute_srv_conf_t *up)
{
	uint64_t bytes = up->path.len > 0 ? up->options.region_bytes :
	    up->zone_size;
	uint64_t tables = (uint64_t)up->options.max_workers * BYTES_PER_WORKER;

	if (!up->sized)
		up->options.affinity_entries = bytes <= tables ? 0 :
		    (uint32_t)ngx_min((bytes - tables) / BYTES_PER_BINDING,
		    BINDINGS);
}

/* What parameters lack that need each other, or NULL. */
static char *
is_incomplete(const ngx_http_kvroute_srv_conf_t *up)
{
	if ((up->zone_name.len == 0) == (up->path.len == 0))
		return "needs \"zone=NAME:SIZE\" or \"path=FILE\"";
	if (up->path.len == 0 && up->options.region_bytes != 0)
		return "has \"size=\" without \"path=\"";
	if (up->queue_timeout > 0 && up->queue == 0)
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
	ngx_http_kvroute_srv_conf_t *up = conf;
	ngx_http_kvroute_main_conf_t *main;
	ngx_http_kvroute_srv_conf_t **place;
	ngx_str_t *args = cf->args->elts;
	const char *why;
	ngx_uint_t i;
	char *wrong;

	if (up->on)
		return "is duplicate";
	for (i = 1; i < cf->args->nelts; i++) {
		if (parameter_explained(cf, up, &args[i], &why)) {
			if (why != NULL)
				return refuse_because(cf, &args[i], why);
		} else if (!parameter_read(cf, up, &args[i])) {
			return parameter_refuse(cf, &args[i]);
		}
	}
	if ((wrong = is_incomplete(up)) != NULL)
		return wrong;
	if (up->shadow != NGX_HTTP_KVROUTE_CHOOSE)
		up->gray = 0; /* the stock method probes none */
	if (up->options.region_bytes == 0)
		up->options.region_bytes = FILE_SIZE;
	bindings_size(up);
	up->upstream = ngx_http_conf_get_module_srv_conf(cf,
	    ngx_http_upstream_module);
	if (up->upstream->peer.init_upstream != NULL)
		ngx_conf_log_error(NGX_LOG_WARN, cf, 0,
		    "load balancing method redefined");
	up->upstream->peer.init_upstream = ngx_http_kvroute_init_upstream;
	up->upstream->flags = NGX_HTTP_UPSTREAM_CREATE |
	    NGX_HTTP_UPSTREAM_WEIGHT | NGX_HTTP_UPSTREAM_MAX_CONNS |
	    NGX_HTTP_UPSTREAM_MAX_FAILS | NGX_HTTP_UPSTREAM_FAIL_TIMEOUT |
	    NGX_HTTP_UPSTREAM_DOWN | NGX_HTTP_UPSTREAM_BACKUP;
#if (NGX_HTTP_KVROUTE_RESOLVE)
	up->upstream->flags |= NGX_HTTP_UPSTREAM_MODIFY;
#endif
	up->on = true;
	main = ngx_http_conf_get_module_main_conf(cf,
	    ngx_http_upstream_kvroute_module);
	place = ngx_array_push(&main->upstreams);
	if (place == NULL)
		return NGX_CONF_ERROR;
	*place = up;
	if ((wrong = ngx_http_kvroute_filters_order(cf)) != NGX_CONF_OK)
		return wrong;
	return ngx_http_kvroute_zone_add(cf, up);
}

/* Facts about sliding windows. */
static bool
window_fact(struct kvr_worker *facts, ngx_str_t *arg)
{
	ngx_str_t value;
	ngx_int_t n;
	double layers;

	if (is_named(arg, "window_mode", &value))
		return choice_read(windows, &value, &facts->window_mode);
	if (is_named(arg, "window_layers", &value)) {
		if (!decimal_read(&value, 100, &layers))
			return false;
		facts->window_layers = (uint32_t)(layers * 100 + 0.5);
		return true;
	}
	if (is_named(arg, "window_capacity", &value)) {
		if (!number_read(&value, 1, NGX_MAX_INT_T_VALUE, &n))
			return false;
		facts->window_capacity = (uint64_t)n;
		return true;
	}
	if (is_named(arg, "window", &value)) {
		if (!number_read(&value, 1, WINDOW_MOST, &n))
			return false;
		facts->window_tokens = (uint32_t)n;
		return true;
	}
	if (is_named(arg, "window_align", &value)) {
		if (!number_read(&value, 1, WINDOW_MOST, &n))
			return false;
		facts->window_align = (uint32_t)n;
		return true;
	}
	if (!is_named(arg, "window_interval", &value) ||
	    !number_read(&value, 1, WINDOW_MOST, &n))
		return false;
	facts->window_interval = (uint32_t)n;
	return true;
}

/*
 * NULL, or why the facts do not fit together. A window that is to be read off
 * the engine sets the mode, too.
 */
static const char *
windows_unfit(ngx_http_kvroute_server_t *server)
{
	struct kvr_worker *facts = &server->facts;
	bool full = facts->window_mode == KVR_WINDOW_FULL;

	server->windows = KVR_WINDOW_FULL;
	if (!full && facts->window_tokens == 0 && !server->ask)
		return "\"window_mode=\" needs \"window=\" or "
		    "\"capacity=auto\"";
	if (full && (facts->window_tokens > 0 || facts->window_layers > 0 ||
	    facts->window_align > 0 || facts->window_interval > 0 ||
	    facts->window_capacity > 0))
		return "facts about windows need \"window_mode=boundary\", "
		    "\"dense\" or \"dual\"";
	if (facts->window_capacity > 0 &&
	    facts->window_mode != KVR_WINDOW_DUAL)
		return "\"window_capacity=\" needs \"window_mode=dual\"";
	if (!full && facts->window_tokens == 0) {
		server->windows = facts->window_mode;
		facts->window_mode = KVR_WINDOW_FULL;
	}
	return NULL;
}

static bool
fact_read(ngx_http_kvroute_server_t *server, ngx_str_t *arg)
{
	struct kvr_worker *facts = &server->facts;
	ngx_str_t value;
	ngx_int_t n;

	if (ngx_strncmp(arg->data, "window", 6) == 0)
		return window_fact(facts, arg);
	if (is_named(arg, "eviction", &value)) {
		server->evicts = true;
		return choice_read(evictions, &value, &facts->eviction);
	}
	if (is_named(arg, "capacity", &value)) {
		server->ask = value.len == 4 &&
		    ngx_strncmp(value.data, "auto", 4) == 0;
		facts->capacity_tokens = 0;
		if (server->ask)
			return true;
		if (!number_read(&value, 1, NGX_MAX_INT_T_VALUE, &n))
			return false;
		facts->capacity_tokens = (uint64_t)n;
		return true;
	}
	if (is_named(arg, "max_batched", &value)) {
		if (!number_read(&value, 1, NGX_MAX_INT32_VALUE, &n))
			return false;
		facts->max_batched_tokens = (uint64_t)n;
		return true;
	}
	if (is_named(arg, "block_tokens", &value)) {
		if (!number_read(&value, 1, 1 << 20, &n))
			return false;
		facts->block_tokens = (uint32_t)n;
		return true;
	}
	if (is_named(arg, "prefill_rate", &value)) {
		if (!number_read(&value, 1, NGX_MAX_INT32_VALUE, &n))
			return false;
		facts->prefill_rate = (double)n;
		return true;
	}
	return false;
}

/* ADDRESS[:PORT], as peers are named, or a name for later. */
static bool
address_read(ngx_conf_t *cf, ngx_str_t *text, ngx_http_kvroute_server_t *server)
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
	ngx_http_kvroute_srv_conf_t *up = conf;
	ngx_http_kvroute_server_t *server;
	ngx_str_t *args = cf->args->elts, value;
	const char *why;
	ngx_uint_t i;

	if (up->servers == NULL)
		up->servers = ngx_array_create(cf->pool, 4, sizeof(*server));
	if (up->servers == NULL)
		return NGX_CONF_ERROR;
	server = ngx_array_push(up->servers);
	if (server == NULL)
		return NGX_CONF_ERROR;
	ngx_memzero(server, sizeof(*server));
	(void)kvr_worker_init(&server->facts, sizeof(server->facts));
	if (!address_read(cf, &args[1], server))
		return NGX_CONF_ERROR;
	for (i = 2; i < cf->args->nelts; i++) {
		if (is_named(&args[i], "ranks", &value)) {
			why = ngx_http_kvroute_ranks_set(up, server, &value);
			if (why != NULL)
				return refuse_because(cf, &args[i], why);
		} else if (!fact_read(server, &args[i])) {
			return parameter_refuse(cf, &args[i]);
		}
	}
	why = windows_unfit(server);
	return why == NULL ? NGX_CONF_OK : refuse_because(cf, &args[1], why);
}

static char *
status_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf,
	    ngx_http_core_module);
	ngx_http_kvroute_loc_conf_t *loc = conf;

	if (loc->status == 1)
		return "is duplicate";
	loc->status = 1;
	core->handler = ngx_http_kvroute_status_handler;
	return NGX_CONF_OK;
}

#define ANYWHERE (NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF)
#define OF_LOCATION(field) NGX_HTTP_LOC_CONF_OFFSET, \
	offsetof(ngx_http_kvroute_loc_conf_t, field), NULL

static ngx_command_t commands[] = {
	{ ngx_string("kvroute"), NGX_HTTP_UPS_CONF | NGX_CONF_1MORE,
	    kvroute_set, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_server"), NGX_HTTP_UPS_CONF | NGX_CONF_2MORE,
	    server_set, NGX_HTTP_SRV_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_max_body"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_conf_set_size_slot, OF_LOCATION(max_body) },
	{ ngx_string("kvroute_model"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_set_complex_value_slot, OF_LOCATION(model) },
	{ ngx_string("kvroute_scope"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_set_complex_value_slot, OF_LOCATION(scope) },
	{ ngx_string("kvroute_feedback"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(feedback) },
	{ ngx_string("kvroute_include_usage"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(include_usage) },
	{ ngx_string("kvroute_answers"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(answers) },
	{ ngx_string("kvroute_affinity"), ANYWHERE | NGX_CONF_1MORE,
	    ngx_http_kvroute_affinity_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_responses"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_kvroute_responses_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	{ ngx_string("kvroute_reasoning"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_conf_set_enum_slot, NGX_HTTP_LOC_CONF_OFFSET,
	    offsetof(ngx_http_kvroute_loc_conf_t, reasoning), reasonings },
	{ ngx_string("kvroute_early"), ANYWHERE | NGX_CONF_FLAG,
	    ngx_conf_set_flag_slot, OF_LOCATION(early) },
	{ ngx_string("kvroute_salt"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_kvroute_salt_command, OF_LOCATION(salt) },
	{ ngx_string("kvroute_share"), ANYWHERE | NGX_CONF_TAKE1,
	    ngx_http_kvroute_share_command, OF_LOCATION(share) },
	{ ngx_string("kvroute_bypass"), ANYWHERE | NGX_CONF_1MORE,
	    ngx_http_set_predicate_slot, OF_LOCATION(bypass) },
	{ ngx_string("kvroute_trace"), ANYWHERE | NGX_CONF_TAKE12,
	    ngx_http_kvroute_trace_set, OF_LOCATION(trace) },
	{ ngx_string("kvroute_status"), NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS,
	    status_set, NGX_HTTP_LOC_CONF_OFFSET, 0, NULL },
	ngx_null_command
};

/* ------------------------------------------------------- configuration --- */

static void *
main_create(ngx_conf_t *cf)
{
	ngx_http_kvroute_main_conf_t *main = ngx_pcalloc(cf->pool,
	    sizeof(*main));

	if (main == NULL ||
	    ngx_array_init(&main->upstreams, cf->pool, 2, sizeof(void *)) !=
	    NGX_OK)
		return NULL;
	return main;
}

static void *
srv_create(ngx_conf_t *cf)
{
	ngx_http_kvroute_srv_conf_t *up = ngx_pcalloc(cf->pool, sizeof(*up));

	if (up == NULL)
		return NULL;
	(void)kvr_options_init(&up->options, sizeof(up->options));
	(void)kvr_policy_init(&up->policy, sizeof(up->policy));
	up->options.unit = KVR_UNIT_BYTES;
	up->options.block_size = BLOCK;
	up->options.region_bytes = 0;
	ngx_str_set(&up->poll_path, "/metrics");
	ngx_queue_init(&up->late.queue);
	return up;
}

static void *
loc_create(ngx_conf_t *cf)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_pcalloc(cf->pool, sizeof(*loc));

	if (loc == NULL)
		return NULL;
	loc->max_body = NGX_CONF_UNSET_SIZE;
	loc->feedback = NGX_CONF_UNSET;
	loc->include_usage = NGX_CONF_UNSET;
	loc->answers = NGX_CONF_UNSET;
	loc->reasoning = NGX_CONF_UNSET_UINT;
	loc->bypass = NGX_CONF_UNSET_PTR;
	loc->early = NGX_CONF_UNSET;
	loc->trace = NGX_CONF_UNSET_PTR;
	ngx_http_kvroute_session_create(loc);
	return loc;
}

static char *
loc_merge(ngx_conf_t *cf, void *parent, void *child)
{
	ngx_http_kvroute_loc_conf_t *of = parent, *loc = child;
	ngx_http_kvroute_main_conf_t *main = ngx_http_conf_get_module_main_conf(
	    cf, ngx_http_upstream_kvroute_module);
	char *wrong;

	ngx_conf_merge_size_value(loc->max_body, of->max_body, MAX_BODY);
	ngx_conf_merge_value(loc->feedback, of->feedback, 1);
	ngx_conf_merge_value(loc->include_usage, of->include_usage, 0);
	ngx_conf_merge_value(loc->answers, of->answers, 1);
	ngx_conf_merge_uint_value(loc->reasoning, of->reasoning,
	    NGX_HTTP_KVROUTE_STRIP);
	ngx_conf_merge_ptr_value(loc->bypass, of->bypass, NULL);
	ngx_conf_merge_ptr_value(loc->trace, of->trace, NULL);
	ngx_http_kvroute_session_merge(loc, of);
	if (loc->model == NULL)
		loc->model = of->model;
	if (loc->scope == NULL)
		loc->scope = of->scope;
	if (loc->salt == NULL)
		loc->salt = of->salt;
	ngx_conf_merge_value(loc->early, of->early, 0);
	if (loc->early)
		main->needs = "kvroute_early";
	if (loc->salt != NULL)
		main->needs = "kvroute_salt";
	wrong = ngx_http_kvroute_share_merge(cf, loc, of);
	if (wrong == NULL)
		return NGX_CONF_OK;
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s", wrong);
	return NGX_CONF_ERROR;
}

static ngx_http_module_t context = {
	ngx_http_kvroute_variables_add,
	ngx_http_kvroute_phases_add,
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
	ngx_http_kvroute_regions_prepare,
	ngx_http_kvroute_regions_attach,
	NULL,
	NULL,
	ngx_http_kvroute_regions_leave,
	NULL,
	NGX_MODULE_V1_PADDING
};
