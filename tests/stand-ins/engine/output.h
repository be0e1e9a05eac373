/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * output.h - the output of kvroute-engine: the parts of an answer.
 *
 *   reasoning | text | call | call
 *
 * Each is there or not: by default an answer is text. A call is of a tool that
 * the request has, with arguments as models write them, with blanks:
 *
 *   <tool_call>                  OUTPUT_CALL
 *   look_up                      the name
 *   {"query": "So \"it\" is"}    a part: the tokens that are sent
 *   </tool_call>                 OUTPUT_CALL_END
 *
 * The template of ask.h writes the calls of earlier answers in the same way,
 * and leaves reasoning out. So a client that sends an answer back hits all of
 * its blocks, if it has no reasoning.
 *
 * All of it is drawn by the seed: the same prompt has the same answer.
 */
#ifndef KVROUTE_OUTPUT_H
#define KVROUTE_OUTPUT_H

#include "words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

#define OUTPUT_CALL "\n<tool_call>\n"
#define OUTPUT_CALL_END "\n</tool_call>"

enum output_kind { OUTPUT_REASONING, OUTPUT_TEXT, OUTPUT_TOOL };
enum { OUTPUT_CALLS_MAX = 2, OUTPUT_PARTS_MAX = 2 + OUTPUT_CALLS_MAX };

struct output_part {
	enum output_kind kind;
	size_t first, last; /* tokens, to before the last; at least one */
	const char *name;   /* of the tool: that of output_facts */
	uint64_t id;        /* of the call */
};

struct output {
	struct words words;
	struct output_part parts[OUTPUT_PARTS_MAX];
	size_t n_parts;
};

struct output_facts {
	uint64_t seed;
	size_t tokens;      /* above 0; of text and reasoning */
	size_t most;        /* of calls; longer ones become text */
	uint32_t one_in;    /* calls: one answer in so many; 0: none */
	bool reasoning;
	char *const *tools; /* names */
	size_t n_tools;
};

/* Also adds the tokens to `tokens`. False: no memory; then output_free. */
bool output_make(struct output *o, const struct output_facts *f,
    struct token_list *tokens);
void output_free(struct output *o);
/* Does it end with a call? */
bool output_is_call(const struct output *o);
/* Tokens of reasoning. */
size_t output_reasoning(const struct output *o);
/* JSON with blanks after ',' and ':'; free it. NULL: no memory. */
char *output_json(struct json_object *o);

#endif
