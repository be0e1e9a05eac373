/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * response.h - splits an HTTP response into its status and its body.
 *
 *   HTTP/1.1 200 OK             status
 *   Transfer-Encoding: chunked
 *
 *   5                           RESPONSE_BODY, in pieces
 *   {"a":
 *   0                           RESPONSE_END
 *
 * A proxy that asks an engine itself reads one response per connection. The
 * body ends after its length or its last chunk, else with the connection. The
 * head is limited; nothing but its current line is kept.
 */
#ifndef KVROUTE_RESPONSE_H
#define KVROUTE_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RESPONSE_HEAD_MAX = 64 * 1024, RESPONSE_LINE_MAX = 128 };

enum response_place {
	RESPONSE_STATUS_LINE = 0, RESPONSE_FIELDS, RESPONSE_TO_CLOSE,
	RESPONSE_TO_LENGTH, RESPONSE_CHUNK_SIZE, RESPONSE_CHUNK,
	RESPONSE_CHUNK_END, RESPONSE_OVER, RESPONSE_BROKEN
};

/*
 * Writes a request for a path at a host, a name of n bytes, and returns its
 * length; 0: the host is too long or not printable.
 */
size_t response_request(const char *path, const char *host, size_t n,
    char *out, size_t room);

/* All 0: nothing has been read. */
struct response {
	enum response_place place;
	unsigned status;        /* 0: not known yet */
	size_t head;            /* bytes of the head so far */
	uint64_t left;          /* bytes left of the body, or of the chunk */
	bool has_length, chunked;
	char line[RESPONSE_LINE_MAX]; /* the beginning of the current one */
	size_t n_line;
};

enum response_what {
	RESPONSE_MORE,  /* the piece has been read */
	RESPONSE_BODY,  /* n bytes of the body, at least one */
	RESPONSE_END,   /* the body is whole */
	RESPONSE_BAD    /* it is not a response */
};

struct response_part {
	const char *bytes;
	size_t n;
};

/* Finds the next part of *at..end and moves *at behind it. */
enum response_what response_next(struct response *r, const char **at,
    const char *end, struct response_part *part);
/* The connection has ended: is the response whole? */
bool response_close(struct response *r);

#endif
