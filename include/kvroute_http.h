/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kvroute_http.h - between HTTP and kvroute.h, for proxies of LLM requests: a
 * request goes in and a server comes out; the response goes in, and the pool
 * learns from the engine's report. libkvroute-http; kvroute-http(7) and
 * kvh_open(3).
 * Experimental: all of it may change in any release.
 *
 *	struct kvh       a pool of servers: of any thread
 *	struct kvh_call  one request: of one thread at a time
 *
 *	kvh_begin > kvh_header* > kvh_body* > kvh_body_end
 *	    > kvh_pick > (kvh_failed > kvh_pick)* > kvh_edit*
 *	    > kvh_response > kvh_response_data* > kvh_end > kvh_call_free
 *
 * kvh_end() and kvh_call_free() may come at any point: they finish or abort a
 * request that is open.
 *
 * No struct, callback, union, inline function or macro crosses this border: a
 * binding needs pointers, lengths, and integers of up to 64 bits.
 *
 *   errors    0, or a negative number: of kvh_error, or of kvr_error
 *             (KVR_EINVAL -1, KVR_ENOMEM -2, KVR_EBUSY -18), and
 *             kvh_strerror() describes both. A request that cannot be read is
 *             no error: it is routed by load, and KVH_REASON is why.
 *   time      `now` is in nanoseconds of CLOCK_MONOTONIC; KVH_NOW: the library
 *             reads that clock.
 *   text      is a pointer and a length, and need not end with a NUL. Text that
 *             is returned lives until the next call with the same kvh_call
 *             (the same kvh), and belongs to the library.
 *   memory    nothing of the caller's is kept after a call returns, except the
 *             struct kvr of kvh_new().
 *   blocking  no call sleeps, or reads a socket. kvh_open() alone reads files.
 *             A write that finds the region locked is kept, and done by
 *             kvh_tick() or a later call of any thread.
 *   NULL      in place of a struct, a result or a text that is not empty is
 *             KVR_EINVAL, where the comment does not allow it.
 */
#ifndef KVROUTE_HTTP_H
#define KVROUTE_HTTP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kvr;
struct kvh;
struct kvh_call;

enum {
	KVH_NOW = -1,
	KVH_TARGETS_MAX = 8,
	KVH_NAME_MAX = 253,    /* bytes of a server's name */
	KVH_HEADER = -1,       /* kvh_edit(): the edit sets a header */
	KVH_WRITE_MORE = 65536 /* kvh_response_data(): `room` beyond n */
};

enum kvh_error {
	KVH_ENOSERVER = -101,  /* none is ready: answer 503 */
	KVH_EFULL = -102,      /* all are full: answer 429, or kvh_wait() */
	KVH_EKEPT = -103,      /* the one that keeps its state is busy: 503 */
	KVH_EORDER = -104,     /* the call does not fit the request's state */
	KVH_ENAME = -105,      /* no option, fact or server has that name */
	KVH_EVALUE = -106,     /* the value of an option or a fact is not one */
	KVH_EEND = -107,       /* there is no such item, or no further one */
	KVH_EAREA = -108       /* another release has laid out what is shared */
};

/* Any error of this header or of kvroute.h. */
const char *kvh_strerror(int error);

/* ----------------------------------------------------------------- pool --- */

/*
 * A pool with a region of its own. path: of a file, which all processes that
 * name it share; empty: private memory. options: NAME=VALUE, separated by
 * blanks or newlines, each name once; kvroute-http(7) has all of them:
 *
 *	size=64m block=256 workers=256 ttl=120s affinity=16384 tenants=8
 *	journal=4m secret=/etc/kvroute.secret gray=8 slow_start=30s
 *	feedback=on include_usage=on affinity_key=auto ...
 *
 * *bad: the offset of the option that was not taken; may be NULL.
 * Errors: KVH_ENAME, KVH_EVALUE, those of kvr_open(3).
 */
int kvh_open(const char *path, size_t path_len, const char *options,
    size_t options_len, size_t *bad, struct kvh **pool);
