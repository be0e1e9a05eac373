/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_message.h - keeps the message in a response, for the next prompt.
 *
 *   engine --> | piece | piece | piece | --> client
 *                  |       |       |           |
 *                  +-- reply_data -+           | pushes it to its messages
 *                          |                   v
 *   prompt of turn n  +  reply_append  ==  begin of the prompt of turn n+1
 *
 * The next request of a chat carries the engine's answer: as a message
 * (chat/completions), as items of its input (responses), as a list of blocks
 * (messages), as text after the prompt (completions). The engine has all of it
 * in its cache already. Once the response has passed, reply_append writes the
 * bytes that body.h will make of it, so that a lease can be extended by them:
 *
 *   struct reply *r = reply_new();
 *   if (facts.extends)                                 body_facts, request
 *           reply_begin(r, endpoint, kind, most);
 *   reply_data(r, piece, n);  ...                      as answer_data
 *   if (reply_end(r) == REPLY_WHOLE) {
 *           kvr_prompt_resume(p, saved, n_saved);      the request's prompt
 *           body_reasoning(b, keep);                   as for requests
 *           if (reply_append(r, b, p, &bytes) == REPLY_WHOLE) {
 *                   kvr_prompt_end(p, &scope);
 *                   kvr_lease_extend(k, lease, p, ...);
 *           }
 *   }
 *
 * The message is put together as JSON, from texts that stay escaped as they
 * came:
 *
 *   data: {"choices":[{"delta":{"content":"a\ud83d"}}]}      a\ud83d
 *   data: {"choices":[{"delta":{"content":"\ude00"}}]}             \ude00
 *   [{"role":"assistant","content":"a\ud83d\ude00"}]  --> body_message_begin
 *
 * The reader of requests then reads it. One piece of code makes prompts of
 * messages, so a message that a client sends back unchanged is exact by
 * construction: also in another order of keys, with other escapes, with null or
 * "" where there was nothing, with text as a string or as a list.
 *
 * These members are kept:
 *
 *   chat/completions  choices[0].message: content, tool_calls, function_call,
 *                     refusal, reasoning_content, reasoning; in streams its
 *                     delta, calls joined by their index
 *   completions       choices[0].text
 *   responses         output; in streams the item of each
 *                     response.output_item.done, else the output of
 *                     response.completed
 *   messages          content; in streams the content blocks; the pieces of
 *                     partial_json are the input of a tool
 *
 * Where a client rewrites the message, the prompt of its next turn agrees up to
 * that point, and the appended blocks behind it are never used:
 *   - numbers in the input of a tool (messages) keep their text: 1.0 that comes
 *     back as 1 is another one. Space and escapes do not count there;
 *   - `arguments` is a string: each byte of it counts;
 *   - text may be trimmed, shortened or summarized.
 * Nothing is kept if the answer continues a message of role assistant, with
 * which the request ended (see body_facts.extends), or if the client chooses
 * among several choices (n > 1).
 *
 * A response that ends early, breaks, fails, or is longer than `most` is not
 * kept; one that was cut by max_tokens is. It is never delayed or changed.
 *
 * A reply holds the message of a stream and an event that several pieces share,
 * or all of a JSON response: at most `most` bytes, and as many again while
 * reply_append reads it. Without memory nothing is kept.
 */
#ifndef KVROUTE_REPLY_MESSAGE_H
#define KVROUTE_REPLY_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "body.h"
#include "endpoint.h"
#include "kvroute.h"

enum {
	REPLY_MOST = 256 << 10, /* a good `most`: a message is read at once */
	REPLY_CALLS = 256 /* calls of tools in a message; more: too long */
};

enum reply_outcome {
	REPLY_WHOLE = 0,
	REPLY_NONE,     /* no message in it, or another endpoint */
	REPLY_CUT,      /* it has ended early, or is not valid JSON */
	REPLY_FAILED,   /* an error of the engine */
	REPLY_SEVERAL,  /* it has several choices */
	REPLY_TOO_LONG,
	REPLY_NO_MEMORY
};

struct reply;

struct reply *reply_new(void); /* NULL: no memory */
void reply_free(struct reply *r);

/* Begins a response, which may keep `most` bytes; forgets the previous one. */
void reply_begin(struct reply *r, enum endpoint endpoint,
    enum answer_kind kind, size_t most);
/* Reads the next bytes. It costs nothing once the outcome is known. */
void reply_data(struct reply *r, const void *bytes, size_t n);
/* Returns how many bytes the reply has allocated now. */
size_t reply_bytes(const struct reply *r);
/* Ends the response; REPLY_WHOLE: there is a message to append. */
enum reply_outcome reply_end(struct reply *r);
/*
 * After reply_end: appends the message to p, the prompt of the request, by b,
 * which forgets its last body. *bytes (NULL is allowed) is the length appended.
 * Unless it returns REPLY_WHOLE, nothing was appended, except that after
 * REPLY_NO_MEMORY p may have a part and must be thrown away.
 */
enum reply_outcome reply_append(struct reply *r, struct body *b,
    struct kvr_prompt *p, uint64_t *bytes);
/* Frees all that was kept. The next begin does so, too. */
void reply_forget(struct reply *r);

#endif
