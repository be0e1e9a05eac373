/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * picker.c - see picker.h.
 *
 *   mode of the body    headers come     the body comes       the choice
 *   FULL_DUPLEX         nothing          it is held           headers, then
 *                                                             all of the body
 *   BUFFERED            go on            in one piece         with the body
 *   others, or no body  the choice       goes on
 *
 * The choice needs the whole prompt, and is written in headers: so FULL_DUPLEX
 * holds the headers back too. A body that is too long to be held is chosen for
 * by the part that came, and passes from then on.
 *
 * If all servers are full the call waits in line, as long as the data plane is
 * to send nothing before the answer: else it is refused at once.
 */
#include "picker.h"

#include <stdlib.h>
#include <string.h>

#include "ext_proc.h"
#include "ext_reply.h"
#include "url_path.h"

enum picker_state {
	HEADERS,  /* these are to come */
	BODY,     /* of the request */
	WAITING,  /* in line */
	ROUTED,
	ENDED     /* refused, or the response is over */
};

struct picker_call {
	struct picker *picker;
	struct h2_stream *stream;
	struct kvh_call *call;   /* NULL before headers */
	struct pick_waiter waiter;
	bool patient;            /* it may wait */
	bool finished;           /* the client's half ended while it waited */
	enum picker_state state;
	bool modes;              /* the data plane has named its modes */
	uint32_t request_mode, response_mode;
	struct hold body;        /* of the request, until the choice */
	bool body_end;
	bool trailers;           /* of the request came before the choice */
	enum ext_kind answers;   /* the part that the choice is an answer to */
	bool responded;          /* headers of the response have come */
	bool unseen;             /* its body will not */
	bool rewrites;           /* its body is replaced */
};

static bool
is_duplex(const struct picker_call *c)
{
	return c->modes && c->request_mode == EXT_FULL_DUPLEX;
}

static bool
is_buffered(const struct picker_call *c)
{
	return !c->modes || c->request_mode == EXT_BUFFERED ||
	    c->request_mode == EXT_BUFFERED_PARTIAL;
}

/* Responses come without their bodies, or not at all. */
static bool
hides_bodies(const struct picker_call *c)
{
	return c->modes && c->response_mode == EXT_NONE;
}

static bool
hold_body(struct picker_call *c, const struct proto_in *bytes)
{
	const size_t n = proto_length(bytes);

	if (!hold_append(&c->body, bytes->at, n))
		return false;
	c->picker->held += n;
	return true;
}

static void
drop_body(struct picker_call *c)
{
	c->picker->held -= c->body.length;
	hold_free(&c->body);
}

/* Ends a stream that is of no use, and its wait. */
static void
break_call(struct picker_call *c, enum grpc_status status, const char *text)
{
	if (c->state == WAITING) {
		c->state = ENDED;
		pick_leave(c->picker->pool, &c->waiter);
		pick_end(c->picker->pool, c->call, KVH_GIVEN_UP, NULL, 0,
		    NULL);
	}
	h2_finish(c->stream, status, text);
}

static void
refuse_message(struct picker_call *c, const char *text)
{
	c->picker->malformed++;
	break_call(c, GRPC_INVALID_ARGUMENT, text);
}

/* Sends the output, or ends a stream that has lost a part of it. */
static void
send_reply(struct picker_call *c, bool whole)
{
	if (whole)
		h2_written(c->stream);
	else
		break_call(c, GRPC_RESOURCE_EXHAUSTED, "no memory");
}

static void
answer_plain(struct picker_call *c, enum ext_kind kind)
{
	send_reply(c, ext_reply_plain(h2_output(c->stream), kind));
}

/* -------------------------------------------------------------- choice --- */

static void
refuse_call(struct picker_call *c, int error)
{
	const struct pick_refusal why = pick_refuse(c->picker->pool,
	    c->call, error);
	const struct ext_refusal refusal = { .status = why.status,
		.retry_seconds = why.retry_seconds, .body = why.body,
		.details = why.status == 429 ? "kvroute_full" :
		    "kvroute_no_server" };

	c->state = ENDED;
	if (c->call != NULL)
		pick_end(c->picker->pool, c->call, KVH_GIVEN_UP, NULL, 0,
		    NULL);
	send_reply(c, ext_reply_refuse(h2_output(c->stream), &refusal));
}

