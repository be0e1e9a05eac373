/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_peer.c - the choice, and the life of a request.
 *
 *     peer.init    body -> prompt, or the prompt of a body read before
 *     peer.get     usable peers (nginx) -> best peer (kvroute) -> take (nginx)
 *     headers      < 400: accepted; commit of a stream      | answer.c
 *     first event  first token                              | answer.c
 *     peer.free    finish with the engine's report; or abort, if the peer did
 *                  not accept the request or the status was >= 400
 *
 * nginx decides which peers are usable (down, backup, max_fails, max_conns,
 * already tried) and takes the chosen one: all other peers are marked as tried
 * while the stock method looks for one. So weights, failures and connections
 * are counted only by nginx. Peers may come and go between any two of these
 * calls: see follow.c.
 *
 *     up->known    [ first | first | first | backup ]   updated for a choice
 *     rrp.tried      bits of `first`, or, once none is left there, `backup`
 *
 * Requests without a prediction go to the peer with the fewest connections by
 * weight. A drained server gets them only if there is no other. Those that need
 * what one peer keeps go there or, while it is busy, nowhere.
 *
 * Nothing here waits for the region's lock: if it is held, the request is
 * routed without a prediction.
 */
#include "ngx_http_kvroute.h"

enum { WORD = 8 * sizeof(uintptr_t), LOOKS = 4 };

/* ----------------------------------------------------------------- take --- */

static ngx_uint_t
words_of(ngx_uint_t peers)
{
	return (peers + WORD - 1) / WORD;
}

static bool
is_called(const ngx_http_kvroute_known_t *known, const ngx_str_t *name)
{
	return known->name_len == name->len &&
	    ngx_memcmp(known->name, name->data, name->len) == 0;
}

/* Its position among `n` first of up->known; n: none. */
static ngx_uint_t
peer_called(const ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name,
    ngx_uint_t n)
{
	ngx_uint_t i;

	for (i = 0; i < n && !is_called(&up->known[i], name); i++)
		continue;
	return i;
}

ngx_str_t
ngx_http_kvroute_taken_name(const ngx_http_kvroute_ctx_t *ctx)
{
	const ngx_str_t *names = ctx->taken.elts;
	ngx_str_t none = ngx_null_string;

	return ctx->taken.nelts == 0 ? none : names[ctx->taken.nelts - 1];
}

bool
ngx_http_kvroute_has_tried(const ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i)
{
	const ngx_str_t *names = ctx->taken.elts;
	ngx_uint_t n;

	for (n = 0; n < ctx->taken.nelts; n++) {
		if (is_called(&ctx->up->known[i], &names[n]))
			return true;
	}
	return false;
}

/* Once nginx has taken it back, a peer may be freed. */
static void
name_keep(ngx_http_kvroute_ctx_t *ctx)
{
	const ngx_str_t *name = &ctx->rrp.current->name;
	ngx_str_t *copy = ngx_array_push(&ctx->taken);

	if (copy == NULL)
		return;
	copy->len = name->len;
	copy->data = ngx_pstrdup(ctx->request->pool, &ctx->rrp.current->name);
	if (copy->data == NULL)
		copy->len = 0;
}

static ngx_int_t
stock_get(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_int_t rc = ngx_http_upstream_get_round_robin_peer(pc, &ctx->rrp);

	if (rc == NGX_OK)
		name_keep(ctx);
	return rc;
}

/*
 * The bits of tried peers are about those of up->known, also when these are
 * others than at the latest try. A spare word: the backups may be more by now.
 */
static bool
tried_fit(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	const ngx_str_t *names = ctx->taken.elts;
	ngx_uint_t words = words_of(up->n_peers) + 1, i, at;
	uintptr_t *place = ctx->rrp.tried;

	if (words > ctx->words) {
		place = ngx_palloc(ctx->request->pool,
		    2 * words * sizeof(uintptr_t));
		if (place == NULL)
			return false;
		ctx->words = words;
		ctx->tried = place + words;
	}
	if (!ngx_http_kvroute_queue_make(ctx, ctx->words * sizeof(uintptr_t)))
		return false;
	ngx_memzero(place, ctx->words * sizeof(uintptr_t));
	ctx->rrp.tried = place;
	ctx->rrp.peers = up->upstream->peer.data;
	ctx->generation = up->generation;
#if (NGX_HTTP_KVROUTE_RESOLVE)
	ctx->rrp.config = up->generation;
#endif
	for (i = 0; i < ctx->taken.nelts; i++) {
		at = peer_called(up, &names[i], up->n_first);
		if (at < up->n_first)
			place[at / WORD] |= (uintptr_t)1 << (at % WORD);
	}
	return true;
}

