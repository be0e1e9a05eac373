/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_keys.c - the table of fields; see body_keys.h. There are four kinds:
 *
 *   RANK     the field enters the prompt, in its place within the object
 *   SCOPE    it enters the scope by a digest: it is ahead of all messages, or
 *            changes how they are shown
 *   FACT     the proxy needs it: a flag, an id, the model
 *   IGNORED  it is not shown to the model, and may change from turn to turn
 *
 * Other fields enter the prompt by a digest, within messages, and are ignored
 * at the top, where the parameters of sampling are. The search is linear, so
 * frequent keys come first.
 *
 * Fields with long values mostly have a low rank: rank 0 is written while it is
 * read, see body_order.c.
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
#define FACT(name, value, which, in) RANK(0, name, value, which, in)
#define SCOPE(name, which, in) RANK(0, name, IS_AHEAD, which, in)
#define IGNORED(name) RANK(0, name, IS_SKIPPED, 0, IN_ANY)
#define END { 0, 0, 0, 0, 0, NULL }

static const struct key top_keys[] = {
	RANK(0, "messages", IS_MESSAGES, 0, IN_CHAT | IN_MESSAGES),
	RANK(0, "input", IS_MESSAGES, 0, IN_RESPONSES),
	RANK(0, "prompt", IS_PROMPTS, 0, IN_COMPLETIONS),
	RANK(0, "system", IS_SYSTEM, 0, IN_MESSAGES),
	RANK(0, "instructions", IS_SYSTEM, 0, IN_RESPONSES),
	FACT("model", IS_NAME, NAME_MODEL, IN_ANY),
	FACT("cache_salt", IS_NAME, NAME_SALT, IN_ALL),
	FACT("stream", IS_TRUE, FLAG_STREAM, IN_ALL),
	FACT("stream_options", IS_OPTIONS, FLAG_OPTIONS, IN_ALL),
	FACT("n", IS_MANY, FLAG_MANY, IN_CHAT | IN_COMPLETIONS),
	FACT("best_of", IS_MANY, FLAG_BEST, IN_COMPLETIONS),
	FACT("echo", IS_TRUE, FLAG_ECHO, IN_ALL),
	FACT("logprobs", IS_THERE, FLAG_LOGPROBS, IN_ALL),
	FACT("prompt_logprobs", IS_THERE, FLAG_PROMPT_LOGPROBS, IN_ALL),
	SCOPE("tools", AHEAD_TOOLS, IN_ALL),
	SCOPE("functions", AHEAD_FUNCTIONS, IN_CHAT),
	SCOPE("mcp_servers", AHEAD_SERVERS, IN_MESSAGES),
	SCOPE("documents", AHEAD_DOCUMENTS, IN_ALL),
	/* how the template shows messages */
	SCOPE("chat_template", AHEAD_TEMPLATE, IN_ALL),
	SCOPE("chat_template_kwargs", AHEAD_TEMPLATE_KEYS, IN_ALL),
	SCOPE("reasoning_effort", AHEAD_EFFORT, IN_ALL),
	SCOPE("reasoning", AHEAD_REASONING, IN_ALL),
	SCOPE("thinking", AHEAD_THINKING, IN_ALL),
	SCOPE("enable_thinking", AHEAD_ENABLE_THINKING, IN_ALL),
	SCOPE("output_config", AHEAD_OUTPUT, IN_ALL),
	/* how text and media become tokens */
	SCOPE("add_special_tokens", AHEAD_SPECIAL_TOKENS, IN_ALL),
	SCOPE("truncate_prompt_tokens", AHEAD_TRUNCATION, IN_ALL),
	SCOPE("truncation_side", AHEAD_TRUNCATION_SIDE, IN_ALL),
	SCOPE("suffix", AHEAD_SUFFIX, IN_COMPLETIONS),
	SCOPE("mm_processor_kwargs", AHEAD_PROCESSOR, IN_ALL),
	SCOPE("media_io_kwargs", AHEAD_MEDIA_INPUT, IN_ALL),
	SCOPE("prompt_embeds", AHEAD_EMBEDS, IN_ALL),
	SCOPE("image_embeds", AHEAD_IMAGE_EMBEDS, IN_ALL),
	SCOPE("audio_embeds", AHEAD_AUDIO_EMBEDS, IN_ALL),
	SCOPE("multi_modal_data", AHEAD_MEDIA, IN_ALL),
	SCOPE("image_data", AHEAD_IMAGE, IN_ALL),
	/* which weights and caches */
	SCOPE("lora_path", AHEAD_LORA_PATH, IN_ALL),
	SCOPE("lora_request", AHEAD_LORA_REQUEST, IN_ALL),
	SCOPE("extra_key", AHEAD_EXTRA_KEY, IN_ALL),
	SCOPE("previous_input_messages", AHEAD_EARLIER_INPUT, IN_RESPONSES),
	SCOPE("previous_response_id", AHEAD_PREVIOUS, IN_RESPONSES),
	SCOPE("conversation", AHEAD_CONVERSATION, IN_RESPONSES),
	SCOPE("prompt", AHEAD_STORED_PROMPT, IN_RESPONSES),
	FACT("prompt_cache_key", IS_ID, BODY_CACHE_KEY, IN_ANY),
	FACT("session_id", IS_ID, BODY_SESSION, IN_ANY),
	FACT("user", IS_ID, BODY_USER, IN_ANY),
	FACT("safety_identifier", IS_ID, BODY_SAFETY, IN_ANY),
	FACT("metadata", IS_METADATA, 0, IN_ANY),
	FACT("store", IS_FALSE, FLAG_UNSTORED, IN_RESPONSES),
	END
};

