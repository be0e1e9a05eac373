/* SPDX-License-Identifier: BSD-2-Clause */
/* words.c - see words.h. */
#include "words.h"

#include "rng.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8 }; /* bytes of a token */

static const char *const vocabulary[] = {
	" the", " of", " and", " a", " to", " in", " is", " that", " for",
	" it", " as", " with", " on", " be", " at", " by", " this", " from",
	" or", " an", " are", " not", " which", " one", " all", " there",
	" prefix", " cache", " block", " engine", " router", " token",
	" memory", " answer", " question", " worker", " request", " because",
	" between", " however", " therefore", " something", " 7", " 42",
	" 1999", " na\xc3\xafve", " \xc2\xb5s", " \xe2\x82\xac", " \"so\"",
	" C:\\", ",", ".", ".\n", ";", ":\n\n", " (a)", " x = 1", "?", "!",
	"\t-"
};
enum { VOCABULARY = sizeof(vocabulary) / sizeof(vocabulary[0]) };

/* Adds the tokens of a word, as far as there is room. */
static size_t
add_word(struct words *w, size_t at, const char *word, size_t most,
    struct token_list *tokens)
{
	size_t n = strlen(word), i = 0, length;

	while (i < n && w->n < most) {
		length = token_length(word + i, n - i);
		memcpy(w->text + at, word + i, length);
		token_list_text(tokens, word + i, length);
		i += length;
		at += length;
		w->ends[w->n++] = (uint32_t)at;
	}
	return at;
}

bool
words_make(struct words *w, uint64_t seed, size_t n, struct token_list *tokens)
{
	struct rng rng = { seed };
	const char *word;
	size_t at;

	w->n = 0;
	w->text = n < UINT32_MAX / LONGEST ? malloc(n * LONGEST + 1) : NULL;
	w->ends = calloc(n + 1, sizeof(w->ends[0]));
	if (w->text == NULL || w->ends == NULL)
		return false;
	at = add_word(w, 0, "So", n, tokens);
	while (w->n < n) {
		word = vocabulary[rng_between(&rng, 0, VOCABULARY - 1)];
		if (ispunct((unsigned char)word[0]) &&
		    !isalnum((unsigned char)w->text[at - 1]))
			continue; /* two signs would be one token */
		at = add_word(w, at, word, n, tokens);
	}
	w->text[at] = '\0';
	return !tokens->failed;
}

void
words_free(struct words *w)
{
	free(w->text);
	free(w->ends);
	w->text = NULL;
	w->ends = NULL;
	w->n = 0;
}

const char *
words_text(const struct words *w, size_t first, size_t last, size_t *length)
{
	size_t from = first == 0 ? 0 : w->ends[first - 1];

	*length = last == 0 ? 0 : w->ends[last - 1] - from;
	return w->text + from;
}
