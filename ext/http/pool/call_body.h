/* SPDX-License-Identifier: BSD-2-Clause */
/* call_body.h - the request -> its prompt. */
#ifndef KVROUTE_CALL_BODY_H
#define KVROUTE_CALL_BODY_H

#include "pool_in.h"

/* Gives the prompt back. */
void prompt_leave(struct kvh_call *c);
/* Gives the parser back. */
void body_leave(struct kvh_call *c);

#endif
