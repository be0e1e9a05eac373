/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_floor.c - the cost of reading a body, beside the least it can cost.
 *
 *   floor [-e endpoint] [-r rounds] [-w folder] file|bytes ...
 *
 * The floor is the hashing of as many bytes as the prompt has, in one piece.
 * Beside it is all that a proxy does between having the body and having the
 * prompt: parse, prompt, scope; and, for comparison, YAJL over the same body
 * with callbacks that do nothing, its strings validated and decoded. All are
 * timed in turns, so that disturbances affect all. Medians of CPU time are
 * shown, in nanoseconds, in one machine-readable line for each body:
 *
 *   body  bytes  prompt  yajl_ns  hash_ns  whole_ns  of_hash
 *
 * of_hash is whole to hash. A number instead of a file is made bodies of about
 * that many bytes, of each kind: eight of different text, one after the other,
 * because the processor learns one that is read again and again by heart. Kinds
 * are chats without escapes, with a few, with many, of French text with escaped
 * accents, of Chinese text escaped and not; a prompt of token ids; and chats
 * that are cut or broken at their end. With -w the made bodies are written to
 * this folder, for body_rivals.cc, and nothing is measured.
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kvroute.h>
#include <yajl/yajl_parse.h>

#include "body.h"

enum { BODY_MAX = 64 << 20, BODIES = 8, ROUNDS = 2001, WARM_UP = 50 };
enum { STEPS = 4 };

struct text {
	char *data;
	size_t length;
	size_t prompt; /* bytes of it */
};

