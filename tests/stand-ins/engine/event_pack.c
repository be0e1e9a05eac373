/* SPDX-License-Identifier: BSD-2-Clause */
/* event_pack.c - see event_pack.h. */
#include "event_pack.h"

/* SGLang's are signed. */
static void
put_hash(struct packer *p, enum event_form form, uint64_t hash)
{
	if (event_form_sglang(form))
		packer_int(p, (int64_t)hash);
	else
		packer_uint(p, hash);
}

static void
put_hashes(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	size_t i;

	packer_array(p, item->n);
	for (i = 0; i < item->n; i++)
		put_hash(p, form, item->hashes[i]);
}

static void
put_parent(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	if (item->has_parent)
		put_hash(p, form, item->parent);
	else
		packer_nil(p);
}

static void
put_tokens(struct packer *p, const struct event_item *item)
{
	size_t i;

	packer_array(p, item->n_tokens);
	for (i = 0; i < item->n_tokens; i++)
		packer_uint(p, item->tokens[i]);
}

static void
put_text(struct packer *p, const char *text)
{
	if (text == NULL)
		packer_nil(p);
	else
		packer_text(p, text);
}

/* vLLM: for each block the adapter, and for the first one the salt. */
static void
put_extra(struct packer *p, const struct event_item *item)
{
	size_t i, texts;

	packer_array(p, item->n);
	for (i = 0; i < item->n; i++) {
		texts = (item->adapter != NULL) +
		    (size_t)(item->salt != NULL && i == 0);
		if (texts == 0) {
			packer_nil(p);
			continue;
		}
		packer_array(p, texts);
		if (item->adapter != NULL)
			packer_text(p, item->adapter);
		if (item->salt != NULL && i == 0)
			packer_text(p, item->salt);
	}
}

static void
put_kind(struct packer *p, const struct event_item *item)
{
	packer_text(p, item->window > 0 ? "sliding_window" :
	    "full_attention");
}

static void
put_window(struct packer *p, const struct event_item *item)
{
	if (item->window > 0)
		packer_uint(p, item->window);
	else
		packer_nil(p);
}

/* --------------------------------------------------------------- arrays --- */

static void
stored_array(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	bool sglang = event_form_sglang(form);

	packer_array(p, !sglang ? 12 : item->salt != NULL ? 8 : 7);
	packer_text(p, "BlockStored");
	put_hashes(p, form, item);
	put_parent(p, form, item);
	put_tokens(p, item);
	packer_uint(p, item->block);
	packer_nil(p); /* the adapter's number */
	packer_text(p, "GPU");
	if (sglang && item->salt != NULL) {
		packer_map(p, 1);
		packer_text(p, "cache_salt");
		packer_text(p, item->salt);
	}
	if (sglang)
		return;
	put_text(p, item->adapter);
	put_extra(p, item);
	packer_uint(p, item->window > 0);
	put_kind(p, item);
	put_window(p, item);
}

static void
item_array(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	if (item->kind == ITEM_STORED) {
		stored_array(p, form, item);
	} else if (item->kind == ITEM_CLEARED) {
		packer_array(p, 1);
		packer_text(p, "AllBlocksCleared");
	} else {
		packer_array(p, event_form_sglang(form) ? 3 : 4);
		packer_text(p, "BlockRemoved");
		put_hashes(p, form, item);
		packer_text(p, "GPU");
		if (!event_form_sglang(form))
			packer_uint(p, item->window > 0);
	}
}

/* ----------------------------------------------------------------- maps --- */

static void
stored_map(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	bool sglang = event_form_sglang(form);

	packer_map(p, sglang ? item->salt != NULL ? 8 : 7 :
	    item->window > 0 ? 12 : 11);
	packer_text(p, "type");
	packer_text(p, "BlockStored");
	packer_text(p, "block_hashes");
	put_hashes(p, form, item);
	packer_text(p, "parent_block_hash");
	put_parent(p, form, item);
	packer_text(p, "token_ids");
	put_tokens(p, item);
	packer_text(p, "block_size");
	packer_uint(p, item->block);
	packer_text(p, "lora_id");
	packer_nil(p);
	packer_text(p, "medium");
	packer_text(p, "GPU");
	if (sglang && item->salt != NULL) {
		packer_text(p, "cache_salt");
		packer_text(p, item->salt);
	}
	if (sglang)
		return;
	packer_text(p, "lora_name");
	put_text(p, item->adapter);
	packer_text(p, "extra_keys");
	put_extra(p, item);
	packer_text(p, "group_idx");
	packer_uint(p, item->window > 0);
	packer_text(p, "kv_cache_spec_kind");
	put_kind(p, item);
	if (item->window == 0)
		return;
	packer_text(p, "kv_cache_spec_sliding_window");
	put_window(p, item);
}

static void
item_map(struct packer *p, enum event_form form,
    const struct event_item *item)
{
	if (item->kind == ITEM_STORED) {
		stored_map(p, form, item);
		return;
	}
	packer_map(p, item->kind == ITEM_CLEARED ? 1 :
	    event_form_sglang(form) ? 3 : 4);
	packer_text(p, "type");
	if (item->kind == ITEM_CLEARED) {
		packer_text(p, "AllBlocksCleared");
		return;
	}
	packer_text(p, "BlockRemoved");
	packer_text(p, "block_hashes");
	put_hashes(p, form, item);
	packer_text(p, "medium");
	packer_text(p, "GPU");
	if (event_form_sglang(form))
		return;
	packer_text(p, "group_idx");
	packer_uint(p, item->window > 0);
}

void
event_pack(struct packer *p, enum event_form form, double time,
    uint32_t rank, const struct event_item *items, size_t n)
{
	bool arrays = form == FORM_VLLM_ARRAYS || form == FORM_SGLANG_ARRAYS;
	size_t i;

	packer_begin(p);
	packer_array(p, 3);
	packer_double(p, time);
	packer_array(p, n);
	for (i = 0; i < n; i++)
		if (arrays)
			item_array(p, form, &items[i]);
		else
			item_map(p, form, &items[i]);
	packer_uint(p, rank);
	packer_end(p);
}
