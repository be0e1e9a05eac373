/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_exchange.c - messages between routers.
 *
 *   request   ---> its router: lease, commit     at once
 *                      |
 *                      '--- message ---> each other router, unless it is lost
 *                              :
 *                        delay : the same for all, so they stay in order
 *
 * A message has the content of a daemon's: for a prompt the hashes of its
 * blocks and its length. Without a delay the others hear at once.
 *
 * Load that is late misleads more than none: all routers run to the worker
 * that was idle when the messages left. How late is too late depends on how
 * many requests a worker gets meanwhile. A router that degrades takes a request
 * that it hears of too late as a prefix only, and drops its other leases of the
 * sender. The sender's sums are as late, so they count nothing too.
 */
#include "rivals.h"
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

const char *const simulate_dealing_names[SIMULATE_DEALINGS] = {
	[SIMULATE_DEALT] = "dealt",
	[SIMULATE_DEALT_RANDOM] = "random",
	[SIMULATE_DEALT_STICKY] = "sticky"
};
const char *const simulate_exchange_names[SIMULATE_EXCHANGES] = {
	[SIMULATE_NOTHING] = "none",
	[SIMULATE_ALL] = "all",
	[SIMULATE_PREFIXES] = "prefixes",
	[SIMULATE_LOADS] = "loads",
	[SIMULATE_PREFIXES_LOADS] = "prefixes+loads",
	[SIMULATE_BOOKINGS] = "bookings"
};

#define SECOND_NS INT64_C(1000000000)
#define SUMS_NS (SECOND_NS / 10) /* between two of one router */
#define ROLL_NS SECOND_NS

struct message {
	struct message *prev, *next;
	int64_t at; /* arrives */
	uint64_t to; /* a set of routers */
	struct notice notice;
	uint64_t list[]; /* the notice's */
};

/* ---------------------------------------------------------------- modes --- */

/* Is it of interest to others? */
static bool
exchange_tells(const struct simulation *s, enum notice_kind kind)
{
	if (kind == NOTICE_SUMS || kind == NOTICE_ROLL ||
	    exchange_has_leases(s))
		return true;
	return kind == NOTICE_OPEN && s->options.replicas > 1 &&
	    (s->options.exchange == SIMULATE_PREFIXES ||
	    s->options.exchange == SIMULATE_PREFIXES_LOADS);
}

/* -------------------------------------------------------------- making --- */

int
exchange_make(struct simulation *s)
{
	bool repairs = exchange_has_leases(s) && s->options.repair &&
	    s->options.exchange_loss > 0;

	s->deals.state = s->options.seed ^ UINT64_C(0x6465616C);
	s->losses.state = s->options.seed ^ UINT64_C(0x6C6F7373);
	s->next_sums = exchange_has_sums(s) ? 0 : TIMES_NEVER;
	s->next_roll = repairs ? ROLL_NS : TIMES_NEVER;
	if (exchange_has_sums(s) && sums_make(s) != KVR_OK)
		return KVR_ENOMEM;
	return s->routers[0].k == NULL || s->options.exchange_delay_ns == 0 ?
	    KVR_OK : kvr_prompt_new(s->routers[0].k, &s->told);
}

void
exchange_free(struct simulation *s)
{
	struct message *m, *next;

	DL_FOREACH_SAFE(s->messages, m, next) {
		DL_DELETE(s->messages, m);
		free(m);
	}
	kvr_prompt_free(s->told);
	sums_free(s);
}

/* A session without a name is known by its first tokens. */
uint32_t
exchange_deal(struct simulation *s, uint64_t session,
    const struct engine_request *q)
{
	uint64_t lot = s->n_rides;

	if (s->options.dealing == SIMULATE_DEALT_RANDOM)
		lot = rng_next(&s->deals);
	else if (s->options.dealing == SIMULATE_DEALT_STICKY)
		lot = rival_key(session, q->ids, q->tokens);
	return (uint32_t)(lot % s->options.replicas);
}

/* ------------------------------------------------------------- hearing --- */

