/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_floor.c - the cost of reading a body, beside the least it can cost.
 *
 *   floor [-e endpoint] [-r rounds] file|bytes ...
 *
 * The floor is the hashing of as many bytes as the prompt has, in one piece.
 * Beside it is all that a proxy does between having the body and having the
 * prompt: parse, prompt, scope; and, for comparison, YAJL over the same body
 * with callbacks that do nothing, its strings validated and decoded. All are
 * timed in turns, so that disturbances affect all. Medians are shown, in
 * nanoseconds, in one machine-readable line for each body:
 *
 *   body  bytes  prompt  json_ns  hash_ns  whole_ns  ratio  of_hash
 *
 * The ratio is whole to json and hash together, of_hash is whole to hash. A
 * number instead of a file is chats of about that many bytes: without escapes,
 * with a few, with many, of Chinese text escaped and not, cut, and broken.
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kvroute.h>
#include <yajl/yajl_parse.h>

#include "body.h"

enum { BODY_MAX = 64 << 20, ROUNDS = 2001, WARM_UP = 50 };

struct text {
	char *data;
	size_t length;
};

struct bed {
	struct kvr *k;
	struct kvr_prompt *p;
	struct body *b;
	enum endpoint endpoint;
	struct text body;
	struct body_facts facts;
	volatile int seen; /* so that nothing is optimized away */
};

/* ------------------------------------------------------ parser alone --- */

static int
nothing(void *context)
{
	(void)context;
	return 1;
}

static int
nothing_of_boolean(void *context, int value)
{
	(void)context;
	(void)value;
	return 1;
}

static int
nothing_of_number(void *context, const char *digits, size_t n)
{
	(void)context;
	(void)digits;
	(void)n;
	return 1;
}

static int
nothing_of_string(void *context, const unsigned char *text, size_t n)
{
	(void)context;
	(void)text;
	(void)n;
	return 1;
}

static const yajl_callbacks nothings = {
	.yajl_null = nothing,
	.yajl_boolean = nothing_of_boolean,
	.yajl_number = nothing_of_number,
	.yajl_string = nothing_of_string,
	.yajl_start_map = nothing,
	.yajl_map_key = nothing_of_string,
	.yajl_end_map = nothing,
	.yajl_start_array = nothing,
	.yajl_end_array = nothing
};

static void
do_json(struct bed *d)
{
	yajl_handle json = yajl_alloc(&nothings, NULL, NULL);

	if (json == NULL)
		errx(1, "no memory");
	d->seen += (int)yajl_parse(json, (unsigned char *)d->body.data,
	    d->body.length);
	d->seen += (int)yajl_complete_parse(json);
	yajl_free(json);
}

/* --------------------------------------------------- the other two --- */

/* As many bytes as the prompt has; their values do not matter. */
static void
do_hash(struct bed *d)
{
	d->seen += kvr_prompt_set_bytes(d->p, NULL, d->body.data,
	    (size_t)d->facts.bytes);
}

static void
do_whole(struct bed *d)
{
	struct kvr_scope scope;

	body_begin(d->b, d->p, d->endpoint);
	body_data(d->b, d->body.data, d->body.length);
	d->seen += (int)body_end(d->b, &d->facts);
	kvr_scope_init(&scope, sizeof(scope));
	d->seen += body_scope(d->b, d->k, &scope);
	d->seen += kvr_scope_set(d->k, &scope, KVR_SCOPE_MODEL,
	    d->facts.model, d->facts.model_length);
	d->seen += kvr_prompt_end(d->p, &scope);
}

/* -------------------------------------------------------------- timing --- */

static int
floor_compare(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t
median(int64_t *times, size_t n)
{
	qsort(times, n, sizeof(*times), floor_compare);
	return times[n / 2];
}

static void
floor_measure(struct bed *d, size_t rounds, int64_t result[3])
{
	static void (*const steps[3])(struct bed *) = { do_json, do_hash,
		do_whole };
	int64_t *times[3], start;
	size_t i, round;

	for (i = 0; i < 3; i++)
		if ((times[i] = calloc(rounds, sizeof(**times))) == NULL)
			errx(1, "no memory");
	for (round = 0; round < WARM_UP + rounds; round++)
		for (i = 0; i < 3; i++) {
			start = kvr_clock_now();
			steps[i](d);
			if (round >= WARM_UP)
				times[i][round - WARM_UP] =
				    kvr_clock_now() - start;
		}
	for (i = 0; i < 3; i++) {
		result[i] = median(times[i], rounds);
		free(times[i]);
	}
}

/* -------------------------------------------------------------- bodies --- */

static struct text
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct text t = { malloc(BODY_MAX), 0 };

	if (f == NULL)
		err(1, "%s", path);
	if (t.data == NULL)
		errx(1, "no memory");
	t.length = fread(t.data, 1, BODY_MAX, f);
	if (ferror(f) || t.length == BODY_MAX)
		errx(1, "%s: cannot be read, or is too large", path);
	fclose(f);
	return t;
}

