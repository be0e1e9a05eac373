/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask.h - the body of a request: its prompts as tokens, and its options.
 *
 * Prompts are assembled as by a chat template:
 *
 *   chat         BEGIN, then for each message
 *                MESSAGE role "\n" content END "\n"
 *                and last MESSAGE "assistant" "\n", for the response
 *   completions  BEGIN text; token ids are taken as they are
 *
 * Tools are a message at the front, as JSON. An image is IMAGE_TOKENS tokens,
 * determined by its part. Calls of tools are written as in output.h, and
 * reasoning is left out. In /v1/responses items of the model that follow each
 * other are one message; items of earlier turns that the engine has kept come
 * before those of the body.
 */
#ifndef KVROUTE_ASK_H
#define KVROUTE_ASK_H

#include "kept.h"
#include "tokenizer.h"

enum {
	ASK_CHAT, ASK_COMPLETIONS, ASK_RESPONSES, ASK_MESSAGES,
	ASK_EMBEDDINGS, ASK_KINDS
};
enum { IMAGE_TOKENS = 256, ASK_PROMPTS_MAX = 256, ASK_ANSWER_MAX = 65536 };

struct ask_rules {
	const char *const *models; /* known ones; the first if none is named */
	size_t n_models;
	bool any_model;            /* others are accepted */
	const struct kept *kept;   /* earlier turns; NULL: none */
};

struct ask {
	int kind;                 /* ASK_CHAT, ... */
	bool stream;
	bool include_usage;
	bool continuous_usage;
	bool compute_all;         /* the cache must not be read */
	char *model;
	uint64_t salt;            /* of the model and cache_salt */
	char *salt_text;          /* cache_salt, or NULL */
	uint32_t choices;         /* of each prompt */
	uint32_t max_tokens;      /* 0: the engine's default */
	struct token_list *prompts;
	size_t n_prompts;
	char **tools;             /* names of the tools that may be called */
	size_t n_tools;
	bool store;               /* of /v1/responses, as the members below */
	char *previous;           /* the response before, or NULL */
	char *conversation;       /* or NULL */
	struct json_object *items; /* earlier ones, input; NULL: to be lost */
	size_t n_earlier;
	int status;               /* of an error: 400, 404, 500; or 0 */
	char error[160];
};

/* Reads n bytes of a body; the result is a->status. ask_free frees a. */
void ask_read(struct ask *a, int kind, const struct ask_rules *rules,
    const char *body, size_t n);
void ask_free(struct ask *a);

#endif
