/* SPDX-License-Identifier: BSD-2-Clause */
/* spares.c - see spares.h. */
#include "spares.h"

#include <stdbool.h>

enum { PROMPT_UNITS = 1 << 20 }; /* of one that is kept, at most */

static void
spares_lock(struct spares *s)
{
	if (s->lock != NULL)
		(void)pthread_mutex_lock(s->lock);
}

static void
spares_unlock(struct spares *s)
{
	if (s->lock != NULL)
		(void)pthread_mutex_unlock(s->lock);
}

/* NULL: the list is empty. */
static void *
spare_take(struct spares *s, struct spare_list *list)
{
	void *one = NULL;

	spares_lock(s);
	if (list->n > 0)
		one = list->one[--list->n];
	spares_unlock(s);
	return one;
}

/* False: there are enough. */
static bool
spare_keep(struct spares *s, struct spare_list *list, size_t most, void *one)
{
	bool kept;

	spares_lock(s);
	kept = list->n < most;
	if (kept)
		list->one[list->n++] = one;
	spares_unlock(s);
	return kept;
}

struct body *
spare_body(struct spares *s)
{
	struct body *b = spare_take(s, &s->bodies);

	return b != NULL ? b : body_new();
}

void
spare_body_back(struct spares *s, struct body *b)
{
	if (b == NULL)
		return;
	body_trim(b);
	body_ignore(b, NULL, NULL);
	if (!spare_keep(s, &s->bodies, SPARES_BODIES, b))
		body_free(b);
}

struct kvr_prompt *
spare_prompt(struct spares *s, const struct kvr *k)
{
	struct kvr_prompt *p = spare_take(s, &s->prompts);

	if (p == NULL && kvr_prompt_new(k, &p) != KVR_OK)
		return NULL;
	return p;
}

void
spare_prompt_back(struct spares *s, struct kvr_prompt *p)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };

	if (p == NULL)
		return;
	if ((kvr_prompt_info_get(p, &info) == KVR_OK &&
	    info.units > PROMPT_UNITS) ||
	    !spare_keep(s, &s->prompts, SPARES_MOST, p))
		kvr_prompt_free(p);
}

struct answer *
spare_answer(struct spares *s)
{
	struct answer *a = spare_take(s, &s->answers);

	return a != NULL ? a : answer_new();
}

void
spare_answer_back(struct spares *s, struct answer *a)
{
	if (a != NULL && !spare_keep(s, &s->answers, SPARES_MOST, a))
		answer_free(a);
}

struct reply *
spare_reply(struct spares *s)
{
	struct reply *r = spare_take(s, &s->replies);

	return r != NULL ? r : reply_new();
}

void
spare_reply_back(struct spares *s, struct reply *r)
{
	if (r == NULL)
		return;
	reply_forget(r);
	if (!spare_keep(s, &s->replies, SPARES_MOST, r))
		reply_free(r);
}

void
spares_free(struct spares *s)
{
	while (s->bodies.n > 0)
		body_free(s->bodies.one[--s->bodies.n]);
	while (s->prompts.n > 0)
		kvr_prompt_free(s->prompts.one[--s->prompts.n]);
	while (s->answers.n > 0)
		answer_free(s->answers.one[--s->answers.n]);
	while (s->replies.n > 0)
		reply_free(s->replies.one[--s->replies.n]);
}
