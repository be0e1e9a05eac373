/* SPDX-License-Identifier: BSD-2-Clause */
/* door_text.h - JSON that the JSON door reads and writes. */
#ifndef KVROUTE_DOOR_TEXT_H
#define KVROUTE_DOOR_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text_hold.h"

struct kvh_call;

/*
 * Reads "[1, 2, 3]". false: it is no list of numbers below 2^32, or there is
 * no memory. The caller frees *tokens in any case.
 */
bool door_read_tokens(const void *text, size_t length, uint32_t **tokens,
    size_t *n);
/* The answer to a select. false: no memory. */
bool door_write_choice(struct hold *to, struct kvh_call *call, const char *id,
    uint32_t targets);
/* The answer to an end. */
bool door_write_report(struct hold *to, struct kvh_call *call);

#endif
