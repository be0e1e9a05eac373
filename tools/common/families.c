/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * families.c - see families.h.
 *
 * A prompt is two ranges of ids, both of complete blocks, and a rest:
 *
 *   | head: 7 8 9 10 | body: 311 312 | 313 |      tokens, in blocks of 512
 *   '- of many ------'- of this one -------'
 *
 * Only complete blocks of the head are shared, since the block in which it
 * ends also contains tokens of the body. Chats repeat their body as it grows;
 * the last, incomplete block gets a new id each time. The part that routers see
 * of a prompt with images has the same head and a body of its own.
 *
 * All requests are generated, then sorted by time and written.
 */
#include "families.h"

#include "draw.h"
#include "rng.h"
#include "trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const family_names[FAMILIES] = {
	[FAMILY_SHARED] = "shared",
	[FAMILY_DOCUMENTS] = "documents",
	[FAMILY_IDLE_DOCUMENTS] = "idle-documents",
	[FAMILY_UNSHARED] = "unshared",
	[FAMILY_SUBAGENTS] = "subagents",
	[FAMILY_BURSTS] = "bursts",
	[FAMILY_CHAT] = "chat",
	[FAMILY_IMAGES] = "images",
	[FAMILY_OPENINGS] = "openings",
	[FAMILY_USERS] = "users"
};

const char *const family_popularities[FAMILY_POPULARITIES] = {
	[FAMILY_EVEN] = "even",
	[FAMILY_ZIPF] = "zipf"
};

enum {
	PRIVATE_MIN = 16,
	OUTPUT_MIN = 1,
	AGENTS_MIN = 5,
	AGENTS_MAX = 40,
	BURST_TIMES = 5,
	BURST_US = 10000000,
	BURST_GAP_US = 60000000, /* mean from the end of one to the next */
	TURNS_MAX = 12,
	THINK_US = 20000000,     /* mean from the end of a turn to the next */
	TOKEN_US = 20000,        /* of a chat's output */
	IMAGE = 2048,            /* tokens of an image */
	OPENING = 8,             /* requests with which a session begins */
	USER_TURNS = 10,         /* of a chat of few users */
	USERS_APART_US = 50000,  /* requests of the users, at most */
	WEIGHT = 1 << 30         /* of the most popular document */
};

struct item {
	uint64_t at; /* us */
	uint64_t order;
	uint64_t tokens;
	uint64_t output;
	uint64_t head; /* first id; head_blocks follow */
	uint64_t head_blocks;
	uint64_t body; /* first id of the rest */
	uint64_t seen; /* tokens that routers see; 0: all */
	uint64_t seen_body;
	uint64_t session; /* 0: not named */
};

struct families {
	struct family_options o;
	struct rng rng;
	struct item *items;
	size_t n;
	size_t capacity;
	uint64_t next_id;
	uint64_t sessions; /* named so far */
	uint64_t now; /* us */
	uint64_t burst; /* begin of the current or next burst */
	uint64_t *weights; /* [documents] of each and those before it */
};

void
family_defaults(struct family_options *o, enum family family)
{
	static const struct {
		uint64_t prompt, gap_us, documents, private, output;
	} defaults[FAMILIES] = {
		[FAMILY_SHARED] = { 8000, 50000, 0, 500, 200 },
		[FAMILY_DOCUMENTS] = { 57000, 83333, 6, 100, 200 },
		[FAMILY_IDLE_DOCUMENTS] = { 8000, 2000000, 60, 100, 50 },
		[FAMILY_UNSHARED] = { 4000, 50000, 0, 0, 200 },
		[FAMILY_SUBAGENTS] = { 16384, 200000, 0, 500, 200 },
		[FAMILY_BURSTS] = { 2000, 100000, 0, 500, 200 },
		[FAMILY_CHAT] = { 1000, 100000, 0, 200, 250 },
		[FAMILY_IMAGES] = { 2000, 125000, 0, 100, 200 },
		[FAMILY_OPENINGS] = { 8192, 50000, 0, 500, 200 },
		[FAMILY_USERS] = { 512, 2000000, 8, 850, 50 }
	};

	*o = (struct family_options){ .family = family,
	    .prompt = defaults[family].prompt,
	    .gap_us = defaults[family].gap_us, .requests = 3000,
	    .documents = defaults[family].documents, .users = 1, .seed = 1,
	    .private = defaults[family].private,
	    .output = defaults[family].output };
}

