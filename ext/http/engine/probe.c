/* SPDX-License-Identifier: BSD-2-Clause */
/* probe.c - see probe.h. */
#include "probe.h"

#include "response.h"

#include <stdlib.h>
#include <string.h>

const struct probe_path probe_paths[PROBE_PATHS] = {
	{ "/metrics", CAPACITY_METRICS },
	{ "/server_info", CAPACITY_JSON },
	{ "/get_server_info", CAPACITY_JSON },
	{ "/props", CAPACITY_JSON }
};

struct probe {
	size_t path;            /* of probe_paths */
	uint32_t rank;
	unsigned status;
	bool doubtful;          /* some path has not said that there is none */
	uint64_t bytes;         /* of this response */
	struct response response;
	struct capacity found;
	struct capacity_reader *reader;
};

struct probe *
probe_new(uint32_t rank)
{
	struct probe *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->rank = rank;
	p->reader = capacity_new();
	if (p->reader == NULL) {
		free(p);
		return NULL;
	}
	return p;
}

void
probe_free(struct probe *p)
{
	if (p != NULL)
		capacity_free(p->reader);
	free(p);
}

size_t
probe_request(struct probe *p, const char *host, size_t n,
    char out[PROBE_REQUEST_MAX])
{
	const struct probe_path *path = &probe_paths[p->path];

	memset(&p->response, 0, sizeof(p->response));
	p->bytes = 0;
	p->status = 0;
	capacity_begin(p->reader, path->form, p->rank);
	return response_request(path->path, host, n, out, PROBE_REQUEST_MAX);
}

/* This response will say no more; `whole`: it came to its end. */
static enum probe_state
response_leave(struct probe *p, bool whole)
{
	struct capacity c;

	if (whole)
		capacity_end(p->reader, &c);
	else
		capacity_so_far(p->reader, &c);
	if (p->status == 200)
		capacity_add(&p->found, &c);
	if (p->status != 404 && !(p->status == 200 && whole))
		p->doubtful = true;
	if (p->found.tokens != 0 || p->path + 1 == PROBE_CAPACITY_PATHS)
		return PROBE_DONE;
	p->path++;
	return PROBE_NEXT;
}

/* A part of the body; is it enough? */
static bool
is_enough(struct probe *p, const struct response_part *part)
{
	struct capacity c;

	capacity_data(p->reader, part->bytes, part->n);
	p->bytes += part->n;
	capacity_so_far(p->reader, &c);
	return c.tokens != 0 || p->bytes > PROBE_BYTES_MAX;
}

enum probe_state
probe_data(struct probe *p, const void *bytes, size_t n)
{
	const char *at = bytes, *const end = at + n;
	struct response_part part;

	for (;;) {
		switch (response_next(&p->response, &at, end, &part)) {
		case RESPONSE_MORE:
			p->status = p->response.status;
			return PROBE_MORE;
		case RESPONSE_BODY:
			p->status = p->response.status;
			if (p->status != 200 || is_enough(p, &part))
				return response_leave(p, false);
			break;
		case RESPONSE_END:
			p->status = p->response.status;
			return response_leave(p, true);
		default:
			p->status = 0;
			return response_leave(p, false);
		}
	}
}

enum probe_state
probe_close(struct probe *p)
{
	const bool whole = response_close(&p->response);

	if (p->response.place != RESPONSE_BROKEN)
		p->status = p->response.status;
	return response_leave(p, whole);
}

const struct capacity *
probe_found(const struct probe *p)
{
	return &p->found;
}

bool
probe_denied(const struct probe *p)
{
	return p->found.tokens == 0 && !p->doubtful;
}

unsigned
probe_status(const struct probe *p)
{
	return p->status;
}

const char *
probe_place(const struct probe *p)
{
	return probe_paths[p->path].path;
}