/* An edit of a header: "name: value", or "name:" for one to be removed. */
static void
edit_header(struct ext_reply *r, const char *text, size_t n)
{
	const char *colon = memchr(text, ':', n);
	size_t name;

	if (colon == NULL)
		return;
	name = (size_t)(colon - text);
	n -= name + 1;
	colon++;
	if (n > 0 && *colon == ' ') {
		colon++;
		n--;
	}
	if (n > 0)
		ext_reply_set(r, text, name, colon, n);
	else
		ext_reply_remove(r, text, name);
}

/*
 * Writes headers that are edited, and makes the edited body in `scratch`.
 * false: the body is as it came.
 */
static bool
apply_edits(struct picker_call *c, struct ext_reply *r)
{
	struct proto_out to = { &c->picker->scratch, false };
	const char *text;
	size_t at = 0, n;
	int64_t offset;
	uint64_t cut;
	uint32_t i;

	to.to->length = 0;
	for (i = 0; kvh_edit(c->call, i, &offset, &cut, &text, &n) == 0;
	    i++) {
		if (offset == KVH_HEADER) {
			edit_header(r, text, n);
			continue;
		}
		/* It asks for the usage, which would not be seen, or cut. */
		if (hides_bodies(c))
			continue;
		if (offset < 0 || (uint64_t)offset < at ||
		    (uint64_t)offset > c->body.length ||
		    cut > c->body.length - (uint64_t)offset)
			return false;
		proto_put_raw(&to, c->body.data + at, (size_t)offset - at);
		proto_put_raw(&to, text, n);
		at = (size_t)offset + cut;
	}
	if (at == 0 && to.to->length == 0)
		return false;
	proto_put_raw(&to, c->body.data + at, c->body.length - at);
	return !to.failed;
}

static void
answer_choice(struct picker_call *c, uint32_t targets)
{
	struct hold *out = h2_output(c->stream);
	const struct hold *body = &c->body;
	char list[PICK_LIST_MAX];
	const size_t n = pick_list(c->call, targets, list);
	struct ext_reply r;
	bool whole, edited;

	c->state = ROUTED;
	ext_reply_open(&r, out, c->answers);
	edited = apply_edits(c, &r);
	ext_reply_set(&r, EXT_DESTINATION, sizeof(EXT_DESTINATION) - 1, list,
	    n);
	if (edited) {
		body = &c->picker->scratch;
		ext_reply_remove(&r, "content-length", 14);
		if (c->answers == EXT_REQUEST_BODY)
			ext_reply_body(&r, body->data, body->length);
	}
	ext_reply_targets(&r, list, n);
	whole = ext_reply_close(&r);
	if (is_duplex(c) && c->answers == EXT_REQUEST_HEADERS)
		whole = whole && ext_reply_pieces(out, EXT_REQUEST_BODY,
		    body->data, body->length, c->body_end);
	if (c->trailers)
		whole = whole && ext_reply_plain(out, EXT_REQUEST_TRAILERS);
	drop_body(c);
	send_reply(c, whole);
}

static void
try_servers(struct picker_call *c)
{
	uint32_t targets;
	const int error = pick_choose(c->picker->pool, c->call, &targets);

	if (error == 0)
		answer_choice(c, targets);
	else if (c->patient && pick_wait(c->picker->pool, &c->waiter, error))
		c->state = WAITING;
	else
		refuse_call(c, error);
}

static void
choose_server(struct picker_call *c, enum ext_kind answers, bool whole)
{
	const int error = kvh_body_end(c->call, whole);

	c->answers = answers;
	c->waiter.call = c->call;
	c->patient = whole || is_buffered(c) || c->request_mode == EXT_NONE;
	if (error != 0)
		refuse_call(c, error);
	else
		try_servers(c);
}

/* ------------------------------------------------------------- request --- */

static bool
begin_call(struct picker_call *c, struct ext_headers headers)
{
	struct proto_in method, path;
	struct ext_header h;
	char text[URL_PATH_MAX];

	proto_read(&method, "POST", 4);
	proto_read(&path, "/", 1);
	while (ext_headers_next(&headers, &h)) {
		if (proto_is(&h.name, ":method"))
			method = h.value;
		if (proto_is(&h.name, ":path"))
			path = h.value;
	}
	return kvh_begin(c->picker->pool->kvh, (const char *)method.at,
	    proto_length(&method), text, url_path((const char *)path.at,
	    proto_length(&path), text), KVH_NOW, &c->call) == 0;
}

