/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handle.c - public calls on handles, policy and workers. Each checks its
 * arguments, enters the transaction and calls inward.
 */
#include "event.h"
#include "file.h"
#include "handle.h"
#include "id.h"
#include "journal.h"
#include "lease_walk.h"
#include "name.h"
#include "options.h"
#include "parts.h"
#include "policy.h"
#include "prompt.h"
#include "rate.h"
#include "recover.h"
#include "report.h"
#include "seat.h"
#include "txn.h"
#include "worker.h"

#include <stdlib.h>

/* ------------------------------------------------------------- handles --- */

/* Takes a seat, in memory. */
static int
take_seat(struct kvr *k)
{
	int error = seat_own(k);

	return error == KVR_OK ? seat_take(k) : error;
}

int
kvr_new(const struct kvr_options *options, struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error;

	if (out == NULL)
		return KVR_EINVAL;
	error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	if (o.region_bytes > PTRDIFF_MAX - CELL)
		return KVR_EINVAL;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	k->owned = malloc((size_t)o.region_bytes + CELL);
	error = KVR_ENOMEM;
	if (k->owned != NULL) {
		size_t over = (uintptr_t)k->owned % CELL;

		error = options_format(&o,
		    (char *)k->owned + (CELL - over) % CELL, o.region_bytes,
		    REGION_PRIVATE, k);
	}
	if (error == KVR_OK)
		error = take_seat(k);
	if (error != KVR_OK) {
		kvr_free(k);
		return error;
	}
	memcpy(k->boot_id, o.boot_id, sizeof(k->boot_id));
	*out = k;
	return KVR_OK;
}

static int
memory_check(const void *memory, size_t bytes, struct kvr **out)
{
	if (memory == NULL || out == NULL || (uintptr_t)memory % CELL != 0)
		return KVR_EINVAL;
	return bytes < sizeof(struct region) ? KVR_ETOOSMALL : KVR_OK;
}

int
kvr_new_at(const struct kvr_options *options, void *memory, size_t bytes,
    struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error = memory_check(memory, bytes, out);

	if (error == KVR_OK)
		error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	error = options_format(&o, memory, bytes, REGION_MEMORY, k);
	if (error == KVR_OK)
		error = take_seat(k);
	if (error != KVR_OK) {
		kvr_free(k);
		return error;
	}
	memcpy(k->boot_id, o.boot_id, sizeof(k->boot_id));
	*out = k;
	return KVR_OK;
}

int
kvr_attach_at(const struct kvr_options *options, void *memory, size_t bytes,
    struct kvr **out)
{
	struct kvr_options o;
	struct kvr *k;
	int error = memory_check(memory, bytes, out);

	if (error == KVR_ETOOSMALL)
		return KVR_EFORMAT;
	if (error == KVR_OK)
		error = options_get(options, &o);
	if (error != KVR_OK)
		return error;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return KVR_ENOMEM;
	error = region_attach(memory, bytes, k);
	if (error == KVR_OK && options != NULL)
		error = options_match(&o, k);
	if (error == KVR_OK && k->kind != REGION_MEMORY)
		error = KVR_EMISMATCH;
	if (error == KVR_OK)
		error = take_seat(k);
	if (error == KVR_OK)
		error = recover_shared(k, o.boot_id, false);
	if (error == KVR_OK && options != NULL)
		error = recover_limits(k, &o, false);
	if (error != KVR_OK) {
		kvr_free(k);
		return error;
	}
	memcpy(k->boot_id, o.boot_id, sizeof(k->boot_id));
	*out = k;
	return KVR_OK;
}

void
kvr_free(struct kvr *k)
{
	if (k == NULL)
		return;
	if (k->mapped != NULL)
		file_close(k);
	else
		seat_leave(k);
	seat_disown(k);
	free(k->owned);
	free(k);
}

int
kvr_nowait_set(struct kvr *k, uint32_t on)
{
	if (k == NULL || on > REGION_BRIEFLY)
		return KVR_EINVAL;
	atomic_store_explicit(&k->nowait, on, memory_order_relaxed);
	return KVR_OK;
}

int
kvr_user_area(const struct kvr *k, void **area, size_t *bytes)
{
	if (k == NULL || area == NULL || bytes == NULL)
		return KVR_EINVAL;
	if (k->layout.user_bytes == 0 || (!k->readonly && !seat_here(k)))
		return KVR_ESTATE;
	*area = k->user;
	*bytes = (size_t)k->layout.user_bytes;
	return KVR_OK;
}

int
kvr_clear(struct kvr *k)
{
	struct txn c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	parts_empty(k, k->region->clock);
	return txn_write_end(k, NULL, KVR_OK);
}

