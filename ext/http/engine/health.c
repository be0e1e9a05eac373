/* SPDX-License-Identifier: BSD-2-Clause */
/* health.c - see health.h. */
#include "health.h"

#define SECOND INT64_C(1000000000)

enum {
	UNITS_MIN = 32,          /* less do not show how fast a worker is */
	UNITS_MAX = 128,         /* older work fades */
	SHARE_ONE = 1 << 16,
	SHARE_LATEST = 8,        /* the latest request has a weight of 1/8 */
	SHARE_FAILING = SHARE_ONE / 5,
	SHARE_TIMES = 3,
	NEEDED = 3,              /* good probes */
	NEEDED_MAX = 24,
	DOUBLINGS = 3            /* of the pause after bad probes, at most */
};
#define FADE (10 * SECOND)       /* failures count half after it */
#define OLD (120 * SECOND)       /* older work does not count */
#define SUSPECTED SECOND         /* a slow worker turns gray after it */
#define PAUSE SECOND             /* between probes */
#define PROBE_LOST (30 * SECOND) /* another probe may go after it */
#define RELAPSE (300 * SECOND)   /* a worker gray again needs more probes */
#define NS_MAX (INT64_C(1) << 52)

#define get(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define put(field, value) \
	__atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

static bool
field_swap(uint64_t *field, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(field, &from, to, false,
	    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static int64_t
time_since(uint64_t then, int64_t now)
{
	return (uint64_t)now > then ? now - (int64_t)then : 0;
}

/* --------------------------------------------------------------- places --- */

static void
state_clear(struct health *h)
{
	put(h->ns, 0);
	put(h->units, 0);
	put(h->suspect, 0);
	put(h->share, 0);
	put(h->verdict, HEALTH_GOOD);
	put(h->bad, 0);
	put(h->good, 0);
	put(h->fails_since, 0);
	put(h->unproven, 0);
}

struct health *
health_place(struct health *all, size_t n, uint64_t key, bool *fresh)
{
	size_t i, at;

	*fresh = false;
	for (i = 0; i < n; i++)
		if (get(all[(key + i) % n].key) == key)
			return &all[(key + i) % n];
	for (i = 0; i < n; i++) {
		at = (key + i) % n;
		if (!field_swap(&all[at].key, 0, key))
			continue;
		state_clear(&all[at]);
		put(all[at].at, 0);
		put(all[at].share_at, 0);
		put(all[at].healed, 0);
		put(all[at].cold, 0);
		put(all[at].warm_at, 0);
		put(all[at].answered_at, 0);
		*fresh = true;
		return &all[at];
	}
	return NULL;
}

void
health_keep(struct health *all, size_t n, const uint64_t *keys, size_t n_keys)
{
	size_t i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < n_keys; k++)
			if (keys[k] == get(all[i].key))
				break;
		if (k == n_keys)
			put(all[i].key, 0);
	}
}

void
health_drop(struct health *all, size_t n, uint64_t key)
{
	size_t i;

	for (i = 0; i < n; i++)
		(void)field_swap(&all[i].key, key, 0);
}

/* ------------------------------------------------------------- evidence --- */

void
health_worked(struct health *h, int64_t began, int64_t ns, double units,
    int64_t now)
{
	uint64_t sum = get(h->units);

	if (ns < 0 || ns > NS_MAX || !(units >= 1 && units < NS_MAX) ||
	    (get(h->verdict) != HEALTH_GOOD && began < (int64_t)get(h->since)))
		return;
	if (sum > UNITS_MAX) {
		put(h->ns, get(h->ns) / 2);
		sum /= 2;
	}
	put(h->ns, get(h->ns) + (uint64_t)ns);
	put(h->units, sum + (uint64_t)units);
	put(h->at, (uint64_t)now);
}

/* Returns nanoseconds per unit; 0: not known. */
static double
pace_of(const struct health *h, int64_t now)
{
	uint64_t units = get(h->units);

	return units < UNITS_MIN || time_since(get(h->at), now) > OLD ? 0 :
	    (double)get(h->ns) / (double)units;
}

static uint64_t
share_of(const struct health *h, int64_t now)
{
	int64_t halves = time_since(get(h->share_at), now) / FADE;

	return halves < 32 ? get(h->share) >> halves : 0;
}

/* Returns the share after one more request. */
static uint64_t
share_with(uint64_t share, bool failed)
{
	return failed ? share + (SHARE_ONE - share) / SHARE_LATEST :
	    share - share / SHARE_LATEST;
}

