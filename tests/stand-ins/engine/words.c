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

/* Adds the tokens of a text until there are `most`. */
static void
add(struct words *w, const char *text, size_t most, struct token_list *tokens)
{
	size_t n = strlen(text), i = 0, length;
	size_t at = w->n == 0 ? 0 : w->ends[w->n - 1];

	while (i < n && w->n < most) {
		length = token_length(text + i, n - i);
		memcpy(w->text + at, text + i, length);
		if (tokens != NULL)
			token_list_text(tokens, text + i, length);
		i += length;
		at += length;
		w->ends[w->n++] = (uint32_t)at;
	}
	w->text[at] = '\0';
}

bool
words_begin(struct words *w, size_t room)
{
	w->n = 0;
	w->room = room;
	w->text = room < UINT32_MAX / LONGEST ? malloc(room * LONGEST + 1) :
	    NULL;
	w->ends = calloc(room + 1, sizeof(w->ends[0]));
	if (w->text != NULL)
		w->text[0] = '\0';
	return w->text != NULL && w->ends != NULL;
}

void
words_draw(struct words *w, uint64_t seed, size_t n, struct token_list *tokens)
{
	size_t most = n < w->room - w->n ? w->n + n : w->room;
	struct rng rng = { seed };
	const char *word;

	add(w, "So", most, tokens);
	while (w->n < most) {
		word = vocabulary[rng_between(&rng, 0, VOCABULARY - 1)];
		if (ispunct((unsigned char)word[0]) &&
		    !isalnum((unsigned char)w->text[w->ends[w->n - 1] - 1]))
			continue; /* two signs would be one token */
		add(w, word, most, tokens);
	}
}

void
words_put(struct words *w, const char *text, struct token_list *tokens)
{
	add(w, text, w->room, tokens);
}

void
words_free(struct words *w)
{
	free(w->text);
	free(w->ends);
	w->text = NULL;
	w->ends = NULL;
	w->n = w->room = 0;
}

const char *
words_text(const struct words *w, size_t first, size_t last, size_t *length)
{
	size_t from = first == 0 ? 0 : w->ends[first - 1];

	*length = last == 0 ? 0 : w->ends[last - 1] - from;
	return w->text + from;
}
