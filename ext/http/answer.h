/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h - what an engine's answer tells, read while it passes by.
 *
 *   engine --> | piece | piece | piece | --> client
 *                  |       |       |
 *                  +-- answer_data ---> started? failed? tokens cached?
 *
 * An answer is one JSON object, or a stream of events with one each. Pieces
 * may be cut anywhere and say the same as the whole would. Nothing is kept of
 * what was read but numbers; nothing waits, unless events are to be taken out.
 *
 * What counts, of whole and valid JSON objects only:
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
 * The last number seen of each kind counts. A number of tokens is a whole
 * number from 0 to 2^53, written without fraction or exponent; anything else
 * is as if it were not there. Keys written with escapes are not known.
 *
 * An answer's memory is a few hundred bytes while no event is under way, and
 * a few kilobytes else, however long the event. After a JSON answer it keeps
 * these for the next one that it is begun for. Without memory an event says
 * nothing, and passes.
 */
#ifndef KVROUTE_ANSWER_H
#define KVROUTE_ANSWER_H

#include "kvroute.h"

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
 * Begins an answer and forgets the one before. strip: its stream will be
 * given to answer_strip instead of answer_data.
 */
void answer_begin(struct answer *a, enum answer_kind kind, bool strip);

/* The next bytes; any number. */
void answer_data(struct answer *a, const void *bytes, size_t n);

/*
 * Has the first token come? True from the end of the first event on that
 * engines send after prefill only: a JSON object that is not an error, has no
 * empty list of choices and no prompt_progress, and whose type, if any, is not
 * one of those that come at once: message_start, ping, response.created,
 * response.queued, response.in_progress. Comments and [DONE] are no such
 * event. Never true of ANSWER_JSON.
 */
bool answer_started(const struct answer *a);

/*
 * Did the engine say that it failed? An object with an `error` that is not
 * null, of type (or object) "error", or of type "response.failed".
 */
bool answer_failed(const struct answer *a);

/*
 * The answer has ended, whole or not; what it told is written to kind,
 * prompt_tokens, cached_tokens and completion_tokens of the report, and of its
 * flags KVR_REPORT_STREAM and, if it failed, KVR_REPORT_NO_EVIDENCE are added.
 * All else in the report, `size` too, is yours. When stripping, call
 * answer_flush before.
 */
void answer_end(struct answer *a, struct kvr_report *report);

/*
 * For clients that did not ask for usage in a stream when the proxy did: as
 * answer_data, and writes to `out` what may go on to the client, which is all
 * but whole events that have usage and an empty list of choices. `out` has
 * room for answer_held(a) + n bytes and does not overlap `bytes`; returns how
 * many were written.
 *
 * Only the event under way is held back, at most ANSWER_HELD_MAX bytes of it,
 * and only until it is plain that it stays: at the latest when its first
 * choice begins. Longer events pass, as do all when memory is short.
 */
size_t answer_strip(struct answer *a, const void *bytes, size_t n, void *out);
/* How many bytes are held back now. */
size_t answer_held(const struct answer *a);
/*
 * No more bytes will come: writes what is held, unless it is such an event
 * whose empty line is missing. Room for answer_held(a); returns how many.
 */
size_t answer_flush(struct answer *a, void *out);

#endif
