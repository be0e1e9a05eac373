/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_in.h - shared by the files of the body.
 *
 *   body.c         begin, end, cut
 *   body_shape.c   keys and values -> their meaning
 *   body_order.c   marks of what is not empty; the order of keys
 *   body_keys.c    the known keys
 *   body_tokens.c  prompts of token ids
 *   body_text.c    text, marks, digests -> their sinks
 *
 *   body_data --> json_reader --> shape --> put --> stage --> sink
 *
 * Sinks: the prompt itself, where the body is in order (Chat, Completions); two
 * holds for Responses and Messages, because their clients send the system text
 * after the messages; a digest for what belongs in the scope. There is one sink
 * at a time, chosen by the key at the top of the body. The stage before it
 * joins many pieces into few.
 */
#ifndef KVROUTE_BODY_IN_H
#define KVROUTE_BODY_IN_H

#include "body.h"
#include "json_reader.h"
#include "text_hold.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
	STAGE_BYTES = 16384,
	LAST_BYTES = 16,
	OPEN_MARKS = 3,      /* of a level, at most */
	ORDERED_MAX = 12     /* ordered objects within each other; see order */
};

/* The letter after 0xFF. What follows it ends at the next mark. */
enum mark {
	MARK_NONE = 0,
	MARK_MESSAGE = 'm',
	MARK_SYSTEM = 's',
	MARK_ROLE = 'r',
	MARK_NAME = 'n',
	MARK_OPEN = '(',      /* a list of parts or calls */
	MARK_SHUT = ')',
	MARK_PART = 'p',
	MARK_TEXT = 't',
	MARK_THOUGHT = 'h',
	MARK_REFUSAL = 'f',
	MARK_CALL = 'c',
	MARK_ARGUMENTS = 'a',
	MARK_OUTPUT = 'o',
	MARK_DETAIL = 'd',    /* of an image or a file: how to show it */
	MARK_SEALED = 'x',    /* encrypted reasoning */
	MARK_MEDIA = 'i',     /* 16 bytes of digest */
	MARK_PROMPT = 'P',    /* completions: text */
	MARK_TOKENS = 'Q',    /* or 4 bytes for each token, least first */
	/* of JSON that is taken as a whole */
	MARK_MAP = '{',
	MARK_MAP_END = '}',
	MARK_LIST = '[',
	MARK_LIST_END = ']',
	MARK_KEY = 'k',
	MARK_STRING = 'w',
	MARK_NUMBER = '#',
	MARK_TRUE = 'T',
	MARK_FALSE = 'F',
	MARK_NULL = 'N'
};

enum sink {
	SINK_NONE = 0,
	SINK_PROMPT,
	SINK_SYSTEM,   /* a hold */
	SINK_MESSAGES, /* a hold */
	SINK_DIGEST
};

/* What enters the scope, each as its own digest, in any order. */
enum ahead {
	AHEAD_TOOLS = 0,
	AHEAD_FUNCTIONS,
	AHEAD_EFFORT,
	AHEAD_REASONING,
	AHEAD_TEMPLATE,
	AHEAD_TEMPLATE_KEYS,
	AHEAD_DOCUMENTS,
	AHEAD_LORA_PATH,
	AHEAD_LORA_REQUEST,
	AHEAD_EXTRA_KEY,
	/* The rest is what the engine keeps by id. */
	AHEAD_PREVIOUS,
	AHEAD_CONVERSATION,
	AHEAD_STORED_PROMPT,
	AHEADS
};

enum flag {
	FLAG_STREAM = 0,
	FLAG_OPTIONS,
	FLAG_USAGE,
	FLAG_ECHO,
	FLAG_LOGPROBS,
	FLAG_PROMPT_LOGPROBS,
	FLAG_UNSTORED,
	FLAGS
};

enum name { NAME_MODEL = 0, NAME_SALT, NAMES };

/* An object or list that is open, and what its next value is. */
struct level {
	unsigned char room;  /* enum room of body_keys.h */
	unsigned char value; /* enum value of body_keys.h */
	unsigned char mark;  /* of that value, or its number */
	unsigned char shut;  /* the mark that ends this level, or none */
	/* of body_order.c */
	unsigned char open[OPEN_MARKS]; /* marks ahead of its first text */
	unsigned char n_open;
	unsigned char ordered;  /* ordered objects, this one counted */
	unsigned char rank;     /* of the value */
	bool turns_aside;       /* the value does */
	uint32_t seen, waiting; /* ranks: that came, that are aside */
	size_t parts;           /* aside, of all levels before */
	size_t first, start;    /* aside: its text begins, its value does */
};

/* A value of an ordered object, aside; it ends where the next one begins. */
struct part {
	size_t start;
	unsigned rank;
};

struct body {
	struct kvr_prompt *prompt; /* NULL: later */
	enum endpoint endpoint;