/* ---------------------------------------------------------------- items --- */

static uint64_t
take_ids(struct families *f, uint64_t n)
{
	uint64_t first = f->next_id;

	f->next_id += n;
	return first;
}

static uint64_t
draw_private(struct families *f)
{
	return draw_length(&f->rng, PRIVATE_MIN, f->o.private);
}

static uint64_t
draw_output(struct families *f)
{
	return draw_length(&f->rng, OUTPUT_MIN, f->o.output);
}

static int
add_item(struct families *f, struct item item)
{
	if (f->n == f->capacity) {
		size_t want = f->capacity == 0 ? 1024 : f->capacity * 2;
		struct item *p = realloc(f->items, want * sizeof(*p));

		if (p == NULL)
			return -1;
		f->items = p;
		f->capacity = want;
	}
	item.order = f->n;
	f->items[f->n++] = item;
	return 0;
}

/* A request of its own, of a session or 0; its prompt begins with `head`. */
static int
add_request(struct families *f, uint64_t at, uint64_t head, uint64_t session)
{
	struct item i = { .at = at, .head = head, .session = session,
	    .head_blocks = f->o.prompt / TRACE_BLOCK };

	i.tokens = f->o.prompt + draw_private(f);
	i.output = draw_output(f);
	i.body = take_ids(f, (i.tokens + TRACE_BLOCK - 1) / TRACE_BLOCK -
	    i.head_blocks);
	return add_item(f, i);
}

static int
add_unshared(struct families *f, uint64_t at)
{
	struct item i = { .at = at };

	i.tokens = draw_length(&f->rng, PRIVATE_MIN, f->o.prompt);
	if (i.tokens > FAMILY_PROMPT_MAX)
		i.tokens = FAMILY_PROMPT_MAX;
	i.output = draw_output(f);
	i.body = take_ids(f, (i.tokens + TRACE_BLOCK - 1) / TRACE_BLOCK);
	return add_item(f, i);
}

/* At most 16 times the mean is drawn, so this range is enough. */
static uint64_t
take_talk(struct families *f, uint64_t image)
{
	return take_ids(f, 2 + TURNS_MAX * (DRAW_TIMES_MAX *
	    (f->o.private + f->o.output) + image) / TRACE_BLOCK);
}

/* A conversation that begins at `at`, of a session or 0. */
static int
add_chat(struct families *f, uint64_t at, uint64_t head, uint64_t session)
{
	uint64_t turns = rng_between(&f->rng, 1, TURNS_MAX);
	uint64_t image = f->o.family == FAMILY_IMAGES ? IMAGE : 0, images = 0;
	struct item i = { .at = at, .tokens = f->o.prompt, .head = head,
	    .head_blocks = f->o.prompt / TRACE_BLOCK, .session = session };

	i.body = take_talk(f, image);
	i.seen_body = image > 0 ? take_talk(f, 0) : 0;
	while (turns-- > 0) {
		i.tokens += image + draw_private(f);
		images += image;
		i.seen = image > 0 ? i.tokens - images : 0;
		i.output = draw_output(f);
		if (add_item(f, i) != 0)
			return -1;
		i.tokens += i.output;
		i.at += i.output * TOKEN_US + draw_exponential(&f->rng,
		    THINK_US);
	}
	return 0;
}

/* A session; its first requests come at once. */
static int
add_opening(struct families *f, uint64_t at)
{
	uint64_t head = take_ids(f, f->o.prompt / TRACE_BLOCK), i;
	int result = add_chat(f, at, head, ++f->sessions);

	for (i = 1; result == 0 && i < OPENING; i++)
		result = add_request(f, at, head, f->sessions);
	return result;
}

/* ------------------------------------------------------------- arrivals --- */

/* Moves `now` to the next arrival of a Poisson process. */
static uint64_t
next_arrival(struct families *f, uint64_t gap_us)
{
	f->now += draw_exponential(&f->rng, gap_us);
	return f->now;
}

/*
 * Arrivals at BURST_TIMES the rate; outside of bursts, one of BURST_TIMES is
 * kept.
 */
static uint64_t
next_in_bursts(struct families *f)
{
	for (;;) {
		uint64_t gap = f->o.gap_us / BURST_TIMES;
		uint64_t at = next_arrival(f, gap == 0 ? 1 : gap);

		while (at >= f->burst + BURST_US)
			f->burst += BURST_US + draw_exponential(&f->rng,
			    BURST_GAP_US);
		if (at >= f->burst ||
		    rng_between(&f->rng, 1, BURST_TIMES) == 1)
			return at;
	}
}

