/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_cost.c - thread CPU of a whole request through libkvroute-http:
 *
 *	call-cost body events requests [servers]
 *
 *	begin, headers, body, pick, edits, head, answer, end
 *
 * Each turn of a chat has a body of so many bytes, and begins with the same
 * system text; an answer is JSON, or a stream of so many events. Each run
 * has its own pool; the median and the fastest of its requests are printed.
 */
#include <kvroute_http.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 5, CHATS = 512, OPENING = 1024 };

static const char options[] = "size=64m gray=8 affinity_key=auto";
static const char event[] = "data: {\"id\":\"chatcmpl-1\",\"object\":"
    "\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":"
    "{\"content\":\" word\"}}]}\n\n";
static const char last[] = "data: {\"id\":\"chatcmpl-1\",\"object\":"
    "\"chat.completion.chunk\",\"choices\":[],\"usage\":{\"prompt_tokens\":"
    "2000,\"completion_tokens\":64,\"prompt_tokens_details\":"
    "{\"cached_tokens\":1500}}}\n\ndata: [DONE]\n\n";
static const char answer[] = "{\"id\":\"chatcmpl-1\",\"choices\":[{\"index\":"
    "0,\"message\":{\"role\":\"assistant\",\"content\":\"Some words.\"}}],"
    "\"usage\":{\"prompt_tokens\":2000,\"completion_tokens\":64,"
    "\"prompt_tokens_details\":{\"cached_tokens\":1500}}}";

struct run {
	struct kvh *pool;
	char *body;
	size_t length, text;   /* where the text of a turn begins */
	unsigned events;
	uint64_t *ns;          /* of each request */
	char out[sizeof(last) + KVH_WRITE_MORE];
};

static uint64_t
cpu_ns(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
		err(1, "clock_gettime");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
must(int error)
{
	if (error != 0)
		errx(1, "%s", kvh_strerror(error));
}

static void
body_make(struct run *r, size_t bytes)
{
	const char *end = r->events > 0 ? "\"}],\"stream\":true}" : "\"}]}";
	size_t n;

	r->body = malloc(bytes + OPENING + 512);
	if (r->body == NULL)
		err(1, NULL);
	n = (size_t)sprintf(r->body, "{\"model\":\"m\",\"messages\":[{\"role\":"
	    "\"system\",\"content\":\"");
	memset(r->body + n, 's', OPENING);
	n += OPENING;
	n += (size_t)sprintf(r->body + n,
	    "\"},{\"role\":\"user\",\"content\":\"");
	r->text = n;
	for (; n + strlen(end) < bytes; n++)
		r->body[n] = (char)('a' + n % 23);
	r->length = n + (size_t)sprintf(r->body + n, "%s", end);
}

static void
data_pass(struct run *r, struct kvh_call *c, const char *bytes, size_t n,
    uint32_t rewrites)
{
	size_t written;

	must(kvh_response_data(c, bytes, n, KVH_NOW, rewrites ? r->out : NULL,
	    sizeof(r->out), rewrites ? &written : NULL));
}

static void
answer_pass(struct run *r, struct kvh_call *c)
{
	const char *type = r->events > 0 ? "text/event-stream" :
	    "application/json";
	uint32_t rewrites;
	size_t written;
	unsigned i;

	must(kvh_response(c, 200, type, strlen(type), "", 0, "", 0, KVH_NOW,
	    &rewrites));
	for (i = 0; i < r->events; i++)
		data_pass(r, c, event, sizeof(event) - 1, rewrites);
	if (r->events > 0)
		data_pass(r, c, last, sizeof(last) - 1, rewrites);
	else
		data_pass(r, c, answer, sizeof(answer) - 1, rewrites);
	must(kvh_end(c, KVH_WHOLE, KVH_NOW, r->out, sizeof(r->out), &written));
}

static void
request_pass(struct run *r, unsigned i)
{
	static const char path[] = "/v1/chat/completions";
	struct kvh_call *c;
	const char *text;
	uint32_t targets, edit;
	uint64_t cut;
	int64_t offset;
	size_t n;

	/* Each chat has a text of its own. */
	(void)snprintf(r->body + r->text, 9, "%08u", i % CHATS);
	r->body[r->text + 8] = 'x';
	must(kvh_begin(r->pool, "POST", 4, path, sizeof(path) - 1, KVH_NOW,
	    &c));
	must(kvh_header(c, "content-type", 12, "application/json", 16));
	must(kvh_header(c, "user-agent", 10, "bench", 5));
	must(kvh_body(c, r->body, r->length));
	must(kvh_body_end(c, 1));
	must(kvh_pick(c, KVH_NOW, &targets));
	must(kvh_target(c, 0, &text, &n, NULL));
	for (edit = 0; kvh_edit(c, edit, &offset, &cut, &text, &n) == 0; edit++)
		continue;
	answer_pass(r, c);
	kvh_call_free(c);
}

static int
ns_compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void
run_pass(struct run *r, unsigned requests, unsigned servers)
{
	char name[32];
	uint64_t from;
	unsigned i;

	must(kvh_open("", 0, options, strlen(options), NULL, &r->pool));
	for (i = 0; i < servers; i++)
		must(kvh_server_put(r->pool, name, (size_t)snprintf(name,
		    sizeof(name), "10.0.0.%u:8000", i), "capacity=400000", 15,
		    NULL));
	for (i = 0; i < requests; i++) {
		from = cpu_ns();
		request_pass(r, i);
		r->ns[i] = cpu_ns() - from;
	}
	kvh_free(r->pool);
	qsort(r->ns, requests, sizeof(*r->ns), ns_compare);
	printf("median %6.2f us   fastest %6.2f us   p99 %6.2f us\n",
	    (double)r->ns[requests / 2] / 1e3, (double)r->ns[0] / 1e3,
	    (double)r->ns[requests / 100 * 99] / 1e3);
}

int
main(int argc, char **argv)
{
	static struct run r;
	unsigned requests, servers, i;

	if (argc < 4)
		errx(2, "usage: call-cost body events requests [servers]");
	r.events = (unsigned)strtoul(argv[2], NULL, 10);
	requests = (unsigned)strtoul(argv[3], NULL, 10);
	servers = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 8;
	if (requests < 1)
		errx(2, "no requests");
	body_make(&r, strtoul(argv[1], NULL, 10));
	r.ns = calloc(requests, sizeof(*r.ns));
	if (r.ns == NULL)
		err(1, NULL);
	printf("%zu bytes, %u events, %u servers\n", r.length, r.events,
	    servers);
	for (i = 0; i < RUNS; i++)
		run_pass(&r, requests, servers);
	free(r.ns);
	free(r.body);
	return 0;
}
