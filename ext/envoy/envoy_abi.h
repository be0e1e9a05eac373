/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * envoy_abi.h - the part of Envoy's C ABI for dynamic modules that the filter
 * uses, for Envoy 1.40. Names, values and layouts are facts of
 * source/extensions/dynamic_modules/abi/abi.h in envoyproxy/envoy; the text is
 * written for this file.
 *
 *   envoy_dynamic_module_on_*         the module has them, and Envoy calls
 *   envoy_dynamic_module_callback_*   Envoy has them, and the module calls
 *
 * Text of Envoy's lives until the hook returns, or a callback changes its
 * source. A header is removed by a text with NULL for `at`.
 */
#ifndef KVROUTE_ENVOY_ABI_H
#define KVROUTE_ENVOY_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENVOY_MINOR "1.40"
#define ENVOY_ABI_VERSION "v0.2.0"

struct envoy_text {
	const char *at;
	size_t n;
};

struct envoy_header {
	struct envoy_text name, value;
};

enum envoy_headers {
	ENVOY_REQUEST = 0, ENVOY_RESPONSE = 2
};

/* Received: the piece of the hook. Buffered: those that were held before. */
enum envoy_body {
	ENVOY_REQUEST_RECEIVED, ENVOY_REQUEST_BUFFERED,
	ENVOY_RESPONSE_RECEIVED, ENVOY_RESPONSE_BUFFERED
};

/* Results of hooks: of headers and trailers, and of pieces of a body. */
enum envoy_go { ENVOY_GO_ON = 0, ENVOY_STOP = 1 };
enum envoy_data {
	ENVOY_DATA_GO_ON = 0, ENVOY_DATA_HOLD = 2, ENVOY_DATA_DROP = 3
};

enum envoy_level { ENVOY_WARN = 3, ENVOY_ERROR = 4 };
enum envoy_source { ENVOY_OF_STREAM = 0 };
/* Places in the list of attributes. */
enum envoy_attribute {
	ENVOY_CODE_DETAILS = 16, ENVOY_CLIENT_ADDRESS = 24,
	ENVOY_SERVER_ADDRESS = 41
};

/* ---------------------------------------------------------------- hooks --- */

#define ENVOY_HOOK __attribute__((visibility("default")))

/* The version of the ABI, which Envoy compares; NULL: it is not loaded. */
ENVOY_HOOK const char *envoy_dynamic_module_on_program_init(void);

/* NULL: the configuration is refused. */
ENVOY_HOOK const void *envoy_dynamic_module_on_http_filter_config_new(
    void *envoy, struct envoy_text name, struct envoy_text config);
ENVOY_HOOK void envoy_dynamic_module_on_http_filter_config_destroy(
    const void *config);
ENVOY_HOOK const void *envoy_dynamic_module_on_http_filter_new(
    const void *config, void *envoy);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_request_headers(
    void *envoy, const void *filter, bool end);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_request_body(void *envoy,
    const void *filter, bool end);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_request_trailers(
    void *envoy, const void *filter);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_response_headers(
    void *envoy, const void *filter, bool end);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_response_body(void *envoy,
    const void *filter, bool end);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_response_trailers(
    void *envoy, const void *filter);
ENVOY_HOOK int envoy_dynamic_module_on_http_filter_local_reply(void *envoy,
    const void *filter, uint32_t status, struct envoy_text details,
    bool reset);
/* Before destroy; callbacks still work. */
ENVOY_HOOK void envoy_dynamic_module_on_http_filter_stream_complete(
    void *envoy, const void *filter);
ENVOY_HOOK void envoy_dynamic_module_on_http_filter_destroy(
    const void *filter);

/* ------------------------------------------------------------ callbacks --- */

void envoy_dynamic_module_callback_log(int level, struct envoy_text text);
size_t envoy_dynamic_module_callback_http_get_headers_size(void *envoy,
    int headers);
bool envoy_dynamic_module_callback_http_get_headers(void *envoy, int headers,
    struct envoy_header *list);
/* Several headers may have the name: the value at `place` of their list. */
bool envoy_dynamic_module_callback_http_get_header(void *envoy, int headers,
    struct envoy_text name, struct envoy_text *value, size_t place,
    size_t *values);
bool envoy_dynamic_module_callback_http_set_header(void *envoy, int headers,
    struct envoy_text name, struct envoy_text value);
size_t envoy_dynamic_module_callback_http_get_body_size(void *envoy, int body);
size_t envoy_dynamic_module_callback_http_get_body_chunks_size(void *envoy,
    int body);
bool envoy_dynamic_module_callback_http_get_body_chunks(void *envoy, int body,
    struct envoy_text *pieces);
bool envoy_dynamic_module_callback_http_append_body(void *envoy, int body,
    struct envoy_text bytes);
bool envoy_dynamic_module_callback_http_drain_body(void *envoy, int body,
    size_t n);
/* Is the piece of the hook the buffered body, which a filter before held? */
bool envoy_dynamic_module_callback_http_received_buffered_request_body(
    void *envoy);
uint64_t envoy_dynamic_module_callback_http_get_buffer_limit(void *envoy);
void envoy_dynamic_module_callback_http_send_response(void *envoy,
    uint32_t status, struct envoy_header *headers, size_t n,
    struct envoy_text body, struct envoy_text details);
void envoy_dynamic_module_callback_http_set_dynamic_metadata_string(
    void *envoy, struct envoy_text space, struct envoy_text key,
    struct envoy_text value);
/*
 * Of metadata that a filter before has set. false: it is not there, or of
 * another type; the first of these logs nothing then.
 */
bool envoy_dynamic_module_callback_http_get_metadata_list_size(void *envoy,
    int source, struct envoy_text space, struct envoy_text key, size_t *n);
bool envoy_dynamic_module_callback_http_get_metadata_list_string(void *envoy,
    int source, struct envoy_text space, struct envoy_text key, size_t place,
    struct envoy_text *value);
bool envoy_dynamic_module_callback_http_get_metadata_string(void *envoy,
    int source, struct envoy_text space, struct envoy_text key,
    struct envoy_text *value);
bool envoy_dynamic_module_callback_http_filter_get_attribute_string(
    void *envoy, int attribute, struct envoy_text *value);

#endif
