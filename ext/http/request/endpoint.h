/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.h - the engine's endpoint, by its path.
 *
 * Gateways prepend to the path (/openai/v1/..., a deployment, a tenant), so
 * only its end counts:
 *
 *   .../chat/completions      chat          OpenAI
 *   .../completions           completions   OpenAI, the older one
 *   .../v1/responses          responses     OpenAI, the newer one
 *   .../openai/responses      responses
 *   .../v1/messages           messages      Anthropic
 *
 * Everything else is ENDPOINT_OTHER: the body is not read.
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
