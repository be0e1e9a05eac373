/* SPDX-License-Identifier: BSD-2-Clause */
/* reason.c - see reason.h. */
#include "reason.h"

static const char *const names[REASONS] = {
	[REASON_COST] = "cost",
	[REASON_TIE] = "tie",
	[REASON_SAMPLED] = "sampled",
	[REASON_PINNED] = "pinned",
	[REASON_AFFINITY] = "affinity",
	[REASON_BYPASS] = "bypass",
	[REASON_ENDPOINT] = "endpoint",
	[REASON_NO_BODY] = "no_body",
	[REASON_UNBUFFERED] = "unbuffered",
	[REASON_NOT_JSON] = "not_json",
	[REASON_TOO_DEEP] = "too_deep",
	[REASON_NO_PROMPT] = "no_prompt",
	[REASON_BUSY] = "busy",
	[REASON_NO_WORKER] = "no_worker",
	[REASON_STATE_LOST] = "state_lost",
	[REASON_STATE_BUSY] = "state_busy",
	[REASON_PROBE] = "probe",
	[REASON_QUEUE_FULL] = "queue_full",
	[REASON_QUEUE_TIMEOUT] = "queue_timeout",
	[REASON_FAILED] = "failed"
};

const char *
reason_name(uint32_t reason)
{
	return reason < REASONS ? names[reason] : "?";
}

bool
reason_occurs(uint32_t reason)
{
	return reason < REASONS && reason != REASON_PINNED;
}

enum reason
reason_of_body(enum body_outcome outcome)
{
	switch (outcome) {
	case BODY_PROMPT:
		return REASON_COST;
	case BODY_EMPTY:
		return REASON_NO_BODY;
	case BODY_NOT_JSON:
		return REASON_NOT_JSON;
	case BODY_TOO_DEEP:
		return REASON_TOO_DEEP;
	case BODY_NO_PROMPT:
		return REASON_NO_PROMPT;
	default:
		return REASON_FAILED;
	}
}

enum reason
reason_of_error(int error)
{
	switch (error) {
	case KVR_EBUSY:
		return REASON_BUSY;
	case KVR_ENOWORKER:
	case KVR_EALLOVERLOADED:
		return REASON_NO_WORKER;
	default:
		return REASON_FAILED;
	}
}
