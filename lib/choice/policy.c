/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.c - checks the parameters of a choice and resolves the defaults.
 *
 * Two structs govern a choice: the policy, which is part of the region and
 * shared, and the request, which belongs to one prompt and may override parts
 * of the policy. Both are checked at the API, so that code that computes with
 * them need not: no NaN, no infinity and no number out of range gets past this
 * file. The request is then resolved against the policy; fields that a request
 * may override are not read from the policy after that.
 */
#include "policy.h"

#include "affinity.h"
#include "id.h"
#include "observed.h"

#define BOUND_MAX 1e15 /* larger ones make no sense */
#define OBSERVED_MIN 1e-3 /* seconds */
#define OBSERVED_MAX 1e6

/* Finite and at least `least`. */
static bool
number_from(double least, double x)
{
	return x >= least && x - x == 0;
}

static bool
number_within(double least, double x, double most)
{
	return x >= least && x <= most;
}

static bool
finite_number(double x)
{
	return x - x == 0;
}

int
kvr_policy_init(struct kvr_policy *policy, size_t size)
{
	struct kvr_policy d;

	memset(&d, 0, sizeof(d));
	d.cost = KVR_COST_BALANCED;
	d.overlap_credit = 1;
	d.prefill_scale = 1;
	d.overload_prefill_tokens = -1;
	d.overload_prefill_fraction = -1;
	d.overload_blocks_fraction = -1;
	d.balanced_bound = 2;
	d.observed_seconds = 10;
	return struct_init(policy, size, &d, sizeof(d));
}

int
kvr_request_init(struct kvr_request *request, size_t size)
{
	struct kvr_request d;

	memset(&d, 0, sizeof(d));
	d.overlap_credit = -1;
	d.prefill_scale = -1;
	d.temperature = -1;
	d.stage = KVR_STAGE_ALL;
	d.overlap_blocks = KVR_AUTO;
	return struct_init(request, size, &d, sizeof(d));
}

int
policy_check(const struct kvr_policy *policy)
{
	bool good = policy->cost <= KVR_COST_DYNAMO &&
	    policy->reserved == 0 &&
	    number_from(0, policy->overlap_credit) &&
	    number_from(0, policy->overlap_decay) &&
	    number_from(0, policy->prefill_scale) &&
	    number_from(0, policy->request_weight) &&
	    number_from(0, policy->temperature) &&
	    finite_number(policy->overload_prefill_tokens) &&
	    finite_number(policy->overload_prefill_fraction) &&
	    finite_number(policy->overload_blocks_fraction) &&
	    number_within(0, policy->balanced_bound, BOUND_MAX) &&
	    number_within(OBSERVED_MIN, policy->observed_seconds,
		OBSERVED_MAX);

	return good ? KVR_OK : KVR_EINVAL;
}

int
policy_check_request(const struct kvr_request *r)
{
	const uint32_t flags = KVR_NOWAIT | KVR_IGNORE_PREFILL |
	    KVR_IGNORE_REUSE | KVR_NO_FIRST_TOKEN;
	uint32_t i;

	if (r->stage > KVR_STAGE_DECODE || (r->flags & ~flags) != 0 ||
	    r->n_excluded > KVR_EXCLUDED_MAX ||
	    r->n_preferences > KVR_PREFERENCES_MAX ||
	    r->affinity_mode > KVR_AFFINITY_HASH ||
	    !affinity_ttl_ok(r->affinity_ttl) ||
	    r->overlap_blocks > KVR_AUTO ||
	    r->share > KVR_SHARE_MAX || r->share_reserved != 0 ||
	    !finite_number(r->overlap_credit) ||
	    !finite_number(r->prefill_scale) || !finite_number(r->temperature))
		return KVR_EINVAL;
	for (i = 0; i < r->n_excluded; i++)
		if (id_is_lease(r->excluded[i]))
			return KVR_EWORKER;
	for (i = 0; i < r->n_preferences; i++)
		if (!finite_number(r->preferences[i].weight))
			return KVR_EINVAL;
	return KVR_OK;
}

/* Copied as whole words: readers may read while a writer writes. */
_Static_assert(sizeof(struct kvr_policy) % sizeof(uint64_t) == 0,
    "a policy is whole words");

void
policy_read(const struct kvr *k, struct kvr_policy *policy)
{
	read_once_words(policy, &k->region->policy, sizeof(*policy));
}

/* Sums of observed requests fade with the mean that the policy had. */
void
policy_write(struct kvr *k, const struct kvr_policy *policy)
{
	if (policy->observed_seconds != k->region->policy.observed_seconds)
		observed_empty(k);
	write_once_words(&k->region->policy, policy, sizeof(*policy));
}

bool
policy_sound(const struct kvr *k)
{
	return policy_check(&k->region->policy) == KVR_OK;
}

void
policy_recover(struct kvr *k)
{
	struct kvr_policy policy;

	(void)kvr_policy_init(&policy, sizeof(policy));
	if (!policy_sound(k))
		policy_write(k, &policy);
}

/*
 * Makes explicit all that the request leaves to the policy or its stage
 * implies. A decode stage goes by load alone, unless the request has its own
 * credit: then overlap counts, and there is still no prefill to do.
 */
void
policy_resolve(const struct kvr_policy *policy, struct kvr_request *r)
{
	if (r->stage == KVR_STAGE_DECODE) {
		r->flags |= KVR_IGNORE_PREFILL;
		if (r->overlap_credit < 0) {
			r->flags |= KVR_IGNORE_REUSE;
			r->overlap_credit = 0;
		}
	}
	if (r->overlap_credit < 0)
		r->overlap_credit = policy->overlap_credit;
	if (r->prefill_scale < 0)
		r->prefill_scale = policy->prefill_scale;
	if (r->temperature < 0)
		r->temperature = policy->temperature;
}
