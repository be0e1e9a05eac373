/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_explain.h - explains as JSON how a request body would be routed: the
 * facts of the body, the worker that would be chosen, and the figures of each
 * candidate.
 *
 * The proxy reads the body as it reads any other and describes it here. With
 * the outcome REASON_COST there is a prompt, with its scope and its sizes.
 * Nothing is booked: kvr_route and kvr_candidates only read. As in status.h the
 * struct borrows, the handle must be kvr_nowait_set, and errors fail the
 * writer, also STATUS_TRIES calls that found the lock held.
 */
#ifndef KVROUTE_STATUS_EXPLAIN_H
#define KVROUTE_STATUS_EXPLAIN_H

#include "body.h"
#include "status.h"

struct explain {
	const char *upstream;
	size_t upstream_length;
	enum endpoint endpoint;
	const struct body_facts *facts; /* all but `model` are read */
	const char *model;              /* the name that entered the scope */
	size_t model_length;
	enum reason outcome;            /* REASON_COST: there is a prompt */
	/* only with a prompt */
	const struct kvr *kvr;          /* kvr_nowait_set */
	struct kvr_prompt *prompt;
	struct kvr_prompt_info info;
	struct kvr_scope scope;
	int64_t now;
};

void status_explain(const struct explain *e, struct writer *to);

#endif
