/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_explain.h - what would happen to a request body, as JSON: what is
 * found in it, which worker would be chosen, and all that the choice is made
 * of.
 *
 * The proxy reads the body as it reads any other and describes it here; when
 * the outcome is REASON_COST there is a prompt, with its scope and its sizes.
 * Nothing is booked: kvr_route and kvr_candidates only read. As in status.h
 * the struct borrows, the handle must be kvr_nowait_set, and the writer fails,
 * also after STATUS_TRIES calls that found the lock held.
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
	const char *model;              /* as the scope has it */
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
