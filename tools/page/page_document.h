/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_document.h - what simulations found, as one page for a browser.
 *
 * The page is whole: it refers to nothing outside, and forbids itself to. It
 * shows the numbers of simulate_kv and draws what no number says: how times to
 * the first token are distributed, the load of each worker and the size of the
 * index over time, what was predicted against what was hit. It is complete
 * without scripts; one of its own helps to tell curves apart.
 */
#ifndef KVROUTE_SIMULATE_PAGE_H
#define KVROUTE_SIMULATE_PAGE_H

#include "simulate_report.h"

#include <stddef.h>
#include <stdio.h>

/*
 * An enum kvr_error; whether writing failed is for the caller to ask `out`.
 * What happens over time is shown if the simulations took samples.
 */
int simulate_page(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n);

#endif
