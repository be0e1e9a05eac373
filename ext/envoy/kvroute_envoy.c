/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute_envoy.c - the hooks that Envoy calls in libkvroute_envoy.so, a
 * dynamic module with two HTTP filters: `kvroute` chooses servers, and
 * `kvroute_status` answers with the state of the pool. kvroute-envoy(7).
 *
 * The module is linked with all callbacks bound as it is loaded: an Envoy that
 * lacks one refuses it by the name of that function. Versions of the ABI are
 * compared by Envoy alone, which does not show its own; it warns of another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envoy_abi.h"
#include "envoy_filter.h"
#include "envoy_pool.h"

struct envoy_config {
	struct envoy_pool *pool;
	bool status;
};

const char *
envoy_dynamic_module_on_program_init(void)
{
	return ENVOY_ABI_VERSION;
}

/* ------------------------------------------------------- configuration --- */

static bool
is_name(struct envoy_text t, const char *name)
{
	return t.n == strlen(name) && memcmp(t.at, name, t.n) == 0;
}

static void
log_error(const char *error)
{
	char text[CONF_ERROR_MAX + 32];
	const int n = snprintf(text, sizeof(text), "kvroute: %s", error);

	envoy_dynamic_module_callback_log(ENVOY_ERROR, (struct envoy_text){
	    text, (size_t)n });
}

const void *
envoy_dynamic_module_on_http_filter_config_new(void *envoy,
    struct envoy_text name, struct envoy_text config)
{
	char error[CONF_ERROR_MAX] = "no memory";
	struct envoy_config *c = calloc(1, sizeof(*c));

	(void)envoy;
	if (c != NULL) {
		c->status = is_name(name, "kvroute_status");
		if (!c->status && !is_name(name, "kvroute"))
			(void)snprintf(error, sizeof(error), "filter_name is "
			    "kvroute or kvroute_status, and not %.*s",
			    (int)(name.n < 64 ? name.n : 64), name.at);
		else
			c->pool = envoy_pool_take(config.at, config.n, error);
		if (c->pool != NULL)
			return c;
	}
	log_error(error);
	free(c);
	return NULL;
}

void
envoy_dynamic_module_on_http_filter_config_destroy(const void *config)
{
	struct envoy_config *c = (void *)(uintptr_t)config;

	envoy_pool_leave(c->pool);
	free(c);
}

/* -------------------------------------------------------------- filter --- */

/* NULL: there was no memory for the filter, and the request passes. */
static struct envoy_filter *
filter_of(const void *filter)
{
	return (void *)(uintptr_t)filter;
}

const void *
envoy_dynamic_module_on_http_filter_new(const void *config, void *envoy)
{
	const struct envoy_config *c = config;

	return filter_new(envoy_pool_kvh(c->pool), envoy, c->status);
}

int
envoy_dynamic_module_on_http_filter_request_headers(void *envoy,
    const void *filter, bool end)
{
	(void)envoy;
	return filter == NULL ? ENVOY_GO_ON :
	    filter_request_headers(filter_of(filter), end);
}

int
envoy_dynamic_module_on_http_filter_request_body(void *envoy,
    const void *filter, bool end)
{
	(void)envoy;
	return filter == NULL ? ENVOY_DATA_GO_ON :
	    filter_request_body(filter_of(filter), end);
}

int
envoy_dynamic_module_on_http_filter_request_trailers(void *envoy,
    const void *filter)
{
	(void)envoy;
	return filter == NULL ? ENVOY_GO_ON :
	    filter_request_trailers(filter_of(filter));
}

int
envoy_dynamic_module_on_http_filter_response_headers(void *envoy,
    const void *filter, bool end)
{
	(void)envoy;
	if (filter != NULL)
		filter_response_headers(filter_of(filter), end);
	return ENVOY_GO_ON;
}

int
envoy_dynamic_module_on_http_filter_response_body(void *envoy,
    const void *filter, bool end)
{
	(void)envoy;
	if (filter != NULL)
		filter_response_body(filter_of(filter), end);
	return ENVOY_DATA_GO_ON;
}

int
envoy_dynamic_module_on_http_filter_response_trailers(void *envoy,
    const void *filter)
{
	(void)envoy;
	if (filter != NULL)
		filter_response_trailers(filter_of(filter));
	return ENVOY_GO_ON;
}

int
envoy_dynamic_module_on_http_filter_local_reply(void *envoy,
    const void *filter, uint32_t status, struct envoy_text details,
    bool reset)
{
	(void)envoy;
	(void)reset;
	if (filter != NULL)
		filter_local_reply(filter_of(filter), status, details);
	return ENVOY_GO_ON;
}

void
envoy_dynamic_module_on_http_filter_stream_complete(void *envoy,
    const void *filter)
{
	(void)envoy;
	if (filter != NULL)
		filter_complete(filter_of(filter));
}

void
envoy_dynamic_module_on_http_filter_destroy(const void *filter)
{
	if (filter != NULL)
		filter_free(filter_of(filter));
}

/* ------------------------------------------------------------- no use --- */

/* Envoy demands that these exist. Their arguments are not read. */
#define UNUSED_HOOK(name) \
	ENVOY_HOOK void envoy_dynamic_module_on_http_filter_##name(void); \
	void \
	envoy_dynamic_module_on_http_filter_##name(void) \
	{ \
	}

UNUSED_HOOK(http_callout_done)
UNUSED_HOOK(http_stream_headers)
UNUSED_HOOK(http_stream_data)
UNUSED_HOOK(http_stream_trailers)
UNUSED_HOOK(http_stream_complete)
UNUSED_HOOK(http_stream_reset)
UNUSED_HOOK(scheduled)
UNUSED_HOOK(downstream_above_write_buffer_high_watermark)
UNUSED_HOOK(downstream_below_write_buffer_low_watermark)
