/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_yajl.h - reads a body by YAJL instead of json_reader.c, and has
 * body_shape.c make a prompt of it, which the prompt by json_reader.c and
 * body_string.c must equal to the byte.
 */
#ifndef KVR_BODY_YAJL_H
#define KVR_BODY_YAJL_H

#include <stdbool.h>
#include <stddef.h>

#include "body.h"

/* Does body_begin, one body_data, body_cut if there is more, and body_end. */
enum body_outcome body_yajl(struct body *b, struct kvr_prompt *p,
    enum endpoint endpoint, const void *text, size_t n, bool more,
    struct body_facts *facts);

#endif
