/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - the values of a tool's options.
 *
 * Each function reads `text`, the value given to the option `option`, and
 * ends the program with a message and ARGS_USAGE if it is not one.
 */
#ifndef KVROUTE_ARGS_H
#define KVROUTE_ARGS_H

#include <kvroute.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ARGS_FAILED = 1, ARGS_USAGE = 2 }; /* exit codes of every tool */

/* A whole number from min to max. */
uint64_t args_number(const char *option, const char *text, uint64_t min,
    uint64_t max);
/* A number above 0, with a decimal point if need be. */
double args_factor(const char *option, const char *text);
/* Bytes: 64M, 1G, 4096; the letters count by 1024. */
uint64_t args_size(const char *option, const char *text);
/* Seconds as nanoseconds: 120, 0.5; "endless" and -1 are KVR_TTL_ENDLESS. */
int64_t args_ttl(const char *option, const char *text);
/* The place of text among n words. */
size_t args_word(const char *option, const char *text,
    const char *const *words, size_t n);

/*
 * The file to read; path NULL: standard input. *name is what to call it in
 * reports. Ends the program if it cannot be read.
 */
FILE *args_input(const char *path, const char **name);
/*
 * What is run with a seed is the same each time, the secret of its index too.
 */
void args_secret(struct kvr_options *options, uint64_t seed);

#endif
