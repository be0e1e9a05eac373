/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_chat.c - the curve of a chat: is turn 500 as cheap as turn 5?
 *
 * Each turn's prompt is the whole chat so far: the earlier turns, the output of
 * the last one and the next question, 200 to 600 tokens more. All chats take
 * their first turn, then all their second, and so on: between two turns of one
 * chat come all others. A point is the mean over the chats and over the turns
 * next to it, because the cost of merging varies from turn to turn.
 *
 *   one      each chat stays with its worker; observe
 *   two      turns alternate between two workers; observe
 *   lease    one worker; open, commit, first token, finish
 *   extend   the same, and the output joins the path before the finish
 */
#include "growth_bed.h"

#include "args.h"
#include "rng.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHATS = 15,
	TURNS = 500,
	WORKERS = 64,
	MIN_TOKENS = 200, /* of a turn */
	MAX_TOKENS = 600,
	NEAR = 2            /* turns on either side of a point */
};

enum mode { ONE, TWO, LEASE, EXTEND, MODES };
static const char *const mode_names[MODES] = {
	"chat_one", "chat_two", "chat_lease", "chat_extend"
};
static const uint32_t points[] = {
	1, 2, 5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500
};
static const char columns[] =
    "turn\tblocks\thash\tmatch\tchoose\trecord\tdecision\tnodes";

enum kind { HASH, MATCH, CHOOSE, RECORD, KINDS };

struct chats {
	struct bed bed;
	enum mode mode;
	uint32_t length[CHATS][TURNS + 1]; /* tokens of the prompt */
	uint32_t answer[CHATS][TURNS + 1]; /* tokens with the output */
	struct series series[KINDS];       /* [turn * CHATS + chat] */
	double nodes[TURNS + 1];           /* of a chat */
};

static void
make_lengths(struct chats *c)
{
	struct rng r = { 3 };
	uint32_t chat, turn;

	for (chat = 0; chat < CHATS; chat++) {
		for (turn = 1; turn <= TURNS; turn++) {
			uint32_t more = (uint32_t)rng_between(&r, MIN_TOKENS,
			    MAX_TOKENS);
			uint32_t said = c->answer[chat][turn - 1];

			c->length[chat][turn] = said + more / 2;
			c->answer[chat][turn] = said + more;
		}
	}
}

static uint32_t
worker_of(const struct chats *c, uint32_t chat, uint32_t turn)
{
	return (2 * chat + (c->mode == TWO ? turn % 2 : 0)) % WORKERS;
}

/* A request from open to end, with its hashes made. Returns the time. */
static int64_t
lease(struct chats *c, uint32_t chat, uint32_t turn)
{
	struct bed *b = &c->bed;
	uint64_t id = b->ids[worker_of(c, chat, turn)];
	uint32_t length = c->length[chat][turn];
	int64_t start, ns, now = bed_tick(b);
	struct kvr_decision d;

	d.size = sizeof(d);
	start = bed_clock();
	bed_must(kvr_lease_open_on(b->k, b->prompt, NULL, id, now, &d),
	    "kvr_lease_open_on");
	bed_must(kvr_lease_commit(b->k, d.lease, now, 0), "kvr_lease_commit");
	bed_must(kvr_lease_first_token(b->k, d.lease, now, 0),
	    "kvr_lease_first_token");
	ns = bed_since(b, start);
	if (c->mode == EXTEND) {
		bed_must(kvr_prompt_tokens(b->prompt, b->tokens + chat + length,
		    c->answer[chat][turn] - length), "kvr_prompt_tokens");
		bed_must(kvr_prompt_end(b->prompt, NULL), "kvr_prompt_end");
	}
	now = bed_tick(b);
	start = bed_clock();
	if (c->mode == EXTEND)
		bed_must(kvr_lease_extend(b->k, d.lease, b->prompt, now, 0),
		    "kvr_lease_extend");
	bed_must(
	    kvr_lease_finish(b->k, d.lease, NULL, now, 0), "kvr_lease_finish");
	return ns + bed_since(b, start);
}

/* Blocks that the chat's worker of this turn must hold by the match. */
static uint32_t
overlap(const struct chats *c, uint32_t chat, uint32_t turn)
{
	const uint32_t *known = c->mode == EXTEND ? c->answer[chat] :
	    c->length[chat];

	return known[turn - 1] / GROWTH_BLOCK;
}

