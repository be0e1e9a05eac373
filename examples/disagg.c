/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disagg.c - disaggregated serving: some workers prefill, others decode.
 *
 *                      +-- prefill-0 --+   KV cache    +-- decode-0 --+
 *   request -> router -+               +-------------->+-- decode-1 --+-> reply
 *                      +-- prefill-1 --+  is handed on +-- decode-2 --+
 *
 * All workers are in one index, each with its role. A request is routed twice,
 * and each stage has its own lease:
 *
 *   prefill   among prefill workers, by overlap and load. The lease ends at
 *             the first token: the prefill worker is free, and what it
 *             computed stays in its cache.
 *   decode    among decode workers, by load alone: no overlap is credited, no
 *             blocks count as shared, no prefill is counted. The lease ends
 *             with the output.
 *
 * The program simulates three chats with a common system prompt, with a clock
 * of its own. Each turn has three events, and every decision is printed.
 */
#include <kvroute.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

enum { SYSTEM = 1024, PREFILLS = 2, DECODES = 3, TURNS = 9, MOST = 4096 };
enum { PREFILL_RATE = 4000 }; /* tokens per second of the simulated engine */

enum event { ARRIVES, FIRST_TOKEN, ENDS, OVER };

struct turn {
	int64_t next;      /* time of the next event, in nanoseconds */
	uint32_t chat;
	uint32_t tokens;   /* of the prompt: the whole conversation so far */
	int64_t decoding;  /* seconds from the first token to the end */
	enum event event;  /* the next one */
	struct kvr_prompt *p;
	uint64_t lease;    /* of the current stage */
};
static struct turn turns[TURNS] = {
	{ .next = 0 * SECOND, .chat = 1, .tokens = 1100, .decoding = 5 },
	{ .next = 1 * SECOND, .chat = 2, .tokens = 3300, .decoding = 4 },
	{ .next = 1 * SECOND, .chat = 3, .tokens = 1060, .decoding = 12 },
	{ .next = 7 * SECOND, .chat = 2, .tokens = 3600, .decoding = 5 },
	{ .next = 8 * SECOND, .chat = 1, .tokens = 1800, .decoding = 6 },
	{ .next = 14 * SECOND, .chat = 2, .tokens = 3900, .decoding = 20 },
	{ .next = 15 * SECOND, .chat = 3, .tokens = 2400, .decoding = 3 },
	{ .next = 16 * SECOND, .chat = 1, .tokens = 2000, .decoding = 8 },
	{ .next = 20 * SECOND, .chat = 3, .tokens = 3000, .decoding = 2 }
};

static void
must(int e, const char *what)
{
	if (e == KVR_OK)
		return;
	fprintf(stderr, "%s: %s\n", what, kvr_strerror(e));
	exit(1);
}

/* The secret is fixed, so that ties are broken the same way in every run. */
static struct kvr *
make_index(void)
{
	struct kvr_options options;
	struct kvr *k;

	must(kvr_options_init(&options, sizeof(options)), "kvr_options_init");
	options.secret_bytes = KVR_SECRET_MIN;
	memset(options.secret, 42, sizeof(options.secret));
	must(kvr_new(&options, &k), "kvr_new");
	return k;
}

static void
add_workers(struct kvr *k, const char *kind, uint32_t role, int n)
{
	struct kvr_worker facts;
	char name[32];
	uint64_t id;
	int i;

	must(kvr_worker_init(&facts, sizeof(facts)), "kvr_worker_init");
	facts.role = role;
	for (i = 0; i < n; i++) {
		int length = snprintf(name, sizeof(name), "%s-%d", kind, i);

		must(kvr_worker_add(k, name, (size_t)length, &facts, &id),
		    "kvr_worker_add");
	}
}

/* Chats differ after the system prompt; a turn repeats the previous ones. */
static void
make_prompt(const struct kvr *k, struct turn *t)
{
	static uint32_t tokens[MOST];
	uint32_t i;

	for (i = 0; i < t->tokens; i++)
		tokens[i] = i < SYSTEM ? i : t->chat * 100000 + i;
	must(kvr_prompt_new(k, &t->p), "kvr_prompt_new");
	must(kvr_prompt_set_tokens(t->p, NULL, tokens, t->tokens),
	    "kvr_prompt_set_tokens");
}

/* One stage: chooses a worker, opens a lease and commits it. */
static void
reserve(struct kvr *k, struct turn *t, uint32_t stage, struct kvr_decision *d)
{
	struct kvr_request request;

	must(kvr_request_init(&request, sizeof(request)), "kvr_request_init");
	request.stage = stage;
	d->size = sizeof(*d);
	must(kvr_lease_open(k, t->p, &request, t->next, d), "kvr_lease_open");
	must(kvr_lease_commit(k, d->lease, t->next, 0), "kvr_lease_commit");
	t->lease = d->lease;
}

static void
tell(const struct kvr *k, const struct turn *t, const char *stage,
    const struct kvr_decision *d)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	char name[KVR_NAME_MAX];
	size_t length = 0;

	must(kvr_worker_stats_get(k, d->worker, &s), "kvr_worker_stats_get");
	must(kvr_worker_name(k, d->worker, name, sizeof(name), &length),
	    "kvr_worker_name");
	printf("%5.2f s  chat %" PRIu32 "  %-7s  %.*s  %5" PRIu64 " of %" PRIu64
	    " tokens cached; now %" PRIu64 " running, %" PRIu64 " blocks\n",
	    (double)t->next / 1e9, t->chat, stage, (int)length, name,
	    d->overlap_tokens, d->prompt_tokens, s.requests,
	    s.active_blocks + s.output_blocks);
}

static void
arrive(struct kvr *k, struct turn *t)
{
	struct kvr_decision d;
	uint64_t compute;

	make_prompt(k, t);
	reserve(k, t, KVR_STAGE_PREFILL, &d);
	tell(k, t, "prefill", &d);
	compute = d.prompt_tokens - d.overlap_tokens;
	t->next += (int64_t)compute * SECOND / PREFILL_RATE;
	t->event = FIRST_TOKEN;
}

static void
first_token(struct kvr *k, struct turn *t)
{
	struct kvr_decision d;

	must(kvr_lease_first_token(k, t->lease, t->next, 0),
	    "kvr_lease_first_token");
	must(kvr_lease_finish(k, t->lease, NULL, t->next, 0),
	    "kvr_lease_finish");
	reserve(k, t, KVR_STAGE_DECODE, &d);
	tell(k, t, "decode", &d);
	t->next += t->decoding * SECOND;
	t->event = ENDS;
}

static void
end(struct kvr *k, struct turn *t)
{
	must(kvr_lease_finish(k, t->lease, NULL, t->next, 0),
	    "kvr_lease_finish");
	kvr_prompt_free(t->p);
	t->event = OVER;
}

/* The turn with the earliest event; NULL: none is left. */
static struct turn *
next_turn(void)
{
	struct turn *t = NULL;
	int i;

	for (i = 0; i < TURNS; i++)
		if (turns[i].event != OVER &&
		    (t == NULL || turns[i].next < t->next))
			t = &turns[i];
	return t;
}

int
main(void)
{
	struct kvr *k = make_index();
	struct turn *t;

	add_workers(k, "prefill", KVR_ROLE_PREFILL, PREFILLS);
	add_workers(k, "decode", KVR_ROLE_DECODE, DECODES);
	while ((t = next_turn()) != NULL) {
		if (t->event == ARRIVES)
			arrive(k, t);
		else if (t->event == FIRST_TOKEN)
			first_token(k, t);
		else
			end(k, t);
	}
	kvr_free(k);
	return 0;
}