static void
give_headers(struct picker_call *c, struct ext_headers headers)
{
	struct ext_header h;
	const char *name;

	while (ext_headers_next(&headers, &h)) {
		name = (const char *)h.name.at;
		if (proto_is(&h.name, ":authority"))
			(void)kvh_header(c->call, "host", 4,
			    (const char *)h.value.at, proto_length(&h.value));
		else if (proto_length(&h.name) > 0 && name[0] != ':')
			(void)kvh_header(c->call, name,
			    proto_length(&h.name), (const char *)h.value.at,
			    proto_length(&h.value));
	}
}

/* An empty list has no texts, and allows no server. */
static void
give_subset(struct picker_call *c, const struct ext_request *request)
{
	struct proto_in subset;

	if (!ext_metadata(request->metadata, EXT_SUBSET_SPACE, EXT_SUBSET,
	    &subset))
		return;
	pick_allow(c->call, "", 0);
	ext_value_texts(subset, pick_allow, c->call);
}

static void
take_headers(struct picker_call *c, const struct ext_request *request)
{
	struct ext_headers headers;

	if (c->state != HEADERS ||
	    !ext_headers_read(request->part, &headers)) {
		refuse_message(c, "unexpected headers");
		return;
	}
	if (!begin_call(c, headers)) {
		refuse_call(c, KVH_ENOSERVER);
		return;
	}
	give_headers(c, headers);
	give_subset(c, request);
	c->state = BODY;
	if (headers.end)
		choose_server(c, EXT_REQUEST_HEADERS, true);
	else if (is_buffered(c))
		answer_plain(c, EXT_REQUEST_HEADERS);
	else if (!is_duplex(c))
		choose_server(c, EXT_REQUEST_HEADERS, false);
}

/* A part of the body behind the choice. */
static void
pass_body(struct picker_call *c, const struct ext_body *body)
{
	if (is_duplex(c)) {
		send_reply(c, ext_reply_pieces(h2_output(c->stream),
		    EXT_REQUEST_BODY, body->bytes.at,
		    proto_length(&body->bytes), body->end));
	} else {
		answer_plain(c, EXT_REQUEST_BODY);
	}
}

static void
take_body(struct picker_call *c, struct proto_in part)
{
	struct ext_body body;

	if (c->state == HEADERS || !ext_body_read(part, &body)) {
		refuse_message(c, "unexpected body");
		return;
	}
	if (c->state != BODY) {
		pass_body(c, &body);
		return;
	}
	(void)kvh_body(c->call, body.bytes.at,
	    proto_length(&body.bytes));
	if (!hold_body(c, &body.bytes)) {
		send_reply(c, false);
		return;
	}
	c->body_end |= body.end;
	if (is_buffered(c)) {
		choose_server(c, EXT_REQUEST_BODY, body.end ||
		    c->request_mode != EXT_BUFFERED_PARTIAL);
	} else if (body.end) {
		choose_server(c, EXT_REQUEST_HEADERS, true);
	} else if (c->body.length > c->picker->body_most ||
	    c->picker->held > c->picker->held_most) {
		c->picker->cut++;
		choose_server(c, EXT_REQUEST_HEADERS, false);
	}
}

/* These end a body that has no end of its own. */
static void
take_trailers(struct picker_call *c)
{
	if (c->state == BODY && is_duplex(c)) {
		c->trailers = true;
		choose_server(c, EXT_REQUEST_HEADERS, true);
	} else {
		answer_plain(c, EXT_REQUEST_TRAILERS);
	}
}

/* ------------------------------------------------------------ response --- */

/* Ends the call; bytes that were held back are in `scratch` behind the rest. */
static void
end_call(struct picker_call *c, uint32_t how)
{
	struct hold *s = &c->picker->scratch;
	size_t n = 0;

	c->state = ENDED;
	if (c->rewrites && hold_reserve(s, KVH_WRITE_MORE)) {
		pick_end(c->picker->pool, c->call, how,
		    (char *)s->data + s->length, s->capacity - s->length, &n);
		s->length += n;
	} else {
		pick_end(c->picker->pool, c->call, how, NULL, 0, NULL);
	}
}