static void
share_note(struct health *h, bool failed, int64_t now)
{
	put(h->share, share_with(share_of(h, now), failed));
	put(h->share_at, (uint64_t)now);
}

/* ------------------------------------------------------------- verdicts --- */

/* Does it take `times` as long as more than half of the others? */
static bool
is_slow(struct health *const *all, size_t n, const struct health *of,
    double times, int64_t now)
{
	double pace = pace_of(of, now), other;
	size_t i, known = 0, faster = 0;

	for (i = 0; i < n; i++) {
		if (all[i] == of || get(all[i]->verdict) != HEALTH_GOOD)
			continue;
		other = pace_of(all[i], now);
		known += other > 0;
		faster += other > 0 && other * times < pace;
	}
	return faster * 2 > known;
}

static bool
is_failing(struct health *const *all, size_t n, const struct health *of,
    int64_t now)
{
	uint64_t share = share_of(of, now);
	size_t i, known = 0, better = 0;

	for (i = 0; i < n && share >= SHARE_FAILING; i++) {
		/* A worker without requests is not a better one. */
		if (all[i] == of || get(all[i]->verdict) != HEALTH_GOOD ||
		    get(all[i]->share_at) == 0 ||
		    time_since(get(all[i]->share_at), now) > OLD)
			continue;
		known++;
		better += share_of(all[i], now) * SHARE_TIMES < share;
	}
	return better * 2 > known;
}

static bool
may_leave(struct health *const *all, size_t n)
{
	size_t i, gray = 1;

	for (i = 0; i < n; i++)
		gray += get(all[i]->verdict) != HEALTH_GOOD;
	return gray <= n / 2;
}

/* Was it slow at the first look, and in all of its work since then? */
static bool
stays_slow(struct health *const *all, size_t n, struct health *of,
    double factor, int64_t now)
{
	uint64_t suspect = get(of->suspect);

	if (!(pace_of(of, now) > 0))
		return false;
	if (!is_slow(all, n, of, factor, now)) {
		put(of->suspect, 0);
		return false;
	}
	if (suspect != 0)
		return time_since(suspect, now) >= SUSPECTED;
	put(of->suspect, (uint64_t)now);
	put(of->ns, 0);
	put(of->units, 0);
	return false;
}

/* False: another process has just done it. */
static bool
turn_gray(struct health *h, enum health_verdict verdict, int64_t now)
{
	uint64_t healed = get(h->healed), needed = NEEDED;

	if (!field_swap(&h->verdict, HEALTH_GOOD, verdict))
		return false;
	put(h->since, (uint64_t)now);
	put(h->probe_at, (uint64_t)(now + PAUSE));
	put(h->ns, 0);
	put(h->units, 0);
	put(h->suspect, 0);
	put(h->bad, 0);
	put(h->good, 0);
	if (healed != 0 && time_since(healed, now) < RELAPSE)
		needed = get(h->needed) * 2;
	put(h->needed, needed < NEEDED_MAX ? needed : NEEDED_MAX);
	return true;
}

static enum health_change
fleet_judge(struct health *const *all, size_t n, struct health *of,
    double factor, int64_t now)
{
	enum health_verdict verdict = HEALTH_GOOD;

	if (is_failing(all, n, of, now))
		verdict = HEALTH_FAILING;
	else if (stays_slow(all, n, of, factor, now))
		verdict = HEALTH_SLOW;
	if (verdict == HEALTH_GOOD || !may_leave(all, n) ||
	    !turn_gray(of, verdict, now))
		return HEALTH_SAME;
	return verdict == HEALTH_SLOW ? HEALTH_BECAME_SLOW :
	    HEALTH_BECAME_FAILING;
}

/* ------------------------------------------------------------ gray ones --- */

static void
probe_bad(struct health *h, int64_t now)
{
	uint64_t bad = get(h->bad);

	put(h->good, 0);
	put(h->bad, bad + (bad < DOUBLINGS));
	put(h->probe_at, (uint64_t)(now + (PAUSE << (bad < DOUBLINGS ? bad + 1 :
	    DOUBLINGS))));
}

static enum health_change
probe_good(struct health *h, int64_t now)
{
	uint64_t good = get(h->good), verdict = get(h->verdict);

	/* Requests that must go to this worker may end often. */
	if (good > 0 && time_since(get(h->good_at), now) < PAUSE)
		return HEALTH_SAME;
	put(h->bad, 0);
	put(h->good, good + 1);
	put(h->good_at, (uint64_t)now);
	put(h->probe_at, (uint64_t)(now + PAUSE));
	if (good + 1 < get(h->needed) || verdict == HEALTH_GOOD ||
	    !field_swap(&h->verdict, verdict, HEALTH_GOOD))
		return HEALTH_SAME;
	state_clear(h);
	put(h->healed, (uint64_t)now);
	return HEALTH_HEALED;
}

