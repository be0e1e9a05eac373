/* SPDX-License-Identifier: BSD-2-Clause */
/* response.c - see response.h. */
#include "response.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

size_t
response_request(const char *path, const char *host, size_t n, char *out,
    size_t room)
{
	size_t i;
	int length;

	for (i = 0; i < n; i++)
		if (host[i] <= ' ' || host[i] > '~')
			return 0;
	if (n > room)
		return 0;
	length = snprintf(out, room, "GET %s HTTP/1.1\r\n"
	    "Host: %.*s\r\nUser-Agent: kvroute\r\nAccept: */*\r\n"
	    "Connection: close\r\n\r\n", path, (int)n, host);
	return length > 0 && (size_t)length < room ? (size_t)length : 0;
}

/* ---------------------------------------------------------------- head --- */

/* Reads HTTP/1.x NNN ...; false: it is not a status line. */
static bool
status_take(struct response *r)
{
	const char *s = r->line;
	size_t i;

	if (r->n_line < 12 || memcmp(s, "HTTP/1.", 7) != 0 || s[8] != ' ' ||
	    (r->n_line > 12 && s[12] != ' '))
		return false;
	r->status = 0;
	for (i = 9; i < 12; i++) {
		if (s[i] < '0' || s[i] > '9')
			return false;
		r->status = r->status * 10 + (unsigned)(s[i] - '0');
	}
	return r->status >= 100;
}

/* Returns the value of the line, if its field has this name; else NULL. */
static const char *
field_value(const struct response *r, const char *name, size_t *n)
{
	const size_t length = strlen(name);
	const char *value = r->line + length + 1, *end = r->line + r->n_line;

	if (r->n_line <= length || r->line[length] != ':' ||
	    strncasecmp(r->line, name, length) != 0)
		return NULL;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*n = (size_t)(end - value);
	return value;
}

static bool
length_take(struct response *r, const char *digits, size_t n)
{
	const uint64_t most = UINT64_C(1) << 50;
	size_t i;

	r->left = 0;
	for (i = 0; i < n; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		r->left = r->left * 10 + (uint64_t)(digits[i] - '0');
		if (r->left > most)
			return false;
	}
	r->has_length = n > 0;
	return n > 0;
}

/* Reads a field of the head; false: its value is not understood. */
static bool
field_take(struct response *r)
{
	const char *value;
	size_t n;

	value = field_value(r, "Content-Length", &n);
	if (value != NULL)
		return length_take(r, value, n);
	value = field_value(r, "Transfer-Encoding", &n);
	if (value == NULL)
		return true;
	r->chunked = n == 7 && strncasecmp(value, "chunked", 7) == 0;
	return r->chunked;
}

/* Returns the place behind the empty line of the head. */
static enum response_place
body_begin(struct response *r)
{
	if (r->status < 200) {
		r->has_length = r->chunked = false;
		return RESPONSE_STATUS_LINE;
	}
	if (r->status == 204 || r->status == 304)
		return RESPONSE_OVER;
	if (r->chunked)
		return RESPONSE_CHUNK_SIZE;
	if (!r->has_length)
		return RESPONSE_TO_CLOSE;
	return r->left > 0 ? RESPONSE_TO_LENGTH : RESPONSE_OVER;
}

static bool
chunk_take(struct response *r)
{
	static const char digits[] = "0123456789abcdef";
	const char *digit;
	size_t i;

	r->left = 0;
	for (i = 0; i < r->n_line; i++) {
		const char c = r->line[i];

		digit = memchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' :
		    c, 16);
		if (digit == NULL)
			break;
		if (r->left >> 44 != 0)
			return false;
		r->left = r->left * 16 + (uint64_t)(digit - digits);
	}
	if (i == 0 || (i < r->n_line && r->line[i] != ';' &&
	    r->line[i] != ' ' && r->line[i] != '\t'))
		return false;
	r->place = r->left > 0 ? RESPONSE_CHUNK : RESPONSE_OVER;
	return true;
}

/* Reads a whole line, without its end; false: it is not understood. */
static bool
line_take(struct response *r)
{
	switch (r->place) {
	case RESPONSE_STATUS_LINE:
		r->place = RESPONSE_FIELDS;
		return status_take(r);
	case RESPONSE_FIELDS:
		if (r->n_line > 0)
			return field_take(r);
		r->place = body_begin(r);
		return true;
	case RESPONSE_CHUNK_END:
		r->place = RESPONSE_CHUNK_SIZE;
		return r->n_line == 0;
	default:
		return chunk_take(r);
	}
}

/* Reads one byte of a line; false: it is not a response. */
static bool
line_byte(struct response *r, char c)
{
	bool good;

	if (r->place <= RESPONSE_FIELDS && ++r->head > RESPONSE_HEAD_MAX)
		return false;
	if (c != '\n') {
		if (r->n_line < sizeof(r->line))
			r->line[r->n_line++] = c;
		/* A size with a long extension is not worth reading. */
		return r->place <= RESPONSE_FIELDS ||
		    r->n_line < sizeof(r->line);
	}
	if (r->n_line > 0 && r->line[r->n_line - 1] == '\r')
		r->n_line--;
	good = line_take(r);
	r->n_line = 0;
	return good;
}

/* ---------------------------------------------------------------- body --- */

static enum response_what
body_part(struct response *r, const char **at, const char *end,
    struct response_part *part)
{
	part->bytes = *at;
	part->n = (size_t)(end - *at);
	if (r->place != RESPONSE_TO_CLOSE) {
		if (part->n > r->left)
			part->n = (size_t)r->left;
		r->left -= part->n;
		if (r->left == 0)
			r->place = r->place == RESPONSE_CHUNK ?
			    RESPONSE_CHUNK_END : RESPONSE_OVER;
	}
	*at += part->n;
	return RESPONSE_BODY;
}

enum response_what
response_next(struct response *r, const char **at, const char *end,
    struct response_part *part)
{
	while (*at < end || r->place >= RESPONSE_OVER) {
		switch (r->place) {
		case RESPONSE_OVER:
			return RESPONSE_END;
		case RESPONSE_BROKEN:
			return RESPONSE_BAD;
		case RESPONSE_TO_CLOSE:
		case RESPONSE_TO_LENGTH:
		case RESPONSE_CHUNK:
			return body_part(r, at, end, part);
		default:
			if (!line_byte(r, *(*at)++))
				r->place = RESPONSE_BROKEN;
		}
	}
	return RESPONSE_MORE;
}

bool
response_close(struct response *r)
{
	if (r->place == RESPONSE_TO_CLOSE)
		r->place = RESPONSE_OVER;
	return r->place == RESPONSE_OVER;
}
