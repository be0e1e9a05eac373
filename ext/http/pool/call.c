/* SPDX-License-Identifier: BSD-2-Clause */
/* call.c - begins and frees a request, and gives the facts of it. */
#include "pool_in.h"

#include <stdlib.h>
#include <string.h>

#include "call_end.h"
#include "call_explain.h"
#include "call_session.h"
#include "endpoint.h"
#include "pool_text.h"
#include "text_writer.h"

enum { RETRY_MS = 1000 };

int
kvh_begin(struct kvh *h, const char *method, size_t method_len,
    const char *path, size_t path_len, int64_t now, struct kvh_call **call)
{
	struct kvh_call *c;

	if (h == NULL || call == NULL || (method == NULL && method_len > 0) ||
	    (path == NULL && path_len > 0))
		return KVR_EINVAL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return KVR_ENOMEM;
	c->h = h;
	c->now = c->began = pool_now(now);
	c->post = text_is(method, method_len, "POST");
	c->deletes = text_is(method, method_len, "DELETE");
	c->endpoint = endpoint_of(path, path_len);
	c->passing.report.size = sizeof(c->passing.report);
	session_path_read(c, path, path_len);
	c->path_endpoint = c->endpoint;
	c->path_binds = c->keeps.binds;
	*call = c;
	return KVR_OK;
}

void
kvh_call_free(struct kvh_call *c)
{
	if (c == NULL)
		return;
	if (c->stage != CALL_ENDED)
		call_over(c, KVH_GIVEN_UP);
	free(c->scan);
	free(c->allow);
	free(c->tried);
	free(c->some);
	free(c->salt_text);
	hold_free(&c->explained);
	trace_line_leave(&c->trace);
	free(c->line);
	free(c);
}

/* ---------------------------------------------------------------- heads --- */

/* False: it is too long. */
static bool
text_take(struct call_text *to, const char *text, size_t n)
{
	if (n > sizeof(to->bytes))
		return false;
	if (n > 0)
		memcpy(to->bytes, text, n);
	to->length = n;
	return true;
}

static bool
has_json(const char *value, size_t n)
{
	size_t i;

	for (i = 0; i + 4 <= n; i++)
		if (text_is(value + i, 4, "json"))
			return true;
	return false;
}

int
kvh_header(struct kvh_call *c, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
	const struct pool_text *scope;

	if (c == NULL || (name == NULL && name_len > 0) ||
	    (value == NULL && value_len > 0))
		return KVR_EINVAL;
	if (c->stage != CALL_READS)
		return KVH_EORDER;
	scope = &c->h->options.scope;
	session_header(c, name, name_len, value, value_len);
	if (text_is(name, name_len, "content-type"))
		c->not_json = !has_json(value, value_len);
	if (scope->length > 0 &&
	    text_same(name, name_len, scope->bytes, scope->length))
		c->unscoped = !text_take(&c->scope, value, value_len);
	return KVR_OK;
}

/* -------------------------------------------------------------- report --- */

static int
model_tell(struct kvh_call *c, const char *text, size_t n)
{
	if (!text_take(&c->model, text, n))
		return KVH_EVALUE;
	c->told_model = n > 0;
	return KVR_OK;
}

static int
salt_tell(struct kvh_call *c, const char *text, size_t n)
{
	if (n > sizeof(c->salt.bytes) || !text_is_utf8(text, n))
		return KVH_EVALUE;
	if (n > 0 && c->scan == NULL) {
		c->scan = malloc(sizeof(*c->scan));
		if (c->scan == NULL)
			return KVR_ENOMEM;
		salt_begin(c->scan);
	}
	if (n == 0) {
		free(c->scan);
		c->scan = NULL;
	}
	(void)text_take(&c->salt, text, n);
	return KVR_OK;
}

static int
share_tell(struct kvh_call *c, const char *text, size_t n)
{
	uint32_t share = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9' || share > KVR_SHARE_MAX)
			return KVH_EVALUE;
		share = share * 10 + (uint32_t)(text[i] - '0');
	}
	if (n > 0 && (share < 1 || share > KVR_SHARE_MAX))
		return KVH_EVALUE;
	c->share = share;
	return KVR_OK;
}