static int
hear_request(struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct notice *n)
{
	bool late = router_late(s, router, n->sent);
	bool *was_late = &s->routers[router].late[n->origin];
	int e = KVR_OK;

	router_count(s, router);
	if (s->absent[n->worker])
		return KVR_OK;
	if (!exchange_has_leases(s))
		return router_learn(s, router, p, n);
	s->exchanged.late += late;
	if (late && !*was_late)
		e = router_drop(s, router, n->origin);
	*was_late = late;
	if (e != KVR_OK || !late)
		return e == KVR_OK ? router_hear(s, router, p, n) : e;
	return s->options.exchange == SIMULATE_BOOKINGS ? KVR_OK :
	    router_learn(s, router, p, n);
}

static int
hear_notice(struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct notice *n)
{
	s->changed = true;
	switch (n->kind) {
	case NOTICE_OPEN:
		return hear_request(s, router, p, n);
	case NOTICE_SUMS:
		return sums_hear(s, router, n);
	case NOTICE_ROLL:
		return roll_hear(s, router, n);
	default:
		return router_hear(s, router, p, n);
	}
}

static int
hear_all(struct simulation *s, uint64_t to, struct kvr_prompt *p,
    const struct notice *n)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (to >> i & 1)
			e = hear_notice(s, i, p, n);
	return e;
}

/* The prompt again, as far as an index has it: the tail is any tokens. */
static int
make_prompt(struct simulation *s, const struct notice *n)
{
	static const uint32_t any[64];
	uint64_t left = n->tokens - n->n_list * s->block_size;
	int e = kvr_prompt_begin(s->told, NULL);

	if (e == KVR_OK)
		e = kvr_prompt_locals(s->told, n->list, n->n_list);
	for (; e == KVR_OK && left > 0; left -= left < 64 ? left : 64)
		e = kvr_prompt_tokens(s->told, any, left < 64 ? left : 64);
	return e == KVR_OK ? kvr_prompt_end(s->told, NULL) : e;
}

static int
deliver_message(struct simulation *s)
{
	struct message *m = s->messages;
	int e = KVR_OK;

	DL_DELETE(s->messages, m);
	m->notice.list = m->list;
	if (m->notice.kind == NOTICE_OPEN && s->told != NULL)
		e = make_prompt(s, &m->notice);
	if (e == KVR_OK)
		e = hear_all(s, m->to, s->told, &m->notice);
	free(m);
	return e;
}

/* ------------------------------------------------------------- sending --- */

/* The others, without those that lose the message. */
static uint64_t
draw_receivers(struct simulation *s, uint32_t origin)
{
	double lost = s->options.exchange_loss;
	uint64_t to = 0;
	uint32_t i;

	for (i = 0; i < s->options.replicas; i++) {
		if (i == origin)
			continue;
		s->exchanged.messages++;
		if (lost > 0 && (double)(rng_next(&s->losses) >> 11) <
		    lost * 0x1p53)
			s->exchanged.lost++;
		else
			to |= UINT64_C(1) << i;
	}
	return to;
}

/* With the hashes of the blocks of p, or with the list of the notice. */
static int
enqueue_message(struct simulation *s, uint64_t to, const struct notice *n,
    struct kvr_prompt *p)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	bool hashes = n->kind == NOTICE_OPEN && s->told != NULL;
	size_t count = n->n_list, i;
	struct message *m;
	uint64_t whole;
	int e = hashes ? kvr_prompt_info_get(p, &info) : KVR_OK;

	if (e != KVR_OK)
		return e;
	count = hashes ? info.blocks : count;
	m = calloc(1, sizeof(*m) + count * sizeof(m->list[0]));
	if (m == NULL)
		return KVR_ENOMEM;
	m->at = s->now + s->options.exchange_delay_ns;
	m->to = to;
	m->notice = *n;
	m->notice.n_list = count;
	for (i = 0; i < count; i++)
		if (hashes)
			e = e == KVR_OK ? kvr_prompt_hash(p, i, &m->list[i],
			    &whole) : e;
		else
			m->list[i] = n->list[i];
	DL_APPEND(s->messages, m);
	return e;
}

