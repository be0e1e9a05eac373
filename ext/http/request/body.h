/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.h - turns the JSON body of a request into a kvr_prompt while it is read.
 *
 *   struct body *b = body_new();                      one for each thread
 *   ...
 *   body_begin(b, p, endpoint);                       p in bytes, keyed hash
 *   body_data(b, piece, n);  ...                      any pieces
 *   body_cut(b);                                      if the rest is not read
 *   if (body_end(b, &facts) == BODY_PROMPT) {
 *           kvr_scope_init(&scope, sizeof(scope));
 *           body_scope(b, k, &scope);                 salt, adapter
 *           kvr_scope_set(k, &scope, KVR_SCOPE_MODEL, ...);
 *           kvr_scope_set(k, &scope, KVR_SCOPE_TENANT, ...);
 *           kvr_prompt_end(p, &scope);
 *   }
 *
 * THE PROMPT. An engine makes one text of a request by a template that is not
 * known here. The prompt has the same order:
 *
 *   scope    | prompt
 *   model    | system text | message 0 | message 1 | ...
 *   salt     |
 *   tools ...|
 *
 * Tools and other facts that templates put first enter the scope as a digest:
 * requests with different tools share nothing. The rest is text with marks
 * between its pieces: the byte 0xFF and a letter. JSON text is UTF-8 and has no
 * such byte, so content cannot look like a mark. body_keys.c has a row for each
 * known field: the field enters the prompt, enters the scope, or is left out,
 * as are ids and cache_control, which clients move from message to message.
 * Unknown members of messages, and of the objects in them, enter the prompt as
 * 16 bytes of digest: a template may show them. Unknown members at the top are
 * left out. Images, audio and files are 16 bytes of digest each, made from
 * their data or their address.
 *
 * The system text of Responses and Messages is the same as a first message of
 * that role, so it is shared between endpoints, as in engines.
 *
 * Reasoning that clients send back is left out too, as most templates do, or
 * counts as text after body_reasoning(b, true): reasoning_content and reasoning
 * of a message (chat/completions), thinking blocks (messages), reasoning items
 * (responses).
 *
 * A byte order mark ahead of the body is passed over.
 *
 * Consequences:
 *   - the prompt of messages 0..k is a byte prefix of that of messages 0..n: no
 *     count precedes them and nothing closes them;
 *   - text in a string and text in a list of one part are the same;
 *   - the prompt does not depend on how the body was cut into pieces;
 *   - the order of keys in a message, its parts and its calls does not matter:
 *     clients send an answer back in another order. In the prompt the content
 *     precedes the name and the role;
 *   - a missing member, null, an empty text, list and object are the same;
 *   - in the scope, and in members without a row, neither the order of keys nor
 *     the form of a number matters; in the arguments of a tool both do;
 *   - if a key at the top is repeated, the last one counts, as in engines. In a
 *     message both count.
 *
 * A PROMPT LATER. The index of a request may depend on its model. There is no
 * prompt then: body_begin gets NULL, and the text is held until body_prompt
 * writes it to a prompt. The facts and the prompt are the same. Bodies of other
 * endpoints have no prompt, but their models and ids are found too.
 *
 * A body is never an error. If it ends early, is broken, or has a byte that is
 * not UTF-8, the part ahead of that is the prompt, and facts->cut is set. A cut
 * string counts up to the cut; one with a wrong byte or escape does not count;
 * the role of a message without its end is left out. A body that is nested
 * deeper than BODY_DEPTH is not used.
 *
 * Ids of a session, of a user or of state that the engine keeps are facts,
 * wherever they stand at the top of the body, and not a part of the prompt. An
 * id that is cut or longer than BODY_ID_MAX is ignored. `previous_response_id`
 * and `conversation` enter the scope by digest as well.
 *
 * MEMORY. A struct body has 32 kB, and buffers that grow. Together these take
 * at most
 *   - twice the longest text that has escapes or is cut by pieces, but nothing
 *     for images and other values that are digested;
 *   - twice the system text and the messages ahead of it, for Responses and
 *     Messages;
 *   - twice the text, for a prompt later;
 *   - four times the text that one message holds back because of the order of
 *     its keys, mostly its role, and a few bytes for each such key.
 * Buffers of more than 1 MB are freed by body_trim or the next begin, others
 * are kept. The rest of the body is not copied.
 *
 * Time is proportional to the length of the body; large pieces are faster.
 */
#ifndef KVROUTE_BODY_H
#define KVROUTE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "kvroute.h"

enum {
	BODY_DEPTH = 128,   /* objects and lists within each other */
	BODY_NAME_MAX = 256, /* longer models and salts end in a digest */
	BODY_ID_MAX = 256    /* longer ids are ignored */
};

enum body_id {
	BODY_CACHE_KEY = 0, /* prompt_cache_key */
	BODY_SESSION,       /* session_id */
	BODY_USER,          /* user */
	BODY_SAFETY,        /* safety_identifier */
	BODY_METADATA_USER, /* metadata.user_id */
	BODY_PREVIOUS,      /* previous_response_id; Responses only */
	BODY_CONVERSATION,  /* conversation, or its id; Responses only */
	BODY_IDS
};