/* Back in time the region is emptied: all stamps would lie in the future. */
int
kvr_clock_set(struct kvr *k, int64_t now)
{
	struct txn c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	if (!txn_now(&now))
		return KVR_ECLOCK;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (now < k->region->clock)
		parts_empty(k, now);
	write_once(k->region->clock, now);
	return txn_write_end(k, NULL, KVR_OK);
}

int
kvr_policy_set(struct kvr *k, const struct kvr_policy *policy)
{
	struct kvr_policy p;
	struct txn c;
	uint32_t i;
	int error;

	if (k == NULL || policy == NULL)
		return KVR_EINVAL;
	(void)kvr_policy_init(&p, sizeof(p));
	error = struct_get(&p, sizeof(p), policy);
	if (error == KVR_OK)
		error = policy_check(&p);
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	policy_write(k, &p);
	for (i = 0; i < slots_used(k); i++)
		load_recount(k, i);
	return txn_write_end(k, NULL, KVR_OK);
}

int
kvr_policy_get(const struct kvr *k, struct kvr_policy *out)
{
	struct kvr_policy p;
	struct txn c;
	int error;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	policy_read(k, &p);
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		struct_put(out, out->size, &p, sizeof(p));
	return error;
}

/* ------------------------------------------------------------- workers --- */

int
kvr_worker_init(struct kvr_worker *w, size_t size)
{
	struct kvr_worker d;

	memset(&d, 0, sizeof(d));
	d.weight = 1.0;
	return struct_init(w, size, &d, sizeof(d));
}

static int
facts_get(const struct kvr_worker *from, struct kvr_worker *w)
{
	int error = KVR_OK;

	(void)kvr_worker_init(w, sizeof(*w));
	if (from != NULL)
		error = struct_get(w, sizeof(*w), from);
	if (error != KVR_OK)
		return error;
	if (w->role > KVR_ROLE_DECODE || w->state > KVR_STATE_DOWN ||
	    w->retain > KVR_RETAIN_EVENTS || w->eviction > KVR_EVICT_LEAF)
		return KVR_EINVAL;
	if (w->retain == KVR_RETAIN_CAPACITY && w->capacity_tokens == 0)
		return KVR_EINVAL;
	if (w->window_mode > KVR_WINDOW_DUAL || w->window_layers > 10000 ||
	    w->window_reserved != 0 ||
	    (w->window_mode != KVR_WINDOW_FULL && w->window_tokens == 0))
		return KVR_EINVAL;
	/* written so that a NaN fails */
	if (!(w->weight >= 1e-6 && w->weight <= 1e6) ||
	    !(w->prefill_rate >= 0 && w->prefill_rate <= 1e15))
		return KVR_EINVAL;
	return KVR_OK;
}

static bool
name_ok(const char *name, size_t length)
{
	return name != NULL && length > 0 && length <= KVR_NAME_MAX;
}

/* If leases still keep all slots that are retired, the next call goes on. */
static int
or_later(int error)
{
	return error == KVR_EFULL ? KVR_EBUSY : error;
}

/* put: one that exists is changed. */
static int
add_worker(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, bool put, uint64_t *id)
{
	struct kvr_worker w;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || !name_ok(name, name_len) || id == NULL)
		return KVR_EINVAL;
	error = facts_get(facts, &w);
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	error = worker_add(k, name, name_len, &w, &slot);
	if (error == KVR_EFULL && k->region->workers < k->layout.names &&
	    lease_detach_retired(k))
		error = or_later(worker_add(k, name, name_len, &w, &slot));
	if (error == KVR_EEXIST && put) {
		worker_set(k, slot, &w);
		error = KVR_OK;
	}
	if (error == KVR_OK)
		*id = worker_id(k, slot);
	return txn_write_end(k, NULL, error);
}

int
kvr_worker_add(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, uint64_t *id)
{
	return add_worker(k, name, name_len, facts, false, id);
}

int
kvr_worker_put(struct kvr *k, const char *name, size_t name_len,
    const struct kvr_worker *facts, uint64_t *id)
{
	return add_worker(k, name, name_len, facts, true, id);
}

int
kvr_worker_find(const struct kvr *k, const char *name, size_t name_len,
    uint32_t rank, uint64_t *id)
{
	uint64_t found = 0;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || !name_ok(name, name_len) || id == NULL)
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (name_find(k, name, name_len, rank, &slot))
		found = worker_id(k, slot);
	error = txn_read_end(k, &c, found != 0 ? KVR_OK : KVR_EWORKER);
	if (error == KVR_OK)
		*id = found;
	return error;
}