/* Switches to the backups when no first peer is left; never back. */
static void
backups_use(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_uint_t i;

	for (i = 0; i < ctx->up->n_first; i++)
		ctx->up->known[i].usable = false;
	ctx->rrp.peers = ctx->rrp.peers->next;
	ngx_memzero(ctx->rrp.tried, ctx->words * sizeof(uintptr_t));
}

/*
 * Takes peer i of up->known by the stock method, which sees no other. NGX_BUSY:
 * it became unusable meanwhile.
 */
static ngx_int_t
take_peer(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, ngx_uint_t i)
{
	ngx_http_kvroute_known_t *known = &ctx->up->known[i];
	ngx_http_upstream_rr_peers_t *peers;
	size_t bytes;
	ngx_int_t rc;

	if (i >= ctx->up->n_first) {
		if (ctx->rrp.peers == ctx->up->upstream->peer.data)
			backups_use(ctx);
		i -= ctx->up->n_first;
	}
	peers = ctx->rrp.peers;
	bytes = ctx->words * sizeof(uintptr_t);
	ngx_memcpy(ctx->tried, ctx->rrp.tried, bytes);
	ngx_memset(ctx->rrp.tried, 0xff, bytes);
	ctx->rrp.tried[i / WORD] &= ~((uintptr_t)1 << (i % WORD));
	rc = stock_get(ctx, pc);
	/* If that peer was not available, a backup may have been found. */
	if (ctx->rrp.peers != peers && rc == NGX_OK)
		return rc;
	ctx->rrp.peers = peers;
	ngx_memcpy(ctx->rrp.tried, ctx->tried, bytes);
	ctx->rrp.tried[i / WORD] |= (uintptr_t)1 << (i % WORD);
	known->usable = rc != NGX_BUSY;
	return rc;
}

static bool
less_loaded(const ngx_http_kvroute_known_t *a,
    const ngx_http_kvroute_known_t *b)
{
	return a->conns * b->weight < b->conns * a->weight;
}

/* Of peers from..to - 1, ties in rotation; `to`: none. */
static ngx_uint_t
least_of(ngx_http_kvroute_srv_conf_t *up, ngx_uint_t from, ngx_uint_t to,
    bool closed, bool held)
{
	ngx_uint_t n = to - from, i, at, best = to;

	for (i = 0; i < n; i++) {
		at = from + (up->turn + i) % n;
		if (up->known[at].usable && up->known[at].closed == closed &&
		    up->known[at].held == held && (best == to ||
		    less_loaded(&up->known[at], &up->known[best])))
			best = at;
	}
	return best;
}

static ngx_uint_t
least_first(ngx_http_kvroute_srv_conf_t *up, bool closed)
{
	ngx_uint_t best = least_of(up, 0, up->n_first, closed, false);

	return best < up->n_first ? best :
	    least_of(up, 0, up->n_first, closed, true);
}

/* The fewest connections by weight; n_peers: none. */
static ngx_uint_t
least_loaded(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t closed, best;

	up->turn++;
	/* Where requests can wait, they do not go to a drained one. */
	for (closed = 0; closed <= (ngx_http_kvroute_all_full(up) ? 0 : 1);
	    closed++) {
		best = least_first(up, closed == 1);
		if (best < up->n_first)
			return best;
		best = least_of(up, up->n_first, up->n_peers, closed == 1,
		    false);
		if (best < up->n_peers)
			return best;
	}
	return up->n_peers;
}

/* As the stock method does when no peer is left. */
static ngx_int_t
take_none(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	pc->name = ctx->rrp.peers->name;
	return NGX_BUSY;
}

static ngx_int_t
take_least(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_uint_t i;
	ngx_int_t rc;

	while ((i = least_loaded(ctx->up)) < ctx->up->n_peers) {
		rc = take_peer(ctx, pc, i);
		if (rc != NGX_BUSY)
			return rc;
	}
	if (ngx_http_kvroute_all_full(ctx->up))
		return take_none(ctx, pc);
	/* None: the stock method handles that. */
	ngx_memset(ctx->rrp.tried, 0xff, ctx->words * sizeof(uintptr_t));
	return stock_get(ctx, pc);
}

