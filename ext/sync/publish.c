/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * publish.c - see publish.h.
 *
 * A record waits for others until its batch ends: each frame costs its readers,
 * and lateness hurts only as far as further requests for the same engine come
 * meanwhile.
 */
#include "publish.h"

#include <kvroute_replica.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define BATCH_MAX (5 * MS)
#define BATCH_MIN MS
/* Requests that one engine may get within a batch. */
#define BATCH_REQUESTS 0.02
#define LOADS_EACH (100 * MS)
#define IDLE_MAX (10 * MS)
#define READ_AGAIN (100 * MS)
#define LIST_AGAIN (100 * MS)

enum {
	RECORDS_A_CALL = 4096, /* then others have their turn */
	WALK = 256,
	OPEN_MAX = 4000        /* leases in a record: half a frame */
};

/* The latest facts that peers got. */
struct told {
	uint32_t made, epoch, state;
	struct kvr_load load;
};

/* Leases on a worker, to part its load between this router and its peers. */
struct share {
	uint64_t own_waiting, waiting, own_blocks, blocks, own;
};

struct publish {
	struct publish_options o;
	struct publish_counts counts;
	struct told *told;
	struct share *shares;
	uint64_t policy;
	uint32_t unit, block_size;
	uint64_t position;      /* in the journal */
	int64_t first_at;       /* when the frame got its first record */
	int64_t hello_at, second_at, loads_at, read_at;
	int64_t pause;          /* until the journal is looked at again */
	bool soon;              /* not only when a second is over */
	uint64_t leases[PUBLISH_LEASES_MAX];
	uint64_t most;          /* the list has all of them up to this one */
	uint64_t hashes[CHAINS_LENGTH_MAX];
	struct frame_record tenant; /* that was put last, */
	uint64_t tenant_frame;      /* and into which frame */
	struct frame_writer frame;
};

struct publish *
publish_new(const struct publish_options *options)
{
	struct kvr_options o = { .size = sizeof(o) };
	struct publish *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->o = *options;
	p->told = calloc(options->roster->places, sizeof(*p->told));
	p->shares = calloc(options->roster->places, sizeof(*p->shares));
	if (p->told == NULL || p->shares == NULL ||
	    kvr_options_get(options->roster->k, &o) != KVR_OK) {
		publish_free(p);
		return NULL;
	}
	p->unit = o.unit;
	p->block_size = o.block_size;
	frame_writer_init(&p->frame, &options->rules, options->origin);
	return p;
}

void
publish_free(struct publish *p)
{
	if (p == NULL)
		return;
	free(p->told);
	free(p->shares);
	free(p);
}

uint64_t
publish_policy(const struct kvr *k)
{
	static const unsigned char zeros[16];
	const struct siphash_key key = siphash_key(zeros);
	unsigned char digest[SIPHASH_BYTES];
	struct kvr_policy policy;
	uint64_t result;

	memset(&policy, 0, sizeof(policy));
	policy.size = sizeof(policy);
	if (kvr_policy_get(k, &policy) != KVR_OK)
		return 0;
	siphash(&key, &policy, sizeof(policy), digest);
	memcpy(&result, digest, sizeof(result));
	return result;
}

/* --------------------------------------------------------------- frames --- */

static void
flush(struct publish *p, int64_t now)
{
	const unsigned char *bytes;
	size_t n;

	if (frame_empty(&p->frame))
		return;
	bytes = frame_finish(&p->frame, now, &n);
	if (!p->o.send(p->o.context, bytes, n)) {
		p->counts.unsent++;
		return;
	}
	p->counts.frames++;
	p->counts.bytes += n;
}

static void
put(struct publish *p, struct frame_record *r, int64_t at, int64_t now)
{
	const int64_t age = at < 0 || at > now ? 0 : (now - at) / 1000;
	enum frame_result result;

	r->age = age > UINT32_MAX ? UINT32_MAX : (uint64_t)age;
	if (frame_empty(&p->frame))
		p->first_at = now;
	result = frame_put(&p->frame, r);
	if (result == FRAME_FULL) {
		flush(p, now);
		p->first_at = now;
		result = frame_put(&p->frame, r);
	}
	if (result == FRAME_OK)
		p->counts.records++;
	else
		p->counts.unsayable++;
}

