/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errand.h - a request that a proxy makes to an engine by itself, beside those
 * of clients.
 *
 *   loads_next, capacities_next --> errand --> proxy: GET of errand->path
 *                                     ^          |   within deadline_ms
 *            ERRAND_AGAIN: another ---+          |
 *            path, a new response     +-- errand_data, errand_end, or
 *                                         errand_failed: there is none
 *
 * Sockets and timers are the proxy's: its own state of an errand is in
 * `client`. An errand is made by one server of a list, and goes on with that.
 */
#ifndef KVROUTE_ERRAND_H
#define KVROUTE_ERRAND_H

#include "known.h"

enum errand_state {
	ERRAND_MORE,    /* of the response is wanted */
	ERRAND_AGAIN,   /* the same server, another path */
	ERRAND_OVER     /* no more is wanted: close the connection */
};

struct errand;

/* `status`: of the response; n bytes of its body, at least one. */
struct errand_calls {
	enum errand_state (*data)(struct errand *e, unsigned status,
	    const void *bytes, size_t n, int64_t now, void *log);
	enum errand_state (*end)(struct errand *e, unsigned status, bool whole,
	    int64_t now, void *log);
	void (*failed)(struct errand *e, const char *why, int64_t now,
	    void *log);
	void (*leave)(struct errand *e);
};

struct errand {
	const struct errand_calls *calls;
	struct fleet *fleet;
	char name[KVR_NAME_MAX]; /* of the server */
	size_t name_len;
	const char *path;
	uint64_t deadline_ms;   /* for one path */
	void *client;           /* of the proxy; NULL at first */
	bool open;              /* it is being made */
};

void errand_begin(struct errand *e, const struct errand_calls *calls,
    struct fleet *f, const struct known *known);
enum errand_state errand_data(struct errand *e, unsigned status,
    const void *bytes, size_t n, int64_t now, void *log);
/* Whole: the body has come to its end. Status 0: it is no response. */
enum errand_state errand_end(struct errand *e, unsigned status, bool whole,
    int64_t now, void *log);
/* There is no response; the errand is over. */
void errand_failed(struct errand *e, const char *why, int64_t now,
    void *log);
/* It is given up; again is no error. */
void errand_leave(struct errand *e);

#endif