struct head {
	uint32_t status;
	struct proto_in type, coding, served;
};

static void
read_head(struct ext_headers headers, struct head *head)
{
	struct ext_header h;
	const unsigned char *at;

	head->status = 0;
	proto_read(&head->type, NULL, 0);
	proto_read(&head->coding, NULL, 0);
	while (ext_headers_next(&headers, &h)) {
		if (proto_is(&h.name, "content-type"))
			head->type = h.value;
		if (proto_is(&h.name, "content-encoding"))
			head->coding = h.value;
		if (!proto_is(&h.name, ":status"))
			continue;
		for (at = h.value.at; at < h.value.end && *at >= '0' &&
		    *at <= '9' && head->status < 1000; at++)
			head->status = head->status * 10 + *at - '0';
	}
}

static void
give_response(struct picker_call *c, const struct head *head)
{
	uint32_t rewrites = 0;

	if (kvh_response(c->call, head->status,
	    (const char *)head->type.at, proto_length(&head->type),
	    (const char *)head->coding.at, proto_length(&head->coding),
	    (const char *)head->served.at, proto_length(&head->served),
	    KVH_NOW, &rewrites) == 0)
		c->rewrites = rewrites != 0;
}

/* A response without its body is no evidence, unless it is an error. */
static void
note_response(struct picker_call *c, const struct ext_request *request,
    struct ext_headers headers)
{
	struct proto_in served;
	struct head head;

	read_head(headers, &head);
	c->unseen = hides_bodies(c) && !headers.end && head.status < 400;
	if (c->unseen)
		return;
	proto_read(&head.served, NULL, 0);
	if (ext_metadata(request->metadata, EXT_SPACE, EXT_SERVED, &served))
		head.served = ext_value_text(served);
	give_response(c, &head);
	c->picker->scratch.length = 0;
	if (headers.end || hides_bodies(c))
		end_call(c, KVH_WHOLE);
}

static void
take_response_headers(struct picker_call *c, const struct ext_request *request)
{
	struct ext_headers headers;
	struct ext_reply r;

	if (!ext_headers_read(request->part, &headers)) {
		refuse_message(c, "bad headers");
		return;
	}
	c->responded = true;
	if (c->state == ROUTED)
		note_response(c, request, headers);
	if (!c->rewrites || headers.end) {
		answer_plain(c, EXT_RESPONSE_HEADERS);
		return;
	}
	ext_reply_open(&r, h2_output(c->stream), EXT_RESPONSE_HEADERS);
	ext_reply_remove(&r, "content-length", 14);
	send_reply(c, ext_reply_close(&r));
}

/* Gives a piece to the library. false: no memory. */
static bool
give_data(struct picker_call *c, const struct proto_in *bytes)
{
	struct hold *s = &c->picker->scratch;
	const size_t n = proto_length(bytes);
	size_t written = 0;

	s->length = 0;
	if (!c->rewrites) {
		if (n > 0)
			(void)kvh_response_data(c->call, bytes->at, n,
			    KVH_NOW, NULL, 0, NULL);
		return true;
	}
	if (!hold_reserve(s, n + KVH_WRITE_MORE))
		return false;
	(void)kvh_response_data(c->call, bytes->at, n, KVH_NOW,
	    (char *)s->data, s->capacity, &written);
	s->length = written;
	return true;
}

static void
answer_data(struct picker_call *c, const void *bytes, size_t n, bool end,
    bool rewritten)
{
	struct hold *out = h2_output(c->stream);
	struct ext_reply r;

	if (c->modes && c->response_mode == EXT_FULL_DUPLEX) {
		send_reply(c, ext_reply_pieces(out, EXT_RESPONSE_BODY, bytes,
		    n, end));
	} else if (!rewritten) {
		answer_plain(c, EXT_RESPONSE_BODY);
	} else {
		ext_reply_open(&r, out, EXT_RESPONSE_BODY);
		ext_reply_body(&r, bytes, n);
		send_reply(c, ext_reply_close(&r));
	}
}

