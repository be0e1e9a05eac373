/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_scenes.c - random scenes, decided twice, by Dynamo's cost.
 *
 * The formulas are implemented a second time, as plainly as possible: from the
 * request as given, worker by worker, with divisions and with libm. Costs must
 * be equal to the bit, unless a preference went through exp; and no worker may
 * be better than the one chosen.
 */
#include "route.h"

#include "scene.h"
#include "test.h"

#include <math.h>

/* ------------------------------------------- the second implementation --- */

static double
plain_credit(void)
{
	if (scene.r.overlap_credit >= 0)
		return scene.r.overlap_credit;
	return scene.r.stage == KVR_STAGE_DECODE ? 0
	    : scene.region.policy.overlap_credit;
}

static bool
plain_no_prefill(void)
{
	return (scene.r.flags & KVR_IGNORE_PREFILL) != 0 ||
	    scene.r.stage == KVR_STAGE_DECODE;
}

static bool
listed(const uint64_t *ids, size_t n, uint64_t id)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* Eligible, not counting its load. */
static bool
plain_fits(uint32_t i)
{
	static const char *roles[] = { "B", "BP", "BD" };
	const struct slot *s = &scene.slots[i];
	const struct kvr_request *r = &scene.r;

	if (scene.generations[i] % 2 == 0)
		return false;
	if (r->pinned != 0 && r->pinned != scene_id(i))
		return false;
	if (scene.p.n_allowed > 0 &&
	    !listed(scene.allowed, scene.p.n_allowed, scene_id(i)))
		return false;
	if (listed(r->excluded, r->n_excluded, scene_id(i)))
		return false;
	if (strchr(roles[r->stage], "BPD"[s->role]) == NULL)
		return false;
	if (s->state == KVR_STATE_DOWN ||
	    (s->state == KVR_STATE_DRAINING && r->pinned == 0))
		return false;
	return (r->required_taints & ~s->taints) == 0;
}

static bool
plain_busy(uint32_t i)
{
	uint32_t j;

	if (scene.slots[i].over_prefill == 0 && scene.slots[i].over_blocks == 0)
		return false;
	for (j = 0; j < scene.region.slots_used; j++)
		if (strcmp(scene.names[j].text, scene.names[i].text) == 0 &&
		    scene.slots[j].state == KVR_STATE_UP &&
		    scene.slots[j].over_prefill == 0 &&
		    scene.slots[j].over_blocks == 0)
			return false;
	return true;
}

static double
plain_block(void)
{
	return scene.p.rule.block_size /
	    (scene.p.rule.unit == KVR_UNIT_BYTES ? 4.0 : 1.0);
}

static const struct kvr_overlap *
plain_found(uint32_t i)
{
	static const struct kvr_overlap none;
	uint32_t j;

	for (j = 0; j < scene.set.count; j++)
		if (found_slot(&scene.found[j]) == i)
			return &scene.found[j];
	return &none;
}

static double
plain_prefill_part(uint32_t i, double credit)
{
	const struct kvr_overlap *f = plain_found(i);
	double isl = (double)prompt_tokens(&scene.p), left;

	if (plain_no_prefill())
		return 0;
	left = isl - f->blocks * plain_block();
	left = (double)scene.slots[i].prefill + (left > 0 ? left : 0) +
	    f->blocks * plain_block();
	left = left / plain_block() - credit;
	return left > 0 ? left : 0;
}

static double
plain_decay(uint32_t i, double least)
{
	double isl = (double)prompt_tokens(&scene.p), d, excess;

	d = scene.region.policy.overlap_decay;
	excess = (double)scene.slots[i].prefill - least;
	if (d == 0 || plain_no_prefill() || excess < 0)
		return 1;
	return 1 / (1 + d * (excess / plain_block() /
	    ceil(isl / plain_block())));
}

