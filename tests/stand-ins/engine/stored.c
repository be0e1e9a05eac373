/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stored.c - kept responses and conversations over HTTP; see kept.h.
 *
 *   GET, DELETE   /v1/responses/ID
 *   GET           /v1/responses/ID/input_items
 *   POST          /v1/responses/ID/cancel
 *   POST          /v1/conversations
 *   GET, DELETE   /v1/conversations/ID
 *   GET, POST     /v1/conversations/ID/items
 */
#include "server.h"

#include "ask_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>

/* Text that is printed, and read again. NULL: no memory. */
static struct json_object *
parse(struct evbuffer *out)
{
	const char *text = evbuffer_add(out, "", 1) != 0 ? NULL :
	    (const char *)evbuffer_pullup(out, -1);

	return text == NULL ? NULL : json_tokener_parse(text);
}

/* -------------------------------------------------------------- keeping --- */

/* Returns the response for GET, even if a part was sent. NULL: no memory. */
static struct json_object *
object_of(struct reply *r)
{
	struct evbuffer *out = r->out;
	struct json_object *o = NULL;

	r->out = evbuffer_new();
	if (r->out != NULL) {
		reply_whole(r);
		o = parse(r->out);
		evbuffer_free(r->out);
	}
	r->out = out;
	return o;
}

void
stored_keep(struct server *s, struct reply *r)
{
	const struct ask *a = r->ask;
	struct kept_thing t = { .items = a->items };
	struct json_object *output;

	if (a->items == NULL)
		return;
	t.object = object_of(r);
	t.n_input = json_object_array_length(a->items);
	output = ask_member(t.object, "output");
	memcpy(t.id, r->id, sizeof(t.id));
	if (output == NULL || !kept_copy(a->items, output, 0) ||
	    (a->store && !kept_add(s->kept, KEPT_RESPONSE, &t)) ||
	    (a->conversation != NULL && !kept_extend(s->kept, a->conversation,
	    a->items, a->n_earlier)))
		r->failed = true;
	json_object_put(t.object);
}

/* --------------------------------------------------------------- bodies --- */

/* An object, with a list of objects as items if it has any. */
static void
check(struct ask *a, struct json_object *o)
{
	struct json_object *items = ask_member(o, "items");
	size_t n, i;

	if (!json_object_is_type(o, json_type_object))
		ask_wrong(a, 400, "Input should be a valid object", NULL);
	if (items == NULL || !ask_list(a, items, "items"))
		return;
	n = json_object_array_length(items);
	for (i = 0; i < n; i++)
		if (!json_object_is_type(json_object_array_get_idx(items, i),
		    json_type_object))
			ask_wrong(a, 400, "Input should be a valid object",
			    "items");
}

/* NULL: it is wrong, and an error was sent. */
static struct json_object *
read_body(struct link *l)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(l->request);
	size_t n = evbuffer_get_length(in);
	const char *text = n == 0 ? "{}" :
	    (const char *)evbuffer_pullup(in, -1);
	struct json_object *o = NULL;
	struct ask a = { 0 };

	if (text == NULL)
		ask_wrong(&a, 500, "no memory", NULL);
	else
		o = ask_parse(&a, text, n == 0 ? 2 : n);
	if (a.status == 0)
		check(&a, o);
	if (a.status == 0)
		return o;
	json_object_put(o);
	server_error(l, ASK_RESPONSES, a.status, a.error);
	return NULL;
}

/* -------------------------------------------------------------- answers --- */

static void
put_json(struct evbuffer *body, struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	evbuffer_add_printf(body, "%s", text == NULL ? "null" : text);
}

