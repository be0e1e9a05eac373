/* SPDX-License-Identifier: BSD-2-Clause */
/* tokenizer.c - see tokenizer.h. */
#include "tokenizer.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { WORD_MAX = 5, BLANKS_MAX = 8, SIGNS_MAX = 2, CHARACTER_MAX = 4 };

enum kind { LETTER, DIGIT, BLANK, SIGN, LEAD, CONTINUATION };

static enum kind
kind_of(char c)
{
	unsigned char u = (unsigned char)c;

	if (u >= 0x80)
		return u < 0xc0 ? CONTINUATION : LEAD;
	if ((u >= 'a' && u <= 'z') || (u >= 'A' && u <= 'Z'))
		return LETTER;
	if (u >= '0' && u <= '9')
		return DIGIT;
	return u <= ' ' ? BLANK : SIGN;
}

/* The number of leading bytes of that kind, at most `most`. */
static size_t
run(const char *text, size_t n, enum kind kind, size_t most)
{
	size_t i = 0;

	while (i < n && i < most && kind_of(text[i]) == kind)
		i++;
	return i;
}

static size_t
same_blanks(const char *text, size_t n)
{
	size_t i = 1;

	while (i < n && i < BLANKS_MAX && text[i] == text[0])
		i++;
	return i;
}

size_t
token_length(const char *text, size_t n)
{
	switch (kind_of(text[0])) {
	case LETTER:
		return run(text, n, LETTER, WORD_MAX);
	case BLANK:
		if (text[0] == ' ' && n > 1 && kind_of(text[1]) == LETTER)
			return 1 + run(text + 1, n - 1, LETTER, WORD_MAX);
		return same_blanks(text, n);
	case SIGN:
		return run(text, n, SIGN, SIGNS_MAX);
	case LEAD:
		return 1 + run(text + 1, n - 1, CONTINUATION,
		    CHARACTER_MAX - 1);
	case DIGIT:
	case CONTINUATION:
	default:
		return 1;
	}
}

void
token_list_free(struct token_list *t)
{
	free(t->ids);
	t->ids = NULL;
	t->n = t->room = 0;
}

void
token_list_add(struct token_list *t, uint32_t id)
{
	size_t want = t->room == 0 ? 256 : t->room * 2;
	uint32_t *p;

	if (t->n == t->room) {
		p = t->failed ? NULL : realloc(t->ids, want * sizeof(*p));
		if (p == NULL) {
			t->failed = true;
			return;
		}
		t->ids = p;
		t->room = want;
	}
	t->ids[t->n++] = id;
}

void
token_list_text(struct token_list *t, const char *text, size_t n)
{
	size_t length;
	uint32_t id;

	for (; n > 0; text += length, n -= length) {
		length = token_length(text, n);
		id = XXH32(text, length, 0);
		token_list_add(t, id < TOKEN_TEXT ? TOKEN_TEXT : id);
	}
}
