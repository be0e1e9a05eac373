/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endpoint.h - finds the engine's endpoint by its path.
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
 * Slashes at the end do not matter. All other paths are ENDPOINT_OTHER: they
 * have no prompt.
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
	ENDPOINTS
};

/* The path has no query and is decoded; it may hold any bytes. */
enum endpoint endpoint_of(const char *path, size_t length);
/* Returns "chat", "completions" and so on; "other" for unknown numbers. */
const char *endpoint_name(enum endpoint endpoint);

#endif
