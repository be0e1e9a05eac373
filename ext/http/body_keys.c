/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_keys.c - tables of keys; see body_keys.h. The search is linear, so
 * frequent keys come first.
 */
#include "body_keys.h"

#include <string.h>

#include "body_in.h"

enum {
	IN_CHAT = 1 << ENDPOINT_CHAT,
	IN_COMPLETIONS = 1 << ENDPOINT_COMPLETIONS,
	IN_RESPONSES = 1 << ENDPOINT_RESPONSES,
	IN_MESSAGES = 1 << ENDPOINT_MESSAGES,
	IN_ALL = IN_CHAT | IN_COMPLETIONS | IN_RESPONSES | IN_MESSAGES
};

#define KEY(name, value, mark, in) { sizeof(name) - 1, value, mark, in, name }
#define END { 0, 0, 0, 0, NULL }

static const struct key top_keys[] = {
	KEY("messages", IS_MESSAGES, 0, IN_CHAT | IN_MESSAGES),
	KEY("input", IS_MESSAGES, 0, IN_RESPONSES),
	KEY("prompt", IS_PROMPTS, 0, IN_COMPLETIONS),
	KEY("system", IS_SYSTEM, 0, IN_MESSAGES),
	KEY("instructions", IS_SYSTEM, 0, IN_RESPONSES),
	KEY("model", IS_NAME, NAME_MODEL, IN_ALL),
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
	END
};

static const struct key message_keys[] = {
	KEY("role", IS_TEXT, MARK_ROLE, IN_ALL),
	KEY("content", IS_CONTENT, 0, IN_ALL),
	KEY("tool_calls", IS_CALLS, 0, IN_ALL),
	KEY("name", IS_TEXT, MARK_NAME, IN_ALL),
	KEY("reasoning_content", IS_TEXT, MARK_THOUGHT, IN_ALL),
	KEY("reasoning", IS_TEXT, MARK_THOUGHT, IN_ALL),
	KEY("thinking", IS_TEXT, MARK_THOUGHT, IN_ALL),
	KEY("refusal", IS_TEXT, MARK_REFUSAL, IN_ALL),
	KEY("function_call", IS_FUNCTION, 0, IN_ALL),
	KEY("audio", IS_MEDIA, 0, IN_ALL),
	/* items of Responses */
	KEY("arguments", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	KEY("input", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	KEY("action", IS_TEXT, MARK_ARGUMENTS, IN_RESPONSES),
	KEY("output", IS_CONTENT, MARK_OUTPUT, IN_RESPONSES),
	KEY("summary", IS_CONTENT, MARK_THOUGHT, IN_RESPONSES),
	END
};

static const struct key part_keys[] = {
	KEY("text", IS_TEXT, MARK_TEXT, IN_ALL),
	KEY("image_url", IS_MEDIA, 0, IN_ALL),
	KEY("input_audio", IS_MEDIA, 0, IN_ALL),
	KEY("video_url", IS_MEDIA, 0, IN_ALL),
	KEY("audio_url", IS_MEDIA, 0, IN_ALL),
	KEY("file", IS_MEDIA, 0, IN_ALL),
	KEY("file_id", IS_MEDIA, 0, IN_ALL),
	KEY("file_data", IS_MEDIA, 0, IN_ALL),
	KEY("file_url", IS_MEDIA, 0, IN_ALL),
	KEY("detail", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("filename", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("refusal", IS_TEXT, MARK_REFUSAL, IN_ALL),
	/* blocks of Messages */
	KEY("name", IS_TEXT, MARK_NAME, IN_ALL),
	KEY("input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	KEY("content", IS_CONTENT, 0, IN_ALL),
	KEY("thinking", IS_TEXT, MARK_THOUGHT, IN_ALL),
	KEY("source", IS_MEDIA, 0, IN_ALL),
	KEY("title", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("context", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("data", IS_TEXT, MARK_SEALED, IN_ALL),
	END
};

static const struct key media_keys[] = {
	KEY("url", IS_MEDIA, 0, IN_ALL),
	KEY("data", IS_MEDIA, 0, IN_ALL),
	KEY("id", IS_MEDIA, 0, IN_ALL),
	KEY("file_id", IS_MEDIA, 0, IN_ALL),
	KEY("file_data", IS_MEDIA, 0, IN_ALL),
	KEY("file_url", IS_MEDIA, 0, IN_ALL),
	KEY("content", IS_CONTENT, 0, IN_ALL),
	KEY("detail", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("format", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("media_type", IS_TEXT, MARK_DETAIL, IN_ALL),
	KEY("filename", IS_TEXT, MARK_DETAIL, IN_ALL),
	END
};

static const struct key call_keys[] = {
	KEY("function", IS_FUNCTION, 0, IN_ALL),
	KEY("custom", IS_FUNCTION, 0, IN_ALL),
	KEY("name", IS_TEXT, MARK_NAME, IN_ALL),
	KEY("arguments", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	KEY("input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	END
};

static const struct key option_keys[] = {
	KEY("include_usage", IS_TRUE, FLAG_USAGE, IN_ALL),
	END
};

static const struct key *const keys_of[] = {
	[ROOM_TOP] = top_keys,
	[ROOM_MESSAGE] = message_keys,
	[ROOM_PART] = part_keys,
	[ROOM_MEDIA] = media_keys,
	[ROOM_CALL] = call_keys,
	[ROOM_OPTIONS] = option_keys
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
