/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h - reads a text for Prometheus that comes in pieces of any size.
 *
 *   # HELP vllm:num_requests_running ...
 *   vllm:num_requests_running{engine="0",model_name="m"} 3.0 1764236000
 *   ^name                     ^label ^value              ^number
 *
 * The name and labels of a line are reported while it comes, and its number at
 * its LF, so a cut or broken line has no number. Names longer than
 * SAMPLES_NAME_MAX are passed over. A value or number is cut after
 * SAMPLES_VALUE_MAX bytes; a value is reported with its full length.
 */
#ifndef KVROUTE_SAMPLES_H
#define KVROUTE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

enum { SAMPLES_NAME_MAX = 64, SAMPLES_VALUE_MAX = 128 };

struct samples_calls {
	/* A line begins with this name: is the rest of it wanted? */
	bool (*name)(void *context, const char *name, size_t n, bool labels);
	void (*label)(void *context, const char *name, size_t n_name,
	    const char *value, size_t n_value);
	/* The rest of a line, from the number on. */
	void (*number)(void *context, const char *text, size_t n);
};

struct samples {
	const struct samples_calls *calls;
	void *context;
	unsigned char place;    /* enum of samples.c */
	size_t most, n_line;    /* bytes of a line; longer ones do not count */
	size_t n_name, n_value; /* full lengths; the buffers may have less */
	char name[SAMPLES_NAME_MAX];   /* a metric's or a label's */
	char value[SAMPLES_VALUE_MAX]; /* a label's, or the number */
};

/* Begins a text; lines of `most` bytes or more do not count. */
void samples_begin(struct samples *s, const struct samples_calls *calls,
    void *context, size_t most);
void samples_data(struct samples *s, const char *bytes, size_t n);

/* Is it a blank within a line? */
static inline bool
samples_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Is a name or a value this word? */
bool samples_is(const char *text, size_t n, const char *word);

#endif
