/* SPDX-License-Identifier: BSD-2-Clause */
/* sources.c - see sources.h. */
#include "sources.h"

#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
sources_has(const struct conf_stream *stream)
{
	return stream->engine == CONF_DYNAMO ||
	    (stream->engine == CONF_TRTLLM && stream->server[0] != '\0');
}

static struct hub *
hub_of(const struct source *s)
{
	return s->plane != NULL ? plane_hub(s->plane) : pull_hub(s->pull);
}

/* Compares the settings of a source, and not those of a worker. */
static bool
same_source(const struct conf_stream *a, const struct conf_stream *b)
{
	return a->engine == b->engine && a->window == b->window &&
	    a->block_size == b->block_size && a->interval == b->interval &&
	    strcmp(a->events, b->events) == 0 &&
	    strcmp(a->server, b->server) == 0 &&
	    strcmp(a->login, b->login) == 0 &&
	    strcmp(a->topic, b->topic) == 0;
}

static bool
in_region(const struct conf_stream *stream, const char *region)
{
	return stream->region[0] == '\0' ||
	    strcmp(stream->region, region) == 0;
}

/* NULL: it is not wanted any more. */
static const struct conf_stream *
planned(const struct conf *plan, const struct conf_stream *stream)
{
	size_t i;

	for (i = 0; i < plan->n; i++)
		if (conf_same(&plan->streams[i], stream))
			return &plan->streams[i];
	return NULL;
}

static void
sweep(struct sources *s, const char *region, const struct conf *plan)
{
	const struct conf_stream *now;
	struct hub *h;
	size_t i, j;

	for (i = 0; i < s->n; i++) {
		h = hub_of(&s->all[i]);
		for (j = h->n; j-- > 0;) {
			if (strcmp(h->targets[j]->region, region) != 0)
				continue;
			now = planned(plan, &h->targets[j]->conf);
			if (now == NULL)
				hub_remove(h, j);
			else
				hub_change(h, j, now);
		}
	}
}

static void
end_unwanted(struct sources *s)
{
	size_t i;

	for (i = s->n; i-- > 0;)
		if (hub_of(&s->all[i])->n == 0) {
			plane_close(s->all[i].plane);
			pull_close(s->all[i].pull);
			s->all[i] = s->all[--s->n];
		}
}

/* NULL: no memory, or the endpoint is not valid. */
static struct source *
source_of(struct sources *s, const struct conf_stream *stream)
{
	const size_t room = s->room == 0 ? 8 : s->room * 2;
	struct source made = { .like = *stream }, *more;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (same_source(&s->all[i].like, stream))
			return &s->all[i];
	if (s->n == s->room) {
		more = realloc(s->all, room * sizeof(*more));
		if (more == NULL)
			return NULL;
		s->all = more;
		s->room = room;
	}
	if (stream->engine == CONF_DYNAMO)
		made.plane = plane_open(stream, s->context);
	else
		made.pull = pull_open(stream, s->http);
	if (made.plane == NULL && made.pull == NULL)
		return NULL;
	s->all[s->n] = made;
	return &s->all[s->n++];
}

static bool
has(const struct source *s, const char *region,
    const struct conf_stream *stream)
{
	const struct hub *h = hub_of(s);
	size_t i;

	for (i = 0; i < h->n; i++)
		if (strcmp(h->targets[i]->region, region) == 0 &&
		    conf_same(stream, &h->targets[i]->conf))
			return true;
	return false;
}

void
sources_plan(struct sources *s, const char *region, struct kvr *k,
    const struct conf *plan)
{
	const struct conf_stream *stream;
	struct source *of;
	size_t i;

	sweep(s, region, plan);
	for (i = 0; i < plan->n; i++) {
		stream = &plan->streams[i];
		if (!sources_has(stream) || !in_region(stream, region))
			continue;
		of = source_of(s, stream);
		if (of == NULL || (!has(of, region, stream) &&
		    !hub_add(hub_of(of), region, k, stream)))
			say(region, stream, "it cannot be followed: %s",
			    of == NULL ? zmq_strerror(errno) : "no memory");
	}
	end_unwanted(s);
}

void
sources_free(struct sources *s)
{
	while (s->n > 0) {
		s->n--;
		plane_close(s->all[s->n].plane);
		pull_close(s->all[s->n].pull);
	}
	free(s->all);
	s->all = NULL;
	s->room = 0;
}

void
sources_work(struct sources *s, int64_t now)
{
	size_t i;

	for (i = 0; i < s->n; i++) {
		if (s->all[i].plane != NULL)
			plane_work(s->all[i].plane, now);
		else
			pull_work(s->all[i].pull, now);
	}
}

size_t
sources_items(const struct sources *s, zmq_pollitem_t *items)
{
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		if (s->all[i].plane != NULL)
			n += plane_items(s->all[i].plane, items + n);
	return n;
}

size_t
sources_rows(const struct sources *s, const char *region,
    struct tell_row *rows)
{
	const struct hub_target *t;
	const struct hub *h;
	size_t i, j, n = 0;

	for (i = 0; i < s->n; i++) {
		h = hub_of(&s->all[i]);
		for (j = 0; j < h->n; j++) {
			t = h->targets[j];
			if (strcmp(t->region, region) != 0)
				continue;
			if (s->all[i].plane != NULL)
				plane_row(s->all[i].plane, t, &rows[n++]);
			else
				pull_row(s->all[i].pull, t, &rows[n++]);
		}
	}
	return n;
}
