/* SPDX-License-Identifier: BSD-2-Clause */
/* booking.c - see booking.h. */
#include "booking.h"

#include <string.h>

#include "members.h"
#include "roles.h"

void
booking_begin(struct booking *b, enum reason reason)
{
	b->reason = reason;
	b->affinity = KVR_AFFINITY_NONE;
	b->worker = 0;
	b->missed = b->late = false;
	b->prefill_length = 0;
	memset(&b->decision, 0, sizeof(b->decision));
}

/* --------------------------------------------------------------- choose --- */

static int
worker_ask(struct booking *b, struct kvr_prompt *p, const struct kvr_request *r,
    int64_t now, bool book)
{
	struct fleet *f = b->fleet;
	bool missing;
	size_t n = members_allow(f, &missing);
	int error;

	if (n == 0)
		return missing ? KVR_EBUSY : KVR_ENOWORKER;
	if (p == NULL)
		return KVR_ENOMEM;
	error = kvr_prompt_allow(p, f->allowed, n);
	if (error != KVR_OK)
		return error;
	b->decision.size = sizeof(b->decision);
	return book ? kvr_lease_open(f->kvr, p, r, now, &b->decision) :
	    kvr_route(f->kvr, p, r, now, &b->decision);
}

bool
booking_choose(struct booking *b, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now, bool book)
{
	int error = worker_ask(b, p, r, now, book);

	b->missed = error != KVR_OK;
	if (b->missed) {
		b->reason = reason_of_error(error);
		return false;
	}
	b->lease = b->decision.lease;
	b->worker = b->decision.worker;
	b->reason = (enum reason)b->decision.reason;
	if (b->decision.affinity != KVR_AFFINITY_NONE)
		b->affinity = b->decision.affinity;
	return true;
}

/* ---------------------------------------------------------------- given --- */

bool
booking_kept(struct booking *b, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now)
{
	b->decision.size = sizeof(b->decision);
	b->missed = kvr_lease_open_on(b->fleet->kvr, p, r, b->worker, now,
	    &b->decision) != KVR_OK;
	if (!b->missed)
		b->lease = b->decision.lease;
	return !b->missed;
}

static int
server_open(const struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now, struct kvr_decision *d)
{
	struct fleet *f = b->fleet;
	bool missing = false;
	size_t n;
	int error;

	if (i == f->n_known)
		return KVR_EWORKER;
	d->size = sizeof(*d);
	if (f->known[i].ranks == 1)
		return kvr_lease_open_on(f->kvr, p, r, f->known[i].ids[0], now,
		    d);
	n = members_allow_one(f, i, &missing);
	if (n == 0)
		return KVR_EBUSY;
	error = kvr_prompt_allow(p, f->allowed, n);
	return error != KVR_OK ? error : kvr_lease_open(f->kvr, p, r, now, d);
}

bool
booking_taken(struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now)
{
	b->missed = server_open(b, i, p, r, now, &b->decision) != KVR_OK;
	if (b->missed)
		return false;
	b->lease = b->decision.lease;
	b->worker = b->decision.worker;
	b->reason = REASON_AFFINITY;
	return true;
}

static void
shadow_count(const struct booking *b, const struct kvr_decision *taken)
{
	const struct kvr_decision *wanted = &b->decision;
	struct shared *s = b->fleet->shared;

	shared_count(s, COUNT_SHADOW, 1);
	if (wanted->worker == taken->worker)
		shared_count(s, COUNT_SHADOW_SAME, 1);
	shared_count(s, COUNT_SHADOW_BLOCKS, wanted->prompt_blocks);
	shared_count(s, COUNT_SHADOW_WANTED, wanted->overlap_blocks);
	shared_count(s, COUNT_SHADOW_TAKEN, taken->overlap_blocks);
}

void
booking_shadow(struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now)
{
	struct kvr_decision d;
	int error = server_open(b, i, p, r, now, &d);

	b->missed = error != KVR_OK;
	if (b->missed) {
		b->reason = reason_of_error(error);
		return;
	}
	shadow_count(b, &d);
	b->lease = d.lease;
	/* The report is compared with the prediction for that worker. */
	b->decision.overlap_tokens = d.overlap_tokens;
}