static const struct key message_keys[] = {
	RANK(15, "role", IS_TEXT, MARK_ROLE, IN_ALL),
	RANK(0, "content", IS_CONTENT, 0, IN_ALL),
	RANK(1, "tool_calls", IS_CALLS, 0, IN_ALL),
	IGNORED("tool_call_id"),
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
	/* members of a response that clients send back, or move about */
	IGNORED("id"),
	IGNORED("type"),
	IGNORED("call_id"),
	IGNORED("status"),
	IGNORED("cache_control"),
	IGNORED("annotations"),
	IGNORED("reasoning_details"),
	IGNORED("model"),
	IGNORED("usage"),
	IGNORED("stop_reason"),
	IGNORED("stop_sequence"),
	IGNORED("finish_reason"),
	IGNORED("logprobs"),
	IGNORED("object"),
	IGNORED("created"),
	IGNORED("created_at"),
	IGNORED("index"),
	IGNORED("parsed"),
	IGNORED("parsed_arguments"),
	IGNORED("provider_specific_fields"),
	END
};

static const struct key part_keys[] = {
	IGNORED("type"),
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
	/* parts of vLLM and SGLang */
	RANK(20, "image", IS_MEDIA, 0, IN_ALL),
	RANK(21, "video", IS_MEDIA, 0, IN_ALL),
	RANK(22, "audio", IS_MEDIA, 0, IN_ALL),
	RANK(23, "image_embeds", IS_MEDIA, 0, IN_ALL),
	RANK(24, "audio_embeds", IS_MEDIA, 0, IN_ALL),
	RANK(25, "video_embeds", IS_MEDIA, 0, IN_ALL),
	RANK(26, "prompt_embeds", IS_MEDIA, 0, IN_ALL),
	RANK(27, "uuid", IS_MEDIA, 0, IN_ALL),
	IGNORED("id"),
	IGNORED("tool_use_id"),
	IGNORED("cache_control"),
	IGNORED("annotations"),
	IGNORED("logprobs"),
	IGNORED("signature"),
	IGNORED("citations"),
	IGNORED("caller"),
	IGNORED("parsed"),
	IGNORED("index"),
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
	IGNORED("type"),
	IGNORED("cache_control"),
	IGNORED("expires_at"),
	END
};

static const struct key call_keys[] = {
	RANK(0, "function", IS_FUNCTION, 0, IN_ALL),
	RANK(1, "custom", IS_FUNCTION, 0, IN_ALL),
	RANK(2, "arguments", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(3, "input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(4, "name", IS_TEXT, MARK_NAME, IN_ALL),
	IGNORED("id"),
	IGNORED("type"),
	IGNORED("index"),
	IGNORED("call_id"),
	IGNORED("cache_control"),
	IGNORED("extra_content"),
	IGNORED("provider_specific_fields"),
	END
};

static const struct key function_keys[] = {
	RANK(0, "arguments", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(1, "input", IS_TEXT, MARK_ARGUMENTS, IN_ALL),
	RANK(2, "name", IS_TEXT, MARK_NAME, IN_ALL),
	IGNORED("type"),
	IGNORED("parsed_arguments"),
	IGNORED("provider_specific_fields"),
	END
};

static const struct key option_keys[] = {
	FACT("include_usage", IS_TRUE, FLAG_USAGE, IN_ALL),
	END
};

static const struct key metadata_keys[] = {
	FACT("user_id", IS_ID, BODY_METADATA_USER, IN_ANY),
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