static int
endpoint_tell(struct kvh_call *c, const char *text, size_t n)
{
	int i;

	if (n == 0) {
		c->endpoint = c->path_endpoint;
		c->keeps.binds = c->path_binds;
		return KVR_OK;
	}
	for (i = 0; i < ENDPOINTS; i++) {
		if (!text_is(text, n, endpoint_name((enum endpoint)i)))
			continue;
		c->endpoint = (enum endpoint)i;
		if (i != ENDPOINT_RESPONSES &&
		    c->keeps.binds == SESSION_RESPONSE)
			c->keeps.binds = 0;
		if (i == ENDPOINT_RESPONSES &&
		    c->h->options.responses_ttl > 0 && c->h->options.feedback)
			c->keeps.binds = SESSION_RESPONSE;
		return KVR_OK;
	}
	return KVH_EVALUE;
}

static int
bypass_tell(struct kvh_call *c, const char *text, size_t n)
{
	c->bypass = n > 0 && !text_is(text, n, "0");
	return KVR_OK;
}

int
kvh_tell(struct kvh_call *c, uint32_t which, const char *text, size_t text_len)
{
	if (c == NULL || (text == NULL && text_len > 0))
		return KVR_EINVAL;
	if (c->stage != CALL_READS || c->body_begun)
		return KVH_EORDER;
	switch (which) {
	case KVH_TOLD_SESSION:
		return text_take(&c->session_told, text, text_len) ? KVR_OK :
		    KVH_EVALUE;
	case KVH_TOLD_TENANT:
		return text_take(&c->scope_told, text, text_len) ? KVR_OK :
		    KVH_EVALUE;
	case KVH_TOLD_MODEL:
		return model_tell(c, text, text_len);
	case KVH_TOLD_SALT:
		return salt_tell(c, text, text_len);
	case KVH_TOLD_SHARE:
		return share_tell(c, text, text_len);
	case KVH_TOLD_BYPASS:
		return bypass_tell(c, text, text_len);
	case KVH_TOLD_ENDPOINT:
		return endpoint_tell(c, text, text_len);
	case KVH_TOLD_CLIENT:
		return text_take(&c->client, text, text_len) ? KVR_OK :
		    KVH_EVALUE;
	default:
		return KVH_ENAME;
	}
}

/* ---------------------------------------------------------------- facts --- */

int
kvh_fact(struct kvh_call *c, uint32_t which, int64_t *value)
{
	if (c == NULL || value == NULL)
		return KVR_EINVAL;
	const int64_t facts[] = {
		[KVH_REASON] = c->reason,
		[KVH_ENDPOINT] = c->endpoint,
		[KVH_STREAM] = c->facts.stream,
		[KVH_PROMPT_TOKENS] = (int64_t)c->decision.prompt_tokens,
		[KVH_OVERLAP_TOKENS] = (int64_t)c->decision.overlap_tokens,
		[KVH_BEST_TOKENS] = (int64_t)c->decision.best_tokens,
		[KVH_LEASE] = (int64_t)c->lease,
		[KVH_WORKER] = (int64_t)c->worker,
		[KVH_TRIES] = c->tries,
		[KVH_RETRY_MS] = RETRY_MS,
		[KVH_STARTED] = c->passing.started,
		[KVH_REPORT_KIND] = c->passing.report.kind,
		[KVH_REPORT_PROMPT] = (int64_t)c->passing.report.prompt_tokens,
		[KVH_REPORT_CACHED] = (int64_t)c->passing.report.cached_tokens,
		[KVH_REPORT_COMPLETION] =
		    (int64_t)c->passing.report.completion_tokens
	};
	if (which >= sizeof(facts) / sizeof(facts[0]))
		return KVH_ENAME;
	*value = facts[which];
	return KVR_OK;
}

int
kvh_word(struct kvh_call *c, uint32_t which, const char **text, size_t *len)
{
	int error;

	if (c == NULL || text == NULL || len == NULL)
		return KVR_EINVAL;
	switch (which) {
	case KVH_MODEL:
		*text = c->model.bytes;
		*len = c->model.length;
		return KVR_OK;
	case KVH_REASON_WORD:
		*text = reason_name(c->reason);
		break;
	case KVH_ENDPOINT_WORD:
		*text = endpoint_name(c->endpoint);
		break;
	case KVH_TRACE:
		if (c->line == NULL)
			return KVH_EEND;
		*text = c->line;
		*len = c->line_length;
		return KVR_OK;
	case KVH_EXPLAIN:
		error = call_explain(c);
		*text = (const char *)c->explained.data;
		*len = c->explained.length;
		return error;
	default:
		return KVH_ENAME;
	}
	*len = strlen(*text);
	return KVR_OK;
}