/*
 * A pool on a region of the caller's, with unit bytes, which must outlive it;
 * kvr_nowait_set(3) is set to 1. options: all but those of a region. A user
 * area of another size than kvh_open() makes is left to the caller.
 */
int kvh_new(struct kvr *k, const char *options, size_t options_len,
    size_t *bad, struct kvh **pool);
/* After all calls have been freed. NULL is accepted. */
void kvh_free(struct kvh *h);
/*
 * Adds a server, or changes the facts of one: its name is its address, facts
 * are as of `kvroute_server`, and state=up|drain|down|gone, max_conns=n,
 * weight=n. Facts that are not named have their defaults. A known server keeps
 * its cache, also over a restart. One that is gone gets no more requests; after
 * its last one has ended, kvh_tick() removes it.
 * KVR_EBUSY: the region is locked, or work is left: call again.
 */
int kvh_server_put(struct kvh *h, const char *name, size_t name_len,
    const char *facts, size_t facts_len, size_t *bad);
/* The cache of the server is empty: its engine was restarted. */
int kvh_server_reset(struct kvh *h, const char *name, size_t name_len,
    int64_t now);
/*
 * Does all work that is due: writes that were kept, load of processes that
 * died, servers that are gone, prefixes that expire. Call it about once a
 * second, or at *next, which may be NULL.
 */
int kvh_tick(struct kvh *h, int64_t now, int64_t *next);

enum kvh_form { KVH_PROMETHEUS = 0, KVH_JSON = 1 };
/*
 * *length is that of the whole text, of which `room` bytes are written at most.
 * KVR_EBUSY: the region was locked for too long.
 */
int kvh_status(struct kvh *h, uint32_t form, int64_t now, char *text,
    size_t room, size_t *length);

/* -------------------------------------------------------------- request --- */

/* path: without a query, percent-decoded. Errors: KVR_ENOMEM. */
int kvh_begin(struct kvh *h, const char *method, size_t method_len,
    const char *path, size_t path_len, int64_t now, struct kvh_call **call);
/* A header of the request, in any order, before kvh_body_end(). */
int kvh_header(struct kvh_call *c, const char *name, size_t name_len,
    const char *value, size_t value_len);

enum kvh_told {
	KVH_TOLD_SESSION = 0, /* requests of one session stay together */
	KVH_TOLD_TENANT = 1,  /* prompts of different tenants share nothing */
	KVH_TOLD_MODEL = 2,   /* in place of the body's */
	KVH_TOLD_SALT = 3,    /* is set in the body too, by kvh_edit() */
	KVH_TOLD_SHARE = 4,   /* the tenant's of a full index: 1 to 10000 */
	KVH_TOLD_BYPASS = 5,  /* "1": chosen by load alone */
	KVH_TOLD_ENDPOINT = 6, /* as of kvroute_endpoint, where the path lies */
	KVH_TOLD_CLIENT = 7   /* its address: failures of several clients */
	                      /* count against a server */
};
/*
 * Facts that the proxy has, in place of the path's, the headers', the body's.
 * Before the first kvh_body(). An empty text takes a fact back.
 * Errors: KVH_EORDER; KVH_ENAME: there is no such fact; KVH_EVALUE: it is not
 * valid, or longer than 256 bytes.
 */
int kvh_tell(struct kvh_call *c, uint32_t which, const char *text,
    size_t text_len);
/* The body, in pieces of any size: none is kept. */
int kvh_body(struct kvh_call *c, const void *bytes, size_t n);
/* In place of a body: the prompt's token ids, in pieces too. */
int kvh_tokens(struct kvh_call *c, const uint32_t *tokens, size_t n);
/*
 * whole 0: the rest is not known, so no edit of the body is made. KVH_EVALUE:
 * it cannot have KVH_TOLD_SALT: answer 400.
 */
int kvh_body_end(struct kvh_call *c, uint32_t whole);
/*
 * Once this was called, only servers that it named may be picked. KVH_ENAME: it
 * is unknown; it still counts, as one that cannot be picked.
 */
