/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_keys.c - tables of keys; see body_keys.h. The search is linear, so
 * frequent keys come first.
 *
 * In messages and what is within them the values are written by rank, see
 * body_order.c. What is long comes first: rank 0 is written while it is read.
 */
#include "body_keys.h"

#include <string.h>

#include "body_in.h"

enum {
	IN_CHAT = 1 << ENDPOINT_CHAT,
	IN_COMPLETIONS = 1 << ENDPOINT_COMPLETIONS,
	IN_RESPONSES = 1 << ENDPOINT_RESPONSES,
	IN_MESSAGES = 1 << ENDPOINT_MESSAGES,
	IN_ALL = IN_CHAT | IN_COMPLETIONS | IN_RESPONSES | IN_MESSAGES,
	IN_ANY = IN_ALL | 1 << ENDPOINT_OTHER
};

#define RANK(rank, name, value, mark, in) \
	{ sizeof(name) - 1, value, mark, in, rank, name }
#define KEY(name, value, mark, in) RANK(0, name, value, mark, in)
#define END { 0, 0, 0, 0, 0, NULL }

static const struct key top_keys[] = {
	KEY("messages", IS_MESSAGES, 0, IN_CHAT | IN_MESSAGES),
	KEY("input", IS_MESSAGES, 0, IN_RESPONSES),
	KEY("prompt", IS_PROMPTS, 0, IN_COMPLETIONS),
	KEY("system", IS_SYSTEM, 0, IN_MESSAGES),
	KEY("instructions", IS_SYSTEM, 0, IN_RESPONSES),
	KEY("model", IS_NAME, NAME_MODEL, IN_ANY),
	KEY("cache_salt", IS_NAME, NAME_SALT, IN_ALL),
	KEY("stream", IS_TRUE, FLAG_STREAM, IN_ALL),
	KEY("stream_options", IS_OPTIONS, FLAG_OPTIONS, IN_ALL),
	KEY("echo", IS_TRUE, FLAG_ECHO, IN_ALL),
	KEY("logprobs", IS_THERE, FLAG_LOGPROBS, IN_ALL),
	KEY("prompt_logprobs", IS_THERE, FLAG_PROMPT_LOGPROBS, IN_ALL),
	KEY("tools", IS_AHEAD, AHEAD_TOOLS, IN_ALL),
	KEY("functions", IS_AHEAD, AHEAD_FUNCTIONS, IN_CHAT),
	KEY("reasoning_effort", IS_AHEAD, AHEAD_EFFORT, IN_ALL),
	KEY("reasoning", IS_AHEAD, AHEAD_REASONING, IN_RESPONSES),
	KEY("chat_template", IS_AHEAD, AHEAD_TEMPLATE, IN_ALL),
	KEY("chat_template_kwargs", IS_AHEAD, AHEAD_TEMPLATE_KEYS, IN_ALL),
	KEY("documents", IS_AHEAD, AHEAD_DOCUMENTS, IN_ALL),
	KEY("lora_path", IS_AHEAD, AHEAD_LORA_PATH, IN_ALL),
	KEY("lora_request", IS_AHEAD, AHEAD_LORA_REQUEST, IN_ALL),
	KEY("extra_key", IS_AHEAD, AHEAD_EXTRA_KEY, IN_ALL),
	KEY("previous_response_id", IS_AHEAD, AHEAD_PREVIOUS, IN_RESPONSES),
	KEY("conversation", IS_AHEAD, AHEAD_CONVERSATION, IN_RESPONSES),
	KEY("prompt", IS_AHEAD, AHEAD_STORED_PROMPT, IN_RESPONSES),
	KEY("prompt_cache_key", IS_ID, BODY_CACHE_KEY, IN_ANY),
	KEY("session_id", IS_ID, BODY_SESSION, IN_ANY),
	KEY("user", IS_ID, BODY_USER, IN_ANY),
	KEY("safety_identifier", IS_ID, BODY_SAFETY, IN_ANY),
	KEY("metadata", IS_METADATA, 0, IN_ANY),
	KEY("store", IS_FALSE, FLAG_UNSTORED, IN_RESPONSES),
	END
};

