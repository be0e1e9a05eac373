/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - parsing of option values.
 *
 * Each function parses `text`, the value of `option`. If it is invalid, the
 * program exits with a message and ARGS_USAGE.
 */
#ifndef KVROUTE_ARGS_H
#define KVROUTE_ARGS_H

#include <kvroute.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ARGS_FAILED = 1, ARGS_USAGE = 2 }; /* exit codes of every tool */

/* An integer from min to max. */
uint64_t args_number(const char *option, const char *text, uint64_t min,
    uint64_t max);
/* A decimal number from 1e-6 to 1e6. */
double args_factor(const char *option, const char *text);
/* Bytes: 64M, 1G, 4096; suffixes are powers of 1024. */
uint64_t args_size(const char *option, const char *text);
/* Seconds as nanoseconds: 120, 0.5; "endless" and -1 are KVR_TTL_ENDLESS. */
int64_t args_ttl(const char *option, const char *text);
/* The same, but not endless. */
int64_t args_seconds(const char *option, const char *text);
/* The index of text among n words. */
size_t args_word(const char *option, const char *text,
    const char *const *words, size_t n);

/*
 * Opens a file; path NULL: standard input. *name is its name for reports.
 * Exits if it cannot be opened.
 */
FILE *args_input(const char *path, const char **name);
/* Derives the secret from the seed, so that runs are reproducible. */
void args_secret(struct kvr_options *options, uint64_t seed);

#endif