struct bed {
	struct kvr *k;
	struct kvr_prompt *p;
	struct body *b;
	enum endpoint endpoint;
	struct text bodies[BODIES];
	size_t n_bodies;
	const char *folder; /* write to it */
	const struct text *body; /* of them, this one */
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
do_yajl(struct bed *d)
{
	yajl_handle json = yajl_alloc(&nothings, NULL, NULL);

	if (json == NULL)
		errx(1, "no memory");
	d->seen += (int)yajl_parse(json, (unsigned char *)d->body->data,
	    d->body->length);
	d->seen += (int)yajl_complete_parse(json);
	yajl_free(json);
}

/* --------------------------------------------------- the other two --- */

/* As many bytes as the prompt has; their values do not matter. */
static void
do_hash(struct bed *d)
{
	d->seen += kvr_prompt_set_bytes(d->p, NULL, d->body->data,
	    d->body->prompt);
}

static void
do_whole(struct bed *d)
{
	struct kvr_scope scope;

	body_begin(d->b, d->p, d->endpoint);
	body_data(d->b, d->body->data, d->body->length);
	d->seen += (int)body_end(d->b, &d->facts);
	kvr_scope_init(&scope, sizeof(scope));
	d->seen += body_scope(d->b, d->k, &scope);
	d->seen += kvr_scope_set(d->k, &scope, KVR_SCOPE_MODEL,
	    d->facts.model, d->facts.model_length);
	d->seen += kvr_prompt_end(d->p, &scope);
}

/* What the clock itself takes. */
static void
do_nothing(struct bed *d)
{
	d->seen++;
}

/* -------------------------------------------------------------- timing --- */

/* Not the time of day: on a busy machine most long steps are interrupted. */
static int64_t
floor_clock(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
		err(1, "clock_gettime");
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

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
floor_measure(struct bed *d, size_t rounds, int64_t result[STEPS])
{
	static void (*const steps[STEPS])(struct bed *) = { do_yajl, do_hash,
		do_whole, do_nothing };
	int64_t *times[STEPS], start;
	size_t i, round;

	for (i = 0; i < STEPS; i++)
		if ((times[i] = calloc(rounds, sizeof(**times))) == NULL)
			errx(1, "no memory");
	for (round = 0; round < WARM_UP + rounds; round++) {
		d->body = &d->bodies[round % d->n_bodies];
		for (i = 0; i < STEPS; i++) {
			start = floor_clock();
			steps[i](d);
			if (round >= WARM_UP)
				times[i][round - WARM_UP] =
				    floor_clock() - start;
		}
	}
	for (i = STEPS; i-- > 0;) {
		result[i] = median(times[i], rounds);
		result[i] -= i < STEPS - 1 ? result[STEPS - 1] : 0;
		free(times[i]);
	}
}

/* -------------------------------------------------------------- bodies --- */

static struct text
read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct text t = { .data = malloc(BODY_MAX) };

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

enum { LINES = 3 };

/* Lines of a text, by their share of escapes; of two words and a number. */
static const struct {
	const char *name;
	const char *lines[LINES];
} floor_kinds[] = {
	{ "plain", { "The %s of step %zu was not what the other %s had said. ",
	    "Its %s, number %zu, is a %s. ", "So the %s is %zu, and this is "
	    "why the last %s that was read went on to the next one. " } },
	{ "lines", { "The %s of step %zu was not what the \\\"%s\\\" said.\\n",
	    "Its %s, number %zu, is a %s.\\n", "So the \\\"%s\\\" is %zu, and "
	    "this is why the last %s went on to the next one.\\n" } },
	{ "code", { "\\tif (%s[%zu] == \\\"%s\\\") {\\n\\t\\treturn x;\\n\\t}"
	    "\\n", "\\t\\t%s = %zu; /* %s */\\n", "\\t\\tprintf(\\\"%s %zu\\n"
	    "\\\", %s);\\n\\n" } },
	{ "latin", { "Le %s de l'\\u00e9tape %zu n'\\u00e9tait pas l\\u00e0 : "
	    "%s.\\n", "O\\u00f9 %s est-il all\\u00e9 ? %zu %s pr\\u00e8s.\\n",
	    "Une %s a %zu fois \\u00e9t\\u00e9 trouv\\u00e9e, \\u00e0 c\\u00f4"
	    "t\\u00e9 de %s.\\n" } },
	{ "unicode", { "\\u4f60\\u597d\\uff0c\\u8fd9\\u662f %s %zu %s\\u7684"
	    "\\u7b54\\u6848\\u548c\\u95ee\\u9898\\u3002\\n", "\\u8fd9 %s %zu "
	    "\\u662f\\u7b54\\u6848 %s\\n", "\\u4f60%s\\u597d%zu\\u7684%s"
	    "\\uff0c\\u8fd9\\u662f\\u95ee\\u9898\\n" } },
	{ "cjk", { "\344\275\240\345\245\275\357\274\214\350\277\231\346\230"
	    "\257 %s %zu %s\347\232\204\347\255\224\346\241\210\345\222\214",
	    "\351\227\256 %s \351\242\230 %zu \345\222\214 %s\343\200\202",
	    "\347\232\204%s\347\255\224%zu\346\241\210%s\345\222\214" } }
};

enum {
	FLOOR_KINDS = sizeof(floor_kinds) / sizeof(*floor_kinds),
	FLOOR_TOKENS = FLOOR_KINDS,
	FLOOR_CUT,
	FLOOR_BROKEN,
	FLOOR_ALL
};

/* Of splitmix64; the same bodies in each run. */
static size_t
floor_random(uint64_t *state, size_t n)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (size_t)((z ^ z >> 31) % n);
}

static struct text
floor_room(size_t bytes)
{
	struct text t = { .data = malloc(bytes + 2048) };

	if (t.data == NULL)
		errx(1, "no memory");
	return t;
}

/* Messages of about 1 kB each. */
static struct text
make_chat(size_t bytes, const char *const lines[LINES], uint64_t seed)
{
	static const char *const words[] = { "x", "at", "cost", "reason",
		"length", "worker", "answer", "it", "difference", "i",
		"processor", "read_once", "understanding", "to", "word",
		"block" };
	struct text t = floor_room(bytes);
	const char *line;
	size_t message, end;

	t.length = (size_t)sprintf(t.data, "{\"model\":\"m-7b\",\"stream\":"
	    "true,\"temperature\":0.7,\"messages\":[{\"role\":\"system\","
	    "\"content\":\"Be brief.\"}");
	for (message = 0; t.length < bytes; message++) {
		t.length += (size_t)sprintf(t.data + t.length, ",{\"role\":"
		    "\"%s\",\"content\":\"", message % 2 == 0 ? "user" :
		    "assistant");
		end = t.length + 1000 < bytes ? t.length + 1000 : bytes;
		while (t.length < end) {
			line = lines[floor_random(&seed, LINES)];
			t.length += (size_t)sprintf(t.data + t.length, line,
			    words[floor_random(&seed, 16)],
			    floor_random(&seed, 100000),
			    words[floor_random(&seed, 16)]);
		}
		t.length += (size_t)sprintf(t.data + t.length, "\"}");
	}
	t.length += (size_t)sprintf(t.data + t.length, "]}");
	return t;
}

/* Common tokens have small numbers. */
static struct text
make_tokens(size_t bytes, uint64_t seed)
{
	struct text t = floor_room(bytes);

	t.length = (size_t)sprintf(t.data, "{\"model\":\"m-7b\",\"prompt\":[1");
	while (t.length < bytes)
		t.length += (size_t)sprintf(t.data + t.length, ", %zu",
		    floor_random(&seed, (size_t)128000 >>
		    floor_random(&seed, 8)));
	t.length += (size_t)sprintf(t.data + t.length, "]}");
	return t;
}

static void
floor_show(struct bed *d, const char *name, size_t rounds)
{
	int64_t ns[STEPS];
	struct text *t;
	size_t i;

	for (i = 0; i < d->n_bodies; i++) {
		t = &d->bodies[i];
		body_begin(d->b, d->p, d->endpoint);
		body_data(d->b, t->data, t->length);
		if (body_end(d->b, &d->facts) != BODY_PROMPT ||
		    d->facts.bytes > t->length)
			errx(1, "%s: no body to measure with", name);
		t->prompt = (size_t)d->facts.bytes;
	}
	floor_measure(d, rounds, ns);
	printf("%s\t%zu\t%zu\t%lld\t%lld\t%lld\t%.2f\n", name,
	    d->bodies[0].length, d->bodies[0].prompt, (long long)ns[0],
	    (long long)ns[1], (long long)ns[2], (double)ns[2] /
	    (double)ns[1]);
	for (i = 0; i < d->n_bodies; i++)
		free(d->bodies[i].data);
}

static void
floor_write(const struct bed *d, const char *name)
{
	char path[4096];
	size_t i;
	FILE *f;

	for (i = 0; i < d->n_bodies; i++) {
		snprintf(path, sizeof(path), "%s/%s.%zu", d->folder, name, i);
		f = fopen(path, "wb");
		if (f == NULL || fwrite(d->bodies[i].data, d->bodies[i].length,
		    1, f) != 1 || fclose(f) != 0)
			err(1, "%s", path);
		free(d->bodies[i].data);
	}
}

/* Lines are what is cut, or ends in a byte that is none of UTF-8. */
static struct text
floor_make(size_t kind, size_t bytes, uint64_t seed)
{
	struct text t;

	if (kind == FLOOR_TOKENS)
		return make_tokens(bytes, seed);
	t = make_chat(bytes, floor_kinds[kind < FLOOR_KINDS ? kind : 1].lines,
	    seed);
	if (kind == FLOOR_CUT)
		t.length -= 64;
	else if (kind == FLOOR_BROKEN)
		t.data[t.length - 8] = '\377';
	return t;
}

static void
floor_show_made(struct bed *d, size_t bytes, size_t rounds)
{
	static const char *const others[] = { "tokens", "cut", "broken" };
	char name[64];
	size_t kind, i;

	d->n_bodies = BODIES;
	for (kind = 0; kind < FLOOR_ALL; kind++) {
		for (i = 0; i < BODIES; i++)
			d->bodies[i] = floor_make(kind, bytes, i + 1);
		d->endpoint = kind == FLOOR_TOKENS ? ENDPOINT_COMPLETIONS :
		    ENDPOINT_CHAT;
		snprintf(name, sizeof(name), "%s-%zu", kind < FLOOR_KINDS ?
		    floor_kinds[kind].name : others[kind - FLOOR_KINDS],
		    bytes);
		if (d->folder != NULL)
			floor_write(d, name);
		else
			floor_show(d, name, rounds);
	}
}

static void
floor_show_file(struct bed *d, const char *path, enum endpoint endpoint,
    size_t rounds)
{
	d->n_bodies = 1;
	d->bodies[0] = read_file(path);
	d->endpoint = endpoint;
	floor_show(d, path, rounds);
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
	enum endpoint endpoint = ENDPOINT_CHAT;
	size_t rounds = ROUNDS;
	unsigned long long number;
	char *end;
	int c;

	floor_set_up(&d);
	while ((c = getopt(argc, argv, "e:r:w:")) != -1) {
		if (c == 'e')
			endpoint = endpoint_named(optarg);
		else if (c == 'r' && atoi(optarg) > 0)
			rounds = (size_t)atoi(optarg);
		else if (c == 'w')
			d.folder = optarg;
		else
			errx(2, "floor [-e endpoint] [-r rounds] [-w folder] "
			    "file|bytes ...");
	}
	printf("body\tbytes\tprompt\tyajl_ns\thash_ns\twhole_ns\tof_hash\n");
	for (; optind < argc; optind++) {
		number = strtoull(argv[optind], &end, 10);
		if (*end == '\0' && number <= BODY_MAX)
			floor_show_made(&d, (size_t)number, rounds);
		else
			floor_show_file(&d, argv[optind], endpoint, rounds);
	}
	body_free(d.b);
	kvr_prompt_free(d.p);
	kvr_free(d.k);
	return 0;
}
