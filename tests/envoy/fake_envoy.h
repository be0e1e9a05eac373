/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fake_envoy.h - Envoy around a filter, without Envoy: its callbacks, and a
 * stream that calls the hooks in Envoy's order. Text that a callback gave is
 * freed when its source changes, as Envoy may do.
 */
#ifndef KVROUTE_TEST_ENVOY_H
#define KVROUTE_TEST_ENVOY_H

#include "envoy_abi.h"

enum { FAKE_HEADERS = 100, FAKE_BODIES = 4 };

/* Bytes, with a NUL behind them. */
struct fake_bytes {
	char *at;
	size_t n;
};

struct fake_list {
	char *name[FAKE_HEADERS], *value[FAKE_HEADERS];
	size_t n;
};

struct fake_envoy {
	const void *filter;
	struct fake_list request, response;
	struct fake_bytes body[FAKE_BODIES];  /* by enum envoy_body */
	struct fake_bytes sent, got;    /* bodies for the server, the client */
	size_t slice;          /* most bytes of a piece; 0: all */
	bool held_before;      /* the piece is what another filter held */
	uint64_t limit;        /* of the buffer */
	const char *client, *server, *details; /* attributes, or NULL */
	struct fake_bytes targets;      /* of the metadata */
	const char *const *subset;      /* its hint, which NULL ends, or NULL */
	bool listed;                    /* the hint is a list */
	uint32_t status;       /* that the filter has answered; 0: none */
	struct fake_list answer;
	struct fake_bytes answer_body;
	int went;              /* result of the last hook of the request */
};

/* Lines that modules have logged. */
extern char fake_log[8192];
/* Is this text in it? Other threads may write meanwhile. */
bool fake_logged(const char *text);

/* A filter of the configuration, and a request without headers. */
void fake_begin(struct fake_envoy *e, const void *config);
/* stream_complete, with these details, and destroy. */
void fake_end(struct fake_envoy *e, const char *details);

/* "name", "value", ..., NULL. */
void fake_set(struct fake_list *l, const char *const *pairs);
/* NULL: there is no such header. */
const char *fake_get(const struct fake_list *l, const char *name);

/*
 * Headers of a request; one that has no body ends with them. Each returns
 * false if the filter has stopped it.
 */
bool fake_ask_head(struct fake_envoy *e, const char *path, bool end);
bool fake_piece(struct fake_envoy *e, const char *bytes, size_t n, bool end);
bool fake_trailers(struct fake_envoy *e);
/* A whole request, with its length, in pieces; 0: one. */
bool fake_ask(struct fake_envoy *e, const char *path, const char *body,
    size_t piece);

void fake_head(struct fake_envoy *e, const char *status, const char *type,
    bool end);
void fake_data(struct fake_envoy *e, const char *bytes, size_t n, bool end);
/* A whole response; the client has it in `got`. */
void fake_answer(struct fake_envoy *e, const char *status, const char *type,
    const char *body, size_t piece);
/* Envoy answers itself. */
void fake_local(struct fake_envoy *e, uint32_t status, const char *details);

#endif
