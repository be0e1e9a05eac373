/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * passing.h - reads a response while it passes: when it begins, the report of
 * its engine, and the message that makes it part of the prompt.
 *
 *   head      passing_begin: can it be read? The prompt's end is saved, its
 *             hashes are given up
 *   pieces    the message and usage are kept; usage is cut if only the proxy
 *             asked for it
 *   first     first token: heads come before prefill
 *   end       passing_report; end of the prompt + message, hashed
 *                                                       --> kvr_lease_extend
 *
 * The next request of a chat carries the answer to this one, and the engine has
 * both in its cache. So the lease is extended by the answer before it ends. An
 * answer that is not known whole extends nothing. Nothing is delayed but, where
 * usage is cut, an incomplete event.
 */
#ifndef KVROUTE_PASSING_H
#define KVROUTE_PASSING_H

#include <stdbool.h>

#include "shared.h"
#include "spares.h"

/* All 0 at first. */
struct passing {
	struct answer *answer;  /* NULL: it is not read */
	struct reply *reply;    /* NULL: the prompt is not extended */
	void *saved;            /* its end, see kvr_prompt_save */
	size_t n_saved;
	bool stream;            /* the proxy sets it */
	bool strip;             /* usage is cut */
	bool started;           /* it is in the region */
	bool reported;
	int64_t first;          /* time of the first token; 0: none yet */
	uint64_t token_ns;      /* for each further token; 0: not known */
	struct kvr_report report;
};

/* How the request was sent, for its report. */
struct passing_way {
	enum endpoint endpoint;
	const struct body_facts *facts;
	const struct kvr_decision *decision;
	bool proves;            /* the one try of a prompt, read to its end */
	bool apart;             /* another server prefills */
	int64_t now;
};

/* Is it this type, which may have parameters? */
bool passing_type_is(const char *type, size_t n, const char *name);
/* asked: usage was asked for in place of the client. False: it is not read. */
bool passing_begin(struct passing *p, struct spares *s, bool json, bool asked);
/* The answer extends this prompt, which loses its hashes. */
void passing_extends(struct passing *p, struct spares *s,
    enum endpoint endpoint, struct kvr_prompt *prompt);
/* The next bytes, of a response that is not cut. */
void passing_data(struct passing *p, const void *bytes, size_t n);
/* The same of one that is; as answer_strip and answer_flush. */
size_t passing_strip(struct passing *p, struct shared *shared,
    const void *bytes, size_t n, void *out);
size_t passing_flush(struct passing *p, struct shared *shared, void *out);
/* True: the first token has just come. It is called until it has started. */
bool passing_token(struct passing *p, struct kvr *k, uint64_t lease,
    int64_t now);
/* Makes p->report, once. */
void passing_report(struct passing *p, const struct passing_way *way,
    struct shared *shared);
/* The prompt with the answer; NULL: nothing is appended. */
struct kvr_prompt *passing_end(struct passing *p, struct spares *s,
    const struct kvr *k, bool reasoning, bool whole, struct shared *shared);
/* Gives all back; again is no error. */
void passing_leave(struct passing *p, struct spares *s);

#endif
