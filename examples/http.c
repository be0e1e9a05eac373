/* SPDX-License-Identifier: BSD-2-Clause */
/* The second turn of a chat goes where the first went: HTTP in, servers out. */
#include <kvroute_http.h>
#include <stdio.h>
#include <string.h>

static int turn(struct kvh *, const char *);

int
main(void)
{
	static const char options[] = "gray=8 affinity_key=auto";
	static const char chat[] = "{\"messages\":[{\"role\":\"user\","
	    "\"content\":\"%s\"}%s]}";
	char text[601], body[1024];
	struct kvh *h = NULL;
	int failed = kvh_open("", 0, options, strlen(options), NULL, &h) != 0 ||
	    kvh_server_put(h, "10.0.0.1:8000", 13, "", 0, NULL) != 0 ||
	    kvh_server_put(h, "10.0.0.2:8000", 13, "", 0, NULL) != 0;

	memset(text, 'a', 600);
	text[600] = '\0';
	snprintf(body, sizeof(body), chat, text, "");
	failed = failed || turn(h, body);
	snprintf(body, sizeof(body), chat, text,
	    ",{\"role\":\"user\",\"content\":\"and?\"}");
	failed = failed || turn(h, body);
	kvh_free(h);
	return failed;
}

static int
turn(struct kvh *h, const char *body)
{
	static const char reply[] = "{\"usage\":{\"prompt_tokens\":150,"
	    "\"prompt_tokens_details\":{\"cached_tokens\":0}}}";
	struct kvh_call *c = NULL;
	const char *name;
	uint32_t rewrites;
	int64_t cached;
	size_t n;
	int failed = kvh_begin(h, "POST", 4, "/v1/chat/completions", 20,
	    KVH_NOW, &c) != 0 ||
	    kvh_body(c, body, strlen(body)) != 0 ||
	    kvh_body_end(c, 1) != 0 ||
	    kvh_pick(c, KVH_NOW, NULL) != 0 || /* now it is sent: */
	    kvh_target(c, 0, &name, &n, NULL) != 0 ||
	    kvh_fact(c, KVH_OVERLAP_TOKENS, &cached) != 0;

	if (!failed)
		printf("to %.*s, %d tokens cached there\n", (int)n, name,
		    (int)cached);
	failed = failed || kvh_response(c, 200, "application/json", 16, "", 0,
	    "", 0, KVH_NOW, &rewrites) != 0 ||
	    kvh_response_data(c, reply, strlen(reply), KVH_NOW, NULL, 0,
	    NULL) != 0 ||
	    kvh_end(c, KVH_WHOLE, KVH_NOW, NULL, 0, NULL) != 0;
	kvh_call_free(c);
	return failed;
}
