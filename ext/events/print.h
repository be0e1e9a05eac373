/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * print.h - events for people, a line each, as kvroute-events(8) shows them.
 */
#ifndef KVROUTE_PRINT_H
#define KVROUTE_PRINT_H

#include <stdio.h>

#include "decode.h"

/* Text of a stream is shown without bytes that a terminal would act upon. */
void print_event(FILE *out, const struct event_batch *batch,
    const struct event *event, bool tokens);
/* A line for each reason that counted more. */
void print_dropped(FILE *out, const struct decode_counts *before,
    const struct decode_counts *after);

#endif
