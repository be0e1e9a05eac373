/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_session.h - keys of sessions, and state that an engine keeps, see
 * kept_state.h. A session is named by KVH_TOLD_SESSION, or by the first header
 * or member of the body that affinity_key= lists.
 */
#ifndef KVROUTE_CALL_SESSION_H
#define KVROUTE_CALL_SESSION_H

#include "pool_in.h"

/* The path of the request; the tenant is not known yet. */
void session_path_read(struct kvh_call *c, const char *path, size_t n);
/* Keeps a header that may name a session. */
void session_header(struct kvh_call *c, const char *name, size_t name_len,
    const char *value, size_t value_len);
/* Makes the digests; `ids` has the texts of the body's. */
void session_digest(struct kvh_call *c, const struct body_facts *ids);
/*
 * Where its state is: c->reason is AFFINITY, and that server is taken;
 * STATE_LOST; or STATE_BUSY. False: it has none.
 */
bool session_find(struct kvh_call *c);
void session_count(struct kvh_call *c);
/* A head with a status below 300 has come. */
void session_accepted(struct kvh_call *c);
/* Before these bytes reach the client: its next request may come at once. */
void session_answered(struct kvh_call *c);

#endif
