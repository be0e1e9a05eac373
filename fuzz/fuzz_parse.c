/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_parse.c - any bytes as the text of options, a policy or facts.
 *
 * The first byte chooses the struct; the rest is the text. Whatever it is,
 *
 * - an error names a place in the text and a reason, and changes nothing;
 * - blanks around the text make no difference, nor does the order of words;
 * - a region takes what was accepted, unless fields contradict each other.
 */
#include <kvroute.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPTIONS, POLICY, WORKER, KINDS, TEXT_MAX = 4096 };

union any {
	struct kvr_options options;
	struct kvr_policy policy;
	struct kvr_worker worker;
};

static void
set_defaults(int kind, union any *a)
{
	memset(a, 0, sizeof(*a));
	MUST((kind == OPTIONS ? kvr_options_init(&a->options,
	    sizeof(a->options)) : kind == POLICY ? kvr_policy_init(&a->policy,
	    sizeof(a->policy)) : kvr_worker_init(&a->worker,
	    sizeof(a->worker))) == KVR_OK);
}

/* From memory that ends where the text does. */
static int
read_text(int kind, union any *a, const char *text, size_t n)
{
	char *copy = malloc(n + 1);
	union any before = *a;
	size_t offset = SIZE_MAX;
	const char *why = NULL;
	int error;

	MUST(copy != NULL);
	memcpy(copy + 1, text, n);
	error = kind == OPTIONS ? kvr_options_parse(&a->options, copy + 1, n,
	    &offset, &why) : kind == POLICY ? kvr_policy_parse(&a->policy,
	    copy + 1, n, &offset, &why) : kvr_worker_parse(&a->worker,
	    copy + 1, n, &offset, &why);
	free(copy);
	MUST(error == KVR_OK || error == KVR_EINVAL || error == KVR_EUNKNOWN);
	MUST((error == KVR_OK) == (why == NULL));
	MUST((error == KVR_OK) == (offset == SIZE_MAX));
	MUST(error == KVR_OK || (offset < n && *why != '\0'));
	MUST(error == KVR_OK || memcmp(a, &before, sizeof(before)) == 0);
	return error;
}

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Each word by itself, from the last to the first. */
static void
read_backwards(int kind, union any *a, const char *text, size_t n)
{
	size_t end;

	for (; n > 0; n--) {
		for (end = n; n > 0 && !is_blank(text[n - 1]);)
			n--;
		MUST(read_text(kind, a, text + n, end - n) == KVR_OK);
		if (n == 0)
			break;
	}
}

static void
use(int kind, union any *a)
{
	static struct kvr *k;
	struct kvr_options o;
	uint64_t id;
	int error;

	if (k == NULL) {
		MUST(kvr_options_init(&o, sizeof(o)) == KVR_OK);
		o.region_bytes = 4 << 20;
		MUST(kvr_new(&o, &k) == KVR_OK);
	}
	if (kind == POLICY) {
		MUST(kvr_policy_set(k, &a->policy) == KVR_OK);
	} else if (kind == WORKER) {
		a->worker.rank = 0;
		error = kvr_worker_put(k, "w", 1, &a->worker, &id);
		MUST(error == KVR_OK || (error == KVR_EINVAL &&
		    (a->worker.window_tokens == 0 ||
		    a->worker.capacity_tokens == 0)));
	} else {
		(void)kvr_options_fault(NULL, &a->options);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 2];
	union any a, b;
	size_t n = size == 0 ? 0 : size - 1;
	int kind = size == 0 ? OPTIONS : data[0] % KINDS, error;

	if (n > TEXT_MAX)
		return 0;
	text[0] = ' ';
	if (n > 0)
		memcpy(text + 1, data + 1, n);
	text[n + 1] = '\n';
	set_defaults(kind, &a);
	set_defaults(kind, &b);
	error = read_text(kind, &a, text + 1, n);
	MUST(read_text(kind, &b, text, n + 2) == error);
	MUST(memcmp(&a, &b, sizeof(a)) == 0);
	if (error != KVR_OK)
		return 0;
	set_defaults(kind, &b);
	if (kind != POLICY) {
		read_backwards(kind, &b, text + 1, n);
		MUST(memcmp(&a, &b, sizeof(a)) == 0);
	}
	use(kind, &a);
	return 0;
}
