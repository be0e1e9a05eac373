/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_door.c - any bytes as a list of token ids, as the ID of a call, and as a
 * configuration of kvroute-pick.
 *
 * Whatever the input,
 *
 * - a list that is read is read again from its numbers alone;
 * - no ID is found but that of the one call that is there;
 * - each server that is read has a port, and each line of options its place;
 * - without memory the same or nothing is read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "door_calls.h"
#include "door_text.h"
#include "must.h"
#include "pick_conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 14, DIGITS = 12 };

static void
write_again(const uint32_t *tokens, size_t n)
{
	char *text = malloc(n * DIGITS + 3);
	uint32_t *again;
	size_t i, at = 0, n_again;

	MUST(text != NULL);
	text[at++] = '[';
	for (i = 0; i < n; i++)
		at += (size_t)sprintf(text + at, i == 0 ? "%u" : " ,%u",
		    tokens[i]);
	text[at++] = ']';
	MUST(door_read_tokens(text, at, &again, &n_again));
	MUST(n_again == n);
	MUST(n == 0 || memcmp(again, tokens, n * sizeof(*again)) == 0);
	free(again);
	free(text);
}

static void
try_tokens(const uint8_t *data, size_t size, bool memory)
{
	uint32_t *tokens;
	size_t n;

	if (door_read_tokens(data, size, &tokens, &n) && memory)
		write_again(tokens, n);
	free(tokens);
}

static void
try_id(const uint8_t *data, size_t size)
{
	struct door_calls t = { 0 };
	struct door_call *c = calls_add(&t, 1);
	char id[CALL_ID_LENGTH + 1];

	MUST(c != NULL);
	calls_id(c, id);
	MUST(calls_find(&t, (const char *)data, size, 2) == NULL ||
	    memcmp(data, id, CALL_ID_LENGTH) == 0);
	calls_remove(&t, c);
	calls_free(&t);
}

static void
try_conf(const uint8_t *data, size_t size)
{
	char error[CONF_ERROR_MAX], host[CONF_NAME_MAX];
	FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
	struct pick_conf conf;
	unsigned port;
	size_t i;

	MUST(in != NULL);
	if (pick_conf_read(&conf, in, error)) {
		for (i = 0; i < conf.n; i++)
			MUST(pick_conf_split(conf.servers[i].name, host,
			    &port) && conf.servers[i].line > 0);
		for (i = 0; i < conf.options.length; i++)
			MUST(pick_conf_option_line(&conf, i) > 0);
		pick_conf_free(&conf);
	}
	fclose(in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > TEXT_MAX)
		return 0;
	alloc_reset();
	try_tokens(data + 1, size - 1, true);
	try_id(data + 1, size - 1);
	try_conf(data + 1, size - 1);
	alloc_fail_from(data[0]);
	try_tokens(data + 1, size - 1, false);
	try_conf(data + 1, size - 1);
	alloc_reset();
	return 0;
}