static double
plain_cost(uint32_t i, double least)
{
	const struct slot *s = &scene.slots[i];
	const struct kvr_request *r = &scene.r;
	const struct kvr_overlap *f = plain_found(i);
	bool alone = (r->flags & KVR_IGNORE_REUSE) != 0 ||
	    (r->stage == KVR_STAGE_DECODE && r->overlap_credit < 0);
	double credit, decode, cost, sum = 0;
	uint32_t j;

	credit = plain_credit() * plain_decay(i, least) * f->blocks;
	decode = (double)s->blocks + scene.p.blocks - (alone ? 0
	    : f->active_blocks);
	if (r->stage == KVR_STAGE_DECODE && plain_credit() > 0)
		cost = fmax(0, decode - credit);
	else
		cost = (r->prefill_scale >= 0 ? r->prefill_scale
		    : scene.region.policy.prefill_scale) *
		    plain_prefill_part(i, credit) + decode;
	cost += scene.region.policy.request_weight * s->requests;
	for (j = 0; j < r->n_preferences; j++)
		if ((r->preferences[j].taints & s->taints) != 0)
			sum += r->preferences[j].weight;
	return cost * exp(-tanh(sum)) / s->weight;
}

/* ------------------------------------------------------- random scenes --- */

static uint32_t
one_of(uint32_t n)
{
	return (uint32_t)(scene_random() % n);
}

static double
number_of(uint32_t which)
{
	static const double numbers[] = { 0, 0.25, 0.3, 1, 1, 1, 2, 7.7 };

	return numbers[which % 8];
}

static void
random_worker(uint32_t i)
{
	struct slot *s = &scene.slots[i];

	scene_load(i, 4 * one_of(40), one_of(9), one_of(5));
	scene.generations[i] += one_of(10) == 0;
	s->role = (uint8_t)(one_of(3) == 0 ? one_of(3) : 0);
	s->state = (uint8_t)(one_of(4) == 0 ? one_of(3) : 0);
	s->taints = one_of(3) == 0 ? 0 : scene_random() & 15;
	s->over_prefill = one_of(4) == 0;
	s->over_blocks = one_of(4) == 0;
	s->weight = one_of(5) > 0 ? 1 : 0.5 + one_of(3);
	scene.identity[i] = scene_random();
	if (i > 0 && one_of(4) == 0)
		scene.names[i] = (struct name){ .next = scene.names[i].next,
		    .slot = (uint16_t)i, .used = 1,
		    .length = scene.names[i - 1].length };
	if (scene.names[i].text[0] == '\0')
		memcpy(scene.names[i].text, scene.names[i - 1].text,
		    sizeof(scene.names[i].text));
	if (one_of(2) == 0) {
		uint32_t n = one_of(scene.p.blocks + 1);

		scene_overlap(i, n, one_of(n + 1));
	}
}

static void
random_request(uint32_t workers)
{
	struct kvr_request *r = &scene.r;
	uint32_t i;

	r->stage = one_of(2) == 0 ? one_of(3) : 0;
	r->flags = one_of(3) == 0 ? one_of(4) << 1 : 0;
	r->required_taints = one_of(4) == 0 ? scene_random() & 3 : 0;
	r->overlap_credit = one_of(3) == 0 ? number_of(one_of(8)) : -1;
	r->prefill_scale = one_of(3) == 0 ? number_of(one_of(8)) : -1;
	r->n_excluded = one_of(2) == 0 ? one_of(5) : 0;
	for (i = 0; i < r->n_excluded; i++)
		r->excluded[i] = scene_id(one_of(workers));
	r->n_preferences = one_of(3) == 0 ? one_of(4) : 0;
	for (i = 0; i < r->n_preferences; i++) {
		r->preferences[i].taints = scene_random() & 15;
		r->preferences[i].weight = one_of(9) / 4.0 - 1;
	}
	scene.p.n_allowed = one_of(3) == 0 ? one_of(workers) : 0;
	for (i = 0; i < scene.p.n_allowed; i++)
		scene.allowed[i] = scene_id(one_of(workers));
	i = one_of(workers);
	if (one_of(5) == 0 && scene.generations[i] % 2 == 1)
		r->pinned = scene_id(i);
}

static void
random_scene(void)
{
	static const uint32_t sizes[] = { 1, 3, 16, 16, 20, 64, 256 };
	struct kvr_policy *p = &scene.region.policy;
	uint32_t i, workers = 1 + one_of(one_of(2) == 0 ? 6 : 150);

	scene_of(workers);
	p->overlap_credit = number_of(one_of(8));
	p->overlap_decay = one_of(2) == 0 ? number_of(one_of(8)) : 0;
	p->prefill_scale = number_of(one_of(8));
	p->request_weight = one_of(2) == 0 ? number_of(one_of(8)) : 0;
	scene.p.rule.block_size = sizes[one_of(7)];
	if (scene.p.rule.block_size % 4 == 0)
		scene.p.rule.unit = one_of(2);
	scene_length(one_of(20), one_of(scene.p.rule.block_size));
	scene.p.units += prompt_tokens(&scene.p) == 0 ? 4 : 0;
	for (i = 0; i < workers; i++)
		random_worker(i);
	random_request(workers);
}