/* --------------------------------------------------------------- choice --- */

/* Appends the workers of one peer, whose ids are known, to the n there are. */
static ngx_uint_t
allowed_add(ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known, ngx_uint_t n, bool *missing)
{
	uint32_t rank;

	for (rank = 0; rank < known->ranks; rank++) {
		if (known->ids[rank] != 0)
			up->allowed[n++] = known->ids[rank];
		else
			*missing = true;
	}
	return n;
}

/* Of the first peers those that are held back only if there is no other. */
static ngx_uint_t
allowed_first(ngx_http_kvroute_srv_conf_t *up, bool *missing)
{
	ngx_uint_t i, n = 0;
	int held;

	for (held = 0; held <= 1 && n == 0 && !*missing; held++)
		for (i = 0; i < up->n_first; i++)
			if (up->known[i].usable && up->known[i].held == held)
				n = allowed_add(up, &up->known[i], n, missing);
	return n;
}

/*
 * Collects the usable workers in up->allowed and returns their number. A worker
 * is left out if its lookup found the lock held.
 */
static ngx_uint_t
allowed_list(ngx_http_kvroute_srv_conf_t *up, bool *missing)
{
	ngx_uint_t i, n;

	*missing = false;
	n = allowed_first(up, missing);
	for (i = up->n_first; i < up->n_peers; i++) {
		if (i == up->n_first && (n > 0 || *missing))
			break;
		if (up->known[i].usable)
			n = allowed_add(up, &up->known[i], n, missing);
	}
	return n;
}

static void
request_make(ngx_http_kvroute_ctx_t *ctx, struct kvr_request *request)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);

	(void)kvr_request_init(request, sizeof(*request));
	request->owner = ctx->up->owner;
	request->flags = KVR_NOWAIT |
	    (ctx->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	request->share = ngx_http_kvroute_share_of(ctx);
	/* A probe says nothing of where its session is. */
	if (ctx->session == 0 || ctx->probe)
		return;
	request->affinity = ctx->session;
	request->affinity_mode = (uint32_t)loc->affinity_mode;
	request->affinity_ttl = (int64_t)loc->affinity_ttl * 1000000;
}

static enum reason
reason_of(int error)
{
	switch (error) {
	case KVR_EBUSY:
		return REASON_BUSY;
	case KVR_ENOWORKER:
	case KVR_EALLOVERLOADED:
		return REASON_NO_WORKER;
	default:
		return REASON_FAILED;
	}
}

/* The best usable worker; booked unless this is only a query. */
static int
worker_ask(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	struct kvr_prompt *prompt;
	struct kvr_decision *d = &ctx->decision;
	struct kvr_request request;
	bool missing;
	ngx_uint_t n = allowed_list(ctx->up, &missing);
	int error;

	if (n == 0)
		return missing ? KVR_EBUSY : KVR_ENOWORKER;
	if (!ngx_http_kvroute_prompt_make(ctx))
		return KVR_ENOMEM;
	prompt = ctx->reader->prompt;
	error = kvr_prompt_allow(prompt, ctx->up->allowed, n);
	if (error != KVR_OK)
		return error;
	request_make(ctx, &request);
	d->size = sizeof(*d);
	return book ? kvr_lease_open(ctx->up->kvr, prompt, &request, now, d) :
	    kvr_route(ctx->up->kvr, prompt, &request, now, d);
}

static bool
worker_choose(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	int error = worker_ask(ctx, now, book);

	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
		return false;
	}
	ctx->lease = ctx->decision.lease;
	ctx->worker = ctx->decision.worker;
	ctx->reason = (enum reason)ctx->decision.reason;
	if (ctx->decision.affinity != KVR_AFFINITY_NONE)
		ctx->affinity = ctx->decision.affinity;
	ngx_http_kvroute_trace_keep(ctx);
	return true;
}

/*
 * Takes ctx->worker. If it became unusable meanwhile, a backup may have been
 * found instead: then it is not `current`.
 */
static ngx_int_t
take_worker(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    bool *current)
{
	ngx_http_kvroute_known_t *known = ctx->up->known;
	ngx_uint_t i;
	uint32_t rank;
	ngx_int_t rc;

	i = ngx_http_kvroute_peer_of(ctx->up, ctx->worker, &rank);
	rc = i < ctx->up->n_peers && known[i].usable ? take_peer(ctx, pc, i) :
	    NGX_BUSY;
	*current = rc == NGX_OK && is_called(&known[i],
	    &ctx->rrp.current->name);
	if (*current)
		ctx->rank = known[i].named ? (ngx_int_t)rank : -1;
	return rc;
}

