/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.h - a limit on the requests of one worker, by those of the others.
 */
#ifndef KVR_BOUND_H
#define KVR_BOUND_H

#include "question.h"

struct taken {
	double running; /* requests */
	double places;  /* of the workers of which they are known */
	uint32_t known; /* such workers */
	uint32_t most;  /* requests of one worker */
};

struct taken bound_taken(const struct question *q);
void bound_find(struct question *q, const struct taken *t);

#endif
