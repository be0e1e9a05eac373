/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pull.h - an engine whose events are polled: TensorRT-LLM's JSON. Each answer
 * has the events of all ranks since the one before, and is given once.
 */
#ifndef KVROUTE_PULL_H
#define KVROUTE_PULL_H

#include "http.h"
#include "hub.h"

struct pull;

/* NULL: no memory. */
struct pull *pull_open(const struct conf_stream *conf, struct http *http);
void pull_close(struct pull *p);
struct hub *pull_hub(struct pull *p);
/* Never waits. */
void pull_work(struct pull *p, int64_t now);
void pull_row(const struct pull *p, const struct hub_target *t,
    struct tell_row *row);

#endif
