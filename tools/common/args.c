/* SPDX-License-Identifier: BSD-2-Clause */
/* args.c - see args.h. */
#include "args.h"

#include "rng.h"

#include <kvroute.h>

#include <bsd/libutil.h>
#include <bsd/stdlib.h>
#include <bsd/string.h>
#include <err.h>
#include <stdlib.h>
#include <string.h>

/* Longest TTL: 10^9 seconds, thirty years. */
#define SECONDS_MAX 1e9

uint64_t
args_number(const char *option, const char *text, uint64_t min, uint64_t max)
{
	const char *problem = NULL;
	long long n = strtonum(text, (long long)min, (long long)max, &problem);

	if (problem != NULL)
		errx(ARGS_USAGE, "--%s %s: %s (from %llu to %llu)", option,
		    text, problem, (unsigned long long)min,
		    (unsigned long long)max);
	return (uint64_t)n;
}

/* A plain decimal number; strtod also accepts nan, inf and 0x. */
static double
read_decimal(const char *option, const char *text)
{
	const char *digits = text + (text[0] == '-');
	char *end = NULL;
	double d = strtod(text, &end);

	if (*digits == '\0' || *end != '\0' ||
	    strspn(digits, "0123456789.") != strlen(digits))
		errx(ARGS_USAGE, "--%s %s: not a number", option, text);
	return d;
}

double
args_factor(const char *option, const char *text)
{
	double d = read_decimal(option, text);

	if (!(d >= 1e-6 && d <= 1e6))
		errx(ARGS_USAGE, "--%s %s: not from 0.000001 to 1000000",
		    option, text);
	return d;
}

uint64_t
args_size(const char *option, const char *text)
{
	uint64_t bytes = 0;

	if (text[0] < '0' || text[0] > '9' || expand_number(text, &bytes) != 0)
		errx(ARGS_USAGE, "--%s %s: not a size such as 64M or 1G",
		    option, text);
	return bytes;
}

int64_t
args_ttl(const char *option, const char *text)
{
	double d;

	if (strcmp(text, "endless") == 0 || strcmp(text, "-1") == 0)
		return KVR_TTL_ENDLESS;
	d = read_decimal(option, text);
	if (!(d >= 0 && d <= SECONDS_MAX))
		errx(ARGS_USAGE, "--%s %s: not seconds or \"endless\"",
		    option, text);
	return (int64_t)(d * 1e9 + 0.5);
}

int64_t
args_seconds(const char *option, const char *text)
{
	int64_t ns = args_ttl(option, text);

	if (ns == KVR_TTL_ENDLESS)
		errx(ARGS_USAGE, "--%s %s: not seconds", option, text);
	return ns;
}

size_t
args_word(const char *option, const char *text, const char *const *words,
    size_t n)
{
	char list[256] = "";
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	for (i = 0; i < n; i++) {
		strlcat(list, i == 0 ? "" : ", ", sizeof(list));
		strlcat(list, words[i], sizeof(list));
	}
	errx(ARGS_USAGE, "--%s %s: not one of %s", option, text, list);
}

FILE *
args_input(const char *path, const char **name)
{
	FILE *f = path == NULL ? stdin : fopen(path, "r");
	const char *slash;

	if (f == NULL)
		err(ARGS_FAILED, "%s", path);
	slash = path == NULL ? NULL : strrchr(path, '/');
	*name = path == NULL ? "standard input" : slash == NULL ? path :
	    slash + 1;
	return f;
}

void
args_secret(struct kvr_options *options, uint64_t seed)
{
	struct rng r = { seed };

	options->secret_bytes = KVR_SECRET_MIN;
	rng_fill(&r, options->secret, KVR_SECRET_MIN);
}
