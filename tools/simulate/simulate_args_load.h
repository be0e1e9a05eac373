/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_args_load.h - values of options about engines under load. Exits on
 * errors.
 */
#ifndef KVROUTE_SIMULATE_ARGS_LOAD_H
#define KVROUTE_SIMULATE_ARGS_LOAD_H

#include "simulate.h"

/* --join, --drain, --kill WORKER:SEC */
void args_change(struct simulate_options *o, enum simulate_change_kind kind,
    const char *text);
/* --slow WORKER:FROM:TO:FACTOR */
void args_slow(struct simulate_options *o, const char *text);
/* --slo SEC,MS */
void args_slo(struct simulate_options *o, const char *text);
/* --window MODE[+NAME=N]... */
void args_window(struct simulate_options *o, const char *text);
/* Call it after all options: do they fit together? */
void args_load_check(const struct simulate_options *o);

#endif
