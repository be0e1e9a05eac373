/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report_page.h - the results of simulations as an HTML page: page.html with
 * the results as JSON in it. It is one file that refers to nothing outside.
 */
#ifndef KVROUTE_REPORT_PAGE_H
#define KVROUTE_REPORT_PAGE_H

#include "simulate_report.h"

#include <stddef.h>
#include <stdio.h>

/*
 * `command` are n_words words of the command line. Returns an enum kvr_error;
 * the caller checks `out` for write errors.
 */
int report_page(FILE *out, const struct simulate_about *about,
    char *const *command, int n_words, const struct simulate_row *rows,
    size_t n);

#endif
