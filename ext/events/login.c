/* SPDX-License-Identifier: BSD-2-Clause */
/* login.c - see login.h. */
#include "login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 400 };

/* Its first line, without the end. */
static bool
first_line(const char *path, char line[LINE_MOST], char *error, size_t size)
{
	FILE *file = fopen(path, "re");
	const char *why = NULL;

	if (file == NULL) {
		snprintf(error, size, "%s: %s", path, strerror(errno));
		return false;
	}
	if (fgets(line, LINE_MOST, file) == NULL)
		why = ferror(file) ? "it cannot be read" : "it is empty";
	else if (strlen(line) == LINE_MOST - 1)
		why = "its first line is too long";
	fclose(file);
	if (why == NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] == '\0' || line[0] == ':')
			why = "its first line is no user:password, and no "
			    "token";
	}
	if (why != NULL)
		snprintf(error, size, "%s: %s", path, why);
	return why == NULL;
}

/* All but letters and digits as %XX; the first colon ends the user. */
static void
encode(const char *line, char out[3 * LINE_MOST])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	bool user = true;

	for (; *line != '\0'; line++) {
		if (strchr(plain, *line) != NULL || (*line == ':' && user))
			*out++ = *line;
		else
			out += sprintf(out, "%%%02X", (unsigned char)*line);
		user = user && *line != ':';
	}
	*out = '\0';
}

bool
login_url(const char *endpoint, const char *path, char *url, size_t size,
    char *error, size_t error_size)
{
	const char *host = strstr(endpoint, "://");
	char line[LINE_MOST], said[3 * LINE_MOST];
	int n;

	if (!first_line(path, line, error, error_size))
		return false;
	encode(line, said);
	host = host == NULL ? endpoint : host + 3;
	n = snprintf(url, size, "%.*s%s@%s", (int)(host - endpoint), endpoint,
	    said, host);
	if (n > 0 && (size_t)n < size)
		return true;
	snprintf(error, error_size, "%s: its first line is too long", path);
	return false;
}