int
kvr_worker_get(const struct kvr *k, uint64_t id, struct kvr_worker *out)
{
	struct kvr_worker w;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_get(k, slot, &w);
	else
		error = KVR_EWORKER;
	error = txn_read_end(k, &c, error);
	if (error == KVR_OK)
		struct_put(out, out->size, &w, sizeof(w));
	return error;
}

int
kvr_worker_name(const struct kvr *k, uint64_t id, char *name, size_t capacity,
    size_t *name_len)
{
	char whole[KVR_NAME_MAX];
	size_t length = 0;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || name_len == NULL || (name == NULL && capacity > 0))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		length = worker_name(k, slot, whole);
	error = txn_read_end(k, &c, length > 0 ? KVR_OK : KVR_EWORKER);
	if (error != KVR_OK)
		return error;
	if (capacity > 0)
		memcpy(name, whole, capacity < length ? capacity : length);
	*name_len = length;
	return KVR_OK;
}

int
kvr_worker_set(struct kvr *k, uint64_t id, const struct kvr_worker *facts)
{
	struct kvr_worker w;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || facts == NULL)
		return KVR_EINVAL;
	error = facts_get(facts, &w);
	if (error == KVR_OK)
		error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		worker_set(k, slot, &w);
	else
		error = KVR_EWORKER;
	return txn_write_end(k, NULL, error);
}

int
kvr_worker_next(const struct kvr *k, uint64_t *id)
{
	uint64_t next;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || id == NULL)
		return KVR_EINVAL;
	if (*id != 0 && !id_is_worker(*id))
		return KVR_EWORKER;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	for (slot = *id == 0 ? 0 : id_slot(*id) + 1; slot < slots_used(k);
	     slot++)
		if (slot_in_use(k, slot))
			break;
	next = slot < slots_used(k) ? worker_id(k, slot) : 0;
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		*id = next;
	return error;
}

/* A change of one worker that cannot fail. */
static int
worker_change(struct kvr *k, uint64_t id,
    void (*change)(struct kvr *k, uint32_t slot))
{
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	if (worker_slot(k, id, &slot))
		change(k, slot);
	else
		error = KVR_EWORKER;
	return txn_write_end(k, NULL, error);
}

int
kvr_worker_remove(struct kvr *k, uint64_t id)
{
	return worker_change(k, id, worker_remove);
}

static void
put_reset(struct kvr *k, uint64_t worker, uint64_t new_worker)
{
	struct kvr_record r = { .kind = KVR_RECORD_RESET,
		.worker = worker, .new_worker = new_worker,
		.at = k->region->clock };

	if (journal_on(k))
		journal_put(k, &r);
}

void
handle_reset_note(struct kvr *k, uint32_t slot)
{
	put_reset(k, worker_id(k, slot), worker_id(k, slot));
}

/* Within a transaction. */
int
handle_reset(struct kvr *k, uint32_t slot, uint32_t *fresh)
{
	uint64_t worker = worker_id(k, slot);
	int error = worker_reset(k, slot, fresh);

	if (error == KVR_EFULL && lease_detach_retired(k))
		error = or_later(worker_reset(k, slot, fresh));
	if (error == KVR_OK)
		put_reset(k, worker, worker_id(k, *fresh));
	return error;
}

int
kvr_worker_reset(struct kvr *k, uint64_t id, uint64_t *new_id)
{
	struct txn c;
	uint32_t slot, fresh;
	int error;

	if (k == NULL || new_id == NULL)
		return KVR_EINVAL;
	error = txn_write_begin(k, &c, 0, 0);
	if (error != KVR_OK)
		return error;
	error = worker_slot(k, id, &slot) ? handle_reset(k, slot, &fresh)
	    : KVR_EWORKER;
	if (error == KVR_OK)
		*new_id = worker_id(k, fresh);
	return txn_write_end(k, NULL, error);
}

static void
forget_learnt(struct kvr *k, uint32_t slot)
{
	rate_forget(k, slot);
	report_forget(k, slot);
}

int
kvr_worker_forget(struct kvr *k, uint64_t id)
{
	return worker_change(k, id, forget_learnt);
}

/* --------------------------------------------------- scopes and prompts --- */

int
kvr_scope_set(const struct kvr *k, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length)
{
	if (k == NULL || scope == NULL)
		return KVR_EINVAL;
	return hash_scope_set(&k->rule, scope, part, text, length);
}

int
kvr_prompt_new(const struct kvr *k, struct kvr_prompt **out)
{
	if (k == NULL || out == NULL)
		return KVR_EINVAL;
	return prompt_new(&k->rule, out);
}
