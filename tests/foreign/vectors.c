/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vectors.c - the reference's hashes, as a file of ../shared has them: a line
 * for each block, fields separated by tabs. Notation of tokens:
 *
 *   range 1 12    1, 2, ... 12       down 9 3     9, 8, 7
 *   repeat 0 64   0, 64 times        list 5,6,7   these
 */
#include "foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TOKENS = 1024, FIELDS = 8 };

static size_t
read_list(const char *text, uint32_t *tokens)
{
	char *end;
	size_t n = 0;

	for (; n < MAX_TOKENS; text = end + 1) {
		tokens[n++] = (uint32_t)strtoul(text, &end, 10);
		if (*end != ',')
			break;
	}
	return n;
}

static size_t
read_tokens(const char *text, uint32_t *tokens)
{
	uint32_t a, b, i, n, step = 1;
	char kind[8];

	if (strncmp(text, "list ", 5) == 0)
		return read_list(text + 5, tokens);
	if (sscanf(text, "%7s %" SCNu32 " %" SCNu32, kind, &a, &b) != 3)
		return 0;
	n = b;
	if (strcmp(kind, "range") == 0)
		n = b - a + 1;
	else if (strcmp(kind, "repeat") == 0)
		step = 0;
	else
		step = UINT32_MAX;
	for (i = 0; i < n && i < MAX_TOKENS; i++)
		tokens[i] = a + i * step;
	return i;
}

static void
part(const struct kvr *k, struct kvr_scope *scope, enum kvr_scope_part which,
    const char *text)
{
	if (strcmp(text, "-") != 0)
		must("kvr_scope_set", kvr_scope_set(k, scope, which, text,
		    strlen(text)));
}

static void
hash(char *const *field, uint64_t *local, uint64_t *sequence)
{
	uint32_t tokens[MAX_TOKENS];
	struct kvr_options o;
	struct kvr_scope scope;
	struct kvr_prompt *p;
	struct kvr *k;

	must("kvr_options_init", kvr_options_init(&o, sizeof(o)));
	o.region_bytes = 1 << 20;
	o.hash = KVR_HASH_DYNAMO;
	o.block_size = (uint32_t)strtoul(field[1], NULL, 10);
	o.eagle = field[4][0] == '1';
	must("kvr_new", kvr_new(&o, &k));
	must("kvr_prompt_new", kvr_prompt_new(k, &p));
	must("kvr_scope_init", kvr_scope_init(&scope, sizeof(scope)));
	part(k, &scope, KVR_SCOPE_ADAPTER, field[2]);
	part(k, &scope, KVR_SCOPE_SALT, field[3]);
	must("kvr_prompt_set_tokens", kvr_prompt_set_tokens(p, &scope, tokens,
	    read_tokens(field[0], tokens)));
	must("kvr_prompt_hash", kvr_prompt_hash(p,
	    strtoul(field[5], NULL, 10), local, sequence));
	kvr_prompt_free(p);
	kvr_free(k);
}

/* 1 if it is right, 0 if it has none. */
static int
check_line(char *line)
{
	char *field[FIELDS];
	uint64_t local = 0, sequence = 0;
	int n = 0;

	if (line[0] == '#')
		return 0;
	line[strcspn(line, "\n")] = '\0';
	for (field[0] = line; n + 1 < FIELDS; n++) {
		field[n + 1] = strchr(field[n], '\t');
		if (field[n + 1] == NULL)
			return 0;
		*field[n + 1]++ = '\0';
	}
	hash(field, &local, &sequence);
	if (local == strtoull(field[6], NULL, 10) &&
	    sequence == strtoull(field[7], NULL, 10))
		return 1;
	fprintf(stderr, "%s, block %s: %" PRIu64 " %" PRIu64 "\n", field[0],
	    field[5], local, sequence);
	return -1;
}

int
vectors_check(const char *file)
{
	char line[4096];
	FILE *in = fopen(file, "r");
	int good = 0, one = 0;

	if (in == NULL) {
		perror(file);
		return -1;
	}
	while (one >= 0 && fgets(line, sizeof(line), in) != NULL) {
		one = check_line(line);
		good += one;
	}
	fclose(in);
	return one < 0 ? -1 : good;
}
