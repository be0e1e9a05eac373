/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.h - the JSON body of a request as a kvr_prompt, while it is read.
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
 * What becomes of a body. Engines make one text of a request, by a template
 * that nobody else knows; what is ahead in it comes first here too:
 *
 *   scope    | prompt
 *   model    | system text | message 0 | message 1 | ...
 *   salt     |
 *   tools ...|
 *
 * Tools and other facts that templates put ahead of everything enter the scope
 * by a digest: requests with other tools share nothing. The rest is text, with
 * marks between its pieces: the byte 0xFF and a letter. JSON text is UTF-8 and
 * has no such byte, so no content can look like a mark. What a template does
 * not show is left out: ids, cache_control (clients move it from message to
 * message), keys that nobody knows. Images, sounds and files are 16 bytes of
 * digest each, of their data or of their address.
 *
 * What follows from that:
 *   - messages 0..k make a byte prefix of what messages 0..n make: nothing
 *     counts ahead and nothing closes behind;
 *   - text in a string and text in a list of one part are the same;
 *   - the prompt is the same however the body was cut into pieces;
 *   - of a key that comes twice at the top the last one counts, as engines
 *     have it. In a message both count, and a message whose keys come in
 *     another order is another: clients send back what they sent.
 *
 * A body is never an error, only of more or less use. If it ends early, or is
 * broken somewhere, or has a byte that is not UTF-8, then what stood before is
 * the prompt, and facts->cut says so; the text of a string that is cut counts
 * as far as it came. Nested deeper than BODY_DEPTH is of no use at all.
 *
 * Memory: a struct body keeps what it needed for the next one, up to about
 * 1 MB for each of a handful of buffers. The body itself is not copied, but
 * for strings that pieces cut, strings with escapes, and what comes before
 * the text that belongs ahead of it (Responses and Messages). Small pieces
 * are gathered, so that time stays proportional to the length of the body;
 * large ones are faster.
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
	BODY_NAME_MAX = 256 /* longer models and salts: a part and a digest */
};

enum body_outcome {
	BODY_PROMPT = 0, /* there is a prompt, perhaps only its beginning */
	BODY_EMPTY,      /* not one byte */
	BODY_NOT_JSON,   /* no JSON object, and no prompt before it broke */
	BODY_TOO_DEEP,
	BODY_NO_PROMPT,  /* an object without, or another endpoint */
	BODY_NO_MEMORY
};

struct body_facts {
	const char *model;   /* "" if there is none; until the next begin */
	size_t model_length;
	uint64_t end;        /* offset of the '}' that ends the body; 0: cut */
	uint64_t messages;   /* in it; 0 for completions */
	uint64_t bytes;      /* of the prompt, marks counted */
	uint64_t opening;    /* of them, those ahead of the first answer in */
	                     /* it: the same in all turns of a chat */
	uint64_t ahead;      /* bytes that are in the scope by digest: tools */
	bool cut;            /* not one whole JSON object */
	bool stream;
	bool stream_options; /* are there */
	bool include_usage;  /* and ask for it */
	bool several;        /* prompts; the first one is taken */
	bool media;          /* images, sounds, files */
	bool prompt_logprobs;/* asked for, or echo with logprobs */
	bool stored;         /* goes on from what the engine keeps by id */
};

struct body;

struct body *body_new(void); /* NULL: no memory */
void body_free(struct body *b);

/* Forgets the last body and begins the prompt, which is not looked into. */
void body_begin(struct body *b, struct kvr_prompt *p, enum endpoint endpoint);
/* Costs nothing once the outcome is clear. */
void body_data(struct body *b, const void *data, size_t n);
/* The body goes on, but nobody looks at it: no more body_data. */
void body_cut(struct body *b);
/* All facts are written, whatever the outcome. */
enum body_outcome body_end(struct body *b, struct body_facts *facts);
/*
 * After body_end: sets KVR_SCOPE_SALT and KVR_SCOPE_ADAPTER where the body
 * has them. As kvr_scope_set.
 */
int body_scope(const struct body *b, const struct kvr *k,
    struct kvr_scope *scope);

#endif
