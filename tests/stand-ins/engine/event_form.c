/* SPDX-License-Identifier: BSD-2-Clause */
/* event_form.c - the forms of event_pack.h, which need no library. */
#include "event_pack.h"

const char *const event_forms[FORMS] = {
	"vllm", "vllm-arrays", "sglang", "sglang-arrays"
};

bool
event_form_sglang(enum event_form form)
{
	return form == FORM_SGLANG || form == FORM_SGLANG_ARRAYS;
}
