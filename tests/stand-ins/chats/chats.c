/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute-chats - simulates many users of an OpenAI-compatible server.
 */
#include "chats.h"

#include "args.h"
#include "chats_count.h"
#include "chats_drive.h"
#include "chats_talk.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODY_MAX = 1 << 30 };

/* Adds turns until the body has that size. NULL: no memory. */
static const char *
grow(struct talk *t, uint64_t bytes, size_t *length)
{
	const char *body;

	while ((body = talk_body(t, length)) != NULL && *length < bytes)
		if (!talk_invent_answer(t))
			return NULL;
	return body;
}

static void
make_body(struct chats_options *o)
{
	struct talk_systems *systems;
	struct talk *t;
	const char *body;
	size_t length;

	if (o->system_bytes > o->make_body / 2)
		o->system_bytes = o->make_body / 2;
	o->turns = UINT32_MAX;
	systems = talk_systems_new(o);
	t = systems == NULL ? NULL : talk_new(o, systems, 0);
	body = t == NULL ? NULL : grow(t, o->make_body, &length);
	if (body == NULL)
		errx(ARGS_FAILED, "no memory");
	if (fwrite(body, 1, length, stdout) != length || fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	talk_free(t);
	talk_systems_free(systems);
}

static char *
read_body(const char *path, size_t *length)
{
	const char *name;
	FILE *f = args_input(path, &name);
	char *body = NULL, *grown;
	size_t capacity = 0;

	*length = 0;
	do {
		capacity = capacity == 0 ? 65536 : capacity * 2;
		grown = capacity > BODY_MAX ? NULL : realloc(body, capacity);
		if (grown == NULL)
			errx(ARGS_FAILED, "%s: too large", name);
		body = grown;
		*length += fread(&body[*length], 1, capacity - *length, f);
	} while (*length == capacity);
	if (ferror(f) != 0)
		err(ARGS_FAILED, "%s", name);
	fclose(f);
	return body;
}

int
main(int argc, char **argv)
{
	struct chats_options o;
	struct chats_count count = { 0 };
	char *body = NULL;
	size_t length = 0;
	uint64_t errors;

	chats_options(&o, argc, argv);
	if (o.make_body != 0) {
		make_body(&o);
		return 0;
	}
	if (o.body != NULL)
		body = read_body(o.body, &length);
	chats_drive(&o, body, length, &count);
	chats_count_print(stdout, &o, &count);
	errors = chats_count_errors(&count);
	chats_count_free(&count);
	free(body);
	if (fflush(stdout) != 0)
		err(ARGS_FAILED, "standard output");
	return errors == 0 ? 0 : ARGS_FAILED;
}
