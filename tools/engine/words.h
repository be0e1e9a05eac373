/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * words.h - kvroute-engine's output: pseudorandom text of a given number of
 * tokens, with quotes, newlines and characters outside ASCII.
 */
#ifndef KVROUTE_WORDS_H
#define KVROUTE_WORDS_H

#include "tokenizer.h"

struct words {
	char *text;
	uint32_t *ends; /* [n], of each token in the text */
	size_t n;
};

/* Also adds the tokens to `tokens`. False: no memory. */
bool words_make(struct words *w, uint64_t seed, size_t n,
    struct token_list *tokens);
void words_free(struct words *w);
/* Text of the tokens from `first` to before `last`; its length. */
const char *words_text(const struct words *w, size_t first, size_t last,
    size_t *length);

#endif
