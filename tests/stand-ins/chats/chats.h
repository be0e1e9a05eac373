/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats.h - the options of kvroute-chats.
 */
#ifndef KVROUTE_CHATS_H
#define KVROUTE_CHATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chats_endpoint {
	CHATS_CHAT, CHATS_COMPLETIONS, CHATS_RESPONSES, CHATS_MESSAGES,
	CHATS_ENDPOINTS
};
extern const char *const chats_endpoint_names[CHATS_ENDPOINTS];
extern const char *const chats_endpoint_paths[CHATS_ENDPOINTS];

/* When an aborting client closes the connection. */
enum chats_stage {
	CHATS_STAY,        /* never */
	CHATS_HALF_BODY,   /* half of the request's body is sent */
	CHATS_SENT,        /* the request is sent, no response yet */
	CHATS_HEADERS,     /* the headers of the response arrived */
	CHATS_FIRST_EVENT, /* and the first event, or the first bytes */
	CHATS_BYTES,       /* and a number of bytes of the response */
	CHATS_STAGES
};
extern const char *const chats_stage_names[CHATS_STAGES];

enum chats_format {
	CHATS_TEXT, CHATS_KV, CHATS_JSON, CHATS_TSV, CHATS_FORMATS
};
extern const char *const chats_format_names[CHATS_FORMATS];

enum { CHATS_HEADERS_MAX = 8, CHATS_PIDS_MAX = 16 };

struct chats_options {
	const char *url;       /* without a path: that is the endpoint's */
	const char *path;      /* the endpoint's */
	const char *model;
	enum chats_endpoint endpoint;
	bool stream;
	bool usage;            /* request it in streams */

	uint32_t chats;        /* at a time */
	uint64_t requests;     /* in total; 0: until the time is over */
	int64_t run_ns;        /* 0: until all requests are done */
	int64_t warm_up_ns;    /* earlier requests are not counted */
	int64_t timeout_ns;    /* of a request */
	uint64_t seed;

	uint32_t systems;      /* system prompts that chats share */
	uint64_t system_bytes;
	uint32_t turns;        /* of a chat; of a main agent: their mean */
	uint64_t turn_bytes;
	uint32_t answer_tokens; /* 0: the engine's default */
	int64_t think_ns;      /* mean pause between turns */

	uint64_t sessions;     /* of agents, instead of chats; 0 */
	uint64_t agents;       /* sub-agents at a time, at most */
	uint64_t prompt;       /* tokens of tools and system prompt */
	uint64_t limit;        /* of a prompt, then a summary replaces it */
	uint64_t shrink;       /* divides all lengths in tokens */
	const char *session_header; /* with the session's id; NULL */

	const char *body;      /* a file to send repeatedly; NULL */
	uint64_t make_body;    /* write a body of this size; 0 */
	bool vary;

	enum chats_stage abort; /* the stage of aborts */
	uint32_t abort_percent;
	uint64_t abort_bytes;

	const char *headers[CHATS_HEADERS_MAX];
	size_t n_headers;
	int pids[CHATS_PIDS_MAX]; /* processes to report CPU time and RSS of */
	size_t n_pids;
	enum chats_format format;
	bool quiet;
};

/* Reads the command line; exits on errors. */
void chats_options(struct chats_options *o, int argc, char **argv);

#endif
