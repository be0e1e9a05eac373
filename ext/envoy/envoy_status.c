/* SPDX-License-Identifier: BSD-2-Clause */
/* envoy_status.c - see envoy_status.h. */
#include "envoy_status.h"

#include "kvroute_http.h"
#include "text_hold.h"

enum { TRIES = 4, FIRST_ROOM = 1 << 16 };

#define TEXT(s) ((struct envoy_text){ (s), sizeof(s) - 1 })

/* The text grows between two tries. */
static bool
read_status(struct kvh *pool, uint32_t form, struct hold *to)
{
	size_t room = FIRST_ROOM, length = 0;
	int i;

	for (i = 0; i < TRIES; i++, room = length + FIRST_ROOM) {
		if (!hold_reserve(to, room) || kvh_status(pool, form, KVH_NOW,
		    (char *)to->data, room, &length) != 0)
			return false;
		to->length = length < room ? length : 0;
		if (length < room)
			return true;
	}
	return false;
}

static bool
asks_for_metrics(void *envoy)
{
	static const char end[] = "/metrics";
	const size_t n = sizeof(end) - 1;
	struct envoy_text path = { "", 0 };

	return envoy_dynamic_module_callback_http_get_header(envoy,
	    ENVOY_REQUEST, TEXT(":path"), &path, 0, NULL) && path.n >= n &&
	    memcmp(path.at + path.n - n, end, n) == 0;
}

void
status_answer(struct kvh *pool, void *envoy)
{
	const bool metrics = asks_for_metrics(envoy);
	struct envoy_header type = { TEXT("content-type"), metrics ?
	    TEXT("text/plain; version=0.0.4") : TEXT("application/json") };
	struct hold text = { NULL, 0, 0 };
	const bool done = read_status(pool, metrics ? KVH_PROMETHEUS :
	    KVH_JSON, &text);

	envoy_dynamic_module_callback_http_send_response(envoy,
	    done ? 200 : 503, &type, done, (struct envoy_text){
	    (const char *)text.data, done ? text.length : 0 },
	    TEXT("kvroute_status"));
	hold_free(&text);
}
