/* SPDX-License-Identifier: BSD-2-Clause */
/* pick_status.c - see pick_status.h. */
#include "pick_status.h"

#include <string.h>

#include "json_writer.h"
#include "metric_writer.h"

enum { TRIES = 4, FIRST_ROOM = 1 << 16 };

/* -------------------------------------------------------------- counts --- */

struct count {
	const char *name, *help;
	uint64_t value;
};

enum { COUNTS = 15 };

static void
list_counts(const struct pick_status *s, struct count to[COUNTS])
{
	static const struct h2_counts nothing;
	const struct h2_counts *grpc = s->grpc == NULL ? &nothing :
	    h2_counts(s->grpc);
	const struct door_counts *door = door_counts(s->door);
	const struct count counts[COUNTS] = {
		{ "servers", "Servers of the fleet.", s->pool->servers },
		{ "routed_total", "Choices of a server.", s->pool->routed },
		{ "waiting", "Calls that wait for a server.",
		    s->pool->waiting },
		{ "full_total", "Requests that were refused with 429.",
		    s->pool->full },
		{ "none_total", "Requests for which no server was ready.",
		    s->pool->none },
		{ "connections", "Open connections of gRPC.",
		    grpc->open_connections },
		{ "connections_total", "Connections of gRPC.",
		    grpc->connections },
		{ "streams", "Open calls of gRPC.", grpc->open_streams },
		{ "streams_total", "Calls of gRPC.", grpc->streams },
		{ "malformed_total", "Messages that were not understood.",
		    s->picker->malformed + grpc->broken },
		{ "cut_total", "Bodies that were too long to be held.",
		    s->picker->cut },
		{ "calls", "Open calls of the JSON door.", door->open },
		{ "selects_total", "Choices by the JSON door.",
		    door->selects },
		{ "unknown_total", "Calls that the JSON door does not have.",
		    door->unknown },
		{ "faded_total", "Calls that had no end.",
		    door->faded + grpc->faded }
	};

	memcpy(to, counts, sizeof(counts));
}

static const char *const hows[PICK_HOWS] = {
	[KVH_WHOLE] = "whole", [KVH_CLIENT_LEFT] = "client_left",
	[KVH_ENGINE_BROKE] = "engine_broke", [KVH_GIVEN_UP] = "given_up",
	[KVH_NOT_SEEN] = "not_seen"
};

static void
write_pool_name(struct metrics *m, const struct pick_status *s)
{
	const struct metric name = { NULL, "info", NULL };

	metric_head(m, &name, "Name and namespace of the pool.");
	metric_begin(m, &name);
	metric_label_text(m, "name", s->name);
	metric_label_text(m, "namespace", s->space);
	metric_whole(m, 1);
}

static void
write_metrics(const struct pick_status *s, struct writer *w)
{
	struct metrics m = { .to = w, .prefix = "pick" };
	const struct metric ended = { NULL, "ended_total", NULL };
	struct count counts[COUNTS];
	size_t i;

	list_counts(s, counts);
	write_pool_name(&m, s);
	for (i = 0; i < COUNTS; i++) {
		const struct metric name = { NULL, counts[i].name, NULL };

		metric_head(&m, &name, counts[i].help);
		metric_begin(&m, &name);
		metric_whole(&m, counts[i].value);
	}
	metric_head(&m, &ended, "Ends of calls, by how they ended.");
	for (i = 0; i < PICK_HOWS; i++) {
		metric_begin(&m, &ended);
		metric_label_text(&m, "how", hows[i]);
		metric_whole(&m, s->pool->ended[i]);
	}
}

static void
write_json(const struct pick_status *s, struct writer *w)
{
	struct count counts[COUNTS];
	struct json j;
	size_t i;

	list_counts(s, counts);
	json_begin(&j, w);
	json_map(&j, NULL);
	json_text(&j, "name", s->name);
	json_text(&j, "namespace", s->space);
	for (i = 0; i < COUNTS; i++)
		json_whole(&j, counts[i].name, counts[i].value);
	json_map(&j, "ended");
	for (i = 0; i < PICK_HOWS; i++)
		json_whole(&j, hows[i], s->pool->ended[i]);
	json_map_end(&j);
	json_map_end(&j);
	json_end(&j);
}

/* The pool's own text grows between two tries. */
static bool
append_pool(const struct pick_status *s, uint32_t form, struct hold *to)
{
	size_t room = FIRST_ROOM, length = 0;
	int i;

	for (i = 0; i < TRIES; i++, room = length + FIRST_ROOM) {
		if (!hold_reserve(to, room) || kvh_status(s->pool->kvh, form,
		    KVH_NOW, (char *)to->data + to->length, room,
		    &length) != 0)
			return false;
		if (length < room) {
			to->length += length;
			return true;
		}
	}
	return false;
}

bool
status_text(const struct pick_status *s, uint32_t form, struct hold *to)
{
	struct writer w = hold_out(to);

	if (form == KVH_PROMETHEUS) {
		write_metrics(s, &w);
		return !w.failed && append_pool(s, form, to);
	}
	writer_text(&w, "{\"pick\":");
	write_json(s, &w);
	writer_text(&w, ",\"pool\":");
	if (w.failed || !append_pool(s, form, to))
		return false;
	writer_text(&w, "}\n");
	return !w.failed;
}
