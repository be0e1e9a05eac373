/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_document.h - the results of simulations as an HTML page.
 *
 * The page is self-contained: it refers to nothing outside, and its security
 * policy forbids it. It shows the numbers of simulate_kv and charts of the
 * distribution of times to first token, the load of each worker and the size
 * of the index over time, and predicted against actual overlap. It is complete
 * without scripts; its own script highlights one policy.
 */
#ifndef KVROUTE_PAGE_DOCUMENT_H
#define KVROUTE_PAGE_DOCUMENT_H

#include "simulate_report.h"

#include <stddef.h>
#include <stdio.h>

/*
 * Returns an enum kvr_error; the caller checks `out` for write errors. Charts
 * over time are included if the simulations took samples.
 */
int simulate_page(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n);

#endif