int kvh_allow(struct kvh_call *c, const char *name, size_t name_len);

/*
 * Chooses a server, books its load, and lists up to KVH_TARGETS_MAX targets,
 * all usable and not tried by this request. The proxy tries them in order, or
 * the first one alone. targets may be NULL: there is only the first.
 * Errors: KVH_ENOSERVER, KVH_EFULL, KVH_EKEPT, KVH_EORDER, KVR_ENOMEM.
 */
int kvh_pick(struct kvh_call *c, int64_t now, uint32_t *targets);
/*
 * Target i, and the data-parallel rank that its engine is to be asked for by an
 * edit; -1: none. rank may be NULL. KVH_EEND: there is no target i.
 */
int kvh_target(struct kvh_call *c, uint32_t i, const char **name,
    size_t *name_len, int32_t *rank);
/*
 * The server that prefills the prompt for the target, which is one of
 * role=decode: an edit names it in x-prefiller-host-port. KVH_EEND: the target
 * does all of it.
 */
int kvh_prefill(struct kvh_call *c, const char **name, size_t *name_len);

enum kvh_failure {
	KVH_REFUSED = 1,  /* no connection was made: its cache is lost */
	KVH_BROKE = 2,    /* the connection broke, or nothing came in time */
	KVH_STATUS = 3,   /* its status is 429, 500, 502, 503 or 504 */
	KVH_NOT_SENT = 4  /* the server had no part in it: it stays in use */
};
/* The first target was tried in vain. kvh_pick() or kvh_end() follows. */
int kvh_failed(struct kvh_call *c, uint32_t failure, uint32_t status,
    int64_t now);
/*
 * Target i was, and the proxy goes on to another one by itself: kvh_response()
 * names that as served, or kvh_end() follows; where no target is named, it is
 * the first one that has not failed. Without this call, targets ahead of the
 * one that answered failed as KVH_BROKE. KVH_EEND: there is no target i.
 */
int kvh_target_failed(struct kvh_call *c, uint32_t i, uint32_t failure,
    uint32_t status, int64_t now);

/*
 * Edit i of the request, ordered by offset: at `offset` of the body, `cut`
 * bytes are replaced by the text. Where offset is KVH_HEADER a header is set:
 * the text is "name: value", or "name:" for one that must not be sent. After
 * each kvh_pick(). KVH_EEND: there is no edit i.
 */
int kvh_edit(struct kvh_call *c, uint32_t i, int64_t *offset, uint64_t *cut,
    const char **text, size_t *text_len);

/*
 * After KVH_EFULL or KVH_EKEPT: the request waits in line, or goes back to its
 * place there. KVH_EFULL: the line is full, as without the option queue=, or
 * queue_timeout= is over.
 */
int kvh_wait(struct kvh_call *c, int64_t now);
/*
 * The next request that waits here and is to call kvh_pick() now, because there
 * is room or its time is over. KVH_EEND: there is no such request. To be called
 * after each kvh_end() and kvh_tick().
 */
int kvh_turn(struct kvh *h, int64_t now, struct kvh_call **call);

/* ------------------------------------------------------------- response --- */

/*
 * The head of a response. type, coding: its Content-Type, Content-Encoding.
 * served: the target that answered, where the proxy tried them itself, so those
 * ahead of it failed: kvh_target_failed(); empty: the first. KVH_ENAME: it is
 * not a server, and the response is passed without a report. *rewrites is 1 if
 * the output of kvh_response_data() must be sent in place of the body, without
 * Content-Length. A status from 400 on leaves kvh_failed() possible; one of
 * 100 to 199 changes nothing, but for 101, for another head follows.
 */
int kvh_response(struct kvh_call *c, uint32_t status, const char *type,
    size_t type_len, const char *coding, size_t coding_len,
    const char *served, size_t served_len, int64_t now, uint32_t *rewrites);
