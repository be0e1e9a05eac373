/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.h - asks SGLang servers where they publish: /server_info.
 */
#ifndef KVROUTE_DISCOVER_H
#define KVROUTE_DISCOVER_H

#include "conf.h"
#include "http.h"

struct discover;

/* Copies an entry that has a server. NULL: no memory. */
struct discover *discover_new(const struct conf_stream *entry,
    struct http *http);
void discover_free(struct discover *d);
/*
 * If the entry describes the same server, takes over the settings that may
 * change while its streams are followed. false: it does not.
 */
bool discover_change(struct discover *d, const struct conf_stream *entry);
/* Asks now and then; true if the streams are others than before. */
bool discover_work(struct discover *d, int64_t now);
/* One for each rank, as soon as it has answered. */
const struct conf *discover_streams(const struct discover *d);
/*
 * Reads an answer. false: `why` has the fault; an engine that publishes nothing
 * is one. For the tests, too.
 */
bool discover_read(const struct conf_stream *entry, const char *json, size_t n,
    struct conf *out, const char **why);

#endif
