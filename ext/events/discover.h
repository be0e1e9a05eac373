/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * discover.h - asks SGLang servers where they publish: /server_info.
 */
#ifndef KVROUTE_DISCOVER_H
#define KVROUTE_DISCOVER_H

#include "conf.h"
#include "http.h"

struct discover;

/* Of an entry with a server, which it copies. NULL: no memory. */
struct discover *discover_new(const struct conf_stream *entry,
    struct http *http);
void discover_free(struct discover *d);
/*
 * If the entry describes the same server, takes over what may change while its
 * streams are followed. false: it does not.
 */
bool discover_change(struct discover *d, const struct conf_stream *entry);
/* Asks now and then; true if the streams are others than before. */
bool discover_work(struct discover *d, int64_t now);
/* One for each rank; none as long as it has not answered. */
const struct conf *discover_streams(const struct discover *d);
/*
 * What an answer says. false: `why` says what is wrong, or that it publishes
 * nothing. For the tests, too.
 */
bool discover_read(const struct conf_stream *entry, const char *json, size_t n,
    struct conf *out, const char **why);

#endif
