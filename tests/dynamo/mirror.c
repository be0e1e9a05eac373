/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mirror.c - the library as a filter, for parity.py, which gives each request
 * to Dynamo's router and to a region of this.
 *
 *   mirror WORKERS BLOCK TTL_MS [events]
 *
 *   scope ADAPTER SALT       of the prompts and events that follow; or -
 *   prompt N TOKEN...        the one that the next commands are about
 *   hashes                   prints the local hash of each block
 *   workers                  prints the worker that the library chooses; and
 *                            for each that there is: its number, overlap,
 *                            prefill tokens, decode blocks, those that the
 *                            prompt would add, requests, cost
 *   book W REQUEST           the prompt goes to worker W
 *   first REQUEST            it has its first token
 *   end REQUEST
 *   stored W SEQ PARENT N HASH... TOKEN...   PARENT may be 0
 *   removed W SEQ N HASH...
 *   leave W, join W
 */
#include <kvroute.h>
#include <kvroute_events.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORKERS_MAX = 64, REQUESTS_MAX = 100000, TOKENS_MAX = 1 << 16,
	HASHES_MAX = 1 << 12, NAME_MAX_BYTES = 64
};

static struct kvr *region;
static struct kvr_prompt *prompt;
static struct kvr_scope scope;
static struct kvr_worker facts;
static uint64_t workers[WORKERS_MAX];
static uint64_t n_workers, block;
static uint64_t leases[REQUESTS_MAX];
static uint32_t tokens[TOKENS_MAX];
static uint64_t hashes[HASHES_MAX];

static void
must(int status, const char *call)
{
	if (status != KVR_OK)
		errx(1, "%s: %s", call, kvr_strerror(status));
}

static uint64_t
read_below(uint64_t limit)
{
	uint64_t n;

	if (scanf("%" SCNu64, &n) != 1 || n >= limit)
		errx(1, "no number below %" PRIu64, limit);
	return n;
}

static void
read_tokens(uint64_t n)
{
	uint64_t i;

	if (n > TOKENS_MAX)
		errx(1, "too many tokens");
	for (i = 0; i < n; i++)
		tokens[i] = (uint32_t)read_below(UINT64_C(1) << 32);
}

static void
set_part(enum kvr_scope_part part)
{
	char text[NAME_MAX_BYTES];

	if (scanf("%63s", text) != 1)
		errx(1, "no part of a scope");
	must(kvr_scope_set(region, &scope, part, text,
	    strcmp(text, "-") == 0 ? 0 : strlen(text)), "kvr_scope_set");
}

static void
set_scope(void)
{
	must(kvr_scope_init(&scope, sizeof(scope)), "kvr_scope_init");
	set_part(KVR_SCOPE_ADAPTER);
	set_part(KVR_SCOPE_SALT);
}

static void
set_prompt(void)
{
	uint64_t n = read_below(TOKENS_MAX + 1);

	read_tokens(n);
	must(kvr_prompt_set_tokens(prompt, &scope, tokens, n),
	    "kvr_prompt_set_tokens");
}

static void
print_hashes(void)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t local, sequence;
	uint32_t i;

	must(kvr_prompt_info_get(prompt, &info), "kvr_prompt_info_get");
	for (i = 0; i < info.blocks; i++) {
		must(kvr_prompt_hash(prompt, i, &local, &sequence),
		    "kvr_prompt_hash");
		printf("%" PRIu64 " ", local);
	}
	printf("\n");
}

static void
print_choice(void)
{
	struct kvr_decision chosen = { .size = sizeof(chosen) };
	uint64_t w = 0;

	must(kvr_route(region, prompt, NULL, kvr_clock_now(), &chosen),
	    "kvr_route");
	while (w < n_workers && workers[w] != chosen.worker)
		w++;
	printf("%" PRIu64 " ", w);
}

static void
print_workers(void)
{
	struct kvr_candidate all[WORKERS_MAX];
	size_t n, i;
	uint64_t w;

	print_choice();
	must(kvr_candidates(region, prompt, NULL, kvr_clock_now(), all,
	    sizeof(*all), WORKERS_MAX, &n), "kvr_candidates");
	for (w = 0; w < n_workers; w++)
		for (i = 0; i < n; i++)
			if (all[i].worker == workers[w])
				printf("%" PRIu64 " %u %" PRIu64 " %" PRIu64
				    " %u %" PRIu64 " %.17g ", w,
				    all[i].overlap_blocks,
				    all[i].prefill_tokens,
				    all[i].decode_blocks,
				    all[i].new_decode_blocks, all[i].requests,
				    all[i].cost);
	printf("\n");
}

static void
book_request(void)
{
	struct kvr_decision chosen = { .size = sizeof(chosen) };
	uint64_t w = read_below(n_workers), request = read_below(REQUESTS_MAX);

	must(kvr_lease_open_on(region, prompt, NULL, workers[w],
	    kvr_clock_now(), &chosen), "kvr_lease_open_on");
	must(kvr_lease_commit(region, chosen.lease, kvr_clock_now(), 0),
	    "kvr_lease_commit");
	leases[request] = chosen.lease;
}

static void
take_first_token(void)
{
	must(kvr_lease_first_token(region, leases[read_below(REQUESTS_MAX)],
	    kvr_clock_now(), 0), "kvr_lease_first_token");
}

