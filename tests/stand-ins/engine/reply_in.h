/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_in.h - shared by the files of reply.h. */
#ifndef KVROUTE_REPLY_IN_H
#define KVROUTE_REPLY_IN_H

#include "reply.h"

/* Formatted, to the response. */
void reply_put(struct reply *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A string as JSON, with its quotes. */
void reply_quote(struct reply *r, const char *text, size_t n);
/* Text of a choice from one token to before another, quoted or as it is. */
void reply_quote_tokens(struct reply *r, size_t choice, size_t first,
    size_t last);
void reply_put_tokens(struct reply *r, size_t choice, size_t first,
    size_t last);
/* A part from a choice's output; NULL: it has none of that kind. */
const struct output_part *reply_part(const struct reply *r, size_t choice,
    enum output_kind kind);
/* Why a choice ended, in the words of a format. */
const char *reply_reason(const struct reply *r, size_t choice,
    const char *length, const char *stop, const char *call);
bool reply_cached_known(const struct reply *r);

/* /v1/chat/completions, /v1/completions */
void openai_first(struct reply *r);
/*
 * Each format has these: a part begins, has so many tokens more, ends. `i` is
 * its index. Messages and responses have one choice.
 */
void openai_begin(struct reply *r, size_t choice, size_t i);
void openai_text(struct reply *r, size_t choice, size_t i, size_t first,
    size_t last);
void openai_stop(struct reply *r, size_t choice);
void openai_last(struct reply *r);
void openai_whole(struct reply *r);
/* /v1/responses */
void responses_early(struct reply *r);
void responses_first(struct reply *r);
void responses_begin(struct reply *r, size_t i);
void responses_text(struct reply *r, size_t i, size_t first, size_t last);
void responses_end(struct reply *r, size_t i);
void responses_last(struct reply *r);
void responses_whole(struct reply *r);
/* /v1/messages */
void messages_early(struct reply *r);
void messages_first(struct reply *r);
void messages_begin(struct reply *r, size_t i);
void messages_text(struct reply *r, size_t i, size_t first, size_t last);
void messages_end(struct reply *r, size_t i);
void messages_last(struct reply *r);
void messages_whole(struct reply *r);

#endif
