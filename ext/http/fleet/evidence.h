/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evidence.h - one request is evidence for the servers that it tries; health.h
 * judges them by it.
 *
 *   sent         a try begins
 *   progress     each 250 ms of a stream: time, and tokens seen
 *   accepted     an answer: the servers of earlier tries are to blame
 *   end          did the try fail? Else time until the first token or the whole
 *                answer, less the prefill booked ahead of it
 *
 * A unit of work is the prefill of UNIT_TOKENS tokens, about 7 ms; a token of
 * the answer is TOKEN_UNITS of them, and more while the engine prefills beside
 * that, since each step of an engine does some of both:
 *
 *   sent |--- prefill of all that is booked there ---| first |- . - . - . -|
 *             FIRST_UNITS + booked / UNIT_TOKENS               tokens
 *
 * For the prompt itself the engine's report counts: tokens are estimated by the
 * index, and cached ones take no time. A cold cache is no gray engine, nor is
 * one with other prompts. A stream of a slow client proves nothing, where the
 * proxy reads it no faster than it can be sent.
 */
#ifndef KVROUTE_EVIDENCE_H
#define KVROUTE_EVIDENCE_H

#include "known.h"

enum { EVIDENCE_FAILED = 4 };

/* The evidence of one request; all 0 at first. */
struct evidence {
	/* of the try */
	struct health *health;  /* while `due`, and if its key is still */
	uint64_t key;
	const char *name;       /* of the server; it outlives the request */
	size_t name_len;
	bool due;               /* the end of this try is evidence */
	int64_t sent_at, first_at, seen_at; /* 0: not yet */
	uint64_t events;        /* of the stream, until then */
	double booked, beside;  /* tokens to prefill there, when it was sent; */
	                        /* and until then */
	/* the proxy sets, before the end */
	bool prompts;           /* it has a prompt that engines compute */
	bool stalled;           /* by its client, since seen_at */
	bool failed, answered;  /* how it ended */
	bool cools;             /* and the proxy counts it as failed */
	uint64_t failed_prompt, failed_client; /* digests, while `failed` */
	/* tries that failed, for which their servers may be to blame */
	struct {
		uint64_t key;   /* of the server */
		int64_t at;     /* it was sent */
	} tries[EVIDENCE_FAILED];
	size_t n_tries;
};

/* How a try has ended, for its worker. */
struct evidence_end {
	uint64_t worker;        /* 0: not known */
	bool taken;             /* with a status below 400 */
	bool left;              /* by the client */
	bool stream;
	int64_t head_ns;        /* until its headers; below 0: not known */
	uint64_t prompt_tokens, overlap_tokens; /* as predicted */
	const struct kvr_report *report;
};

/* The request was sent to server i, whose worker is this one, or 0. */
void evidence_sent(struct fleet *f, struct evidence *e, size_t i,
    uint64_t worker, int64_t now);
/* Is the next call due? Else it changes nothing. */
bool evidence_is_due(const struct evidence *e, uint64_t events, int64_t now);
/* A stream has begun, and so many events of it have come. */
void evidence_progress(struct fleet *f, struct evidence *e, uint64_t events,
    uint64_t worker, int64_t now, void *log);
/* Headers with a status below 300 have come. */
void evidence_accepted(struct fleet *f, struct evidence *e, int64_t now,
    void *log);
/* The report is made, if there is one. Again is no error. */
void evidence_end(struct fleet *f, struct evidence *e,
    const struct evidence_end *how, int64_t now, void *log);
/* Of a prompt, by its blocks and its length; 0: it is short, or NULL. */
uint64_t evidence_digest(const struct kvr_prompt *p);
/* By its status; 429 and 503 of an engine mean that it is full. */
bool evidence_is_refusal(unsigned status);

#endif
