/* SPDX-License-Identifier: BSD-2-Clause */
/* envoy_body.h - bodies in Envoy's buffers: pieces, and edits of a request. */
#ifndef KVROUTE_ENVOY_BODY_H
#define KVROUTE_ENVOY_BODY_H

#include "envoy_abi.h"

struct kvh_call;

/* The pieces of a body; most have a few. */
struct envoy_pieces {
	struct envoy_text few[16], *at;
	size_t n;
};

/* false: no memory. */
bool pieces_read(struct envoy_pieces *p, void *envoy, int body);
void pieces_free(struct envoy_pieces *p);

/* Writes bytes in place of the first `cut` of a body. */
void body_replace(void *envoy, int body, size_t cut, const void *bytes,
    size_t n);
/*
 * Makes the edits of the call in a body that ends in `last`: the piece of the
 * hook, or the buffered body. Returns its new size; 0: it is as it was.
 */
size_t body_edit(void *envoy, struct kvh_call *call, int last);

#endif