/* ------------------------------------------------------------ a choice --- */

/* The results of a plain choice. */
struct plain {
	uint32_t eligible, busy;
	double least_prefill, cost[SCENE_SLOTS];
	bool take[SCENE_SLOTS];
};

static void
plain_look(struct plain *w)
{
	uint32_t i, n = scene.region.slots_used;

	memset(w, 0, sizeof(*w));
	w->least_prefill = INFINITY;
	for (i = 0; i < n; i++) {
		const struct slot *s = &scene.slots[i];

		if (!plain_fits(i))
			continue;
		if (plain_busy(i)) {
			w->busy++;
			continue;
		}
		w->take[i] = true;
		w->eligible++;
		w->least_prefill = fmin(w->least_prefill, (double)s->prefill);
	}
	for (i = 0; i < n; i++)
		w->cost[i] = plain_cost(i, w->least_prefill);
}

static bool
plain_better(const struct plain *w, uint32_t a, uint32_t b)
{
	const struct slot *s = &scene.slots[a], *t = &scene.slots[b];

	if (w->cost[a] != w->cost[b])
		return w->cost[a] < w->cost[b];
	if (s->requests != t->requests)
		return s->requests < t->requests;
	if (s->prefill != t->prefill)
		return s->prefill < t->prefill;
	return s->blocks < t->blocks;
}

static int
plain_error(const struct plain *w)
{
	if (w->eligible > 0)
		return KVR_OK;
	if (scene.r.pinned != 0)
		return w->busy > 0 ? KVR_EPINNEDOVERLOADED : KVR_ENOTALLOWED;
	return w->busy > 0 ? KVR_EALLOVERLOADED : KVR_ENOWORKER;
}

/* Is each cost and each verdict the plain one? Takes over the costs. */
static bool
same_candidates(struct plain *w)
{
	double slack = scene.r.n_preferences > 0 ? 1e-13 : 0, cost;
	uint64_t expected;
	uint32_t i;

	if (scene_begin() != KVR_OK || scene.t.eligible != w->eligible)
		return false;
	for (i = 0; i < scene.region.slots_used; i++) {
		cost = route_cost(&scene.t, i, &expected);
		if (!(fabs(cost - w->cost[i]) <= slack * cost))
			return false;
		if (scene.generations[i] % 2 == 1 && w->take[i] !=
		    (route_verdict(&scene.t, i) == KVR_ELIGIBLE))
			return false;
		w->cost[i] = cost;
	}
	return true;
}

/* Is the chosen one the best? */
static bool
good_choice(const struct plain *w)
{
	const struct choice *c = &scene.c;
	uint32_t i;

	if (!w->take[c->slot] || c->cost != w->cost[c->slot] ||
	    c->eligible != w->eligible ||
	    c->blocks != plain_found(c->slot)->blocks)
		return false;
	for (i = 0; i < scene.region.slots_used; i++)
		if (w->take[i] && plain_better(w, i, c->slot))
			return false;
	return true;
}

START_TEST(random_scenes)
{
	uint64_t round, rounds = test_amount(20000), none = 0;
	static struct plain w;
	int error;

	scene_seed(11);
	for (round = 0; round < rounds; round++) {
		random_scene();
		plain_look(&w);
		error = scene_choose();
		if (error != plain_error(&w))
			ck_abort_msg("round %u: error %d, not %d",
			    (unsigned)round, error, plain_error(&w));
		none += error != KVR_OK;
		if (error != KVR_OK)
			continue;
		if (!same_candidates(&w))
			ck_abort_msg("round %u: costs", (unsigned)round);
		if (!good_choice(&w))
			ck_abort_msg("round %u: choice", (unsigned)round);
	}
	ck_assert_uint_gt(none, rounds / 20);
	ck_assert_uint_lt(none, rounds / 2);
}
END_TEST

Suite *
suite_scenes(void)
{
	Suite *s = suite_create("scenes");
	TCase *t = tcase_create("scenes");

	tcase_add_test(t, random_scenes);
	suite_add_tcase(s, t);
	return s;
}