/* n items, from number `first` on. */
static void
put_items(struct evbuffer *body, struct json_object *items, size_t first,
    size_t n)
{
	struct json_object *item = NULL;
	size_t i;

	evbuffer_add_printf(body, "{\"object\":\"list\",\"data\":[");
	for (i = 0; i < n; i++) {
		evbuffer_add_printf(body, "%s", i == 0 ? "" : ",");
		put_json(body, json_object_array_get_idx(items, first + i));
	}
	evbuffer_add_printf(body, "],\"first_id\":");
	if (n > 0)
		item = json_object_array_get_idx(items, first);
	put_json(body, ask_member(item, "id"));
	evbuffer_add_printf(body, ",\"last_id\":");
	if (n > 0)
		item = json_object_array_get_idx(items, first + n - 1);
	put_json(body, ask_member(item, "id"));
	evbuffer_add_printf(body, ",\"has_more\":false}");
}

static void
get_thing(struct link *l, const struct kept_thing *t, struct evbuffer *body)
{
	put_json(body, t->object);
	server_answer(l, 200, body);
}

static void
get_input(struct link *l, const struct kept_thing *t, struct evbuffer *body)
{
	put_items(body, t->items, 0, t->n_input);
	server_answer(l, 200, body);
}

static void
get_items(struct link *l, const struct kept_thing *t, struct evbuffer *body)
{
	put_items(body, t->items, 0, json_object_array_length(t->items));
	server_answer(l, 200, body);
}

/* It has ended, or it would not be known. */
static void
cancel(struct link *l, const struct kept_thing *t, struct evbuffer *body)
{
	(void)t;
	(void)body;
	server_error(l, ASK_RESPONSES, 400,
	    "The response has ended: there is nothing to cancel");
}

static void
drop_response(struct link *l, const struct kept_thing *t,
    struct evbuffer *body)
{
	evbuffer_add_printf(body, "{\"id\":\"%s\",\"object\":\"response\","
	    "\"deleted\":true}", t->id);
	kept_drop(l->server->kept, KEPT_RESPONSE, t->id);
	server_answer(l, 200, body);
}

static void
drop_conversation(struct link *l, const struct kept_thing *t,
    struct evbuffer *body)
{
	evbuffer_add_printf(body, "{\"id\":\"%s\",\"object\":"
	    "\"conversation.deleted\",\"deleted\":true}", t->id);
	kept_drop(l->server->kept, KEPT_CONVERSATION, t->id);
	server_answer(l, 200, body);
}

static void
add_items(struct link *l, const struct kept_thing *t, struct evbuffer *body)
{
	struct json_object *o = read_body(l), *items = ask_member(o, "items");

	if (o == NULL)
		return;
	if (items == NULL) {
		server_error(l, ASK_RESPONSES, 400, "Field required: items");
	} else if (!kept_extend(l->server->kept, t->id, items, 0)) {
		server_error(l, ASK_RESPONSES, 500, "no memory");
	} else {
		put_items(body, items, 0, json_object_array_length(items));
		server_answer(l, 200, body);
	}
	json_object_put(o);
}

/* False: no memory. */
static bool
make(struct link *l, struct json_object *o, struct evbuffer *body)
{
	struct json_object *metadata = ask_member(o, "metadata");
	struct json_object *items = ask_member(o, "items");
	struct kept_thing t = { .items = items == NULL ?
	    json_object_new_array() : json_object_get(items) };
	bool done;

	kept_id(l->server->kept, KEPT_CONVERSATION, t.id);
	evbuffer_add_printf(body, "{\"id\":\"%s\",\"object\":\"conversation\","
	    "\"created_at\":%" PRId64 ",\"metadata\":{}}", t.id,
	    (int64_t)time(NULL));
	t.object = parse(body);
	evbuffer_drain(body, evbuffer_get_length(body));
	if (json_object_is_type(metadata, json_type_object) &&
	    t.object != NULL && json_object_object_add(t.object, "metadata",
	    json_object_get(metadata)) != 0)
		json_object_put(metadata);
	done = t.items != NULL && t.object != NULL &&
	    kept_add(l->server->kept, KEPT_CONVERSATION, &t);
	put_json(body, t.object);
	json_object_put(t.items);
	json_object_put(t.object);
	return done;
}