static int64_t
batch(struct publish *p, int64_t now)
{
	double most;

	p->counts.rate = roster_rate(p->o.roster, now);
	most = BATCH_REQUESTS / (p->counts.rate + 1e-9) * (double)SECOND;
	return most > (double)BATCH_MAX ? BATCH_MAX :
	    most < (double)BATCH_MIN ? BATCH_MIN : (int64_t)most;
}

/* -------------------------------------------------------------- workers --- */

static void
put_worker(struct publish *p, const struct roster_worker *w, int64_t now)
{
	struct told *told = &p->told[roster_place(p->o.roster, w)];
	struct frame_record r = { .kind = FRAME_WORKER, .epoch = w->epoch,
	    .rank = w->rank, .worker = roster_place(p->o.roster, w),
	    .state = w->state, .length = w->name_len, .text = w->name };

	told->made = w->made;
	told->epoch = w->epoch;
	told->state = w->state;
	put(p, &r, now, now);
}

/* Puts the workers that have news. */
static void
put_news(struct publish *p, int64_t now)
{
	const struct roster_worker *w = p->o.roster->workers;
	size_t i;

	for (i = 0; i < p->o.roster->places; i++, w++)
		if (w->id != 0 && (p->told[i].made != w->made ||
		    p->told[i].epoch != w->epoch ||
		    p->told[i].state != w->state))
			put_worker(p, w, now);
}

/* Comes before all else in a frame: the rest counts then. */
static void
put_proofs(struct publish *p, int64_t now)
{
	const struct proof *of = p->o.proof;
	struct frame_record r = { .kind = FRAME_PROOF };
	size_t i;

	if (of == NULL)
		return;
	for (i = 0; i < of->n; i++) {
		r.peer = of->peers[i].origin;
		r.challenge = of->peers[i].challenge;
		put(p, &r, now, now);
	}
	r = (struct frame_record){ .kind = FRAME_CHALLENGE,
	    .challenge = of->own };
	put(p, &r, now, now);
}

static void
put_hello(struct publish *p, int64_t now)
{
	const struct roster *f = p->o.roster;
	const size_t host = strlen(p->o.host);
	struct frame_record r = { .kind = FRAME_HELLO,
	    .policy = publish_policy(f->k), .block_size = p->block_size,
	    .workers = f->count, .unit = p->unit, .text = p->o.host,
	    .length = host > FRAME_TEXT_MAX ? FRAME_TEXT_MAX : host };
	struct frame_record site = { .kind = FRAME_SITE, .site = p->o.site };
	size_t i;

	put_proofs(p, now);
	if (p->o.site != 0)
		put(p, &site, now, now);
	put(p, &r, now, now);
	for (i = 0; i < f->places; i++)
		if (f->workers[i].id != 0)
			put_worker(p, &f->workers[i], now);
	p->hello_at = now;
	p->soon = false;
	flush(p, now);
}

/* The region's workers are read again for one that is not known. */
static const struct roster_worker *
worker(struct publish *p, uint64_t id, int64_t now)
{
	const struct roster_worker *w = roster_id(p->o.roster, id);

	if (w == NULL && id != 0 && now - p->read_at >= READ_AGAIN) {
		p->read_at = now;
		roster_read(p->o.roster);
		w = roster_id(p->o.roster, id);
	}
	if (w != NULL && p->told[roster_place(p->o.roster, w)].made != w->made)
		put_worker(p, w, now);
	return w;
}

/* -------------------------------------------------------------- journal --- */

static void
put_reset(struct publish *p, const struct kvr_record *from, int64_t now)
{
	struct roster *f = p->o.roster;
	struct frame_record r = { .kind = FRAME_RESET };
	const struct roster_worker *w;

	/* The workers may have been read again since, with the new id. */
	if (worker(p, from->worker, now) == NULL ||
	    !roster_reset(f, from->worker, from->new_worker) ||
	    (w = roster_id(f, from->new_worker)) == NULL) {
		put_news(p, now);
		return;
	}
	r.worker = roster_place(f, w);
	r.epoch = w->epoch;
	p->told[r.worker].epoch = w->epoch;
	put(p, &r, from->at, now);
}

/* Puts the part before the end of a chain that is longer than a frame. */
static void
put_part(struct publish *p, const struct kvr_record *from,
    const struct frame_record *whole, int64_t now)
{
	struct frame_record r = { .kind = FRAME_CHAIN, .parent = whole->parent,
	    .first_block = whole->first_block, .numbers = whole->numbers,
	    .length = FRAME_NUMBERS_MAX };

	if (from->kind == KVR_RECORD_EXTEND) {
		r.kind = FRAME_EXTEND;
		r.lease = from->lease;
		r.units = (r.first_block + r.length) * p->block_size;
	}
	put(p, &r, from->at, now);
}

