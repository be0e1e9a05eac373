/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * least.h - the server with the fewest connections by weight, for requests
 * without a prediction.
 *
 *   first ones, those held back, backups    that are in use; then the same of
 *                                           those drained, unless requests can
 *                                           wait for others
 */
#ifndef KVROUTE_LEAST_H
#define KVROUTE_LEAST_H

#include "known.h"

/* Picks among usable servers, equal ones in rotation; n_known: not found. */
size_t least_loaded(struct fleet *f);

#endif
