/* SPDX-License-Identifier: BSD-2-Clause */
/* probe.c - see probe.h. */
#include "probe.h"

#include <stdlib.h>

const struct probe_path probe_paths[PROBE_PATHS] = {
	{ "/metrics", CAPACITY_METRICS },
	{ "/server_info", CAPACITY_JSON },
	{ "/get_server_info", CAPACITY_JSON },
	{ "/props", CAPACITY_JSON }
};

struct probe {
	size_t path;            /* its index in probe_paths */
	uint32_t rank;
	unsigned status;
	bool doubtful;          /* some path has not denied a capacity */
	uint64_t bytes;         /* read of this response's body */
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

const char *
probe_begin(struct probe *p)
{
	const struct probe_path *path = &probe_paths[p->path];

	p->bytes = 0;
	p->status = 0;
	capacity_begin(p->reader, path->form, p->rank);
	return path->path;
}

/* Leaves a response; `whole`: it came to its end. */
static enum probe_state
response_leave(struct probe *p, bool whole)
{
	struct capacity c;
	bool known = true;

	if (whole)
		capacity_end(p->reader, &c);
	else
		known = capacity_so_far(p->reader, &c);
	if (p->status == 200 && known)
		capacity_add(&p->found, &c);
	if (p->status != 404 && !(p->status == 200 && whole))
		p->doubtful = true;
	if (p->found.tokens != 0 || p->path + 1 == PROBE_CAPACITY_PATHS)
		return PROBE_DONE;
	p->path++;
	return PROBE_NEXT;
}

/* Reads a part of the body; true: no more of it is needed. */
static bool
is_enough(struct probe *p, const void *bytes, size_t n)
{
	struct capacity c;

	capacity_data(p->reader, bytes, n);
	p->bytes += n;
	return capacity_so_far(p->reader, &c) || p->bytes > PROBE_BYTES_MAX;
}

enum probe_state
probe_body(struct probe *p, unsigned status, const void *bytes, size_t n)
{
	p->status = status;
	return status != 200 || is_enough(p, bytes, n) ?
	    response_leave(p, false) : PROBE_MORE;
}

enum probe_state
probe_end(struct probe *p, unsigned status, bool whole)
{
	p->status = status;
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
