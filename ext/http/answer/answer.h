/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h - usage, ids and first token of an engine's response, read in
 * passing.
 *
 *   engine --> | piece | piece | piece | --> client
 *                  |       |       |
 *                  +-- answer_data ---> started? failed? tokens cached?
 *
 * A response is one JSON object, or a stream of events with one each. It may be
 * cut into pieces anywhere; the result is the same. Only numbers are kept, and
 * nothing is delayed unless events are to be stripped.
 *
 * What counts, in whole and valid JSON objects only:
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
 * The last number of each kind counts; of ids the first, and in streams only
 * until the first token. A number of tokens is a whole number
 * from 0 to 2^53, without fraction or exponent; anything else is ignored. Keys
 * written with escapes are ignored, too.
 *
 * Memory: a kilobyte between events, a few kilobytes during one,
 * however long it is. After a JSON response these are kept for the next one.
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

/* NULL: no memory. */
struct answer *answer_new(void);
void answer_free(struct answer *a);

/*
 * Begins a response and forgets the previous one. strip: the stream will be
 * given to answer_strip instead of answer_data.
 */
void answer_begin(struct answer *a, enum answer_kind kind, bool strip);

/* The next bytes; any number. */
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

/* Events with data so far, from the first token on, the last one as it ends. */
uint64_t answer_events(const struct answer *a);

/*
 * Did the engine report a failure? An object with an `error` that is not null,
 * of type (or object) "error", or of type "response.failed".
 */
bool answer_failed(const struct answer *a);

/*
 * The id of the answer, or of the conversation that it belongs to, as soon as
 * it has been read; false: none so far. It lies in *id until the next call that
 * changes `a`. An id of more than OBJECT_ID_MAX bytes, or with an escape or a
 * question mark at its end, is none.
 */
bool answer_id(const struct answer *a, enum object_id which, const char **id,
    size_t *n);

/*
 * The response has ended, whole or not. Writes kind, prompt_tokens,
 * cached_tokens and completion_tokens of the report, and adds the flags
 * KVR_REPORT_STREAM and, after a failure, KVR_REPORT_NO_EVIDENCE. The rest of
 * the report, including `size`, is the caller's. When stripping, call
 * answer_flush before.
 */
void answer_end(struct answer *a, struct kvr_report *report);

/*
 * As answer_data, for streams whose usage was requested by the proxy only:
 * writes to `out` all but whole events that have usage and an empty list of
 * choices. `out` has room for answer_held(a) + n bytes and does not overlap
 * `bytes`; returns the number of bytes written.
 *
 * Only the current event is held back, at most ANSWER_HELD_MAX bytes of it,
 * and only until it is certain to stay: at the latest when its first choice
 * begins. Longer events pass, as do all when memory is short.
 */
size_t answer_strip(struct answer *a, const void *bytes, size_t n, void *out);
/* How many bytes are held back now. */
size_t answer_held(const struct answer *a);
/*
 * The stream has ended: writes what is held, unless it is such an event without
 * its empty line. Room for answer_held(a); returns the number written.
 */
size_t answer_flush(struct answer *a, void *out);

#endif