static ngx_int_t
take_best(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	bool current;
	ngx_int_t rc;

	if (!worker_choose(ctx, now, true))
		return take_least(ctx, pc);
	rc = take_worker(ctx, pc, &current);
	if (current)
		return rc;
	ngx_http_kvroute_end(ctx, false);
	ctx->worker = 0;
	ctx->reason = REASON_NO_WORKER;
	ctx->affinity = KVR_AFFINITY_NONE;
	return rc == NGX_BUSY ? take_least(ctx, pc) : rc;
}

/* --------------------------------------------------------------- state --- */

/* The place is given, so a lease that cannot be had changes nothing. */
static void
kept_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision *d = &ctx->decision;
	struct kvr_request request;

	if (ctx->opinion != REASON_COST || !ngx_http_kvroute_prompt_make(ctx))
		return;
	request_make(ctx, &request);
	d->size = sizeof(*d);
	if (kvr_lease_open_on(ctx->up->kvr, ctx->reader->prompt, &request,
	    ctx->worker, now, d) != KVR_OK)
		return;
	ctx->lease = d->lease;
	ngx_http_kvroute_trace_keep(ctx);
}

/* To the worker that keeps what the request needs. */
static ngx_int_t
take_kept(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	bool current;
	uint32_t rank;
	ngx_int_t rc;

	if (ctx->reason == REASON_STATE_BUSY)
		return take_none(ctx, pc);
	if (ctx->worker == 0)
		return take_least(ctx, pc);
	rc = take_worker(ctx, pc, &current);
	if (current) {
		kept_book(ctx, now);
		return rc;
	}
	/* A backup that was found instead is given back. */
	if (rc == NGX_OK) {
		ngx_http_upstream_free_round_robin_peer(pc, &ctx->rrp, 0);
		pc->sockaddr = NULL;
	}
	ngx_http_kvroute_session_busy(ctx,
	    ngx_http_kvroute_peer_of(ctx->up, ctx->worker, &rank));
	return take_none(ctx, pc);
}

/* Its position in up->known; n_peers: none. */
static ngx_uint_t
taken_peer(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_str_t name = ngx_http_kvroute_taken_name(ctx);

	return peer_called(ctx->up, &name, ctx->up->n_peers);
}

/* ---------------------------------------------------------------- probe --- */

/* To a gray server, whatever is cached; NGX_BUSY: the request is none. */
static ngx_int_t
take_probe(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = ngx_http_kvroute_health_probe(ctx, now);
	ngx_http_kvroute_known_t *known = &up->known[i];
	uint32_t rank;
	ngx_int_t rc;

	if (i == up->n_peers)
		return NGX_BUSY;
	rank = (uint32_t)(up->turn++ % known->ranks);
	rc = take_peer(ctx, pc, i);
	/* Another process may have made it unusable: it is a backup. */
	if (rc == NGX_BUSY || taken_peer(ctx) != i)
		return rc;
	ctx->probe = true;
	ctx->reason = REASON_PROBE;
	ctx->worker = known->ids[rank];
	ctx->rank = known->named ? (ngx_int_t)rank : -1;
	if (ctx->worker != 0)
		kept_book(ctx, now);
	return rc;
}

/* --------------------------------------------------------------- shadow --- */

static void
shadow_count(ngx_http_kvroute_ctx_t *ctx, const struct kvr_decision *taken)
{
	const struct kvr_decision *wanted = &ctx->decision;
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	ngx_http_kvroute_count(up, COUNT_SHADOW, 1);
	if (wanted->worker == taken->worker)
		ngx_http_kvroute_count(up, COUNT_SHADOW_SAME, 1);
	ngx_http_kvroute_count(up, COUNT_SHADOW_BLOCKS, wanted->prompt_blocks);
	ngx_http_kvroute_count(up, COUNT_SHADOW_WANTED, wanted->overlap_blocks);
	ngx_http_kvroute_count(up, COUNT_SHADOW_TAKEN, taken->overlap_blocks);
}

/*
 * Which of several ranks it was, only the engine knows; but each of them
 * reaches what it keeps.
 */
