/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h - reads usage, ids and first token of an engine's response as it
 * passes.
 *
 *   engine --> | piece | piece | piece | --> client
 *                  |       |       |
 *                  +-- answer_data ---> started? failed? tokens cached?
 *
 * A response is one JSON object, or a stream of events with one each. It may be
 * cut into pieces anywhere; the result is the same. Only numbers and ids are
 * kept, and nothing is delayed unless events are to be stripped.
 *
 * Only whole and valid JSON objects count. These members are read:
 *
 *   chat/completions,    usage.prompt_tokens, .completion_tokens,
 *   completions              .prompt_tokens_details.cached_tokens
 *   responses            usage.input_tokens, .output_tokens,
 *                            .input_tokens_details.cached_tokens;
 *                        in streams response.usage
 *   messages             usage.input_tokens, .output_tokens,
 *                            .cache_read_input_tokens,
 *                            .cache_creation_input_tokens; in streams
 *                        message.usage first, then usage; the prompt is
 *                        input + read + creation
 *   llama.cpp            timings.cache_n, .prompt_n, .predicted_n, each
 *                        where usage has no such number
 *
 *   ids                  id, conversation.id; in streams of responses
 *                        response.id, response.conversation.id
 *
 * The last number of each kind that is not 0 counts: a later event that repeats
 * a number as 0 takes nothing back. The first id counts, and in streams only
 * until the first token. A number of tokens is a whole number from 0 to 2^53,
 * however it is written (640, 640.0, 6.4e2); anything else is ignored. Keys
 * written with escapes are ignored, too.
 *
 * An answer takes a kilobyte of memory between events, and a few kilobytes
 * during an event of any length. A JSON response keeps these for the next one.
 * Without memory an event is ignored and passed on.
 */
#ifndef KVROUTE_ANSWER_H
#define KVROUTE_ANSWER_H

#include "kvroute.h"
#include "usage.h"

#include <stdbool.h>
#include <stddef.h>

enum answer_kind {
	ANSWER_JSON,  /* application/json */
	ANSWER_STREAM /* text/event-stream */
};

enum { ANSWER_HELD_MAX = 16384 };

struct answer;

/* Returns NULL without memory; answer_free frees it. */
struct answer *answer_new(void);
void answer_free(struct answer *a);

/*
 * Begins a response and forgets the previous one. With `strip` the stream goes
 * to answer_strip instead of answer_data.
 */
void answer_begin(struct answer *a, enum answer_kind kind, bool strip);

/* Reads the next n bytes, which may be cut anywhere. */
void answer_data(struct answer *a, const void *bytes, size_t n);

/*
 * Has the first token arrived? True from the end of the first event that
 * engines send only after prefill: a JSON object that is not an error, has no
 * empty list of choices, no prompt_progress, and no type that is sent at once:
 * message_start, ping, response.created, response.queued,
 * response.in_progress. Comments and [DONE] do not count. Always false for
 * ANSWER_JSON.
 */
bool answer_started(const struct answer *a);

/* Counts the events with data that have ended, from the first token on. */
uint64_t answer_events(const struct answer *a);

/*
 * Did the engine report a failure? It does so by an object with an `error` that
 * is not null, of type (or object) "error", or of type "response.failed".
 */
bool answer_failed(const struct answer *a);

/*
 * Finds the id of the answer, or of its conversation, as soon as it has been
 * read; false: none so far. *id is valid until the next call that changes `a`.
 * An id of more than OBJECT_ID_MAX bytes or with an escape is ignored.
 */
bool answer_id(const struct answer *a, enum object_id which, const char **id,
    size_t *n);

/*
 * Ends the response, whole or not. Writes kind, prompt_tokens, cached_tokens
 * and completion_tokens of the report, and adds the flags KVR_REPORT_STREAM
 * and, after a failure, KVR_REPORT_NO_EVIDENCE. The caller fills the rest of
 * the report, including `size`. When stripping, call answer_flush before.
 */
void answer_end(struct answer *a, struct kvr_report *report);

/*
 * Reads as answer_data does, and writes all but usage to `out`, if only the
 * proxy has requested the usage of the stream. An event with usage and no
 * choice is left out, whether its list is empty, null or missing. One with a
 * choice or an error loses its member `usage` and is otherwise the same. `out`
 * has room for answer_held(a) + n bytes and does not overlap `bytes`. Returns
 * the number of bytes written.
 *
 * Only the current event is held back, at most ANSWER_HELD_MAX bytes of it,
 * until it ends: no client can use a part of it. Data that cannot become an
 * object is not held. Longer events pass, as do all when memory is short.
 */
size_t answer_strip(struct answer *a, const void *bytes, size_t n, void *out);
/* Returns how many bytes are held back now. */
size_t answer_held(const struct answer *a);
/*
 * Ends the stream: writes the bytes that are held, unless they are an event to
 * be left out that lacks its empty line. `out` has room for answer_held(a)
 * bytes. Returns the number of bytes written.
 */
size_t answer_flush(struct answer *a, void *out);

#endif