static int
make_shared(struct families *f)
{
	uint64_t head = take_ids(f, f->o.prompt / TRACE_BLOCK);
	bool bursts = f->o.family == FAMILY_BURSTS;

	f->burst = draw_exponential(&f->rng, BURST_GAP_US);
	while (f->n < f->o.requests)
		if (add_request(f, bursts ? next_in_bursts(f) :
		    next_arrival(f, f->o.gap_us), head, 0) != 0)
			return -1;
	return 0;
}

/* Document k, from 0, has WEIGHT / (k + 1) if some are more popular. */
static int
weigh_documents(struct families *f)
{
	uint64_t sum = 0, k;

	f->weights = calloc(f->o.documents, sizeof(*f->weights));
	if (f->weights == NULL)
		return -1;
	for (k = 0; k < f->o.documents; k++) {
		sum += WEIGHT / (k + 1);
		f->weights[k] = sum;
	}
	return 0;
}

static uint64_t
draw_document(struct families *f)
{
	uint64_t low = 0, high = f->o.documents - 1, at, middle;

	if (f->o.popularity == FAMILY_EVEN)
		return rng_between(&f->rng, 0, high);
	at = rng_between(&f->rng, 0, f->weights[high] - 1);
	while (low < high) {
		middle = (low + high) / 2;
		if (at < f->weights[middle])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static int
make_documents(struct families *f)
{
	uint64_t blocks = f->o.prompt / TRACE_BLOCK, at;
	uint64_t first = take_ids(f, blocks * f->o.documents), document;

	if (weigh_documents(f) != 0)
		return -1;
	while (f->n < f->o.requests) {
		at = f->o.family == FAMILY_IDLE_DOCUMENTS ?
		    f->n * f->o.gap_us : next_arrival(f, f->o.gap_us);
		document = draw_document(f);
		if (add_request(f, at, first + document * blocks, 0) != 0)
			return -1;
	}
	return 0;
}

static int
make_unshared(struct families *f)
{
	while (f->n < f->o.requests)
		if (add_unshared(f, next_arrival(f, f->o.gap_us)) != 0)
			return -1;
	return 0;
}

static int
make_subagents(struct families *f)
{
	uint64_t gap_us = f->o.gap_us * (AGENTS_MIN + AGENTS_MAX) / 2;
	uint64_t head, at, agents;

	while (f->n < f->o.requests) {
		at = next_arrival(f, gap_us);
		head = take_ids(f, f->o.prompt / TRACE_BLOCK);
		agents = rng_between(&f->rng, AGENTS_MIN, AGENTS_MAX);
		while (agents-- > 0)
			if (add_request(f, at, head, 0) != 0)
				return -1;
	}
	return 0;
}

static size_t
count_until(const struct families *f, uint64_t at)
{
	size_t n = 0, i;

	for (i = 0; i < f->n; i++)
		n += f->items[i].at <= at;
	return n;
}

static int
add_session(struct families *f, uint64_t at, uint64_t head)
{
	switch (f->o.family) {
	case FAMILY_OPENINGS:
		return add_opening(f, at);
	case FAMILY_IMAGES:
		return add_chat(f, at, head, ++f->sessions);
	default:
		return add_chat(f, at, head, 0);
	}
}

/*
 * The trace ends before the last chat begins, so that its load does not fall
 * towards the end.
 */
static int
make_chats(struct families *f)
{
	bool openings = f->o.family == FAMILY_OPENINGS;
	uint64_t each = 1 + TURNS_MAX + (openings ? 2 * (OPENING - 1) : 0);
	uint64_t head = openings ? 0 :
	    take_ids(f, f->o.prompt / TRACE_BLOCK);
	size_t wanted = f->o.requests;

	while (count_until(f, f->now) < f->o.requests) {
		while (f->n < wanted)
			if (add_session(f, next_arrival(f,
			    f->o.gap_us * each / 2), head) != 0)
				return -1;
		wanted = f->n + f->o.requests / 4 + 1;
	}
	return 0;
}

/* A chat of few users: its next request, and how many follow. */
struct talk {
	struct item next;
	uint64_t turns;
};

/* Another chat takes its place. */
static void
talk_begin(struct families *f, struct talk *t, uint64_t head)
{
	t->next = (struct item){ .tokens = f->o.prompt, .head = head,
	    .head_blocks = f->o.prompt / TRACE_BLOCK,
	    .session = ++f->sessions };
	t->next.body = take_ids(f, 2 + USER_TURNS * DRAW_TIMES_MAX *
	    (f->o.private + f->o.output) / TRACE_BLOCK);
	t->turns = USER_TURNS;
}

static int
talk_go_on(struct families *f, struct talk *t, uint64_t at)
{
	t->next.at = at;
	t->next.tokens += draw_private(f);
	t->next.output = draw_output(f);
	if (add_item(f, t->next) != 0)
		return -1;
	t->next.tokens += t->next.output;
	t->turns--;
	return 0;
}

/*
 * At each interval every user sends a request of the next of its chats, all at
 * nearly the same time. The chats begin at different times.
 */
static int
make_users(struct families *f)
{
	uint64_t head = take_ids(f, f->o.prompt / TRACE_BLOCK), n, at, chat;
	uint64_t users = f->o.users, own = f->o.documents / users;
	struct talk *talks = calloc(f->o.documents, sizeof(*talks));
	int result = talks != NULL ? 0 : -1;

	for (n = 0; result == 0 && n < own * users; n++) {
		talk_begin(f, &talks[n], head);
		talks[n].turns = 1 + n / users % USER_TURNS;
	}
	for (n = 0; result == 0 && f->n < f->o.requests; n++) {
		at = n / users * users * f->o.gap_us +
		    rng_between(&f->rng, 0, USERS_APART_US);
		chat = n % users + n / users % own * users;
		if (talks[chat].turns == 0)
			talk_begin(f, &talks[chat], head);
		result = talk_go_on(f, &talks[chat], at);
	}
	free(talks);
	return result;
}

/* -------------------------------------------------------------- writing --- */

static int
item_order(const void *a, const void *b)
{
	struct item x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x.at / 1000 != y.at / 1000)
		return x.at / 1000 < y.at / 1000 ? -1 : 1;
	return x.order < y.order ? -1 : x.order > y.order;
}

/* The ids of a prompt of so many tokens. */
static void
write_ids(struct families *f, FILE *out, const struct item *i, uint64_t tokens,
    uint64_t body)
{
	uint64_t whole = tokens / TRACE_BLOCK, n;

	for (n = 0; n < whole; n++)
		fprintf(out, "%s%" PRIu64, n == 0 ? "" : ", ",
		    n < i->head_blocks ? i->head + n :
		    body + n - i->head_blocks);
	if (tokens % TRACE_BLOCK != 0)
		fprintf(out, "%s%" PRIu64, n == 0 ? "" : ", ", take_ids(f, 1));
}

static int
write_item(struct families *f, FILE *out, const struct item *i)
{
	fprintf(out, "{\"timestamp\": %" PRIu64 ", \"input_length\": %" PRIu64
	    ", \"output_length\": %" PRIu64 ", ", i->at / 1000, i->tokens,
	    i->output);
	if (i->session != 0)
		fprintf(out, "\"session\": %" PRIu64 ", ", i->session);
	fputs("\"hash_ids\": [", out);
	write_ids(f, out, i, i->tokens, i->body);
	if (i->seen != 0) {
		fputs("], \"seen_ids\": [", out);
		write_ids(f, out, i, i->seen, i->seen_body);
	}
	fputs("]}\n", out);
	return ferror(out) ? -1 : 0;
}

static int
make_items(struct families *f)
{
	switch (f->o.family) {
	case FAMILY_DOCUMENTS:
	case FAMILY_IDLE_DOCUMENTS:
		return make_documents(f);
	case FAMILY_UNSHARED:
		return make_unshared(f);
	case FAMILY_SUBAGENTS:
		return make_subagents(f);
	case FAMILY_CHAT:
	case FAMILY_IMAGES:
	case FAMILY_OPENINGS:
		return make_chats(f);
	case FAMILY_USERS:
		return make_users(f);
	default:
		return make_shared(f);
	}
}

int
family_write(FILE *out, const struct family_options *o)
{
	struct families f = { .o = *o, .rng = { o->seed } };
	int result = make_items(&f);
	size_t i;

	if (result == 0)
		qsort(f.items, f.n, sizeof(*f.items), item_order);
	for (i = 0; result == 0 && i < o->requests; i++)
		result = write_item(&f, out, &f.items[i]);
	free(f.items);
	free(f.weights);
	return result == 0 && fflush(out) == 0 ? 0 : -1;
}
