/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_load.c - any bytes as what an engine says of its load.
 *
 * Three bytes say how they are read: for how many ranks; how they are cut;
 * which allocation fails. The rest is the text. Whatever the input,
 *
 * - cuts do not change what is found;
 * - numbers are within their bounds;
 * - what says that nothing is new says nothing else;
 * - without memory the same or nothing is found.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "engine_load.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 4, TEXT_MAX = 40000 };

struct said {
	struct engine_load load[RANKS];
	bool found, same;
};

/* Each piece is an allocation of its own. False: no memory. */
static bool
read_cut(const uint8_t *bytes, size_t size, uint32_t ranks, size_t cut,
    struct said *out)
{
	struct load_reader *r = load_reader_new(ranks);
	size_t at, n;
	uint8_t *copy;

	memset(out, 0, sizeof(*out));
	if (r == NULL)
		return false;
	for (at = 0; at < size; at += n) {
		n = cut == 0 || size - at < cut ? size - at : cut;
		copy = malloc(n);
		MUST(copy != NULL);
		memcpy(copy, bytes + at, n);
		load_reader_data(r, copy, n);
		free(copy);
	}
	out->found = load_reader_end(r, out->load);
	out->same = load_reader_same(r);
	load_reader_free(r);
	return true;
}

static void
look(const struct said *s, uint32_t ranks)
{
	uint32_t i;

	MUST(!(s->found && s->same));
	for (i = 0; i < ranks; i++) {
		MUST(s->load[i].running <= LOAD_REQUESTS_MOST);
		MUST(s->load[i].waiting <= LOAD_REQUESTS_MOST);
		MUST(s->load[i].usage <= 1);
		MUST(s->load[i].usage >= 0 || !(s->load[i].usage > -1));
		MUST(s->found || s->load[i].running == 0);
	}
}

static bool
alike(const struct said *a, const struct said *b, uint32_t ranks)
{
	uint32_t i;

	for (i = 0; i < ranks; i++)
		if (a->load[i].running != b->load[i].running ||
		    a->load[i].waiting != b->load[i].waiting ||
		    memcmp(&a->load[i].usage, &b->load[i].usage,
		    sizeof(double)) != 0)
			return false;
	return a->found == b->found && a->same == b->same;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said whole, cut;
	uint32_t ranks;

	if (size < 3 || size > TEXT_MAX)
		return 0;
	ranks = data[0] % RANKS + 1;
	alloc_reset();
	MUST(read_cut(data + 3, size - 3, ranks, 0, &whole));
	look(&whole, ranks);
	MUST(read_cut(data + 3, size - 3, ranks, 1, &cut));
	MUST(alike(&whole, &cut, ranks));
	MUST(read_cut(data + 3, size - 3, ranks, data[1], &cut));
	MUST(alike(&whole, &cut, ranks));
	alloc_fail_from(data[2]);
	if (read_cut(data + 3, size - 3, ranks, data[1], &cut)) {
		look(&cut, ranks);
		MUST(!cut.found || alike(&whole, &cut, ranks));
	}
	alloc_reset();
	return 0;
}
