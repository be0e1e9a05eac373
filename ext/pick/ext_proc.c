/* SPDX-License-Identifier: BSD-2-Clause */
/* ext_proc.c - see ext_proc.h. */
#include "ext_proc.h"

#include <string.h>

/* Fields of messages of ext_proc, of Envoy's core and of protobuf's Struct. */
enum {
	METADATA_CONTEXT = 8, PROTOCOL_CONFIG = 11,
	CONFIG_REQUEST_BODY = 1, CONFIG_RESPONSE_BODY = 2,
	HEADERS_MAP = 1, HEADERS_END = 3,
	MAP_HEADERS = 1,
	HEADER_KEY = 1, HEADER_VALUE = 2, HEADER_RAW_VALUE = 3,
	BODY_BYTES = 1, BODY_END = 2, BODY_END_ALONE = 3,
	FILTER_METADATA = 1, STRUCT_FIELDS = 1,
	ENTRY_KEY = 1, ENTRY_VALUE = 2,
	VALUE_TEXT = 3, VALUE_LIST = 6, LIST_VALUES = 1
};

static bool
read_modes(struct proto_in config, struct ext_request *request)
{
	struct proto_field f;

	request->modes = true;
	while (proto_next(&config, &f)) {
		if (f.number == CONFIG_REQUEST_BODY)
			request->request_mode = (uint32_t)f.value;
		if (f.number == CONFIG_RESPONSE_BODY)
			request->response_mode = (uint32_t)f.value;
	}
	return !config.bad;
}

bool
ext_request_read(struct proto_in message, struct ext_request *request)
{
	struct proto_field f;

	memset(request, 0, sizeof(*request));
	while (proto_next(&message, &f)) {
		if (f.in.at == NULL)
			continue;
		if (f.number >= EXT_REQUEST_HEADERS &&
		    f.number <= EXT_RESPONSE_TRAILERS) {
			request->kind = (enum ext_kind)f.number;
			request->part = f.in;
		} else if (f.number == METADATA_CONTEXT) {
			request->metadata = f.in;
		} else if (f.number == PROTOCOL_CONFIG &&
		    !read_modes(f.in, request)) {
			return false;
		}
	}
	return !message.bad;
}

/* ------------------------------------------------------------- headers --- */

bool
ext_headers_read(struct proto_in part, struct ext_headers *headers)
{
	struct proto_field f;

	memset(headers, 0, sizeof(*headers));
	proto_read(&headers->map, NULL, 0);
	while (proto_next(&part, &f)) {
		if (f.number == HEADERS_MAP && f.in.at != NULL)
			headers->map = f.in;
		if (f.number == HEADERS_END)
			headers->end = f.value != 0;
	}
	return !part.bad;
}

static bool
read_header(struct proto_in in, struct ext_header *header)
{
	struct proto_field f;

	proto_read(&header->name, NULL, 0);
	proto_read(&header->value, NULL, 0);
	while (proto_next(&in, &f)) {
		if (f.in.at == NULL)
			continue;
		if (f.number == HEADER_KEY)
			header->name = f.in;
		else if ((f.number == HEADER_VALUE ||
		    f.number == HEADER_RAW_VALUE) && proto_length(&f.in) > 0)
			header->value = f.in;
	}
	return !in.bad;
}

bool
ext_headers_next(struct ext_headers *headers, struct ext_header *header)
{
	struct proto_field f;

	while (proto_next(&headers->map, &f))
		if (f.number == MAP_HEADERS && f.in.at != NULL)
			return read_header(f.in, header);
	return false;
}

bool
ext_body_read(struct proto_in part, struct ext_body *body)
{
	struct proto_field f;

	body->end = false;
	proto_read(&body->bytes, NULL, 0);
	while (proto_next(&part, &f)) {
		if (f.number == BODY_BYTES && f.in.at != NULL)
			body->bytes = f.in;
		if (f.number == BODY_END || f.number == BODY_END_ALONE)
			body->end |= f.value != 0;
	}
	return !part.bad;
}

/* ------------------------------------------------------------ metadata --- */

/* The value at a key of a map that has its entries in that field. */
static bool
find_entry(struct proto_in map, uint32_t field, const char *key,
    struct proto_in *value)
{
	struct proto_in name, found;
	struct proto_field entry, f;

	while (proto_next(&map, &entry)) {
		if (entry.number != field || entry.in.at == NULL)
			continue;
		proto_read(&name, NULL, 0);
		proto_read(&found, NULL, 0);
		while (proto_next(&entry.in, &f)) {
			if (f.in.at != NULL && f.number == ENTRY_KEY)
				name = f.in;
			if (f.in.at != NULL && f.number == ENTRY_VALUE)
				found = f.in;
		}
		if (!entry.in.bad && proto_is(&name, key)) {
			*value = found;
			return true;
		}
	}
	return false;
}

bool
ext_metadata(struct proto_in metadata, const char *space, const char *key,
    struct proto_in *value)
{
	struct proto_in fields;

	return metadata.at != NULL &&
	    find_entry(metadata, FILTER_METADATA, space, &fields) &&
	    find_entry(fields, STRUCT_FIELDS, key, value);
}

struct proto_in
ext_value_text(struct proto_in value)
{
	struct proto_in text = { NULL, NULL, false };
	struct proto_field f;

	while (proto_next(&value, &f))
		if (f.number == VALUE_TEXT && f.in.at != NULL)
			text = f.in;
	return text;
}

static void
list_texts(struct proto_in list,
    void (*take)(void *context, const char *text, size_t n), void *context)
{
	struct proto_field f;
	struct proto_in text;

	while (proto_next(&list, &f)) {
		if (f.number != LIST_VALUES || f.in.at == NULL)
			continue;
		text = ext_value_text(f.in);
		if (text.at != NULL)
			take(context, (const char *)text.at,
			    proto_length(&text));
	}
}

void
ext_value_texts(struct proto_in value,
    void (*take)(void *context, const char *text, size_t n), void *context)
{
	struct proto_field f;

	while (proto_next(&value, &f)) {
		if (f.number == VALUE_TEXT && f.in.at != NULL)
			take(context, (const char *)f.in.at,
			    proto_length(&f.in));
		if (f.number == VALUE_LIST && f.in.at != NULL)
			list_texts(f.in, take, context);
	}
}
