/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * samples.h - reads a text for Prometheus that comes in pieces of any size.
 *
 *   # HELP vllm:num_requests_running ...
 *   vllm:num_requests_running{engine="0",model_name="m"} 3.0 1764236000
 *   ^name                     ^label ^value              ^number
 *
 * A line is reported while it comes, and its number at its LF: no number is of
 * a line that is cut or broken. Names longer than SAMPLES_NAME_MAX are passed
 * over. Of values and numbers SAMPLES_VALUE_MAX bytes are kept, and the length
 * of a value is that of all of it.
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
	/* From the number up to the end of the line. */
	void (*number)(void *context, const char *text, size_t n);
};

struct samples {
	const struct samples_calls *calls;
	void *context;
	unsigned char place;    /* enum of samples.c */
	size_t most, n_line;    /* bytes of a line; longer ones do not count */
	size_t n_name, n_value; /* with what had no room */
	char name[SAMPLES_NAME_MAX];   /* of the metric, or of a label */
	char value[SAMPLES_VALUE_MAX]; /* of that label, or the number */
};

/* Lines of `most` bytes and more do not count. */
void samples_begin(struct samples *s, const struct samples_calls *calls,
    void *context, size_t most);
void samples_data(struct samples *s, const char *bytes, size_t n);

/* Is a name or a value this? */
bool samples_is(const char *text, size_t n, const char *word);

#endif
