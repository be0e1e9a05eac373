/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * envoy_filter.c - see envoy_filter.h.
 *
 *   HEADERS --> BODY --> SENT --> ANSWERED --> OVER
 *                 `--------`----------`----------^
 *
 *   HEADERS    of the request are to come
 *   BODY       headers and body are held, for the choice needs the prompt. One
 *              that is longer than Envoy's buffer is chosen for by its first
 *              part, and passes unedited
 *   SENT       the targets are in the metadata, and Envoy tries them in order
 *   ANSWERED   the response passes, and the pool learns from it
 *   OVER       the call has ended, or was refused
 *
 * Attributes and local replies of Envoy show which host has answered, why Envoy
 * answers itself, and whether the client or the server ended a stream.
 */
#include "envoy_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "envoy_body.h"
#include "envoy_status.h"
#include "kvroute.h"
#include "kvroute_http.h"
#include "pick_pool.h"
#include "url_path.h"

enum filter_state { HEADERS, BODY, SENT, ANSWERED, OVER };

struct envoy_filter {
	struct kvh *pool;
	void *envoy;
	struct kvh_call *call; /* NULL before BODY, and in OVER */
	enum filter_state state;
	bool status;           /* the request is for the pool's */
	size_t given;          /* bytes of the request's body */
	bool rewrites;         /* the response's body is replaced */
};

#define TEXT(s) ((struct envoy_text){ (s), sizeof(s) - 1 })
static const struct envoy_text nothing = { NULL, 0 };

struct envoy_filter *
filter_new(struct kvh *pool, void *envoy, bool status)
{
	struct envoy_filter *f = calloc(1, sizeof(*f));

	if (f != NULL) {
		f->pool = pool;
		f->envoy = envoy;
		f->status = status;
	}
	return f;
}

/* Ends the call; bytes that were held back are written to `out`. */
static size_t
end_call(struct envoy_filter *f, uint32_t how, char *out, size_t room)
{
	size_t n = 0;

	f->state = OVER;
	(void)kvh_end(f->call, how, KVH_NOW, out, room, &n);
	kvh_call_free(f->call);
	f->call = NULL;
	return n;
}

static bool
is_text(struct envoy_text t, const char *name)
{
	return t.n == strlen(name) && memcmp(t.at, name, t.n) == 0;
}

static bool
begins_with(struct envoy_text t, const char *name)
{
	const size_t n = strlen(name);

	return t.n >= n && memcmp(t.at, name, n) == 0;
}

static struct envoy_text
get_attribute(struct envoy_filter *f, int attribute)
{
	struct envoy_text value = nothing;

	if (!envoy_dynamic_module_callback_http_filter_get_attribute_string(
	    f->envoy, attribute, &value))
		return nothing;
	return value;
}

static struct envoy_text
get_header(struct envoy_filter *f, int headers, struct envoy_text name)
{
	struct envoy_text value = nothing;

	if (!envoy_dynamic_module_callback_http_get_header(f->envoy, headers,
	    name, &value, 0, NULL))
		return nothing;
	return value;
}

/* -------------------------------------------------------------- choice --- */

static void
refuse_request(struct envoy_filter *f, int error)
{
	struct pick_pool counts = { .kvh = f->pool };
	const struct pick_refusal why = pick_refuse(&counts, f->call, error);
	char seconds[16];
	struct envoy_header headers[] = {
		{ TEXT("content-type"), TEXT("application/json") },
		{ TEXT("retry-after"), { seconds, (size_t)snprintf(seconds,
		    sizeof(seconds), "%u", (unsigned)why.retry_seconds) } }
	};

	if (f->call != NULL)
		(void)end_call(f, KVH_GIVEN_UP, NULL, 0);
	f->state = OVER;
	envoy_dynamic_module_callback_http_send_response(f->envoy, why.status,
	    headers, 2, (struct envoy_text){ why.body, strlen(why.body) },
	    why.status == 429 ? TEXT("kvroute_full") :
	    TEXT("kvroute_no_server"));
}

/* The text of an edit: "name: value", or "name:". */
static void
set_header(struct envoy_filter *f, const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n);
	struct envoy_text name = { text, 0 }, value = nothing;

	if (colon == NULL)
		return;
	name.n = (size_t)(colon - text);
	if (n > name.n + 2)
		value = (struct envoy_text){ colon + 2, n - name.n - 2 };
	(void)envoy_dynamic_module_callback_http_set_header(f->envoy,
	    ENVOY_REQUEST, name, value);
}

static void
set_headers(struct envoy_filter *f)
{
	const char *text;
	int64_t offset;
	uint64_t cut;
	uint32_t i;
	size_t n;

	for (i = 0; kvh_edit(f->call, i, &offset, &cut, &text, &n) == 0; i++)
		if (offset == KVH_HEADER)
			set_header(f, text, n);
}

static void
edit_request(struct envoy_filter *f, int last)
{
	char number[24];
	size_t size;

	set_headers(f);
	size = f->given == 0 ? 0 : body_edit(f->envoy, f->call, last);
	if (size == 0 || get_header(f, ENVOY_REQUEST,
	    TEXT("content-length")).at == NULL)
		return;
	(void)envoy_dynamic_module_callback_http_set_header(f->envoy,
	    ENVOY_REQUEST, TEXT("content-length"), (struct envoy_text){
	    number, (size_t)snprintf(number, sizeof(number), "%zu", size) });
}

/*
 * last: the buffer that has the end of the body. whole: no more of it will
 * come. false: the request was refused.
 */
static bool
choose_servers(struct envoy_filter *f, int last, bool whole)
{
	char list[PICK_LIST_MAX];
	uint32_t targets = 0;
	int error = kvh_body_end(f->call, whole);

	if (error == 0)
		error = kvh_pick(f->call, KVH_NOW, &targets);
	if (error != 0) {
		refuse_request(f, error);
		return false;
	}
	f->state = SENT;
	envoy_dynamic_module_callback_http_set_dynamic_metadata_string(
	    f->envoy, TEXT("envoy.lb"), TEXT("x-gateway-destination-endpoint"),
	    (struct envoy_text){ list, pick_list(f->call, targets, list) });
	edit_request(f, last);
	return true;
}

/* ------------------------------------------------------------- request --- */

/* A client is its address, without the port. */
static void
tell_client(struct envoy_filter *f)
{
	struct envoy_text t = get_attribute(f, ENVOY_CLIENT_ADDRESS);

	while (t.n > 0 && t.at[t.n - 1] != ':')
		t.n--;
	if (t.n > 1)
		(void)kvh_tell(f->call, KVH_TOLD_CLIENT, t.at, t.n - 1);
}

static void
allow_list(struct envoy_filter *f, struct envoy_text space,
    struct envoy_text key, size_t n)
{
	struct envoy_text names;
	size_t i;

	pick_allow(f->call, "", 0);
	for (i = 0; i < n; i++)
		if (envoy_dynamic_module_callback_http_get_metadata_list_string(
		    f->envoy, ENVOY_OF_STREAM, space, key, i, &names))
			pick_allow(f->call, names.at, names.n);
}

/* A subset of the servers, as a list or a text. An empty one allows none. */
static void
give_subset(struct envoy_filter *f)
{
	const struct envoy_text space = TEXT("envoy.lb.subset_hint");
	const struct envoy_text key = TEXT(
	    "x-gateway-destination-endpoint-subset");
	struct envoy_text names;
	size_t n;

	if (envoy_dynamic_module_callback_http_get_metadata_list_size(
	    f->envoy, ENVOY_OF_STREAM, space, key, &n))
		allow_list(f, space, key, n);
	else if (envoy_dynamic_module_callback_http_get_metadata_string(
	    f->envoy, ENVOY_OF_STREAM, space, key, &names))
		pick_allow(f->call, names.at, names.n);
}

static bool
begin_call(struct envoy_filter *f, const struct envoy_header *h, size_t n)
{
	struct envoy_text method = TEXT("POST"), path = TEXT("/");
	char decoded[URL_PATH_MAX];
	size_t i;

	for (i = 0; i < n; i++) {
		if (is_text(h[i].name, ":method"))
			method = h[i].value;
		if (is_text(h[i].name, ":path"))
			path = h[i].value;
	}
	if (kvh_begin(f->pool, method.at, method.n, decoded,
	    url_path(path.at, path.n, decoded), KVH_NOW, &f->call) != 0)
		return false;
	f->state = BODY;
	for (i = 0; i < n; i++)
		if (is_text(h[i].name, ":authority"))
			(void)kvh_header(f->call, "host", 4, h[i].value.at,
			    h[i].value.n);
		else if (h[i].name.n > 0 && h[i].name.at[0] != ':')
			(void)kvh_header(f->call, h[i].name.at, h[i].name.n,
			    h[i].value.at, h[i].value.n);
	tell_client(f);
	give_subset(f);
	return true;
}

static bool
read_headers(struct envoy_filter *f)
{
	struct envoy_header few[64], *h = few;
	const size_t n = envoy_dynamic_module_callback_http_get_headers_size(
	    f->envoy, ENVOY_REQUEST);
	bool begun;

	if (n > sizeof(few) / sizeof(few[0]))
		h = malloc(n * sizeof(*h));
	begun = h != NULL && envoy_dynamic_module_callback_http_get_headers(
	    f->envoy, ENVOY_REQUEST, h) && begin_call(f, h, n);
	if (h != few)
		free(h);
	return begun;
}

/* Other requests are chosen for by load: uploads and sockets are not held. */
static bool
has_prompt(struct envoy_filter *f)
{
	int64_t endpoint;

	return kvh_fact(f->call, KVH_ENDPOINT, &endpoint) == 0 &&
	    endpoint != 0;
}

int
filter_request_headers(struct envoy_filter *f, bool end)
{
	if (f->state != HEADERS)
		return ENVOY_GO_ON;
	if (f->status) {
		f->state = OVER;
		status_answer(f->pool, f->envoy);
		return ENVOY_STOP;
	}
	if (!read_headers(f)) {
		refuse_request(f, KVR_ENOMEM);
		return ENVOY_STOP;
	}
	if (!end && has_prompt(f))
		return ENVOY_STOP;
	return choose_servers(f, ENVOY_REQUEST_RECEIVED, end) ? ENVOY_GO_ON :
	    ENVOY_STOP;
}

static bool
give_body(struct envoy_filter *f)
{
	struct envoy_pieces p;
	size_t i;

	if (!pieces_read(&p, f->envoy, ENVOY_REQUEST_RECEIVED))
		return false;
	for (i = 0; i < p.n; i++) {
		(void)kvh_body(f->call, p.at[i].at, p.at[i].n);
		f->given += p.at[i].n;
	}
	pieces_free(&p);
	return true;
}

int
filter_request_body(struct envoy_filter *f, bool end)
{
	bool whole, chosen;
	uint64_t most;

	if (f->state != BODY)
		return ENVOY_DATA_GO_ON;
	whole = give_body(f);
	most = envoy_dynamic_module_callback_http_get_buffer_limit(f->envoy);
	if (whole && !end && (most == 0 || f->given <= most))
		return ENVOY_DATA_HOLD;
	chosen = choose_servers(f, ENVOY_REQUEST_RECEIVED, whole && end);
	return chosen ? ENVOY_DATA_GO_ON : ENVOY_DATA_DROP;
}

int
filter_request_trailers(struct envoy_filter *f)
{
	if (f->state != BODY)
		return ENVOY_GO_ON;
	return choose_servers(f, ENVOY_REQUEST_BUFFERED, true) ? ENVOY_GO_ON :
	    ENVOY_STOP;
}

/* ------------------------------------------------------------ response --- */

static uint32_t
read_status(struct envoy_text t)
{
	uint32_t status = 0;
	size_t i;

	for (i = 0; i < t.n && t.at[i] >= '0' && t.at[i] <= '9' &&
	    status < 1000; i++)
		status = status * 10 + (uint32_t)(t.at[i] - '0');
	return status;
}

static void
give_response(struct envoy_filter *f, uint32_t status,
    struct envoy_text type, struct envoy_text coding)
{
	const struct envoy_text served = get_attribute(f,
	    ENVOY_SERVER_ADDRESS);
	uint32_t rewrites = 0;

	(void)kvh_response(f->call, status, type.at, type.n, coding.at,
	    coding.n, served.at, served.n, KVH_NOW, &rewrites);
	f->rewrites = rewrites != 0;
}

void
filter_response_headers(struct envoy_filter *f, bool end)
{
	const uint32_t status = f->state != SENT ? 0 : read_status(get_header(
	    f, ENVOY_RESPONSE, TEXT(":status")));

	if (f->state != SENT)
		return;
	give_response(f, status, get_header(f, ENVOY_RESPONSE,
	    TEXT("content-type")), get_header(f, ENVOY_RESPONSE,
	    TEXT("content-encoding")));
	if (status >= 200 || status == 101)
		f->state = ANSWERED;
	if (end && f->state == ANSWERED)
		(void)end_call(f, KVH_WHOLE, NULL, 0);
	else if (f->rewrites)
		(void)envoy_dynamic_module_callback_http_set_header(f->envoy,
		    ENVOY_RESPONSE, TEXT("content-length"), nothing);
}

static void
pass_pieces(struct envoy_filter *f, const struct envoy_pieces *p, bool end)
{
	size_t i;

	for (i = 0; i < p->n; i++)
		(void)kvh_response_data(f->call, p->at[i].at, p->at[i].n,
		    KVH_NOW, NULL, 0, NULL);
	if (end)
		(void)end_call(f, KVH_WHOLE, NULL, 0);
}

/* The library may hold bytes back, and write them with later ones. */
static void
rewrite_pieces(struct envoy_filter *f, const struct envoy_pieces *p, bool end)
{
	const size_t total = envoy_dynamic_module_callback_http_get_body_size(
	    f->envoy, ENVOY_RESPONSE_RECEIVED);
	const size_t room = total + 3 * (size_t)KVH_WRITE_MORE;
	char *out = malloc(room);
	size_t i, n, at = 0;
	bool same = true;

	if (out == NULL) {
		(void)end_call(f, KVH_GIVEN_UP, NULL, 0);
		return;
	}
	for (i = 0; i < p->n; i++, at += n) {
		n = 0;
		(void)kvh_response_data(f->call, p->at[i].at, p->at[i].n,
		    KVH_NOW, out + at, room - at, &n);
		same = same && n == p->at[i].n &&
		    memcmp(out + at, p->at[i].at, n) == 0;
	}
	n = end ? end_call(f, KVH_WHOLE, out + at, room - at) : 0;
	if (!same || n > 0)
		body_replace(f->envoy, ENVOY_RESPONSE_RECEIVED, total, out,
		    at + n);
	free(out);
}

void
filter_response_body(struct envoy_filter *f, bool end)
{
	struct envoy_pieces p;

	if (f->state != ANSWERED)
		return;
	if (!pieces_read(&p, f->envoy, ENVOY_RESPONSE_RECEIVED))
		(void)end_call(f, KVH_GIVEN_UP, NULL, 0);
	else if (f->rewrites)
		rewrite_pieces(f, &p, end);
	else
		pass_pieces(f, &p, end);
	pieces_free(&p);
}

void
filter_response_trailers(struct envoy_filter *f)
{
	char *out;

	if (f->state != ANSWERED)
		return;
	out = f->rewrites ? malloc(KVH_WRITE_MORE) : NULL;
	body_replace(f->envoy, ENVOY_RESPONSE_BUFFERED, 0, out, end_call(f,
	    f->rewrites && out == NULL ? KVH_GIVEN_UP : KVH_WHOLE, out,
	    KVH_WRITE_MORE));
	free(out);
}

/* ---------------------------------------------------------------- ends --- */

/*
 * Is the server the cause of an end with these details? A stream that is idle
 * before the response waits for the server; a later one may wait for a client
 * that does not read.
 */
static bool
is_servers_fault(const struct envoy_filter *f, struct envoy_text details)
{
	if (is_text(details, "response_timeout"))
		return true;
	if (is_text(details, "stream_idle_timeout"))
		return f->state == SENT;
	return begins_with(details, "upstream_") &&
	    !begins_with(details, "upstream_max_stream_duration") &&
	    !begins_with(details,
	        "upstream_reset_before_response_started{overflow");
}

/*
 * All targets that Envoy has tried have failed. The attribute names the last
 * one, and kvh_response() counts the first as failed, if it is another one.
 */
void
filter_local_reply(struct envoy_filter *f, uint32_t status,
    struct envoy_text details)
{
	if (f->state != SENT)
		return;
	if (is_servers_fault(f, details)) {
		give_response(f, status, nothing, nothing);
		(void)kvh_failed(f->call, begins_with(details,
		    "upstream_reset_before_response_started{"
		    "remote_connection_failure") ? KVH_REFUSED : KVH_BROKE, 0,
		    KVH_NOW);
	}
	(void)end_call(f, KVH_GIVEN_UP, NULL, 0);
}

void
filter_complete(struct envoy_filter *f)
{
	uint32_t how = KVH_CLIENT_LEFT;

	if (f->call == NULL)
		return;
	if (f->state == BODY)
		how = KVH_GIVEN_UP;
	else if (is_servers_fault(f, get_attribute(f, ENVOY_CODE_DETAILS)))
		how = KVH_ENGINE_BROKE;
	(void)end_call(f, how, NULL, 0);
}

void
filter_free(struct envoy_filter *f)
{
	if (f->call != NULL)
		(void)end_call(f, f->state == BODY ? KVH_GIVEN_UP :
		    KVH_CLIENT_LEFT, NULL, 0);
	free(f);
}