uint64_t
ngx_http_kvroute_taken_worker(ngx_http_kvroute_ctx_t *ctx, uint64_t draw)
{
	const ngx_http_kvroute_known_t *known;
	uint64_t id = 0;
	ngx_uint_t i;
	uint32_t n;

	if (ctx->worker != 0 && ctx->up->shadow == NGX_HTTP_KVROUTE_CHOOSE)
		return ctx->worker;
	i = taken_peer(ctx);
	if (i == ctx->up->n_peers)
		return 0;
	known = &ctx->up->known[i];
	for (n = 0; n < known->ranks && id == 0; n++)
		id = known->ids[(draw + n) % known->ranks];
	return id;
}

/*
 * Books the request on the worker that was used. Which of an engine's ranks
 * that was, it does not tell: the best of them, as if it had been asked for.
 */
static int
taken_open(ngx_http_kvroute_ctx_t *ctx, int64_t now, struct kvr_decision *d)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_prompt *prompt = ctx->reader->prompt;
	ngx_uint_t i = taken_peer(ctx), n;
	struct kvr_request request;
	bool missing = false;
	int error;

	if (i == up->n_peers)
		return KVR_EWORKER;
	request_make(ctx, &request);
	d->size = sizeof(*d);
	if (up->known[i].ranks == 1)
		return kvr_lease_open_on(up->kvr, prompt, &request,
		    up->known[i].ids[0], now, d);
	n = allowed_add(up, &up->known[i], 0, &missing);
	if (n == 0)
		return KVR_EBUSY;
	error = kvr_prompt_allow(prompt, up->allowed, n);
	return error != KVR_OK ? error :
	    kvr_lease_open(up->kvr, prompt, &request, now, d);
}

/* Records the request on the worker that was used, as if chosen. */
static void
shadow_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision d;
	int error = taken_open(ctx, now, &d);

	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
		return;
	}
	shadow_count(ctx, &d);
	ctx->lease = d.lease;
	/* The report is compared with the prediction for that worker. */
	ctx->decision.overlap_tokens = d.overlap_tokens;
}

static ngx_int_t
take_shadowed(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    int64_t now)
{
	bool sure = ctx->opinion == REASON_COST &&
	    worker_choose(ctx, now, false);
	ngx_int_t rc = ctx->up->shadow == NGX_HTTP_KVROUTE_ROUND_ROBIN ?
	    stock_get(ctx, pc) : take_least(ctx, pc);

	if (sure && rc == NGX_OK)
		shadow_book(ctx, now);
	return rc;
}

/* ------------------------------------------------------------ get, free --- */

/* Without a session or state that is somewhere. */
static ngx_int_t
take_any(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	ngx_int_t rc = take_probe(ctx, pc, now);

	if (rc != NGX_BUSY)
		return rc;
	return ctx->opinion == REASON_COST ? take_best(ctx, pc, now) :
	    take_least(ctx, pc);
}

/* The peers are known. */
static ngx_int_t
take_one(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	bool chooses = ctx->up->shadow == NGX_HTTP_KVROUTE_CHOOSE, found;

	ngx_http_kvroute_queue_yield(ctx);
	ngx_http_kvroute_health_look(ctx, now);
	found = chooses && ngx_http_kvroute_session_find(ctx, now);
	if ((!found || ctx->reason == REASON_STATE_LOST) &&
	    !ngx_http_kvroute_queue_lets(ctx)) {
		ctx->reason = REASON_NO_WORKER;
		ctx->affinity = KVR_AFFINITY_NONE;
		return NGX_BUSY;
	}
	if (!chooses)
		return take_shadowed(ctx, pc, now);
	return found ? take_kept(ctx, pc, now) : take_any(ctx, pc, now);
}

/* Once, by the peers as they are now. */
static ngx_int_t
take_once(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	ctx->reason = ctx->opinion;
	ctx->worker = 0;
	ctx->rank = -1;
	ctx->affinity = KVR_AFFINITY_NONE;
	ngx_memzero(&ctx->decision, sizeof(ctx->decision));
	ctx->probe = false;
	ngx_http_kvroute_peers_follow(up, ctx->request->connection->log);
	if (ctx->generation != up->generation && !tried_fit(ctx))
		return NGX_ERROR;
	ngx_http_kvroute_queue_keep(ctx);
	ngx_http_kvroute_peers_look(ctx);
	return take_one(ctx, pc, now);
}

