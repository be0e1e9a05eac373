/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_text.h - the state of a daemon, as text.
 */
#ifndef KVROUTE_STATUS_TEXT_H
#define KVROUTE_STATUS_TEXT_H

#include <stdio.h>

#include "site.h"

void status_json(FILE *out, const struct site *sites, size_t n);
/* Prometheus, format 0.0.4. */
void status_prometheus(FILE *out, const struct site *sites, size_t n);

#endif
