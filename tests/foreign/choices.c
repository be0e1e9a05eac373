/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choices.c - the calls that read and choose. Costs are printed bit for bit;
 * results without an order are sorted.
 */
#include "foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t
bits(double x)
{
	uint64_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

void
choice_request(struct world *w, struct kvr_request *r)
{
	static const double temperature[] = { -1, -1, 0, 0.3, 1, 4 };
	static const double credit[] = { -1, -1, -1, 0, 0.5, 2 };
	uint32_t i;

	must("kvr_request_init", kvr_request_init(r, sizeof(*r)));
	r->owner = pick(w, 6);
	r->seed = rng_next(&w->rng);
	r->temperature = pick_of(w, temperature, 6);
	r->overlap_credit = pick_of(w, credit, 6);
	r->prefill_scale = pick_of(w, credit, 6);
	r->stage = pick(w, 4) > 0 ? KVR_STAGE_ALL : pick(w, 3);
	if (pick(w, 8) == 0)
		r->flags = pick(w, 2) ? KVR_IGNORE_PREFILL : KVR_IGNORE_REUSE;
	if (pick(w, 16) == 0)
		r->pinned = pick_worker(w);
	if (pick(w, 8) == 0)
		r->required_taints = 1 + pick(w, 3);
	r->n_excluded = pick(w, 8) > 0 ? 0 : pick(w, 4);
	for (i = 0; i < r->n_excluded; i++)
		r->excluded[i] = pick_worker(w);
	r->n_preferences = pick(w, 8) > 0 ? 0 : pick(w, 3);
	for (i = 0; i < r->n_preferences; i++) {
		r->preferences[i].taints = 1 + pick(w, 7);
		r->preferences[i].weight = pick(w, 21) / 10.0 - 1;
	}
}

void
choice_print(const struct world *w, const char *call, int error,
    const struct kvr_decision *d)
{
	char name[KVR_NAME_MAX + 1] = "";
	size_t length = 0;

	printf("%s %s", call, kvr_errname(error));
	if (error == KVR_OK) {
		must("kvr_worker_name", kvr_worker_name(w->k, d->worker, name,
		    sizeof(name) - 1, &length));
		printf(" %s %" PRIx64 " lease %" PRIu64 " tokens %" PRIu64
		    " %" PRIu64 " cost %016" PRIx64 " blocks %u %u %u"
		    " reason %u of %u", name, d->worker, d->lease,
		    d->prompt_tokens, d->overlap_tokens, bits(d->cost),
		    d->prompt_blocks, d->overlap_blocks, d->recorded_blocks,
		    d->reason, d->eligible);
	}
	putchar('\n');
}

static int
by_worker(const void *a, const void *b)
{
	const struct kvr_overlap *x = a, *y = b;

	return (x->worker > y->worker) - (x->worker < y->worker);
}

void
choice_match(struct world *w)
{
	struct kvr_overlap o[WORKERS * 2];
	size_t i, n = 0;
	int error;

	prompt_draw(w);
	error = kvr_match(w->k, w->p, w->now, o, sizeof(o[0]), WORKERS * 2,
	    &n);
	printf("match %s %zu", kvr_errname(error), n);
	qsort(o, n, sizeof(o[0]), by_worker);
	for (i = 0; i < n; i++)
		printf(" %" PRIx64 ":%u:%u:%u", o[i].worker, o[i].blocks,
		    o[i].active_blocks, o[i].tokens);
	putchar('\n');
}

void
choice_route(struct world *w)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	int error;

	prompt_draw(w);
	choice_request(w, &r);
	error = kvr_route(w->k, w->p, &r, w->now, &d);
	choice_print(w, "route", error, &d);
}

void
choice_choose(struct world *w)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_prompt_info info = { .size = sizeof(info) };
	struct kvr_overlap o[4];
	struct kvr_request r;
	uint32_t i;
	int error;

	prompt_draw(w);
	choice_request(w, &r);
	must("kvr_prompt_info_get", kvr_prompt_info_get(w->p, &info));
	memset(o, 0, sizeof(o));
	for (i = 0; i < 4; i++) {
		o[i].worker = w->worker[i * 5 + pick(w, 5)];
		o[i].blocks = pick(w, info.blocks + 1);
		o[i].active_blocks = pick(w, o[i].blocks + 1);
	}
	error = kvr_choose(w->k, w->p, &r, o, sizeof(o[0]), 4, w->now, &d);
	choice_print(w, "choose", error, &d);
}

void
choice_candidates(struct world *w)
{
	struct kvr_candidate c[WORKERS * 2];
	struct kvr_request r;
	size_t i, n = 0;
	int error;

	prompt_draw(w);
	choice_request(w, &r);
	error = kvr_candidates(w->k, w->p, &r, w->now, c, sizeof(c[0]),
	    WORKERS * 2, &n);
	printf("candidates %s %zu\n", kvr_errname(error), n);
	for (i = 0; i < n; i++)
		printf("  %" PRIx64 " %u %" PRIu64 " %" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRId64 " %016" PRIx64 " %u %u\n",
		    c[i].worker, c[i].overlap_blocks, c[i].overlap_tokens,
		    c[i].prefill_tokens, c[i].decode_blocks, c[i].requests,
		    c[i].age_ns, bits(c[i].cost), c[i].new_decode_blocks,
		    c[i].verdict);
}
