/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tokenizer.h - kvroute-engine's tokenizer.
 *
 * It has no vocabulary, but realistic lengths: a word of up to five letters and
 * the blank before it are one token, longer words are several; each digit and
 * each character outside ASCII is one; signs go in pairs, blanks in runs.
 *
 *   " The answer is 42, naturally."
 *   [ The][ answe][r][ is][ ][4][2][,][ natur][ally][.]
 *
 * The end of a token depends only on the bytes from its beginning on. So text
 * that is cut at the end of a token has the same tokens as before: a response
 * that a client sends back hits its own blocks.
 */
#ifndef KVROUTE_TOKENIZER_H
#define KVROUTE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Special tokens. Tokens of text are not below TOKEN_TEXT. */
enum { TOKEN_BEGIN, TOKEN_MESSAGE, TOKEN_END, TOKEN_IMAGE, TOKEN_TEXT };

struct token_list {
	uint32_t *ids;
	size_t n;
	size_t room;
	bool failed; /* no memory: incomplete */
};

void token_list_free(struct token_list *t);
void token_list_add(struct token_list *t, uint32_t id);
void token_list_text(struct token_list *t, const char *text, size_t n);
/* The length of the first token of n > 0 bytes. */
size_t token_length(const char *text, size_t n);

#endif