/*
 * The text that makes the body ask for usage. It goes to `usage_at` in place of
 * `usage_cut` bytes.
 */
enum body_usage {
	BODY_USAGE_MEMBER = 0, /* a member stream_options, at the end */
	BODY_USAGE_OPTIONS,    /* the value of stream_options, for a null */
	BODY_USAGE_ALONE,      /* include_usage, the only member of it */
	BODY_USAGE_FIRST,      /* include_usage, ahead of other members */
	BODY_USAGE_TRUE,       /* true, for false or null */
	BODY_USAGE_NONE        /* nothing: it asks already, or in vain */
};

enum body_outcome {
	BODY_PROMPT = 0, /* a prompt, perhaps only its beginning */
	BODY_EMPTY,      /* no bytes */
	BODY_NOT_JSON,   /* broken, without a prompt ahead of the error */
	BODY_TOO_DEEP,
	BODY_NO_PROMPT,  /* JSON without a prompt, or another endpoint */
	BODY_NO_MEMORY
};

struct body_facts {
	/* The body's memory, valid until its next begin; "" if missing. */
	const char *model;
	size_t model_length;
	const char *id[BODY_IDS];
	size_t id_length[BODY_IDS];
	uint64_t end;        /* offset of the '}' that ends the body; 0: cut */
	uint64_t messages;   /* number of messages; 0 for completions */
	uint64_t bytes;      /* length of the prompt with its marks */
	uint64_t opening;    /* bytes of the prompt ahead of the first */
	                     /* answer: the same in all turns of a chat */
	uint64_t ahead;      /* bytes that enter the scope by digest: tools */
	bool cut;            /* not one whole JSON object */
	bool stream;
	enum body_usage usage;
	uint64_t usage_at, usage_cut; /* unless usage is BODY_USAGE_MEMBER */
	bool several;        /* it has several prompts; the first is taken */
	bool many;           /* it asks for several answers: n, best_of */
	bool media;          /* it has images, audio or files, or may have */
	bool prompt_logprobs;/* it asks for these, or for echo and logprobs */
	bool stored;         /* it continues state that the engine keeps */
	bool unstored;       /* "store": false; Responses only */
	bool extends;        /* the next prompt begins with this one and */
	                     /* its answer; see reply_message.h */
};

struct body;

struct body *body_new(void); /* NULL: no memory */
void body_free(struct body *b);

/* Frees buffers of more than 1 MB; else the next begin does. */
void body_trim(struct body *b);

/* Returns the reader of strings, the most of the work: "SSE2", or "C". */
const char *body_reader(void);

/* Sets whether reasoning counts in bodies that begin later; false at first. */
void body_reasoning(struct body *b, bool keep);

/*
 * Sets a function that returns true for a line that does not count, for bodies
 * that begin later. It is asked in the first 16 kB of the system text, of the
 * first message, of the second one if the first has the role of system or
 * developer, and of the prompt of a completion. It gets a line without its end.
 * NULL: all lines count, as at first.
 */
typedef bool body_line(void *context, const char *line, size_t n);
void body_ignore(struct body *b, body_line *is_ignored, void *context);

/*
 * Forgets the last body and begins the prompt, without its old content. NULL:
 * the prompt is made later.
 */
void body_begin(struct body *b, struct kvr_prompt *p, enum endpoint endpoint);
/* Reads the next n bytes. It costs nothing once the outcome is known. */
void body_data(struct body *b, const void *data, size_t n);
/* Returns how many bytes so far were in strings without text: photos. */
uint64_t body_beside(const struct body *b);
/* The rest of the body is not read: body_data is not called again. */
void body_cut(struct body *b);
/* Ends the body and writes all facts, whatever the outcome. */
enum body_outcome body_end(struct body *b, struct body_facts *facts);
/*
 * After body_end of a body that began without a prompt, once: begins this one
 * and writes it. Returns the outcome of the body, or BODY_NO_MEMORY.
 */
enum body_outcome body_prompt(struct body *b, struct kvr_prompt *p);
/*
 * After body_end: sets KVR_SCOPE_SALT and KVR_SCOPE_ADAPTER if the body has
 * them. Returns an error of kvr_scope_set.
 */
int body_scope(const struct body *b, const struct kvr *k,
    struct kvr_scope *scope);

/*
 * Reads a list of messages (of items for Responses; a string for Completions)
 * instead of a body, by begin, body_data, end. The messages are appended to p,
 * which is not begun again, as if they followed those of p. Returns BODY_PROMPT
 * and in *bytes the length appended; BODY_NO_PROMPT for an empty list; another
 * outcome if the list is not whole and valid. Nothing is appended then, but
 * after BODY_NO_MEMORY p may have a part.
 */
void body_message_begin(struct body *b, struct kvr_prompt *p,
    enum endpoint endpoint);
enum body_outcome body_message_end(struct body *b, uint64_t *bytes);

#endif
