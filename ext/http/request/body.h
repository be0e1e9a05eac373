/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.h - turns the JSON body of a request into a kvr_prompt while it is read.
 *
 *   struct body *b = body_new();                      one for each thread
 *   ...
 *   body_begin(b, p, endpoint);                       p in bytes, keyed hash
 *   body_data(b, piece, n);  ...                      any pieces
 *   body_cut(b);                                      if there is more
 *   if (body_end(b, &facts) == BODY_PROMPT) {
 *           kvr_scope_init(&scope, sizeof(scope));
 *           body_scope(b, k, &scope);                 salt, adapter
 *           kvr_scope_set(k, &scope, KVR_SCOPE_MODEL, ...);
 *           kvr_scope_set(k, &scope, KVR_SCOPE_TENANT, ...);
 *           kvr_prompt_end(p, &scope);
 *   }
 *
 * The prompt. An engine makes one text of a request by a template that is not
 * known here. The order is the same:
 *
 *   scope    | prompt
 *   model    | system text | message 0 | message 1 | ...
 *   salt     |
 *   tools ...|
 *
 * Tools and other facts that templates put first enter the scope as a digest:
 * requests with different tools share nothing. The rest is text with marks
 * between its pieces: the byte 0xFF and a letter. JSON text is UTF-8 and has no
 * such byte, so content cannot look like a mark. What a template does not show
 * is left out: ids, cache_control (clients move it from message to message),
 * unknown keys. Images, audio and files are 16 bytes of digest each, of their
 * data or of their address.
 *
 * Reasoning that clients send back is left out too, as most templates do, or
 * counts as text if body_reasoning says so: reasoning_content and reasoning of
 * a message (chat/completions), thinking blocks (messages), reasoning items
 * (responses).
 *
 * A byte order mark ahead of it all is passed over.
 *
 * Consequences:
 *   - messages 0..k make a byte prefix of what messages 0..n make: no count
 *     precedes them and nothing closes them;
 *   - text in a string and text in a list of one part are the same;
 *   - the prompt does not depend on how the body was cut into pieces;
 *   - the order of keys in a message does not matter, nor in its parts and
 *     calls: clients send back what they got in another one. What has a name
 *     or a role comes first in the prompt, name and role after it;
 *   - nothing, null and an empty text are the same;
 *   - of a repeated key at the top the last one counts, as in engines. In a
 *     message both count.
 *
 * A prompt later. Which index a request goes to may depend on its model: then
 * there is no prompt yet, body_begin gets NULL, and the text is held, until
 * body_prompt writes it to a prompt. The facts are the same, and so is the
 * prompt. Other endpoints have none, but their models and ids are known too.
 *
 * A body is never an error. If it ends early, is broken, or has a byte that is
 * not UTF-8, then what precedes is the prompt, and facts->cut is set; a cut
 * string counts up to the cut, one with a wrong byte or escape not at all; the
 * role of a message that does not end is left out. A body nested deeper than
 * BODY_DEPTH is not used.
 *
 * Ids that name a session, a user or what the engine keeps are facts, wherever
 * they stand at the top of the body, and no part of the prompt. One that is
 * cut, or longer than BODY_ID_MAX, is none. Those of `previous_response_id` and
 * `conversation` enter the scope by digest as well.
 *
 * Memory: a struct body has 26 kB, and buffers that grow: up to twice the
 * longest string that has escapes or is cut by pieces; for Responses and
 * Messages, up to twice the system text and the messages ahead of it; for a
 * prompt later, up to twice its text; up to
 * four times what one message holds back because of the order of its keys,
 * mostly its role, and a few bytes for each such key. Those of more than 1 MB
 * are freed by body_trim or the next begin, others are kept. The rest of the
 * body is not copied.
 *
 * Time is proportional to the length of the body, whatever its pieces; large
 * ones are faster.
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
	BODY_NAME_MAX = 256, /* longer models and salts: a part and a digest */
	BODY_ID_MAX = 256    /* longer ids: none */
};