static const struct key message_keys[] = {
	RANK(15, "role", IS_TEXT, MARK_ROLE, IN_ALL),
	RANK(0, "content", IS_CONTENT, 0, IN_ALL),
	RANK(1, "tool_calls", IS_CALLS, 0, IN_ALL),
	RANK(2, "function_call", IS_CALL, MARK_OPEN, IN_ALL),
	/* items of Responses */
	RANK(3, "output", IS_CONTENT, MARK_OUTPUT, IN_RESPONSES),
	RANK(4, "arguments", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	RANK(5, "input", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	RANK(6, "action", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	RANK(7, "summary", IS_CONTENT, MARK_THOUGHT, IN_RESPONSES),
	RANK(8, "type", IS_TYPE, 0, IN_RESPONSES),
	/* short, or seldom */
	RANK(9, "reasoning_content", IS_TEXT, MARK_THOUGHT, IN_ALL),
	RANK(10, "reasoning", IS_TEXT, MARK_THOUGHT, IN_ALL),
	RANK(11, "thinking", IS_TEXT, MARK_THOUGHT, IN_ALL),
	RANK(12, "refusal", IS_TEXT, MARK_REFUSAL, IN_ALL),
	RANK(13, "audio", IS_MEDIA, 0, IN_ALL),
	RANK(14, "name", IS_TEXT, MARK_NAME, IN_ALL),
	END
};

static const struct key part_keys[] = {
	RANK(0, "text", IS_TEXT, MARK_TEXT, IN_ALL),
	/* blocks of Messages */
	RANK(1, "content", IS_CONTENT, 0, IN_ALL),
	RANK(2, "input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(3, "source", IS_MEDIA, 0, IN_ALL),
	RANK(4, "thinking", IS_TEXT, MARK_THOUGHT, IN_ALL),
	RANK(5, "data", IS_TEXT, MARK_SEALED, IN_ALL),
	/* any part */
	RANK(6, "image_url", IS_MEDIA, 0, IN_ALL),
	RANK(7, "input_audio", IS_MEDIA, 0, IN_ALL),
	RANK(8, "video_url", IS_MEDIA, 0, IN_ALL),
	RANK(9, "audio_url", IS_MEDIA, 0, IN_ALL),
	RANK(10, "file", IS_MEDIA, 0, IN_ALL),
	RANK(11, "file_id", IS_MEDIA, 0, IN_ALL),
	RANK(12, "file_data", IS_MEDIA, 0, IN_ALL),
	RANK(13, "file_url", IS_MEDIA, 0, IN_ALL),
	RANK(14, "refusal", IS_TEXT, MARK_REFUSAL, IN_ALL),
	RANK(15, "detail", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(16, "filename", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(17, "title", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(18, "context", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(19, "name", IS_TEXT, MARK_NAME, IN_ALL),
	END
};

static const struct key media_keys[] = {
	RANK(0, "url", IS_MEDIA, 0, IN_ALL),
	RANK(1, "data", IS_MEDIA, 0, IN_ALL),
	RANK(2, "id", IS_MEDIA, 0, IN_ALL),
	RANK(3, "file_id", IS_MEDIA, 0, IN_ALL),
	RANK(4, "file_data", IS_MEDIA, 0, IN_ALL),
	RANK(5, "file_url", IS_MEDIA, 0, IN_ALL),
	RANK(6, "content", IS_CONTENT, 0, IN_ALL),
	RANK(7, "detail", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(8, "format", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(9, "media_type", IS_TEXT, MARK_DETAIL, IN_ALL),
	RANK(10, "filename", IS_TEXT, MARK_DETAIL, IN_ALL),
	END
};

static const struct key call_keys[] = {
	RANK(0, "function", IS_FUNCTION, 0, IN_ALL),
	RANK(1, "custom", IS_FUNCTION, 0, IN_ALL),
	RANK(2, "arguments", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(3, "input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(4, "name", IS_TEXT, MARK_NAME, IN_ALL),
	END
};

static const struct key function_keys[] = {
	RANK(0, "arguments", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(1, "input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(2, "name", IS_TEXT, MARK_NAME, IN_ALL),
	END
};

static const struct key option_keys[] = {
	KEY("include_usage", IS_TRUE, FLAG_USAGE, IN_ALL),
	END
};

static const struct key metadata_keys[] = {
	KEY("user_id", IS_ID, BODY_METADATA_USER, IN_ANY),
	END
};

static const struct key *const keys_of[] = {
	[ROOM_TOP] = top_keys,
	[ROOM_MESSAGE] = message_keys,
	[ROOM_PART] = part_keys,
	[ROOM_MEDIA] = media_keys,
	[ROOM_CALL] = call_keys,
	[ROOM_FUNCTION] = function_keys,
	[ROOM_OPTIONS] = option_keys,
	[ROOM_METADATA] = metadata_keys
};

const struct key *
body_key(enum room room, enum endpoint endpoint, const void *name, size_t n)
{
	const struct key *k = keys_of[room];
	const unsigned in = 1u << endpoint;

	for (; k->name != NULL; k++)
		if (k->length == n && (k->in & in) != 0 &&
		    memcmp(k->name, name, n) == 0)
			return k;
	return NULL;
}