/* Whose a root is: once in a frame, if others do not come between. */
static void
put_tenant(struct publish *p, const struct kvr_record *from, int64_t now)
{
	struct frame_record r = { .kind = FRAME_TENANT, .parent = from->parent,
	    .tenant = from->tenant, .share = from->share };

	if (from->tenant == 0 || from->first_block != 0)
		return;
	if (p->o.chains != NULL)
		roots_own(chains_roots(p->o.chains), from->parent,
		    from->tenant, from->share);
	if (p->tenant_frame == p->frame.number &&
	    memcmp(&p->tenant, &r, sizeof(r)) == 0)
		return;
	p->tenant = r;
	put(p, &r, now, now);
	p->tenant_frame = p->frame.number;
}

static void
fill_prompt(struct publish *p, const struct kvr_record *from,
    struct frame_record *r, int64_t now)
{
	struct stretch s = { .parent = from->parent,
	    .first = from->first_block, .n = from->hashes,
	    .hashes = p->hashes };

	if (s.n > CHAINS_LENGTH_MAX)
		s.n = CHAINS_LENGTH_MAX;
	/* Cut here, or by the journal: no record is over a quarter of it. */
	if (s.n > 0 && s.first + s.n < from->blocks)
		p->counts.too_long++;
	put_tenant(p, from, now);
	if (p->o.chains != NULL)
		(void)chains_add(p->o.chains, &s);
	r->parent = s.parent;
	r->units = from->units;
	r->first_block = s.first;
	r->blocks = from->blocks;
	r->numbers = s.hashes;
	for (r->length = s.n; r->length > FRAME_NUMBERS_MAX;
	    r->length -= FRAME_NUMBERS_MAX) {
		put_part(p, from, r, now);
		r->numbers += FRAME_NUMBERS_MAX;
		r->first_block += FRAME_NUMBERS_MAX;
		r->parent = r->numbers[-1];
	}
}

static void
fill_report(const struct kvr_record *from, struct frame_record *r)
{
	r->report = from->report.kind;
	r->report_flags = from->report.flags;
	r->endpoint = from->report.endpoint;
	r->prompt_tokens = from->report.prompt_tokens;
	r->cached_tokens = from->report.cached_tokens;
	r->completion_tokens = from->report.completion_tokens;
}

static const enum frame_kind wire[] = {
	[KVR_RECORD_OPEN] = FRAME_RESERVE,
	[KVR_RECORD_COMMIT] = FRAME_COMMIT,
	[KVR_RECORD_FIRST_TOKEN] = FRAME_FIRST,
	[KVR_RECORD_EXTEND] = FRAME_EXTEND,
	[KVR_RECORD_OUTPUT] = FRAME_OUTPUT,
	[KVR_RECORD_FINISH] = FRAME_FINISH,
	[KVR_RECORD_ABORT] = FRAME_ABORT,
	[KVR_RECORD_OBSERVE] = FRAME_OBSERVE,
	[KVR_RECORD_BIND] = FRAME_BIND,
	[KVR_RECORD_RESET] = FRAME_RESET,
	[KVR_RECORD_CLEAR] = FRAME_CLEAR
};

static bool
about_worker(uint32_t kind)
{
	return kind == KVR_RECORD_OPEN || kind == KVR_RECORD_OBSERVE ||
	    kind == KVR_RECORD_BIND;
}

static void
put_record(struct publish *p, const struct kvr_record *from, int64_t now)
{
	struct frame_record r = { .kind = wire[from->kind] };
	const struct roster_worker *w;

	if (about_worker(from->kind)) {
		w = worker(p, from->worker, now);
		if (w == NULL) {
			p->counts.unknown_worker++;
			return;
		}
		r.worker = roster_place(p->o.roster, w);
		r.epoch = w->epoch;
	}
	r.lease = from->lease;
	r.affinity = from->affinity;
	r.affinity_ttl = (uint64_t)from->affinity_ttl / (uint64_t)MS;
	r.stage = from->stage;
	r.flags = from->flags;
	r.overlap_tokens = from->overlap_tokens;
	r.overlap_blocks = from->overlap_blocks;
	if (from->kind == KVR_RECORD_OUTPUT)
		r.blocks = from->blocks;
	else
		fill_prompt(p, from, &r, now);
	if (from->kind == KVR_RECORD_FINISH)
		fill_report(from, &r);
	put(p, &r, from->at, now);
}

