/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * returns_report.h - prints the requests of workers that joined or were slow.
 * Without such workers it prints nothing. Functions return an enum kvr_error.
 */
#ifndef KVROUTE_RETURNS_REPORT_H
#define KVROUTE_RETURNS_REPORT_H

#include <stdio.h>

struct simulation;

/* A line of each figure of each event, after those of the policy. */
int returns_kv(FILE *out, const struct simulation *s);
/* ,"returns":[{...},...] */
int returns_json(FILE *out, const struct simulation *s);

#endif
