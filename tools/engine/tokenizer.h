/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tokenizer.h - text to tokens, as kvroute-engine sees it.
 *
 * No vocabulary, but lengths like those of real ones: a word of up to five
 * letters is a token together with the blank before it, longer words are more
 * than one; digits are one each; so are characters that are not ASCII; signs
 * go in pairs, blanks in runs.
 *
 *   " The answer is 42, naturally."
 *   [ The][ answe][r][ is][ ][4][2][,][ natur][ally][.]
 *
 * Where a token ends depends on the bytes from its beginning on and on nothing
 * before them. So text that is cut at the end of a token has the same tokens
 * as before: an answer that a client sends back hits what it was.
 */
#ifndef KVROUTE_TOKENIZER_H
#define KVROUTE_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is in no text. Tokens of text are not below TOKEN_TEXT. */
enum { TOKEN_BEGIN, TOKEN_MESSAGE, TOKEN_END, TOKEN_IMAGE, TOKEN_TEXT };

struct token_list {
	uint32_t *ids;
	size_t n;
	size_t room;
	bool failed; /* no memory: some are missing */
};

void token_list_free(struct token_list *t);
void token_list_add(struct token_list *t, uint32_t id);
void token_list_text(struct token_list *t, const char *text, size_t n);
/* Bytes of the token that n > 0 bytes begin with. */
size_t token_length(const char *text, size_t n);

#endif