/* Lines of a text, by their share of escapes. */
static const struct {
	const char *name;
	const char *line; /* with a word, a number and a word in it */
} floor_kinds[] = {
	{ "plain", "The %s of step %zu was not what the other %s had said, so "
	    "it went on to the next. " },
	{ "lines", "The %s of step %zu was not what the \\\"%s\\\" said, so it "
	    "went on to the next one.\\n" },
	{ "code", "\\tif (%s[%zu] == \\\"%s\\\") {\\n\\t\\treturn x;\\n\\t}"
	    "\\n" },
	{ "unicode", "\\u4f60\\u597d\\uff0c\\u8fd9\\u662f %s %zu %s"
	    "\\u7684\\u7b54\\u6848\\u548c\\u95ee\\u9898\\u3002\\n" },
	{ "cjk", "\344\275\240\345\245\275\357\274\214\350\277\231\346\230\257 "
	    "%s %zu %s\347\232\204\347\255\224\346\241\210\345\222\214\351\227"
	    "\256\351\242\230\343\200\202" }
};

enum { FLOOR_KINDS = sizeof(floor_kinds) / sizeof(*floor_kinds) };

/* Messages of a dozen lines each. */
static struct text
make_chat(size_t bytes, const char *line)
{
	static const char *const words[] = { "cost", "reason", "length",
		"worker", "answer" };
	struct text t = { malloc(bytes + 1024), 0 };
	size_t i, step = 0;

	if (t.data == NULL)
		errx(1, "no memory");
	t.length = (size_t)sprintf(t.data, "{\"model\":\"m-7b\",\"stream\":"
	    "true,\"temperature\":0.7,\"messages\":[{\"role\":\"system\","
	    "\"content\":\"Be brief.\"}");
	while (t.length < bytes) {
		t.length += (size_t)sprintf(t.data + t.length, ",{\"role\":"
		    "\"%s\",\"content\":\"", step % 2 == 0 ? "user" :
		    "assistant");
		for (i = 0; i < 12 && t.length < bytes; i++, step++)
			t.length += (size_t)sprintf(t.data + t.length, line,
			    words[step % 5], step, words[step / 5 % 5]);
		t.length += (size_t)sprintf(t.data + t.length, "\"}");
		step++;
	}
	t.length += (size_t)sprintf(t.data + t.length, "]}");
	return t;
}

static void
floor_show(struct bed *d, const char *name, size_t rounds)
{
	int64_t ns[3];
	enum body_outcome outcome;

	body_begin(d->b, d->p, d->endpoint);
	body_data(d->b, d->body.data, d->body.length);
	outcome = body_end(d->b, &d->facts);
	if (outcome != BODY_PROMPT || d->facts.bytes > d->body.length)
		errx(1, "%s: no body to measure with", name);
	floor_measure(d, rounds, ns);
	printf("%s\t%zu\t%llu\t%lld\t%lld\t%lld\t%.2f\t%.2f\n", name,
	    d->body.length, (unsigned long long)d->facts.bytes,
	    (long long)ns[0], (long long)ns[1], (long long)ns[2],
	    (double)ns[2] / (double)(ns[0] + ns[1]),
	    (double)ns[2] / (double)ns[1]);
}

/* Each kind; then lines that end early, or in a byte that is none of UTF-8. */
static void
floor_show_made(struct bed *d, size_t bytes, size_t rounds)
{
	char name[64];
	size_t i;

	for (i = 0; i < FLOOR_KINDS + 2; i++) {
		d->body = make_chat(bytes, floor_kinds[i < FLOOR_KINDS ? i :
		    1].line);
		if (i == FLOOR_KINDS)
			d->body.length -= 64;
		if (i > FLOOR_KINDS)
			d->body.data[d->body.length - 8] = '\377';
		snprintf(name, sizeof(name), "%s-%zu", i < FLOOR_KINDS ?
		    floor_kinds[i].name : i == FLOOR_KINDS ? "cut" :
		    "broken", bytes);
		floor_show(d, name, rounds);
		free(d->body.data);
	}
}

/* ---------------------------------------------------------------- main --- */

static enum endpoint
endpoint_named(const char *name)
{
	enum endpoint e;

	for (e = ENDPOINT_CHAT; e < ENDPOINTS; e++)
		if (strcmp(endpoint_name(e), name) == 0)
			return e;
	errx(2, "%s: no such endpoint", name);
}

static void
floor_set_up(struct bed *d)
{
	struct kvr_options o;

	memset(d, 0, sizeof(*d));
	d->endpoint = ENDPOINT_CHAT;
	kvr_options_init(&o, sizeof(o));
	o.unit = KVR_UNIT_BYTES;
	d->b = body_new();
	if (kvr_new(&o, &d->k) != KVR_OK ||
	    kvr_prompt_new(d->k, &d->p) != KVR_OK || d->b == NULL)
		errx(1, "no memory");
}

int
main(int argc, char **argv)
{
	struct bed d;
	size_t rounds = ROUNDS;
	unsigned long long number;
	char *end;
	int c;

	floor_set_up(&d);
	while ((c = getopt(argc, argv, "e:r:")) != -1) {
		if (c == 'e')
			d.endpoint = endpoint_named(optarg);
		else if (c == 'r' && atoi(optarg) > 0)
			rounds = (size_t)atoi(optarg);
		else
			errx(2, "floor [-e endpoint] [-r rounds] "
			    "file|bytes ...");
	}
	printf("body\tbytes\tprompt\tjson_ns\thash_ns\twhole_ns\tratio\t"
	    "of_hash\n");
	for (; optind < argc; optind++) {
		number = strtoull(argv[optind], &end, 10);
		if (*end == '\0' && number <= BODY_MAX) {
			floor_show_made(&d, (size_t)number, rounds);
			continue;
		}
		d.body = read_file(argv[optind]);
		floor_show(&d, argv[optind], rounds);
		free(d.body.data);
	}
	body_free(d.b);
	kvr_prompt_free(d.p);
	kvr_free(d.k);
	return 0;
}
