/* SPDX-License-Identifier: BSD-2-Clause */
/* door_calls.c - see door_calls.h. */
#include "door_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { FIRST_ROOM = 256 };

static void
append_call(struct door_calls *t, struct door_call *c)
{
	c->before = t->last;
	c->after = 0;
	if (t->last != 0)
		t->calls[t->last - 1]->after = c->place + 1;
	else
		t->first = c->place + 1;
	t->last = c->place + 1;
}

static void
unlink_call(struct door_calls *t, struct door_call *c)
{
	if (c->before != 0)
		t->calls[c->before - 1]->after = c->after;
	else
		t->first = c->after;
	if (c->after != 0)
		t->calls[c->after - 1]->before = c->before;
	else
		t->last = c->before;
}

static bool
grow_table(struct door_calls *t)
{
	const size_t room = t->room == 0 ? FIRST_ROOM : 2 * t->room;
	struct door_call **calls;
	uint32_t *idle;

	if (room > CALLS_MAX)
		return false;
	calls = realloc(t->calls, room * sizeof(struct door_call *));
	if (calls == NULL)
		return false;
	t->calls = calls;
	idle = realloc(t->idle, room * sizeof(*idle));
	if (idle == NULL)
		return false;
	t->idle = idle;
	while (t->room < room) {
		t->calls[t->room] = NULL;
		t->idle[t->n_idle++] = (uint32_t)t->room++;
	}
	return true;
}

struct door_call *
calls_add(struct door_calls *t, int64_t now)
{
	struct door_call *c;

	if (t->n_idle == 0 && !grow_table(t))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c == NULL || getentropy(&c->secret, sizeof(c->secret)) != 0) {
		free(c);
		return NULL;
	}
	c->place = t->idle[--t->n_idle];
	c->heard = now;
	t->calls[c->place] = c;
	t->n++;
	append_call(t, c);
	return c;
}

struct door_call *
calls_find(struct door_calls *t, const char *id, size_t n, int64_t now)
{
	char text[CALL_ID_LENGTH + 1];
	struct door_call *c;
	uint64_t secret;
	uint32_t place;
	int end = 0;

	if (n != CALL_ID_LENGTH)
		return NULL;
	memcpy(text, id, n);
	text[n] = '\0';
	if (strspn(text, "0123456789abcdef") != n ||
	    sscanf(text, "%8" SCNx32 "%16" SCNx64 "%n", &place, &secret,
	        &end) != 2 || end != CALL_ID_LENGTH || place >= t->room)
		return NULL;
	c = t->calls[place];
	if (c == NULL || c->secret != secret)
		return NULL;
	c->heard = now;
	unlink_call(t, c);
	append_call(t, c);
	return c;
}

struct door_call *
calls_oldest(const struct door_calls *t)
{
	return t->first == 0 ? NULL : t->calls[t->first - 1];
}

void
calls_remove(struct door_calls *t, struct door_call *c)
{
	unlink_call(t, c);
	t->calls[c->place] = NULL;
	t->idle[t->n_idle++] = c->place;
	t->n--;
	free(c);
}

void
calls_id(const struct door_call *c, char id[CALL_ID_LENGTH + 1])
{
	snprintf(id, CALL_ID_LENGTH + 1, "%08" PRIx32 "%016" PRIx64, c->place,
	    c->secret);
}

void
calls_free(struct door_calls *t)
{
	free(t->calls);
	free(t->idle);
	memset(t, 0, sizeof(*t));
}