/* Leases of peers end by age or by the router: peers know that themselves. */
static bool
for_peers(const struct kvr_record *r)
{
	return r->kind >= KVR_RECORD_OPEN &&
	    r->kind < sizeof(wire) / sizeof(wire[0]) &&
	    r->owner >> 32 != ROSTER_PEERS;
}

static void
read_journal(struct publish *p, int64_t now)
{
	struct kvr_record r = { .size = sizeof(r) };
	int i, error;

	p->pause = p->pause == 0 ? BATCH_MIN :
	    p->pause * 2 > IDLE_MAX ? IDLE_MAX : p->pause * 2;
	for (i = 0; i < RECORDS_A_CALL; i++) {
		error = kvr_journal_read(p->o.roster->k, &p->position, now, &r,
		    p->hashes, CHAINS_LENGTH_MAX);
		if (error == KVR_EOVERRUN) {
			p->counts.overruns++;
			p->soon = true;
			continue;
		}
		if (error != KVR_OK)
			break;
		p->pause = BATCH_MIN;
		if (!for_peers(&r))
			continue;
		if (r.kind == KVR_RECORD_OPEN)
			p->o.roster->opens++;
		if (r.kind == KVR_RECORD_CLEAR)
			roster_cleared(p->o.roster);
		if (r.kind == KVR_RECORD_RESET)
			put_reset(p, &r, now);
		else
			put_record(p, &r, now);
	}
	if (i == RECORDS_A_CALL)
		p->pause = 0;
}

/* ----------------------------------------------------- leases and loads --- */

static int
by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
add_share(struct publish *p, const struct kvr_lease_info *l, bool own)
{
	const struct roster_worker *w = roster_id(p->o.roster, l->worker);
	struct share *s;

	if (w == NULL)
		return;
	s = &p->shares[roster_place(p->o.roster, w)];
	s->blocks += l->blocks;
	s->waiting += l->state == KVR_LEASE_DECODING ? 0 : l->tokens;
	if (!own)
		return;
	s->own++;
	s->own_blocks += l->blocks;
	s->own_waiting += l->state == KVR_LEASE_DECODING ? 0 : l->tokens;
}

/* Too many: the newest quarter leaves and is not listed. */
static size_t
drop_newest(struct publish *p, size_t n)
{
	qsort(p->leases, n, sizeof(p->leases[0]), by_number);
	n -= n / 4;
	p->most = p->leases[n - 1];
	return n;
}

/*
 * All open leases; own ones, ascending, to p->leases. false: the region is
 * busy.
 */
static bool
walk_leases(struct publish *p)
{
	struct kvr_lease_info found[WALK];
	size_t i, count, n = 0, most = 0;
	uint64_t cursor = 0;
	bool own;

	memset(p->shares, 0, p->o.roster->places * sizeof(*p->shares));
	p->most = UINT64_MAX;
	do {
		if (kvr_lease_list(p->o.roster->k, &cursor, found,
		    sizeof(found[0]), WALK, &count) != KVR_OK)
			return false;
		for (i = 0; i < count; i++) {
			own = found[i].owner >> 32 != ROSTER_PEERS;
			add_share(p, &found[i], own);
			if (own && n == PUBLISH_LEASES_MAX)
				n = drop_newest(p, n);
			if (own && found[i].lease <= p->most)
				p->leases[n++] = found[i].lease;
		}
	} while (cursor != 0 && ++most < (size_t)4 * PUBLISH_LEASES_MAX);
	qsort(p->leases, n, sizeof(p->leases[0]), by_number);
	p->counts.leases = 0;
	for (i = 0; i < n; i++)
		if (i == 0 || p->leases[i] != p->leases[i - 1])
			p->leases[p->counts.leases++] = p->leases[i];
	return cursor == 0;
}

/* In ranges that join, so that each lease up to p->most is in one of them. */
static void
put_open(struct publish *p, int64_t at, int64_t now)
{
	struct frame_record r = { .kind = FRAME_OPEN };
	size_t i = 0, n = p->counts.leases;

	do {
		r.numbers = p->leases + i;
		r.length = n - i > OPEN_MAX ? OPEN_MAX : n - i;
		i += r.length;
		r.most = i == n ? p->most : p->leases[i] - 1;
		put(p, &r, at, now);
		r.least = r.most + 1;
	} while (i < n);
}

