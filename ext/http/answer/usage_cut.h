/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_cut.h - removes usage from an event that the client needs. */
#ifndef KVROUTE_USAGE_CUT_H
#define KVROUTE_USAGE_CUT_H

#include <stddef.h>

/*
 * Removes each member `usage` at the top of an event and returns the new
 * length. The event is whole and its data is a valid JSON object. All other
 * bytes stay as they are.
 */
size_t usage_cut(char *event, size_t n);

#endif
