/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_in.h - shared by the files of the body.
 *
 *   body.c         begin, end, cut
 *   body_shape.c   keys and values -> their meaning
 *   body_order.c   the order of keys; marks around text
 *   body_keys.c    the table of fields
 *   body_digest.c  values that a digest stands for
 *   body_lines.c   lines of the first texts that do not count
 *   body_tokens.c  prompts of token ids
 *   body_text.c    text, marks, digests -> their sinks
 *
 *   body_data --> json_reader --> shape --> put --> stage --> sink
 *
 * The sink of Chat and Completions is the prompt itself, since their bodies are
 * in order. Responses and Messages have two holds, because their clients send
 * the system text after the messages. There is one sink at a time, chosen by
 * the key at the top of the body. The stage joins many pieces into few.
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
	OPEN_MARKS = 3,      /* marks ahead of a level's text, at most */
	ORDERED_MAX = 12,    /* nested ordered objects; see body_order.c */
	RANK_OTHERS = 31,    /* the rank of members that are not in the table */
	OTHERS_BYTES = 1024, /* more digested bytes in a message are media */
	LINES_BYTES = 16384  /* bytes of a message seen by body_ignore's call */
};

/* The letter after 0xFF. The text behind a mark ends at the next mark. */
enum mark {
	MARK_NONE = 0,
	MARK_MESSAGE = 'm',
	MARK_ROLE = 'r',
	MARK_NAME = 'n',
	MARK_OPEN = '(',      /* begins a list of parts or calls */
	MARK_SHUT = ')',
	MARK_PART = 'p',
	MARK_TEXT = 't',
	MARK_THOUGHT = 'h',
	MARK_REFUSAL = 'f',
	MARK_CALL = 'c',
	MARK_ARGUMENTS = 'a',
	MARK_OUTPUT = 'o',
	MARK_DETAIL = 'd',    /* how to show an image or a file */
	MARK_SEALED = 'x',    /* encrypted reasoning */
	MARK_MEDIA = 'i',     /* 16 bytes of digest */
	MARK_OTHER = 'u',     /* 16 bytes of digest of other members */
	MARK_PROMPT = 'P',    /* a completion's text, */
	MARK_TOKENS = 'Q',    /* or 4 bytes for each token, least first */
	/* JSON that is taken as a whole */
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
	SINK_MESSAGES  /* a hold */
};

/* The fields that enter the scope, each as its own digest, in any order. */
enum ahead {
	AHEAD_TOOLS = 0,
	AHEAD_FUNCTIONS,
	AHEAD_EFFORT,
	AHEAD_REASONING,
	AHEAD_TEMPLATE,
	AHEAD_TEMPLATE_KEYS,
	AHEAD_THINKING,
	AHEAD_ENABLE_THINKING,
	AHEAD_OUTPUT,
	AHEAD_DOCUMENTS,
	AHEAD_SERVERS,
	AHEAD_SPECIAL_TOKENS,
	AHEAD_TRUNCATION,
	AHEAD_TRUNCATION_SIDE,
	AHEAD_SUFFIX,
	AHEAD_PROCESSOR,
	AHEAD_MEDIA_INPUT,
	AHEAD_EMBEDS,
	AHEAD_IMAGE_EMBEDS,
	AHEAD_AUDIO_EMBEDS,
	AHEAD_MEDIA,
	AHEAD_IMAGE,
	AHEAD_EARLIER_INPUT,
	AHEAD_LORA_PATH,
	AHEAD_LORA_REQUEST,
	AHEAD_EXTRA_KEY,
	/* The rest are ids of state that the engine keeps. */
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
	FLAG_MANY,
	FLAG_BEST,
	FLAGS
};

enum name { NAME_MODEL = 0, NAME_SALT, NAMES };

/* An object or list that is open, and the kind of its next value. */
struct level {
	unsigned char room;  /* enum room of body_keys.h */
	unsigned char value; /* enum value of body_keys.h */
	unsigned char mark;  /* the value's mark; or a name, flag, digest */
	unsigned char shut;  /* the mark that ends this level; 0: none */
	bool is_system;      /* system text: its role is written at the end */
	/* used by body_order.c */
	unsigned char open[OPEN_MARKS]; /* marks ahead of its first text */
	unsigned char n_open;
	unsigned char ordered;  /* depth of ordered objects, with this one */
	unsigned char rank;     /* the rank of the value */
	bool turns_aside;       /* the value is the outermost one aside */
	uint32_t seen, waiting; /* sets of ranks that came, that are aside */
	size_t parts;           /* number of parts when it began */
	size_t first, start;    /* offsets aside: of its text, of the value */
	/* used by body_digest.c for a value, or for members without a rank */
	XXH128_hash_t sum;
	XXH128_hash_t key;      /* the next value's */
	bool any;               /* the sum has a value that is not empty */
};

/* A value of an ordered object, aside; it ends at the begin of the next one. */
struct part {
	size_t start;
	unsigned rank;
};

struct body {
	struct kvr_prompt *prompt; /* the caller's; NULL: it comes later */
	enum endpoint endpoint;

	/* feeding */
	uint64_t given;         /* bytes that came */
	uint64_t fed;           /* bytes that were read */
	uint64_t end;           /* offset of the last brace */
	size_t order_mark;      /* bytes of a byte order mark so far */
	unsigned char last[LAST_BYTES]; /* the last bytes that were read */
	size_t n_last;
	uint64_t beside;        /* bytes of strings without text */
	bool stopped;           /* nothing more is read */
	bool closing;           /* the reader gets a made-up end */
	bool whole;             /* the body is one object */
	bool other;             /* the body is JSON, but not an object */
	bool is_cut;
	bool apart;             /* messages instead of a body */
	enum body_outcome why;  /* the reason for `stopped` */

