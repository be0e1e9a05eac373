/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_trace.h - reads recorded sessions of agents, one JSON file each, in
 * the format of kv-cache-tester.
 *
 *   { "tool_tokens": 12439, "system_tokens": 2979, "block_size": 64,
 *     "requests": [
 *       { "t": 0, "type": "s", "in": 1500, "out": 90, "hash_ids": [1, ...] },
 *       { "t": 9, "type": "subagent", "requests": [ ... ] },
 *       { "t": 30, "type": "n", "think_time": 4.5, ... } ] }
 *
 * A session is a tree of conversations: the main one and those of sub-agents.
 * An entry of a conversation is a request or a sub-agent.
 *
 *   talks    [ main: 0..2 | agent: 3..4 ]        ranges of entries
 *   entries  [ request | agent 1 | request | request | request ]
 *   ids      [ of the first request | of the second | ...     ]
 *
 * hash_ids stand for complete blocks of block_size tokens, which divides 512.
 * They are combined into one id for each 512 tokens. If the next request of a
 * conversation repeats all ids of a request and is longer by at least its
 * output, it contains that output, and its ids also stand for the incomplete
 * end of the prompt and for the output:
 *
 *   request       | A | B | c |          prompt
 *                             | d |      output
 *   next          | A | B | c   d | E |  "c d" and "E" are known
 *
 * Sizes are bounded as follows; everything else is an error.
 */
#ifndef KVROUTE_SESSION_TRACE_H
#define KVROUTE_SESSION_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	SESSION_BLOCK = 512,            /* tokens per id, as in trace.h */
	SESSION_TOKENS_MAX = 1 << 22,   /* of a prompt; of an output */
	SESSION_ENTRIES_MAX = 1 << 16,
	SESSION_IDS_MAX = 1 << 24,      /* of all prompts */
	SESSION_NESTED_MAX = 8,         /* sub-agents of sub-agents */
	SESSION_BYTES_MAX = 1 << 28,    /* of a file */
	SESSION_ERROR_BYTES = 320
};
#define SESSION_SECONDS_MAX 1e8 /* three years */

struct session_entry {
	/*
	 * After the previous response of this conversation ended, or the
	 * conversation began.
	 */
	int64_t after_ns;
	size_t talk;         /* of a sub-agent; 0: a request */
	uint64_t input;      /* tokens, above 0 */
	uint64_t output;     /* tokens */
	uint64_t known;      /* tokens of the output that ids stand for */
	size_t first_id;
	size_t n_ids;        /* one per SESSION_BLOCK of input and known */
	size_t n_common;     /* of them: tools and system prompt */
};

struct session_talk {
	size_t first; /* entry */
	size_t n;
	uint64_t tool_tokens;
	uint64_t system_tokens;
};

struct session {
	struct session_talk *talks; /* 0 is the main one */
	size_t n_talks;
	struct session_entry *entries;
	size_t n_entries;
	uint64_t *ids;
	size_t n_ids;
	uint64_t requests;
};

/*
 * Reads the whole file, which the caller closes; `name` appears in the error.
 * NULL: failed, and `error` is "name: message".
 */
struct session *session_read(FILE *file, const char *name,
    char error[SESSION_ERROR_BYTES]);
void session_free(struct session *s);

#endif
