/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_key.h - what names a session, or what an engine keeps.
 *
 *   X-Session-Id: 7f3                       a session, wherever it goes
 *   {"previous_response_id":"resp_7f3"}     the answer that one engine has
 *   GET /v1/responses/resp_7f3              the same
 *   {"conversation":{"id":"conv_7f3"}}      a conversation that it has
 *   GET /v1/conversations/conv_7f3/items    the same
 *
 * Each is a digest within a tenant for the table of kvr_affinity(3). Digests of
 * different kinds differ, also where the ids are equal: no client can name a
 * session so that it meets an answer.
 */
#ifndef KVROUTE_SESSION_KEY_H
#define KVROUTE_SESSION_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvroute.h"

enum { SESSION_KEY_MAX = 256 }; /* bytes of an id */

enum session_kind {
	SESSION_KEY = 's',
	SESSION_RESPONSE = 'r',
	SESSION_CONVERSATION = 'c'
};

/* The digest; 0: the id is empty or too long, or the tenant is no text. */
uint64_t session_key(const struct kvr *k, const void *tenant,
    size_t tenant_length, enum session_kind kind, const void *id, size_t n);

struct session_path {
	enum session_kind kind;
	const char *id;   /* in the path */
	size_t length;    /* 0: a new one is made here */
};

/*
 * Is this the path of something that an engine keeps? Its end counts, as in
 * endpoint.h:
 *
 *   .../v1/responses/ID, its /input_items          not with POST: /compact and
 *                                                  the like are no ids
 *   .../v1/responses/ID/cancel                     with POST
 *   .../v1/conversations                           with POST
 *   .../v1/conversations/ID, its /items, /items/ID
 *
 * ".../openai/..." is as good as ".../v1/...". The path has no query and is
 * decoded.
 */
bool session_path(const char *path, size_t length, bool post,
    struct session_path *out);

#endif