static void
take_response_body(struct picker_call *c, struct proto_in part)
{
	const struct hold *s = &c->picker->scratch;
	struct ext_body body;
	bool rewritten = false;

	if (!ext_body_read(part, &body)) {
		refuse_message(c, "bad body");
		return;
	}
	if (c->state == ROUTED && c->responded && !c->unseen) {
		rewritten = c->rewrites;
		if (!give_data(c, &body.bytes)) {
			send_reply(c, false);
			return;
		}
		if (body.end)
			end_call(c, KVH_WHOLE);
	}
	if (rewritten)
		answer_data(c, s->data, s->length, body.end, true);
	else
		answer_data(c, body.bytes.at, proto_length(&body.bytes),
		    body.end, false);
}

static void
take_response_trailers(struct picker_call *c)
{
	struct hold *s = &c->picker->scratch;

	if (c->state == ROUTED && c->responded && !c->unseen) {
		s->length = 0;
		end_call(c, KVH_WHOLE);
		if (c->rewrites && s->length > 0)
			answer_data(c, s->data, s->length, false, true);
	}
	answer_plain(c, EXT_RESPONSE_TRAILERS);
}

/* ------------------------------------------------------------- service --- */

static void take_turn(void *call);

static void *
open_call(struct h2_stream *stream, void *picker)
{
	struct picker_call *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->picker = picker;
	c->stream = stream;
	c->waiter.turn = take_turn;
	c->waiter.owner = c;
	return c;
}

static void
take_message(void *call, struct proto_in message)
{
	struct picker_call *c = call;
	struct ext_request request;

	if (!ext_request_read(message, &request)) {
		refuse_message(c, "the message is malformed");
		return;
	}
	if (request.modes) {
		c->modes = true;
		c->request_mode = request.request_mode;
		c->response_mode = request.response_mode;
	}
	if (c->state == WAITING && request.kind != EXT_NOTHING) {
		refuse_message(c, "the headers are to be answered first");
		return;
	}
	switch (request.kind) {
	case EXT_REQUEST_HEADERS: take_headers(c, &request); break;
	case EXT_REQUEST_BODY: take_body(c, request.part); break;
	case EXT_REQUEST_TRAILERS: take_trailers(c); break;
	case EXT_RESPONSE_HEADERS: take_response_headers(c, &request); break;
	case EXT_RESPONSE_BODY: take_response_body(c, request.part); break;
	case EXT_RESPONSE_TRAILERS: take_response_trailers(c); break;
	case EXT_NOTHING: break;
	}
}

/* Does the data plane show responses? One that names no mode may not. */
static bool
shows_responses(const struct picker_call *c)
{
	return c->modes && c->response_mode != EXT_NONE;
}

/*
 * A data plane that shows no bodies of responses is done with their heads. One
 * that shows requests only ends its half in order without a
 * response. Any other one ends early for a client or a server, and does not
 * report which.
 */
static void
end_early(struct picker_call *c, bool in_order)
{
	if (c->call == NULL || c->state == ENDED)
		return;
	if (c->state != ROUTED)
		end_call(c, KVH_GIVEN_UP);
	else if (c->unseen ||
	    (in_order && !c->responded && !shows_responses(c)))
		end_call(c, KVH_NOT_SEEN);
	else
		end_call(c, KVH_CLIENT_LEFT);
}

static void
finish_call(void *call)
{
	struct picker_call *c = call;

	c->finished = c->state == WAITING;
	if (c->finished)
		return;
	end_early(c, true);
	h2_finish(c->stream, GRPC_OK, NULL);
}

static void
take_turn(void *call)
{
	struct picker_call *c = call;

	try_servers(c);
	if (c->finished)
		finish_call(c);
}

static void
close_call(void *call)
{
	struct picker_call *c = call;

	pick_leave(c->picker->pool, &c->waiter);
	end_early(c, false);
	kvh_call_free(c->call);
	drop_body(c);
	free(c);
}

struct h2_service
picker_service(struct picker *p)
{
	return (struct h2_service){
		.path = "/envoy.service.ext_proc.v3.ExternalProcessor/Process",
		.open = open_call, .message = take_message,
		.finished = finish_call, .closed = close_call, .context = p
	};
}

void
picker_free(struct picker *p)
{
	hold_free(&p->scratch);
}