static void
make_conversation(struct link *l, struct evbuffer *body)
{
	struct json_object *o;

	if (evhttp_request_get_command(l->request) != EVHTTP_REQ_POST) {
		server_error(l, ASK_RESPONSES, 405, "Method Not Allowed");
		return;
	}
	o = read_body(l);
	if (o == NULL)
		return;
	if (make(l, o, body))
		server_answer(l, 200, body);
	else
		server_error(l, ASK_RESPONSES, 500, "no memory");
	json_object_put(o);
}

/* -------------------------------------------------------------- routing --- */

static const struct {
	const char *path;
	enum kept_kind kind;
} fronts[] = {
	{ "/v1/responses/", KEPT_RESPONSE },
	{ "/v1/conversations/", KEPT_CONVERSATION }
};

/* The paths behind an id. */
static const struct way {
	enum kept_kind kind;
	const char *path;
	enum evhttp_cmd_type command;
	void (*answer)(struct link *l, const struct kept_thing *t,
	    struct evbuffer *body);
} ways[] = {
	{ KEPT_RESPONSE, "", EVHTTP_REQ_GET, get_thing },
	{ KEPT_RESPONSE, "", EVHTTP_REQ_DELETE, drop_response },
	{ KEPT_RESPONSE, "/input_items", EVHTTP_REQ_GET, get_input },
	{ KEPT_RESPONSE, "/cancel", EVHTTP_REQ_POST, cancel },
	{ KEPT_CONVERSATION, "", EVHTTP_REQ_GET, get_thing },
	{ KEPT_CONVERSATION, "", EVHTTP_REQ_DELETE, drop_conversation },
	{ KEPT_CONVERSATION, "/items", EVHTTP_REQ_GET, get_items },
	{ KEPT_CONVERSATION, "/items", EVHTTP_REQ_POST, add_items }
};

/* Returns the way of path and command; NULL: no such way, with this status. */
static const struct way *
way_of(enum kept_kind kind, const char *path, enum evhttp_cmd_type command,
    int *status)
{
	size_t i;

	*status = 404;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (ways[i].kind != kind || strcmp(path, ways[i].path) != 0)
			continue;
		if (ways[i].command == command)
			return &ways[i];
		*status = 405;
	}
	return NULL;
}

/* `rest` is an id and the path behind it. */
static void
answer(struct link *l, enum kept_kind kind, const char *rest,
    struct evbuffer *body)
{
	size_t n = strcspn(rest, "/");
	const struct kept_thing *t;
	const struct way *way;
	char id[128], text[128];
	int status;

	way = way_of(kind, rest + n, evhttp_request_get_command(l->request),
	    &status);
	if (way == NULL) {
		server_error(l, ASK_RESPONSES, status, status == 404 ?
		    "Not Found" : "Method Not Allowed");
		return;
	}
	/* One that is cut is too long to be known. */
	snprintf(id, sizeof(id), "%.*s", n < sizeof(id) ? (int)n :
	    (int)sizeof(id), rest);
	t = kept_find(l->server->kept, kind, id);
	if (t == NULL) {
		kept_missing(kind, id, text, sizeof(text));
		server_error(l, ASK_RESPONSES, 404, text);
	} else {
		way->answer(l, t, body);
	}
}

bool
stored_route(struct link *l, const char *path)
{
	bool all = strcmp(path, "/v1/conversations") == 0;
	struct evbuffer *body;
	size_t i, n = 0;

	for (i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		n = strlen(fronts[i].path);
		if (strncmp(path, fronts[i].path, n) == 0)
			break;
	}
	if (!all && i == sizeof(fronts) / sizeof(fronts[0]))
		return false;
	body = evbuffer_new();
	if (body == NULL)
		link_shut(l);
	else if (all)
		make_conversation(l, body);
	else
		answer(l, fronts[i].kind, path + n, body);
	if (body != NULL)
		evbuffer_free(body);
	return true;
}
