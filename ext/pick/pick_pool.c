/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_pool.c - see pick_pool.h. */
#include "pick_pool.h"

#include <string.h>
#include <utlist.h>

/* "-" is not the name of a server. */
void
pick_allow(void *call, const char *names, size_t n)
{
	const char *end = names + n;
	size_t length;

	(void)kvh_allow(call, "-", 1);
	while (names < end) {
		n = (size_t)(end - names);
		for (length = 0; length < n && names[length] != ',' &&
		    names[length] != ' '; length++)
			continue;
		if (length > 0)
			(void)kvh_allow(call, names, length);
		names += length < n ? length + 1 : n;
	}
}

int
pick_choose(struct pick_pool *p, struct kvh_call *call, uint32_t *targets)
{
	int error;

	*targets = 0;
	error = kvh_pick(call, KVH_NOW, targets);
	if (error == 0)
		p->routed++;
	return error;
}

/* --------------------------------------------------------------- waits --- */

static void
wake_turns(struct pick_pool *p)
{
	if (p->waiting > 0 && !p->turning && p->wake != NULL)
		p->wake(p->context);
}

bool
pick_wait(struct pick_pool *p, struct pick_waiter *w, int error)
{
	if ((error != KVH_EFULL && error != KVH_EKEPT) ||
	    kvh_wait(w->call, KVH_NOW) != 0)
		return false;
	DL_APPEND(p->waiters, w);
	w->waits = true;
	p->waiting++;
	wake_turns(p);
	return true;
}

void
pick_leave(struct pick_pool *p, struct pick_waiter *w)
{
	if (!w->waits)
		return;
	DL_DELETE(p->waiters, w);
	w->waits = false;
	p->waiting--;
}

/* Most turns are that of the first. One that waits again has another later. */
void
pick_turns(struct pick_pool *p)
{
	struct pick_waiter *w;
	struct kvh_call *call;
	uint32_t most = p->waiting;

	p->turning = true;
	while (most-- > 0 && kvh_turn(p->kvh, KVH_NOW, &call) == 0) {
		DL_SEARCH_SCALAR(p->waiters, w, call, call);
		if (w == NULL)
			continue;
		pick_leave(p, w);
		w->turn(w->owner);
	}
	p->turning = false;
}

/* ---------------------------------------------------------------- ends --- */

static void
write_trace(struct pick_pool *p, struct kvh_call *call)
{
	const char *text;
	size_t n;

	if (p->trace == NULL || kvh_word(call, KVH_TRACE, &text, &n) != 0 ||
	    n == 0)
		return;
	(void)fwrite(text, 1, n, p->trace);
	if (text[n - 1] != '\n')
		(void)putc('\n', p->trace);
}

void
pick_end(struct pick_pool *p, struct kvh_call *call, uint32_t how, char *out,
    size_t room, size_t *written)
{
	if (written != NULL)
		*written = 0;
	if (kvh_end(call, how, KVH_NOW, out, room, written) == 0)
		p->ended[how]++;
	write_trace(p, call);
	wake_turns(p);
}

size_t
pick_list(struct kvh_call *call, uint32_t targets, char list[PICK_LIST_MAX])
{
	const char *name;
	size_t n = 0, length;
	uint32_t i;

	for (i = 0; i < targets; i++) {
		if (kvh_target(call, i, &name, &length, NULL) != 0 ||
		    n + 1 + length > PICK_LIST_MAX)
			break;
		if (n > 0)
			list[n++] = ',';
		memcpy(list + n, name, length);
		n += length;
	}
	return n;
}

static uint32_t
retry_seconds(struct kvh_call *call)
{
	int64_t ms = 0;

	if (kvh_fact(call, KVH_RETRY_MS, &ms) != 0 || ms <= 1000)
		return 1;
	return ms > 3600000 ? 3600 : (uint32_t)((ms + 999) / 1000);
}

struct pick_refusal
pick_refuse(struct pick_pool *p, struct kvh_call *call, int error)
{
	if (error == KVH_EFULL) {
		p->full++;
		return (struct pick_refusal){ 429, retry_seconds(call),
		    "{\"error\":{\"message\":\"all servers are busy\","
		    "\"type\":\"overloaded\",\"code\":429}}" };
	}
	if (error == KVH_ENOSERVER || error == KVH_EKEPT)
		p->none++;
	else
		p->failed++;
	return (struct pick_refusal){ 503, 1,
	    "{\"error\":{\"message\":\"no server is ready\","
	    "\"type\":\"unavailable\",\"code\":503}}" };
}
