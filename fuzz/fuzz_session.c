/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_session.c - any bytes through the reader of sessions.
 *
 * The first byte says which allocation fails (0: none), the rest is the file.
 * The result is an error, or a session whose tree is complete: each
 * conversation but the main one has one parent before it, and every id of each
 * request can be read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "session_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t seen; /* so that ids are really read */

static void
demand(bool condition)
{
	if (!condition)
		abort();
}

static void
look_at_request(const struct session *s, const struct session_entry *e)
{
	size_t i;

	demand(e->input > 0 && e->input <= SESSION_TOKENS_MAX);
	demand(e->output <= SESSION_TOKENS_MAX);
	demand(e->known == 0 || e->known == e->output);
	demand(e->n_ids == (e->input + e->known + SESSION_BLOCK - 1) /
	    SESSION_BLOCK);
	demand(e->n_common <= e->n_ids);
	demand(e->first_id + e->n_ids <= s->n_ids);
	for (i = 0; i < e->n_ids; i++)
		seen += s->ids[e->first_id + i];
}

static void
look(const struct session *s)
{
	size_t agents = 0, requests = 0, entries = 0, t, i;

	demand(s->n_talks > 0);
	for (t = 0; t < s->n_talks; t++) {
		const struct session_talk *talk = &s->talks[t];

		entries += talk->n;
		demand(talk->first + talk->n <= s->n_entries);
		for (i = talk->first; i < talk->first + talk->n; i++) {
			const struct session_entry *e = &s->entries[i];

			demand(e->after_ns >= 0);
			demand(e->talk == 0 || (e->talk > t &&
			    e->talk < s->n_talks));
			agents += e->talk != 0;
			requests += e->talk == 0;
			if (e->talk == 0)
				look_at_request(s, e);
		}
	}
	demand(entries == s->n_entries);
	demand(agents == s->n_talks - 1);
	demand(requests == s->requests && requests > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[SESSION_ERROR_BYTES];
	struct session *s;
	uint8_t *copy;
	FILE *f;

	if (size < 2)
		return 0;
	/* fmemopen wants memory that may be written to. */
	copy = malloc(size - 1);
	demand(copy != NULL);
	memcpy(copy, data + 1, size - 1);
	f = fmemopen(copy, size - 1, "r");
	demand(f != NULL);
	alloc_fail_at(data[0]);
	s = session_read(f, "fuzz", error);
	alloc_reset();
	if (s != NULL)
		look(s);
	else
		demand(strncmp(error, "fuzz: ", 6) == 0);
	session_free(s);
	fclose(f);
	free(copy);
	return 0;
}