/* NGX_AGAIN: the request waits, and this is called again; see queue.c. */
static ngx_int_t
peer_get(ngx_peer_connection_t *pc, void *data)
{
	ngx_http_kvroute_ctx_t *ctx = data;
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	int64_t began = kvr_clock_now();
	ngx_uint_t looks = LOOKS;
	ngx_int_t rc;

	if (!ctx->wait.waits && ctx->tries++ > 0)
		ngx_http_kvroute_count(up, COUNT_RETRIES, 1);
	do /* the peers may change meanwhile: then nginx has none */
		rc = take_once(ctx, pc, began);
	while (rc == NGX_BUSY && ngx_http_kvroute_peers_changed(up) &&
	    --looks > 0);
	if (rc == NGX_BUSY)
		rc = ngx_http_kvroute_queue_wait(ctx, pc);
	if (rc == NGX_OK && up->n_fleet > 0)
		ngx_http_kvroute_health_sent(ctx, taken_peer(ctx), began);
	ngx_http_kvroute_rank_write(ctx);
	if (rc != NGX_AGAIN) {
		(void)ngx_atomic_fetch_add(&up->shared->reasons[ctx->reason],
		    1);
		ngx_http_kvroute_session_count(ctx);
	}
	ctx->ns += ngx_http_kvroute_spent(ctx->up, began);
	return rc;
}

/*
 * Was the connection refused? Then the engine is gone, and its cache with it. A
 * broken keepalive connection is no evidence, nor is a timeout, nor a local
 * failure to connect. With TLS, failures after the connection look the same.
 */
static bool
was_refused(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    ngx_uint_t state, ngx_err_t error)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	if ((state & NGX_PEER_FAILED) == 0 || pc->cached || u->ssl ||
	    u->state == NULL || u->state->connect_time != (ngx_msec_t)-1)
		return false;
	if (pc->connection == ctx->wait.hold && pc->connection != NULL)
		error = ctx->wait.error;
	if (pc->connection == NULL || pc->connection == ctx->wait.hold)
		return error == NGX_ECONNREFUSED || error == NGX_ENOENT;
	return !pc->connection->write->timedout;
}

/* False: reset before and not used since, so there is nothing to reset. */
static bool
worker_refused(ngx_http_kvroute_srv_conf_t *up, uint64_t worker)
{
	ngx_http_kvroute_late_t write;
	struct kvr_worker_stats s;

	s.size = sizeof(s);
	if (worker == 0 || (kvr_worker_stats(up->kvr, worker, &s) == KVR_OK &&
	    s.entries == 0))
		return false;
	ngx_memzero(&write, sizeof(write));
	write.what = NGX_HTTP_KVROUTE_RESET;
	write.id = worker;
	(void)ngx_http_kvroute_write(up, &write);
	return true;
}

/* All ranks are behind the address. */
static void
refusal_note(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_str_t name = ngx_http_kvroute_taken_name(ctx);
	ngx_uint_t i = taken_peer(ctx);
	bool any = false;
	uint32_t rank;

	if (up->kvr == NULL || i == up->n_peers)
		return;
	for (rank = 0; rank < up->known[i].ranks; rank++)
		any |= worker_refused(up, up->known[i].ids[rank]);
	if (!any)
		return;
	ngx_log_error(NGX_LOG_NOTICE, ctx->request->connection->log, 0,
	    "kvroute: worker \"%V\" refuses connections: its record "
	    "is reset", &name);
	ngx_http_kvroute_count(up, COUNT_REFUSED, 1);
}

static bool
was_taken(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t state)
{
	ngx_uint_t status = ctx->request->upstream->headers_in.status_n;

	return (state & (NGX_PEER_FAILED | NGX_PEER_NEXT)) == 0 &&
	    status > 0 && status < 400 &&
	    !ngx_http_kvroute_cached(ctx->request);
}

/*
 * The engine is done. Its response may not have passed our filter yet: it may
 * be in a file for a slow client, and the last event of a stripped stream waits
 * for the end. Then the request ends when all of it has passed.
 */
static bool
to_pass(ngx_http_kvroute_ctx_t *ctx)
{
	return ctx->answer != NULL && !ctx->last &&
	    (ctx->strip || ctx->request->upstream->buffering);
}

/*
 * Where there is one server nginx tries no other one. If the peers are others
 * than at the choice, that one is new to this request.
 */