static void
end_request(void)
{
	must(kvr_lease_finish(region, leases[read_below(REQUESTS_MAX)], NULL,
	    kvr_clock_now(), 0), "kvr_lease_finish");
}

/* A batch of one event, whose hashes have been read. */
static void
apply_event(uint64_t worker, uint64_t seq, struct kvr_event *event)
{
	struct kvr_event_batch batch = { .size = sizeof(batch), .seq = seq };
	struct kvr_event_result result = { .size = sizeof(result) };

	event->block_tokens = (uint32_t)block;
	event->scope = scope;
	must(kvr_events_apply(region, worker, &batch, event, sizeof(*event), 1,
	    hashes, event->hashes, tokens, event->tokens, kvr_clock_now(), 0,
	    &result), "kvr_events_apply");
	if (result.outcome != KVR_EVENTS_APPLIED ||
	    result.state != KVR_EVENTS_COMPLETE || result.orphans > 0)
		errx(1, "batch %" PRIu64 ": outcome %u, state %u, %" PRIu64
		    " orphans", seq, result.outcome, result.state,
		    result.orphans);
}

static void
read_hashes(struct kvr_event *event)
{
	uint64_t i;

	event->hashes = read_below(HASHES_MAX + 1);
	for (i = 0; i < event->hashes; i++)
		hashes[i] = read_below(UINT64_MAX);
}

static void
store_blocks(void)
{
	uint64_t w = read_below(n_workers), seq = read_below(UINT64_MAX);
	struct kvr_event event;

	must(kvr_event_init(&event, sizeof(event)), "kvr_event_init");
	event.kind = KVR_EVENT_STORED;
	event.parent = read_below(UINT64_MAX);
	event.flags = event.parent != 0 ? KVR_EVENT_PARENT : 0;
	read_hashes(&event);
	event.tokens = event.hashes * block;
	read_tokens(event.tokens);
	apply_event(workers[w], seq, &event);
}

static void
remove_blocks(void)
{
	uint64_t w = read_below(n_workers), seq = read_below(UINT64_MAX);
	struct kvr_event event;

	must(kvr_event_init(&event, sizeof(event)), "kvr_event_init");
	event.kind = KVR_EVENT_REMOVED;
	read_hashes(&event);
	apply_event(workers[w], seq, &event);
}

static void
remove_worker(void)
{
	uint64_t w = read_below(n_workers);

	must(kvr_worker_remove(region, workers[w]), "kvr_worker_remove");
	workers[w] = 0;
}

static void
add_worker(uint64_t w)
{
	char name[NAME_MAX_BYTES];
	int n = snprintf(name, sizeof(name), "worker %" PRIu64, w);

	must(kvr_worker_add(region, name, (size_t)n, &facts, &workers[w]),
	    "kvr_worker_add");
}

static void
join_worker(void)
{
	add_worker(read_below(n_workers));
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "scope", set_scope },
	{ "prompt", set_prompt },
	{ "hashes", print_hashes },
	{ "workers", print_workers },
	{ "book", book_request },
	{ "first", take_first_token },
	{ "end", end_request },
	{ "stored", store_blocks },
	{ "removed", remove_blocks },
	{ "leave", remove_worker },
	{ "join", join_worker },
};

static void
run_command(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0) {
			commands[i].run();
			fflush(stdout);
			return;
		}
	errx(1, "unknown command %s", name);
}

static void
make_region(int64_t ttl_ms, int events)
{
	struct kvr_options options;
	struct kvr_policy policy;

	must(kvr_options_init(&options, sizeof(options)), "kvr_options_init");
	options.hash = KVR_HASH_DYNAMO;
	options.block_size = (uint32_t)block;
	options.ttl_ns = ttl_ms * 1000000;
	options.event_blocks = events ? 1 << 18 : 0;
	must(kvr_new(&options, &region), "kvr_new");
	must(kvr_policy_init(&policy, sizeof(policy)), "kvr_policy_init");
	policy.cost = KVR_COST_DYNAMO;
	must(kvr_policy_set(region, &policy), "kvr_policy_set");
	must(kvr_prompt_new(region, &prompt), "kvr_prompt_new");
	must(kvr_scope_init(&scope, sizeof(scope)), "kvr_scope_init");
	must(kvr_worker_init(&facts, sizeof(facts)), "kvr_worker_init");
	facts.retain = events ? KVR_RETAIN_EVENTS : KVR_RETAIN_TTL;
}

int
main(int argc, char **argv)
{
	char command[16];
	uint64_t w;

	if (argc < 4)
		errx(2, "usage: mirror WORKERS BLOCK TTL_MS [events]");
	n_workers = strtoull(argv[1], NULL, 10);
	block = strtoull(argv[2], NULL, 10);
	if (n_workers > WORKERS_MAX || block == 0)
		errx(2, "too many workers, or a block of 0");
	make_region(strtoll(argv[3], NULL, 10), argc > 4);
	for (w = 0; w < n_workers; w++)
		add_worker(w);
	while (scanf("%15s", command) == 1)
		run_command(command);
	kvr_prompt_free(prompt);
	kvr_free(region);
	return 0;
}