/* ---------------------------------------------------------------- split --- */

/* False: the server that is taken prefills it itself. */
static bool
prefill_choose(struct booking *b, size_t i, struct kvr_prompt *p,
    const struct kvr_request *r, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct fleet *f = b->fleet;
	const struct known *known = &f->known[i];
	size_t n;
	uint32_t rank;

	if (!roles_leaves(f, i, &b->decision))
		return false;
	n = roles_allow(f, known->name, known->name_len);
	if (!roles_book(f->kvr, p, r, f->allowed, n, now, &d))
		return false;
	b->prefill = d.lease;
	i = known_of_worker(f, d.worker, &rank);
	if (i == f->n_known) {
		booking_prefill_end(b, false, now);
		return false;
	}
	b->prefill_length = f->known[i].name_len;
	memcpy(b->prefill_name, f->known[i].name, b->prefill_length);
	shared_count(f->shared, COUNT_SPLIT, 1);
	return true;
}

void
booking_split(struct booking *b, size_t i, struct kvr_prompt *p,
    struct kvr_request *r, int64_t now)
{
	struct kvr_decision d = { .size = sizeof(d) };

	if (i < b->fleet->n_known && prefill_choose(b, i, p, r, now))
		r->flags |= KVR_IGNORE_PREFILL;
	b->missed = kvr_lease_open_on(b->fleet->kvr, p, r, b->worker, now,
	    &d) != KVR_OK;
	b->lease = b->decision.lease = d.lease;
}

void
booking_prefill_end(struct booking *b, bool taken, int64_t now)
{
	struct write_due write = { .kind = taken ? WRITE_FINISH : WRITE_ABORT,
	    .id = b->prefill };

	if (b->prefill == 0)
		return;
	write.report.size = sizeof(write.report);
	write.report.flags = KVR_REPORT_NO_EVIDENCE;
	b->prefill = 0;
	(void)writes_do(b->writes, &write, now);
}

/* ----------------------------------------------------------------- late --- */

/* The lock is held still: only the prompt is recorded, some time later. */
static void
prompt_observe(struct booking *b, const struct known *known,
    struct kvr_prompt **p, int64_t now)
{
	struct write_due write = { .kind = WRITE_RECORD, .id = known->ids[0],
	    .prompt = *p, .name = known->name, .name_len = known->name_len };

	*p = NULL;
	(void)writes_do(b->writes, &write, now);
}

/*
 * The engine has the prompt, so the next turn will find it there; but if it
 * chose the rank, that is not known.
 */
void
booking_late(struct booking *b, size_t i, struct kvr_prompt **p,
    const struct kvr_request *r, int64_t now)
{
	const struct known *known = &b->fleet->known[i];
	struct kvr_request again = *r;
	struct kvr_decision d;
	int error;

	if (b->prefill_length > 0)
		again.flags |= KVR_IGNORE_PREFILL;
	if (!b->missed || b->lease != 0 || *p == NULL ||
	    i == b->fleet->n_known || known->ranks != 1)
		return;
	b->missed = false;
	error = known->ids[0] == 0 ? KVR_EBUSY :
	    server_open(b, i, *p, &again, now, &d);
	if (error == KVR_OK)
		b->lease = d.lease;
	else if (error == KVR_EBUSY)
		prompt_observe(b, known, p, now);
	else
		return;
	b->late = true;
	shared_count(b->fleet->shared, COUNT_LATE, 1);
}

/* ---------------------------------------------------------------- plain --- */

/* A prompt of one byte, which is on record nowhere. */
void
booking_plain(struct booking *b, size_t i, const struct kvr_request *r,
    int64_t now)
{
	struct spares *spares = b->writes->spares;
	struct kvr_prompt *p = spare_prompt(spares, b->fleet->kvr);
	struct kvr_decision d;

	if (p == NULL)
		return;
	if (kvr_prompt_begin(p, NULL) == KVR_OK &&
	    kvr_prompt_bytes(p, "", 1) == KVR_OK &&
	    kvr_prompt_end(p, NULL) == KVR_OK &&
	    server_open(b, i, p, r, now, &d) == KVR_OK)
		b->lease = d.lease;
	spare_prompt_back(spares, p);
}