static int
exchange_send(struct simulation *s, const struct notice *n,
    struct kvr_prompt *p)
{
	uint64_t to;

	if (!exchange_tells(s, n->kind))
		return KVR_OK;
	to = draw_receivers(s, n->origin);
	return s->options.exchange_delay_ns == 0 ? hear_all(s, to, p, n) :
	    to == 0 ? KVR_OK : enqueue_message(s, to, n, p);
}

int64_t
exchange_next(const struct simulation *s)
{
	int64_t next = s->next_sums < s->next_roll ? s->next_sums :
	    s->next_roll;

	return s->messages != NULL && s->messages->at < next ?
	    s->messages->at : next;
}

/* A router's sums, or its roll. */
static int
send_list(struct simulation *s, enum notice_kind kind, uint32_t origin)
{
	uint64_t *list = NULL;
	struct notice n = { .kind = kind, .origin = origin, .sent = s->now };
	int e = kind == NOTICE_SUMS ? sums_list(s, origin, &list, &n.n_list) :
	    roll_list(s, origin, &list, &n.n_list);

	n.list = list;
	if (e == KVR_OK)
		e = exchange_send(s, &n, NULL);
	free(list);
	return e;
}

/* Routers send their sums one after the other, not all at one time. */
int
exchange_do(struct simulation *s)
{
	uint32_t n = s->options.replicas;
	int e = KVR_OK;

	while (e == KVR_OK && s->messages != NULL &&
	    s->messages->at <= s->now)
		e = deliver_message(s);
	while (e == KVR_OK && s->next_sums <= s->now) {
		e = send_list(s, NOTICE_SUMS, s->sums_turn++ % n);
		s->next_sums += SUMS_NS / n;
	}
	while (e == KVR_OK && s->next_roll <= s->now) {
		e = send_list(s, NOTICE_ROLL, s->roll_turn++ % n);
		s->next_roll += ROLL_NS / n;
	}
	return e;
}

/* ------------------------------------------------------------- requests --- */

static int
tell_routers(struct simulation *s, struct notice *n, const struct ride *r,
    struct kvr_prompt *p)
{
	int e;

	n->origin = r->router;
	n->ride = (size_t)(r - s->rides);
	n->sent = s->now;
	e = router_hear(s, r->router, p, n);
	return e == KVR_OK ? exchange_send(s, n, p) : e;
}

int
routers_book(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, const struct ride *r,
    const struct kvr_decision *d)
{
	struct notice n = { .kind = NOTICE_OPEN, .lease = d->lease,
	    .tokens = r->seen, .predicted = r->predicted,
	    .session = r->session, .worker = r->worker };

	if (s->options.policy == SIMULATE_CACHE_AWARE) {
		n.list = q->ids;
		n.n_list = (size_t)((q->tokens + ENGINE_BLOCK - 1) /
		    ENGINE_BLOCK);
	}
	router_count(s, r->router);
	return tell_routers(s, &n, r, p);
}

int
routers_first_token(struct simulation *s, const struct ride *r)
{
	struct notice n = { .kind = NOTICE_FIRST_TOKEN };

	return tell_routers(s, &n, r, NULL);
}

int
routers_generated(struct simulation *s, const struct ride *r,
    uint32_t blocks)
{
	struct notice n = { .kind = NOTICE_OUTPUT, .blocks = blocks };

	return tell_routers(s, &n, r, NULL);
}

int
routers_finished(struct simulation *s, const struct ride *r,
    const struct kvr_report *report)
{
	struct notice n = { .kind = NOTICE_FINISH, .report = *report };

	return tell_routers(s, &n, r, NULL);
}

int
routers_refused(struct simulation *s, const struct ride *r)
{
	struct notice n = { .kind = NOTICE_ABORT };

	return tell_routers(s, &n, r, NULL);
}