	/* feeding */
	uint64_t given;         /* bytes that came */
	uint64_t fed;           /* of them, those in pieces that are read */
	uint64_t end;           /* offset of the last brace */
	size_t order_mark;      /* bytes of it; they are not read */
	unsigned char last[LAST_BYTES]; /* bytes of those */
	size_t n_last;
	bool stopped;           /* nothing more is read */
	bool closing;           /* a made-up end is read */
	bool whole;             /* an object */
	bool other;             /* JSON, but no object */
	bool is_cut;
	bool apart;             /* messages alone */
	enum body_outcome why;  /* it stopped */

	struct json_reader json;

	/* shape */
	struct level level[BODY_DEPTH + 1];
	size_t depth;
	uint64_t messages;
	uint64_t message_at;    /* where the last one begins, among them */
	uint64_t opening;       /* where the first response does */
	bool answered;          /* there is one */
	bool answer_last;       /* the last message is one */
	bool keeps_reasoning;
	bool is_reasoning;      /* the last item is, and must go */
	uint64_t prompts;       /* begun, of completions */
	bool by_tokens;         /* the first of them is */
	bool of_tokens;         /* and is used, bare or as a list */
	bool some;              /* of a prompt is there */
	bool several;
	bool media;
	bool flags[FLAGS];

	/* text */
	enum sink sink;
	unsigned digesting;     /* enum ahead, of SINK_DIGEST */
	size_t staged;
	uint64_t written;       /* to the prompt */
	uint64_t digested;
	struct hold system, held;

	/* order */
	size_t opened;          /* levels that have text */
	bool aside;             /* what follows is held back: */
	size_t aside_at;        /* from here in the stage */
	size_t outer_opened;    /* levels ahead of it */
	struct hold side;       /* and here */
	struct hold parts;      /* in it: struct part */
	XXH3_state_t *digest;
	bool is_ahead[AHEADS];
	XXH128_canonical_t ahead[AHEADS];
	size_t name_length[NAMES];
	char name[NAMES][BODY_NAME_MAX];
	size_t id_length[BODY_IDS];
	char id[BODY_IDS][BODY_ID_MAX];
	unsigned char stage[STAGE_BYTES];
};

/*
 * What body_shape.c makes of keys and values, in the order of the body; the
 * context is the body.
 */
extern const struct json_calls body_calls;

void body_token(struct body *b, const char *digits, size_t n);
/*
 * Where an element of a list begins: as many tokens as are there with the comma
 * after each. Returns their length, up to where an element begins.
 */
size_t body_tokens(void *context, const unsigned char *start, size_t n);

/* The bytes that complete a string that ends after `last`, with its quote. */
size_t body_missing(const struct body *b, unsigned char end[8]);

/* No object is open; this is next, the body or what takes its place. */
void body_outside(struct body *b, unsigned value);
/* The last item is left out. */
void body_drop_item(struct body *b);

/* Stops reading; the first reason counts. */
void body_stop(struct body *b, enum body_outcome why);

/*
 * body_order.c. begin: this object has begun. Around each of its values: value,
 * value_done. done: the object ends. open: text follows.
 */
void body_order_reset(struct body *b);
void body_order_begin(struct body *b, struct level *l);
void body_order_value(struct body *b);
void body_order_value_done(struct body *b);
/* For a value that is this text, not empty: all of the three. */
void body_order_text(struct body *b, enum mark mark, const void *text,
    size_t n);
void body_order_done(struct body *b);
void body_open(struct body *b);

/* The sink of this endpoint's messages; they may be undone. */
enum sink body_sink(const struct body *b);
/* Settles the text so far and switches to this sink. */
void body_open_sink(struct body *b, enum sink sink);
void body_open_digest(struct body *b, enum ahead ahead);
/* Writes the stage to its sink. */
void body_flush(struct body *b);
/* And ends the text. */
void body_settle(struct body *b);
/* Discards what was written after the settled messages. */
void body_rewind(struct body *b);
/* Appends the held system text and messages to the prompt. */
void body_release(struct body *b);

/* For text larger than the room in the stage. */
void body_put_on(struct body *b, const void *bytes, size_t n);
void body_name(struct body *b, enum name name, const void *text, size_t n);
void body_id(struct body *b, enum body_id id, const void *text, size_t n);

/* The hot path: few bytes at a time. */
static inline void
body_put(struct body *b, const void *bytes, size_t n)
{
	if (n > STAGE_BYTES - b->staged) {
		body_put_on(b, bytes, n);
		return;
	}
	memcpy(b->stage + b->staged, bytes, n);
	b->staged += n;
}

static inline void
body_mark(struct body *b, enum mark mark)
{
	const unsigned char bytes[2] = { 0xff, (unsigned char)mark };

	body_put(b, bytes, sizeof(bytes));
}

static inline void
body_text(struct body *b, enum mark mark, const void *text, size_t n)
{
	body_mark(b, mark);
	if (n > 0)
		body_put(b, text, n);
}

#endif
