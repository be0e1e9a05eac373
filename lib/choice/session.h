/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.h - the effect of a request's affinity on its choice.
 */
#ifndef KVR_SESSION_H
#define KVR_SESSION_H

#include "question.h"

typedef double session_cost_fn(const struct question *q, uint32_t slot);

/* Fills q->session; the eligible workers are known. */
void session_begin(struct question *q);
/* Whether the session demands a worker, whatever it costs: *slot. */
bool session_pins(const struct question *q, uint32_t *slot);
/* After a choice by cost: of workers as good the key takes its first. */
void session_prefer(const struct question *q, session_cost_fn *cost,
    struct choice *c);
/* The outcome of the binding, and the facts of it that the lease keeps. */
void session_close(const struct question *q, struct choice *c);

#endif
