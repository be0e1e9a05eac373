/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.h - which of the engines' endpoints a path names.
 *
 * Gateways put things ahead of the path (/openai/v1/..., a deployment, a
 * tenant), so what counts is how it ends:
 *
 *   .../chat/completions      chat          OpenAI
 *   .../completions           completions   OpenAI, the older one
 *   .../v1/responses          responses     OpenAI, the newer one
 *   .../openai/responses      responses
 *   .../v1/messages           messages      Anthropic
 *
 * Everything else is ENDPOINT_OTHER: no prompt is looked for.
 */
#ifndef KVROUTE_ENDPOINT_H
#define KVROUTE_ENDPOINT_H

#include <stddef.h>

enum endpoint {
	ENDPOINT_OTHER = 0,
	ENDPOINT_CHAT,
	ENDPOINT_COMPLETIONS,
	ENDPOINT_RESPONSES,
	ENDPOINT_MESSAGES,
	ENDPOINTS /* how many there are */
};

/* The path has no query and is decoded; it may hold any bytes. */
enum endpoint endpoint_of(const char *path, size_t length);
/* "chat", "completions" ...; "other" for unknown numbers too. */
const char *endpoint_name(enum endpoint endpoint);

#endif
