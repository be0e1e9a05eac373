/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_key.h - makes keys of sessions, and of state that an engine keeps.
 *
 *   X-Session-Id: 7f3                       a session
 *   {"previous_response_id":"resp_7f3"}     an answer that one engine has
 *   GET /v1/responses/resp_7f3              the same answer
 *   {"conversation":{"id":"conv_7f3"}}      a conversation that it has
 *   GET /v1/conversations/conv_7f3/items    the same conversation
 *
 * Each is a digest within a tenant for the table of kvr_affinity(3). Digests of
 * different kinds differ even if the ids are equal: a client cannot choose the
 * name of a session so that it meets an answer.
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

/* Returns the digest; 0: the id is empty or too long, or the tenant invalid. */
uint64_t session_key(const struct kvr *k, const void *tenant,
    size_t tenant_length, enum session_kind kind, const void *id, size_t n);

struct session_path {
	enum session_kind kind;
	const char *id;   /* lies in the path */
	size_t length;    /* 0: the engine makes a new id */
};

/*
 * Is this the path of state that an engine keeps? Only its end counts, as in
 * endpoint.h:
 *
 *   .../v1/responses/ID, its /input_items          not with POST: /compact and
 *                                                  the like are not ids
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
