/* SPDX-License-Identifier: BSD-2-Clause */
/* prompt_scope.c - see prompt_scope.h. */
#include "prompt_scope.h"

static bool
part_set(const struct kvr *k, struct kvr_scope *scope,
    enum kvr_scope_part part, const struct scope_text *text)
{
	return kvr_scope_set(k, scope, part, text->bytes, text->length) ==
	    KVR_OK;
}

bool
prompt_scope_end(struct kvr_prompt *p, struct kvr_scope *scope,
    const struct kvr *k, const struct body *b, const struct scope_texts *of)
{
	return kvr_scope_init(scope, sizeof(*scope)) == KVR_OK &&
	    body_scope(b, k, scope) == KVR_OK &&
	    part_set(k, scope, KVR_SCOPE_MODEL, &of->model) &&
	    /* It may stand behind the part of the body that was read. */
	    (of->salt.length == 0 ||
	    part_set(k, scope, KVR_SCOPE_SALT, &of->salt)) &&
	    part_set(k, scope, KVR_SCOPE_TENANT, &of->tenant) &&
	    kvr_prompt_end(p, scope) == KVR_OK;
}