	struct json_reader json;

	/* shape */
	struct level level[BODY_DEPTH + 1];
	size_t depth;
	uint64_t messages;
	uint64_t message_at;    /* offset of the last message */
	uint64_t opening;       /* offset of the first answer */
	bool answered;          /* there is a message of role assistant */
	bool led;               /* the first message is system text */
	bool answer_last;       /* the last message has role assistant */
	bool keeps_reasoning;
	bool is_reasoning;      /* the last item is reasoning, to be dropped */
	uint64_t prompts;       /* completions: prompts that have begun */
	bool by_tokens;         /* the first one is a bare list of ids */
	bool of_tokens;         /* the first one is of ids, bare or in a list */
	bool some;              /* a part of a prompt has come */
	bool several;
	bool media;
	bool flags[FLAGS];
	enum body_usage usage;  /* see body_facts */
	uint64_t usage_at, usage_cut;

	/* text */
	enum sink sink;
	size_t staged;          /* bytes in `stage` */
	uint64_t written;       /* bytes written to the prompt */
	uint64_t digested;      /* bytes digested into the scope */
	uint64_t others;        /* bytes digested of the current message */
	struct hold system, held;

	/* lines */
	body_line *is_ignored;  /* NULL: all lines count */
	void *ignoring;         /* its context */
	size_t lines_left;      /* bytes of the message to be looked at */
	struct hold lines;      /* a text without its ignored lines */

	/* order */
	size_t opened;          /* levels with their marks written */
	bool aside;             /* text is held back: */
	struct hold side;       /* first here, */
	size_t aside_at;        /* then from this offset in the stage */
	size_t outer_opened;    /* `opened` before text was held back */
	struct hold parts;      /* the values in `side`, of struct part */
	XXH3_state_t *digest;   /* of a string that comes in pieces */
	bool is_ahead[AHEADS];
	XXH128_canonical_t ahead[AHEADS];
	size_t name_length[NAMES];
	char name[NAMES][BODY_NAME_MAX];
	size_t id_length[BODY_IDS];
	char id[BODY_IDS][BODY_ID_MAX];
	unsigned char stage[STAGE_BYTES];
};

/*
 * body_shape.c takes keys and values in the order of the body; the context is
 * the body.
 */
extern const struct json_calls body_calls;

/* Writes one token id. */
void body_token(struct body *b, const char *digits, size_t n);
/*
 * Writes the token ids at `start`, each with the comma behind it. Returns their
 * length; the next element begins there.
 */
size_t body_tokens(void *context, const unsigned char *start, size_t n);

/* Makes the bytes that complete a string cut behind `last`, with its quote. */
size_t body_missing(const struct body *b, unsigned char end[8]);

/* No object is open; the next value is of this kind. */
void body_outside(struct body *b, unsigned value);
/* Drops the last item of Responses. */
void body_drop_item(struct body *b);

/* Stops reading; the first reason stays. */
void body_stop(struct body *b, enum body_outcome why);

/*
 * body_order.c: begin and done stand at the ends of an ordered object, value
 * and value_done around each of its values, open ahead of text.
 */
void body_order_reset(struct body *b);
void body_order_begin(struct body *b, struct level *l);
void body_order_value(struct body *b);
void body_order_value_done(struct body *b);
/* Takes a value that is a text, not empty, by these three calls. */
void body_order_text(struct body *b, enum mark mark, const void *text,
    size_t n);
void body_order_done(struct body *b);
void body_open(struct body *b);

/*
 * body_digest.c: each call takes the current value, for which a digest stands.
 * open and close stand at the ends of an object or a list. others ends the
 * current ordered object.
 */
void body_digest_key(struct body *b, const void *name, size_t n);
void body_digest_string(struct body *b, const void *text, size_t n);
void body_digest_scalar(struct body *b, enum mark mark, const char *text,
    size_t n);
void body_digest_open(struct body *b, struct level *to, bool is_map);
void body_digest_close(struct body *b, const struct level *l);
void body_digest_others(struct body *b);
/* Hashes a string; NULL and n > 0: the last one that came in pieces. */
XXH128_hash_t body_string_hash(const struct body *b, const void *text,
    size_t n);
/* Reads 15, 15.0, 1.5e1; UINT64_MAX: not whole, or of more than 10 digits. */
uint64_t body_whole_number(const char *text, size_t n);
/* Writes the digest of an image or of other media. */
void body_media(struct body *b, XXH128_hash_t digest);

/* body_shape.c: ends the objects and lists of a cut value in the scope. */
void body_close_digests(struct body *b);

/*
 * body_lines.c: begin is called for a message or the system text; drop removes
 * ignored lines of a text, which may lie elsewhere after it.
 */
void body_lines_begin(struct body *b);
void body_lines_drop(struct body *b, const unsigned char **text, size_t *n);
void body_lines_drop_part(struct body *b, const unsigned char **text,
    size_t *n);

/* Returns the sink of messages. */
enum sink body_sink(const struct body *b);
/* Settles the text so far and switches to this sink. */
void body_open_sink(struct body *b, enum sink sink);
/* Writes the stage to its sink. */
void body_flush(struct body *b);
/* Writes the stage to its sink, which is closed. */
void body_settle(struct body *b);
/* Discards all messages: their key is repeated. */
void body_rewind(struct body *b);
/* Appends the held system text and messages to the prompt. */
void body_release(struct body *b);

/* Writes text that is larger than the room in the stage. */
void body_put_on(struct body *b, const void *bytes, size_t n);
void body_name(struct body *b, enum name name, const void *text, size_t n);
void body_id(struct body *b, enum body_id id, const void *text, size_t n);

/* Writes text. This is the hot path: few bytes at a time. */
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
