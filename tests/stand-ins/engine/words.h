/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words.h - text and its tokens: pseudorandom words, with quotes, newlines and
 * characters outside ASCII, and text that is given.
 */
#ifndef KVROUTE_WORDS_H
#define KVROUTE_WORDS_H

#include "tokenizer.h"

struct words {
	char *text;     /* with a zero byte at its end */
	uint32_t *ends; /* [n], of each token in the text */
	size_t n;
	size_t room;    /* tokens */
};

/* Empty, with room for so many tokens. False: no memory; then words_free. */
bool words_begin(struct words *w, size_t room);
/*
 * Both add tokens to the text and to `tokens`, which may be NULL, as long as
 * there is room: n pseudorandom ones; those of a text.
 */
void words_draw(struct words *w, uint64_t seed, size_t n,
    struct token_list *tokens);
void words_put(struct words *w, const char *text, struct token_list *tokens);
void words_free(struct words *w);
/* Text of the tokens from `first` to before `last`; its length. */
const char *words_text(const struct words *w, size_t first, size_t last,
    size_t *length);

#endif
