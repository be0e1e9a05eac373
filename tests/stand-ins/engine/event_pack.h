/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_pack.h - batches of events as engines write them.
 *
 *   vllm           maps, as from 0.24 on
 *   vllm-arrays    arrays, as in 0.22 and 0.23
 *   sglang         maps
 *   sglang-arrays  arrays; a map at the end has the salt
 */
#ifndef KVROUTE_EVENT_PACK_H
#define KVROUTE_EVENT_PACK_H

#include "packer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_form {
	FORM_VLLM, FORM_VLLM_ARRAYS, FORM_SGLANG, FORM_SGLANG_ARRAYS, FORMS
};
extern const char *const event_forms[FORMS];
bool event_form_sglang(enum event_form form);

enum event_item_kind { ITEM_STORED, ITEM_REMOVED, ITEM_CLEARED };

struct event_item {
	enum event_item_kind kind;
	const uint64_t *hashes;  /* the engine's, [n] */
	size_t n;
	bool has_parent;         /* these: if stored */
	uint64_t parent;
	const uint32_t *tokens;
	size_t n_tokens;
	uint32_t block;          /* tokens */
	const char *salt, *adapter; /* or NULL */
	uint32_t window;         /* tokens; 0: of the full group */
};

/* Writes n items; `p` has the bytes until it begins anew. */
void event_pack(struct packer *p, enum event_form form, double time,
    uint32_t rank, const struct event_item *items, size_t n);

#endif
