/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_eligible.c - who may be taken, and what is said when nobody may; and
 * random scenes, decided a second time by the plainest code.
 */
#include "test.h"

#include <math.h>

#include "scene.h"

/* ---------------------------------------------------------- eligibility --- */

START_TEST(states)
{
	scene_of(3);
	scene.slots[1].state = KVR_STATE_DRAINING;
	scene.slots[2].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_verdict(0), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_verdict(1), KVR_NOT_UP);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_UP);
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.r.pinned = scene_id(1);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	scene.r.pinned = scene_id(2);
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_UP);
}
END_TEST

START_TEST(slots_not_in_use_are_nobody)
{
	scene_of(3);
	scene.generations[0] = 2;
	scene.generations[2] = 0;
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.generations[1] = 4;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	scene_of(0);
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(allowed)
{
	scene_of(5);
	scene_load(0, 0, 0, 0);
	scene.allowed[0] = scene_id(3);
	scene.allowed[1] = scene_id(1);
	scene.allowed[2] = scene_id(3);
	scene.allowed[3] = scene_id(2) + (UINT64_C(2) << 32); /* of the past */
	scene.allowed[4] = 0;
	scene.allowed[5] = UINT64_MAX;
	scene.p.n_allowed = 6;
	scene_load(3, 0, 1, 0);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.eligible, 2);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(3), KVR_ELIGIBLE);
	/* a set of nobody is not everybody */
	scene.allowed[0] = UINT64_MAX;
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(excluded)
{
	scene_of(3);
	scene.r.n_excluded = 4;
	scene.r.excluded[0] = scene_id(0);
	scene.r.excluded[1] = scene_id(2) + (UINT64_C(2) << 32);
	scene.r.excluded[2] = UINT64_MAX;
	scene.r.excluded[3] = 0;
	scene_load(1, 0, 9, 0);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	scene.r.excluded[1] = scene_id(2);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.excluded[3] = scene_id(1);
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	/* excluded outdoes allowed */
	scene.allowed[0] = scene_id(1);
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(required_taints)
{
	scene_of(3);
	scene.slots[0].taints = 5;
	scene.slots[1].taints = 7;
	scene.r.required_taints = 3;
	ck_assert_uint_eq(scene_verdict(0), KVR_LACKS_TAINT);
	ck_assert_uint_eq(scene_verdict(1), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_verdict(2), KVR_LACKS_TAINT);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.required_taints = UINT64_C(1) << 63;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(overloaded)
{
	scene_of(3);
	scene.slots[0].busy = 1;
	scene.slots[1].latch = 1;
	scene_load(2, 0, 100, 0);
	ck_assert_uint_eq(scene_verdict(0), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_verdict(1), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.slots[2].busy = 1;
	ck_assert_int_eq(scene_choose(), KVR_EALLBUSY);
	/* busy, but not eligible anyway: that is no overload */
	scene.r.required_taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	scene.slots[1].taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_EALLBUSY);
}
END_TEST

/* Two ranks of one engine: excluded only if both are busy. */
START_TEST(overloaded_ranks)
{
	scene_of(3);
	memcpy(scene.names[1].text, scene.names[0].text,
	    sizeof(scene.names[0].text));
	scene.slots[1].rank = 1;
	scene.slots[0].busy = 1;
	scene_load(2, 0, 100, 0);
	scene_load(1, 0, 50, 0);
	ck_assert_uint_eq(scene_verdict(0), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.slots[1].latch = 1;
	ck_assert_uint_eq(scene_verdict(0), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_verdict(1), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_chosen(), 2);
}
END_TEST

START_TEST(pinned)
{
	scene_of(3);
	scene_load(1, 16, 100, 50);
	scene_overlap(1, 3, 2);
	scene.r.pinned = scene_id(1);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	ck_assert_uint_eq(scene.c.eligible, 1);
	ck_assert_uint_eq(scene.c.blocks, 3);
	ck_assert(scene.c.cost == (5 - 3) + 102);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(1), KVR_ELIGIBLE);
	/* a temperature or another policy changes nothing */
	scene.r.temperature = 100;
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	scene.region.policy.cost = KVR_COST_TWO_TIER;
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert(scene.c.cost == 50);
}
END_TEST

START_TEST(pinned_and_not_eligible)
{
	scene_of(3);
	scene.r.pinned = scene_id(1);
	scene.slots[1].busy = 1;
	ck_assert_int_eq(scene_choose(), KVR_EPINNEDBUSY);
	scene.slots[1].role = KVR_ROLE_DECODE;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.slots[1].role = KVR_ROLE_BOTH;
	scene.slots[1].busy = 0;
	scene.r.required_taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.r.required_taints = 0;
	scene.allowed[0] = scene_id(0);
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.p.n_allowed = 0;
	scene.r.n_excluded = 1;
	scene.r.excluded[0] = scene_id(1);
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
}
END_TEST

START_TEST(pinned_to_nobody)
{
	static const uint64_t nobody[] = {
		4, UINT64_C(1) << 32, UINT64_MAX, UINT32_MAX,
		UINT64_C(1) << 32 | 2, /* another generation of slot 1 */
		UINT64_C(2) << 32 | 1, /* the end of slot 0 */
		UINT64_C(1) << 32 | 150
	};
	size_t i;

	scene_of(3);
	for (i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		scene.r.pinned = nobody[i];
		ck_assert_int_eq(scene_choose(), KVR_EWORKER);
	}
	scene.generations[1] = 4;
	scene.r.pinned = UINT64_C(4) << 32 | 2;
	ck_assert_int_eq(scene_choose(), KVR_EWORKER);
}
END_TEST

/* The prompt's own fault comes before anybody else's. */
START_TEST(empty_prompt)
{
	scene_of(1);
	scene_length(0, 0);
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
	scene.r.pinned = 77;
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
	scene_of(0);
	scene_length(0, 0);
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
}
END_TEST

START_TEST(failure_writes_nothing)
{
	struct choice before;

	scene_of(1);
	scene.slots[0].busy = 1;
	memset(&scene.c, 0x5a, sizeof(scene.c));
	before = scene.c;
	ck_assert_int_eq(scene_choose(), KVR_EALLBUSY);
	ck_assert_mem_eq(&before, &scene.c, sizeof(before));
}
END_TEST

/* The words of the sets, and their ends. */
START_TEST(every_number_of_workers)
{
	uint32_t n, i;

	for (n = 1; n <= SCENE_SLOTS; n++) {
		scene_of(n);
		for (i = 0; i + 1 < n; i++)
			scene_load(i, 0, 1, 0);
		ck_assert_uint_eq(scene_chosen(), n - 1);
		ck_assert_uint_eq(scene.c.eligible, n);
		scene.allowed[0] = scene_id(n - 1);
		scene.allowed[1] = scene_id(n / 2);
		scene.p.n_allowed = 2;
		scene.r.n_excluded = 1;
		scene.r.excluded[0] = scene_id(n - 1);
		/* allowed are the last and n / 2; the last is excluded */
		if (n / 2 == n - 1)
			ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
		else
			ck_assert_uint_eq(scene_chosen(), n / 2);
	}
}
END_TEST

/* A damaged count of slots reads nothing beyond them. */
START_TEST(slots_used_is_bounded)
{
	scene_of(3);
	scene.region.slots_used = UINT32_MAX;
	ck_assert_int_eq(scene_choose(), KVR_OK);
	ck_assert_uint_eq(scene.c.eligible, 3);
	ck_assert_uint_eq(scene_verdict(SCENE_SLOTS + 64), KVR_NOT_ALLOWED);
}
END_TEST

/* ------------------------------------------------- random scenes, twice --- */

/* The formulas once more, from the request as given, with libm. */
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

/* Eligible, its load left aside. */
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

	for (j = 0; j < scene.region.slots_used; j++)
		if (strcmp(scene.names[j].text, scene.names[i].text) == 0 &&
		    scene.slots[j].busy == 0 && scene.slots[j].latch == 0)
			return false;
	return true;
}

static double
plain_block(void)
{
	return scene.p.rule.block_size /
	    (scene.p.rule.unit == KVR_UNIT_BYTES ? 4.0 : 1.0);
}

static const struct found *
plain_found(uint32_t i)
{
	static const struct found none;
	uint32_t j;

	for (j = 0; j < scene.set.count; j++)
		if (scene.found[j].slot == i)
			return &scene.found[j];
	return &none;
}

static double
plain_prefill_part(uint32_t i, double credit)
{
	const struct found *f = plain_found(i);
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
	const struct found *f = plain_found(i);
	bool alone = (r->flags & KVR_IGNORE_REUSE) != 0 ||
	    (r->stage == KVR_STAGE_DECODE && r->overlap_credit < 0);
	double credit, decode, cost, sum = 0;
	uint32_t j;

	if (scene.region.policy.cost == KVR_COST_TWO_TIER)
		return s->requests / s->weight;
	credit = plain_credit() * plain_decay(i, least) * f->blocks;
	decode = (double)s->blocks + scene.p.blocks - (alone ? 0 : f->active);
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
	s->busy = one_of(4) == 0;
	s->latch = one_of(4) == 0;
	s->weight = one_of(5) > 0 ? 1 : 0.5 + one_of(3);
	s->identity = scene_random();
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
	p->cost = one_of(3) == 0;
	p->overlap_credit = number_of(one_of(8));
	p->overlap_decay = one_of(2) == 0 ? number_of(one_of(8)) : 0;
	p->prefill_scale = number_of(one_of(8));
	p->request_weight = one_of(2) == 0 ? number_of(one_of(8)) : 0;
	p->two_tier_load_gap = one_of(5);
	scene.p.rule.block_size = sizes[one_of(7)];
	if (scene.p.rule.block_size % 4 == 0)
		scene.p.rule.unit = one_of(2);
	scene_length(one_of(20), one_of(scene.p.rule.block_size));
	scene.p.units += prompt_tokens(&scene.p) == 0 ? 4 : 0;
	for (i = 0; i < workers; i++)
		random_worker(i);
	random_request(workers);
}

/* What a plain choice finds out about the scene. */
struct plain {
	uint32_t eligible, busy, longest;
	double least_prefill, cost[SCENE_SLOTS];
	double least_load, most_load;
	bool take[SCENE_SLOTS];
};

static void
plain_look(struct plain *w)
{
	uint32_t i, n = scene.region.slots_used;

	memset(w, 0, sizeof(*w));
	w->least_prefill = w->least_load = INFINITY;
	for (i = 0; i < n; i++) {
		const struct slot *s = &scene.slots[i];
		double load = s->requests / s->weight;

		if (!plain_fits(i))
			continue;
		if (plain_busy(i)) {
			w->busy++;
			continue;
		}
		w->take[i] = true;
		w->eligible++;
		w->least_prefill = fmin(w->least_prefill, (double)s->prefill);
		w->least_load = fmin(w->least_load, load);
		w->most_load = fmax(w->most_load, load);
		if (plain_credit() > 0 && plain_found(i)->blocks > w->longest)
			w->longest = plain_found(i)->blocks;
	}
	for (i = 0; i < n; i++)
		w->cost[i] = plain_cost(i, w->least_prefill);
}

/* With two tiers, only the longest overlaps may stay to be taken. */
static void
plain_two_tier(struct plain *w)
{
	const struct kvr_policy *p = &scene.region.policy;
	double n = ceil((double)prompt_tokens(&scene.p) / plain_block());
	uint32_t i;

	if (p->cost != KVR_COST_TWO_TIER || scene.r.pinned != 0)
		return;
	if (w->most_load - w->least_load > p->two_tier_load_gap &&
	    w->most_load > p->two_tier_load_ratio * w->least_load)
		return;
	if (!(w->longest / n > p->two_tier_overlap))
		return;
	for (i = 0; i < scene.region.slots_used; i++)
		w->take[i] &= plain_found(i)->blocks == w->longest;
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
		return w->busy > 0 ? KVR_EPINNEDBUSY : KVR_ENOTALLOWED;
	return w->busy > 0 ? KVR_EALLBUSY : KVR_ENOWORKER;
}

START_TEST(random_scenes)
{
	uint64_t round, rounds = test_amount(20000);
	static struct plain w;
	uint32_t i, seen[2] = { 0 };

	scene_seed(11);
	for (round = 0; round < rounds; round++) {
		double slack;

		random_scene();
		slack = scene.r.n_preferences > 0 ? 1e-13 : 0;
		plain_look(&w);
		ck_assert_int_eq(scene_choose(), plain_error(&w));
		seen[w.eligible > 0]++;
		if (w.eligible == 0)
			continue;
		ck_assert_uint_eq(scene.c.eligible, w.eligible);
		ck_assert_int_eq(scene_begin(), KVR_OK);
		for (i = 0; i < scene.region.slots_used; i++) {
			double cost = route_cost(&scene.t, i);

			ck_assert_msg(fabs(cost - w.cost[i]) <= slack * cost,
			    "round %u slot %u: %a, not %a", (unsigned)round,
			    i, cost, w.cost[i]);
			if (scene.generations[i] % 2 == 1)
				ck_assert(w.take[i] == (route_verdict(&scene.t,
				    i) == KVR_ELIGIBLE));
			w.cost[i] = cost;
		}
		plain_two_tier(&w);
		ck_assert(w.take[scene.c.slot]);
		ck_assert(scene.c.cost == w.cost[scene.c.slot]);
		for (i = 0; i < scene.region.slots_used; i++)
			ck_assert(!w.take[i] ||
			    !plain_better(&w, i, scene.c.slot));
	}
	ck_assert_uint_gt(seen[0], (uint32_t)rounds / 20);
	ck_assert_uint_gt(seen[1], (uint32_t)rounds / 3);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *
suite_eligible(void)
{
	Suite *s = suite_create("eligible");
	TCase *t;

	t = tcase_create("eligible");
	tcase_add_test(t, states);
	tcase_add_test(t, slots_not_in_use_are_nobody);
	tcase_add_test(t, allowed);
	tcase_add_test(t, excluded);
	tcase_add_test(t, required_taints);
	tcase_add_test(t, overloaded);
	tcase_add_test(t, overloaded_ranks);
	tcase_add_test(t, pinned);
	tcase_add_test(t, pinned_and_not_eligible);
	tcase_add_test(t, pinned_to_nobody);
	tcase_add_test(t, empty_prompt);
	tcase_add_test(t, failure_writes_nothing);
	tcase_add_test(t, every_number_of_workers);
	tcase_add_test(t, slots_used_is_bounded);
	suite_add_tcase(s, t);
	t = tcase_create("random scenes");
	tcase_add_test(t, random_scenes);
	suite_add_tcase(s, t);
	return s;
}