enum body_id {
	BODY_CACHE_KEY = 0, /* prompt_cache_key */
	BODY_SESSION,       /* session_id */
	BODY_USER,          /* user */
	BODY_SAFETY,        /* safety_identifier */
	BODY_METADATA_USER, /* metadata.user_id */
	BODY_PREVIOUS,      /* previous_response_id, of Responses */
	BODY_CONVERSATION,  /* conversation, or its id; of Responses */
	BODY_IDS            /* how many there are */
};

enum body_outcome {
	BODY_PROMPT = 0, /* a prompt, perhaps only its beginning */
	BODY_EMPTY,      /* no byte */
	BODY_NOT_JSON,   /* and no prompt ahead of the error */
	BODY_TOO_DEEP,
	BODY_NO_PROMPT,  /* JSON without, or another endpoint */
	BODY_NO_MEMORY
};

struct body_facts {
	const char *model;   /* "" if there is none; until the next begin */
	size_t model_length;
	const char *id[BODY_IDS]; /* likewise */
	size_t id_length[BODY_IDS];
	uint64_t end;        /* offset of the '}' that ends the body; 0: cut */
	uint64_t messages;   /* in it; 0 for completions */
	uint64_t bytes;      /* of the prompt, marks counted */
	uint64_t opening;    /* of them, those ahead of the first response */
	                     /* in it: the same in all turns of a chat */
	uint64_t ahead;      /* bytes that are in the scope by digest: tools */
	bool cut;            /* not one whole JSON object */
	bool stream;
	bool stream_options; /* present */
	bool include_usage;  /* true in them */
	bool several;        /* prompts; the first one is taken */
	bool media;          /* images, audio, files */
	bool prompt_logprobs;/* asked for, or echo with logprobs */
	bool stored;         /* continues what the engine keeps by id */
	bool unstored;       /* "store": false; of Responses */
	bool extends;        /* the next prompt begins with this one and what */
	                     /* the engine answers; see reply_message.h */
};

struct body;

struct body *body_new(void); /* NULL: no memory */
void body_free(struct body *b);

/* Frees what a large body left in the buffers; else the next begin does. */
void body_trim(struct body *b);

/*
 * How the strings of bodies are read, which is nearly all of the work: by
 * "SSE2" or by "C", the faster first.
 */
const char *body_reader(void);

/* Does reasoning count? Not at first. For all bodies that begin from now on. */
void body_reasoning(struct body *b, bool keep);

/*
 * Forgets the last body and begins the prompt; its content is not read. NULL:
 * the prompt is made later.
 */
void body_begin(struct body *b, struct kvr_prompt *p, enum endpoint endpoint);
/* Costs nothing once the outcome is known. */
void body_data(struct body *b, const void *data, size_t n);
/* The rest of the body is not read: no more body_data. */
void body_cut(struct body *b);
/* All facts are written, whatever the outcome. */
enum body_outcome body_end(struct body *b, struct body_facts *facts);
/*
 * After body_end, once, if there was no prompt: begins this one and writes it.
 * Returns the outcome of the body, or BODY_NO_MEMORY.
 */
enum body_outcome body_prompt(struct body *b, struct kvr_prompt *p);
/*
 * After body_end: sets KVR_SCOPE_SALT and KVR_SCOPE_ADAPTER where the body
 * has them. As kvr_scope_set.
 */
int body_scope(const struct body *b, const struct kvr *k,
    struct kvr_scope *scope);

/*
 * A list of messages alone (of items for Responses; for Completions a string)
 * instead of a body: begin, body_data, end. They are appended to p, which is
 * not begun, as if they followed in the list whose prompt p is. Returns
 * BODY_PROMPT and the number of bytes in *bytes; BODY_NO_PROMPT if there are
 * none; or another outcome, unless the list is whole and valid. Then nothing
 * was appended; at BODY_NO_MEMORY a part may be.
 */
void body_message_begin(struct body *b, struct kvr_prompt *p,
    enum endpoint endpoint);
enum body_outcome body_message_end(struct body *b, uint64_t *bytes);

#endif
