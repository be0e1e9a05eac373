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
/* Text of a choice from one token to before another, quoted. */
void reply_quote_tokens(struct reply *r, size_t choice, size_t first,
    size_t last);
const char *reply_reason(const struct reply *r, const char *length,
    const char *stop);
bool reply_cached_known(const struct reply *r);

/* /v1/chat/completions, /v1/completions */
void openai_first(struct reply *r);
void openai_text(struct reply *r, size_t choice, size_t until);
void openai_stop(struct reply *r, size_t choice);
void openai_last(struct reply *r);
void openai_whole(struct reply *r);
/* /v1/responses */
void responses_early(struct reply *r);
void responses_first(struct reply *r);
void responses_text(struct reply *r, size_t until);
void responses_last(struct reply *r);
void responses_whole(struct reply *r);
/* /v1/messages */
void messages_early(struct reply *r);
void messages_first(struct reply *r);
void messages_text(struct reply *r, size_t until);
void messages_last(struct reply *r);
void messages_whole(struct reply *r);

#endif
