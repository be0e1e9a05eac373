/* SPDX-License-Identifier: BSD-2-Clause */
/* prompt_scope.h - a prompt gets its end once its scope is known. */
#ifndef KVROUTE_PROMPT_SCOPE_H
#define KVROUTE_PROMPT_SCOPE_H

#include <stdbool.h>

#include "body.h"

struct scope_text {
	const void *bytes;
	size_t length;
};

/* Configured values, else those of the body; an empty salt is the body's. */
struct scope_texts {
	struct scope_text model, salt, tenant;
};

/* False: the prompt is of no use. */
bool prompt_scope_end(struct kvr_prompt *p, struct kvr_scope *scope,
    const struct kvr *k, const struct body *b, const struct scope_texts *of);

#endif