static uint64_t
less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t
part(uint64_t sum, uint64_t own, uint64_t all)
{
	const double value = all == 0 ? 0 :
	    (double)sum * (double)own / (double)all;

	return value > UINT32_MAX ? UINT32_MAX : (uint64_t)value;
}

/*
 * Load that is not of here: the loads of peers, and those that engines publish,
 * which each router reads by itself.
 */
static bool
others_load(struct publish *p, const struct roster_worker *w,
    struct kvr_load *sum)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint32_t source;

	*sum = w->load;
	for (source = 0; source < ROSTER_SOURCE; source++) {
		if (kvr_worker_get_load(p->o.roster->k, w->id, source,
		    &load) != KVR_OK)
			return false;
		sum->requests += load.requests;
		sum->prefill_tokens += load.prefill_tokens;
		sum->active_blocks += load.active_blocks;
	}
	return true;
}

/* The load of this router on a worker. */
static bool
own_load(struct publish *p, const struct roster_worker *w, struct kvr_load *out)
{
	const struct share *s = &p->shares[roster_place(p->o.roster, w)];
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	struct kvr_load others;
	uint64_t waiting, blocks;

	if (!others_load(p, w, &others) ||
	    kvr_worker_stats_get(p->o.roster->k, w->id, &stats) != KVR_OK)
		return false;
	waiting = less(stats.prefill_tokens, others.prefill_tokens);
	blocks = less(stats.active_blocks + stats.output_blocks,
	    others.active_blocks);
	if (p->o.loads) {
		out->requests = part(less(stats.requests, others.requests),
		    1, 1);
		out->prefill_tokens = part(waiting, 1, 1);
		out->active_blocks = part(blocks, 1, 1);
		return true;
	}
	out->requests = part(s->own, 1, 1);
	out->prefill_tokens = part(waiting, s->own_waiting, s->waiting);
	out->active_blocks = part(blocks, s->own_blocks, s->blocks);
	return true;
}

static void
put_loads(struct publish *p, bool all, int64_t now)
{
	const struct roster_worker *w = p->o.roster->workers;
	struct kvr_load load = { .size = sizeof(load) };
	struct frame_record r = { .kind = FRAME_LOAD };
	size_t i;

	p->loads_at = now;
	for (i = 0; i < p->o.roster->places; i++, w++) {
		if (w->id == 0 || !own_load(p, w, &load) || (!all &&
		    memcmp(&load, &p->told[i].load, sizeof(load)) == 0))
			continue;
		p->told[i].load = load;
		r.worker = i;
		r.requests = load.requests;
		r.prefill_tokens = load.prefill_tokens;
		r.active_blocks = load.active_blocks;
		put(p, &r, now, now);
	}
}

/*
 * Sends the whole state each second, and soon after changes that peers cannot
 * see.
 */
static void
list_all(struct publish *p, int64_t now)
{
	bool walked;

	(void)kvr_journal_beat(p->o.roster->k, now);
	p->second_at = p->read_at = now;
	roster_read(p->o.roster);
	put_hello(p, now);
	if (!p->o.loads) {
		walked = walk_leases(p);
		if (walked)
			put_open(p, now, now);
		p->counts.unlisted += !walked || p->most != UINT64_MAX;
	}
	put_loads(p, true, now);
	flush(p, now);
}

/* ------------------------------------------------------------- the rest --- */

void
publish_hello(struct publish *p)
{
	p->soon = true;
}

int64_t
publish_work(struct publish *p, int64_t now)
{
	int64_t due;

	if (!p->o.loads)
		read_journal(p, now);
	if (p->hello_at == 0 || now - p->second_at >=
	    (p->soon ? LIST_AGAIN : SECOND))
		list_all(p, now);
	if (p->o.loads && now - p->loads_at >= LOADS_EACH) {
		put_news(p, now);
		put_loads(p, false, now);
		flush(p, now);
	}
	due = p->first_at + batch(p, now);
	if (!frame_empty(&p->frame) && due <= now)
		flush(p, now);
	if (p->o.loads)
		return p->loads_at + LOADS_EACH;
	if (!frame_empty(&p->frame) && due < now + p->pause)
		return due;
	return now + p->pause;
}

struct publish_counts
publish_counts(const struct publish *p)
{
	return p->counts;
}
