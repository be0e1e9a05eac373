/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rate.h - prefill rates and backlogs.
 */
#ifndef KVR_RATE_H
#define KVR_RATE_H

#include "region.h"

/* Initial rate of the fleet: a mid-range GPU with a mid-size model. */
#define RATE_FIRST_SECONDS 2.0
#define RATE_FIRST_TOKENS (17000.0 * RATE_FIRST_SECONDS)

void rate_recover(struct kvr *k);
bool rate_sane(const struct kvr *k);
double rate_fleet(const struct kvr *k);
void rate_forget(struct kvr *k, uint32_t slot);
void rate_publish(struct kvr *k, uint32_t slot);
double rate_wait(const struct kvr *k, uint32_t slot, int64_t now);
bool rate_spoken(const struct kvr *k);
void rate_ended(struct kvr *k, bool spoken);
double rate_backlog(const struct kvr *k, uint32_t slot, int64_t now);
double rate_arrivals(const struct kvr *k, int64_t now);
void rate_book(struct kvr *k, uint32_t slot, uint64_t tokens, int64_t now,
    bool speaks);
void rate_unbook(struct kvr *k, uint32_t slot, int64_t now, bool speaks);
void rate_learn(struct kvr *k, uint32_t slot, uint64_t tokens,
    int64_t opened, int64_t now);

#endif