static void
take_turn(struct chats *c, uint32_t chat, uint32_t turn)
{
	struct bed *b = &c->bed;
	size_t i = (size_t)turn * CHATS + chat;
	int64_t start = bed_clock();

	bed_must(kvr_prompt_set_tokens(b->prompt, NULL, b->tokens + chat,
	    c->length[chat][turn]), "kvr_prompt_set_tokens");
	series_put(&c->series[HASH], i, bed_since(b, start));
	series_put(&c->series[MATCH], i, bed_match(b, overlap(c, chat, turn)));
	series_put(&c->series[CHOOSE], i, bed_choose(b));
	series_put(&c->series[RECORD], i, c->mode == LEASE ||
	    c->mode == EXTEND ? lease(c, chat, turn) :
	    bed_observe(b, worker_of(c, chat, turn)));
	b->growth->prompts++;
}

static void
trial(struct chats *c)
{
	uint32_t turn, chat;

	for (turn = 1; turn <= TURNS; turn++) {
		for (chat = 0; chat < CHATS; chat++)
			take_turn(c, chat, turn);
		c->nodes[turn] = (double)bed_stats(&c->bed).nodes / CHATS;
	}
	bed_clear(&c->bed);
}

/* ------------------------------------------------------------- printing --- */

static double
chat_mean(const struct chats *c, enum kind kind, uint32_t turn)
{
	uint32_t near = turn > NEAR ? NEAR : 0;
	uint32_t last = turn + near < TURNS ? turn + near : TURNS;
	size_t from = (size_t)(turn - near) * CHATS, i;
	size_t to = (size_t)(last + 1) * CHATS;
	double sum = 0;

	for (i = from; i < to; i++)
		sum += c->series[kind].least[i];
	return sum / (double)(to - from);
}

static double
decision(const struct chats *c, uint32_t turn)
{
	return chat_mean(c, MATCH, turn) + chat_mean(c, CHOOSE, turn) +
	    chat_mean(c, RECORD, turn);
}

static double
mean_blocks(const struct chats *c, uint32_t turn)
{
	uint32_t chat;
	double sum = 0;

	for (chat = 0; chat < CHATS; chat++)
		sum += c->length[chat][turn] / GROWTH_BLOCK;
	return sum / CHATS;
}

static void
chat_print(const struct chats *c, const struct growth *g)
{
	double early, late;
	size_t i;

	for (i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		uint32_t turn = points[i];
		const double values[] = { turn, mean_blocks(c, turn),
			chat_mean(c, HASH, turn), chat_mean(c, MATCH, turn),
			chat_mean(c, CHOOSE, turn), chat_mean(c, RECORD, turn),
			decision(c, turn), c->nodes[turn] };

		growth_line(g, columns, values);
	}
	early = chat_mean(c, MATCH, 5) + chat_mean(c, RECORD, 5);
	late = chat_mean(c, MATCH, TURNS) + chat_mean(c, RECORD, TURNS);
	growth_ratio(g, "decision_500_over_5", decision(c, TURNS) /
	    decision(c, 5));
	growth_ratio(g, "without_choose_500_over_5", late / early);
}

/* -------------------------------------------------------------- a curve --- */

static void
chat_curve(struct growth *g, struct chats *c, enum mode mode)
{
	const struct bed_size size = { WORKERS,
		(uint64_t)CHATS * TURNS * MAX_TOKENS / GROWTH_BLOCK * 2,
		(uint64_t)CHATS * TURNS * 4,
		CHATS + (size_t)TURNS * MAX_TOKENS,
		TURNS * MAX_TOKENS / GROWTH_BLOCK };
	uint32_t i;

	memset(c, 0, sizeof(*c));
	c->mode = mode;
	make_lengths(c);
	bed_open(&c->bed, g, &size);
	for (i = 0; i < KINDS; i++)
		series_new(&c->series[i], (size_t)(TURNS + 1) * CHATS);
	for (i = 0; i < g->trials; i++) {
		trial(c);
		growth_step(g);
	}
	growth_table(g, mode_names[mode], columns);
	chat_print(c, g);
	for (i = 0; i < KINDS; i++)
		series_free(&c->series[i]);
	bed_close(&c->bed);
}

void
growth_chat(struct growth *g)
{
	struct chats *c = malloc(sizeof(*c));
	enum mode mode;

	if (c == NULL)
		err(ARGS_FAILED, NULL);
	for (mode = ONE; mode < MODES; mode++)
		chat_curve(g, c, mode);
	free(c);
}