/* Judges a gray worker by a request that began while it was gray. */
static enum health_change
probe_judge(struct health *const *all, size_t n, struct health *of,
    double factor, bool failed, int64_t now)
{
	bool slow = get(of->verdict) == HEALTH_SLOW;
	uint64_t units = get(of->units), ns = get(of->ns);
	struct health seen = { .ns = ns, .units = UNITS_MIN,
	    .at = (uint64_t)now };
	enum health_change change = HEALTH_SAME;

	/* Short work counts too; a request without work is not evidence. */
	seen.ns = units > 0 ? (uint64_t)((double)ns / (double)units *
	    UNITS_MIN) : 0;
	if (failed || (slow && units > 0 &&
	    is_slow(all, n, &seen, (1 + factor) / 2, now)))
		probe_bad(of, now);
	else if (!slow || units > 0)
		change = probe_good(of, now);
	else
		put(of->probe_at, (uint64_t)(now + PAUSE));
	put(of->ns, 0);
	put(of->units, 0);
	return change;
}

/* ---------------------------------------------------------------- calls --- */

enum health_change
health_ended(struct health *const *all, size_t n, struct health *of,
    double factor, int64_t began, bool failed, int64_t now)
{
	if (!failed) {
		put(of->answered_at, (uint64_t)now);
		put(of->fails_since, 0);
		put(of->unproven, share_with(get(of->unproven), false));
	}
	if (get(of->verdict) != HEALTH_GOOD)
		return began < (int64_t)get(of->since) ? HEALTH_SAME :
		    probe_judge(all, n, of, factor, failed, now);
	share_note(of, failed, now);
	return fleet_judge(all, n, of, factor, now);
}

enum health_change
health_goes_on(struct health *const *all, size_t n, struct health *of,
    double factor, int64_t now)
{
	return get(of->verdict) != HEALTH_GOOD ? HEALTH_SAME :
	    fleet_judge(all, n, of, factor, now);
}

/* A failure without proof only delays the next probe. */
void
health_unanswered(struct health *h, int64_t now)
{
	put(h->unproven, share_with(get(h->unproven), true));
	if (get(h->fails_since) == 0)
		put(h->fails_since, (uint64_t)now);
	if (get(h->verdict) != HEALTH_GOOD)
		put(h->probe_at, (uint64_t)(now + PAUSE));
}

bool
health_only_fails(struct health *const *all, size_t n,
    const struct health *of, int64_t now)
{
	uint64_t since = get(of->fails_since);
	size_t i, others = 0, answer = 0;

	if (since == 0 || time_since(since, now) < SECOND)
		return false;
	for (i = 0; i < n; i++) {
		if (all[i] == of || get(all[i]->verdict) != HEALTH_GOOD)
			continue;
		others++;
		answer += get(all[i]->answered_at) > since &&
		    get(all[i]->unproven) * SHARE_TIMES < get(of->unproven);
	}
	return answer * 2 > others;
}

bool
health_is_of(const struct health *h, uint64_t key)
{
	return get(h->key) == key;
}

enum health_verdict
health_verdict(const struct health *h)
{
	return (enum health_verdict)get(h->verdict);
}

void
health_forget(struct health *h)
{
	state_clear(h);
	put(h->healed, 0);
}

bool
health_is_due(const struct health *h, int64_t late, int64_t now)
{
	return get(h->verdict) != HEALTH_GOOD &&
	    now - late >= (int64_t)get(h->probe_at);
}

bool
health_probe(struct health *h, int64_t now)
{
	uint64_t at = get(h->probe_at);

	return now >= (int64_t)at &&
	    field_swap(&h->probe_at, at, (uint64_t)(now + PROBE_LOST));
}

/* ----------------------------------------------------------- warming up --- */

void
health_cool(struct health *h)
{
	put(h->cold, 1);
}

bool
health_answered(struct health *h, int64_t now)
{
	if (get(h->cold) == 0 || !field_swap(&h->cold, 1, 0))
		return false;
	put(h->warm_at, (uint64_t)now);
	return true;
}

double
health_warmth(const struct health *h, int64_t whole, int64_t now)
{
	uint64_t at = get(h->warm_at);
	int64_t passed = time_since(at, now);

	if (get(h->cold) != 0)
		return 0;
	return at == 0 || passed >= whole ? 1 :
	    (double)passed / (double)whole;
}