/*
 * The body, in pieces of any size. If *rewrites was 1: `out` has `room` for n +
 * KVH_WRITE_MORE bytes, and the first *written of it are to be sent in place of
 * the piece. Otherwise out and written may be NULL.
 */
int kvh_response_data(struct kvh_call *c, const void *bytes, size_t n,
    int64_t now, char *out, size_t room, size_t *written);

enum kvh_how {
	KVH_WHOLE = 0,       /* all of the response has passed */
	KVH_CLIENT_LEFT = 1,
	KVH_ENGINE_BROKE = 2,
	KVH_GIVEN_UP = 3,    /* it was not sent, or no server was found */
	KVH_NOT_SEEN = 4     /* the proxy shows no responses: it counts as load
	                        for its expected time */
};
/*
 * Releases the load, and reports. The rest of a body that is rewritten is
 * written to out, as above; without out it is KVR_EINVAL after KVH_WHOLE, and
 * nothing has ended. Facts of the call stay readable.
 */
int kvh_end(struct kvh_call *c, uint32_t how, int64_t now, char *out,
    size_t room, size_t *written);
/* Ends it as KVH_GIVEN_UP, if it has not ended. NULL is accepted. */
void kvh_call_free(struct kvh_call *c);

/* ---------------------------------------------------------------- facts --- */

enum kvh_fact {
	KVH_REASON = 0,          /* kvr_reason, and those of kvroute-http(7) */
	KVH_ENDPOINT = 1,        /* 0: no endpoint with a prompt */
	KVH_STREAM = 2,          /* 1: a stream was requested */
	KVH_PROMPT_TOKENS = 3,   /* estimated */
	KVH_OVERLAP_TOKENS = 4,  /* predicted to be cached at the target, */
	KVH_BEST_TOKENS = 5,     /* and where most is */
	KVH_LEASE = 6,           /* 0: none */
	KVH_WORKER = 7,          /* id of kvr_worker(3) */
	KVH_TRIES = 8,
	KVH_RETRY_MS = 9,        /* after KVH_EFULL: when there may be room */
	KVH_STARTED = 10,        /* 1: the first token has come */
	KVH_REPORT_KIND = 11,    /* kvr_report_kind; once it has ended: */
	KVH_REPORT_PROMPT = 12,  /* tokens, as the engine counts them */
	KVH_REPORT_CACHED = 13,
	KVH_REPORT_COMPLETION = 14
};
int kvh_fact(struct kvh_call *c, uint32_t which, int64_t *value);

enum kvh_word {
	KVH_MODEL = 0,         /* of the body, or of kvh_tell(); or empty */
	KVH_REASON_WORD = 1,   /* "cost", "no_body", ... */
	KVH_ENDPOINT_WORD = 2, /* "chat", ... */
	KVH_TRACE = 3,         /* a line of kvroute-replay(1), once it has */
	                       /* ended; KVH_EEND: there is no line */
	KVH_EXPLAIN = 4        /* JSON: how it would be routed, before */
	                       /* kvh_pick(); KVH_EORDER after */
};
int kvh_word(struct kvh_call *c, uint32_t which, const char **text,
    size_t *len);

/* ---------------------------------------------------------------- polls --- */

/*
 * Requests to engines for their capacity and load: the caller sends a GET of
 * the path to the server by its own client, and returns the response. To be
 * called until KVH_EEND, after each kvh_poll_done(), and eight times in the
 * time of poll=, or once a second. One that takes longer than two polls, or 10
 * seconds for a capacity, has failed. server has room for KVH_NAME_MAX bytes or
 * more; *path is valid as long as the pool.
 */
int kvh_poll_next(struct kvh *h, int64_t now, char *server, size_t room,
    size_t *server_len, const char **path, size_t *path_len, uint64_t *token);
/* status 0: there was no response. KVH_EEND: it is no longer waited for. */
int kvh_poll_done(struct kvh *h, uint64_t token, uint32_t status,
    const void *body, size_t n, int64_t now);

#ifdef __cplusplus
}
#endif

#endif
