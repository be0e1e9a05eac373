/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_bed.h - a pool with servers, and requests that pass through it. Time is
 * an argument everywhere, so each test is the same in each run.
 *
 * Requests are of one user message; `text` is repeated in it until it has
 * about so many bytes.
 */
#ifndef KVR_POOL_BED_H
#define KVR_POOL_BED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kvroute_http.h"

#define BED_SECOND INT64_C(1000000000)

/* In private memory, with servers "a", "b", ... of no facts. */
struct kvh *bed_pool(const char *options, unsigned servers);
int bed_server(struct kvh *h, const char *name, const char *facts);

enum { BED_PATH = 64 };

/* An empty file for a region; and its end, with that of its lock. */
void bed_file(char path[BED_PATH]);
void bed_file_end(const char *path);

/* Begun, with these headers ("name: value" lines, or NULL) and this body. */
struct kvh_call *bed_request(struct kvh *h, const char *path,
    const char *headers, const char *body, int64_t now);
/* A chat with that text; the string belongs to this file until the next. */
const char *bed_chat(const char *text, size_t bytes, const char *more);
/* A fact of a request; -1: it has no such fact. */
int64_t bed_fact(struct kvh_call *c, uint32_t which);
/* The first target, or "". */
const char *bed_target(struct kvh_call *c);
const char *bed_word(struct kvh_call *c, uint32_t which);
/* The body with the edits, and the headers that were set, as lines. */
const char *bed_edited(struct kvh_call *c, const char *body, char *headers,
    size_t room);
/* Passes a response in pieces; returns the client's. */
const char *bed_answer(struct kvh_call *c, uint32_t status, const char *type,
    const char *body, size_t piece, int64_t now);
/* A number of the JSON of kvh_status: the first one after this key. */
int64_t bed_count(struct kvh *h, const char *key);
int64_t bed_count_at(struct kvh *h, const char *key, int64_t now);

/* Responses with usage: so many prompt, cached and completion tokens. */
extern const char bed_json[], bed_stream[];

#endif
