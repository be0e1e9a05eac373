/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spares.h - readers of requests and responses that no request has, so
 * that few are made. All 0 at first; `lock` is for a proxy with threads.
 */
#ifndef KVROUTE_SPARES_H
#define KVROUTE_SPARES_H

#include <pthread.h>
#include <stddef.h>

#include "answer.h"
#include "body.h"
#include "kvroute.h"
#include "reply_message.h"

enum { SPARES_MOST = 64, SPARES_BODIES = 16 };

struct spare_list {
	void *one[SPARES_MOST];
	size_t n;
};

struct spares {
	pthread_mutex_t *lock;  /* NULL: there is one thread */
	struct spare_list bodies, prompts, answers, replies;
};

/* NULL: no memory. Giving NULL back is accepted. */
struct body *spare_body(struct spares *s);
void spare_body_back(struct spares *s, struct body *b);
struct kvr_prompt *spare_prompt(struct spares *s, const struct kvr *k);
/* A large one is freed. */
void spare_prompt_back(struct spares *s, struct kvr_prompt *p);
struct answer *spare_answer(struct spares *s);
void spare_answer_back(struct spares *s, struct answer *a);
struct reply *spare_reply(struct spares *s);
void spare_reply_back(struct spares *s, struct reply *r);
/* Frees all of them. */
void spares_free(struct spares *s);

#endif
