/* SPDX-License-Identifier: BSD-2-Clause */
/* endpoint.c - see endpoint.h. */
#include "endpoint.h"

#include <string.h>

/* The first match counts, so a longer end precedes a shorter one. */
static const struct {
	enum endpoint endpoint;
	const char *end;
} ends[] = {
	{ ENDPOINT_CHAT, "/chat/completions" },
	{ ENDPOINT_COMPLETIONS, "/completions" },
	{ ENDPOINT_RESPONSES, "/v1/responses" },
	{ ENDPOINT_RESPONSES, "/openai/responses" },
	{ ENDPOINT_MESSAGES, "/v1/messages" }
};

enum endpoint
endpoint_of(const char *path, size_t length)
{
	size_t i, n;

	while (length > 0 && path[length - 1] == '/')
		length--;
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		n = strlen(ends[i].end);
		if (length >= n &&
		    memcmp(path + length - n, ends[i].end, n) == 0)
			return ends[i].endpoint;
	}
	return ENDPOINT_OTHER;
}

const char *
endpoint_name(enum endpoint endpoint)
{
	switch (endpoint) {
	case ENDPOINT_CHAT:
		return "chat";
	case ENDPOINT_COMPLETIONS:
		return "completions";
	case ENDPOINT_RESPONSES:
		return "responses";
	case ENDPOINT_MESSAGES:
		return "messages";
	case ENDPOINT_OTHER:
	case ENDPOINTS:
		break;
	}
	return "other";
}