static void
give_back(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    ngx_uint_t state)
{
	ngx_uint_t tries = pc->tries;

	ngx_http_upstream_free_round_robin_peer(pc, &ctx->rrp, state);
	if (tries > 1 && pc->tries == 0 &&
	    (ctx->generation != ctx->up->generation ||
	    ngx_http_kvroute_peers_changed(ctx->up)))
		pc->tries = tries - 1;
}

static void
peer_free(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
	ngx_err_t error = ngx_socket_errno;
	ngx_http_kvroute_ctx_t *ctx = data;
	int64_t began = kvr_clock_now();
	bool taken = was_taken(ctx, state);
	ngx_uint_t told = ctx->rrp.current == NULL ? state :
	    ngx_http_kvroute_health_free(ctx, pc, state);
	ngx_str_t name = ngx_http_kvroute_taken_name(ctx);

	if (taken && to_pass(ctx))
		ctx->ending = true;
	else
		ngx_http_kvroute_end(ctx, taken);
	if (ctx->rrp.current != NULL && was_refused(ctx, pc, state, error))
		refusal_note(ctx);
	if (ctx->rrp.current != NULL && (told & NGX_PEER_FAILED))
		ngx_http_kvroute_trouble(ctx->up, &name);
	ctx->ns += ngx_http_kvroute_spent(ctx->up, began);
	give_back(ctx, pc, told);
	ngx_http_kvroute_queue_freed(ctx->up);
}

/* --------------------------------------------------------------- begin --- */

/* The request is over, in any way. */
static void
ctx_cleanup(void *data)
{
	ngx_http_kvroute_ctx_t *ctx = data;

	/* nginx reads on from a client that waits, so it knows. */
	if (ctx->request->connection->error)
		ngx_http_kvroute_count(ctx->up, COUNT_CLIENTS_LEFT, 1);
	if (ctx->up->kvr != NULL)
		ngx_http_kvroute_end(ctx, ctx->headers);
	ngx_http_kvroute_request_timed(ctx);
	ngx_http_kvroute_prompt_leave(ctx);
	ngx_http_kvroute_answer_leave(ctx);
	ngx_http_kvroute_extend_leave(ctx);
}

static ngx_http_kvroute_ctx_t *
ctx_make(ngx_http_request_t *r, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_pcalloc(r->pool, sizeof(*ctx));
	ngx_pool_cleanup_t *cln;

	if (ctx == NULL)
		return NULL;
	ctx->request = r;
	ctx->up = up;
	ctx->rank = -1;
	cln = ngx_pool_cleanup_add(r->pool, 0);
	if (cln == NULL || ngx_array_init(&ctx->taken, r->pool, 2,
	    sizeof(ngx_str_t)) != NGX_OK)
		return NULL;
	cln->handler = ctx_cleanup;
	cln->data = ctx;
	return ctx;
}

static ngx_int_t
peer_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
	ngx_http_kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_upstream_kvroute_module);
	int64_t began = kvr_clock_now();
	ngx_http_kvroute_ctx_t *ctx = ctx_make(r, up);

	if (ctx == NULL)
		return NGX_ERROR;
	loc->seen = up;
	r->upstream->peer.data = &ctx->rrp;
	ngx_http_kvroute_peers_follow(up, r->connection->log);
	if (up->init_stock(r, us) != NGX_OK || !tried_fit(ctx))
		return NGX_ERROR;
	r->upstream->peer.get = peer_get;
	r->upstream->peer.free = peer_free;
	ngx_http_set_ctx(r, ctx, ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_body_read(ctx);
	ngx_http_kvroute_session_read(ctx);
	if (ngx_http_kvroute_request_edit(ctx) != NGX_OK ||
	    ngx_http_kvroute_rank_prepare(ctx) != NGX_OK)
		return NGX_ERROR;
	ctx->ns += ngx_http_kvroute_spent(ctx->up, began);
	return NGX_OK;
}

ngx_int_t
ngx_http_kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
	ngx_http_kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);

	if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK)
		return NGX_ERROR;
	up->init_stock = us->peer.init;
	us->peer.init = peer_init;
	if (ngx_http_kvroute_servers_settle(cf, up) != NGX_OK)
		return NGX_ERROR;
	ngx_http_kvroute_queue_check(cf, up);
	return ngx_http_kvroute_ranks_check(cf, up);
}
