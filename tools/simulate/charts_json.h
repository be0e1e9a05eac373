/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charts_json.h - the data of a policy that the page of kvroute-replay --report
 * draws, as a member of its object.
 */
#ifndef KVROUTE_CHARTS_JSON_H
#define KVROUTE_CHARTS_JSON_H

#include <stdio.h>

struct simulation;

/* Returns an enum kvr_error. */
int charts_json(FILE *out, struct simulation *s);

#endif
