/* SPDX-License-Identifier: BSD-2-Clause */
/* envoy_filter.h - one request in Envoy: the hooks of the filter. */
#ifndef KVROUTE_ENVOY_FILTER_H
#define KVROUTE_ENVOY_FILTER_H

#include "envoy_abi.h"

struct kvh;
struct envoy_filter;

/*
 * status: each request is answered with the state of the pool. NULL: no
 * memory.
 */
struct envoy_filter *filter_new(struct kvh *pool, void *envoy, bool status);
/* Ends a request that is open. */
void filter_free(struct envoy_filter *f);

/* Results are those of the hooks. */
int filter_request_headers(struct envoy_filter *f, bool end);
int filter_request_body(struct envoy_filter *f, bool end);
int filter_request_trailers(struct envoy_filter *f);
void filter_response_headers(struct envoy_filter *f, bool end);
void filter_response_body(struct envoy_filter *f, bool end);
void filter_response_trailers(struct envoy_filter *f);
/* Envoy answers itself. */
void filter_local_reply(struct envoy_filter *f, uint32_t status,
    struct envoy_text details);
/* The stream is over, in whatever way. */
void filter_complete(struct envoy_filter *f);

#endif
